// What is asked first, in that order: did anything spill, how much, where, why, what would have avoided it, where is the log.
const lineOf = (run) => run.log + ":" + run.line;
const sums = (bytes) => [["device", bytes.device_bytes], ["host", bytes.host_bytes], ["managed", bytes.managed_bytes]]
	.filter(([, value]) => value).map(([kind, value]) => size(value) + " " + kind).join(", ") || "nothing";

/* "split 2.04 GiB, host 1.00 GiB": what spilled, by the table's names; a few of them. */
function spilledBy(rows) {
	const spilled = rows.filter((row) => row.spilled).sort((a, b) => b.spilled - a.spilled);
	const more = spilled.length - 5;

	return spilled.slice(0, 5).map((row) => (row.name || "?") + " " + size(row.spilled)).join(", ") + (more > 0 ? " and " + more + " more" : "") ||
		"not told: the lines were left out (log.max)";
}

const moved = (bytes, moves, reasons) => size(bytes) + " in " + plural(moves, "move") + ": " +
	reasons.map((row) => (row.name || "?") + " " + size(row.bytes)).join(", ");

/* Of a run, or of all of them together. */
function headline(totals, honest, before) {
	const surfaced = totals.ooms - honest;
	const spilled = totals.spilled.host_bytes + totals.spilled.managed_bytes;
	const words = [];

	if (before)
		words.push(before);
	if (surfaced)
		words.push(plural(surfaced, "out of memory", "times out of memory"));
	if (totals.spills)
		words.push(size(spilled) + " spilled, in " + count(totals.spills) + " of " + plural(totals.allocs, "allocation"));
	else if (totals.demotions)
		words.push("no allocation spilled, but " + size(totals.demoted_bytes) + " moved to the host");
	else
		words.push("nothing spilled");
	words[0] = words[0][0].toUpperCase() + words[0].slice(1);
	return make("p", {class: "headline" + (surfaced ? " bad" : totals.spills || totals.demotions ? "" : " good")},
		words.join("; "));
}

function factsOf(run) {
	const totals = run.totals, facts = [];
	const add = (term, text) => text && facts.push(make("dt", {}, term), make("dd", {}, text));

	if (totals.spills) {
		add("how much", sums(totals.spilled));
		add("where", spilledBy(run.by_place));
		add("why", spilledBy(run.by_reason));
		add("by rule", spilledBy(run.by_rule));
		add("asked by", spilledBy(run.by_caller));
	}
	add("moved to host", totals.demotions ? moved(totals.demoted_bytes, totals.demotions, run.demoted) : "");
	add("moved back", totals.promotions ? moved(totals.promoted_bytes, totals.promotions, run.promoted) : "");
	add("out of memory", count(totals.ooms) + (run.honest ? ", of which " + count(run.honest) + " by oom.honest_first, to be asked again" : ""));
	add("held at most", sums(totals.peak));
	add("ended", run.exited ? run.how + " at " + time(run.ended) : "no exit line: it was killed, has crashed, or still runs; last line at " + time(run.ended));
	add("log", make("code", {}, lineOf(run)));
	return make("dl", {class: "facts"}, facts);
}

/* What makes the figures less than the whole. */
function doubtsOf(run) {
	const doubts = [];
	const add = (there, text) => there && doubts.push(make("p", {class: "problem"}, text));

	add(run.program === null, "The log has no start line: the program is not known.");
	add(run.mode && run.mode !== "spill", "spill.mode = " + run.mode + ": nothing was placed elsewhere.");
	add(run.differences.length, "The sums of the lines differ from the program's own count (exit line): " +
		run.differences.map((each) => each.name + " " + count(each.lines) + " against " + count(each.exit)).join(", ") + ".");
	add(run.left_out, "log.max left out " + plural(run.left_out,
		"allocation") + ": the totals have them, charts and tables do not.");
	add(!run.all_told, "log.level is spills: the log lacks allocations that did not spill.");
	add(run.cut, "The last line of the log is cut.");
	add(run.bad_lines, plural(run.bad_lines, "line") + " of the log could not be read.");
	add(run.later_records, plural(run.later_records, "record") + " of a later version of spill are not counted.");
	add(run.late_events, plural(run.late_events, "event") + " came so late that peaks may be too low.");
	add(run.unknown_frees && run.all_told, plural(run.unknown_frees, "free") + " of allocations that are not in the log.");
	add(run.after_exit, plural(run.after_exit, "event") + " after the exit line are not counted.");
	return doubts;
}

/* Those that a reader of many runs wants to see first. */
function verdictOfAll(pick) {
	const bad = runs.filter((run) => run.totals.ooms > run.honest || !run.exited || run.differences.length).slice(0, 8);
	const honest = runs.reduce((sum, run) => sum + run.honest, 0);

	return make("section", {class: "card", id: "all-runs", "aria-label": "What happened in all runs"},
		headline(data.sum, honest, plural(runs.length, "run")),
		make("dl", {class: "facts"}, make("dt", {}, "spilled"), make("dd", {}, sums(data.sum.spilled)),
			make("dt", {}, "moved to host"), make("dd", {}, data.sum.demotions ? size(data.sum.demoted_bytes) + " in " + plural(data.sum.demotions, "move") : "nothing"),
			make("dt", {}, "held at most"),
			make("dd", {}, sums(data.sum.peak) + ", if all had their peaks at once"),
			bad.length ? [make("dt", {}, "look first at"),
				make("dd", {}, bad.map((run) => [make("button", {type: "button", onclick: () => pick(run.at)},
				titleOf(run)), " "]))] : null));
}

function verdictOf(run) {
	return make("section", {class: "card", id: "verdict", "aria-label": "What happened"}, headline(run.totals, run.honest),
		run.advice ? make("p", {class: "advice"}, make("b", {}, "How to avoid it: "), run.advice) : null,
			doubtsOf(run), factsOf(run));
}

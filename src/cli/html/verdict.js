// What is asked first, in that order: did anything spill, how much, where, why, what would have avoided it, where is the log.
/* The line only if other runs are before it in the file. */
const lineOf = (run) => run.log + (run.line > 1 ? ":" + run.line : "");
const sums = (bytes) => kinds.map((kind) => [bytes[kind + "_bytes"], kindNames[kind]])
	.filter(([value]) => value).map(([value, words]) => size(value) + " " + words).join(", ") || "nothing";
const sentence = (words) => words && words[0].toUpperCase() + words.slice(1);
const sentences = (list) => list.filter(Boolean).map((words) => sentence(words) + ".").join(" ");

/* "libc10_cuda.so+0x2f4cb 3.78 GiB"; "1.61 GiB because the card was full" */
const namedOf = (name, bytes) => (name || "?") + " " + size(bytes);
const becauseOf = (name, bytes) => size(bytes) + " " + reasonOf(name);
const placedOf = (name, bytes) => name === "split" ? "split: " + size(bytes) + " of it on the host, the rest on the card" : namedOf(name, bytes);

/* What spilled, by the table's names; a few of them. */
function spilledBy(rows, key, words = namedOf) {
	const spilled = rows.filter((row) => row[key]).sort((a, b) => b[key] - a[key]);
	const more = spilled.length - 5;

	return spilled.slice(0, 5).map((row) => words(row.name, row[key])).join("; ") + (more > 0 ? "; and " + more + " more" : "") ||
		"not told: the log lacks these lines";
}

const moved = (bytes, moves, reasons) => size(bytes) + " in " + plural(moves, "move") + ": " +
	reasons.map((row) => becauseOf(row.name, row.bytes)).join("; ");

/* words: the parts of the sentence. `bad`: it is about an out of memory; `good`: nothing left the card. */
const headline = (words, bad, good) =>
	make("p", {class: "headline" + (bad ? " bad" : good ? " good" : "")}, sentence(words.filter(Boolean).join("; ")));

const surfacedOf = (run) => run.totals.ooms - run.honest;
const outOf = (surfaced) => surfaced && plural(surfaced, "out of memory", "times out of memory");
const wasAway = (run) => run.totals.spills || run.totals.demotions;

/* The reason in one sentence: who had the card when memory lacked. */
function shortageOf(run) {
	return run.devices.filter((device) => device.shortage && device.dev !== null).map(({dev, shortage}) => make("p", {class: "lead"},
		"Device " + dev + " lacked memory: " + shortage.text + "."));
}

/* The last one that surfaced is what ends most programs. */
function causeOf(run) {
	const oom = run.ooms.filter((each) => each.refused_by !== "oom.honest_first").pop();

	return oom ? [make("p", {class: "problem"}, make("b", {}, "Refused by: "), oom.refused + "; " + size(oom.bytes) + " asked by " + (oom.caller || "?")),
		make("p", {class: "advice"}, make("b", {}, "What would have helped: "), oom.advice)] : [];
}

function factsOf(run) {
	const totals = run.totals, facts = [];
	/* Rules that somebody wrote. */
	const ruled = run.by_rule.filter((row) => row.away && row.name !== null && row.name !== "default");
	const add = (term, text) => text && facts.push(make("dt", {}, term), make("dd", {}, text));

	if (totals.spills) {
		add("placed off", sums(totals.spilled) + ", by " + count(totals.spills) + " of " + plural(totals.allocs, "allocation"));
		add("where", spilledBy(run.by_place, "spilled", placedOf));
		add("why", spilledBy(run.by_reason, "spilled", becauseOf));
	}
	if (ruled.length)
		add("by rule", spilledBy(ruled, "away"));
	if (wasAway(run))
		add("asked by", spilledBy(run.by_caller, "away"));
	add("moved to host", totals.demotions ? moved(totals.demoted_bytes, totals.demotions, run.demoted) : "");
	add("moved back", totals.promotions ? moved(totals.promoted_bytes, totals.promotions, run.promoted) : "");
	add("out of memory", run.story.refusals);
	add("held at most", sums(totals.peak));
	add("ended", run.end);
	add("log", make("code", {}, lineOf(run)));
	return make("dl", {class: "facts"}, facts);
}

/* What makes the figures less than the whole. */
function doubtsOf(run) {
	const doubts = [];
	const add = (there, text) => there && doubts.push(make("p", {class: "problem"}, text));

	add(run.program === null, "The log has no start line: the program is not known.");
	add(run.problem, "The policy was refused: " + run.problem);
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

/* The ranks that stand out, in the words of the text report. */
const rankNames = {fullest: "fullest", held_up_most: "held up most", longest: "longest run", first_oom: "first out of memory"};
function ranksOf(pick) {
	const told = Object.keys(rankNames).filter((key) => data.ranks && data.ranks[key]);

	return told.map((key) => [make("dt", {}, rankNames[key]),
		make("dd", {}, make("button", {type: "button", onclick: () => pick(data.ranks[key].run)}, data.ranks[key].text))]);
}

/* Those that a reader of many runs wants to see first. */
function verdictOfAll(pick) {
	const bad = runs.filter((run) => surfacedOf(run) || endsBadly(run) || run.differences.length).slice(0, 8);
	const surfaced = runs.reduce((sum, run) => sum + surfacedOf(run), 0);
	const worst = runs.reduce((most, run) => run.story.peak_bytes > most.story.peak_bytes ? run : most);
	const held = runs.reduce((sum, run) => sum + run.story.moves_us, 0) / 1e6;
	const away = worst.story.peak_bytes ? "up to " + size(worst.story.peak_bytes) + " of one run was in host memory"
		: runs.some(wasAway) ? worst.story.size : "nothing was in host memory";

	return make("section", {class: "card", id: "all-runs", "aria-label": "What happened in all runs"},
		headline([plural(runs.length, "run"), outOf(surfaced), away], surfaced, !runs.some(wasAway)),
		held ? make("p", {class: "lead"}, "Moves held the programs up for " + time(held, 0.01) + " in all.") : null,
		make("dl", {class: "facts"}, ranksOf(pick), make("dt", {}, "placed off"), make("dd", {}, sums(data.sum.spilled)),
			make("dt", {}, "moved to host"), make("dd", {}, data.sum.demotions ? size(data.sum.demoted_bytes) + " in " + plural(data.sum.demotions, "move") : "nothing"),
			make("dt", {}, "held at most"),
			make("dd", {}, sums(data.sum.peak) + ", if all had their peaks at once"),
			bad.length ? [make("dt", {}, "look first at"),
				make("dd", {}, bad.map((run) => [make("button", {type: "button", onclick: () => pick(run.at)},
				titleOf(run)), " "]))] : null));
}

function verdictOf(run) {
	const surfaced = surfacedOf(run);
	/* The most in host memory is the headline, the other peaks are below it. */
	const [peak, ...rest] = run.story.size.split("; "), costs = [run.story.cost, run.story.in_place].filter(Boolean);

	return make("section", {class: "card", id: "verdict", "aria-label": "What happened"},
		headline([outOf(surfaced), peak], surfaced, !wasAway(run)), causeOf(run),
		rest.length || costs.length ? make("p", {class: "lead"}, sentences([...rest, ...costs])) : null, shortageOf(run),
		run.advice ? make("p", {class: "advice"}, make("b", {}, "To fit: "), run.advice) : null,
			doubtsOf(run), factsOf(run));
}

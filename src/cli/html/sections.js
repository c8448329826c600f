// The tables of a run.
/* The narrow ones stand beside each other. */
/* nameless: what a row is called that has no name in the log */
function viewOf(run, key, head, narrow, nameless = "not known") {
	const rows = run[key], more = run.rows[key] - rows.length;

	return rows.length ? tableOf({
		caption: "By " + head, rows, more: more > 0 ? count(more) + " more, in spill report --json" : null,
		columns: [{...textColumn(head, "name"), show: (value) => value === null ? nameless : key === "by_reason" ? reasonOf(value) : value},
			bytesColumn("at most", "peak", "device"), bytesColumn("off the card", "away", "host"), bytesColumn("at the end", "live"),
			...(narrow ? [] : [bytesColumn("bytes", "bytes")]), countColumn("allocations", "allocs")],
	}) : null;
}

function devicesOf(run) {
	const figure = (head, part, kind) => ({head, number: true, value: (row) => row[part][kind + "_bytes"], show: dash});

	return run.devices.length ? tableOf({
		caption: "By device", rows: run.devices,
		columns: [{head: "device", value: (row) => row.dev, show: byDevice, look: () => "whole"},
			figure("card, at most", "peak", "device"), figure("host, at most", "peak", "host"), figure("managed, at most", "peak", "managed"),
			figure("card, at end", "live", "device"), figure("host, at end", "live", "host"), figure("managed, at end", "live", "managed"),
			bytesColumn("size", "bytes"), {head: "name", value: (row) => row.name, show: (value) => value || ""}],
	}) : null;
}

function tablesOf(run) {
	return make("section", {}, make("h2", {}, "Callers and places"), viewOf(run, "by_caller", "caller"),
		make("div", {class: "grid"}, viewOf(run, "by_place", "place", true), viewOf(run, "by_rule", "rule", true, "no rule: the program named the place itself"),
			viewOf(run, "by_reason", "reason", true)), devicesOf(run),
		run.largest.length ? tableOf({
			caption: "The largest allocations", rows: run.largest,
			columns: [bytesColumn("bytes", "bytes", "device"), textColumn("asked by", "caller"), textColumn("place", "place"),
				{head: "device", value: (row) => row.dev, show: byDevice, look: () => "whole"},
				textColumn("function", "api"), timeColumn("at", "t"),
					{head: "at the end", value: (row) => row.summed ? "summed" : row.freed ? "freed" : "held"}, countColumn("number", "seq")],
		}) : null,
		run.moved.length ? tableOf({
			caption: "Moved to the host most", rows: run.moved,
			columns: [bytesColumn("moved, in all", "moved", "host"), textColumn("asked by", "caller"), countColumn("moves", "moves"), bytesColumn("size", "bytes"),
				bytesColumn("on the host at the end", "host_bytes", "host"),
				{head: "device", value: (row) => row.dev, show: byDevice, look: () => "whole"},
				countColumn("number", "seq")],
		}) : null);
}

/* Only the first ones are open: there may be twenty. */
function oomOf(oom, open) {
	const tried = oom.tried.map((each) => (each.place || "?") + ": " + (each.error || "?")).join(", ");

	return make("details", {class: "card oom", open},
		make("summary", {}, make("h3", {}, size(oom.bytes) + " asked by " + (oom.caller || "?") + " at " + time(oom.t))),
		make("p", {class: "advice"}, make("b", {}, "What would have helped: "), oom.advice),
		make("dl", {class: "facts"}, [["function", (oom.api || "?") + (oom.dev === null ? "" : ", device " + oom.dev)],
			["refused by", oom.refused],
			["tried", tried || "nothing else"], ["free", size(oom.free) + " of " + size(oom.total)],
				["held by this process", sums(oom.live)]]
			.map(([term, text]) => [make("dt", {}, term), make("dd", {}, text)])),
		oom.holders.length ? tableOf({
			caption: "The largest allocations at that time", rows: oom.holders,
			columns: [bytesColumn("bytes", "bytes", "device"), textColumn("place", "place"),
				textColumn("asked by", "caller"), textColumn("function", "api"), countColumn("number", "seq")],
		}) : null);
}

function oomsOf(run) {
	const more = run.totals.ooms - run.ooms.length, half = run.ooms.length / 2;

	if (!run.ooms.length)
		return null;
	return make("section", {id: "oom"}, make("h2", {}, "Out of memory: " + count(run.totals.ooms)),
		run.ooms.map((oom, at) => [at === half && more > 0 ? make("p", {class: "quiet"},
			"\u2026 " + count(more) + " between these") : null, oomOf(oom, at < 2)]).flat());
}

function notesOf(run) {
	return run.notes.length ? make("section", {}, make("h2", {}, "Notes"), tableOf({
		caption: plural(run.note_count, "note"), rows: run.notes,
			more: run.note_count > run.notes.length ? count(run.note_count - run.notes.length) + " more, in the log" : null,
		columns: [timeColumn("at", "t"), textColumn("about", "code"), textColumn("what", "text")],
	})) : null;
}

function policyOf(run) {
	const set = run.policy.filter((option) => option.source !== "default");
	const table = (caption, rows) => tableOf({caption, rows,
		columns: [textColumn("option", "name"), textColumn("value", "value"), textColumn("from", "source")]});

	if (!run.policy.length)
		return null;
	return make("section", {}, make("h2", {}, "Policy"),
		set.length ? table("Values that differ from the default", set) : make("p", {}, "All options had their defaults."),
		make("details", {}, make("summary", {}, "All " + run.policy.length + " options"), table("All options", run.policy)),
		run.args.length ? [make("p", {}, "Arguments"),
			make("pre", {}, run.args.map(quoted).join(" ") + (run.args_cut ? " \u2026" : ""))] : null);
}

function runsOf(shown, pick) {
	const total = (head, value, tint) => ({head, value, show: dash, number: true, tint});

	return tableOf({
		caption: plural(runs.length, "run"), rows: runs,
		pick: (run) => pick(run.at), here: (run) => run.at === shown,
		columns: [{head: "program", value: (run) => run.program},
			...(runs.some((run) => run.rank !== null) ? [{head: "rank", value: (run) => run.rank, show: (value) => value === null ? "\u2013" : value}] : []),
			total("off the card, at most", (run) => run.story.peak_bytes, "host"),
			{head: "held up", value: (run) => run.story.moves_us / 1e6, show: (value) => value ? time(value, 0.01) : "\u2013", number: true},
			{head: "out of memory", value: surfacedOf, show: (value) => value ? count(value) : "\u2013", number: true, look: (value) => value ? "bad" : ""},
			total("on the card, at most", (run) => run.totals.peak.device_bytes, "device"),
			total("moved to host", (run) => run.totals.demoted_bytes),
			{head: "allocations", value: (run) => run.totals.allocs, show: count, number: true},
			{head: "host", value: (run) => run.host},
			{head: "ended", value: (run) => run.ending, look: (value, run) => endsBadly(run) ? "bad" : ""},
			{head: "log", value: (run) => lineOf(run), look: () => "long"}],
	});
}

// What src/cli/report/page.c wrote: the object of `spill report --json`, and beside it
//   stories   for each run: policy, args, margins, rows, left_out_since, lanes
//   reasons   the log's words for reasons, in words for people
//   names     texts of marks by number, from 1 on; 0 is none
// A lane is a device's memory over time, in buckets of the clock: `after` (microseconds from the end of the bucket before to
// the first event of this one), `lasts` (to its last event); of each kind of memory `most`, and how much less `least` and `last`
// are; of each mark [bucket, count, bytes, largest, api, caller, reason].
const data = JSON.parse(byId("data").textContent);
const kinds = ["device", "host", "managed"];
const kindNames = {device: "on the card", host: "in host memory", managed: "managed memory"};
const reasonOf = (name) => data.reasons[name] || name || "?";
const markNames = {
	spill: "spill", demote: "to the host", promote: "back to the device", oom: "out of memory", honest: "asked to try again",
};
const name = (number) => number ? data.names[number - 1] : null;

/* Rows [seconds, device, host, managed] of a step chart: of a bucket its most, its least (if asked for) and its last. */
function rowsOf(lane, end, dips) {
	const rows = [[0, 0, 0, 0]];
	let now = 0;

	lane.begins = [];
	lane.after.forEach((after, at) => {
		const most = kinds.map((kind) => lane[kind].most[at]);
		const least = kinds.map((kind, i) => most[i] - lane[kind].least[at]);
		const last = kinds.map((kind, i) => most[i] - lane[kind].last[at]);
		const begins = (now + after) / 1e6, lasts = lane.lasts[at] / 1e6;

		lane.begins.push(begins);
		if (most.some((value, i) => value !== last[i] || least[i] !== last[i]))
			rows.push([begins, ...most], ...(dips ? [[begins + lasts / 2, ...least]] : []));
		rows.push([begins + lasts, ...last]);
		now += after + lane.lasts[at];
	});
	rows.push([Math.max(end, now / 1e6), ...rows[rows.length - 1].slice(1)]);
	return rows;
}

/* A caller with its function, as in the text: "libfoo.so+0x1a2b (foo::bar)". */
function callersOf(run) {
	const functions = new Map(run.functions.map((each) => [each.caller, each.function]));

	return (caller) => functions.has(caller) ? caller + " (" + functions.get(caller) + ")" : caller;
}

/* The tables of a run with the functions of callers. */
function withFunctions(run, callerOf) {
	const named = (rows, key) => rows.map((row) => ({...row, [key]: callerOf(row[key])}));

	return {
		by_caller: named(run.by_caller, "name"), largest: named(run.largest, "caller"), moved: named(run.moved, "caller"),
		ooms: named(run.ooms, "caller").map((oom) => ({...oom, holders: named(oom.holders, "caller")})),
	};
}

function marksOf(lane, callerOf) {
	const marks = [];

	for (const kind of Object.keys(markNames)) {
		for (const [bucket, number, bytes, largest, api, caller, reason] of lane.marks[kind])
			marks.push({
				kind, number, bytes, largest, api: name(api), caller: callerOf(name(caller)), reason: name(reason),
				from: lane.begins[bucket], to: lane.begins[bucket] + lane.lasts[bucket] / 1e6,
			});
	}
	return marks;
}

const peakOf = (lane, kind) => lane[kind].most.reduce((most, value) => Math.max(most, value), 0);

/* One object a run: its figures, its story, and its lanes as charts have them. */
const runs = data.runs.map((run, at) => {
	const story = data.stories[at], callerOf = callersOf(run);
	const lanes = story.lanes.map((lane) => {
		const device = run.devices.find((each) => each.dev === lane.dev) || {};
		const rows = rowsOf(lane, run.ended, true);

		return {
			lane, dev: lane.dev, limit: lane.limit || 0, bytes: device.bytes || 0, name: device.name, rows,
				width: lane.width / 1e6,
			marks: marksOf(lane, callerOf), peak: Object.fromEntries(kinds.map((kind) => [kind, peakOf(lane, kind)])),
		};
	});
	return {...run, ...withFunctions(run, callerOf), ...story, lanes: lanes.sort((a, b) => (a.dev ?? 1e9) - (b.dev ?? 1e9)), at};
});

const titleOf = (run) => (run.rank !== null ? "rank " + run.rank + ": " : "") + (run.program || "?") + " (pid " + run.pid + ")";
const endsBadly = (run) => ["gone", "not known", "abort", "assert"].includes(run.ending);
const byDevice = (dev) => dev === null ? "no device" : "device " + dev;

/*
 * All runs on one clock (`begin`), as rows: what each of them held is added up, a bucket with its most; so between two events that are
 * nearer than a bucket the sum may be too high, never too low.
 */
function rowsOfAll() {
	const known = runs.every((run) => run.begin !== null);
	const changes = [];

	runs.forEach((run) => run.lanes.forEach(({lane}) => {
		const rows = rowsOf(lane, run.ended, false);
		const shift = known ? run.begin : 0;
		let held = [0, 0, 0];

		for (const [seconds, ...now] of rows) {
			changes.push([seconds + shift, ...now.map((value, i) => value - held[i])]);
			held = now;
		}
		/* A run that is over holds nothing. */
		changes.push([rows[rows.length - 1][0] + shift, ...held.map((value) => -value)]);
	}));
	changes.sort((a, b) => a[0] - b[0]);
	const sum = [0, 0, 0], rows = [[0, 0, 0, 0]];
	for (const [seconds, ...change] of changes) {
		change.forEach((value, i) => { sum[i] += value; });
		rows.push([seconds, ...sum]);
	}
	return {rows: thinned(rows, 4096), known};
}

/* At most so many rows; of those that fall together the most of each kind, and then the last. */
function thinned(rows, most) {
	const each = Math.ceil(rows.length / (most / 2));
	const kept = [];

	if (each < 2)
		return rows;
	for (let at = 0; at < rows.length; at += each) {
		const part = rows.slice(at, at + each);

		kept.push([part[0][0], ...kinds.map((kind, i) => Math.max(...part.map((row) => row[i + 1])))], part[part.length - 1]);
	}
	return kept;
}

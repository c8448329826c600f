// Puts it together: what all runs held, then one run, which is chosen in the table or at the top.
const failures = [];
addEventListener("error", (event) => {
	failures.push(event.message);
	document.documentElement.dataset.errors = failures.length;
});

let group = [];

/* Hosts whose clocks the report corrected. */
function wrongClocks() {
	const wrong = data.ranks ? data.ranks.hosts.filter((host) => host.clock_ahead_us) : [];

	return wrong.length ? "; corrected, because the ranks began and ended together: " + wrong.slice(0, 8).map((host) => host.host + " by " +
		time(-host.clock_ahead_us / 1e6, 0.01)).join(", ") + (wrong.length > 8 ? " and " + (wrong.length - 8) + " more" : "") : "";
}

function allOf() {
	const {rows, known} = rowsOfAll();
	const peak = Object.fromEntries(kinds.map((kind, at) => [kind,
		rows.reduce((most, row) => Math.max(most, row[at + 1]), 0)]));
	const lane = {title: "All runs together", rows, peak, marks: [], limit: 0, bytes: 0};
	const card = chartOf(lane, group);

	card.classList.add("all");
	card.append(make("p", {class: "quiet"}, (known ? "By the clock of each run's host" + wrongClocks() + "." : "Each from its own start: not all logs say when they began.") +
		" Where much happens at once, the true sum may be lower."));
	return card;
}

function chartsOf(run) {
	const lanes = run.lanes.filter((lane) => lane.dev !== null || lane.marks.length || kinds.some((kind) => lane.peak[kind]));

	return make("section", {}, make("h2", {}, "Over time"),
		make("p", {class: "quiet hint"}, "Drag to zoom, Shift-drag to move, double-click to see all. Ctrl with the wheel zooms, and so do + and \u2212."),
		lanes.length ? lanes.map((lane) => chartOf(lane, group, run.left_out_since)) : make("p", {},
			"No memory was asked for."));
}

const whoOf = (run) => [run.host && "on " + run.host, run.time, run.version && "libspill " + run.version,
	run.backend && run.backend + " driver " + run.driver_version]
	.filter(Boolean).join(", ");

function show(at) {
	const run = runs[at], many = runs.length > 1;

	group.forEach((chart) => chart.stop());
	group = [];
	byId("title").textContent = many ? plural(runs.length,
		"run") + " of " + [...new Set(runs.map((each) => each.program || "?"))].slice(0, 3).join(", ") : titleOf(run);
	byId("who").textContent = many ? "from " + runs.map((each) => each.time || "?").sort()[0] + " on" : whoOf(run);
	document.title = "spill report: " + byId("title").textContent;
	byId("run").value = at;
	const own = [];
	group = own;
	const charts = chartsOf(run);
	group = [];
	const all = many ? [make("section", {}, verdictOfAll(choose), allOf(), runsOf(at, choose)),
		make("h2", {id: "one"}, titleOf(run)), make("p", {class: "quiet"}, whoOf(run))] : [];
	const together = group;
	byId("main").replaceChildren(...all.flat(),
		...[verdictOf(run), charts, fitOf(run), oomsOf(run), tablesOf(run), notesOf(run), policyOf(run)].filter(Boolean));
	group = [...together, ...own];
	group.forEach((chart) => chart.start());
	document.documentElement.dataset.run = at;
}

function choose(at) {
	show(Number(at));
	byId("one").scrollIntoView({block: "start"});
}

runs.forEach((run) => byId("run").append(make("option", {value: run.at}, titleOf(run))));
byId("picker").hidden = runs.length < 2;
byId("run").addEventListener("change", (event) => choose(event.target.value));
byId("made").textContent = "Made by spill " + data.made_by + " (spill report --html). This page needs no network, and sends nothing.";
startTheme();
show(0);
redraws.add(() => group.forEach((chart) => chart.restyle()));
document.documentElement.dataset.ready = performance.now().toFixed(0);

// Charts of one run, which show the same time and are read at the same moment.

const headOf = (lane) => lane.title || (lane.dev === null ? "On no device" : "Device " + lane.dev) + (lane.name ? ": " + lane.name : "") +
	(lane.bytes ? ", " + size(lane.bytes) : "");

const numberOf = (lane, kind) => lane.marks.filter((mark) => mark.kind === kind).reduce((sum, mark) => sum + mark.number, 0);

/* What a chart shows, for who does not see it. */
function wordsOf(lane, shown) {
	const marks = Object.keys(markNames).map((kind) => [kind, numberOf(lane, kind)]);

	return headOf(lane) + ". At most " + shown.map((kind) => size(lane.peak[kind]) + " " + kindNames[kind]).join(", ") +
		marks.filter(([, number]) => number).map(([kind,
			number]) => "; " + count(number) + " \u00d7 " + markNames[kind]).join("") +
		". Plus and minus zoom, arrow keys move, 0 shows all.";
}

/* What is known of one moment: within a bucket from what to what, else the value that holds until the next row. */
function valueAt(lane, kind, x) {
	const at = lane.lane ? before(lane.lane.begins, x, (begin) => begin) : -1;
	const most = at >= 0 ? lane.lane[kind].most[at] : 0, span = at >= 0 ? lane.lane[kind].least[at] : 0;

	if (span && x < lane.lane.begins[at] + lane.lane.lasts[at] / 1e6)
		return size(most - span) + " to " + size(most);
	return size(lane.rows[before(lane.rows, x, (row) => row[0])][kinds.indexOf(kind) + 1]);
}

function legendOf(lane, shown) {
	const at = make("span", {class: "at"}, "at most");
	const values = shown.map((kind) => make("b", {}, size(lane.peak[kind])));
	const box = make("div", {class: "legend"}, at,
		shown.map((kind, i) => make("span", {class: "key", "--c": `var(--${kind})`}, kindNames[kind] + " ", values[i])));

	return {box, show: (x) => {
		at.textContent = x !== null ? "at " + time(x, Math.max(1e-6, lane.rows[lane.rows.length - 1][0] / 2000)) : "at most";
		shown.forEach((kind, i) => { values[i].textContent = x === null ? size(lane.peak[kind]) : valueAt(lane, kind, x); });
	}};
}

/* The largest things that happened, as a table; for who has no pointer, and for paper. */
function eventsOf(lane) {
	const rows = [...lane.marks].sort((a, b) => b.bytes - a.bytes).slice(0, 100);
	const number = lane.marks.length - rows.length;

	if (!rows.length)
		return null;
	return make("details", {}, make("summary", {}, "What happened, as a table"), tableOf({
		caption: headOf(lane) + ": the largest first", rows: rows.sort((a, b) => a.from - b.from),
			more: number ? count(number) + " smaller ones" : null,
		columns: [timeColumn("at", "from"), {head: "what", value: (row) => markNames[row.kind]},
			countColumn("times", "number"), bytesColumn("bytes", "bytes", "host"),
			textColumn("asked by", "caller"), textColumn("function", "api"), textColumn("why, or refused by", "reason")],
	}));
}

/* Adds the chart of a lane to `group`; its graph is made when the element is in the page. */
function chartOf(lane, group, since) {
	const used = kinds.filter((kind) => lane.peak[kind]), shown = used.length ? used : ["device"];
	const strip = stripOf(lane.marks), legend = legendOf(lane, shown), ranged = !group.length;
	const cross = make("div", {class: "cross", hidden: true});
	const graphBox = make("div", {class: "graph" + (ranged ? " ranged" : "")});
	const lines = [{value: lane.limit, text: "device.limit"}, {value: lane.bytes, text: "device"}].filter((line) => line.value);
	const ooms = lane.marks.filter((mark) => mark.kind === "oom");
	const button = (text, label, act) => make("button",
		{type: "button", title: label, "aria-label": label, onclick: () => act(chart.graph)}, text);
	const plot = make("div", {class: "plot", tabindex: "0", role: "group", "aria-label": wordsOf(lane, shown)},
		strip.canvas, graphBox, cross);
	const card = make("section", {class: "card chart", "data-rows": lane.rows.length},
		make("div", {class: "chart-head"}, make("h3", {}, headOf(lane)),
			make("div", {class: "chart-tools"}, button("\u2212", "zoom out", keys["-"]),
				button("+", "zoom in", keys["+"]), button("all", "show all of it", keys[0]))),
		legend.box, plot,
		lane.width > 1e-6 ? make("p", {class: "quiet"},
			"Moments within " + time(lane.width,
			lane.width / 100) + " share a step here: its most, its least and its counts are exact.") : null,
		eventsOf(lane));
	const under = (context, area, graph) => drawMoments(context, area, graph, {since, ooms});
	const over = (event) => drawLines(event.drawingContext, event.dygraph.getArea(), event.dygraph, lines);
	const chart = {
		card,
		start() {
			const columns = [0, ...shown.map((kind) => kinds.indexOf(kind) + 1)];

			chart.graph = new Dygraph(graphBox, lane.rows.map((row) => columns.map((at) => row[at])), {
				...optionsOf(lane, shown, ranged, under, over), drawCallback: (graph) => follow(group, chart, graph),
			});
			graphBox.querySelectorAll("canvas").forEach((canvas) => canvas.setAttribute("aria-hidden", "true"));
			card.dataset.points = chart.graph.numRows();
			shown.forEach((kind, at) => { card.dataset[kind] = chart.highest(at + 1); });
			Object.keys(markNames).forEach((kind) => { card.dataset[kind] = numberOf(lane, kind); });
		},
		highest: (column) => lane.rows.reduce((most, row, at) => Math.max(most, chart.graph.getValue(at, column)), 0),
		drawn: (graph) => strip.draw(graph),
		restyle() {
			const {axes, plugins, showRangeSelector, ...look} = optionsOf(lane, shown, ranged, under, over);

			chart.graph.updateOptions(look);
		},
		read(x) {
			legend.show(x);
			cross.hidden = x === null;
			if (x !== null)
				cross.style.left = chart.graph.toDomXCoord(x) + "px";
		},
		stop: () => chart.graph.destroy(),
	};

	plot.addEventListener("keydown", (event) => {
		if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey)
			return;
		event.preventDefault();
		keys[event.key](chart.graph);
	});
	plot.addEventListener("wheel", (event) => {
		if (!event.ctrlKey)
			return;
		event.preventDefault();
		zoomBy(chart.graph, event.deltaY < 0 ? 0.8 : 1.25,
			chart.graph.toDataXCoord(event.clientX - plot.getBoundingClientRect().left));
	}, {passive: false});
	const read = (event) => {
		const x = chart.graph.toDataXCoord(event.clientX - plot.getBoundingClientRect().left);
		const [from, to] = chart.graph.xAxisRange();

		group.forEach((each) => each.read(x >= from && x <= to ? x : null));
	};
	plot.addEventListener("pointermove", read);
	plot.addEventListener("pointerdown", read);
	plot.addEventListener("pointerleave", () => group.forEach((each) => each.read(null)));
	card.chart = chart;
	group.push(chart);
	return card;
}

/* All charts of a group show the same time. */
let following = false;
function follow(group, chart, graph) {
	chart.drawn(graph);
	if (following)
		return;
	following = true;
	const range = graph.xAxisRange();
	for (const other of group) {
		if (other === chart || !other.graph)
			continue;
		const shown = other.graph.xAxisRange();

		if (shown[0] !== range[0] || shown[1] !== range[1])
			other.graph.updateOptions({dateWindow: range});
	}
	following = false;
}

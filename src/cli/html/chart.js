// One chart: device, host and managed memory over time, with what there is of the device as lines.

/* Where the last one at or before `x` is; -1: there is none. */
function before(list, x, placeOf) {
	let low = -1, high = list.length - 1;

	while (low < high) {
		const middle = (low + high + 1) >> 1;

		if (placeOf(list[middle]) <= x)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* Lines across the chart; those above it are told at its edge. */
function drawLines(context, area, graph, lines) {
	context.save();
	context.font = "11px system-ui, sans-serif";
	context.textAlign = "right";
	for (const {value, text} of lines) {
		const y = graph.toDomYCoord(value), above = y < area.y;

		context.strokeStyle = context.fillStyle = colour("text");
		context.lineWidth = 1;
		if (!above) {
			context.setLineDash([7, 4]);
			context.beginPath();
			context.moveTo(area.x, Math.round(y) + 0.5);
			context.lineTo(area.x + area.w, Math.round(y) + 0.5);
			context.stroke();
		}
		const words = (above ? "\u2191 " : "") + text + " " + size(value);
		const at = [words, area.x + area.w - 6, above ? area.y + 12 : y - 5 < area.y + 10 ? y + 13 : y - 5];
		context.setLineDash([]);
		context.strokeStyle = colour("card");
		context.lineWidth = 4;
		context.globalAlpha = 1;
		context.strokeText(...at);
		context.fillText(...at);
	}
	context.restore();
}

/* From when on log.max left lines out, and where out of memory surfaced, if that is not everywhere. */
function drawMoments(context, area, graph, {since, ooms}) {
	context.save();
	if (since !== undefined) {
		const x = Math.max(area.x, graph.toDomXCoord(since));

		context.fillStyle = colour("band");
		context.fillRect(x, area.y, area.x + area.w - x, area.h);
		context.fillStyle = colour("quiet");
		context.font = "11px system-ui, sans-serif";
		context.fillText("not in the log from here on (log.max)", Math.min(x + 6, area.x + area.w - 210), area.y + area.h - 8);
	}
	context.strokeStyle = colour("bad");
	context.globalAlpha = 0.55;
	const places = [...new Set(ooms.map((mark) => Math.round(graph.toDomXCoord(mark.from)) + 0.5))]
		.filter((x) => x >= area.x && x <= area.x + area.w);
	for (const x of places.length > 40 ? [] : places) {
		context.beginPath();
		context.moveTo(x, area.y);
		context.lineTo(x, area.y + area.h);
		context.stroke();
	}
	context.restore();
}

/* Before, or at the middle of what is shown, a part of it becomes all of it. */
function zoomBy(graph, factor, x) {
	const [from, to] = graph.xAxisRange(), [least, most] = graph.xAxisExtremes();
	const centre = x === undefined ? (from + to) / 2 : x;
	const range = [Math.max(least, centre - (centre - from) * factor), Math.min(most, centre + (to - centre) * factor)];

	if (range[1] - range[0] > 2e-6)
		graph.updateOptions({dateWindow: range});
}

function panBy(graph, share) {
	const [from, to] = graph.xAxisRange(), [least, most] = graph.xAxisExtremes();
	const by = Math.max(least - from, Math.min(most - to, (to - from) * share));

	graph.updateOptions({dateWindow: [from + by, to + by]});
}

const keys = {
	"+": (graph) => zoomBy(graph, 0.5), "=": (graph) => zoomBy(graph, 0.5), "-": (graph) => zoomBy(graph, 2),
	ArrowLeft: (graph) => panBy(graph, -0.2), ArrowRight: (graph) => panBy(graph, 0.2),
		0: (graph) => graph.resetZoom(), Home: (graph) => graph.resetZoom(),
};

/* The highest value that the chart has room for: the device's size only where the curves do not shrink to nothing by it. */
function topOf(lane) {
	const held = Math.max(1, ...kinds.map((kind) => lane.peak[kind]));
	const lines = [lane.limit, lane.bytes].filter((value) => value && value <= 2.5 * held);

	return Math.max(held, ...lines) * 1.1;
}

/* `under` is drawn before the curves, `over` behind them. */
function optionsOf(lane, shown, ranged, under, over) {
	const tones = shown.map((kind) => colour(kind));

	return {
		labels: ["seconds", ...shown.map((kind) => kindNames[kind])], colors: tones, stepPlot: true, fillGraph: true,
			fillAlpha: 0.14, strokeWidth: 1.8,
		legend: "never", highlightCircleSize: 0, showLabelsOnHighlight: false, drawGapEdgePoints: false,
			valueRange: [0, topOf(lane)],
		axisLineColor: colour("line"), gridLineColor: colour("line"), gridLineWidth: 0.6, rightGap: 8, xRangePad: 0,
			animatedZooms: false,
		showRangeSelector: ranged, rangeSelectorHeight: 36, rangeSelectorPlotStrokeColor: colour("device"),
			rangeSelectorPlotFillColor: colour("sunk"), rangeSelectorPlotLineWidth: 1,
		rangeSelectorPlotFillGradientColor: "", rangeSelectorBackgroundStrokeColor: colour("line"),
			rangeSelectorForegroundStrokeColor: colour("quiet"),
			rangeSelectorAlpha: document.documentElement.dataset.theme === "dark" ? 0.2 : 0.6,
		/* Its own choice differs from chart to chart: where there is a range selector a drag would move. */
		interactionModel: Dygraph.defaultInteractionModel, underlayCallback: under,
			plugins: [{toString: () => "lines", activate: () => ({didDrawChart: over})}],
		axes: {
			x: {ticker: (from, to, pixels) => timeTicks(from, to, pixels), axisLabelWidth: 80},
			y: {ticker: (from, to, pixels) => sizeTicks(from, to, pixels), axisLabelWidth: 70},
		},
	};
}

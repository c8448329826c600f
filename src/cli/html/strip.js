// Above a chart: what happened, a row a kind. What falls into the same few pixels is one sign, larger the more there is of it,
// so that a million of them are drawn as fast as ten.
const stripRow = 18, stripPixels = 9;
const signs = {
	spill: {tone: "host", draw: (c, x, y, r) => { c.moveTo(x, y - r); c.lineTo(x + r, y + r); c.lineTo(x - r,
		y + r); c.closePath(); }},
	demote: {tone: "managed", draw: (c, x, y,
		r) => { c.moveTo(x, y + r); c.lineTo(x + r, y - r); c.lineTo(x - r, y - r); c.closePath(); }},
	promote: {tone: "device", draw: (c, x, y, r) => { c.rect(x - r * 0.8, y - r * 0.8, r * 1.6, r * 1.6); }},
	oom: {tone: "bad", draw: (c, x, y, r) => {
		for (const [a, b] of [[-1, -1], [-1, 1]]) {
			c.moveTo(x + a * r, y + b * r);
			c.lineTo(x - a * r, y - b * r);
		}
	}},
	honest: {tone: "quiet", draw: (c, x, y, r) => { c.arc(x, y, r * 0.9, 0, 7); }},
};

/* Marks of one kind by the pixels that they share: what is told of each such place. */
function gather(marks, toPixel) {
	const places = new Map();

	for (const mark of marks) {
		const x = toPixel((mark.from + mark.to) / 2), at = Math.floor(x / stripPixels);
		const place = places.get(at);

		if (!place) {
			places.set(at, {...mark, x});
			continue;
		}
		const larger = mark.largest > place.largest ? mark : place;
		Object.assign(place, {
			x: (at + 0.5) * stripPixels,
			number: place.number + mark.number, bytes: place.bytes + mark.bytes, largest: larger.largest, api: larger.api,
			caller: larger.caller, reason: larger.reason, from: Math.min(place.from, mark.from),
				to: Math.max(place.to, mark.to),
		});
	}
	return [...places.values()];
}

function whatOf(place) {
	const span = place.to - place.from, step = Math.max(span / 10, 1e-6);
	const when = span > 0 ? time(place.from, step) + " to " + time(place.to, step) : "at " + time(place.from, 1e-6);
	const many = place.number > 1;

	return [
		when,
		(many ? count(place.number) + " \u00d7 " : "") + markNames[place.kind] + ": " + size(place.bytes) + (many ? " in all, the largest " + size(place.largest) : ""),
		"asked by " + (place.caller || "?") + " of " + (place.api || "?"),
		(place.kind === "oom" || place.kind === "honest" ? "refused by " : "why: ") + (place.reason || "?"),
	];
}

/* A canvas to be put above `graph`; `draw` follows what the graph shows. */
function stripOf(marks) {
	const rows = Object.keys(signs).filter((kind) => marks.some((mark) => mark.kind === kind));
	const byKind = Object.fromEntries(rows.map((kind) => [kind, marks.filter((mark) => mark.kind === kind)]));
	const canvas = make("canvas", {class: "strip", "aria-hidden": "true"});
	const height = rows.length * stripRow + (rows.length ? 4 : 0);
	let places = [];

	canvas.style.height = height + "px";
	canvas.hidden = !rows.length;

	function draw(graph) {
		const area = graph.getArea(), scale = devicePixelRatio || 1, width = canvas.clientWidth;
		const context = canvas.getContext("2d");

		canvas.width = width * scale;
		canvas.height = height * scale;
		context.scale(scale, scale);
		context.font = "11px system-ui, sans-serif";
		context.textBaseline = "middle";
		places = [];
		rows.forEach((kind, row) => {
			const y = row * stripRow + stripRow / 2, tone = colour(signs[kind].tone);

			context.fillStyle = colour("sunk");
			context.fillRect(area.x, y - stripRow / 2 + 1, area.w, stripRow - 2);
			context.fillStyle = colour("quiet");
			context.textAlign = "right";
			context.fillText({spill: "spills", demote: "to host", promote: "back", oom: "no memory",
				honest: "again"}[kind], area.x - 8, y);
			for (const place of gather(byKind[kind], (x) => graph.toDomXCoord(x))) {
				if (place.x < area.x - 4 || place.x > area.x + area.w + 4)
					continue;
				const radius = Math.min(7.5, 4.5 + Math.log10(place.number) * 0.8);

				context.beginPath();
				signs[kind].draw(context, place.x, y, radius);
				context.fillStyle = context.strokeStyle = tone;
				context.lineWidth = 2;
				if (kind === "oom" || kind === "honest")
					context.stroke();
				else
					context.fill();
				places.push({...place, y});
			}
		});
	}

	function near(event) {
		const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
		const place = places.filter((each) => Math.abs(each.y - y) <= stripRow / 2).sort((a,
			b) => Math.abs(a.x - x) - Math.abs(b.x - x))[0];

		tip(place && Math.abs(place.x - x) < 10 ? whatOf(place) : null, event.clientX, event.clientY);
	}

	canvas.addEventListener("pointermove", near);
	canvas.addEventListener("pointerdown", near);
	canvas.addEventListener("pointerleave", () => tip(null));
	return {canvas, draw};
}

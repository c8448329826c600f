// How figures are written: sizes as the text report has them, times as a person would say them.
const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/* `digits` behind the point; none of whole bytes. */
function size(bytes, digits = 2) {
	let unit = 0;
	let value = Math.abs(bytes);

	for (; value >= 1024 && unit < units.length - 1; unit++)
		value /= 1024;
	return (bytes < 0 ? "\u2212" : "") + value.toFixed(unit ? digits : 0) + " " + units[unit];
}

const dash = (bytes) => bytes ? size(bytes) : "\u2013";
const count = (number) => number.toLocaleString("en");
const plural = (number, one, many) => count(number) + " " + (number === 1 ? one : many || one + "s");

/* Seconds since the start line; `step`: how near to each other such times stand. */
function time(seconds, step = 0.001) {
	const digits = step >= 1 ? 0 : Math.min(6, Math.ceil(-Math.log10(step) - 1e-9));

	if (seconds < 60)
		return seconds.toFixed(digits) + " s";
	/* Rounded as a whole first, so that there is no 60th second. */
	const rounded = Number(seconds.toFixed(digits));
	const hours = Math.floor(rounded / 3600), minutes = Math.floor(rounded / 60) % 60;
	const rest = (rounded % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
	return (hours ? hours + ":" + String(minutes).padStart(2, "0") : minutes) + ":" + rest;
}

function stepOf(span, most, steps, base) {
	let scale = 1;

	while (span / (steps[steps.length - 1] * scale) > most)
		scale *= base;
	while (span / (steps[0] * scale) <= most && scale > 1e-7)
		scale /= base;
	for (;; scale *= base) {
		for (const step of steps) {
			if (span / (step * scale) <= most)
				return step * scale;
		}
	}
}

const clock = [60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

/* Whole steps of the decimal system below a minute, of the clock above it. */
function timeTicks(from, to, pixels) {
	const most = Math.max(2, pixels / 95), span = to - from;
	const step = span / 30 > most ? clock.find((each) => span / each <= most) || stepOf(span, most, [86400], 2)
		: stepOf(span, most, span > 60 ? [1, 2, 5, 10, 15, 30] : [1, 2, 5], span > 60 ? 60 : 10);
	const ticks = [];

	for (let at = Math.ceil(from / step); at * step <= to; at++)
		ticks.push({v: at * step, label: time(at * step, step)});
	return ticks;
}

/* Sizes that are round in the unit in which they are read. */
function sizeTicks(from, to, pixels) {
	const most = Math.max(2, pixels / 42);
	const unit = 1024 ** Math.max(0, Math.min(units.length - 1, Math.floor(Math.log2(Math.max(to, 1)) / 10)));
	const step = unit * stepOf((to - from) / unit, most, [1, 2, 5], 10);
	const digits = step < unit ? Math.ceil(-Math.log10(step / unit) - 1e-9) : 0;
	const ticks = [];

	for (let at = Math.ceil(from / step); at * step <= to; at++)
		ticks.push({v: at * step, label: at ? (at * step / unit).toFixed(digits) + " " + units[Math.log2(unit) / 10] : "0"});
	return ticks;
}

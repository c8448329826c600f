// What if: peak demand on a device, against its size; and with other margins.
const deviceOf = (run, dev) => run.devices.find((device) => device.dev === dev);

function barOf(device) {
	const fit = device.fit, scale = Math.max(fit.wanted, fit.usable) / 100 || 1;
	const parts = [["device_bytes", "on the card", "var(--device)"], ["host_bytes", "in host memory", "var(--host)"],
		["managed_bytes", "managed", "var(--managed)"],
		["refused", "refused", "var(--bad)"]].filter(([key]) => fit[key]);
	const words = "needed " + size(fit.wanted) + ": " + parts.map(([key,
		text]) => size(fit[key]) + " " + text).join(", ") + "; usable " + size(fit.usable);
	const bar = make("div", {class: "bar", role: "img", "aria-label": words},
		parts.map(([key, , tone]) => make("i",
			{class: key === "refused" ? "hatched" : null, "--w": fit[key] / scale + "%", "--c": tone})),
		make("b", {title: "usable"}));

	[...bar.querySelectorAll("i")].forEach((part) => {
		part.style.width = part.style.getPropertyValue("--w");
		if (!part.classList.contains("hatched"))
			part.style.background = part.style.getPropertyValue("--c");
	});
	bar.lastChild.style.left = Math.min(100, fit.usable / scale) + "%";
	return [bar, make("div", {class: "key-row"},
		parts.map(([key, text, tone]) => make("span", {"--c": tone}, text + " " + size(fit[key]))),
		fit.others ? make("span", {"--c": "var(--line)"}, "others held " + size(fit.others)) : null,
		make("span", {"--c": "var(--text)"}, "usable " + size(fit.usable)))];
}

function marginsOf(run, device) {
	const rows = run.margins.filter((row) => row.dev === device.dev && row.margin < device.bytes)
		.filter((row, at, all) => all.findIndex((each) => each.margin === row.margin) === at).sort((a,
			b) => a.margin - b.margin);

	return tableOf({
		caption: "With so much of device " + device.dev + " kept free", rows, here: (row) => row.margin === data.margin,
		columns: [{...bytesColumn("margin", "margin"), show: (value) => size(value)}, bytesColumn("usable", "usable"),
			{head: "left, or lacking", number: true, value: (row) => row.surplus, look: (value) => value < 0 ? "bad" : "good",
				show: (value) => value < 0 ? size(-value) + " lacking" : size(value) + " left"}],
	});
}

/* A margin that is all of the device leaves no figure that says something: then without it. */
function withoutTooMuch(run, device) {
	const row = run.margins.find((each) => each.dev === device.dev && each.margin === 0);

	return data.margin < device.bytes ? device : {...device, fit: {...device.fit, usable: row.usable, surplus: row.surplus}};
}

/* Never against the run: where memory lacked, there was no room to spare. */
function answerOf(device) {
	const fit = device.fit;

	if (fit.surplus === null)
		return make("p", {}, make("b", {}, "Not known"), ": memory lacked, and the log does not tell what others held.");
	return make("p", {}, make("b", {}, fit.surplus < 0 ? size(-fit.surplus) + " was missing" + (fit.reserve ? ", and " + size(fit.reserve) + " for device.reserve" : "")
		: fit.reserved ? size(fit.surplus) + " was left, too little for device.reserve" : size(fit.surplus) + " of the room was not needed"),
	fit.others > data.margin ? " (others held " + size(fit.others) + ")." : data.margin < device.bytes ? " (margin " + size(data.margin) + ")."
		: ", without the margin of " + size(data.margin) + ", which takes the whole device.");
}

function fitOf(run) {
	const devices = run.devices.filter((device) => device.fit).map((device) => withoutTooMuch(run, device));

	if (!devices.length)
		return null;
	return make("section", {}, make("h2", {}, "Would it have fitted?"),
		make("p", {class: "quiet"}, "At peak demand on each device, with what other processes, contexts and code held when memory lacked, if the log tells it."),
		devices.map((device) => make("div", {class: "card"},
			make("h3", {}, "Device " + device.dev + (device.name ? ": " + device.name : "") + ", " + size(device.bytes)),
			barOf(device), answerOf(device), device.fit.surplus === null ? null : marginsOf(run, device))),
		make("p", {}, "With another policy, or another card: "),
			make("pre", {}, "spill replay " + quoted(run.log) + " --policy FILE --vram " +
			Math.ceil(Math.max(...devices.map((device) => device.fit.wanted)) / 2 ** 30 + 1) + "GiB"));
}

/* A word of a shell's line. */
const quoted = (text) => /^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'";

// Elements are made of text nodes only: whatever stands in a log is text, and never markup.
const byId = (id) => document.getElementById(id);

/* make("td", {class: "n", onclick: f}, "text", element, …): null and undefined among the children are left out. */
function make(tag, properties, ...children) {
	const element = document.createElement(tag);

	for (const [name, value] of Object.entries(properties || {})) {
		if (name.startsWith("on"))
			element.addEventListener(name.slice(2), value);
		else if (name.startsWith("--"))
			element.style.setProperty(name, value);
		else if (value !== null && value !== undefined && value !== false)
			element.setAttribute(name, value === true ? "" : value);
	}
	element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
	return element;
}

/* A tooltip of lines, at a place of the window; lines null: gone. */
function tip(lines, x, y) {
	const box = byId("tip");

	box.hidden = !lines;
	if (!lines)
		return;
	box.replaceChildren(...lines.map((line) => make("p", {}, line)));
	const width = box.offsetWidth, height = box.offsetHeight;
	box.style.left = Math.max(4, Math.min(x + 14, innerWidth - width - 4)) + "px";
	box.style.top = (y + 18 + height > innerHeight ? Math.max(4, y - height - 10) : y + 18) + "px";
}

// Tables that are sorted by a click on a column's head.

/* Numbers by value, texts by their letters and the numbers in them; what is not known last. */
function compare(a, b) {
	if (typeof a === "number" && typeof b === "number")
		return a - b;
	if (a === null || b === null)
		return (a === null) - (b === null);
	return String(a).localeCompare(String(b), "en", {numeric: true});
}

function cellOf(column, row, most) {
	const value = column.value(row);
	const text = column.show ? column.show(value, row) : value === null ? "?" : String(value);
	const kind = (column.number ? "n" : "text") + (column.tint && most ? " share" : "") + (column.look ? " " + column.look(value, row) : "");

	return make("td", {
		class: kind, "--tint": column.tint ? `color-mix(in srgb, var(--${column.tint}) 28%, transparent)` : "transparent",
		"--share": column.tint && most ? 100 * value / most + "%" : "0%",
	}, text);
}

/*
 * columns: {head, value(row), show(value, row), number, tint, look}; `tint`: a colour that shows its share of the largest.
 * more: a text for a last line. pick(row): of a row that is clicked; here(row): it is the one that is shown.
 */
function tableOf({caption, columns, rows, more, pick, here}) {
	const body = make("tbody", {});
	const most = columns.map((column) => column.tint ? Math.max(0, ...rows.map((row) => column.value(row))) : 0);
	const heads = columns.map((column, at) => make("th",
		{scope: "col", class: column.number ? "n" : "text", "aria-sort": "none"},
		make("button", {type: "button", onclick: () => sort(at)}, column.head)));

	function fill(sorted) {
		body.replaceChildren(...sorted.map((row) => make("tr", {
			class: [pick ? "pick" : "", here && here(row) ? "here" : ""].join(" ").trim() || null,
				onclick: pick ? () => pick(row) : () => {},
		}, columns.map((column, at) => cellOf(column, row, most[at])))));
		if (more)
			body.append(make("tr", {class: "more"}, make("td", {colspan: columns.length}, more)));
	}

	/* The largest first, names from A on; again: the other way round. */
	function sort(at) {
		const before = heads[at].getAttribute("aria-sort");
		const up = before === "none" ? !columns[at].number : before === "descending";

		heads.forEach((head) => head.setAttribute("aria-sort", "none"));
		heads[at].setAttribute("aria-sort", up ? "ascending" : "descending");
		fill([...rows].sort((a, b) => compare(columns[at].value(a), columns[at].value(b)) * (up ? 1 : -1)));
	}

	fill(rows);
	return make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption},
		make("table", {}, make("caption", {}, caption), make("thead", {}, make("tr", {}, heads)), body));
}

const bytesColumn = (head, key, tint) => ({head, value: (row) => row[key], show: dash, number: true, tint});
const countColumn = (head, key) => ({head, value: (row) => row[key], show: count, number: true});
const textColumn = (head, key) => ({head, value: (row) => row[key],
	look: () => key === "caller" || key === "text" || key === "name" ? "long" : ""});
const timeColumn = (head, key) => ({head, value: (row) => row[key], show: (value) => time(value), number: true});

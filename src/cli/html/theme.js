// Light or dark: as the system has it, until the button is used. What is drawn on canvas is drawn anew.
const dark = matchMedia("(prefers-color-scheme: dark)");
const redraws = new Set();
let chosen = null;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

function applyTheme(printing) {
	const now = printing ? "light" : chosen || (dark.matches ? "dark" : "light");

	document.documentElement.dataset.theme = now;
	byId("theme").textContent = now === "dark" ? "Light" : "Dark";
	byId("theme").setAttribute("aria-label", now === "dark" ? "Light colours" : "Dark colours");
	redraws.forEach((redraw) => redraw());
}

function startTheme() {
	byId("theme").addEventListener("click", () => {
		chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
		applyTheme();
	});
	dark.addEventListener("change", () => applyTheme());
	addEventListener("beforeprint", () => {
		document.querySelectorAll("details.oom").forEach((each) => { each.open = true; });
		applyTheme(true);
	});
	addEventListener("afterprint", () => applyTheme());
	applyTheme();
}

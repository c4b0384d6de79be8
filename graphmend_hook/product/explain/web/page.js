// The head of the page, and what the filter and the colours do.
const words = () => byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);

function filter() {
  const states = new Set([...byId("states").querySelectorAll("input:checked")].map((box) => box.value));
  const shown = filterBreaks(words(), states);
  filterRegions(words());
  byId("shown").textContent = `${shown} of ${counted(everyBreak.length, "break")} shown`;
}

for (const state of STATES) {
  const count = everyBreak.filter((each) => each.state === state).length;
  const box = make("input", { type: "checkbox", value: state, checked: "", onchange: filter });
  byId("states").append(make("label", {}, box, ` ${state} (${count})`));
}
byId("filter").addEventListener("input", filter);
byId("theme").addEventListener("change", (event) => {
  document.documentElement.style.setProperty("color-scheme", event.target.value);
});
byId("summary").replaceChildren(breakable(data.about.summary));
byId("interrupted").hidden = !data.about.interrupted;
for (const [name, value] of Object.entries({ command: data.about.command, ...data.about.versions }))
  byId("about").append(make("div", {}, make("dt", {}, name), " ", make("dd", {}, breakable(value))));
filter();

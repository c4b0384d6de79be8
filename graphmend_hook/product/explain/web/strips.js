// All graphs in little room: a strip for each arm with a cell for each graph. The arrow keys go from one to the next.
const FEW = 40; // cells are as wide as their graphs are large, if there are no more than so many
const CROWD = 300; // from here on cells are as small as can be

const strips = ARMS.map((_, arm) => data.regions.flatMap((region) => {
  const operations = new Map(region.tree.operations[arm]);
  return Array.from({ length: region.graphs[arm] }, (_, graph) => ({ region, graph, operations: operations.get(graph) || 0 }));
}));
const largest = Math.max(1, ...strips.flat().map((each) => each.operations));
// Four shades; what counts is how many times larger a graph is than another.
const shade = (operations) => Math.min(3, Math.floor((4 * Math.log1p(operations)) / Math.log1p(largest)));

// The calls whose own operations are in a graph, those inside them left out, with how many those are.
function callsOf(call, arm, graph) {
  const of = (each) => each.operations[arm].find(([index]) => index === graph)?.[1] || 0;
  const whole = of(call);
  if (!whole) return [];
  const own = whole - call.calls.reduce((sum, inner) => sum + of(inner), 0);
  return [...(own ? [[call, own]] : []), ...call.calls.flatMap((inner) => callsOf(inner, arm, graph))];
}

function titled(cells, index) {
  const { region, operations } = cells[index];
  return `graph ${index + 1} of ${cells.length}, ${counted(operations, "operation")}, ${region.name}`;
}

function choose(arm, index) {
  const { region, graph } = strips[arm][index];
  const calls = callsOf(region.tree, arm, graph).map(([call, own]) => make("li", {},
    opener({ ...call, line: 0 }, { class: "link" }, breakable(call.function)), ` ${counted(own, "operation")}`));
  byId("strips").children[arm].append(byId("chosen"));
  byId("chosen").replaceChildren(
    make("p", {}, breakable(`${ARMS[arm]}: ${titled(strips[arm], index)}, called at ${where(region.file, region.line)}`)),
    make("ul", { class: "calls" }, ...calls));
}

function cell(arm, index) {
  const title = titled(strips[arm], index);
  const node = make("div", { role: "option", class: `cell shade-${shade(strips[arm][index].operations)}`, title,
    "aria-label": title, "aria-selected": "false", tabindex: index ? "-1" : "0" });
  node.style.setProperty("--size", strips[arm][index].operations + 1);
  return node;
}

// How many graphs, and how large they are.
function sized(cells) {
  const sizes = cells.map(({ operations }) => operations).sort((one, other) => one - other);
  if (sizes.length < 2) return counted(sizes.length, "graph") + sizes.map((size) => `, ${counted(size, "operation")}`).join("");
  const total = sizes.reduce((whole, size) => whole + size, 0);
  return `${sizes.length} graphs, ${total} operations, from ${sizes[0]} to ${sizes.at(-1)} in a graph`;
}

function strip(arm) {
  const cells = strips[arm].map((_, index) => cell(arm, index));
  const select = (index) => {
    const node = cells[Math.max(0, Math.min(index, cells.length - 1))];
    for (const each of byId("strips").querySelectorAll("[aria-selected=true]")) each.setAttribute("aria-selected", "false");
    for (const each of cells) each.tabIndex = -1;
    node.setAttribute("aria-selected", "true");
    node.tabIndex = 0;
    node.focus();
    choose(arm, cells.indexOf(node));
  };
  const box = make("div", { role: "listbox", "aria-label": `graphs ${ARMS[arm]}`, "aria-orientation": "horizontal",
    class: `strip ${cells.length > FEW ? "many" : ""} ${cells.length > CROWD ? "crowd" : ""}` }, ...cells);
  box.addEventListener("click", (event) => { if (event.target !== box) select(cells.indexOf(event.target)); });
  box.addEventListener("keydown", (event) => {
    const at = cells.indexOf(document.activeElement);
    const next = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: cells.length - 1, Enter: at, " ": at }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    select(next);
  });
  return make("div", { class: "arm" }, make("p", { class: "count" }, `${ARMS[arm]}: ${sized(strips[arm])}`),
    ...(cells.length ? [box] : []));
}

const whole = strips.map((cells) => cells.length);
byId("graphs-title").textContent = `Graphs: ${whole[0]} without the hook, ${whole[1]} with it`;
byId("strips").append(...ARMS.map((_, arm) => strip(arm)));

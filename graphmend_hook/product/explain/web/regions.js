// What was compiled, as a list; each has the tree of its calls with the graphs that they are in.
const sum = (operations) => operations.reduce((total, [, count]) => total + count, 0);
const hue = (graph) => (210 + graph * 137.5) % 360; // neighbours differ

function bar(operations, total) {
  const line = make("span", { class: "bar", "aria-hidden": "true" });
  for (const [graph, count] of operations) {
    const part = make("span", { title: `graph ${graph + 1}: ${counted(count, "operation")}` });
    part.style.setProperty("--part", `${(100 * count) / Math.max(total, 1)}%`);
    part.style.setProperty("--hue", hue(graph));
    line.append(part);
  }
  return line;
}

function amount(call, arm, region) {
  const operations = call.operations[arm];
  if (!operations.length) return make("span", { class: "amount" }, "none");
  const text = `${counted(operations.length, "graph")}, ${counted(sum(operations), "operation")}`;
  const node = make("span", { class: "amount" }, text);
  if (region.graphs[arm] <= FEW) node.prepend(bar(operations, sum(region.tree.operations[arm])));
  return node;
}

function row(call, region, depth) {
  const label = opener({ ...call, line: 0 }, { class: "link" }, breakable(call.function));
  const node = make("div", { class: "row" }, label, amount(call, 0, region), amount(call, 1, region));
  node.style.setProperty("--depth", Math.min(depth, 10));
  return node;
}

function tree(call, region, depth) {
  if (!call.calls.length) return row(call, region, depth);
  const isSplit = call.operations.some((operations) => operations.length > 1);
  const node = make("details", depth < 2 || (isSplit && depth < 6) ? { open: "" } : {}, make("summary", {}, row(call, region, depth)));
  node.append(...call.calls.map((inner) => tree(inner, region, depth + 1)));
  return node;
}

function entry(region) {
  const [before, after] = region.graphs;
  const again = region.recompiled.some(Boolean) ? `; recompiled ${region.recompiled.join(" → ")}` : "";
  const place = region.file === undefined || !data.files[region.file].path ? "" : where(region.file, region.line);
  const node = make("details", { class: "region" }, make("summary", {},
    make("b", {}, breakable(region.name)), ` ${before} → ${counted(after, "graph")}${again} `, make("span", { class: "path" }, breakable(place))));
  const fill = () => node.append(
    make("div", { class: "row head", "aria-hidden": "true" }, ...["call", ...ARMS].map((text) => make("span", {}, text))),
    ...region.tree.calls.map((call) => tree(call, region, 0)));
  node.addEventListener("toggle", fill, { once: true });
  node.open = data.regions.length <= 3;
  return { node, text: `${region.name}\n${place}`.toLowerCase() };
}

const entries = data.regions.map(entry);
const more = make("button", { type: "button", class: "plain", onclick: () => { isWhole = true; filterRegions(words()); } });
let isWhole = false;

// List those that have the words, or the first few of all.
function filterRegions(sought) {
  const found = entries.filter(({ text }) => matches(text, sought));
  const listed = isWhole ? found : found.slice(0, FIRST);
  byId("regions").replaceChildren(...listed.map(({ node }) => node));
  more.textContent = `Show all ${found.length}`;
  if (listed.length < found.length) byId("regions").append(more);
  if (!found.length) byId("regions").append(make("p", {}, "None has these words."));
}
byId("regions-title").textContent = `Compiled: ${data.regions.length}`;

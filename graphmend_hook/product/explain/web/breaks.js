// The breaks, by their causes.
const everyBreak = data.causes.flatMap((cause) => cause.breaks);
const groups = []; // of each cause: its node, and of each of its breaks the node, the state, the text that a filter looks at

function times([before, after]) {
  if (before === after) return before === 1 ? "met once" : `met ${before} times`;
  return `met ${counted(before, "time")} without the hook, ${after} with it`;
}

function callers(each) {
  const total = each.callers.reduce((sum, caller) => sum + caller.times, 0);
  const title = make("summary", {}, `Called from ${counted(each.callers.length, "place")}, ${counted(total, "time")}`);
  const node = make("details", { class: "callers" }, title);
  const fill = () => node.append(make("ul", {}, ...each.callers.map(({ stack, times: met }) =>
    make("li", {}, counted(met, "time"), make("ol", {}, ...stack.map((frame) => make("li", {}, framed(frame))))))));
  node.addEventListener("toggle", fill, { once: true });
  return node;
}

// Do the title of the cause and the place of the break say all that is said of it?
function isSaid(each, cause) {
  const texts = [each.said, `${each.code} ${each.said}`, `${each.said}: ${each.kind}`];
  return texts.includes(cause.title) || each.said === `${cause.title} at ${where(each.file, each.line)}`;
}

function card(each, cause) {
  const place = make("span", { class: "path" }, breakable(where(each.file, each.line)));
  const open = opener({ file: each.file, line: each.line, function: each.function }, { class: "open" },
    place, " in ", breakable(each.function), make("code", {}, breakable(each.text)));
  const node = make("li", { class: `break ${each.state}` }, open, make("p", { class: "met" }, times(each.times)));
  if (each.state !== "removed" && !cause.reason) node.append(make("p", {}, breakable(`Dynamo: ${each.headline}`)));
  if (!isSaid(each, cause)) node.append(make("p", {}, breakable(each.said)));
  if (each.advice && !cause.advice) node.append(make("p", { class: "advice" }, breakable(`→ ${each.advice}`)));
  if (each.callers.length) node.append(callers(each));
  const frames = each.callers.flatMap((caller) => caller.stack).map(([file, line, name]) => `${where(file, line)} ${name}`);
  const texts = [where(each.file, each.line), each.function, each.text, each.reason, each.code, each.said, each.advice, cause.title];
  return { node, state: each.state, text: [...texts, ...frames].join("\n").toLowerCase() };
}

function group(cause) {
  const state = make("span", { class: `state ${cause.state}` }, cause.state);
  const title = make("h3", {}, state, " ", breakable(cause.title), make("span", { class: "count" }, ` (${cause.breaks.length})`));
  const isOpen = cause.state !== "removed" || everyBreak.length <= 20;
  const node = make("details", { class: "cause", ...(isOpen ? { open: "" } : {}) }, make("summary", {}, title));
  if (cause.reason) node.append(make("p", {}, breakable(`Dynamo: ${cause.reason}`)));
  if (cause.advice) node.append(make("p", { class: "advice" }, breakable(`→ ${cause.advice}`)));
  const cards = cause.breaks.map((each) => card(each, cause));
  const more = make("button", { type: "button", class: "plain", onclick: () => { made.isWhole = true; filter(); } });
  const made = { node, cards, more, isWhole: false };
  node.append(make("ul", { class: "list" }, ...cards.map((each) => each.node)), more);
  groups.push(made);
  return node;
}

function matches(text, words) {
  return words.every((word) => text.includes(word));
}

// Hide what the filter leaves out, and of long lists all but the first; gives how many breaks are not left out.
function filterBreaks(words, states) {
  let total = 0;
  for (const { node, cards, more, isWhole } of groups) {
    const found = cards.filter(({ state, text }) => states.has(state) && matches(text, words));
    const listed = new Set(isWhole ? found : found.slice(0, FIRST));
    for (const each of cards) each.node.hidden = !listed.has(each);
    node.hidden = !found.length;
    if (words.length && found.length) node.open = true;
    more.hidden = listed.size === found.length;
    more.textContent = `Show all ${found.length}`;
    total += found.length;
  }
  return total;
}

byId("breaks-title").textContent = `Breaks: ${everyBreak.length}`;
byId("breaks").append(...data.causes.map(group));
if (!everyBreak.length) byId("breaks").append(make("p", {}, "There is none, with the hook or without it."));

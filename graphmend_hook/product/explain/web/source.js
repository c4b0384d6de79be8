// The source of a function as it is written, beside what runs.
let opened = null; // the button that has opened it

const stateAt = new Map(data.causes.flatMap((cause) => cause.breaks)
  .map((each) => [`${each.file}:${each.line}`, each.state]));

const textOf = (tokens) => (tokens || []).filter((_, index) => index % 2 === 0).join("");
const indentOf = (tokens) => textOf(tokens).search(/\S|$/);

function code(tokens, side) {
  const cell = make("td", { class: `code ${side}` });
  if (!tokens) return cell;
  for (let index = 0; index < tokens.length; index += 2) {
    const [text, kind] = [breakable(tokens[index]), tokens[index + 1]];
    cell.append(kind ? make("span", { class: `t-${kind}` }, text) : text);
  }
  cell.style.setProperty("--indent", `${indentOf(tokens) + 4}ch`); // where a line that is wrapped goes on
  return cell;
}

// What becomes of a line: it is the same, only further right, another, gone, or added.
function kindOf(written, runs) {
  if (!written || !runs) return written ? "gone" : "added";
  if (textOf(written) === textOf(runs)) return "same";
  return textOf(written).trim() === textOf(runs).trim() ? "moved" : "changed";
}

function lineOf([number, written, runs], file, isMended) {
  const state = number ? stateAt.get(`${file}:${number}`) : undefined;
  const kind = isMended ? kindOf(written, runs) : "same";
  const mark = state ? make("span", { class: "mark", role: "img", "aria-label": `break, ${state}`, title: `break, ${state}` }, "●") : "";
  const row = make("tr", { class: `line ${kind} ${state || ""}` },
    make("th", { scope: "row", class: "number" }, mark, number ? String(number) : ""), code(written, "written"));
  if (number) row.dataset.line = number;
  if (isMended) row.append(make("td", { class: "sign" }, ["added", "changed"].includes(kind) ? "+" : ""), code(runs, "runs"));
  return row;
}

function table(source, file, name) {
  const [rows, isMended] = source;
  const heads = ["line", "as it is written", ...(isMended ? ["", "as it runs"] : [])];
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
  const caption = make("caption", { class: "hidden" }, name);
  return make("table", { class: isMended ? "pair" : "single" }, caption, make("thead", {}, head),
    make("tbody", {}, ...rows.map((row) => lineOf(row, file, isMended))));
}

// The last line of those that are numbered up to `line`: a statement may begin before the line that is asked for.
function current(line) {
  const numbered = [...byId("lines").querySelectorAll("tr[data-line]")];
  return numbered.filter((row) => Number(row.dataset.line) <= line).pop();
}

function show(target, button) {
  const source = data.sources[`${target.file}:${target.function}`];
  byId("source-title").replaceChildren(breakable(target.function));
  const place = make("span", { class: "path" }, breakable(where(target.file, target.line)));
  const said = !source ? ": there is no source of it." : source[1] ? "" : ": nothing in it is mended.";
  byId("source-note").replaceChildren(place, said);
  byId("lines").replaceChildren(...(source ? [table(source, target.file, target.function)] : []));
  document.body.classList.add("opened");
  opened?.removeAttribute("aria-current");
  opened = button;
  opened.setAttribute("aria-current", "true");
  byId("lines").scrollTo(0, 0);
  byId("source").focus({ preventScroll: true });
  const row = source && target.line ? current(target.line) : undefined;
  row?.setAttribute("aria-current", "location");
  row?.scrollIntoView({ block: "center" });
  opened.scrollIntoView({ block: "nearest" }); // the list has become smaller
}

function close() {
  document.body.classList.remove("opened");
  opened?.removeAttribute("aria-current");
  opened?.focus();
}

byId("close").addEventListener("click", close);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && byId("source").contains(document.activeElement)) close();
});

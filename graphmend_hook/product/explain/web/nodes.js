"use strict";
// What the others are made of. Text of the program's becomes nodes of text only, never markup.
const data = JSON.parse(document.getElementById("data").textContent);
const ARMS = ["without the hook", "with the hook"];
const STATES = ["remaining", "new", "removed"];

const FIRST = 20; // of a list are shown at once

const byId = (id) => document.getElementById(id);

function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

// Where a line may end: behind what separates paths, names and code, if no suffix or number follows.
const SEPARATED = /(?<=[/\\.:,=([])(?=[\w'"`])(?!pyi?\b)(?!(?<=[.:])\d)|(?<=\s)(?=\S)/;

// The text, which may be wrapped at its separators; a word that is long by itself at its underscores.
function breakable(text) {
  const node = document.createDocumentFragment();
  for (const part of text.split(SEPARATED)) {
    const pieces = part.length > 40 ? part.split(/(?<=_)(?=\w)/) : [part];
    for (const piece of pieces) {
      if (node.lastChild && !node.lastChild.data?.endsWith(" ")) node.append(make("wbr"));
      node.append(piece);
    }
  }
  node.normalize();
  return node;
}

function where(file, line) {
  const { where: path } = data.files[file];
  return line ? `${path}:${line}` : path;
}

// A button that opens the source of a function, at a line of it if one is given.
function opener(target, attributes, ...label) {
  const open = (event) => {
    event.preventDefault(); // it may stand in a summary, which is not to be opened by it
    show(target, event.currentTarget);
  };
  return make("button", { type: "button", ...attributes, onclick: open }, ...label);
}

function framed([file, line, name]) {
  const place = make("span", { class: "path" }, breakable(where(file, line)));
  return opener({ file, line, function: name }, { class: "link" }, place, " in ", breakable(name));
}

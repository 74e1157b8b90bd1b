// The only way to write to the page: every text becomes a text node, with invisible characters made visible.

import { INVISIBLE_RANGES } from "./invisible.js";

const INVISIBLE = new RegExp(
  "[" + INVISIBLE_RANGES.map(([first, last]) => `\\u{${first}}-\\u{${last}}`).join("") + "]",
  "gu",
);

export function shown(text) {
  return String(text).replace(INVISIBLE, (one) => {
    const code = one.codePointAt(0).toString(16).toUpperCase();
    return "⟨U+" + code.padStart(4, "0") + "⟩";
  });
}

// Creates an element. `about` has properties and attributes; children are nodes, texts or nothing.
export function el(tag, about, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(about || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : shown(value));
  }
  return add(node, ...children);
}

export function add(node, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(shown(child)));
  }
  return node;
}

export function fill(node, ...children) {
  node.replaceChildren();
  return add(node, ...children);
}

export const MARKS = { passed: "✓", failed: "✗", skipped: "–", error: "!" };

export function mark(status) {
  return el("span", { class: "mark " + status, title: status, "aria-label": status }, MARKS[status] || "?");
}

export function pill(status) {
  return el("span", { class: "pill " + status }, MARKS[status] ? MARKS[status] + " " + status : status);
}

// Most numbers are counts: creating a formatter takes milliseconds.
export function number(value) {
  return Number.isInteger(value) && Math.abs(value) < 1e15 ? String(value).replace(/\B(?=(\d{3})+$)/g, ",") : value.toLocaleString("en-US");
}

// A heading of a level; its class defines its look.
export function heading(level, looks, ...text) {
  return el("h" + level, { class: looks }, text);
}

// A table that scrolls sideways if it is too wide, also by keyboard.
export function scrolled(label, table) {
  return el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": label }, table);
}

// A number with its word: "1 step", "2 steps".
export function counted(count, word, words) {
  return number(count) + " " + (count === 1 ? word : words || word + "s");
}

export function seconds(value) {
  if (value === null || value === undefined) return "";
  if (value >= 120) return number(Math.round(value / 60)) + " min";
  return (value >= 100 ? value.toFixed(0) : value >= 0.995 ? value.toFixed(1) : value.toFixed(2)) + " s";
}

// A percentage that is 100 % only for all, and 0 % only for none.
export function percent(part, whole) {
  if (!whole) return "–";
  const share = (100 * part) / whole;
  const rounded = part < whole ? Math.min(99, Math.round(share)) : 100;
  return (part > 0 ? Math.max(1, rounded) : rounded) + " %";
}

// Seconds as a short text: 0.02 s, 4.1 s, 3 min 20 s, 2 h 5 min.
export function duration(value) {
  if (value === null || value === undefined) return "";
  if (value < 0.01) return "0 s";
  if (value < 120) return seconds(value);
  const [hours, minutes, rest] = [Math.floor(value / 3600), Math.floor(value / 60) % 60, Math.round(value % 60)];
  return hours ? hours + " h " + minutes + " min" : minutes + " min" + (rest && minutes < 10 ? " " + rest + " s" : "");
}

// A value with two digits, or up to six if it would read 0 or 1 otherwise, or like another one that
// it is compared with: 0.798, which needs 0.80.
export function score(value, other) {
  const most = (one) => Number(one.toFixed(6));
  const apart = new Set([0, 1, value, ...(typeof other === "number" ? [other] : [])].map(most));
  let places = 2;
  while (places < 6 && new Set([...apart].map((one) => one.toFixed(places))).size < apart.size) places += 1;
  return value >= 0 && value < 1 ? value.toFixed(places) : String(Number(value.toFixed(places)));
}

// Each agent has its own color, the same everywhere, and different from green and red.
export const HUES = new Map();

const WHEEL = [222, 34, 285, 188, 322, 58, 252, 172, 304, 205];

export function hue(name) {
  if (!HUES.has(name)) {
    const turns = Math.floor(HUES.size / WHEEL.length);
    HUES.set(name, WHEEL[HUES.size % WHEEL.length] + 7 * turns);
  }
  return HUES.get(name);
}

// Gives an agent the color that it has on other pages.
export function setHue(name, place) {
  HUES.set(name, WHEEL[place % WHEEL.length]);
}

export function agent(name) {
  if (name === null || name === undefined) return el("span", { class: "agent nobody" }, "no agent");
  const node = el("span", { class: "agent", dir: "auto" }, name);
  node.style.setProperty("--hue", hue(name));
  return node;
}

// A sentence by Baton: text in backticks is a name, often of an agent.
export function sentence(text) {
  return String(text).split(/`([^`\n]+)`/).map((part, place) => {
    if (place % 2 === 0) return part;
    return HUES.has(part) ? agent(part) : el("code", { dir: "auto" }, part);
  });
}

// Pages of a server set `fetch`, which loads the rest of a truncated text.
export const REST = { fetch: null };

// A truncated text is an object: its beginning, the number of missing characters, and where the text is.
export function textOf(value) {
  return typeof value === "object" && value !== null ? value.text : String(value ?? "");
}

// The first characters of a text in one line.
export function line(value, most = 140) {
  const text = textOf(value).slice(0, 4 * most).replace(/\s+/g, " ").trim();
  return text.length > most || (value && value.more) ? text.slice(0, most - 1) + "…" : text;
}

// A text of any length; a long one has a button that expands it, a truncated one is fetched.
export function prose(value, name) {
  const text = textOf(value);
  const body = el("div", { class: "prose " + (name || ""), dir: "auto" }, text);
  const left = value && value.more;
  if (!left && text.length < 480 && text.split("\n").length < 9) return body;
  body.classList.add("long");
  const more = el("button", { class: "more", type: "button", "aria-expanded": "false" }, "show all");
  const note = left && el("p", { class: "gap" }, "… " + number(left) + " more characters");
  if (note) note.hidden = true;
  let whole = !left || !REST.fetch || !value.at;
  more.addEventListener("click", async () => {
    if (!whole) {
      more.textContent = "loading…";
      const all = await REST.fetch(value.at);
      if (all === null) return void (more.textContent = "it could not be loaded; try again");
      fill(body, all);
      whole = true;
      note.remove();
    }
    const open = body.classList.toggle("open");
    if (note) note.hidden = !open;
    more.textContent = open ? "show less" : "show all";
    more.setAttribute("aria-expanded", String(open));
  });
  return el("div", {}, body, note, more);
}

// A bar with a part for each status. Every part is visible, even one case of a thousand.
export function bar(counts) {
  const node = drawing("svg", { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" });
  const all = Object.keys(MARKS).reduce((sum, status) => sum + counts[status], 0);
  const present = ["passed", "failed", "error", "skipped"].filter((status) => counts[status]);
  const shares = present.map((status) => Math.max(counts[status] / all, 0.012));
  const scale = shares.reduce((sum, share) => sum + share, 0);
  let at = 0;
  present.forEach((status, place) => {
    const width = (100 * shares[place]) / scale;
    node.append(drawing("rect", { class: status, x: at.toFixed(2), width: width.toFixed(2), height: 8 }));
    at += width;
  });
  return node;
}

function drawing(tag, about) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(about)) node.setAttribute(name, value);
  return node;
}

// Shared by all pages: keyboard shortcuts, themes, times in the reader's time zone, and whether the server is reachable.

// Resolves when the current content is painted; immediately if the page is hidden.
export function afterPaint() {
  return new Promise((done) => (document.hidden ? done() : requestAnimationFrame(() => setTimeout(done))));
}

// ---- Keys. A page adds its own with `addKey`; `?` lists them all.

const KEYS = new Map();

// `keys` is one key ("j") or two that follow one another ("g c"); `run` gets the event.
export function addKey(keys, label, run) {
  KEYS.set(keys, { label, run });
}

let first = "";
let firstAt = 0;

function writing(node) {
  return node instanceof HTMLElement && (node.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(node.tagName));
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (writing(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  const two = performance.now() - firstAt < 1200 ? `${first} ${event.key}` : "";
  const chosen = KEYS.get(two) || KEYS.get(event.key);
  first = event.key;
  firstAt = performance.now();
  if (!chosen) return;
  event.preventDefault();
  first = "";
  chosen.run(event);
});

function showKeys() {
  const list = document.createElement("dl");
  list.className = "keys";
  for (const [keys, { label }] of KEYS) {
    const term = document.createElement("dt");
    for (const key of keys.split(" ")) {
      const cap = document.createElement("kbd");
      cap.textContent = key;
      term.append(cap, " ");
    }
    const means = document.createElement("dd");
    means.textContent = label;
    list.append(term, means);
  }
  document.getElementById("keys-list").replaceChildren(list);
  document.getElementById("keys-help").showModal();
}

addKey("?", "Show the keyboard shortcuts", showKeys);
document.getElementById("keys")?.addEventListener("click", showKeys);
for (const link of document.querySelectorAll("nav.pages a[data-key]")) {
  addKey(`g ${link.dataset.key}`, `Go to ${link.textContent}`, () => link.click());
}

// On a narrow screen the entries scroll sideways: scroll to the current one.
// In an animation frame, because the page is laid out isReachable anyway.
requestAnimationFrame(() => document.querySelector("nav.pages [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }));

// `j` and `k` move through the rows of a list; Enter follows the link of the row.
function rows() {
  return [...document.querySelectorAll("[data-row]")].filter((row) => row.offsetParent !== null);
}

function step(by) {
  const all = rows();
  if (!all.length) return;
  const now = all.findIndex((row) => row.contains(document.activeElement));
  const next = all[Math.min(all.length - 1, Math.max(0, now + by))];
  const target = next.matches("a, button, [tabindex]") ? next : next.querySelector("a, button") || next;
  target.focus();
  next.scrollIntoView({ block: "nearest" });
}

if (document.querySelector("[data-row], [data-rows]")) {
  addKey("j", "Next row", () => step(1));
  addKey("k", "Previous row", () => step(-1));
}
const search = document.querySelector("[data-search]");
if (search) addKey("/", "Search or filter", () => search.focus());
// A table with all its rows on the page is filtered by their visible words.
for (const input of document.querySelectorAll("[data-rows-filter]")) {
  const all = document.querySelectorAll(`#${input.dataset.rowsFilter} tbody tr`);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of all) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  });
}

for (const link of document.querySelectorAll("a[data-page-key]")) {
  addKey(link.dataset.pageKey, link.dataset.pageLabel || link.textContent, () => link.click());
}

// ---- Themes.

const THEMES = ["system", "light", "dark"];
const ICONS = { system: "◐", light: "☀", dark: "☾" };
const theme = document.getElementById("theme");

function showTheme(name) {
  theme.textContent = ICONS[name];
  theme.title = `Theme: ${name} (t)`;
  theme.setAttribute("aria-label", `Theme: ${name}`);
}

function nextTheme() {
  const now = localStorage.getItem("baton-theme") || "system";
  const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
  if (next === "system") {
    localStorage.removeItem("baton-theme");
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem("baton-theme", next);
    document.documentElement.dataset.theme = next;
  }
  showTheme(next);
  document.dispatchEvent(new CustomEvent("baton:theme"));
}

if (theme) {
  showTheme(localStorage.getItem("baton-theme") || "system");
  theme.addEventListener("click", nextTheme);
  addKey("t", "Change the theme: system, light, dark", nextTheme);
}

// ---- Times: short on the page, exact on hover, both in the reader's time zone.

// Creating a formatter takes milliseconds, so each is created on first use.
const FORMATS = {
  exact: ["en-CA", {
    year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
    fractionalSecondDigits: 3, hourCycle: "h23", timeZoneName: "short",
  }],
  "same day": ["en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" }],
  "same year": ["en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }],
  other: ["en-GB", { day: "numeric", month: "short", year: "numeric" }],
};
const made = {};

function written(at, name) {
  made[name] ||= new Intl.DateTimeFormat(...FORMATS[name]);
  return made[name].format(at);
}

export function timeText(at, now = new Date()) {
  if (at.toDateString() === now.toDateString()) return written(at, "same day");
  return written(at, at.getFullYear() === now.getFullYear() ? "same year" : "other");
}

export function fillTimes(root = document) {
  const nodes = [...root.querySelectorAll("time[datetime]:not([data-filled])")].filter((node) => !Number.isNaN(new Date(node.dateTime).valueOf()));
  for (const node of nodes) {
    node.textContent = timeText(new Date(node.dateTime));
    node.dataset.filled = "";
  }
  // Exact times are tooltips, so they are added after the page is painted.
  const titles = () => nodes.forEach((node) => { node.title = written(new Date(node.dateTime), "exact").replace(",", ""); });
  if (nodes.length) afterPaint().then(titles);
}

fillTimes();

// ---- Toasts, copying, forms.

export function toast(text, kind = "") {
  const node = document.createElement("p");
  node.className = `toast ${kind}`;
  node.textContent = text;
  document.getElementById("toasts").append(node);
  setTimeout(() => node.remove(), 6000);
}

document.addEventListener("click", async (event) => {
  const button = event.target instanceof Element ? event.target.closest("[data-copy]") : null;
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    toast("Copied");
  } catch {
    toast("The browser does not allow copying: select the text and copy it yourself", "failed");
  }
});

document.addEventListener("change", (event) => {
  event.target.closest?.("form[data-submit-on-change]")?.requestSubmit();
});

// Sends a form or data and returns the answer; errors of the server are thrown with their advice.
export async function send(path, data) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json", "X-Baton-CSRF": csrf() },
    body: JSON.stringify(data),
  });
  return read(answer);
}

export async function load(path, options = {}) {
  return read(await fetch(path, { headers: { Accept: "application/json" }, ...options }));
}

async function read(answer) {
  const text = await answer.text();
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch {
    throw new Error(`the server answered ${answer.status}`);
  }
  if (!answer.ok) throw new Error([value?.error, value?.do].filter(Boolean).join("; ") || `the server answered ${answer.status}`);
  return value;
}

export function csrf() {
  return document.querySelector('meta[name="baton-csrf"]')?.content || "";
}

// ---- Parts of a page that htmx fetches: `part` in the templates.

document.addEventListener("htmx:after:swap", () => fillTimes());
document.addEventListener("htmx:error", () => lost());
// Periodic requests pause while the page is hidden.
document.addEventListener("htmx:before:request", (event) => {
  if (document.hidden && event.detail.ctx.sourceEvent.type === "every") event.preventDefault();
});

// ---- Whether the server is reachable. Live parts listen to `baton:back`.

const away = document.getElementById("away");
let isAway = false;
let timer = 0;

async function look() {
  clearTimeout(timer);
  timer = 0;
  let isReachable = false;
  let version = "";
  try {
    const answer = await fetch("/health", { cache: "no-store", signal: AbortSignal.timeout(4000) });
    isReachable = answer.ok;
    version = isReachable ? (await answer.json()).version : "";
  } catch {
    isReachable = false;
  }
  if (!isReachable && !isAway) {
    isAway = true;
    away.textContent = "The server does not answer. This page tries again every two seconds; its content may be out of date.";
    away.className = "banner failed";
    away.hidden = false;
  } else if (isReachable && isAway) {
    isAway = false;
    const mine = document.querySelector('meta[name="baton-version"]').content;
    if (version && version !== mine) {
      away.textContent = `The server is back, with Baton ${version}: reload the page to use it.`;
    } else {
      away.textContent = "The server is back.";
      setTimeout(() => { if (!isAway) away.hidden = true; }, 3000);
    }
    away.className = "banner passed";
    document.dispatchEvent(new CustomEvent("baton:back"));
  }
  clearTimeout(timer);
  timer = setTimeout(look, isAway ? 2000 : 10000);
}

timer = setTimeout(look, 10000);

// Other requests without an answer call this, so that the notice appears at once, not after ten seconds.
export function lost() {
  if (!isAway && timer) look();
}

// ---- Menus: they close when something else is clicked, and by Escape.

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details[data-menu][open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details[data-menu][open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

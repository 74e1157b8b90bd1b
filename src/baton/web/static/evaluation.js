// The page of an evaluation: the modules of the report draw it, and each case is loaded when it is opened.

import { addKey, afterPaint, load, lost, toast } from "./app.js";
import { showCase } from "./report/case.js";
import { CaseList } from "./report/cases.js";
import { hue } from "./report/dom.js";
import { chooses, showSummary } from "./report/summary.js";

// The page already has the summary and the first rows: let them be painted first.
await afterPaint();

const main = document.getElementById("main");
const { address } = main.dataset;
const holder = document.getElementById("data");
let data = holder && whole(JSON.parse(holder.textContent));
let list = null;
let shown = null; // the view of the run of the open case
let asked = new Set();
let all = null;
let rest = null; // a promise of the other rows of a long list

// Adds the empty values, which the data leave out. Of a long list the page has only the worst rows, each with
// its number: the others are holes in the array, and `counts` has the number of rows by status.
function whole(given) {
  const empty = { repeat: 0, input: "", reason: "", agents: [], tags: [], routing: [], seconds: null, tokens: null };
  const rows = [];
  given.rows.forEach((row, place) => { rows[row.number ?? place] = { ...empty, ...row }; });
  if (given.counts) rows.length = given.counts.reduce((sum, count) => sum + count, 0);
  given.rows = rows;
  return given;
}

// ---- The list. Texts of cases are loaded for the rows that are drawn, and for all on a search.

function drawn(rows) {
  const wanted = rows.filter((row) => !row.hasTexts && !asked.has(row.number)).map((row) => row.number);
  if (!wanted.length) return;
  wanted.forEach((number) => asked.add(number));
  load(withQuery(address + "/texts", "rows", wanted.join(","))).then(tell).catch(() => wanted.forEach((number) => asked.delete(number)));
}

function searched() {
  if (all) return;
  all = Promise.resolve(rest).then(() => load(address + "/texts")).then((texts) => {
    tell(texts);
    list.apply();
  }).catch((error) => {
    all = null;
    toast("The texts of the cases could not be loaded: " + error.message, "failed");
  });
}

function tell(texts) {
  for (const [number, input, reason] of texts) list.tell(number, input, reason);
}

function withQuery(path, name, value) {
  const address_ = new URL(path, location.href);
  address_.searchParams.set(name, value);
  return address_.pathname + address_.search;
}

// Draws the summary and the list; at first the page already has both.
function drawAll(isFirst = false) {
  data.names.agents.forEach(hue);
  asked = new Set();
  all = null;
  document.getElementById("list").parentElement.querySelectorAll(":scope > .more").forEach((node) => node.remove());
  list = new CaseList(data.rows, data.names, data.summary.repeats, { drawn, searched, counts: data.counts });
  const choose = (filter) => list.choose(filter);
  if (isFirst) chooses(data.summary, choose);
  else showSummary(data.summary, choose);
}

// Loads the rows that the page did not have at first.
async function takeRest() {
  try {
    const all_ = whole(await load(address + "/list"));
    if (!data.counts) return; // they were loaded together with new results
    if (all_.rows.length === data.rows.length) {
      data.counts = null;
      data.rows = list.extend(all_.rows);
    } else {
      data = all_; // it is still running, so the numbers of rows have changed
      drawAll();
    }
  } catch (error) {
    toast("The other cases could not be loaded: " + error.message, "failed");
  }
}

// ---- A case: it has its own address, and the list stays where it is.

async function open(number, part) {
  const row = data.rows[number];
  if (!row) return;
  list.mark(number);
  const view = document.getElementById("view");
  view.setAttribute("aria-busy", "true");
  try {
    const view_ = await load(withQuery(`${address}/cases/${row.position}`, "repeat", row.repeat));
    if (list.current !== number) return;
    shown = showCase(view_, row, data.rows.filter((one) => one.first === row.first), data.names, data.summary.repeats);
    view.scrollTop = 0;
    if (part && shown) shown.show(part);
  } catch (error) {
    toast("The case could not be loaded: " + error.message, "failed");
  } finally {
    view.removeAttribute("aria-busy");
  }
}

function narrow() {
  return innerWidth <= 900;
}

// Links inside the view are as in the one-file report: #case12, or #case12/d-3 for a part of it.
function follow() {
  const named = /^#case(\d+)(?:\/(.+))?$/.exec(location.hash);
  if (!named) return false;
  const [number, part] = [Number(named[1]), named[2] && decodeURIComponent(named[2])];
  if (part && shown && list.current === number) shown.show(part);
  else open(number, part).then(() => narrow() && document.getElementById("view").scrollIntoView());
  return true;
}

function step(by) {
  const next = list.beside(by);
  if (next === null) return;
  history.replaceState(null, "", "#case" + next);
  open(next);
  list.mark(next)?.focus({ preventScroll: true });
}

// ---- While it runs: figures are updated; new results are announced, and drawn on request.

const news = document.getElementById("news");
const figures = new Map([...document.querySelectorAll("[data-show]")].map((node) => [node.dataset.show, node]));
const COUNT = new Intl.NumberFormat("en-US");

function duration(value) {
  if (value < 100) return value.toFixed(value < 1 ? 2 : 0) + " s";
  const minutes = Math.round(value / 60);
  return minutes < 60 ? minutes + " min" : Math.floor(minutes / 60) + " h " + (minutes % 60) + " min";
}

function show(state) {
  const { progress, cases } = state;
  if (!progress) return;
  const bar = document.getElementById("done");
  if (progress.planned) {
    bar.max = progress.planned;
    bar.value = progress.results;
  }
  const texts = {
    cases: COUNT.format(progress.results) + (progress.planned ? " of " + COUNT.format(progress.planned) : ""),
    passed: COUNT.format(cases.passed || 0),
    "not-passed": COUNT.format((cases.failed || 0) + (cases.error || 0)),
    rate: progress.rate ? (60 * progress.rate).toFixed(1) + " a minute" : "–",
    left: progress.left === null ? "–" : duration(progress.left),
    cost: progress.cost_usd === null ? "–" : "$" + progress.cost_usd.toFixed(progress.cost_usd < 0.1 ? 4 : 2),
  };
  for (const [name, text] of Object.entries(texts)) if (figures.has(name)) figures.get(name).textContent = text;
}

function announce(words, label, act) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.addEventListener("click", act);
  news.replaceChildren(words + " ", button);
  news.hidden = false;
}

async function takeNew() {
  news.hidden = true;
  const open_ = list && list.current !== null ? data.rows[list.current] : null;
  data = whole(await load(address + "/list"));
  drawAll();
  if (!open_) return;
  const number = data.rows.findIndex((row) => row.position === open_.position && row.repeat === open_.repeat);
  if (number >= 0) list.mark(number);
}

async function look() {
  try {
    const state = await load(address);
    show(state);
    const have = data ? data.rows.length : 0;
    const available = state.progress ? state.progress.results : 0;
    if (!["waiting", "running"].includes(state.state)) {
      announce(`It has ended: ${state.outcome}.`, "Show the result", () => location.reload());
      return;
    }
    if (available > have) {
      const fresh = available - have;
      announce(`${COUNT.format(fresh)} new ${fresh === 1 ? "result" : "results"}.`, "Show", data ? takeNew : () => location.reload());
    }
  } catch {
    lost();
  }
  setTimeout(look, document.hidden ? 10000 : 2000);
}

if (data) {
  drawAll(true);
  rest = data.counts ? takeRest() : null;
  addEventListener("hashchange", follow);
  addKey("j", "Next case", () => step(1));
  addKey("k", "Previous case", () => step(-1));
  addKey("/", "Search cases", () => list.search.focus());
  addKey("n", "Next dispatch of the case", () => shown && shown.beside && shown.beside(1));
  addKey("p", "Previous dispatch", () => shown && shown.beside && shown.beside(-1));
  if (!begin() && rest) rest.then(begin);
}

// Opens the case in the address, or the first one; returns `false` if its row may still be loading.
function begin() {
  const named = main.dataset.position;
  if (named !== undefined) {
    const repeat = Number(new URLSearchParams(location.search).get("repeat") ?? -1);
    const candidates = data.rows.filter((row) => String(row.position) === named && (repeat < 0 || row.repeat === repeat));
    const worst = candidates.sort((one, other) => rank(one) - rank(other))[0];
    if (worst) open(worst.number, location.hash.slice(1) && decodeURIComponent(location.hash.slice(1))).then(() => document.getElementById("cases").scrollIntoView());
    else if (data.counts) return false;
    else toast("The case is not in this list", "failed");
    return true;
  }
  const [, number] = /^#case(\d+)/.exec(location.hash) || [];
  if (number && data.counts && !data.rows[number]) return false;
  if (!follow() && list.matching.length && !narrow()) open(list.matching[0].number);
  return true;
}

function rank(row) {
  return ["error", "failed", "skipped", "passed"].indexOf(data.names.statuses[row.status]);
}

document.documentElement.dataset.ready = "true";
if (main.hasAttribute("data-live")) setTimeout(look, 1500);

// Pass rates of an agent over time: a line for each checkpoint, drawn by uPlot.

import { load } from "./app.js";
import { el, fill } from "./report/dom.js";

const place = document.getElementById("axes");
const choice = document.getElementById("axis");
const LINES = 6;
let axes = [];
let chart = null;

function checkpoint(one) {
  return [one.version, one.model].filter(Boolean).join(" · ") || "version not recorded";
}

// Times of all lines together; a line has no value where it has no verdict.
function table(lines) {
  const times = [...new Set(lines.flatMap((line) => line.points.map((point) => point.at)))].sort((a, b) => a - b);
  const rows = lines.map((line) => {
    const by = new Map(line.points.map((point) => [point.at, point]));
    return times.map((at) => by.get(at) || null);
  });
  return { times, rows };
}

function colour(number) {
  const probe = el("i", { class: "swatch-" + number });
  place.append(probe);
  const value = getComputedStyle(probe).getPropertyValue("--line-colour").trim();
  probe.remove();
  return value;
}

function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const HOUR = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

// Daily points start at midnight UTC and are labelled with that day; hours are in the reader's time zone.
function isDaily() {
  return axes.every((one) => one.points.every((each) => each.at % 86400 === 0));
}

function day(at) {
  return (isDaily() ? DAY : HOUR).format(at * 1000);
}

// Between daily points there is nothing: ticks within a day would all have the name of that day.
const DAYS = [1, 2, 7, 14, 30, 90, 365].map((days) => days * 86400);

function share(point) {
  return (100 * point.passed) / (point.passed + point.failed);
}

function draw() {
  const all = axes.filter((one) => one.evaluator === choice.value);
  const lines = all.slice(0, LINES);
  const { times, rows } = table(lines);
  const box = el("div", { class: "chart", role: "img", "aria-label": "Pass rate of " + choice.value + " over time; the table below has the numbers" });
  const label = el("div", { class: "point", hidden: true });
  const series = lines.map((_, number) => {
    const stroke = colour(number);
    return { stroke, width: 2, spanGaps: true, points: { show: true, size: 6, fill: stroke, stroke }, scale: "%" };
  });
  const about = {
    width: Math.max(260, place.clientWidth - 28), height: 230, legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } },
    // A single point gets three days on each side; uPlot would show years.
    scales: { x: { time: true, range: (_, least, most) => (times.length === 1 ? [times[0] - 3 * 86400, times[0] + 3 * 86400] : [least, most]) }, "%": { range: [0, 104] } },
    axes: [
      { stroke: ink("--soft"), grid: { stroke: ink("--line"), width: 1 }, ticks: { stroke: ink("--line"), width: 1 }, values: (_, values) => values.map(day), space: 70, ...(isDaily() && { incrs: DAYS }) },
      { scale: "%", stroke: ink("--soft"), grid: { stroke: ink("--line"), width: 1 }, ticks: { show: false }, size: 52, values: (_, values) => values.map((value) => (value > 100 ? "" : value + " %")) },
    ],
    series: [{}, ...series],
    hooks: { setCursor: [(made) => point(made, label, lines, times, rows)] },
  };
  if (chart) chart.destroy();
  fill(
    place,
    el("div", { class: "legend" }, lines.map((line, number) => el("span", { class: "line-" + number }, el("i", {}), el("span", { dir: "auto" }, checkpoint(line)))), all.length > LINES && el("span", { class: "dim" }, `and ${all.length - LINES} more in the table`)),
    box,
    figures(all),
  );
  box.style.position = "relative";
  chart = new uPlot(about, [times, ...rows.map((row) => row.map((each) => (each ? share(each) : null)))], box);
  box.append(label);
}

function point(made, label, lines, times, rows) {
  const at = made.cursor.idx;
  if (at === null || at === undefined) {
    label.hidden = true;
    return;
  }
  const texts = lines.map((line, number) => rows[number][at] && `${checkpoint(line)}: ${Math.round(share(rows[number][at]))} % (${rows[number][at].passed} of ${rows[number][at].passed + rows[number][at].failed})`).filter(Boolean);
  fill(label, el("b", {}, day(times[at])), texts.map((words) => el("div", {}, words)));
  label.hidden = !texts.length;
  const left = made.cursor.left + made.over.offsetLeft;
  label.style.left = Math.min(left + 12, place.clientWidth - 240) + "px";
  label.style.top = "6px";
}

function figures(lines) {
  const rows = lines.flatMap((line) => line.points.map((each) => [each.at, checkpoint(line), each])).sort((a, b) => b[0] - a[0]);
  return el(
    "details",
    {},
    el("summary", { class: "dim" }, "As a table"),
    el("div", { class: "scroll" }, el("table", { class: "list" },
      el("thead", {}, el("tr", {}, ["From", "Checkpoint", "Pass rate", "Passed", "Failed"].map((name, at) => el("th", { scope: "col", class: at > 1 ? "figure" : null }, name)))),
      el("tbody", {}, rows.map(([at, name, each]) => el("tr", {}, el("td", {}, day(at)), el("td", { dir: "auto" }, name), el("td", { class: "figure" }, Math.round(share(each)) + " %"), el("td", { class: "figure" }, String(each.passed)), el("td", { class: "figure" }, String(each.failed))))))),
  );
}

load(place.dataset.address).then((answer) => {
  axes = answer;
  if (!axes.length) return;
  const total = (name) => axes.filter((one) => one.evaluator === name).flatMap((one) => one.points).reduce((sum, each) => sum + each.passed + each.failed, 0);
  const names = [...new Set(axes.map((one) => one.evaluator))].sort((a, b) => total(b) - total(a));
  choice.append(...names.map((name) => {
    const option = el("option", {}, name);
    option.value = name;
    return option;
  }));
  document.getElementById("axis-choice").hidden = false;
  const wanted = new URLSearchParams(location.search).get("axis");
  if (names.includes(wanted)) choice.value = wanted;
  choice.addEventListener("change", () => {
    const here = new URL(location.href);
    here.searchParams.set("axis", choice.value);
    history.replaceState(null, "", here);
    draw();
  });
  draw();
  addEventListener("resize", () => chart.setSize({ width: Math.max(260, place.clientWidth - 28), height: 230 }));
  document.addEventListener("baton:theme", draw);
}).catch((error) => fill(place, el("p", { class: "callout error" }, "Pass rates could not be loaded: " + error.message)));

// Swim lanes: a lane for each agent, its runs on a time axis, arrows where work changes hands.

import { agent, duration, el, hue, line, number, shown } from "./dom.js";
import { BAD } from "./record.js";

const SVG = "http://www.w3.org/2000/svg";
const [ROW, BAR, GAP, TOP] = [22, 14, 12, 38]; // px: a row, a bar in it, space between lanes, the axis
const IDLE = 0.08; // a pause longer than this share of all work is drawn short, with its length
const ZOOMS = [1, 2, 4, 8, 16];

function svg(tag, about, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(about)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) node.setAttribute(name, shown(value));
  }
  for (const child of children) if (child) node.append(child instanceof Node ? child : document.createTextNode(shown(child)));
  return node;
}

export class Lanes {
  constructor(index, about) {
    this.index = index;
    this.about = about;
    this.zoom = 0;
    this.bars = placed(index);
    this.lanes = stacked(this.bars.runs);
    const zoom = (step, label, text) => el("button", { type: "button", "aria-label": label, onclick: () => this.zoomBy(step) }, text);
    this.labels = el("div", { class: "lane-labels" });
    this.scroll = el("div", { class: "lane-scroll", tabindex: "0", role: "group", "aria-label": "Lanes over time" });
    this.node = el(
      "div",
      { class: "lanes" },
      el(
        "p", { class: "lane-tools" }, zoom(-1, "Zoom out", "−"), zoom(1, "Zoom in", "+"),
        el("span", { class: "dim" }, (this.bars.timed ? "" : "Times are not recorded: the axis counts steps. ") + "Bars are runs, ticks tool calls (red: failed), arrows dispatches (dashed: background)."),
      ),
      el("div", { class: "lane-frame" }, this.labels, this.scroll),
    );
  }

  zoomBy(step) {
    const before = this.scroll.scrollLeft + this.scroll.clientWidth / 2;
    const was = ZOOMS[this.zoom];
    this.zoom = Math.min(Math.max(this.zoom + step, 0), ZOOMS.length - 1);
    this.draw();
    this.scroll.scrollLeft = (before * ZOOMS[this.zoom]) / was - this.scroll.clientWidth / 2;
  }

  // Draws for the current width.
  draw() {
    const width = Math.max(280, this.scroll.clientWidth - 2) * ZOOMS[this.zoom];
    const axis = new Axis(this.bars, width - 24);
    const tops = new Map();
    let y = TOP;
    this.labels.replaceChildren();
    for (const [name, lane] of this.lanes) {
      tops.set(name, y);
      const label = el("div", { class: "lane-label" }, agent(name));
      label.style.top = y - 3 + "px";
      this.labels.append(label);
      y += lane.rows * ROW + GAP;
    }
    this.labels.style.height = y + "px";
    const at = (bar) => tops.get(bar.run.agent) + bar.row * ROW;
    const picture = svg("svg", { class: "lane-picture", width, height: y, viewBox: "0 0 " + width + " " + y });
    picture.append(this.axisPart(axis, y), this.backgrounds(tops, width), this.arrows(axis, at), this.barsPart(axis, at), this.ticks(axis, at));
    this.scroll.replaceChildren(picture);
  }

  backgrounds(tops, width) {
    const group = svg("g", { class: "lane-grounds" });
    for (const [name, lane] of this.lanes) group.append(svg("rect", { x: 0, y: tops.get(name) - 4, width, height: lane.rows * ROW + 2, rx: 4 }));
    return group;
  }

  axisPart(axis, height) {
    const group = svg("g", { class: "lane-axis" });
    for (const [x, text] of axis.marks()) group.append(svg("path", { d: "M" + x + " " + TOP + "V" + height }), svg("text", { x, y: 14 }, text));
    for (const [x, text] of axis.pauses()) group.append(svg("text", { class: "pause", x, y: 14 }, text), svg("path", { class: "pause", d: "M" + x + " " + TOP + "V" + height }));
    return group;
  }

  barsPart(axis, at) {
    const group = svg("g", {});
    for (const bar of this.bars.runs) {
      const x = axis.x(bar.from);
      const wide = Math.max(4, axis.x(bar.to) - x);
      const bad = BAD.includes(bar.run.status);
      const about = bar.run.agent + (bar.run.seconds !== undefined ? ", " + duration(bar.run.seconds) : "") + ", " + (bar.run.steps || []).length + " steps" + (bad ? ", " + bar.run.status : "");
      const rect = svg("rect", { x: x.toFixed(1), y: at(bar), width: wide.toFixed(1), height: BAR, rx: 3 });
      rect.style.setProperty("--hue", hue(bar.run.agent));
      group.append(svg("a", {
        href: this.about.page.address(bar.run.id), class: "lane-bar" + (bad ? " bad" : ""), "aria-label": about,
        onclick: (event) => this.go(event, () => this.about.reveal(bar.run.id)),
      }, svg("title", {}, about), rect));
    }
    return group;
  }

  go(event, action) {
    event.preventDefault();
    action();
  }

  // All calls are drawn as two paths: successful ones and failed ones.
  ticks(axis, at) {
    const paths = { fine: "", bad: "" };
    for (const bar of this.bars.runs) {
      const y = at(bar);
      for (const [time, step] of bar.marks) {
        if (step.type !== "call") continue;
        paths[step.status === "ok" ? "fine" : "bad"] += "M" + axis.x(time).toFixed(1) + " " + (y + 2) + "v" + (BAR - 4);
      }
    }
    return svg("g", { class: "lane-ticks" }, svg("path", { d: paths.fine }), svg("path", { class: "bad", d: paths.bad }));
  }

  arrows(axis, at) {
    const group = svg("g", { class: "lane-arrows" });
    const together = new Map();
    for (const one of this.bars.arrows) {
      const [x1, x2] = [axis.x(one.at), axis.x(one.to.from)];
      const [y1, y2] = [at(one.from) + BAR / 2, at(one.to) + (at(one.to) > at(one.from) ? 0 : BAR)];
      const bad = BAD.includes(one.dispatch.status);
      const d = "M" + x1.toFixed(1) + " " + y1 + "C" + x1.toFixed(1) + " " + ((y1 + y2) / 2).toFixed(1) + " " + x2.toFixed(1) + " " + ((y1 + y2) / 2).toFixed(1) + " " + x2.toFixed(1) + " " + y2;
      const head = y2 > y1 ? -1 : 1;
      const tip = "M" + (x2 - 3).toFixed(1) + " " + (y2 + 5 * head) + "L" + x2.toFixed(1) + " " + y2 + "L" + (x2 + 3).toFixed(1) + " " + (y2 + 5 * head);
      const label = "Card: " + one.dispatch.kind + " to " + one.dispatch.to + (one.dispatch.prompt ? ": " + line(one.dispatch.prompt, 100) : "");
      group.append(svg("a", {
        href: this.about.page.address(one.dispatch.id), class: "lane-arrow" + (bad ? " bad" : "") + (one.dispatch.mode === "background" ? " background" : ""), "aria-label": label,
        onclick: (event) => this.go(event, () => this.about.open(one.dispatch.id)),
      }, svg("title", {}, label), svg("path", { class: "hit", d }), svg("path", { d: d + tip })));
      if (one.dispatch.group === undefined) continue;
      const key = one.from.run.id + " " + one.dispatch.group;
      const known = together.get(key);
      together.set(key, { x: Math.min(known ? known.x : x1, x1), y: y1, count: (known ? known.count : 0) + 1 });
    }
    for (const { x, y, count } of together.values()) {
      if (count > 1) group.append(svg("text", { class: "lane-group", x: x + 4, y: y - BAR / 2 - 2 }, count + "∥"));
    }
    return group;
  }
}

// Finds when each run started and ended; by the order of steps if times are missing.
function placed(index) {
  const order = new Map(index.order.map((id, at) => [id, at]));
  const runs = [...index.runs.values()];
  const spans = runs.map((run) => timesOf(index, run));
  const timed = spans.every((span) => span !== null) && new Set(spans.flat()).size > 1;
  const bars = runs.map((run, at) => {
    const steps = run.steps || [];
    const marks = steps.map((step) => [timed ? step.at : order.get(step.id), step]).filter(([time]) => time !== undefined);
    const [from, to] = timed ? spans[at] : ordered(run, order);
    return { run, from, to, marks, row: 0 };
  });
  const byRun = new Map(bars.map((bar) => [bar.run.id, bar]));
  const arrows = [];
  for (const dispatch of index.dispatches.values()) {
    const sender = index.runs.get(dispatch.made_by);
    const from = sender && byRun.get(sender.id);
    if (!from) continue;
    for (const id of (index.cards[dispatch.id] || { runs: [] }).runs || []) {
      const to = byRun.get(id);
      const step = (sender.steps || []).find((each) => each.type === "dispatch" && each.dispatch.id === dispatch.id);
      if (to && to !== from) arrows.push({ dispatch, from, to, at: (timed ? dispatch.at ?? step?.at : order.get(step?.id)) ?? Math.min(from.to, to.from) });
      break;
    }
  }
  return { runs: bars, arrows, timed, turns: [...index.turns.values()] };
}

function timesOf(index, run) {
  const times = (run.steps || []).flatMap((step) => (step.at === undefined ? [] : [step.at, step.at + (step.seconds || 0)]));
  const from = run.at ?? (times.length ? Math.min(...times) : undefined);
  if (from === undefined) return null;
  const end = run.seconds !== undefined ? from + run.seconds : Math.max(from, ...times);
  return [from, end];
}

// First and last number of the steps of a run and of the runs it delegated to.
function ordered(run, order) {
  const own = (run.steps || []).map((step) => order.get(step.id));
  const below = (run.steps || []).filter((step) => step.run).map((step) => ordered(step.run, order)[1]);
  const all = [...own, ...below];
  return all.length ? [Math.min(...all), Math.max(...all) + 0.8] : [0, 0.8];
}

// Gives each run a row in its agent's lane, so that no two overlap.
function stacked(bars) {
  const lanes = new Map();
  for (const bar of [...bars].sort((a, b) => a.from - b.from || b.to - a.to)) {
    const name = bar.run.agent;
    if (!lanes.has(name)) lanes.set(name, { rows: 0, ends: [] });
    const lane = lanes.get(name);
    let row = lane.ends.findIndex((end) => end <= bar.from);
    if (row < 0) row = lane.ends.length;
    lane.ends[row] = Math.max(bar.to, bar.from);
    bar.row = row;
    lane.rows = lane.ends.length;
  }
  return lanes;
}

// Maps time to px. Idle pauses are shortened.
class Axis {
  constructor(bars, width) {
    this.timed = bars.timed;
    const busy = [];
    for (const { from, to } of [...bars.runs].sort((a, b) => a.from - b.from)) {
      const last = busy[busy.length - 1];
      if (last && from <= last[1]) last[1] = Math.max(last[1], to);
      else busy.push([from, to]);
    }
    const work = busy.reduce((sum, [from, to]) => sum + to - from, 0) || 1;
    this.parts = [];
    let [at, wide] = [0, 0];
    for (const [number_, [from, to]] of busy.entries()) {
      const pause = number_ ? from - busy[number_ - 1][1] : 0;
      const short = pause > IDLE * work;
      wide += short ? IDLE * work : pause;
      this.parts.push({ from, to, at: wide, pause: short ? pause : 0, short: IDLE * work });
      wide += to - from;
    }
    at = wide || 1;
    this.scale = width / at;
  }

  x(time) {
    let part = this.parts[0];
    for (const one of this.parts) {
      if (one.from > time) break;
      part = one;
    }
    return 8 + (part.at + Math.max(0, time - part.from)) * this.scale;
  }

  marks() {
    if (!this.parts.length) return [];
    const least = 90 / this.scale;
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map((by) => by * power).find((by) => by >= least);
    const marks = [];
    for (const part of this.parts) {
      const first = Math.ceil(part.from / step) * step;
      for (let time = first; time <= part.to && marks.length < 400; time += step) {
        const x = this.x(time);
        if (!marks.length || x - marks[marks.length - 1][0] > 60) marks.push([x, this.timed ? duration(time) : "step " + number(Math.round(time) + 1)]);
      }
    }
    return marks;
  }

  pauses() {
    return this.parts.filter((part) => part.pause).map((part) => [8 + (part.at - part.short / 2) * this.scale, "⋯ " + duration(part.pause)]);
  }
}

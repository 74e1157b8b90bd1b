// The graph of agents, laid out by dagre.

import "./app.js";
import { el, shown } from "./report/dom.js";

const SVG = "http://www.w3.org/2000/svg";
const NODE = { height: 44, least: 84, most: 210 };

function svg(tag, about, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(about)) if (value !== null) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function text(about, words) {
  const node = svg("text", about);
  node.textContent = shown(words);
  return node;
}

function short(words, most) {
  const letters = [...words];
  return letters.length > most ? letters.slice(0, most - 1).join("") + "…" : words;
}

function money(value) {
  return "$" + (value < 0.1 ? value.toFixed(4) : value.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 }));
}

// A percentage that is 100 % only for all.
function percent(part, whole) {
  const share = (100 * part) / whole;
  return (part < whole ? Math.min(99, Math.round(share)) : 100) + " %";
}

const measure = document.createElement("canvas").getContext("2d");

function width(words, font) {
  measure.font = font + " " + getComputedStyle(document.body).fontFamily;
  return measure.measureText(words).width;
}

// An edge is bad if more than one score in ten fails: on a busy graph every edge has some failures.
function isBad(edge) {
  return edge.failed > 0.1 * (edge.passed + edge.failed);
}

function labelOf(edge) {
  const judged = edge.passed + edge.failed;
  return [
    ["count", edge.count.toLocaleString("en-US")],
    judged > 0 && [isBad(edge) ? "bad" : "good", percent(edge.passed, judged)],
    edge.cost > 0 && ["cost", money(edge.cost)],
  ].filter(Boolean);
}

// Node ids have a prefix, because the name of an agent may be empty or "user".
const USER = "user";
const idOf = (name) => (name === null ? USER : "agent " + name);

function layout(data, narrow) {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: narrow ? "TB" : "LR", nodesep: 26, ranksep: narrow ? 46 : 76, edgesep: 16, marginx: 6, marginy: 8 });
  const add = (id, label, about) => {
    const wide = Math.min(NODE.most, Math.max(NODE.least, width(label, "600 13px") + 26));
    graph.setNode(id, { ...about, label, width: wide, height: NODE.height });
  };
  const user = data.edges.some((edge) => edge.from === null);
  if (user) add(USER, "user", { kind: "nobody", runs: null, hue: "", href: null });
  for (const one of data.agents) add(idOf(one.name), short(one.name, 26) || "no name", { kind: "agent", ...one });
  for (const [place, edge] of data.edges.entries()) {
    const parts = labelOf(edge);
    const wide = width(parts.map(([, words]) => words).join(" · "), "11.5px") + 12;
    graph.setEdge(idOf(edge.from), idOf(edge.to), { edge, parts, width: wide, height: 18, labelpos: "c", weight: Math.log1p(edge.count) }, String(place));
  }
  dagre.layout(graph);
  return graph;
}

// A line through all points, because the label of an edge is on one of them. Corners are rounded by a spline
// (Catmull-Rom) of half its usual strength: a wider bend would touch the boxes beside it.
function path(points) {
  let line = `M${points[0].x},${points[0].y}`;
  for (let at = 1; at < points.length; at++) {
    const [from, to] = [points[at - 1], points[at]];
    const [before, after] = [points[at - 2] || from, points[at + 1] || to];
    const away = [from.x + (to.x - before.x) / 12, from.y + (to.y - before.y) / 12];
    const near = [to.x - (after.x - from.x) / 12, to.y - (after.y - from.y) / 12];
    line += `C${away} ${near} ${to.x},${to.y}`;
  }
  return line;
}

// A loop from a side of a box around its label and back: dagre only has a straight line there.
function loop(box, { x, y }) {
  const beside = Math.abs(x - box.x) * box.height > Math.abs(y - box.y) * box.width;
  const at = (along, across) => (beside ? `${across},${box.y + along}` : `${box.x + along},${across}`);
  const side = beside ? box.x + (Math.sign(x - box.x) * box.width) / 2 : box.y + (Math.sign(y - box.y) * box.height) / 2;
  const top = ((beside ? x : y) - 0.25 * side) / 0.75; // so that its middle is behind the label
  return `M${at(-14, side)}C${at(-44, top)} ${at(44, top)} ${at(14, side)}`;
}

// The line is drawn into `lines`, below all labels, because the lines of a busy box cross other labels. The link
// contains it as well, so that it can be clicked and is highlighted under the pointer.
function edgeNode(graph, { v, w, name }, most, lines) {
  const about = graph.edge({ v, w, name });
  const { edge, parts, points, x, y } = about;
  const words = parts.map(([, each]) => each).join(" · ");
  const description = `${words}: ${edge.from === null ? "user" : edge.from} to ${edge.to}, ${edge.count} dispatches` +
    (edge.passed + edge.failed ? `, ${edge.passed} scores passed, ${edge.failed} failed` : "");
  const link = svg("a", { href: edge.href, class: "graph-edge" + (isBad(edge) ? " faults" : ""), "aria-label": shown(description) });
  const thick = (1 + 2.6 * Math.sqrt(edge.count / most)).toFixed(2);
  const drawn = { d: v === w ? loop(graph.node(v), about) : path(points), "stroke-width": thick };
  lines.append(svg("path", { ...drawn, class: isBad(edge) ? "faults" : null, "marker-end": isBad(edge) ? "url(#head-bad)" : "url(#head)" }));
  const title = svg("title", {});
  title.textContent = shown(description);
  const label = svg("text", { x, y: y + 4, "text-anchor": "middle" });
  parts.forEach(([kind, words], place) => {
    const part = svg("tspan", { class: kind });
    part.textContent = (place ? " · " : "") + words;
    label.append(part);
  });
  link.append(title, svg("path", drawn), svg("rect", { class: "back", x: x - about.width / 2, y: y - 9, width: about.width, height: 18, rx: 4 }), label);
  return link;
}

function agentNode(about) {
  const group = about.href === null ? svg("g", { class: "graph-node nobody" }) : svg("a", { href: about.href, class: "graph-node " + about.hue });
  const [left, top] = [about.x - about.width / 2, about.y - about.height / 2];
  group.append(svg("rect", { x: left, y: top, width: about.width, height: about.height, rx: 7 }));
  const isUser = about.runs === null;
  group.append(text({ x: about.x, y: about.y + (isUser ? 4 : -2), "text-anchor": "middle" }, about.label));
  if (!isUser) group.append(text({ x: about.x, y: about.y + 14, "text-anchor": "middle", class: "runs" }, about.runs.toLocaleString("en-US") + (about.runs === 1 ? " run" : " runs")));
  return group;
}

function head(id, colour) {
  const marker = svg("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" }, svg("path", { d: "M0,0L8,4L0,8Z" }));
  marker.firstChild.style.fill = colour;
  marker.firstChild.style.stroke = "none";
  return marker;
}

function draw(data, place) {
  const narrow = place.clientWidth < 640;
  const graph = layout(data, narrow);
  const about = graph.graph();
  const [wide, high] = [Math.ceil(about.width), Math.ceil(about.height)];
  const root = svg("svg", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, role: "group", "aria-label": "Agents and their dispatches" });
  root.append(svg("defs", {}, head("head", "var(--faint)"), head("head-bad", "var(--failed)")));
  const most = Math.max(1, ...data.edges.map((edge) => edge.count));
  const lines = svg("g", { class: "graph-lines", "aria-hidden": "true" });
  root.append(lines);
  for (const id of graph.edges()) root.append(edgeNode(graph, id, most, lines));
  for (const id of graph.nodes()) root.append(agentNode(graph.node(id)));
  place.replaceChildren(root);
  // The first agents are at the left, or at the top of a narrow page: there, scroll to the busiest one.
  const first = data.agents.find((one) => data.edges.some((edge) => edge.from === one.name));
  place.scrollLeft = narrow && first ? graph.node(idOf(first.name)).x - place.clientWidth / 2 : 0;
}

const place = document.getElementById("graph");
if (place) {
  const data = JSON.parse(document.getElementById("graph-data").textContent);
  if (data.edges.length) {
    draw(data, place);
    let wide = place.clientWidth;
    addEventListener("resize", () => {
      if ((wide < 640) !== (place.clientWidth < 640)) draw(data, place);
      wide = place.clientWidth;
    });
  } else place.append(el("p", { class: "empty" }, "No agent handed work to another in this period."));
}

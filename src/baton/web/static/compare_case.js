// One case in two evaluations: both runs aligned, and the verdicts that changed.

import { load } from "./app.js";
import { alignedRuns } from "./report/align.js";
import { el, fill, mark, score } from "./report/dom.js";

const place = document.getElementById("aligned");
const toFirst = document.getElementById("to-first");
const sides = [...document.querySelectorAll("[data-side]")];

function scores(view, other) {
  const before = new Map((other?.scores || []).map((one) => [one.evaluator, one]));
  return (view?.scores || []).map((one) => {
    const then = before.get(one.evaluator);
    const changed = other && (!then || then.status !== one.status);
    const value = one.value === null || one.value === undefined ? "" : score(one.value);
    return el("li", { class: changed ? "changed" : null }, mark(one.status), el("span", { dir: "auto" }, one.evaluator), el("span", { class: "dim" }, value), changed && el("p", { class: "dim", dir: "auto" }, (one.reason || "").replaceAll("`", "")));
  });
}

function summary(counts, first) {
  if (first < 0) return "Both runs took the same steps, with the same words.";
  const parts = [
    counts.same && counts.same + " equal",
    counts.other && counts.other + " with different words",
    counts.gone && counts.gone + " only before",
    counts.new && counts.new + " only after",
  ].filter(Boolean);
  return "Steps: " + parts.join(" · ") + ".";
}

Promise.all(sides.map((side) => (side.dataset.address ? load(side.dataset.address) : null))).then(([before, after]) => {
  const views = [before, after];
  sides.forEach((side, at) => fill(side.querySelector("[data-scores]"), scores(views[at], views[1 - at])));
  const missing = views.map((view, at) => view && !view.trace && "No run is shown for \"" + sides[at].dataset.side + "\": " + (view.untold || "nothing was recorded")).filter(Boolean);
  place.removeAttribute("aria-busy");
  document.documentElement.dataset.ready = "true";
  if (!before?.trace || !after?.trace) {
    fill(place, missing.map((text) => el("p", { class: "callout", dir: "auto" }, text + ".")), el("p", { class: "dim said" }, "The steps cannot be compared: this needs two recorded runs."));
    return;
  }
  const drawn = alignedRuns(before.trace, after.trace);
  fill(place, el("p", { class: "dim said" }, summary(drawn.counts, drawn.first)), drawn.node);
  toFirst.hidden = drawn.first < 0;
  const first = document.getElementById("first-difference");
  if (first) {
    toFirst.addEventListener("click", (event) => {
      event.preventDefault();
      first.scrollIntoView({ block: "center" });
      first.focus({ preventScroll: true });
    });
    if (location.hash === "#first-difference") first.scrollIntoView({ block: "center" });
  }
}).catch((error) => fill(place, el("p", { class: "callout error", dir: "auto" }, "The runs could not be loaded: " + error.message)));

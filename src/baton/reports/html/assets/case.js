// One case: its verdicts with their reasons and evidence, then what happened.

import { el, fill, pill, score, sentence } from "./dom.js";
import { RunView } from "./run.js";
import { scorePart } from "./verdict.js";

// `alike` are the repeats of the case with the same result, including this one. Returns the view of
// its run, if it has one.
export function showCase(view, row, alike, names, repeats) {
  const status = names.statuses[row.status];
  const drawn = view.trace ? new RunView(view.trace, view.scores, { address: (id) => "#case" + row.number + "/" + id }) : null;
  const about = [
    repeats > 1 && "repeat " + (row.repeat + 1) + " of " + repeats,
    view.where, view.recorded && view.recorded.location, view.spent,
    view.mean && "mean " + score(...view.mean) + ", needs " + score(view.mean[1], view.mean[0]),
  ].filter(Boolean);
  fill(
    document.getElementById("view"),
    el("header", {}, el("h3", { dir: "auto" }, row.id), pill(status)),
    el("p", { class: "about" }, about.map((text) => el("span", { dir: "auto" }, text))),
    alike.length > 1 && repeatLinks(row, alike, status, repeats),
    row.tags.length > 0 && el("p", { class: "tags" }, row.tags.map((tag) => el("span", { dir: "auto" }, names.tags[tag]))),
    view.error && el("p", { class: "callout error", dir: "auto" }, sentence(view.error)),
    el("h4", {}, "Scores"),
    view.scores.length ? (drawn ? drawn.verdicts : view.scores.map((one) => scorePart(one, null))) : el("p", { class: "dim" }, "Nothing was scored."),
    drawn ? drawn.node : el("p", { class: "gap", dir: "auto" }, "No trace is shown: " + (view.untold || "nothing was recorded") + "."),
  );
  return drawn;
}

function repeatLinks(row, alike, status, repeats) {
  const links = alike.map((one) =>
    el("a", { href: "#case" + one.number, "aria-current": one === row ? "true" : null }, String(one.repeat + 1)));
  return el("p", { class: "repeats" }, el("span", { class: "label" }, status + " " + alike.length + " of " + repeats + ", repeats"), links);
}

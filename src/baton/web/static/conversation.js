// The page of a conversation: draws it, follows it while it is open, and saves labels, comments and cases.

import { addKey, fillTimes, load, lost, send, toast } from "./app.js";
import { REST, add, el, heading, setHue } from "./report/dom.js";
import { RunView } from "./report/run.js";

const PAUSE = 2000; // ms between two checks of an open conversation

const root = document.getElementById("conversation");
const packed = document.getElementById("conversation-data");
let data = null;
let view = null;

function at(name, given) {
  const address = new URL(root.dataset[name], location.href);
  for (const [key, value] of Object.entries(given || {})) address.searchParams.set(key, value);
  return address.pathname + address.search;
}

// ---- Drawing.

const PAGE = {
  level: 2,
  address: (id) => "#" + (view && view.index.cards[id] ? "d-" : "s-") + encodeURIComponent(id),
  opened: (id) => history.replaceState(null, "", id ? PAGE.address(id) : location.pathname + location.search),
  card: (id) => load(at("card", { dispatch: id })).catch(failed),
  facts: (id) => load(at("facts", { dispatch: id })).catch(failed),
  actions,
  notes,
};

function failed(error) {
  toast(error.message, "failed");
  return null;
}

function draw(next) {
  const [before, top] = [view, scrollY];
  const typing = document.activeElement?.closest(".label-form input");
  data = next;
  for (const [name, hue] of Object.entries(data.hues)) setHue(name, hue);
  view = new RunView(data.trace, data.scores, PAGE);
  view.node.querySelector(".short-view").after(verdicts());
  root.replaceChildren(view.node);
  if (before) {
    view.resume(before).then(() => typing && view.aside.querySelector(".label-form input")?.focus({ preventScroll: true }));
    scrollTo({ top, behavior: "instant" });
  }
  comments();
}

function verdicts() {
  const of = (...statuses) => view.verdicts.filter((_, place) => statuses.includes(data.scores[place].status));
  const [loud, fine, silent] = [of("failed", "error"), of("passed"), of("skipped")];
  const folded = (list, word) => list.length > 0 && el("details", { class: "verdict-fold" }, el("summary", {}, list.length + " " + word), list);
  return el(
    "section",
    { class: "verdicts", "aria-label": "Verdicts" },
    heading(2, "h4", "Verdicts"),
    view.verdicts.length ? [loud, folded(fine, "passed"), folded(silent, "skipped")] : el("p", { class: "dim" }, data.state === "open" ? "It will be scored when it ends." : "No rule scored it."),
  );
}

REST.fetch = async (place) => {
  try {
    return (await load(at("text", { at: place }))).text;
  } catch (error) {
    return failed(error);
  }
};

function follow() {
  const [, kind, rest] = /^#([dsr])-(.+)$/.exec(location.hash) || [];
  if (!kind) return;
  const [from, to] = decodeURIComponent(rest).split("..");
  if (kind === "r") showRange(from, to || from);
  else view.show(from);
}

// ---- Labels: right or wrong, with a comment.

const drafts = new Map(); // the comments that are typed and not saved, by dispatch: a card is drawn again when its run grows

function actions(dispatch) {
  const mine = data.labels.filter((label) => label.subject === dispatch.id);
  const lines = mine.map((label) => el("p", { class: "said-label" },
    el("b", { class: label.value === "failed" ? "trouble" : "" }, word(label.value)), " ", el("span", { class: "dim" }, "by " + (label.by || "someone") + ", " + label.rubric),
    " ", when(label.at), label.note && el("span", { dir: "auto" }, " " + label.note)));
  if (!data.may_label) return el("div", { class: "labels" }, lines);
  const judged = view.index.scores.find((one) => one.judge && (one.subject || []).includes(dispatch.id));
  const rubric = el("select", { "aria-label": "Rubric" }, data.rubrics.map((name) => {
    const option = el("option", {}, name);
    option.value = name;
    return option;
  }));
  if (judged && data.rubrics.includes(judged.type)) rubric.value = judged.type;
  const note = el("input", { type: "text", placeholder: "comment", "aria-label": "Comment on the label", maxlength: "10000", autocomplete: "off", oninput: () => drafts.set(dispatch.id, note.value) });
  note.value = drafts.get(dispatch.id) || "";
  const give = (value) => label(dispatch.id, rubric.value, value, note.value);
  return el(
    "div", { class: "labels" },
    el(
      "form", { class: "label-form", onsubmit: (event) => event.preventDefault() },
      el("button", { type: "button", class: "right", onclick: () => give("passed") }, "✓ Right"),
      el("button", { type: "button", class: "wrong", onclick: () => give("failed") }, "✗ Wrong"),
      el("label", {}, "by ", rubric), note,
    ),
    lines,
  );
}

function word(value) {
  return { passed: "✓ right", failed: "✗ wrong" }[value] || String(value);
}

function when(stated) {
  const node = el("time", { datetime: stated, class: "dim" }, stated);
  fillTimes(add(el("span", {}), node));
  return node;
}

async function label(subject, rubric, value, note) {
  try {
    const made = await send(at("labels"), { subject, rubric, value, note });
    (rubric === "comment" ? data.comments : data.labels).unshift(made);
    toast(rubric === "comment" ? "Comment saved." : "Label saved: " + word(value) + ".");
    if (rubric !== "comment") drafts.delete(subject);
    if (rubric !== "comment" && view.current === subject) view.show(subject);
    return true;
  } catch (error) {
    toast(error.message, "failed");
    return false;
  }
}

// ---- Comments on a range of steps.

const form = document.getElementById("comment-form");
const pick = document.getElementById("comment-pick");
const [from, to, note] = ["comment-from", "comment-to", "comment-note"].map((id) => document.getElementById(id));

function rangeOf(label) {
  const [first, last] = (label.subject || "").split("..");
  return [first, last || first];
}

// A mark beside the step where a comment starts.
function notes(id) {
  const here = data.comments.filter((label) => rangeOf(label)[0] === id);
  return here.length > 0 && el("a", { class: "comment-mark", href: "#r-" + encodeURIComponent(here[0].subject) }, here.length === 1 ? "1 comment" : here.length + " comments");
}

function comments() {
  const list = document.getElementById("comment-list");
  list.replaceChildren(...data.comments.map((label) => {
    const [first, last] = rangeOf(label);
    return el(
      "li", { "data-comment": label.subject },
      el("p", {}, el("b", { dir: "auto" }, label.by || "someone"), " ", when(label.at), " on ", el("a", { href: "#r-" + encodeURIComponent(label.subject) }, first === last ? first : first + " to " + last)),
      el("p", { class: "prose", dir: "auto" }, label.note),
    );
  }));
  if (!data.comments.length) list.append(el("li", { class: "dim" }, "No comments yet."));
  form.hidden = !data.may_label;
}

// The steps of a range, in the order of the page; the ends of a reversed range are swapped.
function stepsOf(first, last) {
  const { order } = view.index;
  const places = [order.indexOf(stepOf(first)), order.indexOf(stepOf(last))].sort((a, b) => a - b);
  return places[0] < 0 ? [first] : order.slice(places[0], places[1] + 1);
}

function stepOf(id) {
  if (view.index.steps.has(id)) return id;
  for (const step of view.index.steps.values()) if (step.type === "dispatch" && (step.dispatch.id === id || step.dispatch.call === id)) return step.id;
  return id;
}

function showRange(first, last) {
  view.reveal(first);
  for (const old of view.tree.node.querySelectorAll(".ranged")) old.classList.remove("ranged");
  for (const id of stepsOf(first, last)) if (view.tree.places.has(id)) view.tree.places.get(id).classList.add("ranged");
}

function partOf(node) {
  const part = node instanceof Element ? node.closest("[data-part]") : node?.parentElement?.closest("[data-part]");
  const id = part?.dataset.part;
  return id && view.index.steps.has(stepOf(id)) ? stepOf(id) : null;
}

pick.addEventListener("click", () => {
  const marked = getSelection();
  const ends = marked && !marked.isCollapsed ? [partOf(marked.anchorNode), partOf(marked.focusNode)] : [];
  if (ends[0] && ends[1]) return choose(ends[0], ends[1]);
  const on = pick.getAttribute("aria-pressed") !== "true";
  pick.setAttribute("aria-pressed", String(on));
  if (!on) return;
  from.value = to.value = "";
  view.choose("tree");
  toast("Click the first and the last step.");
  view.node.scrollIntoView({ block: "start" });
});

function choose(first, last) {
  const steps = stepsOf(first, last);
  [from.value, to.value] = [steps[0], steps[steps.length - 1]];
  pick.setAttribute("aria-pressed", "false");
  note.focus();
}

root.addEventListener("click", (event) => {
  if (pick.getAttribute("aria-pressed") !== "true") return;
  const id = partOf(event.target);
  if (!id) return;
  event.preventDefault();
  event.stopPropagation();
  if (from.value) return choose(from.value, id);
  from.value = id;
  showRange(id, id);
}, true);

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const [first, last] = [stepOf(from.value.trim()), stepOf(to.value.trim() || from.value.trim())];
  if (!view.index.steps.has(first) || !view.index.steps.has(last)) return toast("No step has this id: pick one in the tree.", "failed");
  const subject = first === last ? first : first + ".." + last;
  if (!(await label(subject, "comment", "comment", note.value))) return;
  form.reset();
  draw(data);
  location.hash = "r-" + encodeURIComponent(subject);
});

// ---- Saving it as a case.

const dialog = document.getElementById("save");
document.getElementById("save-open")?.addEventListener("click", () => dialog.showModal());
document.getElementById("save-close")?.addEventListener("click", () => dialog.close());
document.getElementById("save-form")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const status = document.getElementById("save-said");
  const given = Object.fromEntries(new FormData(event.target));
  try {
    const saved = await send(at("cases"), given);
    add(status, "");
    status.className = "passed";
    status.textContent = "Saved as " + saved.case + " in " + saved.dataset + "." + saved.notes.map((text) => " " + text + ".").join("");
  } catch (error) {
    status.className = "trouble";
    status.textContent = error.message;
  }
});

// ---- Following an open conversation.

async function look() {
  try {
    const next = await load(at("data", { stamp: data.stamp }));
    if (next.deleted) return;
    if (!next.same) {
      const more = (next.trace.turns || []).length - (data.trace.turns || []).length;
      const before = view.index.order.length;
      draw(next);
      const steps = view.index.order.length - before;
      const grown = document.getElementById("grown");
      const news = [more > 0 && more + (more === 1 ? " turn" : " turns"), steps > 0 && steps + (steps === 1 ? " step" : " steps")].filter(Boolean);
      grown.textContent = (news.length ? news.join(" and ") + " more." : "The record was updated.") + (next.state === "open" ? "" : " It has ended.");
      grown.hidden = false;
      document.getElementById("figures").dispatchEvent(new Event("grown"));
    }
  } catch {
    lost();
  }
  if (data.state === "open") setTimeout(look, PAUSE);
}

if (packed) {
  draw(JSON.parse(packed.textContent));
  packed.remove();
  document.documentElement.dataset.ready = "true";
  performance.mark("drawn");
  requestAnimationFrame(follow);
  addEventListener("hashchange", follow);
  if (data.state === "open") setTimeout(look, PAUSE);
  addKey("n", "Next dispatch", () => view.beside(1));
  addKey("p", "Previous dispatch", () => view.beside(-1));
  addKey("l", "Lanes or tree", () => view.choose(view.chosen === "tree" ? "lanes" : "tree"));
  addKey("x", "Close the card", () => view.current && view.close());
}

// The card of a dispatch: what led to it, what was asked and what arrived, tools, the result and its use.

import { agent, counted, duration, el, heading, line, number, prose, scrolled, shown, textOf } from "./dom.js";
import { wordDiff } from "./diff.js";
import { basis, madeUp, state, stepLine } from "./tree.js";
import { jump, scorePart } from "./verdict.js";

const DIFF = 60000; // most characters of two texts to compare

// Draws the card. `about` has the index, functions that go to parts of the trace, and the additions of the page.
export function dispatchCard(id, about) {
  const { index } = about;
  const dispatch = index.dispatches.get(id);
  const card = index.cards[id] || {};
  const turn = index.turnOf.get(id);
  const labels = [
    dispatch.kind, dispatch.mode, dispatch.to_kind, dispatch.group !== undefined && "group " + dispatch.group,
    dispatch.seconds !== undefined && duration(dispatch.seconds), dispatch.cost,
  ].filter(Boolean);
  const scores = (index.verdicts.get(id) || []).map((place) => index.scores[place]);
  return el(
    "article",
    { class: "dispatch-card", "aria-label": "Dispatch to " + dispatch.to },
    el(
      "header",
      {},
      heading(
        about.page.level, "card-title", dispatch.sender ? agent(dispatch.sender) : el("span", { class: "dim" }, "the program"),
        el("span", { class: "arrow" }, "→"), agent(dispatch.to), state(dispatch.status, "completed"),
      ),
      el("button", { type: "button", class: "close", "aria-label": "Close the card", onclick: () => about.close() }, "✕"),
    ),
    el("p", { class: "about" }, labels.map((text) => el("span", {}, text)), basis(dispatch), madeUp(dispatch), el("span", {}, el("a", { href: about.page.address(id), class: "permalink" }, "link")), el("span", {}, jump(id, about, "in the tree"))),
    upward(dispatch, about),
    about.page.actions && about.page.actions(dispatch),
    dispatch.error && el("p", { class: "callout error", dir: "auto" }, dispatch.error),
    scores.length > 0 && row(about, "Verdicts", verdicts(scores, about)),
    row(about, "What led to it", led(card, turn, about)),
    row(about, "Asked", asked(dispatch)),
    row(about, "Received", received(dispatch, card, about)),
    row(about, "Tools", tools(card)),
    row(about, "Its work", work(dispatch, card, about)),
    row(about, "Result", result(dispatch, card, index)),
    card.facts ? row(about, "Used again", facts(card, about)) : about.page.facts && card.runs && laterFacts(dispatch, about),
    row(about, "Then", lines(card.after, about, card.later, "The caller did nothing afterwards.")),
  );
}

function row(about, title, ...content) {
  return el("section", { class: "card-row" }, heading(about.page.level + 1, "h4", title), el("div", {}, content));
}

// The dispatch that started the sender.
function upward(dispatch, about) {
  const above = about.index.startedBy.get(dispatch.made_by);
  if (!above || above.id === dispatch.id) return null;
  return el("p", { class: "dim" }, el("span", { class: "label" }, "below"), el("button", { type: "button", class: "plain", onclick: () => about.open(above.id) }, above.sender ? agent(above.sender) : "the program", " → ", agent(above.to)));
}

function verdicts(scores, about) {
  const draw = (one) => scorePart(one, about);
  const skipped = scores.filter((one) => one.status === "skipped");
  return [
    ["failed", "error", "passed"].map((status) => scores.filter((one) => one.status === status).map(draw)),
    skipped.length > 0 && el("details", { class: "raw" }, el("summary", {}, number(skipped.length) + " skipped"), skipped.map(draw)),
  ];
}

function led(card, turn, about) {
  const user = turn && turn.input
    ? el("button", { type: "button", class: "step-line", onclick: () => about.reveal(turn.id) }, el("span", { class: "label" }, "user"), line(turn.input, 200))
    : el("p", { class: "gap" }, turn && turn.input_unknown ? "The user's message is not recorded." : "No user message.");
  return [user, card.earlier && el("p", { class: "dim" }, "… " + counted(card.earlier, "step") + " before"), lines(card.before, about)];
}

function lines(ids, about, left, none) {
  if (!ids || !ids.length) return none && el("p", { class: "dim" }, none);
  return [
    ids.map((id) => el("button", { type: "button", class: "step-line", dir: "auto", onclick: () => about.reveal(id) }, stepLine(about.index, id))),
    left && el("p", { class: "dim" }, "… " + counted(left, "step") + " more"),
  ];
}

function asked(dispatch) {
  const unknown = (dispatch.unknown || []).includes("prompt");
  return [
    dispatch.description && el("p", { class: "dim", dir: "auto" }, dispatch.description),
    dispatch.prompt ? prose(dispatch.prompt) : el("p", { class: unknown ? "gap" : "dim" }, unknown ? "What was asked is not recorded." : "No message was sent with it."),
    dispatch.context && el("details", { class: "raw" }, el("summary", {}, "sent along"), prose(dispatch.context, "mono")),
  ];
}

// What the receiver actually got, compared with the request of the sender.
function received(dispatch, card, about) {
  const run = (card.runs || []).map((id) => about.index.runs.get(id)).find(Boolean);
  const note_ = {
    nobody: "No run was started.",
    unknown: "What the receiver got is not recorded.",
    nothing: "The receiver got no message.",
    same: "✓ Exactly what was asked.",
  }[card.got];
  const held = (card.held || []).map((one) => heldPart(one, about));
  return [
    note_ ? el("p", { class: card.got === "unknown" ? "gap" : "dim" }, note_) : run && run.input && compared(dispatch.prompt, run.input),
    held.length > 0 && el("details", { class: "raw" }, el("summary", {}, "and with it: " + counted(held.length, "earlier text")), held),
    card.held_unknown && card.got !== "unknown" && el("p", { class: "gap" }, "Its other input is not recorded."),
  ];
}

function heldPart(one, about) {
  if (one.left) return el("p", { class: "dim" }, "… " + number(one.left) + " more");
  if (one.id === undefined) return prose(one.text, "quote");
  const turn = about.index.turns.get(one.id);
  const text = turn ? [el("span", { class: "label" }, "user"), line(turn.input)] : stepLine(about.index, one.id);
  return el("button", { type: "button", class: "step-line", dir: "auto", onclick: () => about.reveal(one.id) }, text);
}

function compared(prompt, input) {
  const [before, after] = [textOf(prompt), textOf(input)];
  const cut = (prompt && prompt.more) || input.more;
  if (!prompt || cut || before.length + after.length > DIFF) return prose(input);
  const parts = wordDiff(before, after);
  const count = (kind) => parts.filter((each) => each[0] === kind && each[1].trim()).length;
  const [lost, added] = [count("lost"), count("added")];
  const same = parts.filter((each) => each[0] === "same").reduce((sum, each) => sum + each[1].length, 0);
  // If the texts have almost nothing in common, a word diff is useless.
  if (2 * same < Math.min(before.length, after.length)) return [el("p", { class: "dim" }, "Different from what was asked:"), prose(input)];
  return [
    el("p", { class: "dim" }, lost + added ? [lost > 0 && el("span", { class: "lost-note" }, number(lost) + " lost"), lost > 0 && added > 0 && " · ", added > 0 && el("span", { class: "added-note" }, number(added) + " added")] : "The same words; only the spacing differs."),
    el("div", { class: "prose diff", dir: "auto" }, parts.map(([kind, text]) => (kind === "same" ? text : el(kind === "lost" ? "del" : "ins", { title: kind }, shown(text))))),
  ];
}

// One row for each tool: allowed, offered, used, refused.
function tools(card) {
  const { allowed, offered, used = [], source, used_unknown } = card.tools || {};
  const patterns = Array.isArray(allowed) ? allowed : [];
  const names = [...new Set([...used.map((one) => one.name), ...patterns, ...(offered || [])])];
  const notes = [
    allowed === "all" && "All tools are allowed" + (source ? " (" + source + ")" : "") + ".",
    allowed === undefined && "The allowed tools are not recorded.",
    patterns.length === 0 && Array.isArray(allowed) && "No tool is allowed.",
    offered === undefined && "The offered tools are not recorded.",
    used_unknown && "Its calls are not recorded in full.",
    !used.length && !used_unknown && "It used no tool.",
  ].filter(Boolean);
  const note = notes.length > 0 && el("p", { class: "gap" }, notes.join(" "));
  if (!names.length) return note;
  const yes = (is, known) => el("td", { class: "figure" }, known ? (is ? el("span", { title: "yes" }, "✓") : el("span", { class: "dim", title: "no" }, "–")) : el("span", { class: "dim", title: "not recorded" }, "?"));
  const shownNames = names.slice(0, 30);
  return [
    scrolled(
      "Tools",
      el(
        "table", { class: "compact tool-table" },
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "tool"), ["allowed", "offered", "used", "refused", "failed"].map((title) => el("th", { scope: "col" }, title)))),
        el("tbody", {}, shownNames.map((name) => {
          const one = used.find((each) => each.name === name);
          return el(
            "tr", {}, el("th", { scope: "row", class: "tool", dir: "auto" }, name),
            yes(allowed === "all" || patterns.includes(name), allowed !== undefined && (allowed === "all" || patterns.includes(name) || !patterns.some((each) => /[*(]/.test(each)))),
            yes(offered && offered.includes(name), offered !== undefined),
            el("td", { class: "figure" }, one ? number(one.count) + "×" : "–"),
            el("td", { class: "figure " + (one && one.refused ? "failed" : "") }, one && one.refused ? number(one.refused) + "×" : ""),
            el("td", { class: "figure " + (one && one.failed ? "failed" : "") }, one && one.failed ? number(one.failed) + "×" : ""),
          );
        })),
      ),
    ),
    names.length > 30 && el("p", { class: "dim" }, "and " + number(names.length - 30) + " more"),
    note,
  ];
}

function work(dispatch, card, about) {
  const runs = (card.runs || []).map((id) => about.index.runs.get(id)).filter(Boolean);
  if (!runs.length) return el("p", { class: "dim" }, "No run was started.");
  return [
    runs.slice(0, 6).map((run) => {
      const steps = run.steps || [];
      const calls = steps.filter((step) => step.type === "call");
      const handed = steps.filter((step) => step.type === "dispatch");
      const counts = [
        counted(steps.length, "step"), calls.length > 0 && counted(calls.length, "tool call"),
        handed.length > 0 && counted(handed.length, "dispatch", "dispatches"), run.seconds !== undefined && duration(run.seconds), run.tokens, run.model,
      ].filter(Boolean);
      const trouble = run.error || (calls.find((call) => call.error) || {}).error;
      return el(
        "div", { class: "work" },
        el("p", {}, agent(run.agent), " ", counts.map((text) => el("span", { class: "dim part" }, text)), state(run.status, "completed"), " ", jump(run.id, about, "show")),
        trouble && el("p", { class: "trouble", dir: "auto" }, line(trouble, 300)),
        handed.map((step) => el("button", { type: "button", class: "step-line", onclick: () => about.open(step.dispatch.id) }, el("span", { class: "arrow" }, "→ "), agent(step.dispatch.to), " ", line(step.dispatch.prompt))),
      );
    }),
    runs.length > 6 && el("p", { class: "dim" }, "and " + number(runs.length - 6) + " more runs"),
  ];
}

function result(dispatch, card, index) {
  const back = card.back && index.dispatches.get(card.back);
  const text = (back && (back.result || back.prompt)) || dispatch.result;
  if (text) return prose(text);
  if (card.result_unknown) return el("p", { class: "gap" }, "What came back is not recorded.");
  return el("p", { class: "dim" }, card.runs && dispatch.kind !== "delegate" ? "Control moved on; nothing had to come back." : "Nothing came back.");
}

// For pages that load the facts only when a card is open.
function laterFacts(dispatch, about) {
  const node = el("div", {});
  about.page.facts(dispatch.id).then((card) => {
    if (card && card.facts) node.replaceChildren(row(about, "Used again", facts(card, about)));
  });
  return node;
}

// The facts of the result, each with the steps that used it again.
function facts(card, about) {
  const used = card.facts.filter((one) => one.ids);
  const unused = card.facts.filter((one) => !one.ids);
  return [
    el("p", { class: "dim" }, number(used.length) + " of " + number(card.facts.length) + (card.more_facts ? "+" : "") + (card.facts.length === 1 ? " fact" : " facts") + " new to the caller were used again" + (used.some((one) => one.own) ? "; those marked * were also returned by its own tool calls" : "")),
    used.length > 0 && el("ul", { class: "facts" }, used.map((one) =>
      el("li", {}, el("b", { dir: "auto" }, one.text + (one.own ? " *" : "")), " ", one.ids.slice(0, 3).map((id) => jump(id, about, where(about.index, id))), one.ids.length > 3 && el("span", { class: "dim" }, "+" + (one.ids.length - 3))))),
    unused.length > 0 && el("p", { class: "facts unused" }, el("span", { class: "label" }, "not used again"), unused.map((one) => el("span", { class: "fact", dir: "auto" }, one.text))),
  ];
}

function where(index, id) {
  const step = index.steps.get(id);
  if (index.turns.has(id)) return "the answer";
  if (index.dispatches.has(id)) return "→ " + index.dispatches.get(id).to;
  if (step && step.type === "call") return step.name;
  return step ? "said" : id;
}

// Talk to an agent: messages and their runs, editing and resending; the cases are beside it.

import { addKey, load, send, toast } from "./app.js";
import { CasePanel, askName, at, newDataset } from "./cases.js";
import { REST, agent as agentChip, el, fill, prose, setHue } from "./report/dom.js";
import { RunView } from "./report/run.js";

const root = document.getElementById("playground");

if (root) {
  const about = JSON.parse(root.dataset.about);
  const log = document.getElementById("log");
  const trace = document.getElementById("trace");
  const composer = document.getElementById("composer");
  const message = composer.querySelector("textarea");
  const sending = composer.querySelector("button");
  const state = document.getElementById("chat-state");
  const who = document.getElementById("agent");
  const user = document.getElementById("user");
  const begins = document.getElementById("state");
  const endButton = document.getElementById("end");
  const capture = document.getElementById("capture");
  const choice = document.getElementById("dataset");
  let chat = null;
  let view = null;
  let run = null;
  let timer = 0;
  let since = 0;
  let clock = 0;
  let editing = false; // a message is being edited: do not redraw the log

  const panel = new CasePanel(document.getElementById("cases"), about, { agent: () => who.value });
  REST.fetch = async (place) => (await load(at(about, "/data/playground/text", { id: chat, at: place }))).text;

  // ---- The conversation.

  function chain(turn) {
    const parts = [];
    for (const [place, name] of turn.agents.entries()) {
      if (place) parts.push(el("span", { class: "arrow", "aria-label": "then" }, "→"));
      parts.push(agentChip(name));
    }
    const counts = new Map();
    for (const call of turn.calls) counts.set(call.name, (counts.get(call.name) || 0) + 1);
    for (const [name, count] of counts) parts.push(el("code", { class: "called", title: "tool" }, name + (count > 1 ? ` ×${count}` : "")));
    if (turn.seconds) parts.push(el("span", { class: "dim" }, turn.seconds < 10 ? turn.seconds.toFixed(1) + " s" : Math.round(turn.seconds) + " s"));
    return parts;
  }

  function userMessage(text, place) {
    const body = el("div", { class: "bubble user", dir: "auto" }, text);
    const edit = el("button", { type: "button", class: "plain edit", title: "Edit this message and send it again", onclick: () => rewrite(place, text, node) }, "edit");
    const node = el("div", { class: "said" }, edit, body);
    return node;
  }

  function rewrite(place, text, node) {
    const input = el("textarea", { rows: Math.min(8, text.split("\n").length + 1), dir: "auto", "aria-label": "The message, edited" });
    input.value = text;
    const note = place ? `A new conversation: ${place === 1 ? "the message before is" : `the ${place} messages before are`} sent again, then this one.` : "A new conversation starts with this message.";
    editing = true;
    const form = el("form", { class: "rewrite" }, input, el("p", { class: "dim" }, note), el("div", { class: "buttons" },
      el("button", { type: "button", onclick: () => { editing = false; draw(); } }, "Cancel"), el("button", { type: "submit", class: "primary" }, "Send again")));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      editing = false;
      begin([...view.messages.slice(0, place), input.value]);
    });
    fill(node, form);
    input.focus();
  }

  function answer(turn, text) {
    if (!turn) return null;
    const problem = turn.error ? el("p", { class: "callout error" }, turn.error) : null;
    const open = el("button", { type: "button", class: "plain show-run", onclick: () => { tab("Trace"); run?.reveal(turn.id); } }, "show the run");
    const line = el("div", { class: "chain-line" }, chain(turn), open);
    if (text === null && isRunning(turn)) return el("div", { class: "answer" }, line);
    return el("div", { class: "answer" }, line, text === null ? el("div", { class: "bubble agent-said none" }, "no text") : el("div", { class: "bubble agent-said" }, prose(text)), problem);
  }

  function isBusy() {
    return Boolean(view) && ["starting", "working"].includes(view.state);
  }

  function isRunning(turn) {
    return isBusy() && turn.status === "incomplete";
  }

  function draw() {
    if (editing) return drawState();
    const near = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
    const turns = view ? view.turns : [];
    const nodes = [];
    (view ? view.messages : []).forEach((text, place) => {
      nodes.push(userMessage(text, place));
      if (turns[place]) nodes.push(answer(turns[place], turns[place].output));
    });
    if (view && view.state === "failed") nodes.push(el("p", { class: "callout error", role: "alert" }, view.error || "the conversation failed", el("br"), "Edit a message above to continue from there."));
    if (isBusy()) nodes.push(el("p", { class: "working", role: "status" }, el("span", { class: "pulse", "aria-hidden": "true" }), view.state === "starting" ? `${view.agent} is starting` : `${view.agent} is working`, el("span", { id: "clock", class: "dim" })));
    if (!nodes.length) nodes.push(el("p", { class: "nothing" }, "Say something to ", el("b", {}, who.value), ". Each message shows which agents worked and what they passed on; a good conversation becomes a case with one click."));
    fill(log, nodes);
    if (near) log.scrollTop = log.scrollHeight;
    drawState();
  }

  function drawState() {
    const now = view ? view.state : "new";
    const words = { new: "not started", starting: "starting", working: "working", waiting: "your turn", ended: "ended", failed: "failed" };
    const kinds = { waiting: "passed", failed: "failed", ended: "skipped", new: "skipped", starting: "running", working: "running" };
    fill(state, el("span", { class: "status " + kinds[now] }, el("span", { class: "mark", "aria-hidden": "true" }, { passed: "✓", failed: "✗", skipped: "–", running: "●" }[kinds[now]]), words[now]),
      view && view.again ? el("span", { class: "dim" }, "replayed from the first message each time") : null);
    const busy = isBusy();
    sending.disabled = busy;
    sending.textContent = now === "waiting" || busy ? "Send" : "Start";
    endButton.hidden = !(busy || now === "waiting");
    const open = busy || now === "waiting";
    for (const each of [user, begins]) each.disabled = open;
    capture.disabled = !(choice.value && view && view.turns.length);
    capture.title = !choice.value ? "Choose a dataset first" : view && view.turns.length ? "" : "Talk to the agent first";
  }

  function drawTrace() {
    if (!view || !view.run) {
      fill(trace, el("p", { class: "nothing" }, "Nothing has run yet."));
      run = null;
      return;
    }
    const [before, top] = [run, trace.scrollTop];
    for (const turn of view.run.turns || []) if (isRunning(turn)) underWay(turn);
    run = new RunView(view.run, [], { address: (id) => "#" + id });
    fill(trace, el("h2", { class: "sr" }, "Trace"), el("h3", { class: "sr" }, "The run"), run.node);
    if (!before) return;
    run.resume(before);
    trace.scrollTop = top;
  }

  // While a turn is running, a missing answer is not a fault yet.
  function underWay(part) {
    if (["incomplete", "unanswered"].includes(part.status)) part.status = "in progress";
    for (const inner of Object.values(part)) if (inner && typeof inner === "object") underWay(inner);
  }

  function tab(name) {
    for (const button of document.querySelectorAll("[data-left]")) button.setAttribute("aria-pressed", String(button.dataset.left === name));
    log.hidden = name !== "Conversation";
    trace.hidden = name !== "Trace";
    if (name === "Trace") drawTrace();
  }

  // ---- Polling: often while the agent works, rarely while it waits.

  async function look() {
    clearTimeout(timer);
    const id = chat;
    try {
      const update = await load(at(about, "/data/playground/chat", { id, version: view ? view.version : "" }));
      if (id !== chat) return;
      if (update.state) {
        view = update;
        for (const [name, hue] of Object.entries(update.hues)) setHue(name, hue);
        draw();
        if (!trace.hidden) drawTrace();
      }
    } catch (problem) {
      if (id !== chat) return;
      if (/no longer exists/.test(problem.message)) {
        if (view) { view.state = "ended"; view.error = problem.message; draw(); }
        toast(problem.message, "failed");
        return;
      }
    }
    if (!view || isBusy()) timer = setTimeout(look, 350);
    else if (view.state === "waiting") timer = setTimeout(look, 15000);
  }

  clock = setInterval(() => {
    const node = document.getElementById("clock");
    if (node) fill(node, ` ${Math.round((Date.now() - since) / 1000)} s`);
  }, 1000);
  addEventListener("pagehide", () => clearInterval(clock));
  document.addEventListener("baton:back", () => { if (chat) look(); });

  async function begin(messages) {
    sending.disabled = true;
    try {
      const instead = chat && view && ["starting", "working", "waiting"].includes(view.state) ? chat : "";
      const made = await send(at(about, "/do/playground/start"), { agent: who.value, message: messages, user: user.value, state: begins.value, instead });
      chat = made.id;
      view = null;
      run = null;
      since = Date.now();
      message.value = "";
      history.replaceState(null, "", at(about, "/playground", { chat, dataset: choice.value }));
      await look();
    } catch (problem) {
      toast(problem.message, "failed");
      sending.disabled = false;
    }
  }

  composer.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = message.value.trim();
    if (!text || sending.disabled) return;
    if (!view || !["waiting"].includes(view.state)) {
      await begin([text]);
      return;
    }
    try {
      sending.disabled = true;
      await send(at(about, "/do/playground/say"), { id: chat, message: text });
      message.value = "";
      since = Date.now();
      await look();
    } catch (problem) {
      toast(problem.message, "failed");
      sending.disabled = false;
    }
  });
  message.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      composer.requestSubmit();
    }
  });
  endButton.addEventListener("click", async () => {
    await send(at(about, "/do/playground/end"), { id: chat }).catch((problem) => toast(problem.message, "failed"));
    look();
  });
  function renew() {
    if (chat && view && ["starting", "working", "waiting"].includes(view.state)) send(at(about, "/do/playground/end"), { id: chat }).catch(() => {});
    chat = null;
    view = null;
    clearTimeout(timer);
    history.replaceState(null, "", at(about, "/playground", { dataset: choice.value }));
    draw();
    tab("Conversation");
    message.focus();
  }
  document.getElementById("new").addEventListener("click", renew);
  who.addEventListener("change", () => { if (chat) renew(); else draw(); });
  for (const button of document.querySelectorAll("[data-left]")) button.addEventListener("click", () => tab(button.dataset.left));
  for (const button of document.querySelectorAll("[data-right]")) {
    button.addEventListener("click", () => {
      for (const other of document.querySelectorAll("[data-right]")) other.setAttribute("aria-pressed", String(other === button));
      for (const pane of document.querySelectorAll("[data-pane]")) pane.hidden = pane.dataset.pane !== button.dataset.right;
    });
  }

  // ---- Cases.

  async function choose(name) {
    choice.value = name;
    history.replaceState(null, "", at(about, "/playground", { chat, dataset: name }));
    drawState();
    await panel.show(name).catch((problem) => toast(problem.message, "failed"));
  }
  choice.addEventListener("change", () => choose(choice.value));
  document.getElementById("new-set").addEventListener("click", () => newDataset(about, about.homes[who.value] || { place: about.places[0], kind: "baton" }, async (made) => {
    choice.append(el("option", { value: made.name }, made.name));
    await choose(made.name);
  }));
  capture.addEventListener("click", () => askName("Add current session", "Name of the case", { hint: `It is saved in ${choice.value}. The recorded behaviour becomes the expected behaviour.`, save: "Add" }, async (name) => {
    const saved = await send(at(about, "/do/playground/capture"), { id: chat, name: choice.value, case: name });
    toast([`Added ${name}`, ...saved.notes].join("; "), "passed");
    await panel.load();
  }));

  addKey("m", "Write a message", () => message.focus());
  addKey("n", "New conversation", renew);
  addKey("v", "Switch between conversation and trace", () => tab(log.hidden ? "Conversation" : "Trace"));

  const given = new URLSearchParams(location.search);
  if (given.get("dataset") && [...choice.options].some((one) => one.value === given.get("dataset"))) choose(given.get("dataset"));
  else if (choice.options.length === 2) choose(choice.options[1].value);
  else panel.show("");
  if (given.get("chat")) {
    chat = given.get("chat");
    look().then(() => { if (view) who.value = view.agent; });
  }
  draw();
}

// Selects, runs and edits the cases of a dataset; used by the playground and the page of a dataset.

import { load, send, toast } from "./app.js";
import { el, fill, counted } from "./report/dom.js";

const MARKS = { passed: "✓", failed: "✗", error: "!", skipped: "–", running: "●" };

// An address in the project of the page.
export function at(about, path, given = {}) {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) if (value !== null && value !== undefined && value !== "") all.set(name, value);
  if (about.project) all.set("project", about.project);
  const text = all.toString();
  return text ? `${path}?${text}` : path;
}

export function statusMark(status) {
  if (!status) return el("span", { class: "status skipped", title: "not run yet" }, el("span", { class: "mark", "aria-hidden": "true" }, "·"), el("span", { class: "word" }, "not run"));
  const kind = { passed: "passed", failed: "failed", error: "error", skipped: "skipped" }[status] || "running";
  return el("span", { class: "status " + kind }, el("span", { class: "mark", "aria-hidden": "true" }, MARKS[kind]), el("span", { class: "word" }, status));
}

// A dialog with a form; resolves when it is closed.
export function ask(title, body, buttons) {
  const id = "dialog-" + Math.random().toString(36).slice(2);
  const box = el("dialog", { class: "ask", "aria-labelledby": id }, el("h2", { id }, title), body, buttons && el("div", { class: "buttons" }, buttons));
  document.body.append(box);
  box.addEventListener("close", () => box.remove());
  box.showModal();
  return box;
}

export function field(label, input, hint) {
  const id = "field-" + Math.random().toString(36).slice(2);
  input.id = id;
  const note = hint ? el("small", { id: id + "-hint" }, hint) : null;
  if (note) input.setAttribute("aria-describedby", id + "-hint");
  return el("div", { class: "field" }, el("label", { for: id }, label), input, note);
}

function withValue(node, value) {
  node.value = value ?? "";
  return node;
}

// Asks for a name and calls `run` with it; errors are shown in the dialog.
export function askName(title, label, { value = "", hint = "", save = "Save", more = null }, run) {
  const input = withValue(el("input", { type: "text", maxlength: "200", autocomplete: "off", required: true }), value);
  const error = el("p", { class: "form-error", role: "alert", hidden: true });
  const button = el("button", { type: "submit", class: "primary" }, save);
  const form = el("form", { method: "dialog" }, field(label, input, hint), more, error, el("div", { class: "buttons" }, el("button", { type: "button", class: "cancel" }, "Cancel"), button));
  const box = ask(title, form);
  form.querySelector(".cancel").addEventListener("click", () => box.close());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      await run(input.value.trim());
      box.close();
    } catch (problem) {
      fill(error, problem.message).hidden = false;
      button.disabled = false;
      input.focus();
    }
  });
  input.select();
  return box;
}

export function newDataset(about, home, done) {
  const place = el("select", {}, about.places.map((one) => el("option", { value: one, selected: one === home.place }, one)));
  const kind = el("select", {}, [["baton", "Baton (YAML)"], ["adk", "ADK eval set (JSON)"]].map(([value, name]) => el("option", { value, selected: value === home.kind }, name)));
  const more = el("div", { class: "pair" }, field("Folder", place), field("Format", kind));
  return askName("New dataset", "Name", { hint: "The file is named after it.", save: "Create", more }, async (title) => {
    const made = await send(at(about, "/do/datasets/create"), { title, place: place.value, kind: kind.value });
    toast(`Created ${made.name}`, "passed");
    await done(made);
  });
}

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'";
}

export class CasePanel {
  // `about` has project, agents, judges, evaluators, places and mayChange; `wide` draws a table.
  constructor(node, about, { wide = false, agent = () => null } = {}) {
    this.node = node;
    this.about = about;
    this.wide = wide;
    this.agent = agent;
    this.chosen = new Set();
    this.filter = { text: "", agent: "", tag: "", status: "" };
    this.live = {};
    this.job = null;
    this.list = el("div", { class: "case-list" });
    this.bar = el("div", { class: "run-bar" });
    this.progress = el("div", { class: "run-progress", role: "status" });
    this.count = el("span", { class: "dim", role: "status" });
    this.options = this.makeOptions();
    this.tools = el("div", { class: "case-tools" });
    fill(node, this.tools, this.list, this.options.node, this.bar, this.progress);
  }

  async show(name) {
    this.name = name;
    this.chosen.clear();
    this.live = {};
    fill(this.progress);
    clearTimeout(this.timer);
    if (!name) {
      fill(this.list);
      this.node.hidden = true;
      return;
    }
    this.node.hidden = false;
    this.drawTools();
    await this.load();
    if (this.data && this.data.running.length && !this.job) this.follow(this.data.running[0]);
  }

  async load() {
    const name = this.name;
    const turn = (this.turn = (this.turn || 0) + 1);
    let data = { reading: true };
    while (data.reading) {
      data = await load(at(this.about, "/data/datasets/cases", { name, ...this.filter }));
      if (name !== this.name || turn !== this.turn) return;
      // A large file that changed is being read again; the old list stays meanwhile.
      if (data.reading) {
        fill(this.count, "reading the file…");
        await new Promise((done) => setTimeout(done, 300));
      }
    }
    this.data = data;
    const known = new Set(data.cases.map((one) => one.id));
    for (const id of this.chosen) if (!known.has(id)) this.chosen.delete(id);
    this.draw();
  }

  drawTools() {
    const search = withValue(el("input", { type: "search", placeholder: "Filter cases", "aria-label": "Filter cases", "data-search": true }), this.filter.text);
    let wait = 0;
    search.addEventListener("input", () => {
      clearTimeout(wait);
      wait = setTimeout(() => this.refine({ text: search.value.trim() }), 150);
    });
    fill(this.tools, search, this.count);
  }

  refine(change) {
    Object.assign(this.filter, change);
    this.load().catch((problem) => toast(problem.message, "failed"));
  }

  draw() {
    const { cases, matches, total, problem } = this.data;
    fill(this.count, matches === total ? counted(total, "case") : `${matches.toLocaleString("en-US")} of ${counted(total, "case")}`);
    if (problem) {
      fill(this.list, el("p", { class: "callout error" }, problem));
    } else if (!total) {
      fill(this.list, el("p", { class: "nothing" }, this.wide ? "No case yet. Talk to an agent in the playground and add the session, or write one as YAML." : "No case yet: talk to the agent, then add the current session."));
    } else {
      // Without room for a table, use the short list of the playground.
      fill(this.list, this.wide && innerWidth >= 700 ? this.table(cases) : el("ul", { class: "rows" }, cases.map((one) => this.row(one))));
      if (matches > cases.length) this.list.append(el("p", { class: "dim" }, `Only the first ${cases.length} are shown; filter to see others. A run includes all that match.`));
    }
    this.drawBar();
  }

  check(one) {
    const box = el("input", { type: "checkbox", "aria-label": `Select ${one.id}` });
    box.checked = this.chosen.has(one.id);
    box.addEventListener("change", () => {
      if (box.checked) this.chosen.add(one.id);
      else this.chosen.delete(one.id);
      this.drawBar();
    });
    return box;
  }

  status(one) {
    const cell = el("span", { class: "result" });
    cell.dataset.case = one.id;
    const status = one.id in this.live ? this.live[one.id] : one.status;
    const shown = statusMark(status);
    return add(cell, one.evaluation ? el("a", { href: at(this.about, `/evaluations/${one.evaluation}`), title: "Open the evaluation" }, shown) : shown);
  }

  row(one) {
    return el("li", { "data-row": true }, this.check(one), this.status(one),
      el("button", { type: "button", class: "plain case-name", onclick: () => this.edit(one.id), title: "Open the case" },
        el("b", { dir: "auto" }, one.id), el("span", { class: "dim", dir: "auto" }, one.message)));
  }

  table(cases) {
    const all = el("input", { type: "checkbox", "aria-label": "Select all shown cases" });
    all.checked = cases.every((one) => this.chosen.has(one.id));
    all.addEventListener("change", () => {
      for (const one of cases) {
        if (all.checked) this.chosen.add(one.id);
        else this.chosen.delete(one.id);
      }
      this.draw();
    });
    const head = ["Case", "Message", "Agents expected", "Tags", "Turns", "Last result"];
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of cases" }, el("table", { class: "list" },
      el("thead", {}, el("tr", {}, el("th", {}, all), head.map((name) => el("th", { class: name === "Turns" ? "figure" : null }, name)))),
      el("tbody", {}, cases.map((one) => el("tr", { "data-row": true },
        el("td", {}, this.check(one)),
        el("td", {}, el("button", { type: "button", class: "plain link", dir: "auto", onclick: () => this.edit(one.id) }, one.id)),
        el("td", { class: "message-cell", dir: "auto" }, one.message),
        el("td", {}, one.agents.map((name) => [el("button", { type: "button", class: "chip", title: `Only cases that expect ${name}`, onclick: () => this.refine({ agent: this.filter.agent === name ? "" : name }) }, name), " "])),
        el("td", {}, one.tags.map((name) => [el("button", { type: "button", class: "chip", title: `Only cases with the tag ${name}`, onclick: () => this.refine({ tag: this.filter.tag === name ? "" : name }) }, name), " "])),
        el("td", { class: "figure" }, String(one.turns)),
        el("td", {}, this.status(one)))))));
  }

  drawBar() {
    const count = this.chosen.size;
    const may = this.about.mayChange && Object.keys(this.about.agents).length > 0;
    const { matches } = this.data;
    const some = matches !== this.data.total;
    fill(this.bar,
      el("button", { type: "button", class: count ? null : "primary", disabled: !may || !matches || null, onclick: () => this.run(null) }, some ? `Run ${matches.toLocaleString("en-US")} filtered` : "Run all"),
      el("button", { type: "button", class: count ? "primary" : null, disabled: !may || !count || null, onclick: () => this.run([...this.chosen]) }, count ? `Run ${count} selected` : "Run selected"),
      this.about.mayChange && count ? el("button", { type: "button", class: "danger", onclick: () => this.remove() }, `Delete ${count}`) : null,
      el("button", { type: "button", class: "copy", onclick: () => this.copy() }, "copy the command"));
  }

  makeOptions() {
    const { agents, judges, evaluators } = this.about;
    const names = Object.keys(agents);
    this.who = el("select", { "aria-label": "Agent" }, names.map((name) => el("option", { value: name }, name)));
    this.judge = el("select", {}, el("option", { value: "" }, "as configured"), judges.map((name) => el("option", { value: name }, name)));
    const count = (name, min, max, hint) => el("input", { type: "number", min, max, placeholder: hint, "data-name": name });
    this.numbers = { concurrency: count("concurrency", 1, 100, "4"), retries: count("retries", 0, 10, "0"), repeat: count("repeat", 1, 100, "1") };
    this.evaluators = new Map();
    const rows = evaluators.map((one) => {
      const box = el("input", { type: "checkbox", value: one.name });
      const limit = one.threshold ? el("input", { type: "number", min: 0, max: 1, step: "0.05", placeholder: "threshold", "aria-label": `Threshold of ${one.name}` }) : null;
      this.evaluators.set(one.name, { box, limit });
      box.addEventListener("change", () => this.summary());
      const row = el("div", { class: "evaluator" }, el("label", {}, box, el("span", {}, el("b", {}, one.name), one.judged ? el("i", { class: "judged" }, "judge") : null, el("small", {}, one.summary))), limit);
      row.dataset.text = `${one.name} ${one.summary}`.toLowerCase();
      return row;
    });
    const search = el("input", { type: "search", placeholder: "Find an evaluator", "aria-label": "Find an evaluator" });
    search.addEventListener("input", () => {
      const text = search.value.trim().toLowerCase();
      for (const row of rows) row.hidden = text !== "" && !row.dataset.text.includes(text);
    });
    this.optionsSummary = el("span", { class: "dim" });
    const node = el("details", { class: "run-options" }, el("summary", {}, el("b", {}, "Options of a run"), " ", this.optionsSummary),
      el("div", { class: "options-grid" },
        this.wide ? field("Agent", this.who) : null,
        field("Judge", this.judge),
        field("Concurrency", this.numbers.concurrency), field("Retries of errors", this.numbers.retries), field("Repeats", this.numbers.repeat)),
      el("fieldset", { class: "evaluators" }, el("legend", {}, "Evaluators"), el("p", { class: "dim" }, "If none is selected, the expectations of each case are checked."), search, el("div", { class: "evaluator-list", tabindex: "0", role: "group", "aria-label": "Evaluators" }, rows)));
    for (const each of [...Object.values(this.numbers), this.judge, this.who]) each.addEventListener("change", () => this.summary());
    this.summary();
    return { node };
  }

  summary() {
    const names = this.picked();
    const parts = [names.length ? names.slice(0, 3).join(", ") + (names.length > 3 ? ` and ${names.length - 3} more` : "") : "evaluators for the expectations of cases"];
    if (this.judge.value) parts.push(`judge ${this.judge.value}`);
    if (this.numbers.concurrency.value) parts.push(`${this.numbers.concurrency.value} at once`);
    if (this.numbers.retries.value) parts.push(`${this.numbers.retries.value} retries`);
    if (this.numbers.repeat.value) parts.push(`each ${this.numbers.repeat.value} times`);
    fill(this.optionsSummary, parts.join(" · "));
  }

  picked() {
    return [...this.evaluators].filter(([, { box }]) => box.checked).map(([name]) => name);
  }

  player() {
    return (this.wide ? null : this.agent()) || this.who.value;
  }

  // Runs the cases with these ids, or all that match the filter.
  async run(ids) {
    if (!this.data) return;
    const filtered = ids ? null : this.data.matches !== this.data.total ? { filtered: "1" } : {};
    if (filtered && filtered.filtered) for (const [field, value] of Object.entries(this.filter)) filtered["only_" + field] = value;
    const thresholds = this.picked().map((name) => [name, this.evaluators.get(name).limit]).filter(([, limit]) => limit && limit.value).map(([name, limit]) => `${name}=${limit.value}`);
    try {
      const made = await send(at(this.about, "/do/datasets/run"), {
        name: this.name, agent: this.player(), case: ids || [], ...filtered, evaluator: this.picked(), threshold: thresholds, judge: this.judge.value,
        concurrency: this.numbers.concurrency.value, retries: this.numbers.retries.value, repeat: this.numbers.repeat.value,
      });
      this.live = {};
      for (const id of ids || this.data.cases.map((one) => one.id)) this.live[id] = "waiting";
      this.marks();
      this.follow(made.id);
    } catch (problem) {
      fill(this.progress, el("p", { class: "form-error", role: "alert" }, problem.message));
    }
  }

  marks() {
    for (const cell of this.list.querySelectorAll(".result")) {
      const id = cell.dataset.case;
      if (id in this.live) fill(cell, statusMark(this.live[id]));
    }
  }

  // Follows an evaluation to its end, and shows results as they arrive.
  async follow(id) {
    clearTimeout(this.timer);
    this.job = id;
    const asked = Date.now();
    let progress;
    try {
      progress = await load(at(this.about, "/data/datasets/run", { id, name: this.name, ...this.filter }));
    } catch (problem) {
      this.timer = setTimeout(() => this.follow(id), 2000);
      return;
    }
    if (this.job !== id) return;
    const { job, results } = progress;
    const link = el("a", { class: "nowrap", href: at(this.about, `/evaluations/${id}`) }, `evaluation ${id}`);
    const counts = Object.entries(job.cases || {}).filter(([, count]) => count).map(([status, count]) => `${count} ${status}`).join(", ");
    Object.assign(this.live, results);
    this.marks();
    if (job.state === "waiting" || job.state === "running") {
      const done = job.results || 0;
      const bar = el("progress", { max: job.planned || 1, value: done, "aria-label": "Results so far" });
      if (job.state === "waiting") fill(this.progress, statusMark("waiting"), " for a free worker: ", link);
      else fill(this.progress, bar, ` ${done} of ${job.planned ?? "?"}`, counts ? ` (${counts})` : "", " · ", link);
      // With very many results a request takes longer, so poll less often.
      this.timer = setTimeout(() => this.follow(id), Math.max(700, 5 * (Date.now() - asked)));
      return;
    }
    this.job = null;
    if (job.error) fill(this.progress, el("p", { class: "form-error", role: "alert" }, job.error), link);
    else fill(this.progress, statusMark(job.status || job.state), " ", counts, " · ", link);
    this.live = {};
    await this.load().catch(() => {});
    document.dispatchEvent(new CustomEvent("baton:evaluated"));
  }

  copy() {
    const words = [...(this.about.agents[this.player()] || ["AGENT"])];
    const { cases, matches, total } = this.data;
    const some = matches !== total;
    const ids = this.chosen.size ? [...this.chosen] : some && matches === cases.length ? cases.map((one) => one.id) : [];
    const file = this.data.path + (ids.length ? ":" + ids.join(",") : "");
    const parts = ["baton", "eval", words[0], file, ...words.slice(1)];
    for (const name of this.picked()) {
      const { limit } = this.evaluators.get(name);
      parts.push("-e", limit && limit.value ? `${name}:${limit.value}` : name);
    }
    // A config defines its own judge, unless another one is selected.
    const isConfig = /\.ya?ml$/.test(words[0]);
    const judge = this.judge.value || !isConfig ? this.about.judgeWords[this.judge.value] : null;
    if (judge && judge.model) parts.push("--judge", judge.model);
    const { concurrency, retries, repeat } = this.numbers;
    if (concurrency.value) parts.push("--concurrency", concurrency.value);
    if (retries.value) parts.push("--retry-errors", retries.value);
    if (repeat.value) parts.push("--repeat", repeat.value);
    const line = parts.map(quoted).join(" ");
    const all = some && !ids.length ? ". It runs all cases: too many match the filter to list them." : "";
    const more = all + (judge && judge.more ? ". More settings of this judge are in server.yaml: copy them to `judge:` in a config." : "");
    navigator.clipboard.writeText(line).then(() => toast(`Copied: ${line}${more}`), () => toast(line + more));
  }

  remove() {
    const cases = this.data.cases.filter((one) => this.chosen.has(one.id));
    const box = ask(`Delete ${counted(cases.length, "case")}?`, el("div", {},
      el("p", {}, "They are removed from the file. Comments and everything else in it stay."),
      el("ul", { class: "names" }, cases.slice(0, 10).map((one) => el("li", { dir: "auto" }, one.id)), cases.length > 10 ? el("li", {}, `and ${cases.length - 10} more`) : null)), [
      el("button", { type: "button", onclick: () => box.close() }, "Cancel"),
      el("button", { type: "button", class: "danger", onclick: async () => {
        box.close();
        try {
          await send(at(this.about, "/do/datasets/remove"), { name: this.name, id: cases.map((one) => one.id), hash: cases.map((one) => one.hash) });
          this.chosen.clear();
          await this.load();
          toast(`Deleted ${counted(cases.length, "case")}`, "passed");
        } catch (problem) {
          toast(problem.message, "failed");
        }
      } }, "Delete"),
    ]);
  }

  async edit(id) {
    try {
      const shown = await load(at(this.about, "/data/datasets/case", { name: this.name, id }));
      new CaseEditor(this, id, shown);
    } catch (problem) {
      toast(problem.message, "failed");
    }
  }

  write() {
    const example = "id: \ninput: \nresponse: \n";
    new CaseEditor(this, "", { yaml: example, form: null, hash: "" });
  }
}

function add(node, child) {
  node.append(child);
  return node;
}

// A case as a form and as YAML. Changes are checked as by `baton check` before they are saved.
class CaseEditor {
  constructor(panel, id, shown) {
    this.panel = panel;
    this.id = id;
    this.shown = shown;
    this.error = el("div", { class: "form-error", role: "alert", hidden: true });
    this.body = el("div", { class: "editor-body" });
    this.tabs = ["Form", "YAML"].map((name) => el("button", { type: "button", class: "chip", onclick: () => this.choose(name) }, name));
    const may = panel.about.mayChange;
    const buttons = [
      el("button", { type: "button", onclick: () => this.box.close() }, may ? "Cancel" : "Close"),
      may ? el("button", { type: "button", class: "primary", onclick: () => this.save() }, id ? "Save" : "Add") : null,
    ];
    this.box = ask(id ? `Case ${id}` : "New case", el("div", { class: "editor" }, shown.form ? el("div", { class: "tabs", role: "group", "aria-label": "Edit as" }, this.tabs) : null, this.body, this.error), buttons);
    this.box.classList.add("wide");
    this.choose(shown.form ? "Form" : "YAML");
  }

  choose(name) {
    this.mode = name;
    this.tabs.forEach((tab) => tab.setAttribute("aria-pressed", String(tab.textContent === name)));
    if (name === "YAML") {
      this.yaml = withValue(el("textarea", { class: "mono", rows: "22", spellcheck: "false", "aria-label": "The case as YAML", readonly: !this.panel.about.mayChange || null }), this.shown.yaml);
      fill(this.body, this.yaml, el("p", { class: "dim" }, "The keys are as in the file. Comments in the file stay."));
      return;
    }
    const form = this.shown.form;
    const text = (value, rows) => withValue(rows ? el("textarea", { rows, dir: "auto" }) : el("input", { type: "text", dir: "auto" }), value);
    this.inputs = { id: text(form.id), app: text(form.app), user: text(form.user), state: text(form.state, 2), tags: form.tags === null ? null : text(form.tags) };
    this.turns = form.turns.map((turn) => ({
      input: text(turn.input, 2), response: text(turn.response, 3),
      agents: turn.agents === null ? null : text(turn.agents), contains: turn.contains === null ? null : text(turn.contains, 2),
    }));
    fill(this.body,
      el("div", { class: "pair" }, field("Name", this.inputs.id), this.inputs.tags ? field("Tags", this.inputs.tags, "Separated by commas.") : null),
      this.turns.map((turn, place) => el("fieldset", { class: "turn" }, el("legend", {}, this.turns.length > 1 ? `Turn ${place + 1}` : "Turn"),
        field("Message of the user", turn.input), field("Expected answer", turn.response),
        el("div", { class: "pair" }, turn.agents ? field("Agents in order", turn.agents, "Separated by >.") : null, turn.contains ? field("The answer contains", turn.contains, "One text per line.") : null))),
      el("details", { class: "session" }, el("summary", {}, "Session: app, user, state"),
        el("div", { class: "pair" }, field("App", this.inputs.app), field("User", this.inputs.user)), field("State at the start", this.inputs.state, "JSON")));
  }

  given() {
    if (this.mode === "YAML") return { yaml: this.yaml.value };
    const value = (node) => (node ? node.value : null);
    const { id, app, user, state, tags } = this.inputs;
    const turns = this.turns.map((turn) => ({ input: turn.input.value, response: turn.response.value, agents: value(turn.agents), contains: value(turn.contains) }));
    return { form: JSON.stringify({ id: id.value, app: app.value, user: user.value, state: state.value, tags: value(tags), turns }) };
  }

  async save(hash = this.shown.hash) {
    const { about, name } = this.panel;
    const answer = await fetch(at(about, "/do/datasets/save"), {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "application/json", "X-Baton-CSRF": document.querySelector('meta[name="baton-csrf"]').content },
      body: JSON.stringify({ name, id: this.id, hash, ...this.given() }),
    }).catch(() => null);
    const result = answer ? await answer.json().catch(() => ({})) : { error: "the server does not answer", do: "try again" };
    if (answer && answer.ok) {
      this.box.close();
      toast(["Saved", ...result.notes].join("; "), "passed");
      await this.panel.load().catch(() => {});
      return;
    }
    this.error.hidden = false;
    if (answer && answer.status === 409 && result.current) {
      fill(this.error, el("p", {}, "Someone changed this case while you had it open. Nothing was overwritten."),
        el("details", { open: true }, el("summary", {}, "Current text in the file"), el("pre", { tabindex: "0" }, result.current.yaml)),
        el("div", { class: "buttons" },
          el("button", { type: "button", onclick: () => { this.shown = result.current; this.error.hidden = true; this.choose(this.mode); } }, "Use the text in the file"),
          el("button", { type: "button", class: "danger", onclick: () => this.save(result.current.hash) }, "Overwrite with my text")));
      return;
    }
    fill(this.error, [result.error, result.do].filter(Boolean).join("; "));
  }
}

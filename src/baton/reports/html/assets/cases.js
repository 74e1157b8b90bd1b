// The list of cases: filters, search, order. It is drawn in chunks.

import { MARKS, agent, el, fill, mark, number, seconds, shown } from "./dom.js";

const CHUNK = 120;
const ORDERS = {
  "worst first": (a, b) => RANK[a.status] - RANK[b.status] || a.number - b.number,
  "as in the dataset": (a, b) => a.number - b.number,
  "by id": (a, b) => a.id.localeCompare(b.id) || a.repeat - b.repeat,
  "slowest first": (a, b) => (b.seconds ?? -1) - (a.seconds ?? -1) || a.number - b.number,
  "most tokens first": (a, b) => (b.tokens ?? -1) - (a.tokens ?? -1) || a.number - b.number,
};
let RANK = [];

export class CaseList {
  // `page.drawn` is called with the rows that are drawn, `page.searched` when the user searches: pages
  // of a server load the texts of cases (`tell`) only then. If rows are missing (`extend` adds them),
  // `page.counts` has the numbers of all rows by status. The first rows may be drawn already.
  constructor(rows, names, repeats, page = {}) {
    this.rows = rows;
    this.page = page;
    this.names = names;
    this.repeats = repeats;
    this.list = document.getElementById("list");
    this.matching = [];
    this.drawn = 0;
    this.current = null;
    this.filter = { statuses: new Set(), routing: null };
    const worst = ["error", "failed", "skipped", "passed"];
    RANK = names.statuses.map((status) => worst.indexOf(status));
    rows.forEach((row, index) => this.numbered(row, index));
    this.tools();
    this.more = el("button", { type: "button", class: "more", onclick: () => this.draw() }, "show more");
    this.list.after(this.more);
    new IntersectionObserver((seen) => seen[0].isIntersecting && this.draw(), {
      rootMargin: "600px",
    }).observe(this.more);
    this.match();
    if (!this.isDrawn()) this.redraw();
  }

  // Returns whether the page already has the first rows; drawing then continues after them.
  isDrawn() {
    const numbers = [...this.list.querySelectorAll(".row")].map((row) => Number(row.dataset.number));
    if (!numbers.length || !numbers.every((number_, place) => this.matching[place]?.number === number_)) return false;
    this.drawn = numbers.length;
    this.more.hidden = this.drawn >= this.matching.length;
    return true;
  }

  numbered(row, index) {
    row.number = index;
    row.first = row.same ?? index;
    this.index(row);
  }

  // Adds the missing rows and returns all; rows that exist are kept.
  extend(rows) {
    rows.forEach((row, index) => {
      if (index in this.rows) rows[index] = this.rows[index];
      else this.numbered(row, index);
    });
    this.rows = rows;
    this.page.counts = null;
    const [seen, chosen] = [this.matching.slice(0, this.drawn), this.agent.value];
    this.agent.replaceWith((this.agent = this.agents()));
    this.agent.value = chosen;
    this.match();
    // Usually the list only gets longer: visible rows are not drawn again.
    const same = this.repeats === 1 && seen.length > 0 && seen.every((row, place) => this.matching[place] === row);
    if (same) this.more.hidden = this.drawn >= this.matching.length;
    else this.redraw();
    return rows;
  }

  // Collects the text that is searched.
  index(row) {
    row.text = [row.id, row.reason, row.input, ...row.tags.map((tag) => this.names.tags[tag])].join("\n").toLowerCase();
  }

  // Sets the texts of a case, which are loaded later, and shows them.
  tell(number_, input, reason) {
    const row = this.rows[number_];
    Object.assign(row, { input, reason, hasTexts: true });
    this.index(row);
    const why = this.list.querySelector('[data-number="' + number_ + '"] .why');
    if (why) why.textContent = shown(this.why(row));
  }

  why(row) {
    return row.reason.replaceAll("`", "") || row.input || this.chain(row);
  }

  tools() {
    const changed = () => this.apply();
    const apply = later(changed, 80);
    const typed = () => {
      if (this.page.searched) this.page.searched();
      apply();
    };
    this.search = el("input", {
      type: "search", id: "search", placeholder: "search id, message, reason, tag   ( / )",
      "aria-label": "Search", autocomplete: "off", spellcheck: "false", oninput: typed,
    });
    const counts = this.page.counts || this.names.statuses.map((_, index) => this.rows.filter((row) => row.status === index).length);
    this.chips = ["failed", "error", "skipped", "passed"].map((status) => {
      const index = this.names.statuses.indexOf(status);
      return el(
        "button",
        {
          type: "button", class: "chip " + status, "aria-pressed": "false", "data-status": index,
          disabled: counts[index] === 0, onclick: () => this.toggle(index),
        },
        MARKS[status] + " " + status, el("b", {}, number(counts[index])),
      );
    });
    this.evaluator = select("evaluator", "any evaluator", this.names.evaluators, changed);
    this.agent = this.agents();
    this.tag = select("tag", "any tag", this.names.tags, changed);
    this.order = select("order", null, Object.keys(ORDERS), changed);
    this.count = el("span", { class: "count", role: "status" });
    this.routing = el("button", { type: "button", class: "chip on", hidden: true, onclick: () => this.choose({}) });
    const before = document.getElementById("search"); // the user may already be typing
    if (before) this.search.value = before.value;
    const typing = before !== null && before === document.activeElement;
    fill(
      document.getElementById("tools"),
      el("h2", {}, "Cases"), this.count, this.search,
      el("div", { class: "chips" }, this.chips, this.routing),
      el("div", { class: "selects" }, this.evaluator, this.agent, this.tag, this.order),
    );
    if (typing) this.search.focus();
  }

  agents() {
    return select("agent", "any agent", used(this.rows, "agents", this.names.agents), () => this.apply());
  }

  toggle(status) {
    const { statuses } = this.filter;
    if (!statuses.delete(status)) statuses.add(status);
    this.apply();
  }

  // Replaces the filters by a choice in the summary.
  choose({ evaluator = "", routing = null }) {
    this.filter = { statuses: new Set(), routing };
    this.search.value = "";
    this.evaluator.value = this.agent.value = this.tag.value = "";
    this.evaluator.value = evaluator;
    this.apply();
    document.getElementById("cases").scrollIntoView({ block: "start" });
  }

  apply() {
    this.match();
    this.redraw();
  }

  redraw() {
    this.drawn = 0;
    this.list.replaceChildren();
    this.draw();
  }

  // Finds the rows that match the filters, in the chosen order.
  match() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const evaluator = this.names.evaluators.indexOf(this.evaluator.value);
    const agents = this.names.agents;
    const tag = this.names.tags.indexOf(this.tag.value);
    const agent_ = agents.indexOf(this.agent.value);
    const { statuses, routing } = this.filter;
    const pair = routing && routing.map((name) => (name === null ? null : agents.indexOf(name)));
    this.matching = this.rows.filter((row) => {
      const status = evaluator < 0 ? row.status : (row.scores.find(([one]) => one === evaluator) || [])[1];
      return (
        status !== undefined &&
        (!statuses.size || statuses.has(status)) &&
        (agent_ < 0 || row.agents.includes(agent_)) &&
        (tag < 0 || row.tags.includes(tag)) &&
        (!pair || row.routing.some(([a, b]) => a === pair[0] && b === pair[1])) &&
        words.every((word) => row.text.includes(word))
      );
    });
    this.matching.sort(ORDERS[this.order.value]);
    this.say(routing);
    this.fold();
  }

  // Keeps one row for all repeats of a case with the same result.
  fold() {
    this.alike = new Map();
    for (const row of this.matching) {
      if (!this.alike.has(row.first)) this.alike.set(row.first, []);
      this.alike.get(row.first).push(row);
    }
    this.matching = [...this.alike.values()].map((rows) => rows[0]);
  }

  // Returns the position of a row in the list; repeats with the same result share one.
  placeOf(number_) {
    const { first } = this.rows[number_] ?? {};
    return this.matching.findIndex((row) => row.first === first);
  }

  say(routing) {
    const all = this.rows.length;
    const plain = !routing && !this.filter.statuses.size && !this.search.value && !this.evaluator.value && !this.agent.value && !this.tag.value;
    const found = plain ? all : this.matching.length;
    this.count.textContent = found === all ? number(all) : number(found) + " of " + number(all);
    for (const chip of this.chips) {
      const on = this.filter.statuses.has(Number(chip.dataset.status));
      chip.setAttribute("aria-pressed", String(on));
    }
    this.routing.hidden = !routing;
    if (routing) fill(this.routing, "expected ", agent(routing[0]), " → ", agent(routing[1]), "  ✕");
  }

  draw() {
    const next = this.matching.slice(this.drawn, this.drawn + CHUNK);
    const rows = document.createDocumentFragment();
    for (const row of next) rows.append(this.item(row));
    this.list.append(rows);
    this.drawn += next.length;
    this.more.hidden = this.drawn >= this.matching.length;
    if (this.page.drawn && next.length) this.page.drawn(next);
    if (!this.matching.length) fill(this.list, el("p", { class: "empty" }, "No case matches."));
  }

  item(row) {
    const status = this.names.statuses[row.status];
    const spent = [
      row.seconds !== null && seconds(row.seconds),
      row.tokens !== null && number(row.tokens) + " tok",
    ].filter(Boolean);
    const dots = row.scores.map(([evaluator, one]) =>
      el("i", {
        class: "dot " + this.names.statuses[one],
        title: this.names.evaluators[evaluator] + ": " + this.names.statuses[one],
      }),
    );
    const link = el(
      "a",
      { href: "#case" + row.number, class: "row", "data-number": row.number },
      mark(status),
      el(
        "span",
        { class: "what" },
        el("span", { class: "id", dir: "auto" }, row.id, this.repeats > 1 && el("small", {}, "  " + this.repeatText(row))),
        el("span", { class: "why", dir: "auto" }, this.why(row)),
      ),
      el("span", { class: "side" }, el("span", { class: "dots" }, dots), el("span", {}, spent.join(" · "))),
    );
    if (this.current !== null && row.first === this.rows[this.current].first) link.setAttribute("aria-current", "true");
    return el("div", { role: "listitem" }, link);
  }

  repeatText(row) {
    const times = this.alike.get(row.first).length;
    return times > 1 ? this.names.statuses[row.status] + " " + times + " of " + this.repeats : String(row.repeat + 1);
  }

  chain(row) {
    return row.agents.map((one) => this.names.agents[one]).join(" → ");
  }

  // Marks a row as selected; draws the list up to it if it matches.
  mark(number_) {
    this.current = number_;
    const place = this.placeOf(number_);
    while (place >= this.drawn) this.draw();
    for (const old of this.list.querySelectorAll("[aria-current]")) old.removeAttribute("aria-current");
    const link = this.list.querySelector('[data-number="' + this.matching[place]?.number + '"]');
    if (link) {
      link.setAttribute("aria-current", "true");
      // In an animation frame, because the page is laid out there anyway.
      requestAnimationFrame(() => showWithin(document.getElementById("left"), link));
    }
    return link;
  }

  // Returns the number of the case `step` places further in the list.
  beside(step) {
    const place = this.placeOf(this.current);
    const next = place < 0 ? 0 : Math.min(Math.max(place + step, 0), this.matching.length - 1);
    return this.matching.length ? this.matching[next].number : null;
  }
}

// Scrolls a pane until a part of it is visible; the page does not move.
function showWithin(pane, part) {
  const [outer, inner] = [pane.getBoundingClientRect(), part.getBoundingClientRect()];
  if (inner.top < outer.top) pane.scrollTop -= outer.top - inner.top + 8;
  else if (inner.bottom > outer.bottom) pane.scrollTop += inner.bottom - outer.bottom + 8;
}

function select(name, any, values, onchange) {
  const options = values.map((value) => {
    const option = el("option", {}, value);
    option.value = value;
    return option;
  });
  if (any !== null) options.unshift(el("option", { value: "" }, any));
  return el("select", { id: name, "aria-label": name, onchange, hidden: any !== null && values.length < 2 }, options);
}

function used(rows, field, names) {
  const found = new Set(rows.flatMap((row) => row[field]));
  return names.filter((_, index) => found.has(index)).sort((a, b) => a.localeCompare(b));
}

function later(action, wait) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, wait);
  };
}

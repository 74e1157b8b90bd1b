// The view of a run: a summary, then the tree or the lanes, and beside them the card of a dispatch.

import { dispatchCard } from "./card.js";
import { el } from "./dom.js";
import { Lanes } from "./lanes.js";
import { indexTrace } from "./record.js";
import { shortPart } from "./short.js";
import { Tree } from "./tree.js";
import { scorePart } from "./verdict.js";

// Draws a trace. `page` has the `level` of its headings, and `address`, which returns
// the link to a part. Optional functions: `card` and `facts` load the rest of a card,
// `actions` adds to a card, `notes` to a step, and `opened` is called with an opened card.
export class RunView {
  constructor(trace, scores, page) {
    this.index = indexTrace(trace, scores);
    this.page = { level: 4, ...page };
    this.current = null;
    const about = {
      index: this.index,
      page: this.page,
      open: (id) => this.show(id),
      reveal: (id) => this.reveal(id),
      close: () => this.close(),
      verdict: (place) => this.verdict(place),
    };
    this.about = about;
    this.verdicts = scores.map((one) => scorePart(one, about));
    this.tree = new Tree(this.index, about);
    this.lanes = null;
    this.aside = el("aside", { class: "card-pane", hidden: true, tabindex: "-1", "aria-label": "Dispatch card" });
    this.tabs = ["tree", "lanes"].map((name) => el("button", { type: "button", class: "tab", "aria-pressed": String(name === "tree"), onclick: () => this.choose(name) }, name));
    this.main = el("div", { class: "run-main" }, this.tree.node);
    this.node = el(
      "div",
      { class: "run-view" },
      shortPart(trace, about),
      el("div", { class: "tabs", role: "group", "aria-label": "View" }, this.tabs),
      el("div", { class: "run-panes" }, this.main, this.aside),
    );
  }

  // Changes between "tree" and "lanes".
  choose(name) {
    this.tabs.forEach((tab) => tab.setAttribute("aria-pressed", String(tab.textContent === name)));
    if (name === "lanes" && !this.lanes) this.lanes = new Lanes(this.index, this.about);
    this.main.replaceChildren(name === "lanes" ? this.lanes.node : this.tree.node);
    if (name === "lanes") this.lanes.draw();
  }

  get chosen() {
    return this.tabs.find((tab) => tab.getAttribute("aria-pressed") === "true").textContent;
  }

  // Opens the card of a dispatch, or shows any other part in the tree.
  async show(id) {
    if (!this.index.cards[id]) return this.reveal(id);
    if (!(await this.fill(id))) return;
    this.aside.scrollTop = 0;
    if (getComputedStyle(this.aside).position !== "sticky") this.aside.scrollIntoView({ block: "start" });
    this.aside.focus({ preventScroll: true });
    if (this.page.opened) this.page.opened(id);
  }

  // Takes over what the reader opened and closed in an earlier view of the run. The old card
  // stays until the new one is loaded: on a slow server it would vanish for a while.
  async resume(earlier) {
    const [id, top] = [earlier.current, earlier.aside.scrollTop];
    if (earlier.chosen === "lanes") this.choose("lanes");
    for (const node of earlier.tree.node.querySelectorAll("details.run:not([open])")) {
      const place = this.tree.places.get(node.dataset.part);
      if (place) place.open = false;
    }
    if (!this.index.cards[id]) return;
    this.aside.replaceChildren(...earlier.aside.childNodes);
    this.openPane();
    if (await this.fill(id)) this.aside.scrollTop = top;
  }

  // Loads and draws a card. Returns whether it is there: another may have been opened meanwhile.
  async fill(id) {
    const card = this.index.cards[id];
    this.current = id;
    if (this.page.card && !card.turn) {
      const whole = await this.page.card(id);
      if (!whole || this.current !== id) return false;
      Object.assign(card, whole);
    }
    this.aside.replaceChildren(dispatchCard(id, this.about));
    this.openPane();
    if (this.chosen === "lanes") this.lanes.draw();
    else this.mark(id);
    return true;
  }

  openPane() {
    this.aside.hidden = false;
    this.node.classList.add("with-card");
  }

  mark(id) {
    for (const old of this.tree.node.querySelectorAll(".chosen")) old.classList.remove("chosen");
    const node = this.tree.places.get(id);
    if (node) node.classList.add("chosen");
  }

  close() {
    const id = this.current;
    this.aside.hidden = true;
    this.aside.replaceChildren();
    this.node.classList.remove("with-card");
    this.current = null;
    this.mark(null);
    if (this.chosen === "lanes") this.lanes.draw();
    else if (id) this.tree.reveal(id);
    if (this.page.opened) this.page.opened(null);
  }

  reveal(id) {
    if (this.chosen !== "tree") this.choose("tree");
    this.tree.reveal(id);
  }

  // Shows a verdict in the list of all verdicts.
  verdict(place) {
    const node = this.verdicts[place];
    node.open = true;
    node.scrollIntoView({ block: "center" });
    node.classList.remove("flash");
    requestAnimationFrame(() => node.classList.add("flash"));
  }

  // Opens the card of the next or the previous dispatch.
  beside(step) {
    const ids = [...this.index.dispatches.keys()].filter((id) => this.index.cards[id]);
    if (!ids.length) return;
    const at = ids.indexOf(this.current);
    this.show(ids[at < 0 ? 0 : Math.min(Math.max(at + step, 0), ids.length - 1)]);
  }
}

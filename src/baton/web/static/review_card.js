// The card of the dispatch that is being labelled, as on the page of its conversation: lost text, tools, reused facts.
// Verdicts are left out, so that they do not influence the reviewer.

import { addKey, load } from "./app.js";
import "./review.js";
import { dispatchCard } from "./report/card.js";
import { setHue } from "./report/dom.js";
import { indexTrace } from "./report/record.js";

const KEY = "baton-review-shows";

const root = document.getElementById("shown");
const card = document.getElementById("card");
const dispatchPage = root.querySelector(".dispatch-page");
const tabs = root.querySelector(".tabs");
let drawn = null;

async function draw() {
  const [record, own] = await Promise.all([load(root.dataset.record), load(root.dataset.card)]);
  const id = root.dataset.dispatch;
  for (const [name, hue] of Object.entries(record.hues)) setHue(name, hue);
  const index = indexTrace(record.trace, []);
  index.cards[id] = { ...index.cards[id], ...own };
  const address = (part) => `${root.dataset.conversation}#${index.cards[part] ? "d" : "s"}-${encodeURIComponent(part)}`;
  const look = (part) => open(address(part), "_blank", "noopener");
  card.replaceChildren(dispatchCard(id, { index, page: { level: 1, address }, open: look, reveal: look, close() {}, verdict() {} }));
}

async function show(name) {
  localStorage.setItem(KEY, name);
  if (name === "card") {
    drawn ||= draw();
    try {
      await drawn;
    } catch {
      name = "steps"; // the record is too large, or the server is unreachable: the page has the steps
    }
  }
  card.hidden = name !== "card";
  dispatchPage.hidden = name === "card";
  for (const tab of tabs.querySelectorAll("button")) tab.setAttribute("aria-pressed", String(tab.dataset.show === name));
}

tabs.hidden = false;
tabs.addEventListener("click", (event) => {
  const name = event.target.dataset?.show;
  if (name) show(name);
});
addKey("v", "Switch between card and steps", () => show(card.hidden ? "card" : "steps"));
show(localStorage.getItem(KEY) || "card");

// The list of evaluations: it goes on while something runs, and two of them can be compared.

import { fillTimes, lost } from "./app.js";

const rows = document.getElementById("rows");
const form = document.getElementById("compare");
const said = document.getElementById("compare-said");
const button = document.getElementById("compare-button");

function chosen() {
  return [...document.querySelectorAll('input[name="of"]:checked')];
}

function count() {
  const boxes = chosen();
  button.disabled = boxes.length !== 2;
  said.textContent = boxes.length === 2
    ? "#" + Math.min(...boxes.map((box) => Number(box.value))) + " is compared with #" + Math.max(...boxes.map((box) => Number(box.value)))
    : "tick two evaluations: the older is compared with the newer";
}

if (form) {
  document.addEventListener("change", (event) => {
    if (!event.target.matches?.('input[name="of"]')) return;
    // A third one takes the place of the one that was ticked first on the page.
    const others = chosen().filter((box) => box !== event.target);
    if (event.target.checked && others.length > 1) others[0].checked = false;
    count();
  });
  count();
}

// While something runs, the rows are put in place again; ticks and the focus stay.
async function again() {
  const address = new URL(location.href);
  address.pathname += "/rows";
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html", "HX-Request": "true" } });
    if (answer.ok) put(await answer.text());
  } catch {
    lost();
  }
  later();
}

function put(text) {
  const ticked = new Set(chosen().map((box) => box.value));
  const focus = rows.contains(document.activeElement) ? document.activeElement : null;
  const link = focus?.getAttribute("href");
  const box = focus?.matches('input[name="of"]') ? focus.value : null;
  rows.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
  fillTimes(rows);
  for (const each of rows.querySelectorAll('input[name="of"]')) {
    each.checked = ticked.has(each.value);
    if (each.value === box) each.focus();
  }
  if (link) [...rows.querySelectorAll("a[href]")].find((each) => each.getAttribute("href") === link)?.focus();
  count();
}

function later() {
  if (rows?.querySelector('[data-live="yes"]')) setTimeout(again, document.hidden ? 15000 : 2000);
}

later();
document.addEventListener("baton:back", () => rows && again());

for (const input of document.querySelectorAll("[data-rows-filter]")) {
  const list = document.querySelectorAll(`#${input.dataset.rowsFilter} tbody tr`);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of list) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  });
}

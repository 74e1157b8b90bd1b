// The list of evaluations: two of them can be compared.

import "./app.js";

const form = document.getElementById("compare");
const hint = document.getElementById("compare-said");
const button = document.getElementById("compare-button");

function chosen() {
  return [...document.querySelectorAll('input[name="of"]:checked')];
}

function count() {
  const boxes = chosen();
  button.disabled = boxes.length !== 2;
  hint.textContent = boxes.length === 2
    ? "#" + Math.min(...boxes.map((box) => Number(box.value))) + " is compared with #" + Math.max(...boxes.map((box) => Number(box.value)))
    : "tick two evaluations: the older is compared with the newer";
}

if (form) {
  document.addEventListener("change", (event) => {
    if (!event.target.matches?.('input[name="of"]')) return;
    // Ticking a third one unticks the first of the others.
    const others = chosen().filter((box) => box !== event.target);
    if (event.target.checked && others.length > 1) others[0].checked = false;
    count();
  });
  count();
  document.addEventListener("htmx:after:swap", count);  // an evaluation may have new results
}

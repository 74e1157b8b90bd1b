// Review: a key for each label, and for what else is done with a dispatch.

import { addKey } from "./app.js";

const start = document.getElementById("start");
if (start) addKey("n", "Label the next one", () => start.click());

let sent = false;

// A label is sent once: who holds a key down labels one dispatch, not the one after.
function once(run) {
  return () => {
    if (sent) return;
    sent = true;
    run();
  };
}

for (const button of document.querySelectorAll(".label-choice[data-key]")) {
  const name = button.querySelector("b").textContent;
  addKey(button.dataset.key, `Label: ${name}`, once(() => button.click()));
}

const number = document.getElementById("number");
if (number) addKey("1", "Write a number", () => number.focus());
const note = document.querySelector("textarea[name=note]");
if (note) addKey("c", "Write a comment (Escape leaves it)", () => note.focus());
const skip = document.querySelector("#skip button");
if (skip) addKey("s", "Skip: somebody else may take it", once(() => skip.click()));
const back = document.getElementById("back");
if (back) addKey("u", "Back to the last one, to change the label", () => back.click());
// A page that is shown again with "back" may be used again.
addEventListener("pageshow", () => { sent = false; });

// Review: keyboard shortcuts for labels and other actions.

import { addKey } from "./app.js";

const start = document.getElementById("start");
if (start) addKey("n", "Label the next one", () => start.click());

let sent = false;

// A label is sent once: holding a key down does not label the next dispatch.
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
if (skip) addKey("s", "Skip: leave it to someone else", once(() => skip.click()));
const back = document.getElementById("back");
if (back) addKey("u", "Back to the previous one, to change its label", () => back.click());
// After "back", the page can be used again.
addEventListener("pageshow", () => { sent = false; });

// Rubrics: the list by words, an editor that says what is not saved, and a trial that goes on.

import { addKey, fillTimes, lost } from "./app.js";

const names = document.querySelector("[data-names]");
if (names) {
  names.addEventListener("input", () => {
    const words = names.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of document.querySelectorAll("[data-words]")) {
      const text = row.dataset.words.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
}

const editor = document.getElementById("editor");
if (editor) {
  const text = document.getElementById("text");
  const before = text.value;
  let sent = false;
  editor.addEventListener("submit", () => { sent = true; });
  addEventListener("beforeunload", (event) => {
    if (!sent && text.value !== before) event.preventDefault();
  });
  const save = editor.querySelector("button.primary");
  if (save) addKey("w", "Save", () => save.click());
  const attempt = document.getElementById("try");
  if (attempt) addKey("y", "Try, without saving", () => attempt.click());
}

const trial = document.getElementById("trial");

async function look() {
  try {
    const answer = await fetch(trial.dataset.address, { headers: { Accept: "text/html", "HX-Request": "true" } });
    if (answer.ok) {
      const made = new DOMParser().parseFromString(await answer.text(), "text/html");
      trial.dataset.state = made.querySelector("[data-state]").dataset.state;
      trial.replaceChildren(...made.body.childNodes);
      fillTimes(trial);
    }
  } catch {
    lost();
  }
  if (goesOn()) setTimeout(look, 1000);
  else document.getElementById("stop")?.remove();
}

function goesOn() {
  return trial.dataset.state === "waiting" || trial.dataset.state === "running";
}

if (trial && goesOn()) setTimeout(look, 500);

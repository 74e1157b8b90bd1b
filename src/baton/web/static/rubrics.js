// Rubrics: the list by words, and an editor that says what is not saved.

import { addKey } from "./app.js";

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

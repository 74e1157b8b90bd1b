// Rubrics: the editor warns of unsaved changes.

import { addKey } from "./app.js";

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

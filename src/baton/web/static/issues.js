// The page of an issue updates when its investigation, or the replay of its fix, is done.

import "./app.js";

const waits = document.querySelector("[data-again]");

// A reload would discard text that the user is typing.
function writing() {
  return [...document.querySelectorAll("input[type=text]")].some((field) => field.value !== field.defaultValue);
}

if (waits) {
  setInterval(() => {
    if (document.visibilityState === "visible" && !writing()) location.reload();
  }, 1500);
}

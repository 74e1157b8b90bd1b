// Before anything is drawn: the colours that the reader chose, so that nothing flashes.
"use strict";
(() => {
  const chosen = localStorage.getItem("baton-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();

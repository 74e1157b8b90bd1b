// Applies the chosen theme before anything is drawn, so that nothing flashes.
"use strict";
(() => {
  const chosen = localStorage.getItem("baton-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();

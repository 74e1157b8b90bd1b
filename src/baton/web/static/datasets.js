// The list of datasets, and the page of one.

import { addKey, send, toast } from "./app.js";
import { CasePanel, ask, askName, at, newDataset } from "./cases.js";
import { el } from "./report/dom.js";

const root = document.querySelector("[data-about]");
const about = JSON.parse(root.dataset.about);

function go(path, given = {}) {
  location.assign(at(about, path, given));
}

const home = { place: about.places[0], kind: "baton" };
for (const button of document.querySelectorAll("[data-new]")) {
  button.addEventListener("click", () => newDataset(about, home, (made) => go("/datasets/" + made.name.split("/").map(encodeURIComponent).join("/"))));
}

// Large files are still being read when the page appears: reload until they are done.
if (document.querySelector("[data-reading]")) {
  const again = () => {
    if (document.hidden || document.querySelector("dialog[open]")) setTimeout(again, 1000);
    else location.reload();
  };
  setTimeout(again, 1000);
}

const node = document.getElementById("cases");
if (node) {
  const { name, title, hash } = JSON.parse(root.dataset.dataset);
  const panel = new CasePanel(node, about, { wide: true });
  const given = new URLSearchParams(location.search);
  for (const key of Object.keys(panel.filter)) if (given.get(key)) panel.filter[key] = given.get(key);
  panel.show(name).then(() => { if (given.get("case")) panel.edit(given.get("case")); }).catch((problem) => toast(problem.message, "failed"));
  // The filter is part of the address, so that it can be shared.
  const refine = panel.refine.bind(panel);
  panel.refine = (change) => {
    refine(change);
    history.replaceState(null, "", at(about, location.pathname, panel.filter));
    for (const chip of document.querySelectorAll("[data-filter]")) chip.setAttribute("aria-pressed", String(panel.filter[chip.dataset.filter] === chip.dataset.value));
  };
  for (const chip of document.querySelectorAll("[data-filter]")) {
    chip.setAttribute("aria-pressed", String(panel.filter[chip.dataset.filter] === chip.dataset.value));
    chip.addEventListener("click", () => panel.refine({ [chip.dataset.filter]: panel.filter[chip.dataset.filter] === chip.dataset.value ? "" : chip.dataset.value }));
  }
  document.addEventListener("baton:evaluated", () => { document.getElementById("stale").hidden = false; });
  document.getElementById("write")?.addEventListener("click", () => panel.write());
  document.getElementById("rename")?.addEventListener("click", () => askName("Rename the dataset", "Name", { value: title, save: "Rename", hint: "The file is named after it; its folder stays." }, async (text) => {
    const renamed = await send(at(about, "/do/datasets/rename"), { name, title: text, hash: panel.data?.hash || hash });
    go("/datasets/" + renamed.name.split("/").map(encodeURIComponent).join("/"));
  }));
  document.getElementById("delete")?.addEventListener("click", () => {
    if (!panel.data) return;
    const box = ask(`Delete ${title}?`, el("p", {}, `This deletes the file ${panel.data.path} with ${panel.data.total} cases. Evaluations that played it stay.`), [
      el("button", { type: "button", onclick: () => box.close() }, "Cancel"),
      el("button", { type: "button", class: "danger", onclick: async () => {
        box.close();
        try {
          await send(at(about, "/do/datasets/delete"), { name, hash: panel.data.hash });
          go("/datasets");
        } catch (problem) {
          toast(problem.message, "failed");
        }
      } }, "Delete the file"),
    ]);
  });
  addKey("r", "Run the selected cases, or all", () => panel.run(panel.chosen.size ? [...panel.chosen] : null));
}

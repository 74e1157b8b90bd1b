// Lists: suggested values for filters, and a notice of new entries.

import { addKey, load, lost } from "./app.js";

for (const form of document.querySelectorAll("form[data-values]")) {
  const field = form.elements.namedItem("field");
  const value = form.elements.namedItem("value");
  const options = form.querySelector("datalist");
  const known = new Map();
  const offer = async () => {
    value.placeholder = field.selectedOptions[0].dataset.hint;
    if (!known.has(field.value)) {
      const join = form.dataset.values.includes("?") ? "&" : "?";
      known.set(field.value, load(`${form.dataset.values}${join}field=${field.value}`).catch(() => ({ values: [] })));
    }
    const wanted = field.value;
    const { values } = await known.get(wanted);
    if (field.value !== wanted) return;
    options.replaceChildren(...values.map((text) => {
      const option = document.createElement("option");
      option.value = /[\s,*?![]/.test(text) ? text.replace(/"/g, "*") : text;
      return option;
    }));
  };
  field.addEventListener("change", offer);
  form.closest("details").addEventListener("toggle", (event) => {
    if (event.target.open) {
      offer();
      field.focus();
    }
  });
}

const filter = document.querySelector("[data-filter]");
if (filter) addKey("f", "Write a filter", () => filter.focus());

// New entries are announced, not inserted: nothing moves while it is being read.
const news = document.querySelector("[data-news]");
if (news) {
  const title = document.title;
  if (news.dataset.waiting) news.textContent = news.dataset.waiting;
  const look = async () => {
    if (!document.hidden) {
      try {
        const join = news.dataset.news.includes("?") ? "&" : "?";
        const { new: count } = await load(`${news.dataset.news}${join}after=${news.dataset.after}`);
        if (count) {
          const text = `${count >= 100 ? "100 or more" : count} new`;
          if (news.dataset.shown !== text) {
            const link = document.createElement("a");
            link.href = news.dataset.first;
            link.textContent = `${text}: show`;
            news.replaceChildren(link);
            news.dataset.shown = text;
            news.hidden = false;
            document.title = `(${count >= 100 ? "100+" : count}) ${title}`;
          }
        }
      } catch {
        lost();
      }
    }
    setTimeout(look, 4000);
  };
  setTimeout(look, 4000);
  addKey("r", "Show new entries", () => { location.href = news.dataset.first; });
}

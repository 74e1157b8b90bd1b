// Queues are looked at again every five seconds.

import { loadPart, lost } from "./app.js";

const live = document.querySelector("[data-live]");

async function again() {
  if (!document.hidden) await loadPart(live, live.dataset.live).catch(lost);
  setTimeout(again, 5000);
}

setTimeout(again, 5000);

// Reads the data of this file, and opens cases by address (#case12) and keys.

import { showCase } from "./case.js";
import { CaseList } from "./cases.js";
import { hue } from "./dom.js";
import { showHead, showSummary } from "./summary.js";

const DATA = JSON.parse(document.getElementById("data").textContent);
const BLOCKS = new Map();
const SHOWN = { drawn: null };

async function unpack(block) {
  if (!BLOCKS.has(block)) {
    const packed = atob(document.getElementById("block" + block).textContent);
    const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    if (BLOCKS.size > 7) BLOCKS.delete(BLOCKS.keys().next().value);
    BLOCKS.set(block, JSON.parse(await new Response(stream).text()));
  }
  return BLOCKS.get(block);
}

// Opens a case, and the card of a dispatch if one is named.
async function open(number_, part) {
  const row = DATA.rows[number_];
  if (!row) return;
  LIST.mark(number_);
  const views = await unpack(row.block);
  if (LIST.current !== number_) return;
  const drawn = showCase(views[row.place], row, DATA.rows.filter((one) => one.first === row.first), DATA.names, DATA.summary.repeats);
  document.getElementById("view").scrollTop = 0;
  SHOWN.drawn = drawn;
  if (part && drawn) drawn.show(part);
}

function follow() {
  const match = /^#case(\d+)(?:\/(.+))?$/.exec(location.hash);
  if (!match) return;
  const part = match[2] && decodeURIComponent(match[2]);
  if (part && SHOWN.drawn && LIST.current === Number(match[1])) SHOWN.drawn.show(part);
  else open(Number(match[1]), part).then(() => narrow() && document.getElementById("view").scrollIntoView());
}

// Returns whether the view of a case is below the list, not beside it.
function narrow() {
  return innerWidth <= 900;
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "Escape" && typing) event.target.blur();
  if (typing) return;
  if (event.key === "/") {
    event.preventDefault();
    LIST.search.focus();
  }
  const beside = { n: 1, p: -1 }[event.key];
  if (beside && SHOWN.drawn) SHOWN.drawn.beside(beside);
  const inList = event.target.closest("#list") || event.target === document.body;
  const step = { j: 1, k: -1, ArrowDown: inList ? 1 : 0, ArrowUp: inList ? -1 : 0 }[event.key];
  const next = step ? LIST.beside(step) : null;
  if (next === null) return;
  event.preventDefault();
  history.replaceState(null, "", "#case" + next);
  open(next);
  const link = LIST.mark(next);
  if (link) link.focus({ preventScroll: true });
}

DATA.names.agents.forEach(hue);
showHead(DATA.summary);
const LIST = new CaseList(DATA.rows, DATA.names, DATA.summary.repeats);
showSummary(DATA.summary, (filter) => LIST.choose(filter));
addEventListener("hashchange", follow);
addEventListener("keydown", keys);
if (/^#case\d+/.test(location.hash)) follow();
else if (LIST.matching.length && !narrow()) open(LIST.matching[0].number);
document.documentElement.dataset.ready = "true";

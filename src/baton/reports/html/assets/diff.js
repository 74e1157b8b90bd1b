// A word-by-word diff of two texts.

const MOST = 4e6; // most pairs of words to compare; texts that differ more are shown whole

// Returns parts in order as [kind, text]; the kind is "same", "lost" or "added".
export function wordDiff(before, after) {
  const [a, b] = [words(before), words(after)];
  let [from, left, right] = [0, a.length, b.length];
  while (from < left && from < right && a[from] === b[from]) from++;
  while (left > from && right > from && a[left - 1] === b[right - 1]) [left, right] = [left - 1, right - 1];
  const parts = [];
  put(parts, "same", a.slice(0, from));
  for (const part of middle(a.slice(from, left), b.slice(from, right))) put(parts, ...part);
  put(parts, "same", a.slice(left));
  return lostFirst(parts).map(([kind, list]) => [kind, list.join("")]);
}

// Between common words, puts lost words before added ones: that reads as a change.
function lostFirst(parts) {
  const sorted = [];
  let held = [];
  for (const [kind, list] of parts) {
    if (kind === "added") held.push(...list);
    if (kind === "same") {
      put(sorted, "added", held);
      held = [];
    }
    if (kind !== "added") put(sorted, kind, list);
  }
  put(sorted, "added", held);
  return sorted;
}

// Words with the whitespace before them.
function words(text) {
  return text.match(/\s*[\p{L}\p{N}_]+|\s*[^\s\p{L}\p{N}_]|\s+/gu) || [];
}

function put(parts, kind, list) {
  if (!list.length) return;
  const last = parts[parts.length - 1];
  if (last && last[0] === kind) last[1].push(...list);
  else parts.push([kind, [...list]]);
}

// The longest common subsequence of words, by the usual table.
function middle(a, b) {
  if (a.length * b.length > MOST) return [["lost", a], ["added", b]];
  const width = b.length + 1;
  const table = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      table[i * width + j] = a[i] === b[j]
        ? table[(i + 1) * width + j + 1] + 1
        : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  }
  const parts = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      put(parts, "same", [a[i++]]);
      j++;
    } else if (j >= b.length || (i < a.length && table[(i + 1) * width + j] >= table[i * width + j + 1])) {
      put(parts, "lost", [a[i++]]);
    } else put(parts, "added", [b[j++]]);
  }
  return parts;
}

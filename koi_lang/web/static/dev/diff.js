// Two texts to what of them is kept, left out and new: by lines, and by words where lines are alike.

const MOST = 4000;

/** The pieces of two lists in order, each as `{same}`, `{out}` or `{in}` with a list of items. */
export function diffLists(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  const middle = between(before.slice(start, before.length - end), after.slice(start, after.length - end));
  const pieces = [];
  push(pieces, "same", before.slice(0, start));
  for (const [kind, item] of middle) push(pieces, kind, [item]);
  push(pieces, "same", end ? before.slice(-end) : []);
  return pieces;
}

function push(pieces, kind, items) {
  if (!items.length) return;
  const last = pieces[pieces.length - 1];
  if (last && last.kind === kind) last.items.push(...items);
  else pieces.push({ kind, items: [...items] });
}

/** The longest common part of two short lists, by a table; long ones are replaced as a whole. */
function between(before, after) {
  if (before.length * after.length > MOST * MOST / 4) {
    return [...before.map((item) => ["out", item]), ...after.map((item) => ["in", item])];
  }
  const wide = after.length + 1;
  const table = new Uint32Array((before.length + 1) * wide);
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      table[i * wide + j] = before[i] === after[j]
        ? table[(i + 1) * wide + j + 1] + 1
        : Math.max(table[(i + 1) * wide + j], table[i * wide + j + 1]);
    }
  }
  const found = [];
  let i = 0;
  let j = 0;
  while (i < before.length && j < after.length) {
    if (before[i] === after[j]) {
      found.push(["same", before[i]]);
      i += 1;
      j += 1;
    } else if (table[(i + 1) * wide + j] >= table[i * wide + j + 1]) found.push(["out", before[i++]]);
    else found.push(["in", after[j++]]);
  }
  while (i < before.length) found.push(["out", before[i++]]);
  while (j < after.length) found.push(["in", after[j++]]);
  return found;
}

/** Two texts by words. */
export function diffWords(before, after) {
  const split = (text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || [];
  return diffLists(split(before), split(after)).map(({ kind, items }) => ({ kind, text: items.join("") }));
}

/** Two texts by lines. */
export function diffLines(before, after) {
  return diffLists(before.split("\n"), after.split("\n")).map(({ kind, items }) => ({ kind, text: items.join("\n") }));
}

// What changed between two texts, word by word: Myers' shortest edit.

const MOST = 1_500; // edits; texts that differ more are shown as replaced
const WORDS = /[\p{L}\p{N}\p{M}_]+|\s+|[^\p{L}\p{N}\p{M}_\s]/gu;

// Parts in order, [{ kind: "same" | "removed" | "added", text }].
export function wordDiff(before, after) {
  const [a, b] = [before.match(WORDS) ?? [], after.match(WORDS) ?? []];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const middle = edits(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return joined([
    { kind: "same", text: a.slice(0, start).join("") },
    ...middle,
    { kind: "same", text: end ? a.slice(a.length - end).join("") : "" },
  ]);
}

function edits(a, b) {
  const traces = search(a, b);
  if (traces === null) {
    return [
      { kind: "removed", text: a.join("") },
      { kind: "added", text: b.join("") },
    ];
  }
  const parts = [];
  let [x, y] = [a.length, b.length];
  for (let d = traces.length - 1; d >= 0; d--) {
    const v = traces[d];
    const k = x - y;
    const down = k === -d || (k !== d && at(v, k - 1) < at(v, k + 1));
    const before = down ? k + 1 : k - 1;
    const fromX = d === 0 ? 0 : at(v, before);
    const fromY = d === 0 ? 0 : fromX - before;
    while (x > fromX && y > fromY) {
      parts.push({ kind: "same", text: a[--x] });
      y--;
    }
    if (d === 0) break;
    if (down) parts.push({ kind: "added", text: b[--y] });
    else parts.push({ kind: "removed", text: a[--x] });
  }
  return parts.reverse();
}

// How far each diagonal is reached, before each number of edits; null if there are too many.
function search(a, b) {
  const most = Math.min(MOST, a.length + b.length);
  const traces = [];
  let v = new Int32Array(3);
  for (let d = 0; d <= most; d++) {
    traces.push(v);
    const next = new Int32Array(2 * d + 5); // diagonals from -d - 1 to d + 1, with the middle at its half
    for (let k = -d; k <= d; k += 2) {
      let x = d === 0 ? 0 : k === -d || (k !== d && at(v, k - 1) < at(v, k + 1)) ? at(v, k + 1) : at(v, k - 1) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x++;
        y++;
      }
      next[k + (next.length >> 1)] = x;
      if (x >= a.length && y >= b.length) return traces;
    }
    v = next;
  }
  return null;
}

function at(v, k) {
  return v[k + (v.length >> 1)] ?? 0;
}

// Neighbours of one kind as one part; of a place that changed, what was removed comes first.
function joined(parts) {
  const all = [];
  let [removed, added] = ["", ""];
  const flush = () => {
    if (removed) all.push({ kind: "removed", text: removed });
    if (added) all.push({ kind: "added", text: added });
    [removed, added] = ["", ""];
  };
  parts.forEach((each, index) => {
    const between = each.kind === "same" && /^\s+$/.test(each.text) && (removed || added);
    if (between && parts[index + 1] && parts[index + 1].kind !== "same") {
      removed += each.text; // a space between two changed words belongs to the change
      added += each.text;
    } else if (each.kind === "same" && each.text) {
      flush();
      const last = all[all.length - 1];
      if (last?.kind === "same") last.text += each.text;
      else all.push({ ...each });
    } else if (each.kind === "removed") removed += each.text;
    else if (each.kind === "added") added += each.text;
  });
  flush();
  return all;
}

// Texts as the server counts them, in code points, and numbers as people read them.

// The text in parts, [{ text, marked }], by spans [start, end) that are in order.
export function slices(text, spans) {
  const letters = Array.from(text); // by code points, as in Python
  const parts = [];
  let at = 0;
  for (const [start, end] of spans) {
    if (start > at) parts.push({ text: letters.slice(at, start).join(""), marked: false });
    parts.push({ text: letters.slice(Math.max(at, start), end).join(""), marked: true });
    at = Math.max(at, end);
  }
  if (at < letters.length) parts.push({ text: letters.slice(at).join(""), marked: false });
  return parts.filter((each) => each.text);
}

export function percent(share) {
  const value = 100 * share;
  return `${value > 0 && value < 1 ? "<1" : Math.round(value)}%`;
}

// Few digits, but none of those that matter.
export function short(number) {
  if (Number.isInteger(number)) return number.toLocaleString();
  const size = Math.abs(number);
  return size >= 100 ? number.toFixed(0) : size >= 10 ? number.toFixed(1) : size >= 0.1 ? number.toFixed(3) : number.toPrecision(2);
}

export function counted(number, one, several = `${one}s`) {
  return `${number.toLocaleString()} ${number === 1 ? one : several}`;
}

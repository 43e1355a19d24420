// What happened to a memory: each change with what it replaced, word by word.

import { Button, Problem, Time } from "../components.js";
import { wordDiff } from "../diff.js";
import { html } from "../vendor/htm-preact.js";

const ACTIONS = {
  remembered: "Remembered",
  updated: "Changed",
  forgotten: "Forgotten",
  restored: "Restored",
  expired: "Expired",
};
const KEPT = 60; // characters of an unchanged part that are shown on each side

function shortened(part, first, last) {
  const { text } = part;
  if (text.length <= 2 * KEPT + 20) return text;
  const head = first ? "" : text.slice(0, KEPT);
  const tail = last ? "" : text.slice(-KEPT);
  return `${head} … ${tail}`;
}

export function Diff({ before, after }) {
  const parts = wordDiff(before, after);
  return html`<p class="text diff">
    ${parts.map((each, at) => {
      if (each.kind === "removed") return html`<del key=${at}>${each.text}</del>`;
      if (each.kind === "added") return html`<ins key=${at}>${each.text}</ins>`;
      return shortened(each, at === 0, at === parts.length - 1);
    })}
  </p>`;
}

function shown(value) {
  if (value === null || value === undefined || value === "") return html`<span class="muted">none</span>`;
  if (Array.isArray(value)) return value.length ? html`<bdi>${value.join(", ")}</bdi>` : html`<span class="muted">none</span>`;
  if (typeof value === "object") return html`<code class="said">${JSON.stringify(value)}</code>`;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value)) return html`<${Time} at=${value} />`;
  return html`<bdi>${String(value)}</bdi>`;
}

// One field before and after.
export function Change({ name, before, after }) {
  if (name === "text" || (name === "summary" && before && after)) {
    return html`<span class="change-name">${name}</span><${Diff} before=${before ?? ""} after=${after ?? ""} />`;
  }
  return html`<span class="change-name">${name}</span> <del class="said">${shown(before)}</del> →${" "}
    <ins class="said">${shown(after)}</ins>`;
}

// The events, newest first, each with the values that it replaced and those that it set.
export function versions(memory, events) {
  const now = { ...memory };
  const all = [];
  for (const event of [...events].reverse()) {
    const names = Object.keys(event.before);
    all.push({ ...event, changes: names.map((name) => ({ name, before: event.before[name], after: now[name] })) });
    Object.assign(now, event.before);
  }
  return all;
}

export function History({ memory, events, error, onPutBack }) {
  if (error) return html`<${Problem} error=${error} />`;
  if (!events) return null;
  return html`<ol class="history" aria-label="History, newest first">
    ${versions(memory, events).map(
      (each) =>
        html`<li key=${each.seq} data-action=${each.action}>
          <p class="history-head">
            <strong>${ACTIONS[each.action] ?? each.action}</strong> <span class="muted small"><${Time} at=${each.at} /></span>
            ${onPutBack &&
            each.changes.length > 0 &&
            html`<button type="button" class="link-button small" onClick=${() => onPutBack(each.before)}>
              Put the old values back
            </button>`}
          </p>
          ${each.changes.length > 0 &&
          html`<ul class="changes">
            ${each.changes.map((change) => html`<li key=${change.name}><${Change} ...${change} /></li>`)}
          </ul>`}
        </li>`,
    )}
  </ol>`;
}

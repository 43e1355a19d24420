// Numbers as people read them.

import { html } from "../vendor/htm-preact.js";

export function count(number) {
  return number.toLocaleString();
}

const UNITS = ["B", "kB", "MB", "GB", "TB"];

export function bytes(size) {
  let unit = 0;
  for (; size >= 1000 && unit < UNITS.length - 1; unit++) size /= 1000;
  return `${unit && size < 100 ? size.toFixed(1) : Math.round(size).toLocaleString()} ${UNITS[unit]}`;
}

const SHOWN = 8;

// Counts by name as bars, the most frequent first.
export function Bars({ counts, link }) {
  const all = Object.entries(counts).sort(([, one], [, other]) => other - one);
  const most = all[0]?.[1] ?? 1;
  if (!all.length) return html`<p class="muted small">None yet.</p>`;
  return html`<ul class="bars">
      ${all.slice(0, SHOWN).map(([name, number]) => {
        const text = html`<bdi>${name}</bdi>`;
        return html`<li key=${name}>
          ${link ? html`<a class="bars-name" href=${link(name)}>${text}</a>` : html`<span class="bars-name">${text}</span>`}
          <span class="bars-bar" aria-hidden="true"><span style=${{ width: `${(100 * number) / most}%` }}></span></span>
          <span class="bars-count">${count(number)}</span>
        </li>`;
      })}
    </ul>
    ${all.length > SHOWN && html`<p class="small muted">and ${count(all.length - SHOWN)} more</p>`}`;
}

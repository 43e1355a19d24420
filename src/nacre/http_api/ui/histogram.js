// Counts over time as bars. A range is chosen by dragging over the bars, or by the arrow keys on its two ends.

import { between, named } from "./buckets.js";
import { html, useMemo, useRef, useState } from "./vendor/htm-preact.js";

const HEIGHT = 40;
const WIDEST = 112; // of a bar, in pixels
const LEAST = 2; // of a bar that is not empty

// `counts` by bucket, as {"2026-03": 4}. `from` and `to` are the first and last chosen bucket, or null.
// `onSelect(from, to)` is called with buckets, or with nulls when the choice is cleared.
export function Histogram({ counts, from, to, onSelect, label }) {
  const svg = useRef(null);
  const [drag, setDrag] = useState(null); // two places while the pointer is down
  const buckets = useMemo(() => range(counts, from, to), [counts, from, to]);
  if (!buckets.length) return null;
  const most = Math.max(1, ...buckets.map((each) => counts[each] ?? 0));
  const last = buckets.length - 1;
  const chosen = from !== null && from !== undefined && to !== null && to !== undefined;
  const start = chosen ? Math.max(0, buckets.indexOf(from)) : 0;
  const end = chosen ? buckets.indexOf(to) : last;
  const [low, high] = drag ? [Math.min(...drag), Math.max(...drag)] : [start, end === -1 ? last : end];
  const limited = chosen || drag !== null;

  const choose = (one, other) => {
    if (one === 0 && other === last) onSelect?.(null, null);
    else onSelect?.(buckets[one], buckets[other]);
  };
  const place = (event) => {
    const box = svg.current.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    return Math.min(last, Math.max(0, Math.floor(share * buckets.length)));
  };
  const down = (event) => {
    if (event.button !== 0) return;
    svg.current.setPointerCapture(event.pointerId);
    setDrag([place(event), place(event)]);
  };
  const up = (event) => {
    if (!drag) return;
    const at = place(event);
    const same = chosen && drag[0] === at && at === start && at === end;
    setDrag(null);
    if (same) onSelect?.(null, null);
    else choose(Math.min(drag[0], at), Math.max(drag[0], at));
  };
  const step = (which) => (event) => {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -6, PageUp: 6 }[event.key];
    const to = event.key === "Home" ? -Infinity : event.key === "End" ? Infinity : by;
    if (to === undefined) return;
    event.preventDefault();
    if (which === "from") choose(Math.max(0, Math.min(high, low + to)), high);
    else choose(low, Math.min(last, Math.max(low, high + to)));
  };
  const handle = (which, at) => html`<span
    class="histogram-handle"
    style=${{ left: `${(100 * (which === "from" ? at : at + 1)) / buckets.length}%` }}
    tabindex="0"
    role="slider"
    aria-label=${which === "from" ? `${label}: from` : `${label}: to`}
    aria-valuemin="0"
    aria-valuemax=${last}
    aria-valuenow=${at}
    aria-valuetext=${named(buckets[at])}
    onKeyDown=${step(which)}
  ></span>`;

  const total = buckets.slice(low, high + 1).reduce((sum, each) => sum + (counts[each] ?? 0), 0);
  const width = buckets.length;
  const wide = `${Math.max(320, width * WIDEST)}px`;
  return html`<div class=${`histogram ${limited ? "limited" : ""}`} role="group" aria-label=${label}>
    <div class="histogram-plot" style=${{ maxWidth: wide }}>
      <svg
        ref=${svg}
        viewBox=${`0 0 ${width} ${HEIGHT}`}
        preserveAspectRatio="none"
        aria-hidden="true"
        onPointerDown=${onSelect && down}
        onPointerMove=${(event) => drag && setDrag([drag[0], place(event)])}
        onPointerUp=${up}
        onPointerCancel=${() => setDrag(null)}
      >
        ${limited && html`<rect class="histogram-range" x=${low} width=${high - low + 1} y="0" height=${HEIGHT} />`}
        ${buckets.map((each, at) => {
          const count = counts[each] ?? 0;
          const height = count ? Math.max(LEAST, (HEIGHT * count) / most) : 0;
          const inside = at >= low && at <= high ? "in" : "out";
          return html`<rect
            key=${each}
            class=${`histogram-bar ${inside}`}
            x=${at + (width > 120 ? 0 : 0.08)}
            width=${width > 120 ? 1 : 0.84}
            y=${HEIGHT - height}
            height=${height}
          >
            <title>${`${named(each)}: ${count}`}</title>
          </rect>`;
        })}
      </svg>
      ${onSelect && [handle("from", low), handle("to", high)]}
    </div>
    <div class="histogram-legend" style=${{ maxWidth: wide }}>
      <span>${named(buckets[0])}</span>
      <span class="histogram-chosen" aria-live="polite">
        ${limited &&
        html`<strong>${low === high ? named(buckets[low]) : `${named(buckets[low])} – ${named(buckets[high])}`}</strong>
          <span class="muted"> ${total.toLocaleString()}</span>`}
        ${chosen &&
        html`<button type="button" class="link-button" onClick=${() => onSelect(null, null)}>Clear time</button>`}
      </span>
      <span>${last > 0 && named(buckets[last])}</span>
    </div>
  </div>`;
}

// From the first to the last bucket that has a count or is chosen, without gaps.
function range(counts, from, to) {
  const keys = Object.keys(counts ?? {});
  if (!keys.length) return [];
  const all = [...keys, from, to].filter(Boolean).sort();
  return between(all[0], all[all.length - 1]);
}

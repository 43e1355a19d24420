// How many memories there are at which time, as bars to point at: the list goes there. A mark shows where it is.

import { between, bucketOf, named } from "../buckets.js";
import { html, useMemo, useRef } from "../vendor/htm-preact.js";

const HEIGHT = 36;
const LEAST = 2; // of a bar that is not empty
const DAYS_MAX = 130; // that have bars of their own; more are counted by weeks, and then by months
const WEEKS_MAX = 160;

// `counts` by day. `from` and `to` are the days of the first and the last row in sight.
export function Scrubber({ counts, from, to, onJump }) {
  const svg = useRef(null);
  const dragging = useRef(false);
  const { buckets, sums, unit } = useMemo(() => summed(counts), [counts]);
  if (buckets.length < 2) return null;
  const most = Math.max(...sums.values());
  const last = buckets.length - 1;
  const placeOf = (day) => (day ? buckets.indexOf(bucketOf(new Date(`${day}T00:00:00Z`), unit)) : -1);
  const shown = [placeOf(from), placeOf(to)].filter((each) => each >= 0);
  const [low, high] = [Math.min(...shown), Math.max(...shown)];

  const jump = (at) => onJump(buckets[Math.max(0, Math.min(last, at))]);
  const point = (event) => {
    const box = svg.current.getBoundingClientRect();
    jump(Math.floor(((event.clientX - box.left) / box.width) * buckets.length));
  };
  const down = (event) => {
    if (event.button) return;
    dragging.current = true;
    event.currentTarget.setPointerCapture(event.pointerId);
    point(event);
  };
  const step = (event) => {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -6, PageUp: 6 }[event.key];
    const at = event.key === "Home" ? 0 : event.key === "End" ? last : by && placeOf(from) + by;
    if (at === undefined) return;
    event.preventDefault();
    jump(at);
  };

  return html`<div class="scrubber">
    <div
      class="scrubber-plot"
      role="slider"
      tabindex="0"
      aria-label="Time that the list shows"
      aria-valuemin="0"
      aria-valuemax=${last}
      aria-valuenow=${Math.max(0, placeOf(from))}
      aria-valuetext=${named(buckets[Math.max(0, placeOf(from))])}
      onPointerDown=${down}
      onPointerMove=${(event) => dragging.current && point(event)}
      onPointerUp=${() => (dragging.current = false)}
      onPointerCancel=${() => (dragging.current = false)}
      onKeyDown=${step}
    >
      <svg ref=${svg} viewBox=${`0 0 ${buckets.length} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        ${shown.length > 0 && html`<rect class="scrubber-here" x=${low} width=${high - low + 1} y="0" height=${HEIGHT} />`}
        ${buckets.map((each, at) => {
          const count = sums.get(each) ?? 0;
          const height = count && Math.max(LEAST, (HEIGHT * count) / most);
          const here = at >= low && at <= high ? "here" : "";
          return html`<g key=${each} class=${`scrubber-bar ${here}`}>
            <rect class="scrubber-hit" x=${at} width="1" y="0" height=${HEIGHT}>
              <title>${`${named(each)}: ${count.toLocaleString()}`}</title>
            </rect>
            <rect x=${at + 0.08} width="0.84" y=${HEIGHT - height} height=${height} />
          </g>`;
        })}
      </svg>
    </div>
    <div class="scrubber-legend"><span>${named(buckets[0])}</span><span>${named(buckets[last])}</span></div>
  </div>`;
}

function summed(counts) {
  const days = Object.keys(counts).sort();
  if (!days.length) return { buckets: [], sums: new Map(), unit: "day" };
  const every = between(days[0], days.at(-1), Infinity).length;
  const unit = every <= DAYS_MAX ? "day" : every / 7 <= WEEKS_MAX ? "week" : "month";
  const sums = new Map();
  for (const day of days) {
    const bucket = bucketOf(new Date(`${day}T00:00:00Z`), unit);
    sums.set(bucket, (sums.get(bucket) ?? 0) + counts[day]);
  }
  const known = [...sums.keys()].sort();
  return { buckets: between(known[0], known.at(-1)), sums, unit };
}

// A list of any length of which only the rows in sight are in the document.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/htm-preact.js";

const BESIDE = 8; // rows that are drawn above and below those in sight
const NEAR_END = 20;

// Rows have one height. `renderRow(index)` gives what is in a row. Arrow keys, j and k, Page Up and Down, Home and End
// move the active row, whose first link or button gets the focus; so Enter opens it.
export function VirtualList({ count, rowHeight, renderRow, onNearEnd, label, active = -1, onActive, class: named = "" }) {
  const box = useRef(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const focus = useRef(-1);

  useLayoutEffect(() => {
    const element = box.current;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    let waiting = 0;
    const scrolled = () => {
      waiting ||= requestAnimationFrame(() => {
        waiting = 0;
        measure();
      });
    };
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    element.addEventListener("scroll", scrolled, { passive: true });
    return () => {
      cancelAnimationFrame(waiting);
      watch.disconnect();
      element.removeEventListener("scroll", scrolled);
    };
  }, []);

  const start = Math.max(0, Math.floor(view.top / rowHeight) - BESIDE);
  const end = Math.min(count, Math.ceil((view.top + view.height) / rowHeight) + BESIDE);

  useEffect(() => {
    if (end >= count - NEAR_END) onNearEnd?.();
  }, [end, count]);

  useEffect(() => {
    if (active < 0 || active >= count) return;
    const element = box.current;
    const [above, below] = [active * rowHeight, (active + 1) * rowHeight];
    if (above < element.scrollTop) element.scrollTop = above;
    else if (below > element.scrollTop + element.clientHeight) element.scrollTop = below - element.clientHeight;
  }, [active, rowHeight]);

  // The row may come into sight only after the list has scrolled.
  useEffect(() => {
    if (focus.current < 0) return;
    const row = box.current.querySelector(`[aria-posinset="${focus.current + 1}"]`);
    if (!row) return;
    focus.current = -1;
    (row.querySelector("a[href], button") ?? row).focus({ preventScroll: true });
  });

  const move = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    const page = Math.max(1, Math.floor(view.height / rowHeight) - 1);
    const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page }[event.key];
    const to = event.key === "Home" ? 0 : event.key === "End" ? count - 1 : by === undefined ? null : active + by;
    if (to === null || !count) return;
    event.preventDefault();
    const next = Math.min(count - 1, Math.max(0, to));
    focus.current = next;
    onActive?.(next);
  };

  const rows = [];
  for (let at = start; at < end; at++) {
    rows.push(
      html`<div
        key=${at}
        class=${`vlist-row ${at === active ? "active" : ""}`}
        role="listitem"
        tabindex="-1"
        aria-setsize=${count}
        aria-posinset=${at + 1}
        style=${{ transform: `translateY(${at * rowHeight}px)`, height: `${rowHeight}px` }}
      >
        ${renderRow(at)}
      </div>`,
    );
  }
  return html`<div ref=${box} class=${`vlist ${named}`} tabindex="0" role="list" aria-label=${label} onKeyDown=${move}>
    <div class="vlist-all" role="presentation" style=${{ height: `${count * rowHeight}px` }}>${rows}</div>
  </div>`;
}

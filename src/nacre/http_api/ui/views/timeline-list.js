// The list of the timeline: rows of one height under headings. It stays where one looks while rows come above.

import { href } from "../router.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/htm-preact.js";
import { groupLabel } from "./calendar.js";

const BESIDE = 12; // rows that are drawn above and below those in sight
const HEAD = 30; // pixels of a heading, at the lower end of its row
const REST_MS = 50; // without scrolling, before what is in sight is loaded

// `version` grows when the rows of `pages` change. `target` is a row to scroll to: {row}, a new object each time.
// `onPlace` gets the first row in sight, whenever it rests.
export function TimelineList({ pages, version, rowHeight, target, onPlace, label }) {
  const box = useRef(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const anchor = useRef(null); // what is in the first row, and how far it is scrolled out
  const focus = useRef(null); // the row that gets the focus once it is drawn

  const first = Math.floor(view.top / rowHeight);
  const last = Math.min(pages.rows - 1, Math.ceil((view.top + view.height) / rowHeight));

  useLayoutEffect(() => {
    const element = box.current;
    let waiting = 0;
    const measure = () => {
      waiting = 0;
      setView({ top: element.scrollTop, height: element.clientHeight });
    };
    const scrolled = () => {
      anchor.current = placeAt(pages, element.scrollTop, rowHeight);
      waiting ||= requestAnimationFrame(measure);
    };
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    element.addEventListener("scroll", scrolled, { passive: true });
    return () => {
      cancelAnimationFrame(waiting);
      watch.disconnect();
      element.removeEventListener("scroll", scrolled);
    };
  }, [pages, rowHeight]);

  // Rows came or went: the same memory stays in the first row, unless that is the very first one.
  useLayoutEffect(() => {
    const element = box.current;
    const { key, within } = anchor.current ?? {};
    if (key && element.scrollTop > 0) {
      const top = (anchor.current.heading ? pages.rowOfDay(key) : pages.rowOf(anchor.current)) * rowHeight + within;
      if (Math.abs(top - element.scrollTop) >= 1) element.scrollTop = top;
    }
    setView((before) => (before.top === element.scrollTop ? before : { ...before, top: element.scrollTop }));
  }, [version, rowHeight]);

  useLayoutEffect(() => {
    if (!target) return;
    box.current.scrollTop = target.row * rowHeight;
    anchor.current = placeAt(pages, box.current.scrollTop, rowHeight);
  }, [target]);

  useEffect(() => {
    const timer = setTimeout(() => {
      pages.need(Math.max(0, first - BESIDE), last + BESIDE);
      onPlace?.(first, last);
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [pages, version, first, last]);

  useEffect(() => {
    if (focus.current === null) return;
    const link = box.current.querySelector(`[data-row="${focus.current}"] a`);
    if (!link) return;
    focus.current = null;
    link.focus({ preventScroll: true });
  });

  const move = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !pages.rows) return;
    const rowOfFocus = Number(event.target.closest("[data-row]")?.dataset.row ?? first);
    const page = Math.max(1, Math.floor(view.height / rowHeight) - 2);
    const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page }[event.key];
    let to = event.key === "Home" ? 0 : event.key === "End" ? pages.rows - 1 : by && rowOfFocus + by;
    if (to === undefined) return;
    event.preventDefault();
    to = Math.max(0, Math.min(pages.rows - 1, to));
    if (pages.at(to)?.group) to += by < 0 && to > 0 ? -1 : 1; // headings have nothing to open
    const element = box.current;
    if ((to - 1) * rowHeight < element.scrollTop) element.scrollTop = (to - 1) * rowHeight; // below the fixed heading
    else if ((to + 1) * rowHeight > element.scrollTop + view.height) {
      element.scrollTop = (to + 1) * rowHeight - view.height;
    }
    focus.current = to;
    setView({ top: element.scrollTop, height: element.clientHeight });
  };

  const rows = [];
  for (let row = Math.max(0, first - BESIDE); row <= Math.min(pages.rows - 1, last + BESIDE); row++) {
    const style = { transform: `translateY(${row * rowHeight}px)`, height: `${rowHeight}px` };
    rows.push(html`<${Row} key=${row} row=${row} place=${pages.at(row)} pages=${pages} style=${style} />`);
  }
  const group = pages.rows ? pages.groupAt(first) : null;
  const passed = group && view.top > (group.row + 1) * rowHeight - HEAD; // then its own heading is out of sight
  return html`<div ref=${box} class="vlist timeline-list" tabindex="0" role="list" aria-label=${label} onKeyDown=${move}>
    ${passed && html`<div class="timeline-head fixed" aria-hidden="true"><${Heading} group=${group} /></div>`}
    <div class="vlist-all" role="presentation" style=${{ height: `${pages.rows * rowHeight}px` }}>${rows}</div>
  </div>`;
}

function placeAt(pages, top, rowHeight) {
  const row = Math.floor(top / rowHeight);
  const found = pages.at(row);
  if (!found) return null;
  const within = top - row * rowHeight;
  if (found.group) return { key: found.group.key, heading: true, within };
  return { key: found.day.key, at: found.at, id: found.entry?.id, within };
}

function Heading({ group }) {
  return html`<span>${groupLabel(group.name)}</span> <span class="muted">${group.count.toLocaleString()}</span>`;
}

function Row({ row, place, pages, style }) {
  const { group, entry } = place;
  if (group) {
    return html`<div class="timeline-row" role="listitem" data-row=${row} style=${style}>
      <h2 class="timeline-head"><${Heading} group=${group} /></h2>
    </div>`;
  }
  return html`<div class="timeline-row" role="listitem" data-row=${row} style=${style}>
    ${entry
      ? html`<${Entry} entry=${entry} clock=${pages.calendar.clock(entry.created)} fresh=${pages.fresh.has(entry.id)} />`
      : html`<span class="timeline-entry waiting" role="img" aria-label="Loading"><span></span><span></span></span>`}
  </div>`;
}

const TAGS = 3;

function Entry({ entry, clock, fresh }) {
  const more = entry.tags.length - TAGS;
  return html`<a class=${`timeline-entry ${fresh ? "fresh" : ""}`} href=${href("memory", entry.id)}>
    <time class="timeline-clock" datetime=${entry.created}>${clock}</time>
    <span class="timeline-text">
      ${entry.pinned && html`<span class="timeline-pin" title="Pinned" aria-label="Pinned">★</span> `}
      <bdi dir="auto">${entry.summary}</bdi>
    </span>
    <span class="timeline-marks">
      ${entry.kind !== "note" && html`<bdi class="mark kind">${entry.kind}</bdi>`}
      ${entry.namespace !== "general" && html`<bdi class="mark">${entry.namespace}</bdi>`}
      ${entry.tags.slice(0, TAGS).map((each) => html`<bdi key=${each} class="mark tag">${each}</bdi>`)}
      ${more > 0 && html`<span class="mark" title=${entry.tags.slice(TAGS).join(", ")}>+${more}</span>`}
    </span>
  </a>`;
}

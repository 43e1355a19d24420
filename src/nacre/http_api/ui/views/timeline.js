// All memories by time.

import { api, session } from "../api.js";
import { startOf } from "../buckets.js";
import { Button, Empty, Loading, Problem } from "../components.js";
import { useLive, useLoad, useTitle } from "../hooks.js";
import { navigate, parse } from "../router.js";
import { html, useEffect, useMemo, useRef, useState } from "../vendor/htm-preact.js";
import { calendarOf } from "./calendar.js";
import { useMedia } from "./media.js";
import { TimelineList } from "./timeline-list.js";
import { TimelinePages } from "./timeline-pages.js";
import { Scrubber } from "./timeline-scrubber.js";

const FIRST = 100; // memories that are shown before all are counted
const WIDE = 38; // pixels of a row with room for one line, and of one with two
const NARROW = 62;
const RECOUNT_MS = 2_000; // after changes that cannot be followed one by one
const FILTERS = [
  ["kind", "kinds", "kinds"],
  ["namespace", "namespaces", "namespaces"],
  ["tag", "tags_all", "tags"],
];

function asked(params) {
  const where = {};
  for (const [name, field] of FILTERS) if (params.has(name)) where[field] = params.getAll(name);
  return {
    where: Object.keys(where).length ? where : undefined,
    by: ["week", "month"].find((each) => each === params.get("by")) ?? "day",
    oldestFirst: params.get("order") === "oldest",
  };
}

// The rows for what the address asks, kept up to date. `start` is the place to begin at.
function usePages({ where, by, oldestFirst }, start) {
  const [state, setState] = useState({ version: 0, counted: false, error: null, target: null });
  const [turn, setTurn] = useState(0);
  const key = JSON.stringify([where, by, oldestFirst, turn]);
  const update = (change) => setState((before) => ({ ...before, ...change }));
  const current = useRef(null);

  const made = useMemo(() => {
    const abort = new AbortController();
    const load = (params) => api.get("/timeline", { ...params, where }, { signal: abort.signal });
    const pages = new TimelinePages({
      calendar: calendarOf(session?.time_zone),
      by,
      oldestFirst,
      load,
      changed: () => current.current === pages && setState((before) => ({ ...before, version: before.version + 1 })),
      failed: (error) => current.current === pages && update({ error }),
    });
    const count = async () => pages.setCounts((await load({ limit: 1, histogram: "day" })).histogram ?? {});
    return { pages, load, count, abort };
  }, [key]);
  current.current = made.pages;

  useEffect(() => {
    const { pages, load, count, abort } = made;
    const failed = (error) => error.name !== "AbortError" && update({ error });
    update({ counted: false, error: null, ...(start.current ? {} : { target: { row: 0 } }) });
    if (!start.current) load({ limit: FIRST, oldest_first: oldestFirst }).then((page) => pages.setFirst(page), failed);
    count().then(() => {
      const place = start.current;
      const row = place && (place.at === undefined ? pages.rowOfDay(place.key) : pages.rowOf(place));
      update({ counted: true, ...(place ? { target: { row } } : {}) });
    }, failed);
    return () => abort.abort();
  }, [made]);

  return { ...made, ...state, update, reload: () => setTurn(turn + 1) };
}

// What agents write while one looks. Much else than new memories is counted again, but not more often than it can be.
function useChanges({ pages, count, update }, scrolled) {
  const timer = useRef(0);
  const took = useRef(0); // milliseconds, the last time
  const recount = (wait) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(
      async () => {
        const began = performance.now();
        await count().catch(() => null); // the next change tries again
        took.current = performance.now() - began;
      },
      wait + 5 * took.current,
    );
  };
  useEffect(() => () => clearTimeout(timer.current), [pages]);
  useLive(
    async (changes) => {
      const ids = changes.filter((each) => each.kind === "memory").map((each) => each.name);
      const added = await pages.refresh(ids).catch(() => null);
      if (added === null) recount(0);
      else if (added !== new Set(ids).size) recount(RECOUNT_MS);
      if (added && scrolled.current) update((before) => before + added);
    },
    ["memory"],
  );
}

export default function View({ route }) {
  useTitle("Timeline");
  const { params } = route;
  const narrow = useMedia("(max-width: 720px)");
  const start = useRef(placeOf(params));
  const pages = usePages(asked(params), start);
  const [sight, setSight] = useState({ first: 0, from: null, to: null });
  const [unseen, setUnseen] = useState(0);
  const scrolled = useRef(false);
  scrolled.current = sight.first > 0;
  useChanges({ ...pages, update: setUnseen }, scrolled);
  const facets = useLoad((signal) => api.get("/facets", {}, { signal }), []);

  const change = (name, value) => {
    const next = new URLSearchParams(params);
    next.delete(name);
    if (value) next.set(name, value);
    if (name === "order") for (const each of ["at", "n"]) next.delete(each);
    start.current = name === "order" ? null : placeOf(next);
    setUnseen(0);
    navigate("timeline", null, next);
  };
  const jump = (day) => pages.update({ target: { row: pages.pages.rowOfDay(day) } });
  const counts = useMemo(() => countsOf(pages.pages), [pages.version]);

  // The address follows the list, so that one comes back to the same place.
  const placed = (first, last) => {
    const all = pages.pages;
    const [one, other] = [all.at(first), all.at(Math.min(last, all.rows - 1))];
    const [from, to] = [one, other].map((each) => each?.day?.key ?? each?.group?.key ?? null);
    setSight({ first, from, to });
    if (first === 0) setUnseen(0);
    if (!pages.counted || parse(window.location.hash).view !== "timeline") return; // another view is on its way
    const next = new URLSearchParams(params);
    next.delete("at");
    next.delete("n");
    if (first > 0 && from) {
      next.set("at", from);
      if (one.day && one.at) next.set("n", one.at);
    }
    start.current = placeOf(next);
    navigate("timeline", null, next, { replace: true });
  };

  const { total } = pages.pages;
  const filtered = FILTERS.some(([name]) => params.has(name));
  return html`<section class="view fill timeline" aria-label="Timeline">
    <div class="toolbar">
      <h1>Timeline</h1>
      <span class="muted" aria-live="polite">${pages.counted && counted(total)}</span>
      <span class="spacer"></span>
      <div class="tools">${FILTERS.map(
        ([name, , facet]) =>
          html`<${Choice}
            key=${name}
            name=${name}
            value=${params.get(name) ?? ""}
            counts=${facets.data?.[facet] ?? {}}
            onChange=${(value) => change(name, value)}
          />`,
      )}
      <label class="compact">
        <span>By</span>
        <select value=${params.get("by") ?? "day"} onChange=${(event) => change("by", plain(event, "day"))}>
          <option value="day">day</option>
          <option value="week">week</option>
          <option value="month">month</option>
        </select>
      </label>
      <label class="compact">
        <span class="visually-hidden">Order</span>
        <select value=${params.get("order") ?? "newest"} onChange=${(event) => change("order", plain(event, "newest"))}>
          <option value="newest">newest first</option>
          <option value="oldest">oldest first</option>
        </select>
      </label>
      <label class="compact">
        <span>Go to</span>
        <input type="date" value=${sight.from ?? ""} onChange=${(event) => event.target.value && jump(event.target.value)} />
      </label>
      </div>
    </div>
    <${Scrubber} counts=${counts} from=${sight.from} to=${sight.to} onJump=${(bucket) => jump(startOf(bucket))} />
    ${pages.error && html`<${Problem} error=${pages.error} retry=${pages.reload} />`}
    ${pages.counted && !total
      ? html`<${Empty} title=${filtered ? "No memory has all of this." : "Nothing is remembered here yet."}>
          ${filtered
            ? html`<${Button} onClick=${() => navigate("timeline")}>Clear the filters</${Button}>`
            : html`<p>What an agent remembers appears here at once.</p>`}
        </${Empty}>`
      : !pages.pages.rows && !pages.error
        ? html`<${Loading} />`
        : html`<div class="timeline-body">
            ${unseen > 0 &&
            !asked(params).oldestFirst &&
            html`<button type="button" class="timeline-unseen" onClick=${() => pages.update({ target: { row: 0 } })}>
              ↑ ${unseen.toLocaleString()} new
            </button>`}
            <${TimelineList}
              pages=${pages.pages}
              version=${pages.version}
              rowHeight=${narrow ? NARROW : WIDE}
              target=${pages.target}
              onPlace=${placed}
              label="Memories by time"
            />
          </div>`}
  </section>`;
}

function placeOf(params) {
  const key = params.get("at");
  if (!/^\d{4}-\d\d-\d\d$/.test(key ?? "")) return null;
  return { key, at: params.has("n") ? Number(params.get("n")) || 0 : undefined };
}

function plain(event, usual) {
  return event.target.value === usual ? null : event.target.value;
}

function counted(total) {
  return total === 1 ? "1 memory" : `${total.toLocaleString()} memories`;
}

function countsOf(pages) {
  return Object.fromEntries([...pages.days.values()].map((each) => [each.key, each.count]));
}

const CHOICES_MAX = 300;

function Choice({ name, value, counts, onChange }) {
  const known = Object.entries(counts).slice(0, CHOICES_MAX);
  if (value && !known.some(([each]) => each === value)) known.unshift([value, 0]);
  return html`<label class="compact">
    <span class="visually-hidden">${name}</span>
    <select class=${value ? "set" : ""} value=${value} onChange=${(event) => onChange(event.target.value)}>
      <option value="">any ${name}</option>
      ${known.map(([each, count]) => html`<option key=${each} value=${each}>${each}${count ? ` (${count})` : ""}</option>`)}
    </select>
  </label>`;
}

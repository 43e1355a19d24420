// The search: a field, what it finds as somebody types, and what narrows it.

import { api, may } from "../api.js";
import { Button, Empty, Histogram, Icon, Problem } from "../components.js";
import { useHotkeys, useLatest, useLive, useLoad, useTitle } from "../hooks.js";
import { navigate } from "../router.js";
import { html, useCallback, useEffect, useRef, useState } from "../vendor/htm-preact.js";
import { ActiveFilters, FacetPanel } from "./facets.js";
import { moveFocus } from "./hits.js";
import { QueryHelp } from "./query-help.js";
import { Recent } from "./recent.js";
import { Results } from "./results.js";
import {
  LIMIT,
  MODES,
  hasFilters,
  readState,
  requestOf,
  toggled,
  whereOf,
  withoutFilters,
  writeState,
} from "./search-state.js";
import { WhyNot } from "./why-not.js";

const SETTLED_MS = 3_000; // of rest, after which another query is another entry of the browser's history
const FACETS_MS = 120;

// The state of the address, and a function that changes it. What is typed replaces the entry of the history.
function useSearchState(route) {
  const state = readState(route.params);
  const latest = useLatest(state);
  const settled = useRef(0);
  const set = useCallback((change, { typed = false } = {}) => {
    const now = Date.now();
    const replace = typed && now < settled.current;
    settled.current = typed ? now + SETTLED_MS : 0;
    navigate("search", null, writeState({ ...latest.current, ...change }), { replace });
  }, []);
  return [state, set];
}

// Counts of what matches: with the time that is chosen, and without it for the histogram.
function useFacets(state, turn) {
  const query = state.q;
  const [where, anytime] = [whereOf(state), whereOf(state, { time: false })];
  const { data } = useLoad(
    async (signal) => {
      await new Promise((done) => setTimeout(done, FACETS_MS));
      if (signal.aborted) return null;
      const ask = (limits) => api.post("/facets", { query, ...(limits ? { where: limits } : {}) }, { signal });
      const narrowed = ask(where);
      const [counts, { months }] = await Promise.all([narrowed, state.from ? ask(anytime) : narrowed]);
      return { counts, months };
    },
    [query, JSON.stringify(where), turn],
  );
  return data;
}

function Lenses({ value, onChange }) {
  const { data } = useLoad((signal) => api.get("/lenses", {}, { signal }), []);
  return html`<label class="picker">
    <span aria-hidden="true">Lens</span>
    <select aria-label="Lens" value=${value ?? ""} onChange=${(event) => onChange(event.target.value || null)}>
      <option value="">automatic</option>
      <option value="none">none</option>
      ${data?.map((each) => html`<option key=${each.name} value=${each.name} title=${each.description}>${each.name}</option>`)}
      ${value && value !== "none" && !data?.some((each) => each.name === value) && html`<option value=${value}>${value}</option>`}
    </select>
  </label>`;
}

function Modes({ state, onChange }) {
  return html`<div class="modes" role="group" aria-label="Mode">
    ${MODES.map(
      (each) =>
        html`<button
          key=${each}
          type="button"
          aria-pressed=${!state.compare && state.mode === each}
          onClick=${() => onChange({ mode: each, compare: false })}
        >
          ${each}
        </button>`,
    )}
    <button
      type="button"
      aria-pressed=${state.compare}
      title="The three modes side by side"
      onClick=${() => onChange({ compare: !state.compare })}
    >
      <${Icon} name="columns" /><span>compare</span>
    </button>
  </div>`;
}

export default function Search({ route }) {
  const [state, set] = useSearchState(route);
  const [text, setText] = useState(state.q);
  const [typed, setTyped] = useState(false);
  const [now, setNow] = useState(0);
  const [turn, setTurn] = useState(0);
  const [limit, setLimit] = useState(LIMIT);
  const [dialog, setDialog] = useState(null); // "help" or "why"
  const [narrow, setNarrow] = useState(false); // filters are shown on a phone
  const field = useRef(null);
  const found = useRef(null);
  const facets = useFacets(state, turn);
  useTitle(state.q || "Search");
  useLive(() => setTurn((before) => before + 1), ["memory", "fact", "update"]);

  // The address changed by itself, as by Back.
  useEffect(() => {
    if (state.q !== text.trim()) setText(state.q);
    setLimit(LIMIT);
  }, [state.q]);
  useEffect(() => {
    if (window.matchMedia("(hover: hover)").matches || route.params.has("focus")) field.current.focus();
  }, []);

  const type = (value) => {
    setText(value);
    setTyped(true);
    set({ q: value.trim() }, { typed: true });
  };
  const change = (part) => {
    setTyped(false);
    setLimit(LIMIT);
    set(part);
  };
  const filter = (name, value) => change(toggled(state, name, value));
  const ask = (query) => {
    setDialog(null);
    setText(query);
    change({ q: query });
    requestAnimationFrame(() => field.current?.focus()); // after a dialog that closes has given the focus back
  };
  const move = (by) => found.current && moveFocus(found.current, by);
  const pressed = (event) => {
    if (event.key === "ArrowDown" && move(1)) event.preventDefault();
    else if (event.key === "Enter" && !event.isComposing) setNow(now + 1);
    else if (event.key === "Escape" && text) {
      event.preventDefault();
      type("");
    } else if (event.key === "Escape") field.current.blur();
  };
  const inList = (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    if (!move(by) && by < 0) field.current.focus();
  };
  useHotkeys({ j: () => move(1), k: () => move(-1), w: () => state.q && may("read") && setDialog("why") });

  const request = state.q ? { ...requestOf(state), limit } : null;
  const common = { typed, now, turn, onFilter: filter, onAsk: ask, onWhyNot: () => setDialog("why") };
  const more = () => {
    setTyped(false);
    setLimit(limit + LIMIT);
  };
  return html`<div class=${`search ${state.compare && request ? "comparing" : ""}`}>
    <h1 class="visually-hidden">Search</h1>
    <div class="search-top">
      <div class="search-box" role="search">
        <${Icon} name="search" />
        <input
          ref=${field}
          data-search
          type="search"
          dir="auto"
          value=${text}
          aria-label="Search memories"
          placeholder="Ask, or type words. / comes back here"
          autocomplete="off"
          spellcheck="false"
          enterkeyhint="search"
          onInput=${(event) => type(event.target.value)}
          onKeyDown=${pressed}
        />
        <${Button} kind="quiet" class="small" onClick=${() => setDialog("help")}>Query help</${Button}>
      </div>
      <div class="search-tools">
        <${Modes} state=${state} onChange=${change} />
        <${Lenses} value=${state.lens} onChange=${(lens) => change({ lens })} />
        <${Button}
          kind="quiet narrow-toggle"
          icon="filter"
          aria-expanded=${narrow}
          onClick=${() => setNarrow(!narrow)}
        >Filters</${Button}>
        ${request && html`<${Button} kind="quiet" class="small" onClick=${() => setDialog("why")}>Why not…?</${Button}>`}
      </div>
    </div>
    <div class=${`search-body ${narrow ? "narrowing" : ""}`}>
      <${FacetPanel} facets=${facets?.counts} state=${state} onToggle=${filter} />
      <div class="search-found" ref=${found} onKeyDown=${inList}>
        <${Histogram}
          counts=${facets?.months ?? {}}
          from=${state.from}
          to=${state.to}
          label="Memories by month"
          onSelect=${(from, to) => change({ from, to })}
        />
        <${ActiveFilters} state=${state} onToggle=${filter} onClear=${() => change(withoutFilters(state))} />
        ${!request
          ? html`<${Recent} where=${whereOf(state)} filtered=${hasFilters(state)} facets=${facets?.counts} ...${common} />`
          : state.compare
            ? html`<div class="columns">
                ${MODES.map(
                  (mode) =>
                    html`<section key=${mode} class="column" aria-label=${mode}>
                      <h2>${mode}</h2>
                      <${Results} request=${{ ...request, mode, limit: 10 }} ...${common} small />
                    </section>`,
                )}
              </div>`
            : html`<${Results} request=${request} onMore=${more} ...${common} />`}
      </div>
    </div>
    ${dialog === "help" && html`<${QueryHelp} onClose=${() => setDialog(null)} onTry=${ask} />`}
    ${dialog === "why" &&
    request &&
    html`<${WhyNot} request=${requestOf(state)} shown=${limit} onClose=${() => setDialog(null)} />`}
  </div>`;
}

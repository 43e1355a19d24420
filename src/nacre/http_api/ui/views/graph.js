// Entities and how they are related, as a picture and as lists, now or as of a day.

import { api, session } from "../api.js";
import { Button, Empty, Loading, Problem } from "../components.js";
import { useLive, useLoad, useTitle } from "../hooks.js";
import { navigate, parse } from "../router.js";
import { html, useCallback, useEffect, useMemo, useState } from "../vendor/htm-preact.js";
import { calendarOf, nextDay } from "./calendar.js";
import { GraphCanvas } from "./graph-canvas.js";
import { beginning, graphOf, isCurrent, partOf } from "./graph-data.js";
import { GraphLists } from "./graph-lists.js";
import { EntityPanel } from "./graph-panel.js";

const LISTED = 10_000; // the most that one request returns
const DRAWN = 600; // nodes at first
const DRAWN_MORE = 2_000;
const DAY_MS = 86_400_000;

async function load(signal) {
  const [entities, counts, relations] = await Promise.all([
    api.get("/entities", { limit: LISTED }, { signal }),
    api.get("/entities/counts", {}, { signal }),
    api.get("/facts", { relations: true, history: true, limit: LISTED }, { signal }),
  ]);
  return { graph: graphOf(entities, counts, relations), relations, cut: Math.max(entities.length, relations.length) >= LISTED };
}

export default function View({ route }) {
  useTitle(route.id ? `${route.id} · Graph` : "Graph");
  const { data, error, loading, reload } = useLoad(load, []);
  useLive(reload, ["fact", "entity"]);
  if (!data) return error ? html`<${Problem} error=${error} retry=${reload} />` : loading && html`<${Loading} />`;
  if (!data.graph.nodes.length) {
    return html`<section class="view" aria-label="Graph">
      <h1>Graph</h1>
      <${Empty} title="No entities are known here yet.">
        <p>People and things appear here when memories state facts about them.</p>
      </${Empty}>
    </section>`;
  }
  return html`<${Explorer} route=${route} ...${data} />`;
}

function Explorer({ route, graph, relations, cut }) {
  const { params } = route;
  const now = useMemo(() => Date.now(), [graph]);
  const asked = endOf(params.get("as_of") ?? "");
  const [sliding, setSliding] = useState(null); // while the slider is moved
  const at = sliding ?? (Number.isNaN(asked) ? now : asked);
  const isNow = at >= now;
  const selected = (route.id && graph.find(route.id)) || null;
  const most = params.has("more") ? DRAWN_MORE : DRAWN;
  const part = useMemo(() => partOf(graph, most, selected), [graph, most, selected?.degree === 0 || selected?.at >= most ? selected : null]);
  const [near, setNear] = useState(new Set());

  const go = useCallback(
    (name, change = {}, replace = false) => {
      const next = new URLSearchParams(params);
      for (const [each, value] of Object.entries(change)) {
        if (value === null) next.delete(each);
        else next.set(each, value);
      }
      navigate("graph", name, next, { replace });
    },
    [params],
  );
  const select = (node) => go(node?.name ?? null);
  const asOf = (ms) => go(route.id, { as_of: ms >= now ? null : calendarOf(session?.time_zone).day(ms) }, true);

  useEffect(() => {
    if (sliding === null) return undefined;
    const timer = setTimeout(() => {
      if (parse(window.location.hash).view === "graph") asOf(sliding); // and no other one is on its way
      setSliding(null);
    }, 250);
    return () => clearTimeout(timer);
  }, [sliding]);

  const current = useMemo(() => relations.filter((each) => isCurrent(each, at)), [relations, at]);
  const alone = graph.nodes.length - part.connected;
  const hidden = part.connected - part.nodes.length;
  return html`<section class=${`view fill graph ${selected ? "with-panel" : ""}`} aria-label="Graph">
    <div class="toolbar">
      <h1>Graph</h1>
      <span class="muted">
        ${number(graph.nodes.length, "entity", "entities")}, ${number(current.length, "relation", "relations")}
      </span>
      <span class="spacer"></span>
      <${AsOf} from=${beginning(relations, now)} to=${now} at=${at} onChange=${setSliding} />
      ${!isNow && html`<${Button} kind="small" onClick=${() => (setSliding(null), asOf(now))}>Now</${Button}>`}
    </div>
    <div class="graph-body">
      <${GraphLists} graph=${graph} relations=${current} selected=${selected} params=${params} onSelect=${go} />
      <div class="graph-middle">
        <${GraphCanvas}
          nodes=${part.nodes}
          links=${part.links}
          at=${at}
          selected=${selected}
          near=${near}
          onSelect=${select}
          label=${`Picture of ${number(part.nodes.length, "entity", "entities")} and their relations; the lists beside it say the same`}
        />
        <p class="graph-note small muted">
          ${hidden > 0 &&
          html`<span>
            ${part.nodes.length.toLocaleString()} of ${part.connected.toLocaleString()} are drawn.
            ${!params.has("more") &&
            html` <button type="button" class="link-button" onClick=${() => go(route.id, { more: 1 }, true)}>
              Draw ${Math.min(DRAWN_MORE, part.connected).toLocaleString()}
            </button>`}
          </span>`}
          ${alone > 0 && html`<span>${number(alone, "entity has", "entities have")} no relations.</span>`}
          ${cut && html`<span>There are more than ${LISTED.toLocaleString()}; the newest relations are here.</span>`}
        </p>
      </div>
      ${selected &&
      html`<${EntityPanel}
        key=${selected.name}
        node=${selected}
        graph=${graph}
        at=${at}
        asOf=${isNow ? null : new Date(at).toISOString()}
        params=${params}
        onDepth=${(depth) => go(route.id, { depth: depth === 1 ? null : depth }, true)}
        onNear=${setNear}
        onClose=${() => go(null)}
      />`}
      ${route.id && !selected && html`<p class="note warn graph-missing">No entity is called <bdi>${route.id}</bdi>.</p>`}
    </div>
  </section>`;
}

// What was so on a day is what was so at its end.
function endOf(day) {
  return /^\d{4}-\d\d-\d\d$/.test(day) ? calendarOf(session?.time_zone).start(nextDay(day)) - 1 : NaN;
}

function number(count, one, several) {
  return `${count.toLocaleString()} ${count === 1 ? one : several}`;
}

const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

// From the day of the first relation to now.
function AsOf({ from, to, at, onChange }) {
  const days = Math.max(1, Math.ceil((to - from) / DAY_MS));
  const day = Math.max(0, Math.min(days, at >= to ? days : Math.floor((at - from) / DAY_MS)));
  const name = day >= days ? "now" : DAY.format(at);
  const moved = (event) => {
    const chosen = Number(event.target.value);
    onChange(chosen >= days ? to : from + chosen * DAY_MS);
  };
  return html`<label class="as-of">
    <span>As of</span>
    <input type="range" min="0" max=${days} step="1" value=${day} aria-valuetext=${name} onInput=${moved} />
    <output>${name}</output>
  </label>`;
}

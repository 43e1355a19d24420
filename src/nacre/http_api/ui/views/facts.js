// Facts: what is believed now or was at another time, what replaced it, what fades and what contradicts itself.

import { api, session } from "../api.js";
import { Button, Empty, Loading, Problem, VirtualList } from "../components.js";
import { useLive, useLoad, useTitle } from "../hooks.js";
import { href, navigate } from "../router.js";
import { html, useMemo } from "../vendor/htm-preact.js";
import { calendarOf } from "./calendar.js";
import { Conflicts } from "./conflicts.js";
import { Confidence, Statement, TimeBar, spanOf, validity } from "./fact-parts.js";
import { FactPanel } from "./fact-panel.js";
import { useMedia } from "./media.js";

const SHOWN = [
  ["current", "Current"],
  ["as-of", "As of"],
  ["history", "History"],
  ["stale", "Stale"],
  ["conflicts", "Conflicts"],
];
const TYPES = ["identity", "preference", "relationship", "location", "config", "decision", "kv", "state", "temporal"];
const FIRST = 500;
const MOST = 10_000; // that one request returns
const WIDE = 40;
const NARROW = 72;

export default function View({ route }) {
  useTitle("Facts");
  const { params } = route;
  const show = SHOWN.find(([name]) => name === params.get("show"))?.[0] ?? "current";
  const tab = (name) => {
    const next = new URLSearchParams(params);
    next.delete("most");
    if (name === "current") next.delete("show");
    else next.set("show", name);
    return href("facts", null, next);
  };
  return html`<section class=${`view ${show === "conflicts" ? "" : "fill"} facts`} aria-label="Facts">
    <div class="toolbar">
      <h1>Facts</h1>
      <nav class="segments" aria-label="Which facts">
        ${SHOWN.map(
          ([name, label]) => html`<a key=${name} href=${tab(name)} aria-current=${name === show ? "true" : undefined}>${label}</a>`,
        )}
      </nav>
    </div>
    ${show === "conflicts" ? html`<${Conflicts} />` : html`<${List} show=${show} route=${route} />`}
  </section>`;
}

function ask(show, params, signal) {
  if (show === "stale") return api.get("/facts/stale", {}, { signal });
  const asked = {
    subject: params.get("subject"),
    predicate: params.get("predicate"),
    type: params.get("type"),
    history: show === "history" || undefined,
    as_of: show === "as-of" && params.get("at") ? endOfDay(params.get("at")) : undefined,
    limit: params.has("most") ? MOST : FIRST,
  };
  return api.get("/facts", asked, { signal });
}

// What was believed on a day is what was believed at its end; today, it is what is believed now.
function endOfDay(day) {
  const calendar = calendarOf(session?.time_zone);
  const end = calendar.start(day) + 86_400_000 - 1;
  return end > Date.now() ? undefined : new Date(end).toISOString();
}

function List({ show, route }) {
  const { params, id } = route;
  const narrow = useMedia("(max-width: 720px)");
  const names = ["subject", "predicate", "type", "at", "most"];
  const { data, error, loading, reload } = useLoad(
    (signal) => ask(show, params, signal),
    [show, ...names.map((each) => params.get(each))],
  );
  useLive(reload, ["fact", "memory"]);
  const facts = useMemo(() => (data && show === "stale" ? data.filter(matching(params)) : data), [data, show, params]);
  const at = show === "as-of" && params.get("at") ? Date.parse(endOfDay(params.get("at")) ?? new Date()) : Date.now();
  const span = useMemo(() => spanOf(facts ?? [], Date.now()), [facts]);
  const selected = facts?.findIndex((each) => each.id === id) ?? -1;

  const change = (name, value) => {
    const next = new URLSearchParams(params);
    next.delete(name);
    if (value) next.set(name, value);
    navigate("facts", id, next);
  };
  const full = facts && !params.has("most") && facts.length === FIRST && show !== "stale";
  return html`
    <${Filters} show=${show} params=${params} facts=${facts ?? []} onChange=${change} />
    ${error && html`<${Problem} error=${error} retry=${reload} />`}
    ${!facts && loading && html`<${Loading} />`}
    ${facts &&
    (facts.length
      ? html`<div class=${`split ${selected >= 0 ? "with-panel" : ""}`}>
          <div class="split-main">
            <div class="fact-row head" aria-hidden="true">
              <span>${facts.length.toLocaleString()}${full ? " newest" : ""} ${facts.length === 1 ? "fact" : "facts"}</span>
              <span>Type</span><span>Confidence</span><span>Holds</span><span></span>
            </div>
            <${VirtualList}
              count=${facts.length}
              rowHeight=${narrow ? NARROW : WIDE}
              label="Facts"
              active=${selected}
              onActive=${(row) => navigate("facts", facts[row].id, params, { replace: true })}
              renderRow=${(row) => html`<${Row} fact=${facts[row]} span=${span} at=${at} params=${params} chosen=${row === selected} />`}
            />
            ${full && html`<p class="small"><${Button} kind="small" onClick=${() => change("most", "1")}>Show more</${Button}></p>`}
          </div>
          ${selected >= 0 &&
          html`<${FactPanel}
            key=${id}
            fact=${facts[selected]}
            facts=${facts}
            span=${span}
            at=${at}
            params=${params}
            reload=${reload}
            onClose=${() => navigate("facts", null, params)}
          />`}
        </div>`
      : html`<${Nothing} show=${show} params=${params} />`)}
  `;
}

function matching(params) {
  const [subject, predicate, type] = ["subject", "predicate", "type"].map((each) => params.get(each)?.toLowerCase());
  return (fact) =>
    (!subject || fact.subject.toLowerCase() === subject) &&
    (!predicate || fact.predicate.toLowerCase() === predicate) &&
    (!type || fact.type === type);
}

function Nothing({ show, params }) {
  if (["subject", "predicate", "type"].some((each) => params.get(each))) {
    return html`<${Empty} title="No fact is like this.">
      <p>Names must be given whole; capital letters do not matter, and other names of an entity count as well.</p>
    </${Empty}>`;
  }
  const [title, said] = {
    stale: ["No fact is stale.", "Facts whose confidence has been below one half for thirty days are shown here."],
    "as-of": ["No fact was current then.", "Choose a later day."],
  }[show] ?? ["No facts are known here yet.", "They are read from texts such as “port: 5432”, or given by the agent."];
  return html`<${Empty} title=${title}><p>${said}</p></${Empty}>`;
}

function Filters({ show, params, facts, onChange }) {
  const values = (name) => [...new Set(facts.map((each) => each[name]))].slice(0, 200);
  const field = (name) =>
    html`<label class="compact">
      <span class="visually-hidden">${name}</span>
      <input
        list=${`facts-${name}`}
        placeholder=${name}
        class=${params.get(name) ? "set" : ""}
        value=${params.get(name) ?? ""}
        onChange=${(event) => onChange(name, event.target.value.trim())}
      />
      <datalist id=${`facts-${name}`}>${values(name).map((each) => html`<option key=${each} value=${each} />`)}</datalist>
    </label>`;
  return html`<div class="toolbar filters"><div class="tools">
    ${show === "as-of" &&
    html`<label class="compact">
      <span>On</span>
      <input type="date" value=${params.get("at") ?? ""} onChange=${(event) => onChange("at", event.target.value)} />
    </label>`}
    ${field("subject")} ${field("predicate")}
    <label class="compact">
      <span class="visually-hidden">type</span>
      <select
        class=${params.get("type") ? "set" : ""}
        value=${params.get("type") ?? ""}
        onChange=${(event) => onChange("type", event.target.value)}
      >
        <option value="">any type</option>
        ${TYPES.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}
      </select>
    </label>
  </div></div>`;
}

function Row({ fact, span, at, params, chosen }) {
  return html`<a
    class=${`fact-row ${fact.superseded_by ? "past" : ""}`}
    href=${href("facts", fact.id, params)}
    aria-current=${chosen ? "true" : undefined}
  >
    <${Statement} fact=${fact} />
    <span class="fact-type">${fact.type}</span>
    <${Confidence} fact=${fact} />
    <${TimeBar} fact=${fact} span=${span} at=${at} />
    <span class="fact-since small muted">${validity(fact)}</span>
  </a>`;
}

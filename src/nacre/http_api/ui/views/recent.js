// What is there before anything is asked: the latest memories, and what to try.

import { api } from "../api.js";
import { Button, Empty, Loading, Problem } from "../components.js";
import { useLoad } from "../hooks.js";
import { html, useEffect, useState } from "../vendor/htm-preact.js";
import { EntryList } from "./hits.js";

const PAGE = 30;

function Tries({ facets, onAsk }) {
  const [tag] = Object.keys(facets?.tags ?? {});
  const namespace = Object.keys(facets?.namespaces ?? {}).find((each) => each !== "general");
  const quoted = (value) => (/[\s,:"]/.test(value) ? `"${value.replaceAll('"', "")}"` : value);
  const tries = [
    "what changed last week?",
    "since:30d",
    tag && `tag:${quoted(tag)}`,
    namespace && `ns:${quoted(namespace)} since:90d`,
    "kind:preference",
  ].filter(Boolean);
  return html`<p class="tries">
    <span class="muted">Ask a question, or try</span>
    ${tries.map(
      (each) => html`<button key=${each} type="button" class="chip" onClick=${() => onAsk(each)}><bdi>${each}</bdi></button>`,
    )}
  </p>`;
}

export function Recent({ where, filtered, facets, turn, onFilter, onAsk }) {
  const [limit, setLimit] = useState(PAGE);
  const { data, error, loading, reload } = useLoad(
    (signal) => api.post("/timeline", { limit, ...(where ? { where } : {}) }, { signal }),
    [JSON.stringify(where), limit, turn],
  );
  useEffect(() => setLimit(PAGE), [JSON.stringify(where)]);
  if (error && !data) return html`<${Problem} error=${error} retry=${reload} />`;
  if (!data) return html`<${Loading} />`;
  const { entries, next } = data;
  if (!entries.length) {
    return html`<${Empty} title=${filtered ? "No memory matches" : "Nothing is remembered in this space yet"}>
      <p>${filtered ? "Remove a filter." : "What agents remember here appears at once. The + above adds a memory."}</p>
    </${Empty}>`;
  }
  return html`${!filtered && html`<${Tries} facets=${facets} onAsk=${onAsk} />`}
    <h2 class="list-title">${filtered ? "Matching memories" : "Latest memories"}</h2>
    <${EntryList} entries=${entries} onFilter=${onFilter} label="Memories, newest first" />
    ${next &&
    html`<footer class="results-foot">
      <${Button} disabled=${loading} onClick=${() => setLimit(Math.min(1_000, limit + 2 * PAGE))}>Show more</${Button}>
    </footer>`}`;
}

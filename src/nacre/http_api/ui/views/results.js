// What a search answers: its hits, and what it has to say besides.

import { Button, Empty, Loading, MemoryLink, Problem } from "../components.js";
import { counted, percent } from "../text.js";
import { html } from "../vendor/htm-preact.js";
import { HitList } from "./hits.js";
import { useSearch } from "./use-search.js";

const MOST = 100; // hits on one page

function Said({ result, onAsk }) {
  const { notes, did_you_mean: meant, answerable, hits } = result;
  return html`${meant &&
    html`<p class="note">
      Did you mean
      <button type="button" class="link-button" onClick=${() => onAsk(meant.query)}><bdi>${meant.query}</bdi></button>?
    </p>`}
    ${notes.map((each) => html`<p key=${each} class="note">${each}</p>`)}
    ${!answerable &&
    hits.length > 0 &&
    html`<p class="note warn">Nothing is likely to answer this. These are the nearest.</p>`}`;
}

function Relations({ relations, hits }) {
  const stated = new Set(hits.map((each) => each.relation?.id));
  const beside = relations.filter((each) => !stated.has(each.fact.id)).slice(0, 6);
  if (!beside.length) return null;
  return html`<section class="relations" aria-label="Relations">
    <h2>Relations</h2>
    <ul>
      ${beside.map(
        ({ fact }) =>
          html`<li key=${fact.id}>
            <${MemoryLink} id=${fact.memory_id}>
              <bdi>${fact.subject}</bdi> <em><bdi>${fact.predicate}</bdi></em> <bdi>${fact.object}</bdi>
            </${MemoryLink}>
          </li>`,
      )}
    </ul>
  </section>`;
}

// What the search made of the query.
function Reading({ result, limit, stage, loading }) {
  const { hits, lens, intent } = result;
  const done = stage === "full" && !loading;
  return html`<p class="reading muted small">
    <span role="status">${hits.length === limit ? `the best ${limit}` : counted(hits.length, "memory", "memories")}</span>
    ${intent && html`<span title=${`confidence ${percent(intent.confidence)}`}>read as: ${intent.name.replaceAll("_", " ")}</span>`}
    ${lens && html`<span>lens: <bdi>${lens}</bdi></span>`}
    <span class=${`stage ${done ? "" : "busy"}`}>${done ? "fully ranked" : "ranking…"}</span>
  </p>`;
}

export function Results({ request, typed, now, turn, onFilter, onAsk, onWhyNot, onMore, small = false }) {
  const { data, error, stage, loading } = useSearch(request, { typed, now, turn });
  if (error && (!data || !loading)) return html`<${Problem} error=${error} />`;
  if (!data) return html`<${Loading} label="Searching" />`;
  const { hits, relations } = data;
  return html`<${Reading} result=${data} limit=${request.limit} stage=${stage} loading=${loading} />
    <${Said} result=${data} onAsk=${onAsk} />
    ${hits.length
      ? html`<${HitList} hits=${hits} label=${`Results, ${request.mode}`} onFilter=${onFilter} />`
      : !loading && html`<${Empty} title="Nothing found">
          <p>Other words, fewer filters, or another mode may help.</p>
        </${Empty}>`}
    ${!small && html`<${Relations} relations=${relations} hits=${hits} />`}
    ${!small &&
    html`<footer class="results-foot">
      ${hits.length >= request.limit && request.limit < MOST && html`<${Button} onClick=${onMore}>Show more</${Button}>`}
      <${Button} kind="quiet" onClick=${onWhyNot}>Missing one? Ask why it is not here</${Button}>
    </footer>`}`;
}

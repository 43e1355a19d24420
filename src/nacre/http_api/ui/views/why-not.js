// Why is a memory not among the hits, or why where it is? For any memory, by its id or by words of it.

import { api } from "../api.js";
import { Button, Dialog, Empty, Loading, MemoryLink, Problem } from "../components.js";
import { useLoad } from "../hooks.js";
import { html, useState } from "../vendor/htm-preact.js";
import { Facts, Snippet } from "./hits.js";
import { Reasons } from "./reasons.js";

const CHOICES = 8;
const ID = /^[0-9a-hjkmnp-tv-z]{16}$/;

// Memories to choose from: those with the words, also parts of words; without words the latest.
async function choices(words, signal) {
  if (ID.test(words)) {
    const { memories } = await api.get("/memories", { ids: words, missing_ok: true }, { signal });
    return memories.map((each) => ({ ...each, said: each.summary ?? each.text.slice(0, 200) }));
  }
  if (!words) {
    const { entries } = await api.get("/timeline", { limit: CHOICES }, { signal });
    return entries.map((each) => ({ ...each, said: each.summary }));
  }
  const body = { query: words, mode: "keyword", limit: CHOICES, rerank: false, collapse: false };
  const { hits } = await api.post("/search", body, { signal });
  return hits;
}

function Choice({ of, onChoose }) {
  return html`<li>
    <button type="button" class="choice" onClick=${() => onChoose(of)}>
      <span class="said" dir="auto">${of.snippet ? html`<${Snippet} snippet=${of.snippet} />` : of.said}</span>
      <${Facts} of=${of} />
    </button>
  </li>`;
}

function Choose({ onChoose }) {
  const [words, setWords] = useState("");
  const { data, error } = useLoad((signal) => choices(words.trim(), signal), [words.trim()]);
  return html`<label class="field">
      <span>Which memory? Its id, or words of it</span>
      <input type="search" dir="auto" autofocus value=${words} onInput=${(event) => setWords(event.target.value)} />
    </label>
    <${Problem} error=${error} />
    ${data && !data.length && html`<${Empty} title="No memory has these words" />`}
    <ul class="choices" aria-label="Memories">
      ${data?.map((each) => html`<${Choice} key=${each.id} of=${each} onChoose=${onChoose} />`)}
    </ul>`;
}

function Answer({ request, of, shown }) {
  const { data, error, reload } = useLoad(
    (signal) => api.post("/why", { ...request, memory_id: of.id }, { signal }),
    [JSON.stringify(request), of.id],
  );
  if (error) return html`<${Problem} error=${error} retry=${reload} />`;
  if (!data) return html`<${Loading} label="Following it through the search" />`;
  const { rank, left_out: left, hit, below, matched } = data;
  const found = left.stage === "found";
  return html`<div class="why">
    <p class=${`why-verdict ${found ? "found" : "lost"}`} role="status">
      ${found
        ? html`It is at place ${rank}${rank > shown && `, below the ${shown} that are shown`}.`
        : html`It was left out at the stage <strong>${left.stage}</strong>.`}
    </p>
    ${left.explanation && html`<p class="said">${left.explanation}</p>`}
    ${left.remedy && html`<p class="why-remedy said"><strong>What helps:</strong> ${left.remedy}</p>`}
    ${below && html`<p class="said">${below}</p>`}
    ${hit && html`<${Reasons} hit=${hit} />`}
    ${matched.length > 0 &&
    html`<p class="muted small">
      Words that met:
      ${matched.slice(0, 12).map((each) => html` <span class="pair"><bdi>${each.asked}</bdi> → <bdi>${each.found}</bdi></span>`)}
    </p>`}
  </div>`;
}

export function WhyNot({ request, shown, onClose }) {
  const [of, setOf] = useState(null);
  return html`<${Dialog} title="Why not?" onClose=${onClose} class="wide">
    <p class="muted">For the query <strong class="said">${request.query || "(none)"}</strong></p>
    ${of === null
      ? html`<${Choose} onChoose=${setOf} />`
      : html`<blockquote class="why-memory">
            <p class="said" dir="auto">${of.snippet ? html`<${Snippet} snippet=${of.snippet} />` : of.said}</p>
            <${Facts} of=${of} />
          </blockquote>
          <${Answer} request=${request} of=${of} shown=${shown} />
          <footer class="dialog-foot">
            <${MemoryLink} id=${of.id} class="button" onClick=${onClose}>Open it</${MemoryLink}>
            <${Button} onClick=${() => setOf(null)}>Another memory</${Button}>
          </footer>`}
  </${Dialog}>`;
}

// Why a hit has its score: a bar of its reasons, and the numbers behind them.

import { html, useState } from "../vendor/htm-preact.js";
import { short } from "../text.js";

// Name, colour and what it means.
const SIGNALS = {
  lexical: ["words", "c3", "words of the query (BM25)"],
  semantic: ["meaning", "c1", "close in meaning to the query"],
  boost: ["meaning", "c1", "words, boosted by meaning"],
  maxsim: ["word by word", "c6", "compared word by word"],
  rerank: ["reranked", "c2", "the reranker read it with the query"],
  echo: ["neighbours", "c4", "next to a good match in its session"],
  relation: ["relation", "c5", "a relation of it matches"],
  temporal: ["time", "c7", "from the time that the query names"],
  order: ["order", "c7", "its place in time among the best"],
  exact: ["exact", "c8", "has what the query names exactly"],
  hop: ["hop", "c5", "has names of a first hit"],
  standing: ["standing", "c5", "holds for what is to be done"],
  fresher: ["fresher", "c4", "newer than a better match that is much like it"],
  successor: ["successor", "c4", "supersedes a better match"],
  superseded: ["superseded", "c9", "another memory holds in its place"],
  filter: ["filter", "c9", "matches every condition"],
  recency: ["recency", "c4", "how new it is"],
  confidence: ["confidence", "c9", "confidence in its facts"],
  entity: ["entity", "c5", "about a boosted entity"],
  intent: ["intent", "c7", "its namespace suits such questions"],
  usage: ["usage", "c6", "useful or wrong before"],
  namespace: ["namespace", "c8", "weighted by the recipe"],
  importance: ["importance", "c3", "how important it is"],
  session: ["session", "c4", "of the same session"],
};

function known(signal) {
  return SIGNALS[signal] ?? [signal, "c9", signal];
}

// What each reason gives to the score or takes from it: shares first, then what each factor makes of their sum.
export function contributions(reasons) {
  const parts = [];
  let total = 0;
  for (const each of reasons) {
    if (each.effect !== "add") continue;
    total += each.value;
    parts.push({ ...each, part: each.value });
  }
  for (const each of reasons) {
    if (each.effect === "add") continue;
    const part = total * (each.value - 1);
    total += part;
    parts.push({ ...each, part });
  }
  return parts;
}

// How much the longest of several bars has to show.
export function widest(hits) {
  return Math.max(1e-9, ...hits.map((hit) => gained(contributions(hit.reasons))));
}

function gained(parts) {
  return parts.reduce((sum, each) => sum + Math.max(0, each.part), 0);
}

function said(parts) {
  const most = [...parts].filter((each) => Math.abs(each.part) > 1e-6).sort((a, b) => Math.abs(b.part) - Math.abs(a.part));
  return most.map((each) => {
    const [name] = known(each.signal);
    return each.effect === "add" ? `${name} ${short(each.value)}` : `${name} × ${each.value.toFixed(2)}`;
  });
}

// A stacked bar, a button that opens the numbers. `most` is what fills its whole width.
export function Reasons({ hit, most }) {
  const [open, setOpen] = useState(false);
  const parts = contributions(hit.reasons);
  if (!parts.length) return null;
  const all = gained(parts);
  const scale = 1000 / (most ?? all);
  let at = 0;
  const bars = parts
    .filter((each) => each.part > 0)
    .map((each) => {
      const x = at;
      at += each.part * scale;
      return html`<rect
        class="bar-part"
        data-colour=${known(each.signal)[1]}
        x=${x}
        width=${Math.max(0, at - x)}
        height="10"
      />`;
    });
  const off = Math.max(0, all - hit.score) * scale;
  const words = said(parts);
  const name = `Score ${short(hit.score)}: ${words.join(", ")}. ${open ? "Hide" : "Show"} the numbers`;
  return html`<div class="reasons">
    <button type="button" class="reasons-bar" aria-expanded=${open} aria-label=${name} onClick=${() => setOpen(!open)}>
      <svg viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">
        <rect class="bar-ground" width="1000" height="10" />
        ${bars} ${off > 0 && html`<rect class="bar-off" x=${Math.max(0, at - off)} width=${off} height="10" />`}
      </svg>
    </button>
    <span class="reasons-said" aria-hidden="true">
        ${parts
          .filter((each) => each.effect === "add" && each.part > 0.04 * all)
          .sort((a, b) => b.part - a.part)
          .slice(0, 3)
          .map((each) => html`<${Key} signal=${each.signal} />`)}
    </span>
    ${open && html`<${Numbers} hit=${hit} parts=${parts} />`}
  </div>`;
}

function Key({ signal }) {
  const [name, colour] = known(signal);
  return html`<span class="key"><i class="dot" data-colour=${colour}></i>${name}</span>`;
}

function Numbers({ hit, parts }) {
  return html`<div class="numbers-box" tabindex="0" role="region" aria-label="Numbers of the score">
    <table class="numbers">
      <thead>
        <tr>
          <th scope="col">Reason</th>
          <th scope="col" class="number">Effect</th>
          <th scope="col" class="number">In the score</th>
          <th scope="col">Numbers</th>
        </tr>
      </thead>
      <tbody>
        ${parts.map(
          (each) =>
            html`<tr key=${each.signal}>
              <th scope="row" title=${known(each.signal)[2]}><${Key} signal=${each.signal} /></th>
              <td class="number">${each.effect === "add" ? `+ ${short(each.value)}` : `× ${each.value.toFixed(4)}`}</td>
              <td class="number">${each.part < 0 ? "−" : "+"}${short(Math.abs(each.part))}</td>
              <td class="pairs">
                ${Object.entries(each.numbers).map(
                  ([name, value]) => html`<span key=${name}>${name.replaceAll("_", " ")} <b>${short(value)}</b></span>`,
                )}
              </td>
            </tr>`,
        )}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">Score</th>
          <td class="number"></td>
          <td class="number"><b>${short(hit.score)}</b></td>
          <td class="muted">the sum of the shares, times the factors</td>
        </tr>
      </tfoot>
    </table>
  </div>`;
}

// Memories in a list: what a search found, or what the timeline has.

import { Chip, Icon, MemoryLink, Time } from "../components.js";
import { href } from "../router.js";
import { counted, percent, slices } from "../text.js";
import { html, useState } from "../vendor/htm-preact.js";
import { Reasons, widest } from "./reasons.js";

const CUT = 200; // characters from which a snippet that ends within a sentence was cut

export function Snippet({ snippet }) {
  const { text, start, highlights } = snippet;
  const cut = text.length > CUT && !/[.!?…。)"'\]]\s*$/.test(text);
  return html`${start > 0 && "… "}${slices(text, highlights).map((each) =>
    each.marked ? html`<mark>${each.text}</mark>` : each.text,
  )}${cut && " …"}`;
}

// Kind, namespace, tags, time. `onFilter(field, value)` makes the first three buttons.
export function Facts({ of, onFilter }) {
  const tag = (field, value, label) =>
    onFilter
      ? html`<button type="button" class="meta-button" onClick=${() => onFilter(field, value)} title="Only these">
          <bdi>${label ?? value}</bdi>
        </button>`
      : html`<bdi>${label ?? value}</bdi>`;
  return html`<div class="meta">
    ${of.pinned && html`<span class="meta-pin" title="Pinned"><${Icon} name="pin" /><span class="visually-hidden">pinned</span></span>`}
    <${Time} at=${of.happened ?? of.created} day />
    ${tag("ns", of.namespace)} ${of.kind !== "note" && tag("kind", of.kind)}
    ${of.tags.map((each) => html`<span key=${each} class="meta-tag">${tag("tag", each, `#${each}`)}</span>`)}
    ${of.source && html`<bdi class="meta-source">${of.source}</bdi>`}
  </div>`;
}

function Alike({ ids }) {
  const [open, setOpen] = useState(false);
  if (!ids.length) return null;
  return html`<span>
    <button type="button" class="link-button small" aria-expanded=${open} onClick=${() => setOpen(!open)}>
      ${counted(ids.length, "near-duplicate")}
    </button>
    ${open && ids.map((each) => html` <${MemoryLink} key=${each} id=${each} />`)}
  </span>`;
}

export function Hit({ hit, most, onFilter }) {
  const { relevance, superseded_by: newer } = hit;
  return html`<li class=${`hit ${newer ? "old" : ""}`}>
    <div class="hit-relevance" title="How likely it answers the query">
      ${relevance !== null &&
      html`<span class="ring" data-level=${relevance >= 0.5 ? "high" : relevance >= 0.15 ? "middle" : "low"}>
        <svg viewBox="0 0 36 36" aria-hidden="true">
          <circle class="ring-ground" cx="18" cy="18" r="15.9" />
          <circle class="ring-part" cx="18" cy="18" r="15.9" stroke-dasharray=${`${100 * relevance} 100`} />
        </svg>
        <span><span class="visually-hidden">Relevance </span>${percent(relevance)}</span>
      </span>`}
    </div>
    <div class="hit-body">
      <a class="hit-text said" dir="auto" href=${href("memory", hit.id)}><${Snippet} snippet=${hit.snippet} /></a>
      <${Facts} of=${hit} onFilter=${onFilter} />
      ${(newer || hit.similar.length > 0 || hit.relation) &&
      html`<div class="hit-more">
        ${hit.relation && html`<${Chip}>found by a relation</${Chip}>`}
        ${newer &&
        html`<span class="superseded">
          Superseded since <${Time} at=${newer.since} day /> by <${MemoryLink} id=${newer.id}>a newer memory</${MemoryLink}>
        </span>`}
        <${Alike} ids=${hit.similar} />
      </div>`}
      <${Reasons} hit=${hit} most=${most} />
    </div>
  </li>`;
}

// Arrow keys move between the links of a list.
export function moveFocus(list, by) {
  const links = [...list.querySelectorAll(".hit-text")];
  const at = links.indexOf(document.activeElement?.closest(".hit")?.querySelector(".hit-text"));
  const next = links[at === -1 ? (by > 0 ? 0 : links.length - 1) : at + by];
  next?.focus();
  return next !== undefined;
}

export function HitList({ hits, onFilter, label }) {
  const most = widest(hits);
  return html`<ol class="hits" aria-label=${label}>
    ${hits.map((each) => html`<${Hit} key=${each.id} hit=${each} most=${most} onFilter=${onFilter} />`)}
  </ol>`;
}

// Entries of the timeline in the same look.
export function EntryList({ entries, onFilter, label }) {
  return html`<ol class="hits" aria-label=${label}>
    ${entries.map(
      (each) =>
        html`<li key=${each.id} class="hit plain">
          <div class="hit-body">
            <a class="hit-text said" dir="auto" href=${href("memory", each.id)}>${each.summary}</a>
            <${Facts} of=${each} onFilter=${onFilter} />
          </div>
        </li>`,
    )}
  </ol>`;
}

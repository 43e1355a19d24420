// One entity of the graph: its names, relations, facts, memories, and what it is related to further away.

import { api } from "../api.js";
import { Button, Chip, MemoryLink, Problem, Time } from "../components.js";
import { useLoad } from "../hooks.js";
import { href } from "../router.js";
import { html, useEffect } from "../vendor/htm-preact.js";
import { Confidence } from "./fact-parts.js";
import { isCurrent } from "./graph-data.js";

const FACTS = 100;
const DEPTHS = [1, 2, 3];

export function EntityPanel({ node, graph, at, asOf, params, onDepth, onNear, onClose }) {
  const depth = DEPTHS.find((each) => String(each) === params.get("depth")) ?? 1;
  const facts = useLoad(
    (signal) => api.get("/facts", { subject: node.name, as_of: asOf, limit: FACTS }, { signal }),
    [node, asOf],
  );
  const related = useLoad(
    (signal) => api.get("/entities/related", { name: node.name, depth, as_of: asOf }, { signal }),
    [node, asOf, depth],
  );
  useEffect(() => {
    const direct = node.links.filter((each) => each.facts.some((fact) => isCurrent(fact, at)));
    const near = direct.flatMap((each) => [each.from, each.to]);
    const further = (related.data ?? []).map((each) => graph.find(each.name));
    onNear(new Set([...near, ...further].filter(Boolean)));
  }, [node, related.data, at]);

  const relations = node.links.flatMap((each) => each.facts).filter((each) => isCurrent(each, at));
  const others = (facts.data ?? []).filter((each) => !each.relation);
  const search = href("search", null, { q: `entity:${quoted(node.name)}` });
  return html`<aside class="panel graph-panel" aria-label=${`Entity ${node.name}`}>
    <header class="panel-head">
      <h2><bdi>${node.name}</bdi></h2>
      <${Button} kind="quiet small" icon="close" label="Close" onClick=${onClose} />
    </header>
    <div class="chips">
      ${node.type && html`<${Chip}>${node.type}</${Chip}>`}
      ${node.aliases.map((each) => html`<span key=${each} class="small muted">also <bdi>${each}</bdi></span>`)}
    </div>
    <p class="small">
      <a href=${search}>${node.count === 1 ? "1 memory" : `${node.count.toLocaleString()} memories`} about it</a>
      ${" · "}<a href=${href("facts", null, { subject: node.name, show: "history" })}>all its facts</a>
    </p>

    <h3>Relations</h3>
    ${relations.length
      ? html`<ul class="panel-list">
          ${relations.map((each) => html`<${Relation} key=${each.id} fact=${each} node=${node} graph=${graph} params=${params} />`)}
        </ul>`
      : html`<p class="muted small">None ${asOf ? "at that time" : "now"}.</p>`}

    <h3>Facts</h3>
    <${Problem} error=${facts.error} retry=${facts.reload} />
    ${facts.data &&
    (others.length
      ? html`<ul class="panel-list">
          ${others.map(
            (each) =>
              html`<li key=${each.id}>
                <p><bdi class="muted">${each.predicate}</bdi> <bdi>${each.object}</bdi></p>
                <p class="panel-meta">
                  <${Confidence} fact=${each} /> <span>since <${Time} at=${each.valid_from} day /></span>
                  <${MemoryLink} id=${each.memory_id}>memory</${MemoryLink}>
                </p>
              </li>`,
          )}
        </ul>`
      : html`<p class="muted small">No other facts about it.</p>`)}

    <div class="panel-line">
      <h3>Related</h3>
      <label class="compact small">
        within
        <select value=${String(depth)} onChange=${(event) => onDepth(Number(event.target.value))}>
          ${DEPTHS.map((each) => html`<option key=${each} value=${String(each)}>${each === 1 ? "1 step" : `${each} steps`}</option>`)}
        </select>
      </label>
    </div>
    ${related.error?.status === 404
      ? html`<p class="muted small">It is no entity any more, but relations name it.</p>`
      : html`<${Problem} error=${related.error} retry=${related.reload} />`}
    <ul class="panel-list">
      ${(related.data ?? []).map(
        (each) =>
          html`<li key=${each.name}>
            <p>
              <a href=${href("graph", each.name, params)}><bdi>${each.name}</bdi></a>
              ${each.distance > 1 && html` <span class="muted small">${each.distance} steps</span>`}
            </p>
            ${each.distance > 1 && html`<p class="panel-meta"><bdi>${pathText(each.path)}</bdi></p>`}
          </li>`,
      )}
    </ul>
  </aside>`;
}

function Relation({ fact, node, graph, params }) {
  const forward = graph.find(fact.subject) === node;
  const other = forward ? fact.object : fact.subject;
  const link = html`<a href=${href("graph", graph.find(other)?.name ?? other, params)}><bdi>${other}</bdi></a>`;
  return html`<li>
    <p>${forward ? html`<bdi class="muted">${fact.predicate}</bdi> ${link}` : html`${link} <bdi class="muted">${fact.predicate}</bdi> this`}</p>
    <p class="panel-meta">
      <span>since <${Time} at=${fact.valid_from} day /></span> <${MemoryLink} id=${fact.memory_id}>memory</${MemoryLink}>
    </p>
  </li>`;
}

function pathText(path) {
  return path.map((each) => `${each.subject} ${each.predicate} ${each.object}`).join("; ");
}

function quoted(text) {
  return `"${text.replaceAll('"', "")}"`;
}

// The graph in words: all entities, and all relations. Moving through a list moves the selection in the picture.

import { VirtualList } from "../components.js";
import { href } from "../router.js";
import { html, useMemo, useState } from "../vendor/htm-preact.js";
import { fold } from "./graph-data.js";

const ROW = 34;

// `onSelect(name, change, replace)` goes to an entity.
export function GraphLists({ graph, relations, selected, params, onSelect }) {
  const [typed, setTyped] = useState("");
  const list = params.get("list") === "relations" ? "relations" : "entities";
  const wanted = fold(typed);
  const entities = useMemo(
    () => graph.nodes.filter((each) => [each.name, ...each.aliases].some((name) => fold(name).includes(wanted))),
    [graph, wanted],
  );
  const stated = useMemo(
    () => relations.filter((each) => fold(`${each.subject} ${each.predicate} ${each.object}`).includes(wanted)),
    [relations, wanted],
  );
  const shown = list === "entities" ? entities : stated;
  const [activeRelation, setActiveRelation] = useState(-1);
  const tab = (name, label, count) =>
    html`<button
      type="button"
      aria-pressed=${list === name}
      onClick=${() => onSelect(selected?.name ?? null, { list: name === "entities" ? null : name }, true)}
    >
      ${label} <span class="muted">${count.toLocaleString()}</span>
    </button>`;
  const enter = (event) => {
    event.preventDefault();
    if (list === "entities" && entities.length) onSelect(entities[0].name);
  };
  return html`<div class="graph-lists">
    <form onSubmit=${enter}>
      <label class="visually-hidden" for="graph-find">Find by name</label>
      <input
        id="graph-find"
        type="search"
        placeholder="Find by name"
        value=${typed}
        onInput=${(event) => setTyped(event.target.value)}
      />
    </form>
    <div class="segments" role="group" aria-label="List">
      ${tab("entities", "Entities", entities.length)} ${tab("relations", "Relations", stated.length)}
    </div>
    ${shown.length
      ? html`<${VirtualList}
          key=${list}
          class="graph-list"
          count=${shown.length}
          rowHeight=${ROW}
          label=${list === "entities" ? "Entities" : "Relations"}
          active=${list === "entities" ? entities.indexOf(selected) : activeRelation}
          onActive=${(at) => {
            if (list === "entities") onSelect(entities[at].name, {}, true);
            else {
              setActiveRelation(at);
              onSelect(graph.find(stated[at].subject)?.name ?? null, {}, true);
            }
          }}
          renderRow=${(at) =>
            list === "entities"
              ? html`<${EntityRow} node=${entities[at]} selected=${selected} params=${params} />`
              : html`<${RelationRow} fact=${stated[at]} params=${params} />`}
        />`
      : html`<p class="muted small graph-none">None has this name.</p>`}
  </div>`;
}

function EntityRow({ node, selected, params }) {
  return html`<a
    class="graph-row"
    href=${href("graph", node.name, params)}
    aria-current=${node === selected ? "true" : undefined}
  >
    <bdi>${node.name}</bdi>
    <span class="muted small">
      ${node.degree > 0 && html`<span title="Related entities">${node.degree.toLocaleString()}</span>`}
    </span>
  </a>`;
}

function RelationRow({ fact, params }) {
  return html`<a class="graph-row" href=${href("graph", fact.subject, params)}>
    <span class="graph-statement">
      <bdi>${fact.subject}</bdi> <bdi class="muted">${fact.predicate}</bdi> <bdi>${fact.object}</bdi>
    </span>
  </a>`;
}

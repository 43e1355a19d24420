// Counts of what matches, to click: each adds a filter.

import { Button, Chip } from "../components.js";
import { html, useState } from "../vendor/htm-preact.js";
import { FIELDS, hasFilters } from "./search-state.js";

const SHOWN = 7;
const GROUPS = [
  ["kind", "kinds", "Kind"],
  ["ns", "namespaces", "Namespace"],
  ["tag", "tags", "Tag"],
  ["source", "sources", "Source"],
];

function Group({ name, values, chosen, onToggle }) {
  const [all, setAll] = useState(false);
  const entries = Object.entries(values);
  if (!entries.length) return null;
  const shown = all ? entries.slice(0, 200) : entries.slice(0, SHOWN);
  return html`<section class="facet">
    <h2>${name}</h2>
    <ul>
      ${shown.map(
        ([value, count]) =>
          html`<li key=${value}>
            <button
              type="button"
              class="facet-value"
              aria-pressed=${chosen.includes(value)}
              onClick=${() => onToggle(value)}
            >
              <bdi title=${value}>${value}</bdi><span class="facet-count">${count.toLocaleString()}</span>
            </button>
          </li>`,
      )}
    </ul>
    ${entries.length > SHOWN &&
    html`<button type="button" class="link-button small" aria-expanded=${all} onClick=${() => setAll(!all)}>
      ${all ? "Fewer" : `${entries.length - SHOWN} more`}
    </button>`}
  </section>`;
}

export function FacetPanel({ facets, state, onToggle }) {
  return html`<aside class="facets" aria-label="Filters">
    ${GROUPS.map(
      ([field, counts, name]) =>
        html`<${Group}
          key=${field}
          name=${name}
          values=${facets?.[counts] ?? {}}
          chosen=${state[field]}
          onToggle=${(value) => onToggle(field, value)}
        />`,
    )}
  </aside>`;
}

const PREFIX = { kind: "kind: ", ns: "in ", tag: "#", source: "from " };

// The filters that are set, each with a button that removes it.
export function ActiveFilters({ state, onToggle, onClear }) {
  if (!hasFilters(state)) return null;
  return html`<div class="chips active-filters">
    ${FIELDS.flatMap((field) =>
      state[field].map(
        (value) =>
          html`<${Chip}
            key=${`${field} ${value}`}
            label=${`Remove the filter ${field} ${value}`}
            onRemove=${() => onToggle(field, value)}
          >
            ${PREFIX[field]}${value}
          </${Chip}>`,
      ),
    )}
    <${Button} kind="quiet" class="small" onClick=${onClear}>Clear all</${Button}>
  </div>`;
}

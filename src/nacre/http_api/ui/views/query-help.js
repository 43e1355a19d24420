// The query language on one sheet. docs/query.md has all of it.

import { Button, Dialog } from "../components.js";
import { html } from "../vendor/htm-preact.js";

const SECTIONS = [
  [
    "Words",
    [
      ["Why did we move to Postgres?", "any question: by words and by meaning"],
      ['"billing service"', "these words side by side"],
      ["deploy*", "words that begin so"],
      ["NEAR(ada lives, 5)", "close together"],
      ["redis OR postgres", "either; AND, NOT and ( ) work as well"],
      ["billing -redis", "without a word"],
    ],
  ],
  [
    "Filters",
    [
      ["tag:ops", "with a tag; tag:a,b has either, tag:a tag:b both"],
      ["ns:decisions", "in a namespace"],
      ["kind:preference", "of a kind"],
      ["source:docs/*", "from sources"],
      ['entity:"Ada Lovelace"', "about a person, place or thing"],
      ["has:facts", "with facts, tags, source, session, summary or metadata"],
      ["importance>=0.7", "at least so important"],
      ["-tag:draft", "a dash excludes"],
    ],
  ],
  [
    "Times",
    [
      ["since:7d", "of the last days"],
      ["on:yesterday", "a day, or on:2026-03, on:last-week"],
      ["since:2026-02 until:2026-03", "from, and up to"],
      ["what happened last week", "times in questions count, too"],
    ],
  ],
];

export function QueryHelp({ onClose, onTry }) {
  return html`<${Dialog} title="What a query may contain" onClose=${onClose} class="wide">
    <div class="query-help">
      ${SECTIONS.map(
        ([name, rows]) =>
          html`<section key=${name}>
            <h3>${name}</h3>
            <ul>
              ${rows.map(
                ([query, what]) =>
                  html`<li key=${query}>
                    <${Button} kind="quiet" class="small" onClick=${() => onTry(query)}><code>${query}</code></${Button}>
                    <span class="muted small">${what}</span>
                  </li>`,
              )}
            </ul>
          </section>`,
      )}
    </div>
    <p class="muted small">No query is an error: what cannot be an operator is read as words, and a note says so.</p>
  </${Dialog}>`;
}

// One logged search: who asked, and the memories that it delivered, each to be marked.

import { api, may } from "../api.js";
import { Button, Chip, MemoryLink, Problem, Time, toast } from "../components.js";
import { useLoad } from "../hooks.js";
import { href } from "../router.js";
import { html, useState } from "../vendor/htm-preact.js";
import { memories } from "./looking.js";

const OUTCOMES = [
  ["used", "Used", "It helped: what is used rises a little in later searches"],
  ["wrong", "Wrong", "It was no answer, or is not true: its facts lose half of their confidence"],
  ["opened", "Opened", "It was read in full"],
];

export function ReceiptPanel({ receipt, onMarked, onClose }) {
  const ids = receipt.deliveries.map((each) => each.memory_id);
  const { data, error, reload } = useLoad((signal) => memories(ids, signal), [receipt.id]);
  const most = Math.max(...receipt.deliveries.map((each) => each.score), 1e-9);
  const asked = { q: receipt.query, mode: receipt.mode === "hybrid" ? null : receipt.mode };
  return html`<aside class="panel log-panel" aria-label="Search">
    <header class="panel-head">
      <h2><bdi dir="auto">${receipt.query || "(no words)"}</bdi></h2>
      <${Button} kind="quiet small" icon="close" label="Close" onClick=${onClose} />
    </header>
    <div class="chips">
      <${Chip}>${receipt.mode}</${Chip}>
      ${receipt.lens && html`<${Chip}>lens ${receipt.lens}</${Chip}>`}
      ${receipt.repeat && html`<${Chip}>given again</${Chip}>`}
    </div>
    <dl class="pairs">
      <div><dt>When</dt><dd><${Time} at=${receipt.at} /></dd></div>
      ${receipt.session && html`<div><dt>Session</dt><dd><${OfSession} name=${receipt.session} /></dd></div>`}
      ${receipt.origin && receipt.origin !== receipt.session && html`<div><dt>Connection</dt><dd><bdi>${receipt.origin}</bdi></dd></div>`}
    </dl>
    <p class="small"><a href=${href("search", null, asked)}>Ask it again</a></p>
    <h3>${receipt.deliveries.length ? "Delivered" : "Nothing was delivered"}</h3>
    <${Problem} error=${error} retry=${reload} />
    <ol class="panel-list deliveries">
      ${receipt.deliveries.map(
        (each) =>
          html`<${Delivery}
            key=${each.memory_id}
            delivery=${each}
            memory=${data?.get(each.memory_id)}
            known=${data !== null}
            share=${each.score / most}
            receipt=${receipt.id}
            onMarked=${onMarked}
          />`,
      )}
    </ol>
  </aside>`;
}

function OfSession({ name }) {
  return html`<a href=${href("log", null, { session: name })}><bdi>${name}</bdi></a>`;
}

function Delivery({ delivery, memory, known, share, receipt, onMarked }) {
  const [marked, setMarked] = useState({});
  const mark = async (outcome) => {
    setMarked((before) => ({ ...before, [outcome]: true }));
    try {
      await api.post("/mark", { ids: delivery.memory_id, outcome, receipt });
      onMarked();
    } catch (error) {
      setMarked((before) => ({ ...before, [outcome]: false }));
      toast(error.message);
    }
  };
  return html`<li class="delivery">
    <span class="delivery-rank">${delivery.rank}</span>
    <div>
      ${memory
        ? html`<a class="delivery-text" href=${href("memory", delivery.memory_id)}>
            <bdi dir="auto">${memory.summary ?? memory.text}</bdi>
          </a>`
        : html`<p class="muted small">${known ? html`Purged, or out of reach: <${MemoryLink} id=${delivery.memory_id} />` : "…"}</p>`}
      ${memory?.deleted && html`<p class="small muted">forgotten since</p>`}
      <div class="delivery-foot">
        <span class="delivery-score" title=${`Score ${delivery.score.toPrecision(3)}`} aria-label=${`Score ${delivery.score.toPrecision(3)}`} role="img">
          <span style=${{ width: `${Math.max(2, 100 * share)}%` }}></span>
        </span>
        ${OUTCOMES.map(([name, label, meaning]) => {
          const done = Boolean(delivery[name] || marked[name]);
          if (!may("write") && !done) return null;
          return html`<button
            key=${name}
            type="button"
            class=${`outcome ${name}`}
            aria-pressed=${done}
            disabled=${done || !may("write")}
            title=${delivery[name] ? `${label} ${new Date(delivery[name]).toLocaleString()}` : meaning}
            onClick=${() => mark(name)}
          >
            ${label}
          </button>`;
        })}
      </div>
    </div>
  </li>`;
}

// One fact: when it holds, how far it is believed and why, where it comes from; to confirm or to drop.

import { may } from "../api.js";
import { Button, Chip, MemoryLink, Time, toast } from "../components.js";
import { useLoad } from "../hooks.js";
import { href } from "../router.js";
import { html, useState } from "../vendor/htm-preact.js";
import { confirmFact, dropFact } from "./fact-changes.js";
import { Confidence, Statement, TimeBar, percent, stateOf, validity } from "./fact-parts.js";
import { memory as memoryOf } from "./looking.js";

const STATES = { current: "current", superseded: "superseded", ended: "ended", "not yet": "not yet valid" };

export function FactPanel({ fact, facts, span, at, params, reload, onClose }) {
  const memory = useLoad((signal) => memoryOf(fact.memory_id, signal), [fact.memory_id]);
  const successor = facts.find((each) => each.id === fact.superseded_by);
  const state = stateOf(fact, at);
  return html`<aside class="panel" aria-label="Fact">
    <header class="panel-head">
      <h2><${Statement} fact=${fact} /></h2>
      <${Button} kind="quiet small" icon="close" label="Close" onClick=${onClose} />
    </header>
    <div class="chips">
      <${Chip}>${fact.type}</${Chip}><${Chip}>${STATES[state]}</${Chip}>
      ${fact.relation && html`<${Chip}>relation</${Chip}>`}
      ${fact.single && html`<${Chip}>one value at a time</${Chip}>`}
    </div>
    <div class="fact-when">
      <${TimeBar} fact=${fact} span=${span} at=${at} />
      <p class="small">${validity(fact)}</p>
    </div>
    ${fact.superseded_by &&
    html`<p class="small">
      Superseded by${" "}
      ${successor
        ? html`<a href=${href("facts", successor.id, params)}><${Statement} fact=${successor} /></a>`
        : html`<a href=${href("facts", fact.superseded_by, { show: "history", subject: fact.subject })}>a newer fact</a>`}
    </p>`}
    <dl class="pairs">
      <div><dt>Confidence</dt><dd><${Confidence} fact=${fact} /></dd></div>
      <div><dt>As confirmed</dt><dd>${percent(fact.confidence)}</dd></div>
      <div><dt>Fades</dt><dd>${fact.decay_rate ? `by ${(100 * (1 - Math.exp(-fact.decay_rate))).toFixed(1)}% a day` : "never"}</dd></div>
      <div><dt>Last confirmed</dt><dd><${Time} at=${fact.touched ?? fact.reinforced} /></dd></div>
      <div><dt>Origin</dt><dd>${fact.origin === "given" ? "given by a caller" : "read from the text"}</dd></div>
    </dl>
    ${fact.quote && html`<blockquote class="quote"><p class="text">${fact.quote}</p></blockquote>`}
    <h3>Memory</h3>
    ${memory.data && html`<blockquote class="quote long"><p class="text" tabindex="0">${memory.data.text}</p></blockquote>`}
    <p class="small">
      <${MemoryLink} id=${fact.memory_id}>Open the memory</${MemoryLink}> ·${" "}
      <a href=${href("graph", fact.subject)}>Show in the graph</a>
    </p>
    ${may("write") && html`<${Actions} fact=${fact} reload=${reload} onClose=${onClose} />`}
  </aside>`;
}

function Actions({ fact, reload, onClose }) {
  const [busy, setBusy] = useState(false);
  const act = async (action) => {
    setBusy(true);
    await action().catch((error) => toast(error.message));
    setBusy(false);
  };
  const sure = () =>
    act(async () => {
      const confirmed = await confirmFact(fact);
      toast(confirmed ? "Confirmed: its confidence fades from today." : "It was confirmed already.");
      reload();
    });
  const drop = () =>
    act(async () => {
      const undo = await dropFact(fact);
      toast("The fact is dropped; its memory stays.", { action: () => undo().then(reload, (error) => toast(error.message)), label: "Undo" });
      onClose();
      reload();
    });
  return html`<div class="panel-actions">
    <${Button} disabled=${busy} onClick=${sure}>Confirm</${Button}>
    <${Button} disabled=${busy} icon="trash" onClick=${drop}>Drop</${Button}>
  </div>`;
}

// The facts of a memory, with the time in which each holds.

import { api, may } from "../api.js";
import { Button, Dialog, Problem, formatDay, toast } from "../components.js";
import { html, useState } from "../vendor/htm-preact.js";
import { dropFact } from "./fact-changes.js";
import { Confidence, Statement, TimeBar, spanOf, stateOf, validity } from "./fact-parts.js";

const TYPES = ["kv", "identity", "preference", "relationship", "location", "config", "decision", "state", "temporal"];

export function MemoryFacts({ memory, facts, reload }) {
  const [adds, setAdds] = useState(false);
  const now = Date.now();
  const span = facts?.length ? spanOf(facts, now) : null;
  const writes = may("write") && memory.deleted === null;
  const drop = async (fact) => {
    try {
      const undo = await dropFact(fact);
      const back = () => undo().then(reload, (error) => toast(error.message));
      toast("The fact is dropped.", { action: back, label: "Undo" });
    } catch (error) {
      toast(error.message);
    }
    reload();
  };
  return html`<section class="card" aria-labelledby="facts-title">
    <header class="card-head">
      <h2 id="facts-title">Facts</h2>
      ${writes && html`<${Button} class="small" icon="plus" onClick=${() => setAdds(true)}>Add a fact</${Button}>`}
    </header>
    ${facts?.length
      ? html`<ul class="memory-facts">
            ${facts.map(
              (each) =>
                html`<li key=${each.id} data-state=${stateOf(each, now)}>
                  <div class="memory-fact">
                    <${Statement} fact=${each} />
                    <span class="muted small">${each.type}${each.relation ? ", relation" : ""}</span>
                  </div>
                  <div class="memory-fact-when">
                    <${TimeBar} fact=${each} span=${span} at=${now} />
                    <span class="muted small">${validity(each)}${each.superseded_by ? ", superseded" : ""}</span>
                  </div>
                  <${Confidence} fact=${each} />
                  ${writes &&
                  html`<${Button} kind="quiet" class="small" icon="trash" label=${`Drop: ${each.subject} ${each.predicate}`} onClick=${() => drop(each)} />`}
                </li>`,
            )}
          </ul>
          <p class="span-legend muted small"><span>${formatDay(span.from)}</span><span>${formatDay(span.to)}</span></p>`
      : html`<p class="muted">${facts ? "It states none." : "…"}</p>`}
    ${adds && html`<${AddFact} memory=${memory} reload=${reload} onClose=${() => setAdds(false)} />`}
  </section>`;
}

function AddFact({ memory, reload, onClose }) {
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const add = async (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    const value = (name) => given.get(name).trim() || undefined;
    const moment = (name) => value(name) && new Date(value(name)).toISOString();
    setBusy(true);
    setError(null);
    try {
      const fact = {
        subject: value("subject"),
        predicate: value("predicate"),
        object: value("object"),
        type: value("type"),
        confidence: Number(given.get("confidence")),
        valid_from: moment("valid_from"),
        valid_to: moment("valid_to"),
        relation: given.has("relation"),
      };
      const [stated] = await api.post(`/memories/${memory.id}/facts`, { facts: [fact] });
      const undo = () => api.post("/facts/drop", { ids: [stated.id] }).then(reload, (problem) => toast(problem.message));
      toast(["The fact is kept.", ...(stated.notes ?? [])].join(" "), { action: undo, label: "Undo" });
      onClose();
      reload();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return html`<${Dialog} title="Add a fact" onClose=${onClose}>
    <form onSubmit=${add}>
      <div class="fields">
        <label class="field"><span>Subject</span><input name="subject" dir="auto" required autofocus placeholder="billing" /></label>
        <label class="field"><span>Predicate</span><input name="predicate" dir="auto" required placeholder="runs on" /></label>
        <label class="field"><span>Object</span><input name="object" dir="auto" required placeholder="Postgres" /></label>
      </div>
      <div class="fields">
        <label class="field">
          <span>Type</span><select name="type">${TYPES.map((each) => html`<option key=${each}>${each}</option>`)}</select>
        </label>
        <label class="field"><span>Confidence, 0 to 1</span><input type="number" name="confidence" min="0" max="1" step="0.05" defaultValue="1" /></label>
      </div>
      <div class="fields">
        <label class="field"><span>Holds from</span><input type="datetime-local" name="valid_from" /></label>
        <label class="field"><span>Until</span><input type="datetime-local" name="valid_to" /></label>
      </div>
      <label class="check"><input type="checkbox" name="relation" /> A relation: the object is an entity, too</label>
      <${Problem} error=${error} />
      <footer class="dialog-foot">
        <${Button} onClick=${onClose}>Cancel</${Button}>
        <button class="button primary" disabled=${busy}>Keep it</button>
      </footer>
    </form>
  </${Dialog}>`;
}

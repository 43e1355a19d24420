// Facts of which only one can be true, and memories that may be updates: what is right is said by a button.

import { api, may } from "../api.js";
import { Button, Empty, Loading, MemoryLink, Problem, Time, toast } from "../components.js";
import { useLive, useLoad } from "../hooks.js";
import { html, useState } from "../vendor/htm-preact.js";
import { keepAllFacts, keepFact, keepNewer, keepOlder } from "./fact-changes.js";
import { Confidence, validity } from "./fact-parts.js";

export function Conflicts() {
  const { data, error, loading, reload } = useLoad((signal) => api.get("/conflicts", {}, { signal }), []);
  useLive(reload, ["memory", "fact", "update"]);
  if (error) return html`<${Problem} error=${error} retry=${reload} />`;
  if (!data) return loading && html`<${Loading} />`;
  if (!data.length) {
    return html`<${Empty} title="Nothing contradicts itself.">
      <p>Facts that cannot both be true are shown here, and memories that may be updates of older ones.</p>
    </${Empty}>`;
  }
  return html`<ul class="conflicts" aria-label="Conflicts">
    ${data.map((each) => html`<${Conflict} key=${keyOf(each)} conflict=${each} reload=${reload} />`)}
  </ul>`;
}

function keyOf({ facts, memories }) {
  return (facts.length ? facts.map((each) => each.id) : memories.map((each) => each.memory_id)).join(" ");
}

function Conflict({ conflict, reload }) {
  const [busy, setBusy] = useState(false);
  const resolve = async (action, said) => {
    setBusy(true);
    try {
      const undo = await action();
      toast(said, { label: "Undo", action: () => undo().then(reload, (error) => toast(error.message)) });
      reload();
    } catch (error) {
      toast(error.message);
    }
    setBusy(false);
  };
  const Kind = conflict.facts.length ? OfFacts : OfMemories;
  return html`<${Kind} ...${conflict} resolve=${resolve} disabled=${busy} />`;
}

function OfFacts({ subject, predicate, facts, memories, resolve, disabled }) {
  const textOf = (fact) => memories.find((each) => each.memory_id === fact.memory_id)?.text;
  return html`<li class="card conflict">
    <header class="conflict-head">
      <h2><bdi>${subject}</bdi> · <bdi>${predicate}</bdi></h2>
      <span class="muted small">only one of these can be true</span>
    </header>
    <div class="conflict-sides">
      ${facts.map(
        (each) =>
          html`<article key=${each.id} class="conflict-side">
            <p class="conflict-value"><bdi>${each.object}</bdi></p>
            <p class="panel-meta">${validity(each)} <${Confidence} fact=${each} /></p>
            <${Quote} id=${each.memory_id} text=${textOf(each)} />
            ${may("write") &&
            html`<${Button}
              kind="primary"
              disabled=${disabled}
              label=${`Keep this: ${each.object}`}
              onClick=${() => resolve(() => keepFact(each, facts), `${subject} ${predicate}: kept ${each.object}.`)}
            >
              Keep this
            </${Button}>`}
          </article>`,
      )}
    </div>
    ${may("write") &&
    html`<p class="small muted conflict-foot">
      Older values become history, newer ones are dropped.
      <button
        type="button"
        class="link-button"
        disabled=${disabled}
        onClick=${() => resolve(() => keepAllFacts(facts), `${subject} ${predicate}: kept all values.`)}
      >
        ${facts.length === 2 ? "Both are true" : "All are true"}
      </button>
    </p>`}
  </li>`;
}

function OfMemories({ subject, predicate, memories, resolve, disabled }) {
  const [older, newer] = memories;
  const sides = [
    [older, "older", () => keepOlder(older, newer), "The newer memory is forgotten.", "the newer memory is forgotten"],
    [newer, "newer", () => keepNewer(older, newer), "The newer memory replaces the older one.", "it replaces the older one"],
  ];
  return html`<li class="card conflict">
    <header class="conflict-head">
      <h2>May be an update</h2>
      <span class="muted small">both are about <bdi>${subject}</bdi>; the newer one says “<bdi>${predicate}</bdi>”</span>
    </header>
    <div class="conflict-sides">
      ${sides.map(
        ([each, age, action, said, effect]) =>
          html`<article key=${each.memory_id} class="conflict-side">
            <p class="panel-meta"><${Time} at=${each.since} day /> · ${age}</p>
            <${Quote} id=${each.memory_id} text=${each.text} long />
            ${may("write") &&
            html`<p class="conflict-action">
              <${Button} kind="primary" disabled=${disabled} label=${`Keep this, the ${age} one`} onClick=${() => resolve(action, said)}>
                Keep this
              </${Button}>
              <span class="small muted">${effect}</span>
            </p>`}
          </article>`,
      )}
    </div>
  </li>`;
}

function Quote({ id, text, long }) {
  return html`<blockquote class=${`quote ${long ? "long" : ""}`}>
    ${text && html`<p class="text" tabindex=${long ? "0" : undefined}>${text}</p>`}
    <${MemoryLink} id=${id}>Open the memory</${MemoryLink}>
  </blockquote>`;
}

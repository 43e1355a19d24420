// What lies beside a memory: its session, what it replaces, near-duplicates, entities, and who recalled it.

import { api, may } from "../api.js";
import { Button, MemoryLink, Time, toast } from "../components.js";
import { href } from "../router.js";
import { counted } from "../text.js";
import { html, useState } from "../vendor/htm-preact.js";

const SHOWN = 5;

function line(memory) {
  return memory.summary ?? memory.text.slice(0, 240);
}

export function Card({ title, id, children }) {
  return html`<section class="card" aria-labelledby=${id}><h2 id=${id}>${title}</h2>${children}</section>`;
}

// The memories before and after it, as they were said.
export function Session({ memory }) {
  const near = memory.neighbours ?? [];
  if (!near.length) return null;
  const before = (each) =>
    each.position !== null && memory.position !== null
      ? each.position < memory.position
      : each.created < memory.created || (each.created === memory.created && each.id < memory.id);
  const row = (each) =>
    html`<li key=${each.id}><${MemoryLink} id=${each.id}><span class="said clamp" dir="auto">${each.summary}</span></${MemoryLink}></li>`;
  return html`<${Card} title="In its session" id="session-title">
    <p class="muted small said">${memory.session}</p>
    <ol class="session">
      ${near.filter(before).map(row)}
      <li class="here"><span class="said clamp" dir="auto">${line(memory)}</span></li>
      ${near.filter((each) => !before(each)).map(row)}
    </ol>
  </${Card}>`;
}

export function Links({ memory, linked, reload }) {
  const unlink = async (newer, older) => {
    try {
      await api.post("/unlink", { newer, older });
      toast("Both count as current now.");
    } catch (error) {
      toast(error.message);
    }
    reload();
  };
  const row = (id, newer, older) =>
    html`<li key=${id}>
      <${MemoryLink} id=${id}><span class="said clamp" dir="auto">${linked?.get(id) ? line(linked.get(id)) : id}</span></${MemoryLink}>
      ${may("write") &&
      html`<button type="button" class="link-button small" onClick=${() => unlink(newer, older)}>
        This is wrong: both hold
      </button>`}
    </li>`;
  return html`${memory.updated_by?.length > 0 &&
    html`<section class="card superseded-card" aria-labelledby="newer-title">
      <h2 id="newer-title">A newer memory holds in its place</h2>
      <ul class="linked">${memory.updated_by.map((each) => row(each, each, memory.id))}</ul>
    </section>`}
    ${memory.updates?.length > 0 &&
    html`<${Card} title="It replaces" id="older-title">
      <ul class="linked">${memory.updates.map((each) => row(each, memory.id, each))}</ul>
    </${Card}>`}`;
}

export function Alike({ memory, similar, reload }) {
  if (!similar?.length) return null;
  const separate = async () => {
    try {
      const from = await api.post(`/memories/${memory.id}/separate`, {});
      toast(`Shown on its own now, apart from ${counted(from, "other")}.`);
    } catch (error) {
      toast(error.message);
    }
    reload();
  };
  return html`<${Card} title=${counted(similar.length, "near-duplicate")} id="alike-title">
    <p class="muted small">A search shows only the best of them.</p>
    <ul class="linked">
      ${similar.map(
        (each) =>
          html`<li key=${each.id}>
            <${MemoryLink} id=${each.id}><span class="said clamp" dir="auto">${line(each)}</span></${MemoryLink}>
            <span class="muted small"> <${Time} at=${each.created} day /></span>
          </li>`,
      )}
    </ul>
    ${may("write") && html`<${Button} class="small" onClick=${separate}>Show this one on its own</${Button}>`}
  </${Card}>`;
}

export function Entities({ memory }) {
  if (!memory.entities?.length) return null;
  return html`<${Card} title="About" id="entities-title">
    <div class="chips">
      ${memory.entities.map(
        (each) =>
          html`<a key=${each.name} class="chip" href=${href("graph", each.name)} title=${each.aliases.join(", ")}>
            <bdi class="chip-text">${each.name}</bdi>${each.type && html`<span class="muted"> ${each.type}</span>`}
          </a>`,
      )}
    </div>
  </${Card}>`;
}

const MARKS = [
  ["wrong", "wrong"],
  ["used", "used"],
  ["opened", "opened"],
];

export function Recalls({ memory, receipts }) {
  const [all, setAll] = useState(false);
  if (!receipts) return null;
  return html`<${Card} title="Recalled" id="recalls-title">
    ${receipts.length
      ? html`<ul class="recalls">
          ${(all ? receipts : receipts.slice(0, SHOWN)).map((each) => {
            const got = each.deliveries.find((one) => one.memory_id === memory.id);
            const marks = MARKS.filter(([name]) => got?.[name]);
            return html`<li key=${each.id}>
              <a class="said" href=${href("log", each.id)}>${each.query || "(no words)"}</a>
              <span class="muted small">
                <${Time} at=${each.at} />${got && html` · place ${got.rank}`}${each.session && html` · <bdi>${each.session}</bdi>`}
                ${marks.map(([, name]) => html` <span key=${name} class="mark-${name}">${name}</span>`)}
              </span>
            </li>`;
          })}
        </ul>`
      : html`<p class="muted">No agent has been given it yet, as far as the log goes back.</p>`}
    ${receipts.length > SHOWN &&
    html`<button type="button" class="link-button small" aria-expanded=${all} onClick=${() => setAll(!all)}>
      ${all ? "Fewer" : `${receipts.length - SHOWN} more`}
    </button>`}
  </${Card}>`;
}

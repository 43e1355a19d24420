// How the store is: how much there is, what is left to be done, what a check finds, how well searches answer.

import { api, headers, may, session } from "../api.js";
import { Chip, Loading, Problem } from "../components.js";
import { useLive, useLoad, useTitle } from "../hooks.js";
import { href } from "../router.js";
import { html } from "../vendor/htm-preact.js";
import { Check } from "./health-check.js";
import { Embeddings } from "./health-embeddings.js";
import { Quality } from "./health-quality.js";
import { Tokens } from "./health-tokens.js";
import { latencies } from "./latencies.js";
import { Bars, bytes, count } from "./numbers.js";

export default function View() {
  useTitle("Health");
  return html`<section class="view health" aria-label="Health">
    <div class="toolbar">
      <h1>Health</h1>
      <span class="muted">Nacre ${session.version}</span>
    </div>
    ${may("admin") ? html`<${OfStore} />` : html`<${OfSpace} />`}
  </section>`;
}

// What any token may see.
function OfSpace() {
  const { data, error, loading, reload } = useLoad((signal) => api.get("/facets", {}, { signal }), []);
  useLive(reload, ["memory"]);
  return html`
    <p class="note">
      You are here with the role <strong>${session.role}</strong>, in the space <bdi>${session.space}</bdi>. What the
      whole store is like, and what a check of it finds, is shown to tokens with the role admin.
    </p>
    <${Problem} error=${error} retry=${reload} />
    ${!data && loading && html`<${Loading} />`}
    ${data &&
    html`<div class="cards">
      <section class="card">
        <h2>This space</h2>
        <dl class="figures"><${Figure} label="memories" value=${count(data.total)} /></dl>
        ${session.spaces && html`<div class="chips">${session.spaces.map((each) => html`<${Chip} key=${each}>${each}</${Chip}>`)}</div>`}
        <${Notes} notes=${data.notes} />
      </section>
      <section class="card"><h2>Kinds</h2><${Bars} counts=${data.kinds} link=${(kind) => href("timeline", null, { kind })} /></section>
      <section class="card">
        <h2>Namespaces</h2>
        <${Bars} counts=${data.namespaces} link=${(namespace) => href("timeline", null, { namespace })} />
      </section>
    </div>`}
  `;
}

function OfStore() {
  const { data, error, loading, reload } = useLoad((signal) => api.get("/stats", {}, { signal }), []);
  useLive(reload, ["memory"]);
  return html`
    <${Problem} error=${error} retry=${reload} />
    ${!data && loading && html`<${Loading} />`}
    ${data &&
    html`<div class="cards">
        <section class="card span">
          <h2>Store</h2>
          <dl class="figures">
            <${Figure} label="memories" value=${count(data.memories)} />
            <${Figure} label="forgotten" value=${count(data.forgotten)} />
            <${Figure} label="passages" value=${count(data.passages)} />
            <${Figure} label="on disk" value=${bytes(data.size_bytes)} />
            <${Figure} label="to embed" value=${count(data.pending)} warn=${data.pending > 0} />
          </dl>
          <dl class="pairs">
            <div><dt>Model</dt><dd><${Model} name=${data.model} /></dd></div>
            <div><dt>Token model</dt><dd><${Model} name=${data.token_model} /></dd></div>
            <div><dt>Token vectors</dt><dd>${bytes(data.token_bytes)}</dd></div>
            <div><dt>Index files</dt><dd>${bytes(data.index_bytes)}</dd></div>
            <div><dt>Schema</dt><dd>${data.schema_version}</dd></div>
            <div><dt>Events kept</dt><dd>${count(data.events)}</dd></div>
          </dl>
        </section>
        <${Spaces} stats=${data} />
        <section class="card"><h2>Kinds</h2><${Bars} counts=${data.kinds} /></section>
        <section class="card"><h2>Namespaces</h2><${Bars} counts=${data.namespaces} /></section>
        <${Embeddings} stats=${data} reload=${reload} />
        <${Check} memories=${data.memories} reload=${reload} />
        <${Quality} />
        <${Latencies} />
        <${Tokens} />
      </div>`}
  `;
}

function Figure({ label, value, warn }) {
  return html`<div class=${warn ? "warn" : ""}><dt>${label}</dt><dd>${value}</dd></div>`;
}

function Model({ name }) {
  return name ? html`<code class="model">${name}</code>` : html`<span class="muted">none</span>`;
}

function Notes({ notes }) {
  return notes.map((each) => html`<p key=${each} class="note warn"><bdi>${each}</bdi></p>`);
}

const SPACES = 50;

function Spaces({ stats }) {
  const names = Object.keys({ ...stats.stored_memories, ...stats.spaces });
  const quotas = Object.entries(stats.quotas);
  return html`<section class="card span">
    <h2>Spaces</h2>
    <div class="scrolls" tabindex="0" role="region" aria-label="Spaces">
      <table class="table">
        <thead>
          <tr><th scope="col">Space</th><th scope="col">Memories</th><th scope="col">With forgotten</th><th scope="col">Size</th></tr>
        </thead>
        <tbody>
          ${names.slice(0, SPACES).map(
            (each) =>
              html`<tr key=${each}>
                <th scope="row"><bdi>${each}</bdi></th>
                <td>${count(stats.spaces[each] ?? 0)}</td>
                <td>${count(stats.stored_memories[each] ?? 0)}</td>
                <td>${bytes(stats.stored_bytes[each] ?? 0)}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${names.length > SPACES && html`<p class="small muted">and ${count(names.length - SPACES)} more</p>`}
    <p class="small muted">
      ${quotas.length
        ? html`Quotas: ${quotas.map(([name, limit]) => `${name} ${count(limit)}`).join(", ")}`
        : "No quotas are set."}
    </p>
  </section>`;
}

// How long verbs took in the server process that answered, since it started.
function Latencies() {
  const { data, reload } = useLoad(async (signal) => {
    const answer = await fetch("/metrics", { headers: headers(), signal });
    return answer.ok ? latencies(await answer.text()) : [];
  }, []);
  if (!data?.length) return null;
  return html`<section class="card">
    <div class="card-head">
      <h2>Latency</h2>
      <button type="button" class="link-button small" onClick=${reload}>Refresh</button>
    </div>
    <table class="table">
      <thead>
        <tr><th scope="col">Verb</th><th scope="col">Calls</th><th scope="col">Mean</th><th scope="col">95% within</th></tr>
      </thead>
      <tbody>
        ${data.slice(0, 8).map(
          (each) =>
            html`<tr key=${each.verb}>
              <th scope="row">${each.verb}</th>
              <td>${count(each.calls)}</td>
              <td>${milliseconds(each.mean)}</td>
              <td>${each.most === Infinity ? "over 30 s" : milliseconds(each.most)}</td>
            </tr>`,
        )}
      </tbody>
    </table>
    <p class="small muted">Since the server started. <a href="/metrics">All numbers</a></p>
  </section>`;
}

function milliseconds(seconds) {
  const [number, unit] = seconds < 1 ? [1000 * seconds, "ms"] : [seconds, "s"];
  return `${number < 10 ? number.toFixed(1) : Math.round(number)} ${unit}`;
}

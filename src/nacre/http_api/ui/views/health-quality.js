// How well searches find what was used, measured with the questions of the recall log.

import { api } from "../api.js";
import { Button, Loading, MemoryLink, Problem } from "../components.js";
import { html, useState } from "../vendor/htm-preact.js";
import { count } from "./numbers.js";

export function Quality() {
  const [{ data, error, busy }, setState] = useState({ data: null, error: null, busy: false });
  const measure = async () => {
    setState({ data, error: null, busy: true });
    try {
      setState({ data: await api.get("/evaluation"), error: null, busy: false });
    } catch (problem) {
      setState({ data, error: problem, busy: false });
    }
  };
  return html`<section class="card span">
    <div class="card-head">
      <h2>Search quality</h2>
      <span class="spacer"></span>
      <${Button} kind="small" disabled=${busy} onClick=${measure}>${data ? "Measure again" : "Measure now"}</${Button}>
    </div>
    <${Problem} error=${error} />
    ${!data && !busy && html`<p class="muted">Asks the questions again whose results were opened or used, in each mode.</p>`}
    ${busy && html`<${Loading} label="Asking" />`}
    ${data && !busy && html`<${Report} data=${data} />`}
  </section>`;
}

function Report({ data }) {
  const modes = Object.entries(data.modes ?? {});
  if (!modes.length) {
    return html`<p class="muted">
      There are no judged questions yet: no result of a search was opened or used. Agents mark them, or mark them yourself
      in the recall log. <code>nacre eval</code> takes questions from a file.
    </p>`;
  }
  const names = Object.keys(modes[0][1].metrics);
  const best = Object.fromEntries(names.map((each) => [each, Math.max(...modes.map(([, mode]) => mode.metrics[each].mean))]));
  return html`
    <p class="small muted">${count(data.questions)} ${data.about}.</p>
    <div class="scrolls" tabindex="0" role="region" aria-label="Metrics by mode">
      <table class="table">
        <thead>
          <tr><th scope="col">Mode</th>${names.map((each) => html`<th key=${each} scope="col">${each}</th>`)}<th scope="col">Not found</th></tr>
        </thead>
        <tbody>
          ${modes.map(
            ([mode, { metrics, missed }]) =>
              html`<tr key=${mode}>
                <th scope="row">${mode}</th>
                ${names.map((each) => html`<${Metric} key=${each} of=${metrics[each]} best=${metrics[each].mean === best[each]} />`)}
                <td>${count(missed)}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${modes.map(([mode, { examples }]) => html`<${Missed} key=${mode} mode=${mode} examples=${examples} />`)}
  `;
}

function Metric({ of: { mean, low, high }, best }) {
  return html`<td class=${best ? "best" : ""} title=${`95% between ${low.toFixed(3)} and ${high.toFixed(3)}`}>
    ${mean.toFixed(3)} <span class="muted small">${low.toFixed(2)}–${high.toFixed(2)}</span>
  </td>`;
}

function Missed({ mode, examples }) {
  if (!examples.length) return null;
  return html`<details class="missed">
    <summary>What ${mode} did not find</summary>
    <ul class="panel-list">
      ${examples.map(
        (each) =>
          html`<li key=${each.query + each.id}>
            <p><bdi>${each.query}</bdi> <${MemoryLink} id=${each.id} /></p>
            <p class="panel-meta"><bdi>${each.explanation}</bdi> ${each.remedy && html`<bdi>${each.remedy}</bdi>`}</p>
          </li>`,
      )}
    </ul>
  </details>`;
}

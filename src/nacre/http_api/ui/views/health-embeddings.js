// Memories that have no vectors yet, and the work on them as it proceeds.

import { api } from "../api.js";
import { Button, Problem, toast } from "../components.js";
import { html, useEffect, useRef, useState } from "../vendor/htm-preact.js";
import { count } from "./numbers.js";

export function Embeddings({ stats, reload }) {
  const [progress, setProgress] = useState(null);
  const [error, setError] = useState(null);
  const work = useRef(null);
  useEffect(() => () => work.current?.abort(), []);
  const start = async () => {
    const abort = (work.current = new AbortController());
    setError(null);
    setProgress({ done: 0, total: stats.pending });
    try {
      for await (const each of api.lines("/reembed", {}, { signal: abort.signal, method: "POST" })) setProgress(each);
      toast("All memories are embedded.");
    } catch (problem) {
      if (problem.name !== "AbortError") setError(problem);
    }
    setProgress(null);
    reload();
  };
  const pending = stats.pending + stats.pending_tokens;
  return html`<section class="card">
    <h2>Embeddings</h2>
    ${progress
      ? html`<label class="progress">
            <span>${count(progress.done)} of ${count(progress.total)}</span>
            <progress max=${Math.max(1, progress.total)} value=${progress.done}></progress>
          </label>
          <${Button} onClick=${() => work.current.abort()}>Stop</${Button}>`
      : html`<p>
            ${pending
              ? html`${count(stats.pending)} memories have no vectors${stats.pending_tokens > 0 &&
                  html`, ${count(stats.pending_tokens)} no token vectors`}. They are found by their words alone.`
              : stats.model
                ? "Every memory has its vectors."
                : "The store has no model: memories are found by their words."}
          </p>
          ${pending > 0 && html`<${Button} kind="primary" onClick=${start}>Embed them now</${Button}>`}`}
    <${Problem} error=${error} />
  </section>`;
}

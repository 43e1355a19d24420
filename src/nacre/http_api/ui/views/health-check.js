// What a check of the store finds, as `nacre doctor` says it, and what repairs it.

import { api } from "../api.js";
import { Button, Loading, Problem, confirm, toast } from "../components.js";
import { html, useEffect, useState } from "../vendor/htm-preact.js";

const AT_ONCE = 20_000; // memories up to which a check takes no time worth asking for
const LEVELS = { fine: "fine", note: "note", problem: "problem" };

export function Check({ memories, reload }) {
  const [state, setState] = useState({ health: null, error: null, busy: false });
  const run = async (path, body) => {
    setState((before) => ({ ...before, busy: true, error: null }));
    try {
      const answer = await api.post(path, body);
      setState((before) => ({ ...before, health: answer ?? before.health, busy: false }));
      return true;
    } catch (error) {
      setState((before) => ({ ...before, error, busy: false }));
      return false;
    }
  };
  const check = () => run("/check", {});
  useEffect(() => {
    if (memories <= AT_ONCE) check();
  }, []);
  const fix = async () => {
    const text = "What can be made anew from the memories is: indexes, caches, checksums. Memories are not changed.";
    if (!(await confirm({ title: "Repair the store?", text, action: "Repair" }))) return;
    if (await run("/check", { fix: true })) reload();
  };
  const rebuild = async () => {
    const text = "Every index and cache is deleted and made anew from the memories. Searches wait until it is done.";
    if (!(await confirm({ title: "Rebuild all indexes?", text, action: "Rebuild" }))) return;
    if (await run("/rebuild", {})) {
      toast("All indexes were made anew.");
      check();
    }
  };
  const { health, error, busy } = state;
  const problems = health?.findings.filter((each) => each.level === "problem" && !each.fixed) ?? [];
  return html`<section class="card span">
    <div class="card-head">
      <h2>Check</h2>
      ${health &&
      html`<span class=${`verdict ${health.sound ? "good" : "bad"}`}>
        ${health.sound ? "The store is sound" : `${problems.length} ${problems.length === 1 ? "problem" : "problems"}`}
      </span>`}
      <span class="spacer"></span>
      ${problems.length > 0 && html`<${Button} kind="primary small" disabled=${busy} onClick=${fix}>Fix</${Button}>`}
      <${Button} kind="small" disabled=${busy} onClick=${check}>${health ? "Check again" : "Check now"}</${Button}>
      <${Button} kind="small" disabled=${busy} onClick=${rebuild}>Rebuild indexes</${Button}>
    </div>
    <${Problem} error=${error} />
    ${busy && !health && html`<${Loading} label="Checking" />`}
    ${health &&
    html`<ul class=${`findings ${busy ? "busy" : ""}`}>
      ${health.findings.map(
        (each, at) =>
          html`<li key=${`${each.check} ${at}`} class=${each.fixed ? "fine" : each.level}>
            <span class="finding-level">${each.fixed ? "fixed" : LEVELS[each.level]}</span>
            <span class="finding-check">${each.check}</span>
            <span><bdi>${each.text}</bdi>${each.remedy && html` <span class="muted"><bdi>${each.remedy}</bdi></span>`}</span>
          </li>`,
      )}
    </ul>`}
  </section>`;
}

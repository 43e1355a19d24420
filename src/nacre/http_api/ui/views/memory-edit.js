// The form that edits a memory, and what to do when somebody else was faster.

import { Button, Problem } from "../components.js";
import { tagsOf } from "../dialogs.js";
import { html, useEffect, useRef, useState } from "../vendor/htm-preact.js";
import { changed, fromLocal, load, toLocal, update } from "./memory-data.js";
import { Change } from "./memory-history.js";

const KINDS = ["note", "fact", "episode", "preference", "instruction"];
const NAMES = {
  text: "Text", summary: "Summary", tags: "Tags", namespace: "Namespace", kind: "Kind", source: "Source",
  importance: "Importance", pinned: "Pinned", happened: "Happened", expires: "Expires",
};

function valuesOf(form, memory) {
  const given = new FormData(form);
  const text = (name) => given.get(name).trim();
  const same = (name, value) => (value === (memory[name] ?? "") ? memory[name] : value || null);
  const read = given.get("text").replaceAll("\r\n", "\n");
  return {
    text: read === memory.text.replaceAll("\r\n", "\n") ? memory.text : read,
    summary: same("summary", text("summary")),
    tags: given.get("tags") === memory.tags.join(", ") ? memory.tags : tagsOf(given.get("tags")), // one may have a comma
    namespace: text("namespace") || "general",
    kind: text("kind") || "note",
    source: same("source", text("source")),
    importance: Math.abs(Number(given.get("importance")) - memory.importance) < 0.005 ? memory.importance : Number(given.get("importance")),
    pinned: given.has("pinned"),
    happened: fromLocal(given.get("happened"), memory.happened),
    expires: fromLocal(given.get("expires"), memory.expires),
  };
}

// What changed meanwhile, and the choice between it and what is in the form.
function Meanwhile({ base, current, mine, onMine, onTheirs, onBack, busy }) {
  const theirs = Object.keys(NAMES).filter((name) => JSON.stringify(base[name]) !== JSON.stringify(current[name]));
  const both = theirs.filter((name) => name in mine && JSON.stringify(mine[name]) !== JSON.stringify(current[name]));
  const box = useRef(null);
  useEffect(() => box.current.querySelector("button").focus(), []);
  return html`<div ref=${box} class="meanwhile" role="alert">
    <h2>It has changed since you began</h2>
    <ul class="changes">
      ${theirs.map(
        (name) => html`<li key=${name}><${Change} name=${name} before=${base[name]} after=${current[name]} /></li>`,
      )}
    </ul>
    ${both.length
      ? html`<p>You changed ${both.map((each) => NAMES[each].toLowerCase()).join(", ")}, too. Which shall hold?</p>`
      : html`<p>You changed other fields. Saving keeps both changes.</p>`}
    <footer class="dialog-foot">
      <${Button} onClick=${onBack}>Back to the form</${Button}>
      <${Button} disabled=${busy} onClick=${onTheirs}>Discard mine</${Button}>
      <${Button} kind="primary" disabled=${busy} onClick=${onMine}>Save mine</${Button}>
    </footer>
  </div>`;
}

export function Edit({ memory, onDone }) {
  const [base] = useState(memory); // what the form began with, whatever arrives meanwhile
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const [newer, setNewer] = useState(null); // { current, mine }
  const [importance, setImportance] = useState(base.importance);
  const form = useRef(null);
  useEffect(() => {
    const field = form.current.elements.text;
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  }, []);

  const save = async (against, mine) => {
    setBusy(true);
    setError(null);
    try {
      if (Object.keys(mine).length) await update(against, mine, {});
      onDone();
    } catch (problem) {
      setBusy(false);
      if (problem.status !== 412) return setError(problem);
      const current = await load(base.id).catch(() => null);
      if (current === null) return setError(problem);
      setNewer({ current, mine });
    }
    return undefined;
  };
  const submit = (event) => {
    event?.preventDefault();
    save(newer?.current ?? base, changed(base, valuesOf(form.current, base)));
  };
  const keys = (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      if (!Object.keys(changed(base, valuesOf(form.current, base))).length) onDone();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
  };
  return html`<form ref=${form} class="card edit" onSubmit=${submit} onKeyDown=${keys}>
    <label class="field">
      <span>Text</span>
      <textarea name="text" dir="auto" required rows=${Math.min(20, 3 + Math.ceil(base.text.length / 80))} defaultValue=${base.text}></textarea>
    </label>
    <label class="field"><span>Summary</span><input name="summary" dir="auto" defaultValue=${base.summary ?? ""} /></label>
    <div class="fields">
      <label class="field"><span>Tags, with commas between</span><input name="tags" dir="auto" defaultValue=${base.tags.join(", ")} /></label>
      <label class="field"><span>Namespace</span><input name="namespace" dir="auto" defaultValue=${base.namespace} /></label>
      <label class="field">
        <span>Kind</span><input name="kind" list="edit-kinds" defaultValue=${base.kind} />
        <datalist id="edit-kinds">${KINDS.map((each) => html`<option value=${each} />`)}</datalist>
      </label>
      <label class="field"><span>Source</span><input name="source" dir="auto" defaultValue=${base.source ?? ""} /></label>
      <label class="field"><span>Happened</span><input type="datetime-local" name="happened" defaultValue=${toLocal(base.happened)} /></label>
      <label class="field"><span>Expires</span><input type="datetime-local" name="expires" defaultValue=${toLocal(base.expires)} /></label>
      <label class="field">
        <span>Importance ${importance.toFixed(2)}</span>
        <input
          type="range" name="importance" min="0" max="1" step="0.01" defaultValue=${base.importance}
          onInput=${(event) => setImportance(Number(event.target.value))}
        />
      </label>
      <label class="check"><input type="checkbox" name="pinned" defaultChecked=${base.pinned} /> Pinned: always in the context</label>
    </div>
    <${Problem} error=${error} />
    ${newer && !newer.hidden
      ? html`<${Meanwhile}
          base=${base}
          current=${newer.current}
          mine=${newer.mine}
          busy=${busy}
          onMine=${() => save(newer.current, changed(base, valuesOf(form.current, base)))}
          onTheirs=${onDone}
          onBack=${() => setNewer({ ...newer, hidden: true })}
        />`
      : null}
    <footer class="dialog-foot">
      <span class="muted small edit-keys"><kbd>Ctrl</kbd> <kbd>Enter</kbd> saves</span>
      <${Button} onClick=${onDone}>Cancel</${Button}>
      <button class="button primary" disabled=${busy}>Save</button>
    </footer>
  </form>`;
}

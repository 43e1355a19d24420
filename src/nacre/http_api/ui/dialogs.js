// What the frame asks for: a token, a new memory; and what keys there are.

import { api, setToken } from "./api.js";
import { Button, Dialog, Problem, toast } from "./components.js";
import { enableKeys, keysEnabled } from "./hooks.js";
import { navigate } from "./router.js";
import { html, useState } from "./vendor/htm-preact.js";

const KEYS = [
  ["/", "Search"],
  ["j k, arrows", "Next or previous in a list"],
  ["Enter", "Open"],
  ["Esc", "Close, or leave a field"],
  ["n", "New memory"],
  ["e", "Edit the memory that is shown"],
  ["g s", "Search"],
  ["g t", "Timeline"],
  ["g g", "Graph"],
  ["g f", "Facts"],
  ["g l", "Recall log"],
  ["g h", "Health"],
  ["?", "This help"],
];

export function Help({ onClose, session }) {
  const [on, setOn] = useState(keysEnabled());
  const change = (event) => {
    enableKeys(event.target.checked);
    setOn(event.target.checked);
  };
  return html`<${Dialog} title="Keyboard" onClose=${onClose}>
    <dl class="keys">
      ${KEYS.map(
        ([keys, what]) =>
          html`<div key=${keys}>
            <dt>${keys.split(/(?<!,) /).map((each) => html`<kbd>${each}</kbd> `)}</dt>
            <dd>${what}</dd>
          </div>`,
      )}
    </dl>
    <label class="check"><input type="checkbox" checked=${on} onChange=${change} /> Shortcuts of single keys</label>
    ${session &&
    html`<p class="muted small">
      Nacre ${session.version}, role ${session.role}. <a href="/openapi.json">OpenAPI document</a>
    </p>`}
  </${Dialog}>`;
}

export function SignIn() {
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const enter = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await setToken(new FormData(event.target).get("token").trim());
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return html`<form class="card sign-in" onSubmit=${enter}>
    <h1>Sign in</h1>
    <p class="muted">This server asks for a token. <code>nacre token create</code> makes one.</p>
    <label class="field">
      <span>Token</span>
      <input name="token" type="password" autocomplete="current-password" required spellcheck="false" autofocus />
    </label>
    <${Problem} error=${error} />
    <button class="button primary" disabled=${busy}>Sign in</button>
    <p class="muted small">It is kept until this tab is closed.</p>
  </form>`;
}

// A comma separates tags.
export function tagsOf(text) {
  return [...new Set(text.split(",").map((each) => each.trim()))].filter(Boolean);
}

export function NewMemory({ onClose }) {
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const keep = async (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    const optional = (name) => given.get(name).trim() || undefined;
    setBusy(true);
    setError(null);
    try {
      const receipt = await api.post("/memories", {
        text: given.get("text"),
        tags: tagsOf(given.get("tags")),
        namespace: optional("namespace"),
        kind: optional("kind"),
        origin: "page",
      });
      const open = () => navigate("memory", receipt.id);
      const said = receipt.duplicate ? "This is remembered already." : "Remembered.";
      toast([said, ...receipt.notes].join(" "), { action: open, label: "Open" });
      onClose();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return html`<${Dialog} title="New memory" onClose=${onClose}>
    <form onSubmit=${keep}>
      <label class="field">
        <span>Text</span>
        <textarea name="text" rows="5" required dir="auto" autofocus></textarea>
      </label>
      <div class="fields">
        <label class="field"><span>Tags</span><input name="tags" dir="auto" placeholder="billing, on call" /></label>
        <label class="field"><span>Namespace</span><input name="namespace" dir="auto" placeholder="general" /></label>
        <label class="field">
          <span>Kind</span>
          <input name="kind" list="kinds" placeholder="note" />
          <datalist id="kinds">
            ${["note", "fact", "episode", "preference", "instruction"].map((each) => html`<option value=${each} />`)}
          </datalist>
        </label>
      </div>
      <${Problem} error=${error} />
      <footer class="dialog-foot">
        <${Button} onClick=${onClose}>Cancel</${Button}>
        <button class="button primary" disabled=${busy}>Remember</button>
      </footer>
    </form>
  </${Dialog}>`;
}

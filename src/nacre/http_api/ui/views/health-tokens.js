// Access tokens: who may use this server, to be made and revoked.

import { api, session } from "../api.js";
import { Button, Dialog, Loading, Problem, Time, confirm, toast } from "../components.js";
import { useLoad } from "../hooks.js";
import { html, useRef, useState } from "../vendor/htm-preact.js";

const ROLES = [
  ["read", "search and read"],
  ["write", "remember, change and forget, too"],
  ["admin", "everything, in all its spaces"],
];
const EXPIRIES = [
  ["30d", "30 days"],
  ["90d", "90 days"],
  ["365d", "a year"],
  ["", "never"],
];

export function Tokens() {
  const { data, error, loading, reload } = useLoad((signal) => api.get("/tokens", {}, { signal }), []);
  const [creating, setCreating] = useState(false);
  const [created, setCreated] = useState(null);
  const revoke = async (token) => {
    const text = `Who uses ${token.name ? `“${token.name}”` : `the token ${token.id}`} is refused from now on.`;
    if (!(await confirm({ title: "Revoke this token?", text, action: "Revoke", danger: true }))) return;
    try {
      await api.del(`/tokens/${token.id}`);
      toast("The token is revoked.");
    } catch (problem) {
      toast(problem.message);
    }
    reload();
  };
  return html`<section class="card span">
    <div class="card-head">
      <h2>Access tokens</h2>
      <span class="spacer"></span>
      <${Button} kind="small" icon="plus" onClick=${() => setCreating(true)}>New token</${Button}>
    </div>
    <${Problem} error=${error} retry=${reload} />
    ${!data && loading && html`<${Loading} />`}
    ${data && !data.length && html`<p class="muted">There are none. On this machine itself none is needed.</p>`}
    ${data?.length > 0 &&
    html`<div class="scrolls" tabindex="0" role="region" aria-label="Access tokens">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">For</th><th scope="col">Role</th><th scope="col">Spaces</th><th scope="col">Made</th>
            <th scope="col">Expires</th><th scope="col"><span class="visually-hidden">Revoke</span></th>
          </tr>
        </thead>
        <tbody>
          ${data.map(
            (each) =>
              html`<tr key=${each.id}>
                <th scope="row"><bdi>${each.name || each.id}</bdi>${each.id === session.token && html` <span class="muted">(yours)</span>`}</th>
                <td>${each.role}</td>
                <td><bdi>${each.spaces === null ? "all" : each.spaces.join(", ")}</bdi></td>
                <td><${Time} at=${each.created} day /></td>
                <td>${each.expires ? html`<${Time} at=${each.expires} day />` : "never"}</td>
                <td>
                  <${Button} kind="small" label=${`Revoke ${each.name || each.id}`} onClick=${() => revoke(each)}>Revoke</${Button}>
                </td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>`}
    ${creating &&
    html`<${NewToken}
      onClose=${() => setCreating(false)}
      onCreated=${(answer) => {
        setCreating(false);
        setCreated(answer);
        reload();
      }}
    />`}
    ${created && html`<${Secret} created=${created} onClose=${() => setCreated(null)} />`}
  </section>`;
}

function NewToken({ onClose, onCreated }) {
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const create = async (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    const spaces = (given.get("spaces") ?? "").split(",").map((each) => each.trim()).filter(Boolean);
    setBusy(true);
    try {
      onCreated(
        await api.post("/tokens", {
          name: given.get("name").trim(),
          role: given.get("role"),
          spaces: given.get("where") === "all" ? null : spaces,
          expires: given.get("expires") || null,
        }),
      );
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  const [where, setWhere] = useState("some");
  return html`<${Dialog} title="New token" onClose=${onClose}>
    <form onSubmit=${create}>
      <label class="field"><span>What it is for</span><input name="name" maxlength="200" required autofocus /></label>
      <fieldset class="choices">
        <legend>Role</legend>
        ${ROLES.map(
          ([role, may]) =>
            html`<label key=${role} class="check">
              <input type="radio" name="role" value=${role} defaultChecked=${role === "read"} />
              <span><strong>${role}</strong> <span class="muted">${may}</span></span>
            </label>`,
        )}
      </fieldset>
      <fieldset class="choices">
        <legend>Spaces</legend>
        <label class="check">
          <input type="radio" name="where" value="some" checked=${where === "some"} onChange=${() => setWhere("some")} /> these
        </label>
        <label class="check">
          <input type="radio" name="where" value="all" checked=${where === "all"} onChange=${() => setWhere("all")} /> all
        </label>
        <label class="field">
          <span class="visually-hidden">Names of spaces, with commas between them</span>
          <input name="spaces" value=${session.space} disabled=${where === "all"} placeholder="names, with commas between them" />
        </label>
      </fieldset>
      <label class="field">
        <span>Expires after</span>
        <select name="expires">
          ${EXPIRIES.map(([value, label]) => html`<option key=${value} value=${value} selected=${value === "90d"}>${label}</option>`)}
        </select>
      </label>
      <${Problem} error=${error} />
      <footer class="dialog-foot">
        <${Button} onClick=${onClose}>Cancel</${Button}>
        <button class="button primary" disabled=${busy}>Make the token</button>
      </footer>
    </form>
  </${Dialog}>`;
}

// Shown once: the store keeps a hash of it.
function Secret({ created, onClose }) {
  const field = useRef(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(created.secret);
      toast("The token is copied.");
    } catch {
      field.current.select(); // the browser lets no page copy here; the person can
      toast("Select it and copy it yourself.");
    }
  };
  return html`<${Dialog} title="Copy the token now" onClose=${onClose}>
    <p>It is not shown again: the store keeps only a hash of it.</p>
    <label class="secret">
      <span class="visually-hidden">Token</span>
      <input ref=${field} readonly value=${created.secret} onFocus=${(event) => event.target.select()} spellcheck="false" />
      <${Button} kind="primary" onClick=${copy}>Copy</${Button}>
    </label>
    <footer class="dialog-foot"><${Button} onClick=${onClose}>Done</${Button}></footer>
  </${Dialog}>`;
}

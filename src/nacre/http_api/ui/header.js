// Name, navigation, space, theme, and whether the page is live.

import { api, may, setSpace } from "./api.js";
import { Button, Dialog, toast } from "./components.js";
import { useConnection } from "./hooks.js";
import { Icon, Logo } from "./icons.js";
import { href } from "./router.js";
import { html, useEffect, useState } from "./vendor/htm-preact.js";

export const VIEWS = [
  ["search", "Search"],
  ["timeline", "Timeline"],
  ["graph", "Graph"],
  ["facts", "Facts"],
  ["log", "Log"],
  ["health", "Health"],
];

const STATES = {
  connecting: "Connecting",
  live: "Live: what agents write appears at once",
  away: "The server is away",
  unauthorized: "Not signed in",
  silent: "Not live: the server sends no changes",
};

const THEMES = { system: ["light", "System theme"], light: ["dark", "Light theme"], dark: ["system", "Dark theme"] };

function ThemeToggle() {
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? "system");
  const [next, label] = THEMES[theme];
  const change = () => {
    setTheme(next);
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    try {
      if (next === "system") window.localStorage.removeItem("nacre.theme");
      else window.localStorage.setItem("nacre.theme", next);
    } catch {
      // Then it holds until the page is left.
    }
  };
  const icon = { system: "system", light: "sun", dark: "moon" }[theme];
  return html`<${Button} kind="quiet" icon=${icon} label=${`${label}; change`} onClick=${change} />`;
}

// The spaces to choose from: those of the token, or else those that have memories.
function useSpaces(session) {
  const [names, setNames] = useState([]);
  useEffect(() => {
    if (!session) return;
    if (session.spaces) setNames(session.spaces);
    else if (may("admin")) {
      api.get("/stats").then(
        (stats) => setNames(Object.keys(stats.spaces)),
        () => setNames([]), // the space itself is still there to be seen
      );
    }
  }, [session]);
  return [...new Set([...(session ? [session.space] : []), ...names])].sort();
}

function OtherSpace({ onClose }) {
  const choose = (event) => {
    event.preventDefault();
    const name = new FormData(event.target).get("space").trim();
    if (name) change(name);
    onClose();
  };
  return html`<${Dialog} title="Another space" onClose=${onClose}>
    <form onSubmit=${choose}>
      <label class="field"><span>Name of the space</span><input name="space" required maxlength="200" autofocus /></label>
      <p class="muted">A space that has no memories yet begins with the first one.</p>
      <footer class="dialog-foot"><button class="button primary">Go there</button></footer>
    </form>
  </${Dialog}>`;
}

function change(name) {
  setSpace(name).catch((error) => toast(error.message));
}

function SpacePicker({ session }) {
  const spaces = useSpaces(session);
  const [asks, setAsks] = useState(false);
  if (!session) return null;
  const chosen = (event) => {
    const name = event.target.value;
    if (name !== "") return change(name);
    event.target.value = session.space;
    return setAsks(true);
  };
  return html`<label class="space-picker">
      <span class="visually-hidden">Space</span>
      <select value=${session.space} onChange=${chosen} title="Space">
        ${spaces.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}
        ${!session.spaces && html`<option value="">Another space…</option>`}
      </select>
    </label>
    ${asks && html`<${OtherSpace} onClose=${() => setAsks(false)} />`}`;
}

export function Header({ route, session, onHelp, onNew }) {
  const state = useConnection();
  const at = route.view === "memory" ? null : route.view;
  return html`<header class="header">
    <a class="brand" href=${href("search")} aria-label="Nacre"><${Logo} /><span>Nacre</span></a>
    <nav class="nav" aria-label="Views">
      ${VIEWS.map(
        ([view, name]) =>
          html`<a key=${view} href=${href(view)} aria-current=${at === view ? "page" : undefined}>
            <${Icon} name=${view} /><span>${name}</span>
          </a>`,
      )}
    </nav>
    <div class="header-tools">
      <${SpacePicker} session=${session} />
      <span class="live" data-state=${state} role="img" aria-label=${STATES[state]} title=${STATES[state]}></span>
      ${may("write") && html`<${Button} kind="quiet" icon="plus" label="New memory" onClick=${onNew} />`}
      <${ThemeToggle} />
      <${Button} kind="quiet" icon="help" label="Keyboard and help" onClick=${onHelp} />
    </div>
  </header>`;
}

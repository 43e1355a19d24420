// The frame of the page: header, the view that the address names, and what may lie over it.

import { connection, loadSession, may, onSession } from "./api.js";
import { Loading, Problem, Toasts } from "./components.js";
import { Help, NewMemory, SignIn } from "./dialogs.js";
import { Header } from "./header.js";
import { useConnection, useHotkeys } from "./hooks.js";
import { navigate, useRoute } from "./router.js";
import { html, render, useEffect, useErrorBoundary, useRef, useState } from "./vendor/htm-preact.js";

const AWAY_AFTER_MS = 600; // a server that starts again at once is no news
const loaded = new Map(); // views that were imported

function load(view) {
  if (!loaded.has(view)) {
    loaded.set(
      view,
      import(`./views/${view}.js`).catch((error) => {
        loaded.delete(view); // the next attempt asks again
        throw error;
      }),
    );
  }
  return loaded.get(view);
}

function useView(name) {
  const [view, setView] = useState({ name: null, View: null, error: null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let wanted = true;
    load(name).then(
      (module) => wanted && setView({ name, View: module.default, error: null }),
      (error) => wanted && setView({ name, View: null, error }),
    );
    return () => (wanted = false);
  }, [name, turn]);
  return { ...view, retry: () => setTurn(turn + 1) };
}

// What a bug in a view leaves of the page: everything else.
function Outlet({ route }) {
  const { name, View, error, retry } = useView(route.view);
  const [broken, reset] = useErrorBoundary((problem) => console.error(problem));
  const at = useRef(null);
  if (broken && at.current !== route.view) {
    at.current = route.view;
    reset();
  }
  at.current = route.view;
  if (broken) return html`<${Problem} error=${new Error(`This view failed: ${broken.message}`)} retry=${reset} />`;
  if (error) return html`<${Problem} error=${new Error("This view could not be loaded.")} retry=${retry} />`;
  if (!View) return html`<${Loading} />`;
  return html`<${View} key=${name} route=${name === route.view ? route : { ...route, view: name }} />`;
}

function Away() {
  const state = useConnection();
  const [shown, setShown] = useState(false);
  useEffect(() => {
    if (state !== "away") {
      setShown(false);
      return undefined;
    }
    const timer = setTimeout(() => setShown(true), AWAY_AFTER_MS);
    return () => clearTimeout(timer);
  }, [state]);
  if (!shown) return null;
  return html`<div class="banner" role="alert">The server is away. Trying again…</div>`;
}

function useSession() {
  const [state, setState] = useState({ session: null, error: null });
  const start = () => loadSession().catch((error) => setState((before) => ({ ...before, error })));
  useEffect(() => {
    const end = onSession((session) => setState({ session, error: null }));
    const states = connection.subscribe((now) => {
      if (now === "unauthorized") setState((before) => ({ ...before, error: before.error ?? { status: 401 } }));
    });
    start();
    return () => {
      end();
      states();
    };
  }, []);
  // The first request may meet a server that is not there yet.
  const retry = state.error !== null && state.error.status !== 401;
  useEffect(() => {
    if (!retry) return undefined;
    const timer = setInterval(start, 2_000);
    return () => clearInterval(timer);
  }, [retry]);
  return { ...state, start };
}

function App() {
  const route = useRoute();
  const { session, error, start } = useSession();
  const [dialog, setDialog] = useState(null); // "help" or "new"
  const close = () => setDialog(null);
  const main = useRef(null);
  const going = Object.fromEntries(
    Object.entries({ s: "search", t: "timeline", g: "graph", f: "facts", l: "log", h: "health" }).map(([key, view]) => [
      `g ${key}`,
      () => navigate(view),
    ]),
  );
  const find = () => {
    const field = document.querySelector("[data-search]");
    if (field) {
      field.focus();
      field.select();
    } else navigate("search", null, { focus: 1 });
  };
  useHotkeys({ "/": find, "?": () => setDialog("help"), n: () => may("write") && setDialog("new"), ...going });

  // Another view begins at its top.
  useEffect(() => window.scrollTo(0, 0), [route.view, route.id]);

  const locked = error?.status === 401;
  return html`
    <a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), main.current.focus())}>
      Skip to the content
    </a>
    <${Header} route=${route} session=${session} onHelp=${() => setDialog("help")} onNew=${() => setDialog("new")} />
    <${Away} />
    <main id="main" ref=${main} tabindex="-1">
      ${locked
        ? html`<${SignIn} />`
        : session
          ? html`<${Outlet} key=${session.space} route=${route} />`
          : error && error.status !== 0
            ? html`<${Problem} error=${error} retry=${start} />`
            : html`<${Loading} />`}
    </main>
    ${dialog === "help" && html`<${Help} onClose=${close} session=${session} />`}
    ${dialog === "new" && session && html`<${NewMemory} onClose=${close} />`}
    <${Toasts} />
  `;
}

load(window.location.hash.match(/^#\/?(memory|timeline|graph|facts|log|health)\b/)?.[1] ?? "search").catch(() => null);
render(html`<${App} />`, document.getElementById("app"));

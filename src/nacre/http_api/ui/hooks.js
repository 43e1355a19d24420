// What views need again and again: to load, to follow changes, to answer keys.

import { connection, onChange } from "./api.js";
import { useEffect, useRef, useState } from "./vendor/htm-preact.js";

const SETTLED_MS = 300; // changes come in bursts
const SEQUENCE_MS = 1_000; // between two keys of a shortcut

// The latest function, so that an effect does not start again with each render.
export function useLatest(value) {
  const ref = useRef(value);
  ref.current = value;
  return ref;
}

// Loads by `fn(signal)`, again when `deps` change. Old data stays until the new ones are there; an answer that came too
// late is dropped. After the server was away it loads again.
export function useLoad(fn, deps) {
  const [state, setState] = useState({ data: null, error: null, loading: true });
  const [turn, setTurn] = useState(0);
  const latest = useLatest(fn);
  useEffect(() => {
    const abort = new AbortController();
    setState((before) => (before.loading ? before : { ...before, loading: true }));
    Promise.resolve()
      .then(() => latest.current(abort.signal))
      .then(
        (data) => abort.signal.aborted || setState({ data, error: null, loading: false }),
        (error) => abort.signal.aborted || setState((before) => ({ data: before.data, error, loading: false })),
      );
    return () => abort.abort();
  }, [...deps, turn]);
  const failed = useLatest(state.error !== null);
  useEffect(
    () => connection.subscribe((now) => now === "live" && failed.current && setTurn((before) => before + 1)),
    [],
  );
  return { ...state, reload: () => setTurn((before) => before + 1) };
}

// Calls `fn(changes)` soon after changes of these kinds ("memory", "fact", "entity", "update", "lens"; all without).
export function useLive(fn, kinds) {
  const latest = useLatest(fn);
  const wanted = kinds?.join(" ");
  useEffect(() => {
    let waiting = [];
    let timer = 0;
    const end = onChange((changes) => {
      const relevant = wanted === undefined ? changes : changes.filter((each) => wanted.split(" ").includes(each.kind));
      if (!relevant.length) return;
      waiting.push(...relevant);
      timer ||= setTimeout(() => {
        const several = waiting;
        waiting = [];
        timer = 0;
        latest.current(several);
      }, SETTLED_MS);
    });
    return () => {
      end();
      clearTimeout(timer);
    };
  }, [wanted]);
}

// ---- keys

const SINGLE_KEYS = "nacre.keys";

// People who speak to their computer switch shortcuts of one key off.
export function keysEnabled() {
  return window.localStorage.getItem(SINGLE_KEYS) !== "off";
}

export function enableKeys(on) {
  if (on) window.localStorage.removeItem(SINGLE_KEYS);
  else window.localStorage.setItem(SINGLE_KEYS, "off");
}

function writes(element) {
  return element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName);
}

// Of several that know a key, the latest gets it. All share one sequence, so that "g t" is not also "t".
const maps = [];
let first = null;
let firstAt = 0;

window.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !keysEnabled()) return;
  if (writes(event.target) || document.querySelector("dialog[open]")) return;
  const known = (key) => maps.findLast((each) => each.current[key])?.current[key];
  const both = first !== null && event.timeStamp - firstAt < SEQUENCE_MS ? known(`${first} ${event.key}`) : undefined;
  const action = both ?? known(event.key);
  first = both ? null : event.key;
  firstAt = event.timeStamp;
  if (!action) return;
  event.preventDefault();
  action(event);
});

// Keys by name, "/" or "Escape", or two of them: "g s". Not while something is written, nor behind a dialog.
export function useHotkeys(map) {
  const latest = useLatest(map);
  useEffect(() => {
    maps.push(latest);
    return () => maps.splice(maps.indexOf(latest), 1);
  }, []);
}

// ---- small ones

export function useTitle(text) {
  useEffect(() => {
    document.title = text ? `${text} · Nacre` : "Nacre";
  }, [text]);
}

// The state of the connection, as it changes.
export function useConnection() {
  const [state, setState] = useState(connection.state);
  useEffect(() => {
    setState(connection.state);
    return connection.subscribe(setState);
  }, []);
  return state;
}

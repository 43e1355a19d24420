// Searches while somebody types: at once without the reranker, and with it as soon as the keys rest.

import { api, connection } from "../api.js";
import { useLatest } from "../hooks.js";
import { useEffect, useRef, useState } from "../vendor/htm-preact.js";

const TYPING_MS = 30;
const REST_MS = 400;

// `request` are the arguments of a search, or null. `now` grows when the full search shall not wait any longer, and
// `turn` when the store has changed. Gives { data, error, stage: "fast" | "full", loading }; data stays while the next
// is on its way, and answers that were overtaken are dropped.
export function useSearch(request, { typed, now, turn }) {
  const [state, setState] = useState({ data: null, error: null, stage: null, loading: false });
  const [again, setAgain] = useState(0); // after the server was away
  const failed = useLatest(state.error !== null);
  useEffect(
    () => connection.subscribe((is) => is === "live" && failed.current && setAgain((times) => times + 1)),
    [],
  );
  const before = useRef({ now, turn });
  const key = request && JSON.stringify(request);
  useEffect(() => {
    if (request === null) {
      setState({ data: null, error: null, stage: null, loading: false });
      return undefined;
    }
    const live = turn !== before.current.turn;
    const entered = now !== before.current.now;
    before.current = { now, turn };
    const abort = new AbortController();
    let full = false;
    const ask = async (stage) => {
      try {
        const data = await api.post("/search", { ...request, ...stage.options }, { signal: abort.signal });
        if (abort.signal.aborted || (full && stage.name === "fast")) return;
        full = stage.name === "full";
        setState({ data, error: null, stage: stage.name, loading: false });
      } catch (error) {
        if (!abort.signal.aborted) setState((old) => ({ ...old, error, loading: false }));
      }
    };
    setState((old) => ({ ...old, loading: true }));
    const quick = !live && !entered;
    const timers = [];
    if (quick) timers.push(setTimeout(() => ask(FAST), typed ? TYPING_MS : 0));
    const wait = typed && quick ? REST_MS : quick ? TYPING_MS : 0;
    timers.push(setTimeout(() => ask(FULL), wait));
    return () => {
      timers.forEach(clearTimeout);
      abort.abort();
    };
  }, [key, now, turn, again]);
  return state;
}

const FAST = { name: "fast", options: { rerank: false } };
const FULL = { name: "full", options: {} };

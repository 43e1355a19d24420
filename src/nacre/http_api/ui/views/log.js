// The recall log: what agents asked, what they got, and what became of it.

import { api, may } from "../api.js";
import { Button, Empty, Loading, Problem, Time, VirtualList, confirm, toast } from "../components.js";
import { useLatest, useTitle } from "../hooks.js";
import { href, navigate } from "../router.js";
import { html, useEffect, useState } from "../vendor/htm-preact.js";
import { ReceiptPanel } from "./log-panel.js";
import { useMedia } from "./media.js";

const PAGE = 100;
const LOOK_MS = 4_000; // between two looks for new receipts, of which the server tells nothing by itself
const WIDE = 44;
const NARROW = 64;

// Receipts, newest first. More come before the last one as the list is scrolled, and after the first one in time.
function useReceipts(session, memoryId) {
  const nothing = { receipts: null, error: null, complete: false, loading: false };
  const [state, setState] = useState(nothing);
  const latest = useLatest(state);
  const ask = (more) => api.get("/receipts", { session, memory_id: memoryId, limit: PAGE, ...more });

  const first = async () => {
    setState(nothing);
    try {
      const receipts = await ask();
      setState({ ...nothing, receipts, complete: receipts.length < PAGE });
    } catch (error) {
      setState({ ...nothing, error });
    }
  };
  const more = async () => {
    const { receipts, complete, loading } = latest.current;
    if (!receipts?.length || complete || loading) return;
    setState((before) => ({ ...before, loading: true }));
    try {
      const page = await ask({ before: receipts.at(-1).id });
      setState((before) => ({
        ...before,
        receipts: [...before.receipts, ...page],
        complete: page.length < PAGE,
        loading: false,
      }));
    } catch (error) {
      setState((before) => ({ ...before, error, loading: false }));
    }
  };
  // The newest page anew: what is new, and what was marked meanwhile.
  const look = async () => {
    const { receipts } = latest.current;
    if (!receipts || document.hidden) return;
    const page = await ask().catch(() => null); // the next look tries again
    if (!page) return;
    setState((before) => {
      if (before.receipts !== receipts) return before;
      const known = new Map(page.map((each) => [each.id, each]));
      const added = page.filter((each) => !receipts.some((other) => other.id === each.id));
      if (page.length === PAGE && added.length === PAGE) return { ...nothing, receipts: page };
      const kept = receipts.map((each) => known.get(each.id) ?? each);
      const same = !added.length && JSON.stringify(kept) === JSON.stringify(receipts);
      return same ? before : { ...before, receipts: [...added, ...kept] };
    });
  };

  useEffect(() => {
    first();
  }, [session, memoryId]);
  const looking = useLatest(look);
  useEffect(() => {
    const timer = setInterval(() => looking.current(), LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  return { ...state, first, more, look };
}

export default function View({ route }) {
  useTitle("Recall log");
  const { params, id } = route;
  const narrow = useMedia("(max-width: 720px)");
  const [session, memoryId] = [params.get("session"), params.get("memory")];
  const { receipts, error, first, more, look } = useReceipts(session, memoryId);
  const selected = receipts?.findIndex((each) => each.id === id) ?? -1;
  const sessions = [...new Set((receipts ?? []).map((each) => each.session).filter(Boolean))].slice(0, 100);

  const change = (name, value) => {
    const next = new URLSearchParams(params);
    next.delete(name);
    if (value) next.set(name, value);
    navigate("log", null, next);
  };
  const clear = async () => {
    const which = session ? `of the session “${session}”` : "of this space";
    const text = `All logged searches ${which} are deleted. What was learned from them stays. This cannot be undone.`;
    if (!(await confirm({ title: "Clear the recall log?", text, action: "Clear", danger: true }))) return;
    try {
      const cleared = await api.post("/receipts/clear", session ? { session } : {});
      toast(cleared === 1 ? "1 search was deleted." : `${cleared.toLocaleString()} searches were deleted.`);
      first();
    } catch (problem) {
      toast(problem.message);
    }
  };
  const filtered = session || memoryId;

  return html`<section class="view fill log" aria-label="Recall log">
    <div class="toolbar">
      <h1>Recall log</h1>
      <span class="muted">what was asked, and what came of it</span>
      <span class="spacer"></span>
      <label class="compact">
        <span class="visually-hidden">Session</span>
        <input
          list="log-sessions"
          placeholder="any session"
          class=${session ? "set" : ""}
          value=${session ?? ""}
          onChange=${(event) => change("session", event.target.value.trim())}
        />
        <datalist id="log-sessions">${sessions.map((each) => html`<option key=${each} value=${each} />`)}</datalist>
      </label>
      ${memoryId &&
      html`<${Button} kind="small" icon="close" onClick=${() => change("memory", null)}>One memory only</${Button}>`}
      ${may("admin") && html`<${Button} icon="trash" onClick=${clear} disabled=${!receipts?.length}>Clear</${Button}>`}
    </div>
    <${Problem} error=${error} retry=${first} />
    ${!receipts && !error && html`<${Loading} />`}
    ${receipts &&
    (receipts.length
      ? html`<div class=${`split ${selected >= 0 ? "with-panel" : ""}`}>
          <div class="split-main">
            <${VirtualList}
              count=${receipts.length}
              rowHeight=${narrow ? NARROW : WIDE}
              label="Searches, newest first"
              active=${selected}
              onActive=${(row) => navigate("log", receipts[row].id, params, { replace: true })}
              onNearEnd=${more}
              renderRow=${(row) => html`<${Row} receipt=${receipts[row]} params=${params} chosen=${row === selected} />`}
            />
          </div>
          ${selected >= 0
            ? html`<${ReceiptPanel}
                key=${id}
                receipt=${receipts[selected]}
                onMarked=${look}
                onClose=${() => navigate("log", null, params)}
              />`
            : html`<p class="panel-hint muted">Choose a search to see what it delivered.</p>`}
        </div>`
      : html`<${Empty} title=${filtered ? "No search is logged for this." : "No searches are logged yet."}>
          ${filtered
            ? html`<${Button} onClick=${() => navigate("log")}>Show all</${Button}>`
            : html`<p>Each search of an agent is written here, with what it delivered. Searches of this page are not.</p>`}
        </${Empty}>`)}
  </section>`;
}

function Row({ receipt, params, chosen }) {
  const { deliveries } = receipt;
  const marked = (outcome) => deliveries.filter((each) => each[outcome]).length;
  const counts = [
    ["used", marked("used")],
    ["wrong", marked("wrong")],
    ["opened", marked("opened")],
  ].filter(([, count]) => count);
  return html`<a class="log-row" href=${href("log", receipt.id, params)} aria-current=${chosen ? "true" : undefined}>
    <span class="log-query"><bdi dir="auto">${receipt.query || "(no words)"}</bdi></span>
    <span class="log-marks">
      ${counts.map(([name, count]) => html`<span key=${name} class=${`outcome ${name}`}>${count} ${name}</span>`)}
    </span>
    <span class="log-found small">${deliveries.length === 1 ? "1 memory" : `${deliveries.length} memories`}</span>
    <span class="log-who small muted"><bdi>${receipt.session ?? receipt.origin ?? ""}</bdi></span>
    <span class="log-when small muted"><${Time} at=${receipt.at} /></span>
  </a>`;
}

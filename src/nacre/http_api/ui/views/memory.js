// One memory: its text, all that is known of it, and what can be done with it.

import { api, may } from "../api.js";
import { Button, Chip, Empty, Icon, Loading, Problem, Time, confirm, toast } from "../components.js";
import { useHotkeys, useLive, useLoad, useTitle } from "../hooks.js";
import { href, navigate } from "../router.js";
import { html, useEffect, useState } from "../vendor/htm-preact.js";
import { Alike, Card, Entities, Links, Recalls, Session } from "./memory-beside.js";
import { forget, load, recalls, restore, several, update } from "./memory-data.js";
import { Edit } from "./memory-edit.js";
import { MemoryFacts } from "./memory-facts.js";
import { History } from "./memory-history.js";

// All that is shown, each part by itself, so that the text does not wait for the history.
function useMemory(id) {
  const memory = useLoad((signal) => load(id, signal), [id]);
  const there = memory.data !== null && memory.data.id === id;
  const part = (fn) => useLoad((signal) => (there ? fn(signal) : null), [id, there, memory.data?.updated]);
  const links = there ? [...(memory.data.updates ?? []), ...(memory.data.updated_by ?? [])] : [];
  const facts = part((signal) => api.get("/facts", { memory_id: id, history: true, limit: 1_000 }, { signal }));
  const history = part((signal) => api.get(`/memories/${id}/history`, {}, { signal }));
  const similar = part((signal) => (memory.data.deleted ? [] : api.get(`/memories/${id}/similar`, {}, { signal })));
  const receipts = part((signal) => recalls(id, signal));
  const linked = useLoad((signal) => several(links, signal), [links.join(" ")]);
  const reload = () => [memory, facts, history, similar, receipts].forEach((each) => each.reload());
  return { memory, there, facts, history, similar, receipts, linked, reload };
}

function Tags({ memory, reload }) {
  const [adds, setAdds] = useState(false);
  const writes = may("write") && memory.deleted === null;
  const set = async (tags, said) => {
    setAdds(false);
    await update(memory, { tags }, { said, reload }).catch((error) => toast(error.message));
  };
  const keys = (event) => {
    const tag = event.target.value.trim();
    if (event.key === "Escape") setAdds(false);
    else if (event.key === "Enter" && tag && !event.isComposing) {
      event.preventDefault();
      if (!memory.tags.includes(tag)) set([...memory.tags, tag], `Tagged ${tag}.`);
    }
  };
  return html`<div class="chips tags">
    ${memory.tags.map((each) =>
      writes
        ? html`<${Chip}
            key=${each}
            label=${`Remove the tag ${each}`}
            onRemove=${() => set(memory.tags.filter((one) => one !== each), `The tag ${each} is gone.`)}
          >#${each}</${Chip}>`
        : html`<${Chip} key=${each}>#${each}</${Chip}>`,
    )}
    ${writes &&
    (adds
      ? html`<input class="tag-input" aria-label="New tag" dir="auto" maxlength="200" ref=${(field) => field?.focus()} onKeyDown=${keys} onBlur=${() => setAdds(false)} />`
      : html`<button type="button" class="chip" onClick=${() => setAdds(true)}>+ tag</button>`)}
  </div>`;
}

function Actions({ memory, reload, onEdit }) {
  const act = (action) => () => action().catch((error) => toast(error.message));
  const purge = act(async () => {
    const sure = await confirm({
      title: "Delete it for good?",
      text: "The text, its history and its facts are removed from the store. This cannot be undone.",
      action: "Delete for good",
      danger: true,
    });
    if (!sure) return;
    const { pending } = await api.post("/memories/purge", { ids: memory.id });
    toast(pending ? `Deleted. ${pending}` : "Deleted for good.");
    navigate("search");
  });
  const pin = act(() =>
    update(memory, { pinned: !memory.pinned }, { said: memory.pinned ? "No longer pinned." : "Pinned.", reload }),
  );
  if (memory.deleted) {
    return html`<div class="actions">
      ${may("write") && html`<${Button} kind="primary" icon="restore" onClick=${act(() => restore(memory, reload))}>Restore</${Button}>`}
      ${may("admin") && html`<${Button} onClick=${purge}>Purge…</${Button}>`}
    </div>`;
  }
  return html`<div class="actions">
    ${may("write") &&
    html`<${Button} icon="edit" onClick=${onEdit}>Edit</${Button}>
      <${Button} icon="pin" aria-pressed=${memory.pinned} onClick=${pin}>Pin</${Button}>
      <${Button} icon="trash" onClick=${act(() => forget(memory, reload))}>Forget</${Button}>`}
    ${may("admin") && html`<${Button} kind="quiet" onClick=${purge}>Purge…</${Button}>`}
  </div>`;
}

function Fields({ memory }) {
  const link = (field, value) => html`<a href=${href("search", null, { [field]: value })}><bdi>${value}</bdi></a>`;
  const metadata = Object.entries(memory.metadata);
  const rows = [
    ["Kind", link("kind", memory.kind)],
    ["Namespace", link("ns", memory.namespace)],
    ["Created", html`<${Time} at=${memory.created} />`],
    ["Happened", memory.happened && html`<${Time} at=${memory.happened} />`],
    ["Changed", memory.updated !== memory.created && html`<${Time} at=${memory.updated} />`],
    ["Forgotten", memory.deleted && html`<${Time} at=${memory.deleted} />`],
    ["Expires", memory.expires && html`<${Time} at=${memory.expires} />`],
    ["Importance", memory.importance.toLocaleString()],
    ["Source", memory.source && link("source", memory.source)],
    ["Session", memory.session && html`<bdi>${memory.session}</bdi>${memory.position !== null && ` (${memory.position})`}`],
    ["Key", memory.key && html`<code>${memory.key}</code>`],
    ["Origin", memory.origin && html`<bdi>${memory.origin}</bdi>`],
    ...metadata.map(([name, value]) => [name, html`<bdi>${typeof value === "string" ? value : JSON.stringify(value)}</bdi>`]),
    ["Space", html`<bdi>${memory.space}</bdi>`],
    ["Id", html`<code>${memory.id}</code>`],
  ];
  return html`<${Card} title="Details" id="details-title">
    <dl class="details">
      ${rows
        .filter(([, value]) => value)
        .map(([name, value], at) => html`<div key=${at}><dt><bdi>${name}</bdi></dt><dd class="said">${value}</dd></div>`)}
    </dl>
  </${Card}>`;
}

export default function MemoryView({ route }) {
  const { id } = route;
  const { memory, there, facts, history, similar, receipts, linked, reload } = useMemory(id);
  const [edits, setEdits] = useState(false);
  const [news, setNews] = useState(false); // it changed while it was edited
  const data = there ? memory.data : null;
  const able = data !== null && data.deleted === null && may("write");
  useTitle(data ? (data.summary ?? data.text).slice(0, 60) : "Memory");
  useEffect(() => setEdits(false), [id]);
  useLive((changes) => {
    const own = changes.some((each) => each.kind === "memory" && each.name === id);
    if (own && edits) setNews(true);
    else if (own) reload();
    else if (changes.some((each) => each.kind === "update" || each.kind === "fact")) facts.reload();
  }, ["memory", "fact", "update"]);
  useHotkeys({
    e: () => able && setEdits(true),
    Escape: () => window.history.length > 1 && window.history.back(),
  });

  if (memory.error && !data) return html`<${Problem} error=${memory.error} retry=${memory.reload} />`;
  if (!memory.loading && memory.data === null) {
    return html`<h1 class="visually-hidden">Memory</h1><${Empty} title="No memory has this id in this space">
      <p><code class="said">${id}</code></p>
      <p><a href=${href("search")}>To the search</a></p>
    </${Empty}>`;
  }
  if (!data) return html`<h1 class="visually-hidden">Memory</h1><${Loading} />`;
  const done = () => {
    setEdits(false);
    setNews(false);
    reload();
    requestAnimationFrame(() => document.querySelector(".memory .actions button")?.focus()); // where the form was opened
  };
  const putBack = (before) =>
    update(data, before, { said: "The old values are back.", reload }).catch((error) => toast(error.message));
  return html`<article class="memory">
    <header class="memory-head">
      <h1 class="visually-hidden">Memory</h1>
      <p class="muted small">
        ${data.pinned && html`<span class="pinned"><${Icon} name="pin" /> Pinned · </span>`}
        <a href=${href("search", null, { ns: data.namespace })}><bdi>${data.namespace}</bdi></a> · <bdi>${data.kind}</bdi> ·${" "}
        <${Time} at=${data.happened ?? data.created} />
      </p>
      ${!edits && html`<${Actions} memory=${data} reload=${reload} onEdit=${() => setEdits(true)} />`}
    </header>
    <div class="memory-columns">
      <div class="memory-main">
        ${data.deleted && html`<p class="note warn">It is forgotten: no search finds it. It can be restored.</p>`}
        ${edits && news && html`<p class="note warn" role="status">It has changed since you began. Saving will ask.</p>`}
        ${edits
          ? html`<${Edit} memory=${data} onDone=${done} />`
          : html`<section class="card memory-card" aria-label="Text">
              ${data.summary && html`<p class="memory-summary text" dir="auto">${data.summary}</p>`}
              <p class="text memory-text" dir="auto">${data.text}</p>
              <${Tags} memory=${data} reload=${reload} />
            </section>`}
        <${Links} memory=${data} linked=${linked.data} reload=${reload} />
        <${MemoryFacts} memory=${data} facts=${facts.data} reload=${reload} />
        <${Card} title="History" id="history-title">
          <${History} memory=${data} events=${history.data} error=${history.error} onPutBack=${able && !edits ? putBack : null} />
        </${Card}>
      </div>
      <div class="memory-side">
        <${Entities} memory=${data} />
        <${Session} memory=${data} />
        <${Alike} memory=${data} similar=${similar.data} reload=${reload} />
        <${Recalls} memory=${data} receipts=${receipts.data} />
        <${Fields} memory=${data} />
      </div>
    </div>
  </article>`;
}

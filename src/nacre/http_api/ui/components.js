// The small parts that all views are made of. Larger ones have files of their own and are exported from here, too.

import { href } from "./router.js";
import { Icon } from "./icons.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/htm-preact.js";

export { Histogram } from "./histogram.js";
export { Icon } from "./icons.js";
export { VirtualList } from "./virtual-list.js";

export function Button({ children, icon, kind = "", label, class: named = "", ...rest }) {
  return html`<button type="button" class=${`button ${kind} ${named}`} aria-label=${label} title=${label} ...${rest}>
    ${icon && html`<${Icon} name=${icon} />`}${children}
  </button>`;
}

export function Chip({ children, onRemove, onClick, pressed, label }) {
  const text = html`<bdi class="chip-text">${children}</bdi>`;
  if (onRemove) {
    return html`<span class="chip set">
      ${text}
      <button type="button" class="chip-remove" aria-label=${label ?? "Remove this filter"} onClick=${onRemove}>
        <${Icon} name="close" />
      </button>
    </span>`;
  }
  if (!onClick) return html`<span class="chip">${text}</span>`;
  return html`<button type="button" class="chip" aria-pressed=${pressed} aria-label=${label} onClick=${onClick}>
    ${text}
  </button>`;
}

export function Loading({ label = "Loading" }) {
  return html`<div class="loading" role="status"><span class="spinner" aria-hidden="true"></span>${label}…</div>`;
}

export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children}</div>`;
}

// An error of the server: what is wrong, and what helps.
export function Problem({ error, retry }) {
  if (!error) return null;
  const { problem = error.message, remedy, field } = error;
  return html`<div class="problem" role="alert">
    <p><strong>${field && !problem.startsWith(field) ? `${field}: ` : ""}<bdi>${problem}</bdi></strong></p>
    ${remedy && html`<p><bdi>${remedy}</bdi></p>`}
    ${retry && html`<${Button} onClick=${() => retry()}>Try again</${Button}>`}
  </div>`;
}

const DAY = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });
const MOMENT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export function formatDay(at) {
  return DAY.format(new Date(at));
}

// A moment in the time zone of the browser; with `day` the day alone.
export function Time({ at, day }) {
  if (!at) return null;
  const date = new Date(at);
  const text = Number.isNaN(date.getTime()) ? at : (day ? DAY : MOMENT).format(date);
  return html`<time datetime=${at} title=${at}>${text}</time>`;
}

export function MemoryLink({ id, children, ...rest }) {
  return html`<a class="memory-link" href=${href("memory", id)} ...${rest}>${children ?? html`<code>${id}</code>`}</a>`;
}

// ---- dialogs

// A modal dialog. The browser keeps the focus in it, and Esc closes it.
export function Dialog({ title, onClose, children, class: named = "" }) {
  const ref = useRef(null);
  const id = useRef(`dialog-${Math.random().toString(36).slice(2)}`);
  useLayoutEffect(() => {
    const before = document.activeElement;
    const element = ref.current;
    element.showModal();
    return () => {
      element.close();
      if (before?.isConnected) before.focus?.();
    };
  }, []);
  const cancel = (event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog
    ref=${ref}
    class=${`dialog ${named}`}
    aria-labelledby=${id.current}
    onCancel=${cancel}
    onMouseDown=${(event) => event.target === ref.current && onClose()}
  >
    <div class="dialog-box">
      <header class="dialog-head">
        <h2 id=${id.current}>${title}</h2>
        <${Button} kind="quiet" icon="close" label="Close" onClick=${onClose} />
      </header>
      ${children}
    </div>
  </dialog>`;
}

// ---- messages and questions, from anywhere

const NOTICE_MS = 5_000;
const ACTION_MS = 12_000; // time to undo
let notices = [];
let question = null;
let number = 0;
const watchers = new Set();

function changed() {
  for (const each of [...watchers]) each(++number); // never the 0 that it begins with
}

// A short message that goes by itself; `action` with its `label` is a button, as "Undo".
export function toast(text, { action, label } = {}) {
  const notice = { id: number++, text, action, label };
  notices = [...notices.slice(-3), notice];
  changed();
}

function dismiss(id) {
  notices = notices.filter((each) => each.id !== id);
  changed();
}

// Asks, and answers whether the person agreed.
export function confirm({ title, text, action = "OK", danger = false }) {
  return new Promise((resolve) => {
    question?.answer(false);
    const answer = (agreed) => {
      question = null;
      changed();
      resolve(agreed);
    };
    question = { title, text, action, danger, answer };
    changed();
  });
}

function Notice({ notice }) {
  const [held, setHeld] = useState(false);
  useEffect(() => {
    if (held) return undefined;
    const timer = setTimeout(() => dismiss(notice.id), notice.action ? ACTION_MS : NOTICE_MS);
    return () => clearTimeout(timer);
  }, [held]);
  const act = () => {
    dismiss(notice.id);
    notice.action();
  };
  return html`<div
    class="toast"
    onMouseEnter=${() => setHeld(true)}
    onMouseLeave=${() => setHeld(false)}
    onFocusIn=${() => setHeld(true)}
    onFocusOut=${() => setHeld(false)}
  >
    <bdi>${notice.text}</bdi>
    ${notice.action && html`<${Button} kind="inverse" onClick=${act}>${notice.label ?? "Undo"}</${Button}>`}
    <${Button} kind="inverse quiet" icon="close" label="Dismiss" onClick=${() => dismiss(notice.id)} />
  </div>`;
}

// Where messages and questions are shown: once, in the frame of the page.
export function Toasts() {
  const [, redraw] = useState(0);
  useEffect(() => {
    watchers.add(redraw);
    return () => watchers.delete(redraw);
  }, []);
  return html`<div class="toasts" role="status" aria-live="polite">
      ${notices.map((each) => html`<${Notice} key=${each.id} notice=${each} />`)}
    </div>
    ${question &&
    html`<${Dialog} title=${question.title} onClose=${() => question?.answer(false)}>
      <p class="dialog-text"><bdi>${question.text}</bdi></p>
      <footer class="dialog-foot">
        <${Button} onClick=${() => question?.answer(false)}>Cancel</${Button}>
        <${Button} kind=${question.danger ? "danger" : "primary"} onClick=${() => question?.answer(true)}>
          ${question.action}
        </${Button}>
      </footer>
    </${Dialog}>`}`;
}

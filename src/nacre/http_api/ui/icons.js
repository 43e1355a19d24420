// Icons as SVG in the colour of the text around them. They are always beside a word, or in a button that has a name.

import { html } from "./vendor/htm-preact.js";

const PATHS = {
  search: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13ZM15.5 15.5 20 20",
  timeline: "M5 4v16M5 7h9M5 12h14M5 17h6",
  graph: "M7 8a2.5 2.5 0 1 0-.01 0ZM18 9a2.5 2.5 0 1 0-.01 0ZM12 21a2.5 2.5 0 1 0-.01 0ZM8.5 7.3l7-.4M8 8.5l3.2 7.7M16.7 9l-3.6 7.3",
  facts: "M5 6h2M10 6h9M5 12h2M10 12h9M5 18h2M10 18h6",
  log: "M12 4a8 8 0 1 1-7.4 5M4 4v5h5M12 8v4.5l3 2",
  health: "M3 12h4l2.5-6 4 12 2.5-6h5",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8ZM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4",
  moon: "M19.5 14.2A8 8 0 0 1 9.8 4.5a8 8 0 1 0 9.7 9.7Z",
  system: "M4 5h16v11H4zM9 20h6M12 16v4",
  help: "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17ZM9.7 9.6a2.4 2.4 0 1 1 3.5 2.1c-.8.4-1.2.9-1.2 1.8M12 16.4v.1",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6 6 18",
  pin: "M9 4h6l-1 6 3 3H7l3-3-1-6ZM12 13v7",
  edit: "M4 20l1-4L16 5l3 3L8 19l-4 1ZM14 7l3 3",
  trash: "M5 7h14M10 7V4.5h4V7M7 7l1 13h8l1-13M10.5 10.5v6M13.5 10.5v6",
  restore: "M5 12a7 7 0 1 1 2 5M5 7v5h5",
  columns: "M4 5h16v14H4zM9.3 5v14M14.6 5v14",
  filter: "M4 6h16M7 12h10M10 18h4",
  chevron: "M9 6l6 6-6 6",
  link: "M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.7-5.7l-1 1M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 5.7 5.7l1-1",
};

export function Icon({ name, class: named = "" }) {
  return html`<svg class=${`icon ${named}`} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d=${PATHS[name]} />
  </svg>`;
}

// The mark of Nacre: a shell of growing rings.
export function Logo() {
  return html`<svg class="logo" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
    <path class="logo-3" d="M16 4C8.5 4 3 9.8 3 16.5 3 23.5 8.8 28 16 28s13-4.5 13-11.5C29 9.8 23.5 4 16 4Z" />
    <path class="logo-2" d="M16 9.5c-5.2 0-9 3.7-9 8.2C7 22.6 11 26 16 26s9-3.4 9-8.3c0-4.5-3.8-8.2-9-8.2Z" />
    <circle class="logo-1" cx="16" cy="19.5" r="4.5" />
  </svg>`;
}

// How far a fact is believed, and when it holds, as bars.

import { html } from "../vendor/htm-preact.js";

// Given confidence as a line, and what decay has left of it as a bar.
export function Confidence({ fact }) {
  const left = fact.effective ?? fact.confidence;
  const said =
    fact.effective === undefined || percent(left) === percent(fact.confidence)
      ? `Confidence ${percent(left)}`
      : `Confidence ${percent(left)} now, ${percent(fact.confidence)} when it was last confirmed`;
  return html`<span class="confidence" role="img" aria-label=${said} title=${said}>
    <span class="confidence-bar" aria-hidden="true">
      <span class=${left < 0.5 ? "weak" : ""} style=${{ width: `${100 * left}%` }}></span>
      <i style=${{ left: `${100 * fact.confidence}%` }}></i>
    </span>
    <span class="confidence-number" aria-hidden="true">${percent(left)}</span>
  </span>`;
}

export function percent(share) {
  return `${Math.round(100 * share)}%`;
}

const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

export function day(at) {
  return DAY.format(Date.parse(at));
}

export function stateOf(fact, at) {
  if (Date.parse(fact.valid_from) > at) return "not yet";
  if (!fact.valid_to || Date.parse(fact.valid_to) > at) return "current";
  return fact.superseded_by ? "superseded" : "ended";
}

export function validity(fact) {
  if (!fact.valid_to) return `since ${day(fact.valid_from)}`;
  return `${day(fact.valid_from)} – ${day(fact.valid_to)}`;
}

// The time that all of these facts take, with `at` in it, in milliseconds.
export function spanOf(facts, at) {
  const times = facts.flatMap((each) => [Date.parse(each.valid_from), each.valid_to ? Date.parse(each.valid_to) : at]);
  const [from, to] = [Math.min(at, ...times), Math.max(at, ...times)];
  return { from, to: Math.max(to, from + 1) };
}

// The part of the span in which a fact holds; a mark is at `at`. What holds still has no end.
export function TimeBar({ fact, span, at }) {
  const place = (time) => (100 * (time - span.from)) / (span.to - span.from);
  const start = place(Date.parse(fact.valid_from));
  const end = fact.valid_to ? place(Date.parse(fact.valid_to)) : 100;
  const said = `Holds ${validity(fact)}`;
  return html`<svg class=${`time-bar ${stateOf(fact, at).replace(" ", "-")}`} viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label=${said}>
    <title>${said}</title>
    <rect class="time-bar-track" x="0" y="4.5" width="100" height="1" />
    <rect class="time-bar-holds" x=${start} y="2" width=${Math.max(1, end - start)} height="6" />
    <rect class="time-bar-at" x=${Math.min(99.4, place(at))} y="0" width="0.6" height="10" />
  </svg>`;
}

export function Statement({ fact }) {
  return html`<span class="statement">
    <bdi class="statement-subject">${fact.subject}</bdi> <bdi class="statement-predicate">${fact.predicate}</bdi>
    ${" "}<bdi class="statement-object">${fact.object}</bdi>
  </span>`;
}

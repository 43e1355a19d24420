// Days in the time zone in which the server counts them, and what groups of days are called.

import { bucketOf, named } from "../buckets.js";

const QUARTER_MS = 15 * 60_000; // no zone changes its offset within a quarter of an hour
const DAY_MS = 86_400_000;

const DAY = new Intl.DateTimeFormat(undefined, {
  weekday: "long",
  day: "numeric",
  month: "long",
  year: "numeric",
  timeZone: "UTC",
});

const kept = new Map();

// The calendar of a zone: an IANA name; that of the browser where there is none, or one it does not know.
export function calendarOf(zone) {
  const name = zone ?? "";
  if (!kept.has(name)) kept.set(name, makeCalendar(offsets(name)));
  return kept.get(name);
}

function offsets(zone) {
  const parts = { year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric" };
  let format = new Intl.DateTimeFormat("en-US", { hourCycle: "h23", ...parts });
  try {
    if (zone) format = new Intl.DateTimeFormat("en-US", { hourCycle: "h23", ...parts, timeZone: zone });
  } catch {
    // the server's zone has no name that the browser knows
  }
  const known = new Map();
  return (ms) => {
    const slot = Math.floor(ms / QUARTER_MS);
    if (!known.has(slot)) {
      const part = {};
      for (const { type, value } of format.formatToParts(slot * QUARTER_MS)) part[type] = Number(value);
      const local = Date.UTC(part.year, part.month - 1, part.day, part.hour, part.minute);
      known.set(slot, local - slot * QUARTER_MS);
    }
    return known.get(slot);
  };
}

function makeCalendar(offset) {
  const local = (at) => {
    const ms = typeof at === "number" ? at : Date.parse(at);
    return new Date(ms + offset(ms)).toISOString();
  };
  return {
    // The day of a moment, and its time, as 2026-11-15 and 14:05.
    day: (at) => local(at).slice(0, 10),
    clock: (at) => local(at).slice(11, 16),
    // The moment at which a day begins, in milliseconds.
    start(day) {
      const midnight = Date.parse(`${day}T00:00:00Z`);
      return midnight - offset(midnight - offset(midnight));
    },
  };
}

export function nextDay(day) {
  return new Date(Date.parse(`${day}T00:00:00Z`) + DAY_MS).toISOString().slice(0, 10);
}

// The day, week or month that a day is in, as the server names it.
export function groupOf(day, by) {
  return by === "day" ? day : bucketOf(new Date(`${day}T00:00:00Z`), by);
}

export function groupLabel(group) {
  if (group.length === 10) return DAY.format(Date.parse(`${group}T00:00:00Z`));
  const label = named(group);
  return label[0].toUpperCase() + label.slice(1);
}

// What is searched, as it stands in the address, and as the server wants it.

import { session } from "../api.js";
import { endOf, startOf } from "../buckets.js";
import { toParams } from "../router.js";
import { calendarOf } from "./calendar.js";

export const MODES = ["hybrid", "keyword", "semantic"];
export const LIMIT = 20;
export const FIELDS = ["kind", "ns", "tag", "source"]; // of filters; their values may be several

export function readState(params) {
  const mode = params.get("mode");
  return {
    q: params.get("q") ?? "",
    mode: MODES.includes(mode) ? mode : "hybrid",
    lens: params.get("lens"), // null: it may select itself
    from: params.get("from"), // months, both included
    to: params.get("to"),
    compare: params.has("compare"),
    ...Object.fromEntries(FIELDS.map((each) => [each, params.getAll(each)])),
  };
}

export function writeState(state) {
  const { mode, compare, ...rest } = state;
  return toParams({ ...rest, mode: mode === "hybrid" ? null : mode, compare: compare ? 1 : null });
}

export function withoutFilters(state) {
  return { ...state, from: null, to: null, ...Object.fromEntries(FIELDS.map((each) => [each, []])) };
}

export function hasFilters(state) {
  return state.from !== null || FIELDS.some((each) => state[each].length);
}

// The moment at which a day begins where the server counts months.
function beginning(day) {
  const moment = calendarOf(session?.time_zone).start(day);
  return Number.isNaN(moment) ? null : new Date(moment).toISOString();
}

// The filter of the server; null if nothing is restricted.
export function whereOf(state, { time = true } = {}) {
  const where = {};
  if (state.kind.length) where.kinds = state.kind;
  if (state.ns.length) where.namespaces = state.ns;
  if (state.tag.length) where.tags_all = state.tag;
  if (state.source.length) where.sources = state.source;
  if (time && state.from) where.created_from = beginning(startOf(state.from));
  if (time && state.to) where.created_until = beginning(endOf(state.to));
  return Object.keys(where).length ? where : null;
}

// The arguments that search, why and why-not share.
export function requestOf(state) {
  const where = whereOf(state);
  return {
    query: state.q,
    mode: state.mode,
    ...(state.lens ? { lens: state.lens } : {}),
    ...(where ? { where } : {}),
  };
}

// The state with a value of a filter added, or taken away if it is there.
export function toggled(state, field, value) {
  const there = state[field].includes(value);
  return { ...state, [field]: there ? state[field].filter((each) => each !== value) : [...state[field], value] };
}

// Requests to the server that this page came from, as one caller in one space.

import { Connection } from "./connection.js";

const TOKEN = "nacre.token";
const SPACE = "nacre.space";
// They are sent as POST, because a question is private and may be long, but change nothing.
const ASKS = /^\/(search|why|why-not|facets|context|timeline|count-tokens|screen|memories\/[^/]+\/related)$/;
// What a person looks at here is no search of an agent, so it does not enter the recall log.
const UNLOGGED = /^\/(search|memories)/;
const ROLES = ["read", "write", "admin"];

export class ApiError extends Error {
  constructor(status, body) {
    const error = body?.error ?? {};
    super(error.message ?? (status ? `the server answered ${status}` : "the server does not answer"));
    this.name = "ApiError";
    this.status = status; // 0: there was no answer
    this.type = error.type ?? null;
    this.field = error.field ?? null;
    this.problem = error.problem ?? this.message;
    this.remedy = error.remedy ?? null;
  }
}

// ---- who asks, and where

export let session = null; // the answer of GET /v1/session

let token = stored(TOKEN);
let space = stored(SPACE) ?? stored(SPACE, "localStorage");
const sessionListeners = new Set();

function stored(name, where = "sessionStorage") {
  try {
    return window[where].getItem(name);
  } catch {
    return null; // the browser keeps nothing for this page
  }
}

function keep(name, value, where = "sessionStorage") {
  try {
    if (value === null) window[where].removeItem(name);
    else window[where].setItem(name, value);
  } catch {
    // Then it holds until the page is left.
  }
}

export async function loadSession() {
  try {
    session = await get("/session");
  } catch (error) {
    if (error.status !== 403 || space === null) throw error;
    setSpaceName(null); // the token may not see what was chosen before
    session = await get("/session");
  }
  space = session.space;
  for (const each of [...sessionListeners]) each(session);
  connection.restart();
  return session;
}

// Calls the listener after each load of the session.
export function onSession(listener) {
  sessionListeners.add(listener);
  return () => sessionListeners.delete(listener);
}

// Whether the caller has at least this role.
export function may(role) {
  return session !== null && ROLES.indexOf(session.role) >= ROLES.indexOf(role);
}

export function setToken(value) {
  token = value || null;
  keep(TOKEN, token);
  return loadSession();
}

export function setSpace(value) {
  setSpaceName(value);
  return loadSession();
}

function setSpaceName(value) {
  space = value;
  keep(SPACE, value);
  keep(SPACE, value, "localStorage");
}

// ---- requests

export function headers(more) {
  return {
    ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
    ...(space === null ? {} : { "Nacre-Space": encodeURIComponent(space) === space ? space : asHeader(space) }),
    ...more,
  };
}

// A header is bytes; fetch takes characters up to U+00FF. The server reads UTF-8.
function asHeader(text) {
  return String.fromCharCode(...new TextEncoder().encode(text));
}

function url(path, params) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params ?? {})) {
    if (value === undefined || value === null) continue;
    for (const each of Array.isArray(value) ? value : [value]) {
      query.append(name, typeof each === "object" ? JSON.stringify(each) : String(each));
    }
  }
  const text = query.toString();
  return `/v1${path}${text && `?${text}`}`;
}

async function send(method, path, { params, body, signal, more } = {}) {
  let answer;
  try {
    answer = await fetch(url(path, params), {
      method,
      signal,
      headers: headers({
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...(UNLOGGED.test(path) ? { "Nacre-Log": "false" } : {}),
        ...more,
      }),
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    connection.lost();
    throw new ApiError(0, null);
  }
  connection.answered();
  if (answer.ok) return answer;
  const error = new ApiError(answer.status, await answer.json().catch(() => null));
  if (error.status === 401) connection.unauthorized();
  throw error;
}

async function json(request) {
  const answer = await request;
  if (answer.status === 204) return null;
  const value = await answer.json();
  const etag = answer.headers.get("ETag");
  if (etag !== null && value !== null && typeof value === "object") {
    Object.defineProperty(value, "etag", { value: etag });
  }
  return value;
}

function once() {
  const bytes = crypto.getRandomValues(new Uint8Array(16)); // randomUUID is for secure contexts alone
  return { "Idempotency-Key": Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("") };
}

function get(path, params, { signal } = {}) {
  return json(send("GET", path, { params, signal }));
}

function post(path, body, { signal, params } = {}) {
  return json(send("POST", path, { params, body: body ?? {}, signal, more: ASKS.test(path) ? {} : once() }));
}

function patch(path, body, { ifMatch } = {}) {
  return json(send("PATCH", path, { body, more: { ...once(), ...(ifMatch ? { "If-Match": ifMatch } : {}) } }));
}

function del(path, params) {
  return json(send("DELETE", path, { params, more: once() }));
}

// The items of a stream of JSON Lines, as they arrive.
export async function* lines(path, params, { signal, method = "GET" } = {}) {
  const answer = await send(method, path, { signal, ...(method === "GET" ? { params } : { body: params ?? {} }) });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    const several = (rest + (value ?? "")).split("\n");
    rest = done ? "" : several.pop();
    for (const each of several) {
      if (each === "") continue;
      const item = JSON.parse(each);
      if (item?.error && Object.keys(item).length === 1) throw new ApiError(answer.status, item);
      yield item;
    }
    if (done) return;
  }
}

// ---- what changes meanwhile

export const connection = new Connection({ headers, url: (since) => url("/changes", { since }) });

// Calls the listener with each list of changes in this space. Returns what ends that.
export function onChange(listener) {
  return connection.onChange((changes) => {
    const here = changes.filter((each) => each.space === session?.space);
    if (here.length) listener(here);
  });
}

export const api = { get, post, patch, del, lines, setToken, setSpace, onChange };

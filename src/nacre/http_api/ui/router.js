// Which view does the address name? Routes are in the hash: #/view/id?name=value.

import { useEffect, useState } from "./vendor/htm-preact.js";

const VIEWS = ["search", "memory", "timeline", "graph", "facts", "log", "health"];
const listeners = new Set();

export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [view, ...rest] = path.split("/");
  return {
    view: VIEWS.includes(view) ? view : "search",
    id: rest.length ? decode(rest.join("/")) : null,
    params: new URLSearchParams(query),
  };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a percent sign that begins no escape
  }
}

// `params` may be URLSearchParams or an object; arrays repeat the name, empty values are left out.
export function href(view, id, params) {
  const query = params instanceof URLSearchParams ? params : toParams(params);
  const path = id === null || id === undefined ? view : `${view}/${encodeURIComponent(id)}`;
  const text = query.toString();
  return `#/${path}${text && `?${text}`}`;
}

export function toParams(values) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(values ?? {})) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== null && each !== undefined && each !== "" && each !== false) params.append(name, String(each));
    }
  }
  return params;
}

export function navigate(view, id, params, { replace = false } = {}) {
  const to = href(view, id, params);
  if (to === window.location.hash) return;
  if (replace) window.history.replaceState(null, "", to);
  else window.history.pushState(null, "", to);
  tell();
}

let current = parse(window.location.hash);

function tell() {
  current = parse(window.location.hash);
  for (const each of [...listeners]) each(current);
}

window.addEventListener("popstate", tell); // links change the hash, which fires this, too

export function useRoute() {
  const [route, setRoute] = useState(current);
  useEffect(() => {
    listeners.add(setRoute);
    setRoute(current);
    return () => listeners.delete(setRoute);
  }, []);
  return route;
}

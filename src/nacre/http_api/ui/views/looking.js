// Memories, for a person who looks at what agents did. Without a session of its own, reading one would count in the
// recall log as if the agent that was given it had opened it.

import { api } from "../api.js";

const SESSION = "nacre-page";

export function memory(id, signal) {
  return api.get(`/memories/${encodeURIComponent(id)}`, { session: SESSION }, { signal });
}

// By id; those that are gone are missing.
export async function memories(ids, signal) {
  if (!ids.length) return new Map();
  const found = await api.get("/memories", { ids, missing_ok: true, session: SESSION }, { signal });
  return new Map(found.memories.map((each) => [each.id, each]));
}

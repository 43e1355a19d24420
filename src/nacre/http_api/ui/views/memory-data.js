// One memory and all that belongs to it; and its changes, each with what undoes it.

import { api } from "../api.js";
import { toast } from "../components.js";

const NEIGHBOURS = 3;
const RECEIPTS = 100;

// The memory with its entities and neighbours; null if there is none.
export async function load(id, signal) {
  const asked = { ids: id, entities: true, neighbours: NEIGHBOURS, missing_ok: true };
  const { memories } = await api.get("/memories", asked, { signal });
  return memories[0] ?? null;
}

// Texts of linked memories by id.
export async function several(ids, signal) {
  if (!ids.length) return new Map();
  const { memories } = await api.get("/memories", { ids, missing_ok: true }, { signal });
  return new Map(memories.map((each) => [each.id, each]));
}

// The searches that it was delivered to.
export function recalls(id, signal) {
  return api.get("/receipts", { memory_id: id, limit: RECEIPTS }, { signal });
}

export function etagOf(memory) {
  return `"${memory.updated}"`;
}

// The fields in which values differ from those of the memory.
export function changed(memory, values) {
  const differs = ([name, value]) => JSON.stringify(value) !== JSON.stringify(memory[name]);
  return Object.fromEntries(Object.entries(values).filter(differs));
}

function picked(memory, changes) {
  return Object.fromEntries(Object.keys(changes).map((name) => [name, memory[name]]));
}

// Changes the fields, and offers to change them back. Raises an error with status 412 if it is not the memory any more.
export async function update(memory, changes, { said = "Saved.", reload }) {
  const after = await api.patch(`/memories/${memory.id}`, changes, { ifMatch: etagOf(memory) });
  const undo = async () => {
    try {
      await api.patch(`/memories/${memory.id}`, picked(memory, changes), { ifMatch: etagOf(after) });
      toast("The old values are back.");
    } catch (error) {
      toast(error.status === 412 ? "Not undone: it has changed again meanwhile." : error.message);
    }
    reload?.();
  };
  toast([said, ...(after.notes ?? [])].join(" "), { action: undo, label: "Undo" });
  reload?.();
  return after;
}

export async function forget(memory, reload) {
  await api.post("/memories/forget", { ids: memory.id });
  toast("Forgotten: no search finds it.", { action: () => restore(memory, reload), label: "Undo" });
  reload();
}

export async function restore(memory, reload) {
  await api.post("/memories/restore", { ids: memory.id }).catch((error) => toast(error.message));
  reload();
}

// ---- dates in forms, in the time zone of the browser

export function toLocal(at) {
  if (!at) return "";
  const date = new Date(at);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

// The moment of a field, or the one it had if the field still shows that.
export function fromLocal(text, before) {
  if (!text) return null;
  return text === toLocal(before) ? before : new Date(text).toISOString().replace(".000Z", "Z");
}

// What can be done to facts, and how it is undone.

import { api } from "../api.js";
import { fold } from "./graph-data.js";
import { memory as memoryOf } from "./looking.js";

// The fact as it would be given anew.
function given(fact) {
  const { subject, predicate, object, type, confidence, decay_rate, valid_from, quote, relation, single } = fact;
  const valid_to = fact.ends === undefined ? fact.valid_to : fact.ends; // the end of supersession is computed
  return { subject, predicate, object, type, confidence, decay_rate, valid_from, valid_to, quote, relation, single };
}

async function state(facts) {
  const stated = [];
  for (const each of facts) stated.push(...(await api.post(`/memories/${each.memory_id}/facts`, { facts: [given(each)] })));
  return stated;
}

function drop(facts) {
  return api.post("/facts/drop", { ids: facts.map((each) => each.id) });
}

export async function dropFact(fact) {
  await drop([fact]);
  return () => state([fact]);
}

export function confirmFact(fact) {
  return api.post("/facts/reinforce", { ids: [fact.id] });
}

// Replaces facts by others. The new ones come first, so that nothing is lost if the second step fails.
async function replace(before, after) {
  const stated = await state(after);
  await drop(before);
  return {
    stated,
    undo: async () => {
      await state(before);
      if (stated.length) await drop(stated);
    },
  };
}

// One of several facts that contradict each other is right. Older ones become history, because it is confirmed as their
// successor; newer ones were wrong and are dropped.
export async function keepFact(kept, all) {
  const others = all.filter((each) => fold(each.object) !== fold(kept.object));
  const since = Date.parse(kept.valid_from);
  const wrong = others.filter((each) => Date.parse(each.valid_from) >= since);
  const succeeds = wrong.length < others.length;
  const { stated, undo } = await replace(
    succeeds ? [kept, ...wrong] : wrong,
    succeeds ? [{ ...kept, confidence: 1 }] : [],
  );
  await api.post("/facts/reinforce", { ids: [stated[0]?.id ?? kept.id] });
  return undo;
}

// The predicate has several values at a time.
export async function keepAllFacts(all) {
  const { undo } = await replace(
    all,
    all.map((each) => ({ ...each, single: false })),
  );
  return undo;
}

// Of two memories, the newer one takes the place of the older one. Saying a text again adds what is new about it.
export async function keepNewer(older, newer) {
  const memory = await memoryOf(newer.memory_id);
  await api.post("/memories", { text: memory.text, key: memory.key, supersedes: older.memory_id });
  return () => api.post("/unlink", { newer: newer.memory_id, older: older.memory_id });
}

// The newer one is wrong.
export async function keepOlder(older, newer) {
  await api.post("/memories/forget", { ids: newer.memory_id });
  return () => api.post("/memories/restore", { ids: newer.memory_id });
}

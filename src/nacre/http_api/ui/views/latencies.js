// How long each verb takes, from the numbers for Prometheus.

const LINE = /^nacre_verb_seconds_(bucket|sum|count)\{(.*)\} (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;
const SHARE = 0.95;

// [{verb, calls, mean, most}], in seconds, the most called first. `most` is the bound of a bucket.
export function latencies(text) {
  const verbs = new Map();
  for (const line of text.split("\n")) {
    const [, part, labels, value] = LINE.exec(line) ?? [];
    if (!part) continue;
    const { verb, le } = Object.fromEntries([...labels.matchAll(LABEL)].map(([, name, text]) => [name, text]));
    if (!verbs.has(verb)) verbs.set(verb, { buckets: [], sum: 0, count: 0 });
    if (part === "bucket") verbs.get(verb).buckets.push([le === "+Inf" ? Infinity : Number(le), Number(value)]);
    else verbs.get(verb)[part] = Number(value);
  }
  return [...verbs]
    .filter(([, each]) => each.count > 0)
    .map(([verb, { buckets, sum, count }]) => ({
      verb,
      calls: count,
      mean: sum / count,
      most: buckets.sort(([one], [other]) => one - other).find(([, below]) => below >= SHARE * count)?.[0] ?? Infinity,
    }))
    .sort((one, other) => other.calls - one.calls);
}

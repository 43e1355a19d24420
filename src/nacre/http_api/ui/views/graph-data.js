// Entities and relations as nodes and links.

// Names are equal if they fold to the same text, as in the store.
export function fold(name) {
  return name.normalize("NFKC").toLowerCase().split(/\s+/).filter(Boolean).join(" ");
}

// Nodes are in the order of their weight: what is linked and mentioned most comes first. A relation may name what is no
// entity any more; that is a node, too. Links are pairs of nodes, with all relations between them.
export function graphOf(entities, counts, relations) {
  const byName = new Map();
  const nodes = [];
  const add = (name, type, aliases) => {
    const node = { name, type, aliases, count: counts[name] ?? 0, degree: 0, links: [], at: 0 };
    nodes.push(node);
    for (const each of [name, ...aliases]) if (!byName.has(fold(each))) byName.set(fold(each), node);
    return node;
  };
  for (const each of entities) add(each.name, each.type, each.aliases);
  const nodeOf = (name) => byName.get(fold(name)) ?? add(name, null, []);
  const joined = new Map();
  for (const fact of relations) {
    const [from, to] = [nodeOf(fact.subject), nodeOf(fact.object)];
    if (from === to) continue;
    const ends = nodes.indexOf(from) < nodes.indexOf(to) ? [from, to] : [to, from];
    const key = ends.map((each) => each.name).join("\0");
    let link = joined.get(key);
    if (!link) {
      joined.set(key, (link = { from: ends[0], to: ends[1], facts: [] }));
      for (const each of ends) {
        each.degree++;
        each.links.push(link);
      }
    }
    link.facts.push(fact);
  }
  nodes.sort((one, other) => weight(other) - weight(one) || (one.name < other.name ? -1 : 1));
  nodes.forEach((each, at) => (each.at = at));
  return { nodes, links: [...joined.values()], find: (name) => byName.get(fold(name)) };
}

function weight(node) {
  return node.degree * 2 + Math.log1p(node.count);
}

export function isCurrent(fact, at) {
  return Date.parse(fact.valid_from) <= at && (!fact.valid_to || at < Date.parse(fact.valid_to));
}

// When the first relation began, in milliseconds; now where there is none.
export function beginning(relations, now) {
  return relations.reduce((least, each) => Math.min(least, Date.parse(each.valid_from)), now);
}

// The part of a graph that is drawn: at most so many connected nodes, the heaviest first, and `kept` with its neighbours.
export function partOf(graph, most, kept) {
  const connected = graph.nodes.filter((each) => each.degree > 0 || each === kept);
  const shown = new Set(connected.slice(0, most));
  if (kept && !shown.has(kept)) {
    shown.add(kept);
    for (const each of kept.links) shown.add(each.from).add(each.to);
  }
  const nodes = connected.filter((each) => shown.has(each));
  const links = graph.links.filter((each) => shown.has(each.from) && shown.has(each.to));
  return { nodes, links, connected: connected.length };
}

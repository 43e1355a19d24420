// Which memories are in which row of the timeline? How many there are on each day is known from the histogram, so the
// whole list has its length before anything of it is loaded. Days are loaded when they come into view.

import { groupOf, nextDay } from "./calendar.js";

const CHUNK = 500; // memories in days that are loaded together
const PAGE = 1000; // the most that one request returns
const KEPT = 30_000; // loaded entries, beyond which days that were not looked at for long are let go
const NEWEST = 200; // looked at after a change

// Times of the server in an order of texts: they have no fraction of a second, or six digits of it.
function stamp(entry) {
  const created = entry.created;
  return `${created.length === 20 ? `${created.slice(0, 19)}.000000` : created.slice(0, 26)}${entry.id}`;
}

// `load(params)` gives a page of the timeline. `changed` is called when rows are different from before.
export class TimelinePages {
  constructor({ calendar, by, oldestFirst, load, changed, failed }) {
    Object.assign(this, { calendar, by, oldestFirst, load, changed, failed });
    this.days = new Map();
    this.segments = [];
    this.groups = [];
    this.rows = 0;
    this.total = 0;
    this.fresh = new Set(); // the ids of memories that appeared while one looks
    this.used = 0;
  }

  // ---- what is where

  setCounts(counts) {
    const before = this.days;
    this.days = new Map();
    for (const [key, count] of Object.entries(counts)) {
      if (!count) continue;
      const known = before.get(key);
      this.days.set(key, known ?? emptyDay(key, count));
      if (known && known.count !== count) {
        known.count = count;
        known.stale = true;
      }
    }
    this.#layOut();
  }

  // Days that are known before the histogram has come: those on the first page.
  setFirst(page) {
    if (this.days.size) return;
    const several = this.#byDay(page.entries);
    for (const [key, entries] of several) this.days.set(key, { ...emptyDay(key, entries.length), head: entries });
    const last = [...several.keys()].at(-1);
    if (page.next && last) this.days.get(last).stale = true; // there may be more of it
    this.#layOut();
  }

  #layOut() {
    const keys = [...this.days.keys()].sort();
    if (!this.oldestFirst) keys.reverse();
    this.segments = [];
    this.groups = [];
    this.rows = 0;
    this.total = 0;
    for (const key of keys) {
      const day = this.days.get(key);
      const name = groupOf(key, this.by);
      if (this.groups.at(-1)?.name !== name) {
        const group = { name, key, row: this.rows, count: 0 };
        this.groups.push(group);
        this.segments.push({ row: this.rows++, group });
      }
      this.groups.at(-1).count += day.count;
      this.segments.push({ row: this.rows, day });
      this.rows += day.count;
      this.total += day.count;
    }
    this.changed();
  }

  #segment(row) {
    let [low, high] = [0, this.segments.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.segments[middle].row <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  // A heading `{group}`, or `{day, at, entry}` with `entry` undefined until it is loaded.
  at(row) {
    const segment = this.segments[this.#segment(row)];
    if (!segment || segment.group) return segment;
    const at = row - segment.row;
    return { day: segment.day, at, entry: entryAt(segment.day, at) };
  }

  groupAt(row) {
    let found = this.groups[0];
    for (const each of this.groups) {
      if (each.row > row) break;
      found = each;
    }
    return found;
  }

  // The row of a place: the memory with the id where it is loaded, else the same position in its day.
  rowOf({ key, id, at }) {
    const segment = this.segments.find((each) => each.day?.key === key);
    if (!segment) return this.rowOfDay(key);
    const { head, tail, count } = segment.day;
    let found = id ? head.findIndex((each) => each.id === id) : -1;
    if (found < 0 && id) {
      const behind = tail.findIndex((each) => each.id === id);
      if (behind >= 0) found = count - 1 - behind;
    }
    return segment.row + Math.min(found < 0 ? at : found, count - 1);
  }

  // The heading of the group that a day is in, or of the next one that there is.
  rowOfDay(key) {
    const name = groupOf(key, this.by);
    const reached = (each) => (this.oldestFirst ? each.name >= name : each.name <= name);
    return (this.groups.find(reached) ?? this.groups.at(-1) ?? { row: 0 }).row;
  }

  // ---- loading

  // Load what is missing in these rows. Days that are next to each other come together.
  need(first, last) {
    this.used++;
    let chunk = [];
    let size = 0;
    const flush = () => {
      if (chunk.length) this.#loadDays(chunk);
      [chunk, size] = [[], 0];
    };
    for (let i = this.#segment(first); i < this.segments.length && this.segments[i].row <= last; i++) {
      const { day, row } = this.segments[i];
      if (!day) continue;
      day.used = this.used;
      if (day.count > PAGE) {
        flush();
        this.#loadPart(day, Math.max(0, first - row), Math.min(day.count - 1, last - row));
      } else if (!day.loading && (day.stale || day.head.length < day.count)) {
        if (size + day.count > CHUNK) flush();
        chunk.push(day);
        size += day.count;
      } else flush();
    }
    flush();
    this.#letGo();
  }

  #between(days) {
    const keys = days.map((each) => each.key).sort();
    const [start, end] = [this.calendar.start(keys[0]), this.calendar.start(nextDay(keys.at(-1)))];
    return { start: new Date(start).toISOString(), end: new Date(end).toISOString(), limit: PAGE };
  }

  async #loadDays(days) {
    for (const each of days) [each.loading, each.stale] = [true, false];
    try {
      const found = [];
      for (let cursor = null; ; ) {
        const page = await this.load({ ...this.#between(days), oldest_first: this.oldestFirst, cursor });
        found.push(...page.entries);
        cursor = page.next;
        if (!cursor) break;
      }
      const several = this.#byDay(found);
      let same = true;
      for (const each of days) {
        each.head = several.get(each.key) ?? [];
        same &&= each.count === each.head.length;
        each.count = each.head.length;
      }
      this.#loaded(days, same);
    } catch (error) {
      this.#notLoaded(days, error);
    }
  }

  // A day with very many is loaded page by page, from the end that is nearer.
  async #loadPart(day, first, last) {
    const gap = () => day.count - day.head.length - day.tail.length;
    const missing = first < day.count - day.tail.length && last >= day.head.length;
    if (day.stale && !day.loading) [day.stale, day.head, day.tail, day.next] = [false, [], [], {}];
    if (day.loading || gap() <= 0 || !(missing || !day.head.length)) return;
    day.loading = true;
    const fromTop = first - day.head.length <= day.count - day.tail.length - last;
    const side = fromTop ? "head" : "tail";
    try {
      const page = await this.load({
        ...this.#between([day]),
        oldest_first: this.oldestFirst === fromTop,
        cursor: day.next[side] ?? null,
      });
      day[side] = [...day[side], ...page.entries.slice(0, gap())];
      day.next[side] = page.next;
      const short = !page.next && gap() > 0; // fewer than were counted
      if (short) day.count = day.head.length + day.tail.length;
      this.#loaded([day], !short);
    } catch (error) {
      this.#notLoaded([day], error);
    }
  }

  #loaded(days, same) {
    for (const each of days) each.loading = false;
    if (same) return this.changed();
    for (const each of days) if (!each.count) this.days.delete(each.key);
    this.#layOut();
  }

  #notLoaded(days, error) {
    for (const each of days) each.loading = false;
    if (error.name !== "AbortError") this.failed(error);
  }

  #letGo() {
    let loaded = 0;
    const idle = [];
    for (const each of this.days.values()) {
      loaded += each.head.length + each.tail.length;
      if (each.used !== this.used && !each.loading && each.head.length) idle.push(each);
    }
    if (loaded <= KEPT) return;
    idle.sort((one, other) => one.used - other.used);
    for (const each of idle) {
      loaded -= each.head.length + each.tail.length;
      [each.head, each.tail, each.next] = [[], [], {}];
      if (loaded <= KEPT / 2) return;
    }
  }

  #byDay(entries) {
    const several = new Map();
    for (const each of entries) {
      const key = this.calendar.day(each.created);
      if (!several.has(key)) several.set(key, []);
      several.get(key).push(each);
    }
    return several;
  }

  // ---- what others write

  // Take in what is newer than all that is known, and forget what was loaded of changed memories. Gives how many are
  // new; null if the days have to be counted again.
  async refresh(ids) {
    const changed = new Set(ids);
    for (const day of this.days.values()) {
      if ([...day.head, ...day.tail].some((each) => changed.has(each.id))) day.stale = true;
    }
    const page = await this.load({ limit: NEWEST });
    const newest = this.#newestKnown();
    if (newest === undefined) return null;
    const added = page.entries.filter((each) => stamp(each) > newest);
    if (added.length === NEWEST) return null;
    for (const each of added.reverse()) this.#add(each);
    if (added.length) this.#layOut();
    else this.changed();
    return added.length;
  }

  #newestKnown() {
    const key = [...this.days.keys()].sort().at(-1);
    if (key === undefined) return "";
    const { head, tail, count } = this.days.get(key);
    const last = this.oldestFirst ? (tail[0] ?? (head.length === count ? head.at(-1) : undefined)) : head[0];
    return last && stamp(last);
  }

  #add(entry) {
    const key = this.calendar.day(entry.created);
    const day = this.days.get(key) ?? emptyDay(key, 0);
    this.days.set(key, day);
    const whole = day.head.length === day.count;
    day.count++;
    if (!this.oldestFirst) day.head = [entry, ...day.head];
    else if (whole) day.head = [...day.head, entry];
    else if (day.tail.length) day.tail = [entry, ...day.tail];
    this.fresh.add(entry.id);
  }
}

// `head` has its first entries in the order of the list, `tail` its last ones, the last first.
function emptyDay(key, count) {
  return { key, count, head: [], tail: [], next: {}, loading: false, stale: false, used: 0 };
}

function entryAt(day, at) {
  return day.head[at] ?? day.tail[day.count - 1 - at];
}

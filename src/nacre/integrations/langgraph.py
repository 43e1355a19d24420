"""Nacre as the long-term memory of LangGraph agents: a `BaseStore`.

An item is a memory. Its key is "langgraph", the namespace and the item's key, joined by "/", so that a namespace is a
prefix of keys. Its text is what the item is found by, and its metadata are the item's value.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import nlargest
from os import PathLike
from typing import Any, cast

from nacre.engine.engine import Nacre, system_clock
from nacre.errors import Conflict, InvalidInput, NotFound, StoreError
from nacre.integrations.embeddings import LangChainEmbedder
from nacre.integrations.langgraph_values import UNINDEXED, Values, as_json, own, piece_keys
from nacre.integrations.owner import Owner, in_thread
from nacre.integrations.parts import joined, names_of, needs
from nacre.types.memory import DEFAULT_NAMESPACE, Json, Memory, NewMemory
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, Hit, Mode
from nacre.validation import LIMITS, storable

with needs("langgraph"):
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        IndexConfig,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        ensure_embeddings,
        get_text_at_path,
    )

ROOT = "langgraph"  # the first part of every key
WHOLE = "$"  # the path of the whole value
RANKED_MAX = LIMITS.results_max  # items that a query can rank
RECIPE = Recipe(semantic_floor=-1.0, min_confidence=0.0)  # a query orders all items, and leaves out none
_REFRESH_SHARE = 0.01  # of the time to live: a read that would move the expiry by less writes nothing
_MANY = 1_000  # keys in one call
_TRIES = 5
_HASHED = "%hash-"  # begins what stands in place of a long key; no name becomes a part that begins so
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda value, other: value > other,
    "$gte": lambda value, other: value >= other,
    "$lt": lambda value, other: value < other,
    "$lte": lambda value, other: value <= other,
}

_log = logging.getLogger(__name__)


class NacreStore(Owner, BaseStore):
    """A store of LangGraph in a file of Nacre. It may be used from several threads and event loops.

    Args:
        memory: The path of a file, which `close` closes again, or an open engine, which stays open.
        index: `fields` are the paths whose texts an item is found by, unless `put` names others; by default the whole
            value. `embed` are the embeddings to use in place of Nacre's own, for a path only; `dims` has no effect.
        ttl: `default_ttl` and `refresh_on_read` as LangGraph describes them. Nothing needs to be swept: an item that
            has expired is found by nothing from that moment on, and the next write hides it for good.
        mode: How a query is answered: "hybrid", "semantic" or "keyword".
        clock: Gives the current time, as the engine's own clock does.
        options: Those of `nacre.open`, for a path only.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Nacre | str | PathLike[str],
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        mode: Mode = "hybrid",
        clock: Callable[[], datetime] = system_clock,
        **options: Any,
    ) -> None:
        if index and index.get("embed") is not None:
            options["embedder"] = _embedder(index)
        if not isinstance(memory, Nacre):
            options["clock"] = clock
        super().__init__(memory, **options)
        self.index_config = index
        self.ttl_config = ttl
        self._fields = (index.get("fields") if index else None) or [WHOLE]
        self._mode = mode
        self._clock = clock
        self._values = Values(self.memory)
        self._writing = threading.Lock()

    # ---- the two methods that all others of `BaseStore` call

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations. Reads see the store as it was before the writes; of writes to one item the last counts.

        Each value is checked before anything is written.
        """
        asked = list(ops)
        writes = self._writes(asked)
        results: list[Result] = [None] * len(asked)
        gets = {place: op for place, op in enumerate(asked) if isinstance(op, GetOp)}
        for place, item in self._get(gets).items():
            results[place] = item
        for place, op in enumerate(asked):
            if isinstance(op, SearchOp):
                results[place] = self._search(op)
            elif isinstance(op, ListNamespacesOp):
                results[place] = self._namespaces(op)
        self._write(writes)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch`, in a thread of its own."""
        return await in_thread(self.batch, list(ops))

    # ---- writing

    def _writes(self, ops: Sequence[Op]) -> dict[str, list[NewMemory]]:
        """What each key is to hold: the pieces of a large value, then the item. Nothing: it is deleted."""
        writes: dict[str, list[NewMemory]] = {}
        for op in ops:
            if isinstance(op, PutOp):
                writes[_key(op.namespace, op.key)] = [] if op.value is None else self._new_memories(op)
            elif not isinstance(op, GetOp | SearchOp | ListNamespacesOp):
                raise InvalidInput("ops", f"has a {type(op).__name__}, which is no operation of a store")
        return writes

    def _write(self, writes: Mapping[str, list[NewMemory]]) -> None:
        if not writes:
            return
        new_memories = [new for several in writes.values() for new in several]
        with self._writing:  # so that no thread takes the pieces of another for old ones
            old_pieces = [key for memory in self._fetched(list(writes)) for key in piece_keys(memory)]
            self._remember(new_memories)
            gone = [key for key, several in writes.items() if not several]
            self._forget([*gone, *set(old_pieces).difference(cast("str", new.key) for new in new_memories)])

    def _remember(self, new_memories: Sequence[NewMemory]) -> None:
        for attempt in range(_TRIES):
            try:
                self.memory.remember_many(new_memories)
                return
            except Conflict:  # another process deleted one of these items in the meantime
                if attempt == _TRIES - 1:
                    raise

    def _forget(self, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), _MANY):
            self.memory.forget(keys=keys[start : start + _MANY], missing_ok=True)

    def _new_memories(self, op: PutOp) -> list[NewMemory]:
        value = as_json(cast("Mapping[str, Any]", op.value))
        texts = self._indexed(value, op)
        kept: dict[str, Json] = {}
        expires = None
        if op.ttl is not None:
            now = self._clock()
            expires = _after(now, op.ttl)
            kept = {"ttl": op.ttl, "updated": now.isoformat()}
        key = _key(op.namespace, op.key)
        if key.rpartition("/")[2].startswith(_HASHED):
            kept["key"] = json.dumps(op.key)
        metadata, pieces = self._values.kept(key, value, kept, expires)
        path = joined(*op.namespace)[: LIMITS.name_chars_max]
        item = NewMemory(
            text="\n".join(texts)[: LIMITS.text_chars_max] or key.removeprefix(f"{ROOT}/"),
            key=key,
            namespace=path if path.strip() else DEFAULT_NAMESPACE,
            metadata=metadata,
            tags=() if texts else (UNINDEXED,),
            expires=expires,
            extract=None if texts else False,
        )
        return [*pieces, item]

    def _indexed(self, value: dict[str, Json], op: PutOp) -> list[str]:
        """The texts that an item is found by."""
        if op.index is False:
            return []
        texts: list[str] = []
        for path in self._fields if op.index is None else op.index:
            texts += (_readable(value) or [op.key]) if path == WHOLE else get_text_at_path(value, path)
        return [stored for text in texts if (stored := _storable(text)).strip()]

    # ---- reading

    def _get(self, ops: Mapping[int, GetOp]) -> dict[int, Item]:
        keys = {place: _key(op.namespace, op.key) for place, op in ops.items()}
        items: dict[str, tuple[Memory, Item]] = {}
        left = list(dict.fromkeys(keys.values()))
        for _ in range(_TRIES):
            read = {memory.key: (memory, self._item(memory)) for memory in self._fetched(left)}
            items.update({key: (memory, item) for key, (memory, item) in read.items() if key and item is not None})
            left = [key for key, (_, item) in read.items() if key and item is None]  # replaced while it was read
            if not left:
                break
        self._refresh([items[keys[place]][0] for place, op in ops.items() if op.refresh_ttl and keys[place] in items])
        return {place: items[key][1] for place, key in keys.items() if key in items}

    def _read_again(self, memory: Memory) -> Item | None:
        namespace, key = _named(memory)
        return self._get({0: GetOp(namespace, key, refresh_ttl=False)}).get(0)

    def _fetched(self, keys: Sequence[str]) -> list[Memory]:
        found: list[Memory] = []
        for start in range(0, len(keys), _MANY):
            found += self.memory.get(keys=keys[start : start + _MANY], missing_ok=True)
        return found

    def _item(self, memory: Memory) -> Item | None:
        value = self._values.of(memory)
        namespace, key = _named(memory)
        if value is None:
            return None
        return Item(value=value, key=key, namespace=namespace, created_at=memory.created, updated_at=_updated(memory))

    def _search(self, op: SearchOp) -> list[SearchItem]:
        _check_filter(op.filter or {})
        where = Filter(key_prefixes=(joined(ROOT, *op.namespace_prefix, ""),))
        wanted = max(0, op.offset) + max(0, op.limit)
        if op.query and op.query.strip():
            hits = self._ranked(op, where, wanted)
            page = [(hit.memory, hit.relevance) for hit in hits[max(0, op.offset) : wanted]]
        else:
            latest = nlargest(wanted, self._matching(op, where), key=_updated)
            page = [(memory, None) for memory in latest[max(0, op.offset) :]]
        if op.refresh_ttl:
            self._refresh([memory for memory, _ in page])
        found = [(self._item(memory) or self._read_again(memory), score) for memory, score in page]
        return [_search_item(item, score) for item, score in found if item is not None]

    def _matching(self, op: SearchOp, where: Filter) -> Iterator[Memory]:
        return (memory for memory in self.memory.every(where) if self._matches(op, memory))

    def _matches(self, op: SearchOp, memory: Memory) -> bool:
        if not op.filter:
            return True
        value = self._values.of(memory)
        return value is not None and all(_agrees(value.get(name), wanted) for name, wanted in op.filter.items())

    def _ranked(self, op: SearchOp, where: Filter, wanted: int) -> list[Hit]:
        """At least the wanted items that match, best first, if there are as many; the filter comes before the cut."""
        where = replace(where, tags_none=(UNINDEXED,))
        wanted = min(wanted, RANKED_MAX)
        if not wanted:
            return []
        limit = wanted
        while True:
            several = self._hits(op, where, limit)
            hits = [hit for hit in several if self._matches(op, hit.memory)]
            if len(hits) >= wanted or len(several) < limit:
                return hits
            if limit == RANKED_MAX:
                return self._ranked_matches(op, where)
            limit = min(RANKED_MAX, 4 * limit)

    def _ranked_matches(self, op: SearchOp, where: Filter) -> list[Hit]:
        """For a filter that few of many items match: these are looked up first and ranked then."""
        keys = [cast("str", memory.key) for memory in self._matching(op, where)]
        hits: dict[str, Hit] = {}
        for start in range(0, len(keys), _MANY):
            several = self._hits(op, replace(where, key_prefixes=keys[start : start + _MANY]), RANKED_MAX)
            hits.update({hit.id: hit for hit in several if self._matches(op, hit.memory)})
        if len(keys) <= _MANY:
            return list(hits.values())
        return sorted(hits.values(), key=lambda hit: -(hit.relevance or 0.0))

    def _hits(self, op: SearchOp, where: Filter, limit: int) -> tuple[Hit, ...]:
        return self.memory.search(
            cast("str", op.query),
            mode=self._mode,
            limit=limit,
            where=where,
            recipe=RECIPE,
            lens="none",
            collapse=False,
        ).hits

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        for condition in conditions:
            if condition.match_type not in ("prefix", "suffix"):
                raise InvalidInput("match_type", f"{condition.match_type!r} is unknown; allowed: prefix, suffix")
        where = Filter(key_prefixes=(joined(ROOT, ""),))
        keys = {cast("str", memory.key).rpartition("/")[0] for memory in self.memory.every(where)}
        all_ = (names_of(key)[1:] for key in keys)
        found = {names[: op.max_depth] for names in all_ if all(_fits(each, names) for each in conditions)}
        return sorted(found)[op.offset : op.offset + op.limit]

    def _refresh(self, memories: Iterable[Memory]) -> None:
        """Move the expiry of what was read. Reading does not fail where that cannot be written."""
        for memory in {memory.id: memory for memory in memories}.values():
            ttl = own(memory).get("ttl")
            if not isinstance(ttl, int | float) or memory.expires is None:
                continue
            expires = _after(self._clock(), ttl)
            if expires - memory.expires <= timedelta(minutes=ttl * _REFRESH_SHARE):
                continue
            try:
                pieces = self._fetched(piece_keys(memory))
                for each in (*pieces, memory):
                    self.memory.update(each.id, expires=expires)
            except (NotFound, Conflict):  # another thread or process changed it in the meantime
                continue
            except StoreError as error:
                _log.warning("the time to live of %s was not refreshed: %s", memory.key, error)


# ---------------------------------------------------------------- keys, values and items


def _key(namespace: Sequence[str], key: str) -> str:
    """The key of the memory that holds an item. A long one ends with a hash of the item's key."""
    full = joined(ROOT, *namespace, key)
    if len(full) <= LIMITS.key_chars_max:
        return full
    hashed = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
    short = joined(ROOT, *namespace, "") + _HASHED + hashed
    if len(short) > LIMITS.key_chars_max:
        most = LIMITS.key_chars_max - len(short) + len(joined(*namespace))
        raise InvalidInput(
            "namespace", f"has {len(joined(*namespace)):,} characters; at most {most:,} are allowed here"
        )
    return short


def _embedder(index: IndexConfig) -> LangChainEmbedder:
    embed = index["embed"]
    if inspect.iscoroutinefunction(embed) or inspect.iscoroutinefunction(getattr(embed, "__call__", None)):  # noqa: B004
        raise InvalidInput(
            "index.embed", "is asynchronous; give a function or embeddings that can be called in a thread"
        )
    return LangChainEmbedder(
        ensure_embeddings(embed), None if hasattr(embed, "embed_documents") else _function_name(embed)
    )


def _function_name(embed: Any) -> str:
    return embed if isinstance(embed, str) else f"{embed.__module__}.{getattr(embed, '__qualname__', 'embed')}"


def _after(now: datetime, minutes: float) -> datetime:
    try:
        moment = now + timedelta(minutes=minutes)
    except (OverflowError, ValueError, TypeError):
        moment = now
    if moment <= now:
        raise InvalidInput("ttl", f"{minutes!r} is not allowed; give a number of minutes above 0")
    return moment


def _readable(value: Json, name: str = "") -> list[str]:
    """A value as lines for people and models, each with the name of what it is."""
    match value:
        case dict():
            return [line for key, each in value.items() for line in _readable(each, key)]
        case list():
            return [line for each in value for line in _readable(each, name)]
        case bool() | None:
            value = json.dumps(value)
    return [f"{name}: {value}" if name else str(value)]


def _storable(text: str) -> str:
    return text if storable(text) else text.encode("utf-8", "replace").decode().replace("\0", " ")


def _updated(memory: Memory) -> datetime:
    """When an item was put last. That of one with a time to live is kept, because a refresh updates the memory."""
    updated = own(memory).get("updated")
    return datetime.fromisoformat(updated) if isinstance(updated, str) else memory.updated


def _named(memory: Memory) -> tuple[tuple[str, ...], str]:
    _, *namespace, key = names_of(cast("str", memory.key))
    long = own(memory).get("key")
    return tuple(namespace), json.loads(long) if isinstance(long, str) else key


def _search_item(item: Item, score: float | None) -> SearchItem:
    return SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, score)


# ---------------------------------------------------------------- filters and namespaces


def _check_filter(wanted: Any) -> None:
    """Raise for an unknown operator, also where no item is compared with it."""
    if isinstance(wanted, Mapping):
        for name, each in wanted.items():
            if name.startswith("$") and name not in ("$eq", "$ne", *_COMPARISONS):
                allowed = ", ".join(("$eq", "$ne", *_COMPARISONS))
                raise InvalidInput("filter", f"has the unknown operator {name}; allowed: {allowed}")
            _check_filter(each)


def _agrees(value: Any, wanted: Any) -> bool:
    """Whether a value is as a filter wants it. Operators, mappings and lists may be nested."""
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_holds(value, operator, other) for operator, other in wanted.items())
        return isinstance(value, Mapping) and all(_agrees(value.get(name), each) for name, each in wanted.items())
    if isinstance(wanted, list | tuple):
        several = isinstance(value, list) and len(value) == len(wanted)
        return several and all(map(_agrees, value, wanted))
    return _equal(value, wanted)


def _holds(value: Any, operator: str, other: Any) -> bool:
    if operator == "$eq":
        return _equal(value, other)
    if operator == "$ne":
        return not _equal(value, other)
    return _comparable(value, other) and _COMPARISONS[operator](value, other)


def _equal(value: Any, other: Any) -> bool:
    """Equality of JSON: 1 is 1.0, but not true."""
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    if isinstance(value, dict) and isinstance(other, Mapping):
        return value.keys() == other.keys() and all(_equal(each, other[name]) for name, each in value.items())
    if isinstance(value, list) and isinstance(other, list | tuple):
        return len(value) == len(other) and all(map(_equal, value, other))
    return bool(value == other)


def _comparable(value: Any, other: Any) -> bool:
    """Numbers compare with numbers, texts with texts, as by their characters, such as dates."""
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (value, other))
    return numbers or (isinstance(value, str) and isinstance(other, str))


def _fits(condition: MatchCondition, names: tuple[str, ...]) -> bool:
    path = condition.path
    if len(path) > len(names):
        return False
    part = names[: len(path)] if condition.match_type == "prefix" else names[len(names) - len(path) :]
    return all(wanted in ("*", name) for wanted, name in zip(path, part, strict=True))

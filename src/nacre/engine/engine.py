"""The verbs: remember, search, why, related, facets, update, forget, restore, purge, stats, reembed. Those for what
memories say are in knowing.py, those for what became of them in learning.py, those that show them in layers.py.

The engine joins a store, an embedder and a reranker and holds no memories itself. Doors call these verbs and
nothing else. All verbs may be called from several threads at once.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from itertools import chain
from typing import TYPE_CHECKING, Self, Unpack

from nacre import validation
from nacre.analysis import chunking
from nacre.analysis.fact_extraction import extract as extracted
from nacre.analysis.recall_guard import DeliveredTexts
from nacre.engine import drafts
from nacre.engine.candidates import CandidateFinder
from nacre.engine.context import Contexts
from nacre.engine.drafts import Draft, Key
from nacre.engine.explain import Explainer, Why, WhyNot
from nacre.engine.log_writer import LogWriter
from nacre.engine.pipeline import Recall
from nacre.engine.query_resolver import QueryResolver
from nacre.engine.recall_log import LOG_DAYS
from nacre.engine.rerank_stage import RerankStage
from nacre.engine.searcher import Searcher
from nacre.errors import Conflict, EmbedderUnavailable, InvalidInput, NotFound
from nacre.facts import statements
from nacre.ids import new_ids
from nacre.interfaces import Embedder, Reranker, Store
from nacre.runtime.threads import Threads
from nacre.types.facts import Belief, Fact, FactType, NewFact
from nacre.types.memory import (
    DEFAULT_SPACE,
    Changes,
    Entry,
    Event,
    Memory,
    NewMemory,
    NewMemoryFields,
    Passages,
    Progress,
    Remembered,
    Span,
)
from nacre.types.search import Filter, RelatedOptions, RelatedRequest, SearchOptions, SearchRequest, SearchResult
from nacre.types.stats import Facets, Stats
from nacre.validation import LIMITS, Limits

if TYPE_CHECKING:
    from concurrent.futures import Future

# One transaction of a bulk write: large ones spare FTS5 the merging of small segments, but with an embedder
# nothing is acknowledged before its batch is embedded, which takes a second or two for so many.
BATCH_MEMORIES = 8_192
BATCH_EMBEDDED = 512
BATCH_CHARS = 2_000_000  # or this much text, so that memory stays bounded
_UPDATE_TRIES = 5
_UNKNOWN = "nothing is left out: without a session and a recall log it is not known what was told before"

_log = logging.getLogger("nacre")


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A batch ready to be written: what was asked for, what is there already, what is new."""

    wanted: Sequence[Key]
    sessions: Sequence[str | None]
    known: Mapping[Key, str]
    recalled: Mapping[int, tuple[str, ...]]  # by place: texts that only give back what their session was told
    entries: Mapping[Key, Entry]

    @property
    def keys(self) -> Set[Key]:
        return self.entries.keys()


class Nacre(Contexts):
    """A memory for an agent. Made by `nacre.open`; close it, or use it as a context manager."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None,
        *,
        reranker: Reranker | None = None,
        space: str = DEFAULT_SPACE,
        limits: Limits = LIMITS,
        zone: tzinfo | None = None,
        extract: bool = True,
        defer_embeddings: bool = False,
        decay_rates: Mapping[FactType, float] | None = None,
        log: bool = True,
        log_days: int = LOG_DAYS,
        clock: Callable[[], datetime] = _utc_now,
        make_ids: Callable[[datetime, int], list[str]] = new_ids,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._limits = limits
        self._zone = zone
        self._space = validation.space_name(space, limits)
        self._clock = clock
        self._make_ids = make_ids
        self._threads = Threads()
        self._extract = extract
        self._deferring = defer_embeddings
        self._decay_rates = validation.decay_rates(decay_rates or {})
        self._log_days = log_days
        self._journal = LogWriter(self._write_notes) if log else None
        channels = CandidateFinder(store, embedder, self._threads)
        asking = QueryResolver(store, limits, zone)
        reranking = RerankStage(store, reranker, self._threads)
        self._recall = Recall(
            store, channels, asking, reranking, space=self._space, limits=limits, clock=clock, zone=zone
        )
        self._searching = Searcher(store, self._recall, space=self._space, limits=limits, clock=clock)
        self._explaining = Explainer(store, channels, self._recall, limits)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()
        self._threads.close()
        self._store.close()

    # ---- writing

    def remember(self, text: str | NewMemory, **fields: Unpack[NewMemoryFields]) -> Remembered:
        """Remember one text. The same text in the same space is remembered once."""
        new = replace(text, **fields) if isinstance(text, NewMemory) else NewMemory(text=text, **fields)
        return self.remember_many([new])[0]

    def state_fact(self, fact: NewFact, memory_id: str | None = None, session: str | None = None) -> Belief:
        """Keep a fact with a memory, or with a new one that says it, and give it as it is believed now."""
        if memory_id is None:
            said = f"{fact.subject} {fact.predicate} {fact.object}"
            new = NewMemory(text=said, kind="fact", session=session, extract=False, facts=[fact])
            receipt = self.remember(new)
            memory_id = receipt.id
            if not receipt.duplicate:
                return self.facts(memory_id=memory_id, history=True)[0]
        (stated,) = self.add_facts(memory_id, [fact])
        several = self.facts(memory_id=memory_id, spaces=[stated.space], history=True, limit=self._limits.ids_max)
        return next(each for each in several if each.fact.id == stated.id)

    def remember_many(self, items: Iterable[str | NewMemory]) -> list[Remembered]:
        """Remember many texts; receipts in their order."""
        return list(chain.from_iterable(self.remember_batches(items)))

    def remember_batches(self, items: Iterable[str | NewMemory]) -> Iterator[list[Remembered]]:
        """Remember any number of texts in constant memory: consume it batch by batch, each is one transaction.

        A bad item raises InvalidInput; the batches before it are stored, its own is not.
        """
        if isinstance(items, str | NewMemory):
            raise InvalidInput("items", "must be a list of texts; `remember` takes a single one")
        memories_max = BATCH_MEMORIES if self._embedder is None or self._deferring else BATCH_EMBEDDED
        batches = drafts.batches(items, memories_max, BATCH_CHARS)
        number = 1
        writing: Future[list[Remembered]] | None = None
        in_flight: Set[Key] = frozenset()
        while True:  # one batch is written while the next is read and prepared
            try:
                batch = next(batches, None)
                with _uncollected():
                    ready = None if batch is None else self._prepare(batch.items, number, in_flight)
                    if writing is not None:
                        writing.exception()  # waits, and raises nothing yet
            except BaseException:
                if writing is not None:
                    yield writing.result()
                raise
            if writing is not None:
                yield writing.result()
            if batch is None or ready is None:
                return
            if not batch.full:  # the last one needs no other thread
                with _uncollected():
                    written = self._write(ready)
                yield written
                return
            writing, in_flight = self._threads.start(self._write, ready), ready.keys
            number += len(batch.items)

    def update(self, memory_id: str, **changes: Unpack[Changes]) -> Memory:
        """Change the named fields of a live memory. What they were is kept in its history."""
        unknown = sorted(set(changes) - Changes.__annotations__.keys())
        if unknown or not changes:
            allowed = ", ".join(sorted(Changes.__annotations__))
            raise InvalidInput(unknown[0] if unknown else "changes", f"cannot be changed; allowed: {allowed}")
        for attempt in range(_UPDATE_TRIES):
            previous = self._live(memory_id)
            now = max(self._clock(), previous.updated)
            checked = validation.memory(replace(drafts.as_new(previous), **changes), self._space, now, self._limits)
            draft = drafts.draft(checked, previous.id, now)
            texts = {} if checked.text == previous.text else {previous.id: checked.text}
            facts = self._read_anew(draft.memory) if texts else []
            (entry,) = drafts.entries([(draft, self._embed(texts).get(previous.id), facts)])
            try:
                self._store.replace(entry, previous, self._model_name())
                return draft.memory
            except Conflict:
                changed_meanwhile = self._store.get([memory_id]).get(memory_id) != previous
                if not changed_meanwhile or attempt == _UPDATE_TRIES - 1:
                    raise
        raise AssertionError("unreachable")

    def forget(self, ids: str | Sequence[str]) -> None:
        """Hide memories: they are not found any more, but can be restored."""
        self._store.forget(self._ids(ids), self._clock())

    def restore(self, ids: str | Sequence[str]) -> None:
        """Bring forgotten memories back."""
        self._store.restore(self._ids(ids), self._clock())

    def purge(self, ids: str | Sequence[str]) -> None:
        """Delete memories for good. This cannot be undone."""
        self._flush()  # what is still to be logged may quote them
        self._store.purge(self._ids(ids), self._clock())

    def reembed(self) -> Iterator[Progress]:
        """Give every memory that has none of them vectors of this engine's model. Interrupted, it goes on where it
        stopped; searches find each batch as it is written."""
        if self._embedder is None:
            raise EmbedderUnavailable("embedder: none is configured; set embedder to minilm or hashing")
        model = self._embedder.fingerprint
        self._store.switch_model(model)
        done, total = 0, self._store.pending_count(None)
        yield Progress(done, total)
        writing: Future[int] | None = None
        in_flight: dict[str, str] = {}
        while True:
            listed = self._store.pending(None, len(in_flight) + BATCH_EMBEDDED)
            waiting = {each: text for each, text in listed if each not in in_flight}
            # While the batch before is written.
            embedded = self._embedded(self._embedder, waiting) if waiting else {}
            before, writing = writing, None
            if before is None and not waiting:
                return
            done += before.result() if before is not None else 0
            if waiting:
                writing = self._threads.start(self._store.embed, embedded, waiting, model)
            in_flight = waiting
            if before is not None:
                yield Progress(min(done, total), total)

    def rebuild(self) -> None:
        """Throw every index and cache away and make it anew from the rows."""
        self._store.rebuild()

    # ---- reading

    def search(self, query: str | SearchRequest, **options: Unpack[SearchOptions]) -> SearchResult:
        """The memories that answer a question, best first, with reasons."""
        asked = _request(query, options)
        delivered = self._delivered_before(asked)
        with _uncollected():
            request, result = self._searching.search(asked, (delivered or {}).keys())
        if delivered is None and request.omit_delivered:
            result = replace(result, notes=(*result.notes, _UNKNOWN))
        elif delivered:
            result = replace(result, hits=tuple(replace(hit, delivered=hit.id in delivered) for hit in result.hits))
        return self._logged(request, result)

    def why(self, query: str | SearchRequest, memory_id: str, **options: Unpack[SearchOptions]) -> Why:
        """A memory's place in a search, with every reason, or where it was lost."""
        (checked,) = self._ids(memory_id)
        asked = _request(query, options)
        delivered = self._delivered_before(asked) or {}
        return self._explaining.why(self._searching.trail(asked, delivered.keys()), checked)

    def why_not(self, query: str | SearchRequest, memory_id: str, **options: Unpack[SearchOptions]) -> WhyNot:
        """The stage at which a search left a memory out, and what would bring it in."""
        return self.why(query, memory_id, **options).left_out

    def related(self, memory_id: str | RelatedRequest, **options: Unpack[RelatedOptions]) -> SearchResult:
        """The memories most like one that is known, by meaning and by rare words they share, itself excluded."""
        asked = memory_id if isinstance(memory_id, RelatedRequest) else RelatedRequest(memory_id=memory_id)
        self._ids(asked.memory_id)
        return self._recall.related(replace(asked, **options))

    def facets(self, query: str = "", where: Filter | None = None) -> Facets:
        """How all memories, or those that match a query, are spread over kinds, namespaces, tags, sources, months."""
        return self._recall.facets(query, where or Filter())

    def history(self, memory_id: str) -> list[Event]:
        """What happened to a memory, oldest first, with what each update replaced."""
        (checked,) = self._ids(memory_id)
        events = self._store.history(checked)
        if not events:
            raise NotFound((checked,))
        return events

    def stats(self) -> Stats:
        """Counts of the whole store."""
        if self._limits.confined_to is not None:
            raise InvalidInput("stats", "tell of all spaces, and this memory is confined to one; `facets` counts it")
        return self._store.stats()

    # ---- inside: writing

    def _prepare(self, batch: Sequence[str | NewMemory], number: int, in_flight: Set[Key]) -> _Ready:
        """Check, tokenise and embed. Texts that are there already, or being written, are not embedded again."""
        now = self._clock()
        ids = self._make_ids(now, len(batch))
        checked = self._drafts(batch, ids, now, number)
        keys = [draft.key for draft in checked]
        known = self._store.duplicates(keys)  # the store looks again; this look spares tokeniser and embedder
        recalled = self._given_back(checked)
        new: dict[Key, Draft] = {}
        for place, (key, draft) in enumerate(zip(keys, checked, strict=True)):
            if key not in known and place not in recalled:
                new.setdefault(key, draft)
        embedded = self._embed({each.memory.id: each.memory.text for key, each in new.items() if key not in in_flight})
        entries = drafts.entries((each, embedded.get(each.memory.id), self._facts(each)) for each in new.values())
        return _Ready(
            keys,
            [draft.memory.session for draft in checked],
            known,
            recalled,
            dict(zip(new, entries, strict=True)),
        )

    def _given_back(self, checked: Sequence[Draft]) -> dict[int, tuple[str, ...]]:
        """By place, of texts that only repeat what their own session was told: which memories told it."""
        delivered = self._texts_delivered([(each.memory.space, each.memory.session) for each in checked])
        known = {session: DeliveredTexts(texts) for session, texts in delivered.items()}
        found = {}
        for place, draft in enumerate(checked if known else ()):
            heard = known.get((draft.memory.space, draft.memory.session or ""))
            ids = heard.repeated(draft.memory.text) if heard is not None else ()
            if ids:
                found[place] = ids
        return found

    def _facts(self, draft: Draft) -> list[Fact]:
        """Those that were given with a memory, and those that are read from it."""
        given = self._stated(draft.memory, draft.facts, "given") if draft.facts else []
        return [*given, *statements.not_given(self._read(draft.memory, draft.extract), given)]

    def _read(self, memory: Memory, extract: bool | None) -> list[Fact]:
        """The facts that are read from a text."""
        if not (self._extract if extract is None else extract):
            return []
        title = memory.metadata.get("title")
        read = extracted(memory.text, title if isinstance(title, str) else None)
        return self._stated(memory, read, "extracted") if read else []

    def _read_anew(self, memory: Memory) -> list[Fact]:
        """The facts that are read from a changed text, without those that were given with the memory."""
        stored = self._store.facts_of([memory.id]).get(memory.id, ())
        return statements.not_given(self._read(memory, None), [each for each in stored if each.origin == "given"])

    def _drafts(self, batch: Sequence[str | NewMemory], ids: Sequence[str], now: datetime, number: int) -> list[Draft]:
        """Checked items. All texts that come alone share the check of everything else."""
        plain = validation.memory(NewMemory(text="text"), self._space, now, self._limits)
        checked = []
        for at, (item, memory_id) in enumerate(zip(batch, ids, strict=True), number):
            try:
                if isinstance(item, NewMemory):
                    new = validation.memory(item, self._space, now, self._limits)
                    checked.append(drafts.draft(new, memory_id, now))
                else:
                    checked.append(drafts.draft(plain, memory_id, now, validation.text(item, self._limits)))
            except InvalidInput as error:
                if at == 1:
                    raise
                raise InvalidInput(error.field, f"{error.problem} (item {at} of the input)") from None
        return checked

    def _write(self, ready: _Ready) -> list[Remembered]:
        """One batch, one transaction."""
        receipts = {key: Remembered(memory_id, duplicate=True) for key, memory_id in ready.known.items()}
        if ready.entries:
            added = self._store.add(list(ready.entries.values()), self._model_name())
            if len(added) == len(ready.wanted):  # each is asked for once, and none was there when it was prepared
                return added
            receipts.update(zip(ready.entries, added, strict=True))
        remembered = []
        for place, key in enumerate(ready.wanted):
            if place in ready.recalled:
                ids = ready.recalled[place]
                remembered.append(Remembered(ids[0], duplicate=True, recalled=ids))
            else:
                remembered.append(receipts[key])
                receipts[key] = Remembered(receipts[key].id, duplicate=True)  # again in the same batch
        for place, ids in ready.recalled.items():
            for memory_id in ids:
                self._became(memory_id, "used", self._clock(), ready.sessions[place])
        return remembered

    def _embed(self, texts: dict[str, str]) -> dict[str, Passages]:
        """Passages by id. Without a working embedder the texts are kept anyway, and embedded later."""
        if self._embedder is None or self._deferring or not texts:
            return {}
        try:
            return self._embedded(self._embedder, texts)
        except Exception as error:  # whatever the model's runtime raises, no memory is lost for it
            _log.warning("stored without vectors (%s); `nacre reembed` adds them", error)
            return {}

    @staticmethod
    def _embedded(embedder: Embedder, texts: dict[str, str]) -> dict[str, Passages]:
        spans: dict[str, tuple[Span, ...]] = {}
        for memory_id, text in texts.items():
            # A word piece has at least one character, so a short text is one passage for sure.
            short = len(text) <= embedder.pieces_max
            spans[memory_id] = (
                (Span(0, len(text)),) if short else chunking.cut(text, embedder.weigh(text), embedder.pieces_max)
            )
        slices = [texts[each][span.start : span.end] for each, several in spans.items() for span in several]
        vectors = embedder.embed_passages(slices)
        embedded: dict[str, Passages] = {}
        at = 0
        for memory_id, several in spans.items():
            embedded[memory_id] = Passages(several, vectors[at : at + len(several)])
            at += len(several)
        return embedded

    def _model_name(self) -> str | None:
        return None if self._embedder is None else self._embedder.fingerprint

    def _live(self, memory_id: str) -> Memory:
        (checked,) = self._ids(memory_id)
        memory = self._store.get([checked]).get(checked)
        if memory is None:
            raise NotFound((checked,))
        if memory.deleted is not None:
            raise Conflict(f"id: memory {memory_id} is forgotten; restore it first")
        return memory


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without garbage collection: it would visit the thousands of values of a batch or a search again and again, and
    hardly any of them outlives it."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _request(query: str | SearchRequest, options: SearchOptions) -> SearchRequest:
    return replace(query, **options) if isinstance(query, SearchRequest) else SearchRequest(query=query, **options)

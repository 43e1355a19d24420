"""Writes memories: remember, update, forget, restore, purge, and the vectors that are still missing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from nacre import validation
from nacre.analysis import chunking
from nacre.analysis.fact_extraction import extract
from nacre.analysis.happened import happened
from nacre.engine import entries
from nacre.engine.entries import Draft, Key
from nacre.engine.facts import FactService
from nacre.engine.parts import Parts
from nacre.engine.recall_log import RecallLog
from nacre.engine.repeats import Asker, RepeatFinder
from nacre.engine.updates import UpdateService
from nacre.errors import Conflict, EmbedderMismatch, EmbedderUnavailable, InvalidInput, NacreError, NotFound, StoreError
from nacre.facts import statements
from nacre.interfaces import Embedder, TokenEmbedder
from nacre.runtime.garbage import collection_paused
from nacre.types.facts import Fact
from nacre.types.memory import (
    Changes,
    Entry,
    Forgotten,
    Memory,
    NewMemory,
    Passages,
    Progress,
    Purged,
    Remembered,
    Span,
    Update,
)

if TYPE_CHECKING:
    from concurrent.futures import Future

# One transaction of a bulk write. Large ones spare FTS5 the merging of small segments; but a batch is acknowledged
# only once it is embedded, which takes a second or two for BATCH_EMBEDDED texts.
BATCH_MEMORIES = 8_192
BATCH_EMBEDDED = 512
BATCH_CHARS = 2_000_000  # or this much text, so that memory stays bounded
_UPDATE_TRIES = 5

_log = logging.getLogger("nacre")

Refuse: TypeAlias = Callable[[int, NacreError], None]  # the number of a bad item, from 1, and what is wrong with it


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch ready to be written: what was given, what is stored already, what is new."""

    keys: Sequence[Key]
    sessions: Sequence[tuple[str | None, str | None]]  # with the connection that each text comes from
    stored: Mapping[Key, str]
    recalled: Mapping[int, tuple[str, ...]]  # by place: texts that only repeat what their session was given
    entries: Mapping[Key, Entry]
    supersedes: Mapping[int, Sequence[str]]  # by place: the older memories that a text was given to replace
    unread: Set[str]  # memories whose caller wants nothing to be recognised
    notes: Mapping[int, tuple[str, ...]]  # by place: on private parts and secrets


class Writer:
    """The one write path. `defer` leaves vectors to `reembed`, `extracts` reads facts and kinds from texts."""

    def __init__(
        self,
        parts: Parts,
        facts: FactService,
        updates: UpdateService,
        log: RecallLog,
        repeats: RepeatFinder,
        *,
        extracts: bool,
        defer: bool,
    ) -> None:
        self._parts = parts
        self._store = parts.store
        self._facts = facts
        self._updates = updates
        self._log = log
        self._repeats = repeats
        self._extracts = extracts
        self._defer = defer

    # ---- the verbs

    def remember(self, items: Iterable[str | NewMemory], refused: Refuse | None = None) -> Iterator[list[Remembered]]:
        """One transaction a batch, in constant memory: a batch is written while the next one is prepared."""
        if isinstance(items, str | NewMemory):
            raise InvalidInput("items", "must be a list of texts; `remember` takes a single one")
        validation.iterable("items", items)
        if refused is not None:
            validation.function("refused", refused)
        memories_max = BATCH_MEMORIES if self._parts.embedder is None or self._defer else BATCH_EMBEDDED
        batches = entries.batches(items, memories_max, BATCH_CHARS)
        number = 1
        writing: Future[list[Remembered]] | None = None
        in_flight: Set[Key] = frozenset()
        while True:
            try:
                given = next(batches, None)
                with collection_paused():
                    batch = None if given is None else self._prepare(given.items, number, in_flight, refused)
                    if writing is not None:
                        writing.exception()  # waits, and raises nothing yet
            except BaseException:
                if writing is not None:
                    yield writing.result()
                raise
            if writing is not None:
                yield writing.result()
            if given is None or batch is None:
                return
            if not given.full:  # the last one needs no other thread
                with collection_paused():
                    written = self._write(batch)
                yield written
                return
            writing, in_flight = self._parts.threads.start(self._write, batch), batch.entries.keys()
            number += len(given.items)

    def update(self, memory_id: str, changes: Changes) -> Memory:
        """Change the named fields of a live memory."""
        unknown = sorted(set(changes) - Changes.__annotations__.keys())
        if unknown or not changes:
            allowed = ", ".join(sorted(Changes.__annotations__))
            if not unknown:
                raise InvalidInput("changes", f"are missing; give at least one of {allowed}")
            raise InvalidInput(unknown[0], f"cannot be changed; allowed: {allowed}")
        for attempt in range(_UPDATE_TRIES):
            previous = self._parts.live(memory_id)
            now = max(self._parts.clock(), previous.updated)
            changed = replace(entries.as_new(previous), **changes)
            checked = validation.memory(changed, self._parts.access, now, self._parts.limits)
            screened, notes = self._parts.screening.changes(checked, changes)
            if notes:
                checked = validation.memory(screened, self._parts.access, now, self._parts.limits)
            draft = entries.draft(checked, previous.id, now, self._extracts)
            texts = {} if checked.text == previous.text else {previous.id: checked.text}
            facts = self._extracted_anew(draft.memory) if texts else []
            (entry,) = entries.entries([(draft, self._embed(texts).get(previous.id), facts)])
            try:
                self._store.replace(entry, previous, self._model(), self._token_model())
                if texts or draft.memory.happened != previous.happened:
                    self._link(partial(self._updates.relink, draft.memory))
                return replace(draft.memory, notes=notes)
            except Conflict:
                changed_meanwhile = self._store.get([memory_id]).get(memory_id) != previous
                if not changed_meanwhile or attempt == _UPDATE_TRIES - 1:
                    raise
        raise AssertionError("unreachable")

    def forget(self, ids: str | Sequence[str], missing_ok: bool) -> Forgotten:
        wanted = validation.ids([ids] if isinstance(ids, str) else ids, self._parts.limits)
        validation.yes_or_no("missing_ok", missing_ok)
        missing: tuple[str, ...] = ()
        while True:  # more than twice only if another process purges some of them at this moment
            try:
                self._store.forget(self._parts.ids(wanted), self._parts.clock())
                return Forgotten(wanted, missing)
            except NotFound as unknown:
                if not missing_ok:
                    raise
                missing += unknown.ids
                wanted = tuple(each for each in wanted if each not in unknown.ids)

    def restore(self, ids: str | Sequence[str]) -> None:
        self._store.restore(self._parts.ids(ids), self._parts.clock())

    def purge(self, ids: str | Sequence[str]) -> Purged:
        self._log.flush()  # receipts that are still to be written may quote the memories
        named = tuple(dict.fromkeys(self._parts.ids(ids)))
        return Purged(named, self._store.purge(named, self._parts.clock()))

    def reembed(self) -> Iterator[Progress]:
        """Embed every memory that has no vectors or token vectors of this model.

        A batch is written while the next one is embedded.
        """
        embedder = self._parts.embedder
        if embedder is None:
            raise EmbedderUnavailable("embedder: none is configured; set embedder to minilm or hashing")
        self._store.switch_model(embedder.fingerprint)
        done, total = 0, self._store.pending_count(None)
        if self._parts.token_embedder is not None:
            self._store.switch_token_model(self._parts.token_embedder.token_fingerprint)
            total += self._store.pending_tokens_count(None)
        yield Progress(done, total)
        writing: Future[int] | None = None
        in_flight: Set[str] = frozenset()
        while True:
            without_vectors, without_tokens = self._waiting(in_flight)
            waiting = without_vectors | without_tokens
            embedded = _passages(embedder, self._parts.token_embedder, waiting) if waiting else {}
            before, writing = writing, None
            if before is None and not waiting:
                return
            done += before.result() if before is not None else 0
            if waiting:
                writing = self._parts.threads.start(self._embed_stored, embedded, waiting, set(without_vectors))
            in_flight = waiting.keys()
            if before is not None:
                yield Progress(min(done, total), total)

    def _waiting(self, in_flight: Set[str]) -> tuple[dict[str, str], dict[str, str]]:
        """The next batch: texts of memories without vectors, then of those that only lack token vectors."""
        limit = len(in_flight) + BATCH_EMBEDDED
        listed = self._store.pending(None, limit)
        new = dict(islice((each for each in listed if each[0] not in in_flight), BATCH_EMBEDDED))
        if self._parts.token_embedder is None or len(listed) == limit:
            return new, {}
        lacking = (each for each in self._store.pending_tokens(None, limit) if each[0] not in in_flight | new.keys())
        return new, dict(islice(lacking, BATCH_EMBEDDED - len(new)))

    def _embed_stored(self, embedded: dict[str, Passages], texts: dict[str, str], without_vectors: Set[str]) -> int:
        model, token_model = self._model(), self._token_model()
        assert model is not None
        count = self._store.embed(embedded, texts, model, token_model)
        if token_model is not None and self._store.token_model() != token_model:
            raise EmbedderMismatch(
                f"embedder: another process has changed the token vectors from {token_model} to those of "
                f"{self._store.token_model()} meanwhile; run `nacre reembed` in one process at a time"
            )
        # A memory that had vectors was compared with older ones before.
        new = [each for each in texts if each in without_vectors]
        self._updates.link_ids([each for each in new if self._updates.may_update(texts[each])])
        return count

    # ---- one batch

    def _prepare(
        self, items: Sequence[str | NewMemory], number: int, in_flight: Set[Key], refused: Refuse | None
    ) -> _Batch:
        """Validate, tokenize and embed. Texts that are stored, or being written, are not embedded again."""
        now = self._parts.clock()
        drafts = self._drafts(items, now, number, refused)
        keys = [draft.key for draft in drafts]
        stored = self._store.duplicates(keys)  # the store checks again; this check spares tokenizer and embedder
        recalled = self._recalled(drafts)
        new: dict[Key, Draft] = {}
        for place, (key, draft) in enumerate(zip(keys, drafts, strict=True)):
            if key not in stored and place not in recalled:
                new.setdefault(key, draft)
        embedded = self._embed({each.memory.id: each.memory.text for key, each in new.items() if key not in in_flight})
        ready = entries.entries((each, embedded.get(each.memory.id), self._facts_of(each)) for each in new.values())
        sessions = [(draft.memory.session, draft.memory.origin) for draft in drafts]
        supersedes = {place: each.supersedes for place, each in enumerate(drafts) if each.supersedes}
        if supersedes:
            self._check_superseded([drafts[place] for place in supersedes])
        unread = {each.memory.id for each in drafts if each.extract is False}
        notes = {place: each.notes for place, each in enumerate(drafts) if each.notes}
        return _Batch(keys, sessions, stored, recalled, dict(zip(new, ready, strict=True)), supersedes, unread, notes)

    def _check_superseded(self, drafts: Sequence[Draft]) -> None:
        """Each must be a live memory of the same space, which this engine may see."""
        found = self._parts.visible(list(dict.fromkeys(older for each in drafts for older in each.supersedes)))
        spaces = {older: memory.space for older, memory in found.items() if memory.deleted is None}
        missing = [older for each in drafts for older in each.supersedes if spaces.get(older) != each.memory.space]
        if missing:
            raise NotFound(tuple(dict.fromkeys(missing)), "`supersedes` names live memories of the same space")

    def _drafts(
        self, items: Sequence[str | NewMemory], now: datetime, number: int, refused: Refuse | None
    ) -> list[Draft]:
        """Validated items. For plain texts, the fields besides the text are validated once."""
        access, limits = self._parts.access, self._parts.limits
        ids = self._parts.make_ids(now, len(items))
        plain = validation.memory(NewMemory(text="text"), access, now, limits)
        drafts = []
        for at, (item, memory_id) in enumerate(zip(items, ids, strict=True), number):
            try:
                if isinstance(item, NewMemory):
                    checked = validation.memory(item, access, now, limits)
                    draft = self._screened_draft(checked, memory_id, now)
                elif self._parts.screening.passes(text := validation.text(item, limits)):
                    draft = entries.draft(plain, memory_id, now, self._extracts, text)
                else:
                    draft = self._screened_draft(replace(plain, text=text), memory_id, now)
                if refused is not None and draft.supersedes:  # otherwise looked up for the whole batch
                    self._check_superseded([draft])
            except (InvalidInput, NotFound) as error:
                if refused is not None:
                    refused(at, error)
                    continue
                if at == 1 or isinstance(error, NotFound):
                    raise
                raise InvalidInput(error.field, f"{error.problem} (item {at} of the input)") from None
            drafts.append(self._dated(draft))
        return drafts

    def _screened_draft(self, checked: NewMemory, memory_id: str, now: datetime) -> Draft:
        """A draft without private parts, and with secrets as the policy says."""
        screened, notes = self._parts.screening.memory(checked)
        if notes:  # what was redacted may be too long now
            checked = validation.memory(screened, self._parts.access, now, self._parts.limits)
        return entries.draft(checked, memory_id, now, self._extracts)._replace(notes=notes)

    def _dated(self, draft: Draft) -> Draft:
        """The draft with the time of the event that it reports, if its own words say when that was."""
        memory = draft.memory
        if memory.happened is not None or not (self._extracts if draft.extract is None else draft.extract):
            return draft
        moment = happened(memory.text, memory.created, self._parts.zone)
        return draft if moment is None else draft._replace(memory=replace(memory, happened=moment))

    def _recalled(self, drafts: Sequence[Draft]) -> dict[int, tuple[str, ...]]:
        """By place, for texts that only repeat what their own session or connection was given: those memories.

        A text that is given to replace another memory says more than the same text without it.
        """
        texts = [
            (Asker(each.memory.space, each.memory.session, each.memory.origin), each.memory.text) for each in drafts
        ]
        found = self._repeats.find(texts)
        return {place: ids for place, ids in found.items() if set(drafts[place].supersedes) <= set(ids)}

    def _write(self, batch: _Batch) -> list[Remembered]:
        """One batch, one transaction."""
        remembered = self._written(batch)
        for place, notes in batch.notes.items():
            remembered[place] = remembered[place]._replace(notes=notes)
        return remembered

    def _written(self, batch: _Batch) -> list[Remembered]:
        receipts = {key: Remembered(memory_id, duplicate=True) for key, memory_id in batch.stored.items()}
        if batch.entries:
            added = self._store.add(list(batch.entries.values()), self._model(), self._token_model())
            new = [
                each
                for each, receipt in zip(batch.entries.values(), added, strict=True)
                if not receipt.duplicate and each.memory.id not in batch.unread
            ]
            self._link(partial(self._updates.link_new, new))
            if len(added) == len(batch.keys):  # each text was given once, and none was stored before
                return added
            receipts.update(zip(batch.entries, added, strict=True))
        if batch.supersedes:  # texts that were stored before
            given = [
                (receipts[batch.keys[at]].id, ids) for at, ids in batch.supersedes.items() if at not in batch.recalled
            ]
            self._store.link_updates([Update(newer, older) for newer, ids in given for older in ids])
        remembered = []
        for place, key in enumerate(batch.keys):
            if place in batch.recalled:
                ids = batch.recalled[place]
                remembered.append(Remembered(ids[0], duplicate=True, recalled=ids))
            else:
                remembered.append(receipts[key])
                receipts[key] = Remembered(receipts[key].id, duplicate=True)  # again in the same batch
        for place, ids in batch.recalled.items():
            self._log.log_used(ids, *batch.sessions[place])
        return remembered

    def _link(self, find_updates: Callable[[], None]) -> None:
        """Find what memories update that are stored by now, so a store that fails is no failure of the write."""
        try:
            find_updates()
        except StoreError as error:
            _log.warning("stored, but not linked with the older memories that it may update: %s", error)

    # ---- facts and vectors

    def _facts_of(self, draft: Draft) -> list[Fact]:
        """The facts given with a memory, and those extracted from its text."""
        given = self._facts.stated(draft.memory, draft.facts, "given") if draft.facts else []
        return [*given, *statements.without_given(self._extracted(draft.memory, draft.extract), given)]

    def _extracted(self, memory: Memory, wanted: bool | None) -> list[Fact]:
        if not (self._extracts if wanted is None else wanted):
            return []
        title = memory.metadata.get("title")
        found = extract(memory.text, title if isinstance(title, str) else None, memory.source)
        return self._facts.stated(memory, found, "extracted") if found else []

    def _extracted_anew(self, memory: Memory) -> list[Fact]:
        """The facts extracted from a changed text, without those that were given with the memory."""
        stored = self._store.facts_of([memory.id]).get(memory.id, ())
        return statements.without_given(
            self._extracted(memory, None), [each for each in stored if each.origin == "given"]
        )

    def _embed(self, texts: dict[str, str]) -> dict[str, Passages]:
        """Passages by id. If the embedder fails, the texts are stored anyway and embedded later."""
        embedder = self._parts.embedder
        if embedder is None or self._defer or not texts:
            return {}
        try:
            return self._passages_for(embedder, texts)
        except Exception as error:  # whatever the model's runtime raises, no memory is lost for it
            _log.warning("stored without vectors (%s); `nacre reembed` adds them", error)
            return {}

    def _passages_for(self, embedder: Embedder, texts: dict[str, str]) -> dict[str, Passages]:
        """With token vectors where the embedder has any and does not fail to make them."""
        tokens = self._parts.token_embedder
        if tokens is not None:
            try:
                return _passages(embedder, tokens, texts)
            except Exception as error:  # the vectors alone may still work
                _log.warning("stored without token vectors (%s); `nacre reembed` adds them", error)
        return _passages(embedder, None, texts)

    def _model(self) -> str | None:
        return None if self._parts.embedder is None else self._parts.embedder.fingerprint

    def _token_model(self) -> str | None:
        return None if self._parts.token_embedder is None else self._parts.token_embedder.token_fingerprint


def _passages(embedder: Embedder, tokens: TokenEmbedder | None, texts: dict[str, str]) -> dict[str, Passages]:
    """Cut and embed texts, all of them in one call of the embedder."""
    spans: dict[str, tuple[Span, ...]] = {}
    for memory_id, text in texts.items():
        # A word piece has at least one character, so a short text is one passage for sure.
        short = len(text) <= embedder.pieces_max
        spans[memory_id] = (
            (Span(0, len(text)),) if short else chunking.split_passages(text, embedder.weigh(text), embedder.pieces_max)
        )
    slices = [texts[each][span.start : span.end] for each, several in spans.items() for span in several]
    from nacre.storage.vectors import checked, checked_tokens  # numpy is imported only where there are vectors

    packed: list[bytes] | None = None
    if tokens is None:
        vectors = checked(embedder.embed_passages(slices), len(slices))
    else:
        made, packed = tokens.embed_with_tokens(slices)
        vectors = checked(made, len(slices))
        packed = checked_tokens(packed, len(slices), tokens.token_format)
    embedded: dict[str, Passages] = {}
    at = 0
    for memory_id, several in spans.items():
        end = at + len(several)
        embedded[memory_id] = Passages(several, vectors[at:end], None if packed is None else tuple(packed[at:end]))
        at = end
    return embedded

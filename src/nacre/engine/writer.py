"""Writes memories: remember, update, forget, restore, purge, and the vectors that are still missing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from nacre import validation
from nacre.analysis.happened import happened
from nacre.engine import entries
from nacre.engine.embedding import NOT_EMBEDDED, Embedded, PassageEmbedder, passages_of
from nacre.engine.entries import Draft
from nacre.engine.facts import FactService
from nacre.engine.parts import Parts
from nacre.engine.pending import PendingEmbedder
from nacre.engine.recall_log import RecallLog
from nacre.engine.repeats import Asker, RepeatFinder
from nacre.engine.rewriter import Rewriter, part_is_stored
from nacre.engine.updates import UpdateService
from nacre.errors import InvalidInput, NacreError, NotFound
from nacre.facts import statements
from nacre.runtime.garbage import collection_paused
from nacre.types.facts import Fact
from nacre.types.memory import (
    Entry,
    Forgotten,
    Identity,
    NewMemory,
    Progress,
    Purged,
    Remembered,
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
    """A batch ready to be written: what was given, and what of it is new as far as is known."""

    drafts: Sequence[Draft]
    recalled: Mapping[int, tuple[str, ...]]  # by place: texts that only repeat what their session was given
    entries: Mapping[Identity, Entry]
    embedded: Mapping[bytes, Embedded]  # by content hash: of texts that take the place of others


class Writer:
    """The one write path. `extracts` reads facts and kinds from texts."""

    def __init__(
        self,
        parts: Parts,
        facts: FactService,
        updates: UpdateService,
        log: RecallLog,
        repeats: RepeatFinder,
        embedder: PassageEmbedder,
        rewriter: Rewriter,
        pending: PendingEmbedder,
        *,
        extracts: bool,
    ) -> None:
        self._parts = parts
        self._store = parts.store
        self._pending = pending
        self._facts = facts
        self._updates = updates
        self._log = log
        self._repeats = repeats
        self._embedder = embedder
        self._rewriter = rewriter
        self._extracts = extracts

    # ---- the verbs

    def remember(self, items: Iterable[str | NewMemory], refused: Refuse | None = None) -> Iterator[list[Remembered]]:
        """One transaction a batch, in constant memory: a batch is written while the next one is prepared."""
        entries.check_several(items)
        if refused is not None:
            validation.function("refused", refused)
        memories_max = BATCH_EMBEDDED if self._embedder.at_once else BATCH_MEMORIES
        batches = entries.batches(items, memories_max, BATCH_CHARS)
        number = 1
        writing: Future[list[Remembered]] | None = None
        in_flight: Set[Identity] = frozenset()
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

    def forget(
        self, ids: str | Sequence[str], keys: str | Sequence[str], space: str | None, missing_ok: bool
    ) -> Forgotten:
        validation.yes_or_no("missing_ok", missing_ok)
        named = validation.ids([ids] if isinstance(ids, str) else ids, self._parts.limits)
        found = self._parts.by_key(keys, space, missing_ok=missing_ok)
        missing = found.missing
        wanted = tuple(dict.fromkeys((*named, *found.ids)))
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

    def purge(self, ids: str | Sequence[str], keys: str | Sequence[str], space: str | None) -> Purged:
        self._log.flush()  # receipts that are still to be written may quote the memories
        keyed = self._parts.by_key(keys, space)
        named = tuple(dict.fromkeys((*self._parts.ids(ids), *keyed.ids)))
        return Purged(named, self._store.purge(named, self._parts.clock()))

    def reembed(self) -> Iterator[Progress]:
        """Embed every memory that has no vectors or token vectors of this model, or none of the further one."""
        embedder, tokens = self._pending.embedder, self._parts.token_embedder
        if self._store.model() not in (None, embedder.fingerprint):
            passages_of(embedder, None, {"": "text"})  # one that fails is not to cost the vectors that there are
        self._store.switch_model(embedder.fingerprint)
        if tokens is not None:
            self._store.switch_token_model(tokens.token_fingerprint)
        further = self._parts.further
        if further is not None:
            for each in self._store.further_models():
                if each != further.fingerprint:  # of another version
                    self._store.drop_model(each)
        yield from self._pending.run(batch=BATCH_EMBEDDED, once=True)

    # ---- one batch

    def _prepare(
        self, items: Sequence[str | NewMemory], number: int, in_flight: Set[Identity], refused: Refuse | None
    ) -> _Batch:
        """Validate, tokenize and embed. Texts that are stored, or being written, are not embedded again."""
        now = self._parts.clock()
        drafts = self._drafts(items, now, number, refused)
        # The store checks again; this check spares tokenizer and embedder.
        stored = self._store.identified([draft.identity for draft in drafts], now)
        recalled = self._recalled(drafts)
        new: dict[Identity, Draft] = {}
        others: list[Draft] = []
        for place, draft in enumerate(drafts):
            if draft.identity not in stored and place not in recalled and draft.identity not in new:
                new[draft.identity] = draft
            elif draft.memory.key is not None:
                others.append(draft)
        changed = self._changed_texts(others, stored)
        embedded = self._embedder.of(
            [each.memory for key, each in new.items() if key not in in_flight] + [each.memory for each in changed]
        )
        superseding = [each for each in drafts if each.supersedes]
        if superseding:
            self._check_superseded(superseding)
        again = {each.content_hash: embedded[each.memory.id] for each in changed if each.memory.id in embedded}
        return _Batch(drafts, recalled, self._entries(new, embedded), again)

    def _new_batch(self, drafts: Sequence[Draft]) -> _Batch:
        """Drafts that were known when they were prepared, and are new by now."""
        new: dict[Identity, Draft] = {}
        for draft in drafts:
            new.setdefault(draft.identity, draft)
        embedded = self._embedder.of([each.memory for each in new.values()])
        return _Batch(drafts, {}, self._entries(new, embedded), {})

    def _entries(self, new: Mapping[Identity, Draft], embedded: Mapping[str, Embedded]) -> dict[Identity, Entry]:
        ready = entries.entries(
            (each, embedded.get(each.memory.id, NOT_EMBEDDED), self._facts_of(each)) for each in new.values()
        )
        return dict(zip(new, ready, strict=True))

    def _changed_texts(self, drafts: Sequence[Draft], stored: Mapping[Identity, str]) -> list[Draft]:
        """Those under a known key whose text is not the one that is stored."""
        if not drafts:
            return []
        known = self._store.get([stored[each.identity] for each in drafts if each.identity in stored])
        texts = {(each.space, each.key): each.text for each in known.values()}
        return [each for each in drafts if texts.get((each.memory.space, each.memory.key)) != each.memory.text]

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
                draft = self._dated(draft)
                for fact in draft.facts:  # now: what is known may be changed in a transaction of its own
                    statements.check_fact(fact, draft.memory)
                if refused is not None and draft.supersedes:  # otherwise looked up for the whole batch
                    self._check_superseded([draft])
            except (InvalidInput, NotFound) as error:
                if refused is not None:
                    refused(at, error)
                    continue
                if at == 1 or isinstance(error, NotFound):
                    raise
                raise InvalidInput(error.field, f"{error.problem} (item {at} of the input)") from None
            drafts.append(draft)
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

        A text that is given to replace another memory says more than the same text without it. A text under a key is
        kept whatever it repeats: its caller asks for it by the key.
        """
        texts = [
            (Asker(each.memory.space, each.memory.session, each.memory.origin), each.memory.text) for each in drafts
        ]
        found = self._repeats.find(texts)
        return {
            place: ids
            for place, ids in found.items()
            if drafts[place].memory.key is None and set(drafts[place].supersedes) <= set(ids)
        }

    def _write(self, batch: _Batch) -> list[Remembered]:
        """One batch: what is new in one transaction, then in another one what stored memories gain or become."""
        added: dict[Identity, Remembered] = {}
        if batch.entries:
            unread = {each.memory.id for each in batch.drafts if each.extract is False}
            self._embedder.add_model()
            receipts = self._store.add(list(batch.entries.values()), self._embedder.model, self._embedder.token_model)
            added = dict(zip(batch.entries, receipts, strict=True))
            written = (batch.entries[each] for each, receipt in added.items() if not receipt.duplicate)
            self._rewriter.link(
                partial(self._updates.link_new, [each for each in written if each.memory.id not in unread])
            )
        known = {
            place: draft
            for place, draft in enumerate(batch.drafts)
            if place not in batch.recalled and not _is_new(draft, added)
        }
        with part_is_stored(any(not each.duplicate for each in added.values())):
            said_again = self._rewriter.say_again(known, batch.embedded)
            gone = {place: draft for place, draft in known.items() if place not in said_again}
            if gone:
                said_again |= dict(zip(gone, self._write(self._new_batch(list(gone.values()))), strict=True))
        remembered = []
        for place, draft in enumerate(batch.drafts):
            if place in batch.recalled:
                recalled = batch.recalled[place]
                remembered.append(Remembered(recalled[0], True, recalled, draft.notes))
                self._log.log_used(recalled, draft.memory.session, draft.memory.origin)
            elif place in said_again:
                receipt = said_again[place]
                remembered.append(receipt._replace(notes=tuple(dict.fromkeys((*draft.notes, *receipt.notes)))))
            else:
                remembered.append(Remembered(draft.memory.id, duplicate=False, notes=draft.notes))
        return remembered

    # ---- facts

    def _facts_of(self, draft: Draft) -> list[Fact]:
        """The facts given with a memory, and those extracted from its text."""
        given = self._facts.stated(draft.memory, draft.facts, "given") if draft.facts else []
        return [*given, *statements.without_given(self._rewriter.extracted(draft.memory, draft.extract), given)]


def _is_new(draft: Draft, added: Mapping[Identity, Remembered]) -> bool:
    return draft.identity in added and added[draft.identity] == Remembered(draft.memory.id, duplicate=False)

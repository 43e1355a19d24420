"""Changes stored memories: by `update`, and by remembering their key or their text again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial

from nacre import validation
from nacre.analysis.fact_extraction import extract
from nacre.analysis.names import fold
from nacre.engine import entries, merging
from nacre.engine.embedding import NOT_EMBEDDED, Embedded, PassageEmbedder
from nacre.engine.entries import Draft
from nacre.engine.facts import FactService
from nacre.engine.parts import Parts
from nacre.engine.updates import UpdateService
from nacre.errors import Conflict, InvalidInput, Outdated, StoreBusy, StoreError, StoreUnavailable
from nacre.facts import statements
from nacre.storage.changes import replaced
from nacre.types.facts import Fact
from nacre.types.memory import Changes, Memory, Remembered, Replacement, Update

_TRIES = 5
_PART = "a part of what was given is stored"

_log = logging.getLogger("nacre")


@contextmanager
def part_is_stored(any_is: bool = True) -> Iterator[None]:
    """After a transaction, others of the same call: where they fail, it is said that they are not all."""
    try:
        yield
    except (StoreBusy, StoreUnavailable) as error:
        if not any_is or _PART in str(error):
            raise
        raise type(error)(f"{error}; {_PART}: give it again, nothing is doubled") from error


class Rewriter:
    """`extracts` reads facts and kinds from texts."""

    def __init__(
        self, parts: Parts, facts: FactService, updates: UpdateService, embedder: PassageEmbedder, *, extracts: bool
    ) -> None:
        self._parts = parts
        self._store = parts.store
        self._facts = facts
        self._updates = updates
        self._embedder = embedder
        self._extracts = extracts

    # ---- the verb `update`

    def update(self, memory_id: str, changes: Changes, unchanged_since: datetime | None) -> Memory:
        """Change the named fields of a live memory, if it is still the version that the caller names."""
        unknown = sorted(set(changes) - Changes.__annotations__.keys())
        if unknown or not changes:
            allowed = ", ".join(sorted(Changes.__annotations__))
            if not unknown:
                raise InvalidInput("changes", f"are missing; give at least one of {allowed}")
            raise InvalidInput(unknown[0], f"cannot be changed; allowed: {allowed}")
        known = None if unchanged_since is None else validation.moment("unchanged_since", unchanged_since)
        for attempt in range(_TRIES):
            previous = self._parts.live(memory_id)
            if known not in (None, previous.updated):
                raise Outdated(
                    f"id: memory {previous.id} has changed: it was updated at {previous.updated.isoformat()}, not at "
                    f"{known.isoformat()}; read it again, and update that version"
                )
            now = previous.changed_at(self._parts.clock())
            changed = replace(entries.as_new(previous), **changes)
            checked = validation.memory(changed, self._parts.access, now, self._parts.limits)
            screened, notes = self._parts.screening.changes(checked, changes)
            if notes:
                checked = validation.memory(screened, self._parts.access, now, self._parts.limits)
            draft = entries.draft(checked, previous.id, now, self._extracts)
            if not replaced(previous, draft.memory):
                return replace(previous, notes=notes)
            changed_text = [] if checked.text == previous.text else [draft.memory]
            change = self._replacement(previous, draft, self._embedder.of(changed_text).get(previous.id, NOT_EMBEDDED))
            self._embedder.add_model()
            try:
                self._store.replace([change], self._embedder.model, self._embedder.token_model)
            except Conflict:
                changed_meanwhile = self._store.get([memory_id]).get(memory_id) != previous
                if not changed_meanwhile or attempt == _TRIES - 1:
                    raise
            else:
                self._relink([change])
                return replace(draft.memory, notes=notes)
        raise AssertionError("unreachable")

    # ---- what is remembered again

    def say_again(self, drafts: Mapping[int, Draft], embedded: Mapping[bytes, Embedded]) -> dict[int, Remembered]:
        """Give stored memories what is said of them now, in order. The receipts name the fields that this changed.

        A key takes what is given in place of what is stored; a text without one gains what is new. `embedded` are
        passages of new texts by their hash. What is not there any more has no receipt: another process may have
        forgotten it, and a text may have been replaced by its key just now.
        """
        if not drafts:
            return {}
        for attempt in range(_TRIES):
            receipts, changes = self._changes(drafts, embedded)
            try:
                if changes:
                    self._embedder.add_model()
                    self._store.replace(changes, self._embedder.model, self._embedder.token_model)
                break
            except Conflict:
                if attempt == _TRIES - 1:
                    raise
        self._relink(changes)
        with part_is_stored(bool(changes)):
            for place, receipt in receipts.items():
                told = self._tell(drafts[place], receipt)
                receipts[place] = receipt._replace(changed=(*receipt.changed, *told))
            given = [Update(receipt.id, older) for at, receipt in receipts.items() for older in drafts[at].supersedes]
            if given:
                self._store.link_updates(given)
        return receipts

    def _changes(
        self, drafts: Mapping[int, Draft], embedded: Mapping[bytes, Embedded]
    ) -> tuple[dict[int, Remembered], list[Replacement]]:
        now = self._parts.clock()
        ids = self._store.identified([draft.identity for draft in drafts.values()], now)
        known = self._store.get(list(dict.fromkeys(ids.values())))
        receipts: dict[int, Remembered] = {}
        changes: list[Replacement] = []
        for place, draft in drafts.items():
            stored = known.get(ids.get(draft.identity, ""))
            if stored is None or (draft.memory.key is None and stored.text != draft.memory.text):
                continue
            notes: tuple[str, ...] = ()
            if draft.memory.key is not None:
                becomes = merging.replaced_by_key(stored, draft.memory)
            else:
                becomes, notes = merging.merged_with_text(stored, draft.memory, self._parts.limits)
            changed = tuple(replaced(stored, becomes))
            said = tuple(name for name in changed if name != "language" or "text" not in changed)  # it follows the text
            receipts[place] = Remembered(stored.id, duplicate=True, notes=notes, changed=said)
            if changed:
                again = draft._replace(memory=becomes)
                changes.append(self._replacement(stored, again, self._passages(stored, again, embedded)))
                known[stored.id] = becomes
        return receipts, changes

    def _passages(self, stored: Memory, draft: Draft, embedded: Mapping[bytes, Embedded]) -> Embedded:
        if stored.text == draft.memory.text:
            return NOT_EMBEDDED
        if draft.content_hash in embedded:
            return embedded[draft.content_hash]
        return self._embedder.of([draft.memory]).get(draft.memory.id, NOT_EMBEDDED)

    def _tell(self, draft: Draft, receipt: Remembered) -> list[str]:
        """Add the facts and entities that are given and not there yet. Those of a text that is gone are dropped."""
        told = []
        given = self._facts.stated(replace(draft.memory, id=receipt.id), draft.facts, "given") if draft.facts else []
        if given or "text" in receipt.changed:
            stored = self._store.facts_of([receipt.id]).get(receipt.id, ())
            before = {statements.statement_key(each): each for each in stored if each.origin == "given"}
            now = {statements.statement_key(each): each for each in given}
            gone = [each.id for key, each in before.items() if key not in now] if "text" in receipt.changed else []
            new = [each for key, each in now.items() if key not in before]
            if gone:
                self._store.drop_facts(gone, self._parts.clock())
            if new:
                self._store.add_facts(new, self._parts.clock())
            told += ["facts"] if gone or new else []
        if draft.entities:
            linked = self._store.entities_of([receipt.id]).get(receipt.id, ())
            names = {fold(name) for each in linked for name in (each.name, *each.aliases)}
            unknown = [each for each in draft.entities if not names.issuperset(map(fold, (each.name, *each.aliases)))]
            for each in unknown:
                self._store.put_entity(draft.memory.space, each, [receipt.id])
            told += ["entities"] if unknown else []
        return told

    # ---- one change

    def _replacement(self, previous: Memory, draft: Draft, embedded: Embedded) -> Replacement:
        changed = previous.text != draft.memory.text
        facts = self._extracted_anew(draft) if changed else []
        (entry,) = entries.entries([(draft._replace(entities=(), supersedes=()), embedded, facts)])
        return Replacement(entry, previous)

    def _extracted_anew(self, draft: Draft) -> list[Fact]:
        """The facts extracted from a changed text, without those that were given with the memory."""
        memory = draft.memory
        stored = self._store.facts_of([memory.id]).get(memory.id, ())
        given = [each for each in stored if each.origin == "given"]
        return statements.without_given(self.extracted(memory, draft.extract), given)

    def extracted(self, memory: Memory, wanted: bool | None) -> list[Fact]:
        """The facts in a text, if the caller or else the engine wants them."""
        if not (self._extracts if wanted is None else wanted):
            return []
        title = memory.metadata.get("title")
        found = extract(memory.text, title if isinstance(title, str) else None, memory.source)
        return self._facts.stated(memory, found, "extracted") if found else []

    def _relink(self, changes: Sequence[Replacement]) -> None:
        """What changed in its words or its time may update others, or be updated."""
        for entry, previous in changes:
            if entry.memory.text != previous.text or entry.memory.happened != previous.happened:
                self.link(partial(self._updates.relink, entry.memory))

    def link(self, find_updates: Callable[[], None]) -> None:
        """Find what memories update that are stored by now, so a store that fails is no failure of the write."""
        try:
            find_updates()
        except StoreError as error:
            _log.warning("stored, but not linked with the older memories that it may update: %s", error)

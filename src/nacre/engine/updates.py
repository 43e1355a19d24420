"""Updates between memories: found when a text is written, given by the caller, listed where they are undecided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from nacre import validation
from nacre.analysis.update_cues import Cue, find_cue
from nacre.engine.parts import Parts
from nacre.errors import NotFound
from nacre.facts.updates import CANDIDATES, Dated, Judged, judge, subject_terms
from nacre.interfaces import TimePage
from nacre.query.ast import ParsedQuery
from nacre.types.facts import Disagreement, Statement
from nacre.types.memory import Entry, Memory, Update
from nacre.types.search import Filter, Match

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix

UNDECIDED_AMONG = 2_000  # the latest memories of a space, which `conflicts` looks at
_BACKDATED_BY = timedelta(minutes=1)  # before now: then newer memories may be stored already
_NEWEST_READ = 50  # memories; if a batch has all of them, it is written in the order of time

_EDGES = ".,;:!?()[]\"'`*“”„‘’«»"
_NO_QUESTION = ParsedQuery((), None, "")


class UpdateService:
    """Without `finds`, only what callers give is linked."""

    def __init__(self, parts: Parts, *, finds: bool) -> None:
        self._parts = parts
        self._store = parts.store
        self._finds = finds

    # ---- writing

    def may_update(self, text: str) -> bool:
        return self._finds and find_cue(text) is not None

    def link_new(self, added: Sequence[Entry]) -> None:
        """Link memories that were just stored with older ones that they update."""
        embedded = [(each.memory, each.passages.vectors) for each in added if each.passages is not None]
        if not self._finds or not embedded:
            return
        with self._store.view(latest=True):  # one transaction for all that is read
            found = [
                update
                for memory, vectors in embedded
                if (cue := find_cue(memory.text)) is not None
                for update in self._linked(memory, cue, vectors)
            ]
            changes = [self._found_anew(memory) for memory in self._may_update(embedded)]
        self._change(
            [each for gone, _ in changes for each in gone], found + [each for _, new in changes for each in new]
        )

    def link_ids(self, ids: Sequence[str]) -> None:
        """The same for memories whose vectors were stored now."""
        for memory in self._store.get(ids).values():
            if memory.deleted is None:
                self._relink_newer(memory)

    def relink(self, memory: Memory) -> None:
        """Find the updates from and to a changed memory anew. Those that a caller gave stay."""
        if not self._finds:
            return
        found = [each for each in self._store.updates([memory.id]) if each.cue]
        self._store.unlink_updates(found)
        newer = self._store.get([each.newer for each in found if each.older == memory.id])
        for each in (memory, *newer.values()):
            self._relink_newer(each)

    def unlink(self, newer: str, older: str) -> bool:
        named = (validation.looked_up("newer", newer), validation.looked_up("older", older))
        known = self._parts.visible(named)
        missing = tuple(each for each in named if each not in known)
        if missing:
            raise NotFound(missing)
        return self._store.unlink_updates([Update(*named)]) > 0

    # ---- reading

    def undecided(self, spaces: Sequence[str]) -> list[Disagreement]:
        """Pairs of memories with a strong cue and a shared subject, which are not sure enough to be linked."""
        found: list[Disagreement] = []
        if not self._finds:
            return found
        for space in validation.spaces(spaces, self._parts.access, self._parts.limits):
            for memory in self._store.by_time(Filter(spaces=(space,)), TimePage(UNDECIDED_AMONG)):
                cue = find_cue(memory.text)
                vectors = self._store.vectors(memory.id) if cue is not None and cue.strong else None
                if cue is not None and vectors is not None:
                    found += self._arguable(memory, cue, vectors)
        return found

    # ---- one memory

    def _relink_newer(self, memory: Memory) -> None:
        """The updates of one memory, as they would be found if it were written last."""
        self._change(*self._found_anew(memory))

    def _found_anew(self, memory: Memory) -> tuple[list[Update], list[Update]]:
        """The links of such a memory that are wrong by now, and those that are missing."""
        cue, vectors = find_cue(memory.text), self._store.vectors(memory.id)
        found = self._linked(memory, cue, vectors) if cue is not None and vectors is not None else []
        known = [each for each in self._store.updates([memory.id]) if each.newer == memory.id and each.cue]
        return [each for each in known if each not in found], [each for each in found if each not in known]

    def _change(self, gone: Sequence[Update], new: Sequence[Update]) -> None:
        if gone:
            self._store.unlink_updates(gone)
        if new:
            self._store.link_updates(new)

    def _may_update(self, embedded: Sequence[tuple[Memory, FloatMatrix]]) -> list[Memory]:
        """What was stored before, is newer than some of these memories, and may update them."""
        limit = self._parts.clock() - _BACKDATED_BY
        backdated = [(memory, vectors) for memory, vectors in embedded if memory.moment < limit]
        if not backdated:
            return []
        written = {memory.id for memory, _ in embedded}
        newest: dict[str, datetime | None] = {}
        again: dict[str, Memory] = {}
        for memory, vectors in backdated:
            if memory.space not in newest:
                newest[memory.space] = self._newest(memory.space, written)
            latest = newest[memory.space]
            if latest is not None and memory.moment < latest:
                near = self._store.get([match.id for match in self._near(memory.space, vectors)])
                again |= {
                    each.id: each
                    for each in near.values()
                    if each.id not in written and each.moment > memory.moment and self.may_update(each.text)
                }
        return list(again.values())

    def _newest(self, space: str, without: set[str]) -> datetime | None:
        """When the latest memory of a space was created, besides these."""
        listed = self._store.by_time(Filter(spaces=(space,)), TimePage(_NEWEST_READ))
        return next((each.created for each in listed if each.id not in without), None)

    def _linked(self, memory: Memory, cue: Cue, vectors: FloatMatrix) -> list[Update]:
        judged, _ = self._judged(memory, cue, vectors)
        return [Update(memory.id, each.older, cue.words) for each in judged if each.verdict == "linked"]

    def _arguable(self, memory: Memory, cue: Cue, vectors: FloatMatrix) -> list[Disagreement]:
        judged, texts = self._judged(memory, cue, vectors)
        if not judged or judged[0].verdict == "linked":  # it is known what this one is about
            return []
        older = texts[judged[0].older]
        if any((each.newer, each.older) == (memory.id, older.id) for each in self._store.updates([memory.id])):
            return []  # somebody has said so
        terms = subject_terms(older.text)
        shared = dict.fromkeys(word.strip(_EDGES) for word in memory.text.split() if subject_terms(word) & terms)
        pair = tuple(Statement(each.id, each.text, each.moment) for each in (older, memory))
        return [Disagreement(" ".join(shared), cue.words, (), pair)]

    def _judged(self, memory: Memory, cue: Cue, vectors: FloatMatrix) -> tuple[list[Judged], Mapping[str, Memory]]:
        cosines = {match.id: match.score for match in self._near(memory.space, vectors) if match.id != memory.id}
        texts = self._store.get(list(cosines))
        candidates = [(_dated(each), cosines[each.id]) for each in texts.values()]
        frequencies = self._store.frequencies(sorted(subject_terms(memory.text)), (memory.space,))
        return judge(_dated(memory), cue, candidates, frequencies), texts

    def _near(self, space: str, vectors: FloatMatrix) -> list[Match]:
        model = self._store.model()
        if model is None:
            return []
        return self._store.semantic(vectors.mean(axis=0), model, _NO_QUESTION, Filter(spaces=(space,)), CANDIDATES + 1)


def _dated(memory: Memory) -> Dated:
    return Dated(memory.id, memory.text, memory.moment, memory.session if memory.is_turn else None)

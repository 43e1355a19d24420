"""One store on several nodes.

What is about a space is asked of the node that has it, what is about memories of those that have them, and what is
about several spaces of several nodes at once. Each answer is the one that a single store with all spaces would give. A
call raises StoreUnavailable, which names the node, if it needs one that is away; what needs others goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace as _replace
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from nacre.errors import EmbedderMismatch, InvalidInput, NotFound, StoreBusy, StoreUnavailable
from nacre.interfaces import Claimed, StoreCopying, TimePage
from nacre.query.ast import Condition, ParsedQuery, Term, significant_terms
from nacre.ranking.scoring import best_first
from nacre.storage.nodes import exchange, merging, recall_log
from nacre.storage.nodes.connected import Connected, agreed_members
from nacre.storage.nodes.node import Node
from nacre.storage.nodes.placement import Placement
from nacre.storage.nodes.router import Router
from nacre.types.access_tokens import AccessToken
from nacre.types.backups import BackupRequest, BackupResult
from nacre.types.changes import ChangePage
from nacre.types.facts import Entity, Fact, FactQuery, NewEntity
from nacre.types.health import Finding
from nacre.types.kept_answers import Claim, KeptAnswer
from nacre.types.memory import (
    Entry,
    Event,
    Identity,
    Memory,
    Passages,
    Progress,
    Remembered,
    Replacement,
    Update,
)
from nacre.types.recall_log import NOTHING_UNWRITTEN, Outcome, Period, Receipt, ReceiptFilter, Retention, Unwritten
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, Match, Signals
from nacre.types.stats import FacetCounts, Frequencies, Stats
from nacre.types.transfer import ExportRequest, LoadCounts, Record
from nacre.types.views import Neighbours

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, FloatVector

T = TypeVar("T")


class NodesStore:
    """Implements `nacre.interfaces.Store`. Safe to share between threads, and the nodes between processes."""

    def __init__(
        self, nodes: Sequence[tuple[str, Callable[[], Node]]], *, create: bool = True, busy_timeout_ms: int = 10_000
    ) -> None:
        """`nodes` are addresses without passwords, in any order, each with what opens it.

        Raises InvalidInput unless they are all the nodes of one store; new ones become one, if `create`.
        """
        self._connected = [Connected(address, opened) for address, opened in nodes]
        try:
            members = agreed_members(self._connected, create=create)
        except BaseException:
            for each in self._connected:
                each.close()
            raise
        self._placement = Placement(self._connected, members)
        self._router = Router(self._placement, busy_timeout_ms)
        self._log = recall_log.NodesLog(self._router)
        self._counted: dict[str, tuple[int, int, int]] = {}  # the last sequence of each node
        self._away: frozenset[str] = frozenset()
        self._changes_of_away = 0

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written to any node."""
        return all(self._router.of_reachable(lambda node: node.read_only).values())

    @property
    def placement(self) -> Placement:
        """For what moves spaces between the nodes."""
        return self._placement

    # ---- writing

    def add(self, entries: Sequence[Entry], model: str | None, token_model: str | None = None) -> list[Remembered]:
        given = [each.passages for each in entries if each.passages is not None]

        def add(node: Node, spaces: list[str]) -> list[tuple[int, Remembered]]:
            places = [place for place, each in enumerate(entries) if each.memory.space in spaces]
            models = model if given else None, token_model if _has_tokens(given) else None
            with self._agreeing(node, *models) as keeps:
                written = node.add([entries[place] for place in places], model, token_model if keeps else None)
            return list(zip(places, written, strict=True))

        spaces = [each.memory.space for each in entries]
        added = dict(chain.from_iterable(self._router.write(spaces, add, place=True)))
        remembered = [added[place] for place in range(len(entries))]
        self._placement.remember({each.id: entry.memory.space for each, entry in zip(remembered, entries, strict=True)})
        return remembered

    def replace(self, changes: Sequence[Replacement], model: str | None, token_model: str | None = None) -> None:
        given = [each.entry.passages for each in changes if each.entry.passages is not None]

        def replace(node: Node, spaces: list[str]) -> None:
            own = [each for each in changes if each.entry.memory.space in spaces]
            models = model if given else None, token_model if _has_tokens(given) else None
            with self._agreeing(node, *models) as keeps:
                node.replace(own, model, token_model if keeps else None)

        self._router.write([each.entry.memory.space for each in changes], replace, place=True)

    def forget(self, ids: Sequence[str], at: datetime) -> None:
        self._router.write_ids(ids, lambda node, own: node.forget(own, at))

    def restore(self, ids: Sequence[str], at: datetime) -> None:
        self._router.write_ids(ids, lambda node, own: node.restore(own, at))

    def expire(self, now: datetime, limit: int) -> bool:
        return all(self._router.of_reachable(lambda node: node.expire(now, limit)).values())

    def purge(self, ids: Sequence[str], at: datetime) -> str | None:
        return recall_log.purge(self._router, ids, at)

    def embed(
        self, passages: Mapping[str, Passages], texts: Mapping[str, str], model: str, token_model: str | None = None
    ) -> int:
        space_of = self._router.spaces_of(list(texts))
        further = model in self.further_models()

        def embed(node: Node, spaces: list[str]) -> int:
            own = [each for each in texts if space_of.get(each) in spaces]
            tokens = token_model if _has_tokens(passages.values()) else None
            with self._agreeing(node, None if further else model, tokens) as keeps:
                return node.embed(
                    {each: passages[each] for each in own},
                    {each: texts[each] for each in own},
                    model,
                    token_model if keeps else None,
                )

        return sum(self._router.write(space_of.values(), embed))

    def add_model(self, model: str) -> None:
        for each in self._placement.every():
            each.asked(lambda node: node.add_model(model))

    def drop_model(self, model: str) -> None:
        for each in self._placement.every():
            each.asked(lambda node: node.drop_model(model))

    def switch_model(self, model: str) -> None:
        home, *others = self._placement.every()  # the others adopt what it has
        home.asked(lambda node: node.switch_model(model))
        for each in others:
            each.asked(lambda node: node.follow_model(model))

    def switch_token_model(self, model: str) -> None:
        for each in self._placement.every():
            each.asked(lambda node: node.switch_token_model(model))

    # ---- reading

    def model(self) -> str | None:
        return self._first(lambda node: node.model())

    def further_models(self) -> tuple[str, ...]:
        """Those of all nodes that answer. One that has joined since gets the others when they are added again."""
        first, *others = self._router.of_reachable(lambda node: node.further_models()).values()
        return tuple(each for each in first if all(each in several for several in others))

    def token_model(self) -> str | None:
        return self._first(lambda node: node.token_model())

    def get(self, ids: Sequence[str]) -> dict[str, Memory]:
        return merging.joined(self._router.of_ids(ids, lambda node, own: node.get(own)))

    def signals(self, ids: Sequence[str]) -> dict[str, Signals]:
        return merging.joined(self._router.of_ids(ids, lambda node, own: node.signals(own)))

    def neighbours(
        self, memory_ids: Sequence[str], before: int, after: int, *, turns: bool = False
    ) -> dict[str, Neighbours]:
        return merging.joined(
            self._router.of_ids(memory_ids, lambda node, own: node.neighbours(own, before, after, turns=turns))
        )

    def matching(self, ids: Sequence[str], condition: Condition) -> set[str]:
        return set[str]().union(*self._router.of_ids(ids, lambda node, own: node.matching(own, condition)))

    def view(self, *, latest: bool = False) -> AbstractContextManager[None]:  # noqa: ARG002
        return self._router.view()

    def sequence(self) -> tuple[int, int, int]:
        """The sums of all nodes. One that is away counts as it was, and the third number changes."""
        found = self._router.of_reachable(lambda node: node.sequence())
        self._counted.update({each.store_id: counted for each, counted in found.items()})
        away = frozenset(each.store_id for each in self._placement.members) - {each.store_id for each in found}
        if away != self._away:
            self._away = away
            self._changes_of_away += 1
        several = list(self._counted.values())
        return sum(each[0] for each in several), sum(each[1] for each in several), self._changes_of_away

    def next_expiry(self) -> datetime | None:
        expiries = self._router.of_reachable(lambda node: node.next_expiry()).values()
        return min((each for each in expiries if each is not None), default=None)

    def identified(self, identities: Sequence[Identity], now: datetime) -> dict[Identity, str]:
        def identified(node: Node, spaces: list[str]) -> dict[Identity, str]:
            return node.identified([each for each in identities if each[0] in spaces], now)

        return merging.joined(self._router.of_spaces([space for space, _ in identities], identified))

    def lexical(
        self, question: ParsedQuery, frequencies: Frequencies, where: Filter, recipe: Recipe, limit: int
    ) -> list[Match]:
        return self._best(where, limit, lambda node, own: node.lexical(question, frequencies, own, recipe, limit))

    def semantic(
        self,
        vector: FloatVector,
        model: str,
        question: ParsedQuery,
        where: Filter,
        limit: int,
        passages_weight: float = 0.0,
    ) -> list[Match]:
        def semantic(node: Node, own: Filter) -> list[Match]:
            return node.semantic(vector, model, question, own, limit, passages_weight)

        found = self._best(where, limit, semantic)
        if (
            not found and model not in self.further_models()
        ):  # no node may have been asked, or one that has no model yet
            self._check_model(model)
        return found

    def by_time(
        self, where: Filter, page: TimePage, *, must: Condition | None = None, forgotten: bool = False
    ) -> list[Memory]:
        found = self._filtered(where, lambda node, own: node.by_time(own, page, must=must, forgotten=forgotten))
        return merging.by_time(found, oldest_first=page.oldest_first, limit=page.limit)

    def facet_counts(self, question: ParsedQuery, where: Filter) -> FacetCounts:
        return merging.facets(self._filtered(where, lambda node, own: node.facet_counts(question, own)))

    def has_language(self, spaces: Sequence[str], languages: Sequence[str]) -> bool:
        return any(self._router.of_spaces(spaces, lambda node, own: node.has_language(own, languages)))

    def frequencies(self, tokens: Sequence[str], spaces: Sequence[str], prefixes: Sequence[str] = ()) -> Frequencies:
        found = merging.frequencies(
            self._router.of_spaces(spaces, lambda node, own: node.frequencies(tokens, own, prefixes))
        )
        return found._replace(prefixes=dict.fromkeys(prefixes, 0) | dict(found.prefixes))

    def spellings(self, word: str, spaces: Sequence[str]) -> list[tuple[str, int]]:
        found = self._router.of_spaces(spaces, lambda node, own: node.spellings(word, own))
        words = list(dict.fromkeys(each for several in found for each, _ in several))
        having = self.frequencies(words, spaces).having if len(found) > 1 else dict(chain.from_iterable(found))
        return [(each, having[each]) for each in words if each in having]

    def vectors(self, memory_id: str, model: str | None = None) -> FloatMatrix | None:
        return next(iter(self._router.of_ids([memory_id], lambda node, own: node.vectors(own[0], model))), None)

    def without_vectors(self, ids: Sequence[str], model: str | None = None) -> set[str]:
        return set[str]().union(*self._router.of_ids(ids, lambda node, own: node.without_vectors(own, model)))

    def pending(self, where: Filter | None, limit: int, model: str | None = None) -> list[tuple[str, str]]:
        return list(chain.from_iterable(self._where(where, lambda node, own: node.pending(own, limit, model))))[:limit]

    def pending_count(self, where: Filter | None, model: str | None = None) -> int:
        return sum(self._where(where, lambda node, own: node.pending_count(own, model)))

    @contextmanager
    def claimed(self, limit: int, *, tokens: bool, further: str | None = None) -> Iterator[Claimed]:
        with ExitStack() as claims:
            new: dict[str, str] = {}
            lacking: dict[str, str] = {}
            others: dict[str, str] = {}
            for each in self._placement.reachable():
                left = limit - len(new) - len(lacking) - len(others)
                if left > 0:
                    found = claims.enter_context(
                        each.asked(lambda node, left=left: node.claimed(left, tokens=tokens, further=further))  # type: ignore[misc]
                    )
                    new |= found.without_vectors
                    lacking |= found.without_tokens
                    others |= found.without_further
            yield Claimed(new, lacking, others)

    def token_vectors(
        self, ids: Sequence[str], model: str, vector: FloatVector, passages_max: int
    ) -> dict[str, tuple[tuple[int, bytes], ...]]:
        return merging.joined(
            self._router.of_ids(ids, lambda node, own: node.token_vectors(own, model, vector, passages_max))
        )

    def pending_tokens(self, where: Filter | None, limit: int) -> list[tuple[str, str]]:
        return list(chain.from_iterable(self._where(where, lambda node, own: node.pending_tokens(own, limit))))[:limit]

    def pending_tokens_count(self, where: Filter | None) -> int:
        return sum(self._where(where, lambda node, own: node.pending_tokens_count(own)))

    def history(self, memory_id: str) -> list[Event]:
        found = self._router.of_ids([memory_id], lambda node, own: node.history(own[0]))
        if not found:  # a purged memory has a history, and no place
            found = self._router.of_every(lambda node: node.history(memory_id))
        return max(found, key=len)

    def stats(self) -> Stats:
        every = self._router.of_every(lambda node: node.stats())
        return merging.stats(every, self.model(), self.token_model())

    # ---- facts and entities

    def add_facts(self, facts: Sequence[Fact], at: datetime) -> None:
        self._check_live([each.memory_id for each in facts])
        self._router.write(
            [each.space for each in facts],
            lambda node, own: node.add_facts([each for each in facts if each.space in own], at),
        )

    def drop_facts(self, ids: Sequence[str], at: datetime) -> None:
        space_of = self._router.spaces_of_facts(ids)
        missing = tuple(each for each in ids if each not in space_of)
        if missing:
            raise NotFound(missing, "see `nacre fact list`", what="fact")
        self._router.write(
            space_of.values(), lambda node, own: node.drop_facts([each for each in ids if space_of[each] in own], at)
        )

    def update_confidence(self, facts: Sequence[Fact]) -> None:
        self._router.write(
            [each.space for each in facts],
            lambda node, own: node.update_confidence([each for each in facts if each.space in own]),
        )

    def facts(self, query: FactQuery) -> list[Fact]:
        found = self._router.of_spaces(query.spaces, lambda node, own: node.facts(_replace(query, spaces=own)))
        return merging.newest_facts(found, query.limit)

    def facts_by_id(self, ids: Sequence[str]) -> list[Fact]:
        space_of = self._router.spaces_of_facts(ids)

        def facts(node: Node, own: list[str]) -> list[Fact]:
            return node.facts_by_id([each for each in ids if space_of.get(each) in own])

        return list(chain.from_iterable(self._router.of_spaces(space_of.values(), facts)))

    def facts_of(self, memory_ids: Sequence[str]) -> dict[str, tuple[Fact, ...]]:
        return merging.joined(self._router.of_ids(memory_ids, lambda node, own: node.facts_of(own)))

    def conflicting_facts(self, spaces: Sequence[str], at: datetime) -> list[list[Fact]]:
        """Groups of one node in the order of their writing; those of several, by the ids of their first facts."""
        found = self._router.of_spaces(spaces, lambda node, own: node.conflicting_facts(own, at))
        if len(found) < 2:
            return list(chain.from_iterable(found))
        return sorted(chain.from_iterable(found), key=lambda group: min(each.id for each in group))

    def relations(
        self,
        terms: Sequence[Term],
        spaces: Sequence[str],
        at: datetime,
        limit: int,
        frequencies: Frequencies | None = None,
    ) -> list[tuple[Fact, float]]:
        if frequencies is None:
            words = list(dict.fromkeys(term.text for term in significant_terms(terms) if not term.prefix))
            frequencies = self.relation_frequencies(words, spaces)
        given = frequencies
        found = self._router.of_spaces(spaces, lambda node, own: node.relations(terms, own, at, limit, given))
        return merging.best_relations(found, limit)

    def relation_frequencies(self, words: Sequence[str], spaces: Sequence[str]) -> Frequencies:
        return merging.frequencies(
            self._router.of_spaces(spaces, lambda node, own: node.relation_frequencies(words, own))
        )

    def relations_of(self, names: Sequence[str], spaces: Sequence[str], at: datetime, limit: int) -> list[Fact]:
        found = self._router.of_spaces(spaces, lambda node, own: node.relations_of(names, own, at, limit))
        return merging.newest_facts(found, limit)

    def put_entity(self, space: str, entity: NewEntity, memory_ids: Sequence[str]) -> None:
        space_of = self._router.found(memory_ids)
        missing = tuple(each for each in dict.fromkeys(memory_ids) if space_of[each] != space)
        if missing:
            raise NotFound(missing)
        self._router.write([space], lambda node, _: node.put_entity(space, entity, memory_ids), place=True)

    def drop_entity(self, space: str, name: str) -> bool:
        return any(self._router.write([space], lambda node, _: node.drop_entity(space, name)))

    def entities(self, spaces: Sequence[str], names: Sequence[str] | None, limit: int) -> list[Entity]:
        found = self._router.of_spaces(spaces, lambda node, own: node.entities(own, names, limit))
        return sorted(chain.from_iterable(found), key=lambda each: (each.space, each.name))[:limit]

    def entity_counts(self, spaces: Sequence[str]) -> dict[str, int]:
        return merging.most_frequent(self._router.of_spaces(spaces, lambda node, own: node.entity_counts(own)))

    def entities_of(self, memory_ids: Sequence[str]) -> dict[str, tuple[Entity, ...]]:
        return merging.joined(self._router.of_ids(memory_ids, lambda node, own: node.entities_of(own)))

    # ---- near-duplicates and updates: both memories are of one space

    def similar(self, memory_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return merging.joined(self._router.of_ids(memory_ids, lambda node, own: node.similar(own)))

    def link_updates(self, new: Sequence[Update]) -> None:
        self._of_pairs(new, lambda node, own: node.link_updates(own))

    def unlink_updates(self, pairs: Sequence[Update]) -> int:
        return sum(self._of_pairs(pairs, lambda node, own: node.unlink_updates(own)))

    def updates(self, memory_ids: Sequence[str]) -> list[Update]:
        found = self._router.of_ids(memory_ids, lambda node, own: node.updates(own))
        return sorted(chain.from_iterable(found), key=lambda each: (each.newer, each.older))

    def separate(self, memory_id: str) -> int:
        if not self._router.spaces_of([memory_id]):
            return self._router.of_home(lambda node: node.separate(memory_id))
        return sum(self._router.write_ids([memory_id], lambda node, own: node.separate(own[0])))

    # ---- the recall log

    def record(self, receipts: Sequence[Receipt], retention: Retention, now: datetime) -> None:
        self._log.record(receipts, retention, now)

    def mark(
        self,
        receipt_id: str | None,
        memory_ids: Sequence[str],
        outcome: Outcome,
        at: datetime,
        session: str | None = None,
        origin: str | None = None,
    ) -> list[str]:
        return self._log.mark(receipt_id, memory_ids, outcome, at, session, origin)

    def receipts(self, which: ReceiptFilter, unwritten: Unwritten = NOTHING_UNWRITTEN) -> list[Receipt]:
        return self._log.receipts(which, unwritten)

    def clear_receipts(self, spaces: Sequence[str], session: str | None, before: datetime | None) -> int:
        return self._log.clear(spaces, session, before)

    def last_receipt(self) -> int:
        return self._log.last()

    def delivered(
        self,
        sessions: Sequence[tuple[str, str]],
        limit: int,
        unwritten: Unwritten = NOTHING_UNWRITTEN,
        *,
        after: int = 0,
    ) -> dict[tuple[str, str], list[str]]:
        return self._log.delivered(sessions, limit, unwritten, after)

    def delivered_within(
        self, spaces: Sequence[str], session: str, period: Period, limit: int, unwritten: Unwritten = NOTHING_UNWRITTEN
    ) -> dict[str, bool]:
        return self._log.delivered_within(spaces, session, period, limit, unwritten)

    # ---- lenses

    def put_lens(self, space: str, name: str, body: str) -> None:
        self._router.write([space], lambda node, _: node.put_lens(space, name, body), place=True)

    def drop_lens(self, space: str, name: str) -> bool:
        return any(self._router.write([space], lambda node, _: node.drop_lens(space, name)))

    def lenses(self, space: str) -> dict[str, str]:
        return merging.joined(self._router.of_spaces([space], lambda node, _: node.lenses(space)))

    # ---- what a server keeps is on node 0, and what changed

    def changes(self, spaces: Sequence[str], since: int | None, limit: int) -> ChangePage:
        return exchange.changes(self._router, spaces, since, limit)

    def add_token(self, token: AccessToken, secret_hash: bytes) -> None:
        self._router.of_home(lambda node: node.add_token(token, secret_hash))

    def tokens(self) -> list[AccessToken]:
        return self._router.of_home(lambda node: node.tokens())

    def token(self, token_id: str) -> tuple[AccessToken, bytes] | None:
        return self._router.of_home(lambda node: node.token(token_id))

    def drop_token(self, token_id: str) -> bool:
        return self._router.of_home(lambda node: node.drop_token(token_id))

    def claim_answer(self, key: str, request: bytes, now: datetime) -> Claim:
        return self._router.of_home(lambda node: node.claim_answer(key, request, now))

    def keep_answer(self, ticket: str, answer: KeptAnswer, now: datetime) -> None:
        self._router.of_home(lambda node: node.keep_answer(ticket, answer, now))

    def drop_claim(self, ticket: str) -> None:
        self._router.of_home(lambda node: node.drop_claim(ticket))

    # ---- upkeep

    def check(self, now: datetime, *, fix: bool) -> list[Finding]:
        found: list[Finding] = []
        for member in self._placement.members:
            name = f"node {member.number}"
            try:
                findings = self._placement.connected(member.store_id).asked(lambda node: node.check(now, fix=fix))
            except StoreUnavailable as error:
                found.append(Finding("nodes", "problem", f"{name} is away: {error}", "start its server"))
                continue
            found += [_replace(each, text=f"{name}: {each.text}") for each in findings]
            arriving = self._placement.connected(member.store_id).asked(lambda node: node.in_state("arriving"))
            if arriving:
                text = f"spaces are being moved to {name}, or a move was broken off: {', '.join(arriving)}"
                found.append(Finding("nodes", "note", text, "move them again"))
        return found

    def backup(self, request: BackupRequest, progress: Callable[[Progress], None]) -> BackupResult:  # noqa: ARG002
        raise InvalidInput(
            "store",
            "nodes are backed up one by one by PostgreSQL's own tools, such as pg_dump or pg_basebackup; "
            "an export writes the memories of all nodes to a file",
        )

    def dump(self, request: ExportRequest) -> Iterator[Record]:
        return exchange.dump(self._router, request)

    def copying(self) -> StoreCopying:
        raise InvalidInput(
            "store", "names several nodes, and whole stores are copied to one; export and import its memories instead"
        )

    def load_mark(self) -> int:
        return exchange.load_mark(self._router)

    def load(
        self, records: Sequence[Record], mark: int, model: str | None = None, token_model: str | None = None
    ) -> LoadCounts:
        if model is not None or token_model is not None:
            self._router.of_home(lambda node: node.adopt_models(model, token_model))
        return exchange.load(self._router, records, mark, model, token_model)

    def rebuild(self) -> None:
        for each in self._placement.every():
            each.asked(lambda node: node.rebuild())

    def close(self) -> None:
        self._router.close()
        for each in self._connected:
            each.close()

    # ---- inside

    def _where(self, where: Filter | None, work: Callable[[Node, Filter | None], T]) -> list[T]:
        """What the nodes answer that have spaces of a filter; None is everything."""
        return self._router.of_every(lambda node: work(node, None)) if where is None else self._filtered(where, work)

    def _filtered(self, where: Filter, work: Callable[[Node, Filter], T]) -> list[T]:
        return self._router.of_spaces(where.spaces, lambda node, own: work(node, _replace(where, spaces=tuple(own))))

    def _best(self, where: Filter, limit: int, work: Callable[[Node, Filter], list[Match]]) -> list[Match]:
        found = self._filtered(where, work)
        return list(*found) if len(found) == 1 else best_first(chain.from_iterable(found))[:limit]

    def _first(self, work: Callable[[Node], str | None]) -> str | None:
        """What the first node says that answers and knows it."""
        found = self._router.of_reachable(work)
        if not found:
            self._placement.every()
        return next((found[each] for each in sorted(found, key=self._number) if found[each] is not None), None)

    def _number(self, connected: Connected) -> int:
        return next(each.number for each in self._placement.members if each.store_id == connected.store_id)

    @contextmanager
    def _agreeing(self, node: Node, model: str | None, token_model: str | None) -> Iterator[bool]:
        """Let a write to a node adopt no other models than node 0 has. Gives whether it may keep these token vectors.

        Node 0 adopts them, too, when the write is about to be committed: one that is refused before leaves no model.
        """
        adopted = node.model() is not None and (token_model is None or node.token_model() is not None)
        if model is None or adopted or node.store_id() == self._placement.home_id:
            yield True
            return
        stored, tokens = self._router.of_home(lambda home: (home.model(), home.token_model()))
        if stored not in (None, model):
            raise _mismatch(stored, model)
        keeps = tokens in (None, token_model)

        def adopt() -> None:
            given = token_model if keeps else None
            agreed, agreed_tokens = self._router.of_home(lambda home: home.adopt_models(model, given))
            if agreed != model:
                raise _mismatch(agreed, model)
            if given is not None and agreed_tokens != given:
                raise StoreBusy("store: another process has written with another token model meanwhile; try again")

        with node.confirming(adopt):
            yield keeps

    def _check_model(self, model: str) -> None:
        stored = self.model()
        if stored not in (None, model):
            raise _mismatch(stored, model)

    def _of_pairs(self, pairs: Sequence[Update], work: Callable[[Node, list[Update]], T]) -> list[T]:
        space_of = self._router.spaces_of([each for pair in pairs for each in (pair.newer, pair.older)])
        same = [
            (space, each)
            for each in pairs
            if (space := space_of.get(each.newer)) is not None and space_of.get(each.older) == space
        ]
        return self._router.write(
            [space for space, _ in same], lambda node, own: work(node, [each for space, each in same if space in own])
        )

    def _check_live(self, memory_ids: Sequence[str]) -> None:
        """Raises NotFound before anything is written on any node."""
        known = self.get(memory_ids)
        missing = tuple(
            each for each in dict.fromkeys(memory_ids) if each not in known or known[each].deleted is not None
        )
        if missing:
            raise NotFound(missing)


def _mismatch(stored: str | None, given: str) -> EmbedderMismatch:
    return EmbedderMismatch(
        f"embedder: the vectors of the nodes come from {stored}, not from {given}; run `nacre reembed`"
    )


def _has_tokens(several: Iterable[Passages]) -> bool:
    return any(each.tokens is not None for each in several)

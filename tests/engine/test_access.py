"""Confined to one or several spaces: for whoever is, others are as if they were not there, whatever they know of them.

Every verb is called twice, with ids and names of another space and with some that nobody has: the answers must be the
same, word by word, and nothing may have changed in the other space. With those of a space that the engine may see, the
answer must be that of an engine that may see all.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import nacre
from nacre import Filter, InvalidInput, Lens, Nacre, NacreError, NewEntity, NewFact, NewMemory, NotFound
from nacre.ids import content_hash
from nacre.types.transfer import (
    Dropped,
    EntityRecord,
    EventRecord,
    Header,
    LensRecord,
    LoadCounts,
    MemoryRecord,
    Record,
    SimilarRecord,
    UpdateRecord,
)

MARCH = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Names:
    """What one may know of a space."""

    space: str
    memory: str
    forgotten: str
    fact: str
    receipt: str  # of a search that delivered memories of both spaces
    entity: str
    lens: str
    session: str
    word: str


UNKNOWN = Names(
    "nowhere", "0nowhere00memory", "0nowhere0forgott", "0nowhere0000fact", "0nowhere0receipt", "Nobody", "nolens",
    "nosession", "gibberish",
)  # fmt: skip


@dataclass(frozen=True)
class World:
    """A store of three spaces that have much in common, and what is known of each."""

    path: Path
    own: Names
    second: Names  # which the engine may see as well, where it is confined to two
    foreign: Names


def fill(path: Path, space: str, word: str) -> tuple[str, str, str]:
    """Memories of a session that say something of an entity; ids of one, of a forgotten one, and of a fact."""
    name = word.capitalize()
    with nacre.open(path, space=space, embedder="none") as memory:
        memory.save_lens(Lens(name=f"lens-{word}", where=Filter(tags_any=[word])))
        facts = [NewFact(subject=name, predicate="lives in", object=f"{name} Town", type="location", relation=True)]
        one = memory.remember(
            NewMemory(
                text=f"tea of {word}",
                session="talk",
                position=1,
                tags=[word],
                created=MARCH,
                facts=facts,
                entities=[NewEntity(name=name, aliases=[f"{word}s"]), "Tea"],
                extract=False,
            )
        ).id
        memory.remember_many(
            NewMemory(text=text, session="talk", position=at, created=MARCH + at * DAY)
            for at, text in enumerate([f"the kettle of {word} is blue", f"The kettle of {word} is blue!"], 2)
        )
        gone = memory.remember(f"forgotten milk of {word}", created=MARCH).id
        memory.forget(gone)
        memory.search("tea kettle", session=f"asks-{word}")
        fact = memory.facts(memory_id=one)[0].fact.id
        rival = NewFact(subject=name, predicate="lives in", object=f"{word} hills", type="location", confidence=0.2)
        memory.remember(f"hills of {word}", created=MARCH + 9 * DAY, facts=[rival], extract=False)
        return one, gone, fact


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    path = tmp_path_factory.mktemp("confined") / "memories.db"
    words = {"mine": "mango", "ours": "orchid", "theirs": "xylophone"}
    found = {space: fill(path, space, word) for space, word in words.items()}
    receipts = {}
    with nacre.open(path, space="mine", embedder="none") as memory:
        receipts["mine"] = memory.receipts()[0].id
    for space in ("ours", "theirs"):
        with nacre.open(path, space=space, embedder="none") as memory:
            both = Filter(spaces=[space, "mine"])
            receipts[space] = memory.search("tea", where=both, session=f"asks-{words[space]}").receipt or ""
    own, second, foreign = (
        Names(space, *found[space], receipts[space], word.capitalize(), f"lens-{word}", f"asks-{word}", word)
        for space, word in words.items()
    )
    return World(path, own, second, foreign)


@pytest.fixture
def confined(world: World) -> Iterator[Nacre]:
    with nacre.open(world.path, space="mine", confined=True, embedder="none", log=False) as opened:
        yield opened


@pytest.fixture(params=[True, ("mine",), ("ours", "mine")], ids=["own", "one", "two"])
def confined_to(world: World, request: pytest.FixtureRequest) -> Iterator[Nacre]:
    """An engine confined to its own space, and one to two of three."""
    with nacre.open(world.path, space="mine", confined=request.param, embedder="none", log=False) as opened:
        yield opened


def in_space(names: Names) -> Filter:
    return Filter(spaces=[names.space])


Call = Callable[[Nacre, Names, Names], Any]  # with names of one's own, and some that should lead nowhere

FACT = NewFact(subject="tea", predicate="is", object="hot")

CALLS: dict[str, list[Call]] = {
    "remember": [
        lambda m, _, x: m.remember("a new text", space=x.space),
        lambda m, _, x: m.remember(NewMemory(text="a new text", space=x.space)),
        lambda m, _, x: m.remember("a new text", supersedes=x.memory),
    ],
    "remember_many": [lambda m, _, x: m.remember_many(["a new text", NewMemory(text="another", space=x.space)])],
    "remember_batches": [lambda m, _, x: list(m.remember_batches([NewMemory(text="a new text", space=x.space)]))],
    "update": [
        lambda m, _, x: m.update(x.memory, text="another text"),
        lambda m, _, x: m.update(x.forgotten, tags=["red"]),
    ],
    "forget": [
        lambda m, _, x: m.forget(x.memory),
        lambda m, own, x: m.forget([own.memory, x.memory, UNKNOWN.entity]),
        lambda m, _, x: m.forget([UNKNOWN.entity, x.forgotten]),
        lambda m, _, x: m.forget([x.memory, x.forgotten], missing_ok=True),
    ],
    "restore": [lambda m, _, x: m.restore(x.forgotten), lambda m, own, x: m.restore([own.forgotten, x.forgotten])],
    "purge": [
        lambda m, _, x: m.purge(x.memory),
        lambda m, own, x: m.purge([own.memory, x.forgotten, UNKNOWN.entity]),
    ],
    "search": [
        lambda m, _, x: m.search("tea", where=in_space(x)),
        lambda m, own, x: m.search("tea", where=Filter(spaces=[own.space, x.space])),
        lambda m, _, x: m.search(f"tea space:{x.space}"),
        lambda m, own, x: m.search(f"tea space:{x.space},{own.space}"),
        lambda m, own, x: m.search(f"tea space:{x.space}", where=in_space(own)),
        lambda m, _, x: m.search(f"{x.word} tea"),
        lambda m, _, x: m.search(f"entity:{x.entity}"),
        lambda m, _, x: m.search("tea", boost_entities=[x.entity]),
        lambda m, _, x: m.search("tea", lens=x.lens),
        lambda m, _, x: m.search("tea", session=x.session, omit_delivered=True),
        lambda m, _, __: m.search("tea kettle lives", merge_relations=True, collapse=False),
        lambda m, _, x: m.search(f"tag:{x.word}"),
    ],
    "context": [
        lambda m, _, x: m.context("tea", where=in_space(x)),
        lambda m, _, x: m.context(f"tea space:{x.space}", min_score=0.0),
        lambda m, _, x: m.context(f"{x.word} tea", min_score=0.0),
        lambda m, _, x: m.context("tea", session=x.session, min_score=0.0),
    ],
    "why": [
        lambda m, _, x: m.why("tea", x.memory),
        lambda m, _, x: m.why("tea", x.forgotten),
        lambda m, own, x: m.why("tea", own.memory, where=in_space(x)),
        lambda m, own, x: m.why(f"tea space:{x.space}", own.memory),
    ],
    "why_not": [
        lambda m, _, x: m.why_not("tea", x.memory),
        lambda m, own, x: m.why_not(f"tea space:{x.space}", own.memory),
    ],
    "related": [
        lambda m, _, x: m.related(x.memory),
        lambda m, own, x: m.related(own.memory, where=in_space(x)),
        lambda m, own, _: m.related(own.memory),
    ],
    "facets": [
        lambda m, _, x: m.facets("tea", in_space(x)),
        lambda m, _, x: m.facets("", in_space(x)),
        lambda m, _, x: m.facets(f"tea space:{x.space}"),
        lambda m, _, x: m.facets(f"space:{x.space}"),
        lambda m, _, __: m.facets(),
    ],
    "timeline": [
        lambda m, _, x: m.timeline(around=x.memory),
        lambda m, _, x: m.timeline(around=x.forgotten, forgotten=True),
        lambda m, own, x: m.timeline(around=own.memory, where=in_space(x)),
        lambda m, own, x: m.timeline(around=x.memory, where=in_space(own)),
        lambda m, _, x: m.timeline(where=in_space(x)),
        lambda m, _, x: m.timeline(cursor=f"{(MARCH + 99 * DAY).isoformat()}/{x.memory}"),
        lambda m, own, _: m.timeline(around=own.memory, span=50),
        lambda m, _, __: m.timeline(histogram="day"),
        lambda m, _, __: m.timeline(forgotten=True),
    ],
    "get": [
        lambda m, _, x: m.get(x.memory),
        lambda m, _, x: m.get(x.forgotten),
        lambda m, own, x: m.get([own.memory, x.memory, UNKNOWN.entity]),
        lambda m, own, x: m.get([UNKNOWN.entity, x.memory, own.memory], missing_ok=True, entities=True, neighbours=9),
    ],
    "every": [lambda m, _, x: list(m.every(in_space(x))), lambda m, _, __: list(m.every())],
    "history": [lambda m, _, x: m.history(x.memory), lambda m, _, x: m.history(x.forgotten)],
    "state_fact": [lambda m, _, x: m.state_fact(FACT, x.memory)],
    "add_facts": [lambda m, _, x: m.add_facts(x.memory, [FACT]), lambda m, _, x: m.add_facts(x.memory, [])],
    "drop_facts": [
        lambda m, _, x: m.drop_facts(x.fact),
        lambda m, own, x: m.drop_facts([own.fact, x.fact, UNKNOWN.entity]),
    ],
    "facts": [
        lambda m, _, x: m.facts(spaces=[x.space]),
        lambda m, own, x: m.facts(spaces=[own.space, x.space]),
        lambda m, _, x: m.facts(memory_id=x.memory),
        lambda m, _, x: m.facts(subject=x.entity),
        lambda m, _, x: m.facts(object=f"{x.entity} Town"),
        lambda m, _, __: m.facts(history=True),
    ],
    "reinforce": [
        lambda m, _, x: m.reinforce(x.fact),
        lambda m, _, x: m.reinforce(x.memory),
        lambda m, own, x: m.reinforce([own.memory, x.fact, UNKNOWN.entity]),
    ],
    "stale": [lambda m, _, x: m.stale([x.space]), lambda m, _, __: m.stale()],
    "conflicts": [lambda m, _, x: m.conflicts([x.space]), lambda m, _, __: m.conflicts()],
    "add_entity": [
        lambda m, _, x: m.add_entity("Kettle", memory_ids=[x.memory]),
        lambda m, own, x: m.add_entity("Kettle", memory_ids=[own.memory, x.memory]),
        lambda m, _, x: m.add_entity("Kettle", space=x.space),
    ],
    "drop_entity": [
        lambda m, _, x: m.drop_entity(x.entity),
        lambda m, _, x: m.drop_entity("Tea", space=x.space),
    ],
    "entities": [
        lambda m, _, x: m.entities(spaces=[x.space]),
        lambda m, _, x: m.entities([x.entity, f"{x.word}s"]),
        lambda m, _, __: m.entities(),
    ],
    "entity_counts": [lambda m, _, x: m.entity_counts(spaces=[x.space]), lambda m, _, __: m.entity_counts()],
    "related_entities": [
        lambda m, _, x: m.related_entities(x.entity),
        lambda m, own, x: m.related_entities(own.entity, spaces=[x.space]),
        lambda m, own, _: m.related_entities(own.entity, 3),
    ],
    "similar": [lambda m, _, x: m.similar(x.memory), lambda m, own, _: m.similar(own.memory)],
    "separate": [lambda m, _, x: m.separate(x.memory)],
    "unlink": [lambda m, o, x: m.unlink(o.memory, x.memory), lambda m, o, x: m.unlink(x.memory, o.memory)],
    "receipts": [
        lambda m, _, x: m.receipts(spaces=[x.space]),
        lambda m, _, x: m.receipts(memory_id=x.memory),
        lambda m, _, x: m.receipts(session=x.session),
        lambda m, _, x: m.receipts(before=x.receipt),
        lambda m, own, _: m.receipts(memory_id=own.memory),
        lambda m, _, __: m.receipts(),
    ],
    "clear_log": [
        lambda m, _, x: m.clear_log(spaces=[x.space]),
        lambda m, own, x: m.clear_log(spaces=[own.space, x.space]),
        lambda m, _, x: m.clear_log(session=x.session),
        lambda m, _, __: m.clear_log(before=MARCH),
    ],
    "mark": [
        lambda m, _, x: m.mark(x.memory, "used"),
        lambda m, own, x: m.mark([own.memory, x.memory], "wrong", receipt=own.receipt),
        lambda m, own, x: m.mark(own.memory, "wrong", receipt=x.receipt),
    ],
    "lenses": [lambda m, _, __: m.lenses()],
    "lens": [lambda m, _, x: m.lens(x.lens)],
    "drop_lens": [lambda m, _, x: m.drop_lens(x.lens)],
    "save_lens": [lambda m, _, x: m.save_lens(Lens(name="wide", where=in_space(x)))],
    "stats": [lambda m, _, __: m.stats()],
    "check": [lambda m, _, __: m.check()],
    "backup": [lambda m, _, __: m.backup("everything.db")],
    "count_tokens": [lambda m, _, x: m.count_tokens(x.memory)],
    "screen": [lambda m, _, x: m.screen(x.word)],
    "export": [lambda m, _, x: list(m.export(in_space(x)))[1:], lambda m, _, __: list(m.export())[1:]],
    "load": [
        lambda m, _, x: list(
            m.load([Header(store="x", at=MARCH, seq=0), LensRecord(x.space, "mine", json.dumps({"name": "mine"}))])
        ),
    ],
    "audit": [lambda m, _, x: list(m.audit(in_space(x))), lambda m, _, __: list(m.audit())],
    "changes": [lambda m, _, x: m.changes(0, spaces=[x.space]), lambda m, _, __: m.changes(0)],
    "create_token": [lambda m, _, x: m.create_token(spaces=[x.space])],
    "tokens": [lambda m, _, __: m.tokens()],
    "revoke_token": [lambda m, _, x: m.revoke_token(x.memory)],
    "authenticate": [lambda m, _, x: m.authenticate(x.memory)],
    "within": [lambda m, _, x: m.within(x.space).close()],
}
UPKEEP = {"close", "rebuild", "reembed"}  # of the whole store; they show nothing and change no memory


def verbs() -> set[str]:
    return {name for name in dir(Nacre) if not name.startswith("_")}


def test_no_verb_is_missing_here() -> None:
    """Who adds a verb has to say here what it does with ids and spaces of others."""
    assert CALLS.keys() | UPKEEP == verbs()


def outcome(call: Call, memory: Nacre, own: Names, given: Names) -> str:
    try:
        answer = repr(call(memory, own, given))
    except NacreError as error:
        answer = f"{type(error).__name__}: {error}"
    # What was delivered before fades from one microsecond to the next, and a file may grow.
    without_sizes = re.sub(r"(size|index)_bytes=\d+", "", answer)
    return re.sub(r"\d+\.\d{5,}", lambda number: f"{float(number[0]):.4g}", without_sizes)


def seen(path: Path, names: Names) -> list[Any]:
    """All there is in a space."""
    with nacre.open(path, space=names.space, embedder="none", log=False) as memory:
        live = list(memory.every())
        ids = [*(each.id for each in live), names.forgotten]
        return [
            live,
            memory.timeline(forgotten=True),
            [memory.get(each, entities=True)[0].facts for each in ids],
            [[(event.action, event.before) for event in memory.history(each)] for each in ids],
            [memory.similar(each) for each in ids],
            memory.facts(history=True),
            memory.entities(),
            memory.receipts(),
            memory.lenses(),
        ]


@pytest.mark.parametrize(
    ("verb", "number"), [(verb, number) for verb, calls in CALLS.items() for number in range(len(calls))]
)
def test_other_spaces_are_not_there(world: World, confined_to: Nacre, verb: str, number: int) -> None:
    call, spaces = CALLS[verb][number], (world.foreign, world.own, world.second)
    before = [seen(world.path, each) for each in spaces]
    known = outcome(call, confined_to, world.own, world.foreign)
    unknown = outcome(call, confined_to, world.own, UNKNOWN)
    for of_theirs, of_nobody in zip(astuple(world.foreign), astuple(UNKNOWN), strict=True):
        known = known.replace(of_theirs, of_nobody)
        assert of_theirs not in unknown
    assert known == unknown
    assert [seen(world.path, each) for each in spaces] == before


@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: m.get(x.memory)[0].text,
        lambda m, x: [hit.text for hit in m.search("tea", where=in_space(x)).hits],
        lambda m, x: [hit.text for hit in m.search(f"tea space:{x.space}").hits],
        lambda m, x: m.facts(spaces=[x.space])[-1].fact.subject,
        lambda m, x: m.receipts(spaces=[x.space])[0].session,
        lambda m, x: m.context("tea", where=in_space(x), min_score=0.0).text,
        lambda m, x: m.timeline(around=x.memory).entries,
    ],
)
def test_who_is_not_confined_sees_them(world: World, call: Callable[[Nacre, Names], Any]) -> None:
    """Else the test above would prove nothing."""
    with nacre.open(world.path, space="mine", embedder="none", log=False) as memory:
        assert "xylophone" in str(call(memory, world.foreign)).lower()


# ---------------------------------------------------------------- several spaces

OF_ALL = {
    "stats",
    "check",
    "backup",
    "create_token",
    "tokens",
    "revoke_token",
    "authenticate",
}  # which no confined engine may ask for
TO_BOTH = [(verb, number) for verb, calls in CALLS.items() for number in range(len(calls)) if verb not in OF_ALL]
TO_BOTH.remove(("export", 1))  # without a filter it has all that an engine may see


def copied(world: World, folder: Path, name: str) -> Path:
    to = folder / f"{name}.db"
    shutil.copyfile(world.path, to)
    return to


def without_new_ids(answer: str, world: World) -> str:
    """What is written now gets random ids."""
    known = {each for names in (world.own, world.second, world.foreign, UNKNOWN) for each in astuple(names)}
    return re.sub(r"'([0-9a-z]{16})'", lambda found: found[0] if found[1] in known else "'new'", answer)


@pytest.mark.parametrize(("verb", "number"), TO_BOTH)
def test_its_spaces_are_as_to_an_engine_that_sees_all(world: World, tmp_path: Path, verb: str, number: int) -> None:
    """Every verb reads and changes the second space of two as an unconfined engine does."""
    answers, left = [], []
    confinements: list[bool | list[str]] = [["mine", "ours"], False]
    for confined in confinements:
        path = copied(world, tmp_path, "all" if confined is False else "two")
        with nacre.open(
            path, space="mine", confined=confined, embedder="none", log=False, clock=lambda: MARCH + 400 * DAY
        ) as memory:
            answers.append(without_new_ids(outcome(CALLS[verb][number], memory, world.own, world.second), world))
        left.append(without_new_ids(repr([seen(path, each) for each in (world.own, world.second)]), world))
    assert answers[0] == answers[1]
    assert "confined" not in answers[0]
    assert left[0] == left[1]


@pytest.mark.parametrize("verb", sorted(OF_ALL))
def test_what_is_about_all_spaces_is_refused(world: World, verb: str) -> None:
    with nacre.open(world.path, space="mine", confined=["mine", "ours"], embedder="none", log=False) as memory:
        refused = outcome(CALLS[verb][0], memory, world.own, UNKNOWN)
    assert refused.startswith(f"AccessDenied: {verb}: ")
    assert "all spaces, and this memory is confined to 2 of them" in refused


def test_an_export_has_the_spaces_that_it_is_confined_to(world: World) -> None:
    with nacre.open(world.path, space="mine", confined=["mine", "ours"], embedder="none", log=False) as memory:
        exported = repr(list(memory.export())).lower()
    for each in ("mango", "orchid"):
        assert each in exported
    for each in ("xylophone", "theirs"):
        assert each not in exported


def test_a_query_chooses_among_its_spaces(world: World) -> None:
    with nacre.open(world.path, space="mine", confined=["mine", "ours"], embedder="none", log=False) as memory:
        for query, spaces in (
            ("tea", {"mine"}),  # what names none searches the engine's own
            ("tea space:ours", {"ours"}),
            ("tea space:ours,mine,theirs", {"mine", "ours"}),
            ("tea space:theirs", set()),
        ):
            assert {hit.memory.space for hit in memory.search(query).hits} == spaces, query
        assert memory.search("tea space:ours", where=in_space(world.own)).hits == ()
        with pytest.raises(InvalidInput) as refused:
            memory.search("tea", where=in_space(world.foreign))
    assert str(refused.value) == "where.spaces: only 'mine', 'ours' are allowed: this memory is confined to them"


@pytest.mark.parametrize(
    ("confined", "problem"),
    [
        (["ours"], "leaves out 'mine', which the engine works in; add it"),
        ([], "leaves out 'mine', which the engine works in; add it"),
        ("mine", "must be true, false or a list of spaces, not str"),
        (None, "must be true, false or a list of spaces, not NoneType"),
        (["mine", 1], "must be a text, not int"),
    ],
)
def test_what_it_is_confined_to_is_checked(path: Path, confined: Any, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        nacre.open(path, space="mine", confined=confined, embedder="none")
    assert str(refused.value) == f"confined: {problem}"
    assert not path.exists()


# ---------------------------------------------------------------- forged records of an export

LATER = MARCH + 2_000 * DAY


def forged_event(memory_id: str, action: str = "updated") -> EventRecord:
    before = {"text": "a lie"}
    return EventRecord(uid="a-b-c", at=LATER, action=action, memory_id=memory_id, space="mine", before=before)


def forged_entity(world: World, space: str) -> EntityRecord:
    ids = (world.foreign.memory,)
    return EntityRecord(space=space, name="Forged", type=None, kept=True, aliases=(), memory_ids=ids, changed=LATER)


def hash_of(names: Names) -> str:
    return content_hash(f"tea of {names.word}").hex()


@pytest.mark.parametrize("spaces", [["mine"], ["mine", "ours"]], ids=["one", "two"])
@pytest.mark.parametrize(
    "forged",
    [
        lambda w, _: Dropped("fact", "mine", w.foreign.fact, LATER),
        lambda w, _: Dropped("update", "mine", f"{w.foreign.memory} {w.foreign.forgotten}", LATER),
        lambda w, _: Dropped("lens", "theirs", w.foreign.lens, LATER),
        lambda w, _: Dropped("entity", "theirs", w.foreign.entity.lower(), LATER),
        lambda w, r: replace(r, events=(forged_event(w.foreign.memory),)),
        lambda w, r: replace(r, memory=replace(r.memory, id=w.foreign.memory, updated=LATER)),
        lambda _, r: replace(r, memory=replace(r.memory, space="theirs", updated=LATER)),
        lambda w, _: forged_event(w.foreign.memory, action="purged"),
        lambda w, _: UpdateRecord(w.foreign.memory, w.foreign.forgotten, "", LATER),
        lambda w, _: UpdateRecord(w.own.memory, w.foreign.memory, "", LATER),
        lambda w, _: SimilarRecord(w.own.memory, w.foreign.memory, (hash_of(w.own), hash_of(w.foreign)), apart=False),
        lambda w, _: SimilarRecord(w.foreign.memory, w.own.memory, (hash_of(w.foreign), hash_of(w.own)), apart=True),
        lambda w, _: forged_entity(w, "mine"),
        lambda w, _: forged_entity(w, "theirs"),
        lambda _w, _r: LensRecord("theirs", "mine", json.dumps({"name": "mine"}), LATER),
    ],
)
def test_a_forged_record_changes_no_other_space(
    world: World, tmp_path: Path, forged: Callable[[World, MemoryRecord], Record], spaces: list[str]
) -> None:
    path = copied(world, tmp_path, "forged")
    before = [seen(path, each) for each in (world.foreign, world.own)]
    with nacre.open(path, space="mine", confined=spaces, embedder="none", log=False) as memory:
        header, *records = memory.export()
        one = next(each for each in records if isinstance(each, MemoryRecord) and each.memory.id == world.own.memory)
        *_, done = memory.load([header, forged(world, one)])
    assert done == LoadCounts(left_out=1)
    assert [seen(path, each) for each in (world.foreign, world.own)] == before


def test_what_is_exported_confined_comes_in_with_its_links(world: World, tmp_path: Path) -> None:
    """Also where near-duplicates come in one batch with their memories."""
    with nacre.open(world.path, space="mine", confined=["mine", "ours"], embedder="none", log=False) as memory:
        records = list(memory.export())
    assert any(isinstance(each, SimilarRecord) for each in records)
    with nacre.open(tmp_path / "new.db", space="mine", confined=["mine", "ours"], embedder="none", log=False) as other:
        *_, done = other.load(records)
        assert done.left_out == 0
        assert [type(each) for each in other.export()] == [type(each) for each in records]


# ---------------------------------------------------------------- what is one's own is as always


def test_ones_own_space_may_be_named(world: World, confined: Nacre) -> None:
    where = in_space(world.own)
    for result in (confined.search("tea"), confined.search("tea", where=where), confined.search("tea space:mine")):
        assert result.hits[0].id == world.own.memory
        assert {hit.memory.space for hit in result.hits} == {"mine"}
    assert confined.timeline(where=where) == confined.timeline()
    assert confined.get(world.own.memory)[0].text == "tea of mango"
    assert confined.facts(spaces=["mine"]) == confined.facts()


def test_a_lens_of_ones_own(path: Path) -> None:
    with nacre.open(path, space="mine", confined=True, embedder="none") as memory:
        memory.remember_many([NewMemory(text=f"{tag} tea", tags=[tag]) for tag in ("red", "blue")])
        memory.save_lens(Lens(name="reds", where=Filter(tags_any=["red"])))
        assert [hit.text for hit in memory.search("tea", lens="reds").hits] == ["red tea"]
        memory.drop_lens("reds")


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda m: m.remember("x", space="theirs"), "space"),
        (lambda m: m.search("tea", where=Filter(spaces=["theirs"])), "where.spaces"),
        (lambda m: m.entities(spaces=["mine", "theirs"]), "spaces"),
    ],
)
def test_naming_another_space_says_why_not(confined: Nacre, call: Callable[[Nacre], Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        call(confined)
    assert str(refused.value) == f"{field}: only 'mine' is allowed: this memory is confined to it"


def test_all_that_are_missing_are_named_in_the_order_given(world: World, confined: Nacre) -> None:
    given = ["nobody", world.foreign.memory, "neither"]
    for call in (confined.get, confined.forget, confined.restore, confined.purge):
        with pytest.raises(NotFound) as missing:
            call(given)
        assert list(missing.value.ids) == given


# ---------------------------------------------------------------- with a log


@pytest.fixture
def path_of_two(path: Path) -> Path:
    with nacre.open(path, space="theirs", embedder="none") as theirs:
        theirs.remember("their green tea")
        theirs.remember("my green tea", space="mine")
        # Somebody who may see both has told this session of both.
        theirs.search("tea", where=Filter(spaces=["mine", "theirs"]), session="s")
    return path


def test_what_another_space_given_may_be_remembered(path_of_two: Path) -> None:
    """Else the answer would tell that it is there, and under which id."""
    with nacre.open(path_of_two, space="mine", confined=True, embedder="none") as memory:
        receipt = memory.remember("THEIR GREEN TEA", session="s")
        assert (receipt.duplicate, receipt.recalled) == (False, ())
        assert memory.get(receipt.id)[0].space == "mine"
        assert memory.remember("MY GREEN TEA", session="s").recalled


def test_the_log_shows_no_memory_of_another_space(path_of_two: Path) -> None:
    with nacre.open(path_of_two, space="mine", confined=True, embedder="none") as memory:
        own = memory.search("tea", session="s").hits
        assert [(hit.text, hit.delivered) for hit in own] == [("my green tea", True)]
        delivered = {each.memory_id for receipt in memory.receipts() for each in receipt.deliveries}
        assert delivered == {own[0].id}

"""What may be stored: nothing private through any door, and secrets as the policy says, through every door alike."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import pytest
from mcp import Client

import nacre
from command_line import Cli
from mcp_clients import asynchronous, engines_on, given, problem, served
from nacre import Filter, InvalidInput, NewFact, NewMemory
from nacre.analysis.turns import AGENT_TURN_CHARS_MAX
from nacre.embedders.hashing import Hashing
from nacre.hooks import events
from nacre.knowledge_graph.graph import KnowledgeGraph
from nacre.knowledge_graph.model import Edge, Node, Observations
from nacre.mcp_server import graph_tools
from nacre.mcp_server.tool import Tool
from nacre.mcp_server.tools import chosen
from nacre.query.lenses import Lens
from nacre.types.secrets import SecretPolicy

VALUE = "Zq7xkV9hunter"  # stands nowhere else
TEXT = f"the wifi password is {VALUE}"


def opened(path: Path, policy: SecretPolicy, **more: Any) -> nacre.Nacre:
    return nacre.open(path, embedder=Hashing(), secrets=policy, **more)


def on_disk(path: Path, value: str = VALUE) -> list[str]:
    """The files of a store that have this value in any case."""
    files = [each for each in path.parent.rglob("*") if each.is_file()]
    return [each.name for each in files if value.lower().encode() in each.read_bytes().lower()]


# Every way to write a string into a memory. Each must be screened.
PLACES: dict[str, dict[str, Any]] = {
    "text": {"text": TEXT},
    "summary": {"text": "t", "summary": TEXT},
    "tags[0]": {"text": "t", "tags": [f"password={VALUE}"]},
    "source": {"text": "t", "source": f"https://ada:{VALUE}@example.org/feed"},
    "metadata.password": {"text": "t", "metadata": {"password": VALUE}},
    "metadata.login.pwd": {"text": "t", "metadata": {"login": {"pwd": VALUE}}},
    "metadata.notes[1]": {"text": "t", "metadata": {"notes": ["x", TEXT]}},
    "metadata (key)": {"text": "t", "metadata": {f"password: {VALUE}": 1}},
    "facts[0].object": {"text": "t", "facts": [NewFact(subject="db", predicate="password", object=VALUE)]},
    "facts[0].quote": {"text": "t", "facts": [NewFact(subject="a", predicate="b", object="c", quote=TEXT)]},
    "facts[0].subject": {"text": "t", "facts": [NewFact(subject=f"password: {VALUE}", predicate="is", object="old")]},
    "entities[0]": {"text": "t", "entities": [f"password: {VALUE}"]},
}


# ---------------------------------------------------------------- the four policies


@pytest.mark.parametrize("place", PLACES)
def test_every_place_is_screened_by_every_policy(path: Path, place: str) -> None:
    fields = PLACES[place]
    with opened(path, "refuse") as memory:
        with pytest.raises(InvalidInput) as refused:
            memory.remember(NewMemory(**fields))
        assert refused.value.field == place
        assert VALUE not in str(refused.value)
        assert memory.stats().memories == 0
    with opened(path, "redact") as memory:
        receipt = memory.remember(NewMemory(**fields))
        assert [note.split(":")[0] for note in receipt.notes] == [place]
        assert not any(VALUE in note for note in receipt.notes)
        assert "[redacted: " in repr(memory.get(receipt.id, entities=True))
        assert list(memory.audit()) == []
        memory.purge(receipt.id)
    assert on_disk(path) == []
    with opened(path, "warn") as memory:
        receipt = memory.remember(NewMemory(**fields))
        assert [note.split(":")[0] for note in receipt.notes] == [place]
        assert not any(VALUE in note for note in receipt.notes)
        assert VALUE in repr(memory.get(receipt.id, entities=True))
        if not place.startswith("entities"):
            (found,) = memory.audit()
            assert (found.id, [each.field for each in found.places]) == (receipt.id, [place])
            assert VALUE not in repr(found)
        memory.purge(receipt.id)
    with opened(path, "off") as memory:
        receipt = memory.remember(NewMemory(**fields))
        assert receipt.notes == ()
        assert VALUE in repr(memory.get(receipt.id, entities=True))


def test_a_redacted_value_is_nowhere(path: Path) -> None:
    """Not in tokens, vectors, facts, history, receipts or files, wherever else in the memory it stands."""
    with opened(path, "redact") as memory:
        receipt = memory.remember(f"{TEXT}; {VALUE} works\nhost: db.internal", tags=[VALUE], metadata={"seen": [VALUE]})
        memory.update(receipt.id, text=f"password: {VALUE} since May", summary=f"it is {VALUE}")
        memory.state_fact(NewFact(subject="db", predicate="password", object=VALUE))
        memory.search(f"password: {VALUE}")
        assert memory.search(VALUE, mode="keyword").hits == ()
        same = memory.remember("password: [redacted: password] since May")
        assert same.duplicate
        (logged, *_) = [each.query for each in memory.receipts() if "redacted" in each.query]
        assert logged == "password: [redacted: password]"
        assert VALUE not in repr([memory.history(receipt.id), memory.facts(history=True), list(memory.every())])
        # The last search quotes the value alone, as no text does that is stored; so the log has it.
        memory.clear_log()
    assert on_disk(path) == []


def test_the_same_text_with_another_secret_is_the_same_once_redacted(path: Path) -> None:
    with opened(path, "redact") as memory:
        first = memory.remember(TEXT)
        again = memory.remember("the wifi password is Another9one")
        assert (again.id, again.duplicate) == (first.id, True)
        assert again.notes == ("text: secret redacted (password, characters 22 to 32)",)


def test_a_plain_text_and_a_memory_are_screened_alike(path: Path) -> None:
    with opened(path, "redact") as memory:
        receipts = memory.remember_many(["nothing here", TEXT, NewMemory(text=f"{TEXT}!"), "nor here"])
        assert [len(each.notes) for each in receipts] == [0, 1, 1, 0]


def test_one_refused_item_refuses_its_batch_or_only_itself(path: Path) -> None:
    with opened(path, "refuse") as memory:
        with pytest.raises(InvalidInput, match=r"text: has a secret \(password, characters 22 to 34\).*item 2"):
            memory.remember_many(["fine", TEXT])
        assert memory.stats().memories == 0
        refused: list[int] = []
        list(memory.remember_batches(["fine", TEXT, "too"], refused=lambda number, _: refused.append(number)))
        assert (memory.stats().memories, refused) == (2, [2])


def test_an_update_screens_what_it_changes_and_nothing_else(path: Path) -> None:
    with opened(path, "warn") as memory:
        old = memory.remember(TEXT).id
    with opened(path, "refuse") as memory:
        assert memory.update(old, tags=["wifi"]).notes == ()
        with pytest.raises(InvalidInput, match="summary: has a secret"):
            memory.update(old, summary=TEXT)
        with pytest.raises(InvalidInput, match=r"metadata\.password: has a secret"):
            memory.update(old, metadata={"password": VALUE})
    with opened(path, "warn") as memory:
        assert memory.update(old, summary=TEXT).notes == (
            "summary: secret stored as given (password, characters 22 to 34)",
        )


def test_facts_are_screened_when_they_are_added(path: Path) -> None:
    fact = NewFact(subject="router", predicate="password", object=VALUE)
    with opened(path, "warn") as memory:
        kept = memory.remember("the router").id
        assert memory.add_facts(kept, [fact])[0].notes == (
            "facts[0].object: secret stored as given (password, characters 1 to 13)",
        )
        assert memory.state_fact(fact).fact.notes != ()
        memory.purge([each.id for each in memory.every()])
        kept = memory.remember("the router").id
    with opened(path, "refuse") as memory:
        for call in (lambda: memory.add_facts(kept, [fact]), lambda: memory.state_fact(fact)):
            with pytest.raises(InvalidInput, match=r"facts\[0\].object: has a secret") as refused:
                call()
            assert VALUE not in str(refused.value)
    with opened(path, "redact") as memory:
        assert memory.add_facts(kept, [fact])[0].object == "[redacted: password]"
        assert memory.state_fact(fact).fact.object == "[redacted: password]"
        memory.rebuild()
    assert on_disk(path) == []


def test_names_of_entities_and_lenses_are_refused_not_redacted(path: Path) -> None:
    with opened(path, "redact") as memory:
        with pytest.raises(InvalidInput, match=r"name: has a secret \(password\)"):
            memory.add_entity(f"password: {VALUE}")
        with pytest.raises(InvalidInput, match="lens: has a secret"):
            memory.save_lens(Lens(name="mine", description=f"password: {VALUE}"))


def test_an_unknown_policy_is_refused_before_a_file_is_made(path: Path) -> None:
    with pytest.raises(InvalidInput, match="secrets: 'hide' is unknown; allowed: warn, redact, refuse, off"):
        nacre.open(path, secrets="hide")  # type: ignore[arg-type]
    assert not path.exists()


# ---------------------------------------------------------------- private


@pytest.mark.parametrize("policy", get_args(SecretPolicy))
def test_what_is_private_is_stored_by_no_policy(path: Path, policy: SecretPolicy) -> None:
    hidden = f"<private>{VALUE}</private>"
    with opened(path, policy) as memory:
        receipt = memory.remember(
            f"open {hidden} words",
            summary=hidden,
            source=f"from {hidden}",
            tags=[hidden, "kept"],
            metadata={"note": f"a {hidden}", hidden: 1, "list": [hidden]},
            facts=[NewFact(subject="a", predicate="b", object=hidden), NewFact(subject="a", predicate="b", object="c")],
            entities=[hidden, "Ada"],
        )
        found = memory.get(receipt.id, entities=True)
        assert found[0].text == "open words"
        assert (found[0].summary, found[0].source, found[0].tags) == (None, "from", ("kept",))
        assert found[0].metadata == {"note": "a", "list": [""]}
        assert [each.object for each in found[0].facts if each.origin == "given"] == ["c"]
        assert [each.name for each in found.entities[receipt.id]] == ["Ada", "a"]
        assert receipt.notes[0] == "text: the private part was not stored"
        memory.update(receipt.id, text=f"changed <PRIVATE why='x'>{VALUE}")
        assert memory.get(receipt.id)[0].text == "changed"
        memory.search(f"about <private>{VALUE}</private> it")
        memory.context(f"about <private>{VALUE}", session="s")
        assert {each.query for each in memory.receipts()} == {"about it", "about"}
        for call in (
            lambda: memory.remember(f"<private>{VALUE}</private>"),
            lambda: memory.remember("t", kind=f"<private>{VALUE}</private>"),
            lambda: memory.remember("t", namespace=f"x <private>{VALUE}</private>"),
            lambda: memory.remember("t", session=f"<private>{VALUE}"),
            lambda: memory.add_facts(receipt.id, [NewFact(subject="a", predicate="b", object=hidden)]),
            lambda: memory.state_fact(NewFact(subject="a", predicate="b", object=hidden)),
            lambda: memory.update(receipt.id, text=hidden),
            lambda: memory.add_entity(f"x {hidden}"),
            lambda: memory.save_lens(Lens(name="mine", description=hidden)),
        ):
            with pytest.raises(InvalidInput, match="private"):
                call()
        memory.rebuild()
    assert on_disk(path) == []


# ---------------------------------------------------------------- doors


def test_commands_say_it_and_store_it_as_the_policy_says(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    warned = cli("remember", TEXT)
    assert (warned.code, warned.err) == (0, "note: text: secret stored as given (password, characters 22 to 34)\n")
    assert cli("remember", TEXT, "--json").json["notes"] == [warned.err.removeprefix("note: ").strip()]
    refused = cli("remember", f"{TEXT} now", "--secrets", "refuse", "--json")
    assert (refused.code, refused.out) == (2, "")
    assert json.loads(refused.err)["error"]["field"] == "text"
    assert VALUE not in refused.err
    monkeypatch.setenv("NACRE_SECRETS", "redact")
    lines = "\n".join(json.dumps({"text": each}) for each in (f"{TEXT} line", "plain", "<private>all</private>"))
    stored = cli("remember", "--jsonl", "--json", stdin=lines)
    assert [json.loads(line)["notes"] for line in stored.out.splitlines()] == [
        ["text: secret redacted (password, characters 22 to 34)"],
        [],
    ]
    assert "private as a whole" in stored.err
    assert cli("fact", "add", "db", "password", VALUE, "--json").json["object"] == "[redacted: password]"
    assert "error: secrets: 'hide' is unknown" in cli("remember", "x", "--secrets", "hide").err.replace("--", "")


def test_audit_lists_what_is_stored_without_showing_it(cli: Cli, path: Path) -> None:
    assert cli("audit").code == 0
    with nacre.open(path, embedder=Hashing()) as memory:
        live = memory.remember(f"{TEXT}, and the card is 4111 1111 1111 1111", tags=["home"]).id
        gone = memory.remember(f"old {TEXT}").id
        was = memory.remember(f"once {TEXT}").id
        other = memory.remember(TEXT, space="other").id
        memory.remember("nothing here")
        memory.forget(gone)
        memory.update(was, text="nothing now")
    told = cli("audit")
    assert told.code == 4
    assert VALUE not in told.out
    assert "4111" not in told.out
    lines = told.out.splitlines()
    assert lines[1].startswith(
        "   text: password, characters 22 to 34  the wifi password is [password], and the card is"
    )
    assert lines[2].startswith("   text: card number, characters 53 to 71  ")
    assert lines[2].endswith("password], and the card is [card number]")
    found = {each["id"]: each for each in cli("audit", "--json").json}
    assert found.keys() == {live, gone, was}
    assert found[gone]["forgotten"]
    assert [each["field"] for each in found[was]["places"]] == ["history[7].text"]
    assert [each["id"] for each in cli("audit", "--json", "--tag", "home").json] == [live]
    assert [each["id"] for each in cli("audit", "--json", "--in-space", "other").json] == [other]
    assert cli("audit", "--json", "--tag", "nowhere").code == 0


def test_files_and_folders_lose_what_is_private_before_their_title_is_read(
    cli: Cli, tmp_path: Path, path: Path
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text(f"---\ntitle: Tea <private>{VALUE}</private>\n---\nAt four.", "utf-8")
    (folder / "b.md").write_text(f"<private>{VALUE}", "utf-8")
    told = cli("remember", "--file", str(folder))
    assert (told.code, told.out) == (0, "remembered 1 file (1 private skipped)\n")
    with nacre.open(path, embedder=Hashing()) as memory:
        assert [each.summary for each in memory.every()] == ["Tea"]
    named = cli("remember", "--file", str(folder / "b.md"))
    assert "is private as a whole" in named.error
    assert set(on_disk(path)) == {"a.md", "b.md"}


def test_turns_of_a_transcript_lose_what_is_private() -> None:
    given = [
        ("user", f"open <private>{VALUE}</private> words"),
        ("assistant", f"<private>{VALUE}</private>"),
        ("user", f"{'x' * (AGENT_TURN_CHARS_MAX - 5)} <private>{VALUE}</private>"),
        ("user", f"open <Private>{VALUE}"),
    ]
    found = list(events.memories(events.Said("cursor", "s", "g", given, 0)))
    assert [(each.text[:10], each.position) for each in found] == [("open words", 0), ("x" * 10, 1), ("open", 2)]
    assert VALUE not in repr(found)


@asynccontextmanager
async def client_of(path: Path, tools: Sequence[Tool]) -> AsyncIterator[Client]:
    engines = engines_on(path)
    try:
        async with Client(served(engines, tools, path.parent)) as client:
            yield client
    finally:
        engines.close()


@asynchronous
async def test_tools_say_it_too(path: Path) -> None:
    async with client_of(path, chosen("more,facts")) as client:
        answer = given(await client.call_tool("remember", {"text": TEXT}))
        assert answer["notes"] == ["text: secret stored as given (password, characters 22 to 34)"]
        assert "private as a whole" in problem(await client.call_tool("remember", {"text": "<private>x</private>"}))
        many = given(await client.call_tool("remember_many", {"memories": [{"text": f"{TEXT} 2"}, {"text": "plain"}]}))
        assert [len(each["notes"]) for each in many["remembered"]] == [1, 0]
        changed = given(await client.call_tool("update_memory", {"id": answer["id"], "summary": TEXT}))
        assert len(changed["memory"]["notes"]) == 1
        stated = given(
            await client.call_tool("state_fact", {"subject": "db", "predicate": "password", "object": VALUE})
        )
        assert len(stated["facts"][0]["notes"]) == 1


@asynchronous
async def test_the_graph_of_the_reference_server_is_screened(path: Path) -> None:
    async with client_of(path, graph_tools.TOOLS) as client:
        entity = {"name": "db", "entityType": "service", "observations": [TEXT, "<private>x</private>"]}
        made = await client.call_tool("create_entities", {"entities": [entity]})
        assert (made.meta or {})["nacre/notes"] == [
            "observation: secret stored as given (password, characters 22 to 34)",
            "observation: the private part was not stored",
        ]
        assert given(made)["entities"][0]["observations"] == [TEXT]


def test_the_graph_redacts_once_and_knows_it_again(path: Path) -> None:
    """Otherwise each call would store what it gives anew, because it is stored as something else."""
    with opened(path, "redact") as memory:
        for _ in range(3):
            graph = KnowledgeGraph(memory)
            graph.create_entities([Node("db password", "secret", (VALUE,))])
            graph.add_observations([Observations("db password", (VALUE, TEXT, f"<private>{VALUE}</private>"))])
            graph.create_relations([Edge("Ada", "password", VALUE)])
        (node,) = KnowledgeGraph(memory).read().nodes
        assert node.observations == ("[redacted: password]", "the wifi password is [redacted: password]")
        assert len(list(memory.every(Filter()))) == 4
        KnowledgeGraph(memory).delete_observations([Observations("db password", (TEXT,))])
        assert KnowledgeGraph(memory).read().nodes[0].observations == ("[redacted: password]",)
        with pytest.raises(InvalidInput, match="name: is private as a whole"):
            graph.create_entities([Node("<private>x</private>", "t")])
    assert on_disk(path) == []


def test_an_import_refuses_single_lines(cli: Cli, tmp_path: Path) -> None:
    lines = [
        {"type": "entity", "name": "db", "entityType": "service", "observations": [TEXT]},
        {"type": "entity", "name": "web", "entityType": "service", "observations": ["port 80"]},
    ]
    file = tmp_path / "memory.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    told = cli("import", str(file), "--secrets", "refuse")
    assert told.code == 2
    assert told.out == "imported 1 entity, 1 observation, 0 relations\n"
    assert "line 1: text: has a secret (password, characters 22 to 34)" in told.err
    assert VALUE not in told.err
    warned = cli("import", str(file), "--json")
    assert warned.json["notes"] == ["observation: secret stored as given (password, characters 22 to 34)"]


def test_a_server_screens_as_its_settings_say(path: Path) -> None:
    engines = engines_on(path, secrets="refuse")
    try:
        with pytest.raises(InvalidInput, match="secrets are refused"):
            engines.memory("default").remember(TEXT)
    finally:
        engines.close()

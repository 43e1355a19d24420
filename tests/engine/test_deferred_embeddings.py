"""Remembering at once, and embedding later."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import nacre
from command_line import Cli
from nacre.embedders.hashing import Hashing
from nacre.interfaces import Store
from nacre.ranking.scoring import briefly, describe, score

TEXTS = [f"note {number} about the harbour and the lighthouse" for number in range(40)]


class Counting(Hashing):
    """Knows how many texts it was asked to embed."""

    def __init__(self) -> None:
        super().__init__()
        self.embedded: list[int] = []

    def embed_passages(self, texts: Sequence[str]) -> Any:
        self.embedded.append(len(texts))
        return super().embed_passages(texts)


def test_what_is_deferred_is_found_by_words_at_once_and_by_meaning_later(path: Path) -> None:
    embedder = Counting()
    with nacre.open(path, embedder=embedder, defer_embeddings=True) as memory:
        receipts = memory.remember_many(TEXTS)
        assert embedder.embedded == []
        assert memory.stats().pending == len(TEXTS)
        assert memory.search("lighthouse", mode="keyword").hits != ()
        by_meaning = memory.search("lighthouse", mode="semantic")
        assert by_meaning.hits == ()
        assert by_meaning.notes == ("40 memories have no vectors yet: run `nacre reembed`",)
        assert memory.remember(TEXTS[3]).id == receipts[3].id  # the same text is there already, vectors or not
    with nacre.open(path, embedder=Hashing()) as memory:
        memory.remember("another note, embedded as usual")
        mixed = memory.search("note about the harbour", mode="semantic", limit=50)
        assert len(mixed.hits) == 1
        assert mixed.notes == ("40 memories have no vectors yet: run `nacre reembed`",)
        states = list(memory.reembed())
        assert (states[0].done, states[0].total) == (0, 40)
        assert states[-1].done == 40
        whole = memory.search("note about the harbour", mode="semantic", limit=50)
        assert len(whole.hits) == 41
        assert whole.notes == ()


def kept(store: Store, *, defer: bool) -> nacre.Nacre:
    return nacre.Nacre(store, Hashing(), defer_embeddings=defer, log=False, limits=nacre.Limits(results_cached=0))


@pytest.mark.parametrize("fusion", ["height", "rank", "boost"])
def test_what_has_no_vectors_yet_keeps_its_place_among_those_that_have(any_store: Store, fusion: Any) -> None:
    """It is not known how near it is, so what words say of it counts. With its vectors it is the first as well."""
    recipe, query = nacre.Recipe(fusion=fusion, semantic_floor=-1.0), "keeper of the lighthouse at the harbour"
    with kept(any_store, defer=False) as memory:
        memory.remember_many([f"{TEXTS[number]} and its keeper" for number in range(12)])
        before = memory.search(query, recipe=recipe, limit=50).hits
        memory._writer._embedder._defer = True
        best = memory.remember("The keeper of the lighthouse at the harbour").id
        hits = memory.search(query, recipe=recipe, limit=50).hits
        assert [hit.id for hit in hits if hit.id != best] == [hit.id for hit in before]
        assert best in [hit.id for hit in hits[: 3 if fusion == "rank" else 1]]  # by rank, words have little weight
        why = memory.why(query, best, recipe=recipe)
        assert why.hit is not None
        assert why.hit.cosine is None
        assert any("no vectors yet" in describe(reason) for reason in why.hit.reasons)
        assert "semantic" not in briefly(why.hit.reasons)
        assert score(why.hit.reasons) == why.hit.score
        assert (why.hit.relevance or 0) > (before[0].relevance or 0)
        list(memory.reembed())
        (reasons,) = [hit.reasons for hit in memory.search(query, recipe=recipe, limit=50).hits if hit.id == best]
        assert not any("no vectors yet" in describe(reason) for reason in reasons)


def test_where_nothing_has_vectors_words_decide(any_store: Store) -> None:
    with kept(any_store, defer=True) as memory:
        memory.remember_many(TEXTS)
        words = memory.search("note 7 about the lighthouse", mode="keyword", limit=20).hits
        both = memory.search("note 7 about the lighthouse", limit=20).hits
        assert [hit.id for hit in both] == [hit.id for hit in words]
        assert [hit.relevance for hit in both] == pytest.approx([hit.relevance for hit in words])


def test_embedding_later_gives_what_embedding_at_once_gives(tmp_path: Path) -> None:
    answers = []
    for number, defer in enumerate([False, True]):
        with nacre.open(tmp_path / f"{number}.db", embedder=Hashing(), defer_embeddings=defer, log=False) as memory:
            memory.remember_many(TEXTS)
            list(memory.reembed())
            hits = memory.search("note 7 about the lighthouse", limit=20).hits
            answers.append([(hit.text, hit.cosine, hit.bm25) for hit in hits])
    assert answers[0] == answers[1]


def test_an_interrupted_reembed_goes_on_where_it_stopped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nacre.engine.writer.BATCH_EMBEDDED", 8)
    first, second = Counting(), Counting()
    with nacre.open(path, embedder=first, defer_embeddings=True) as memory:
        memory.remember_many(TEXTS)
        for state in memory.reembed():
            if state.done >= 16:
                break
    with nacre.open(path, embedder=second) as memory:
        waiting = memory.stats().pending
        assert 0 < waiting <= 24
        list(memory.reembed())
        assert sum(second.embedded) == waiting  # nothing is embedded twice
        assert memory.stats().pending == 0
        assert list(memory.reembed())[-1].done == 0


def test_a_text_that_changes_while_it_is_embedded_is_embedded_anew(path: Path) -> None:
    with nacre.open(path, embedder=Hashing(), defer_embeddings=True) as writer:
        memory_id = writer.remember("the old text").id

        class Meddling(Hashing):
            def embed_passages(self, texts: Sequence[str]) -> Any:
                if "the old text" in texts:
                    writer.update(memory_id, text="the new text")
                return super().embed_passages(texts)

        with nacre.open(path, embedder=Meddling()) as memory:
            list(memory.reembed())
            assert memory.stats().pending == 0
            assert memory.search("the new text", mode="semantic").hits[0].cosine == pytest.approx(1, abs=1e-3)


REEMBED = """
import sys, time, nacre
from nacre.embedders.hashing import Hashing
import nacre.engine.writer
nacre.engine.writer.BATCH_EMBEDDED = 4
class Slow(Hashing):
    def embed_passages(self, texts):
        time.sleep(0.02)
        return super().embed_passages(texts)
with nacre.open(sys.argv[1], embedder=Slow()) as memory:
    for state in memory.reembed():
        print(state.done, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills a process")
def test_a_killed_reembed_loses_nothing(path: Path) -> None:
    with nacre.open(path, embedder=Hashing(), defer_embeddings=True) as memory:
        memory.remember_many(TEXTS)
    child = subprocess.Popen([sys.executable, "-c", REEMBED, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    reported = 0
    while reported < 8:
        reported = int(child.stdout.readline())
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    with nacre.open(path, embedder=Hashing()) as memory:
        assert memory.stats().memories == len(TEXTS)
        assert memory.stats().pending <= len(TEXTS) - reported  # what was reported is kept
        list(memory.reembed())
        assert memory.stats().pending == 0
        assert len(memory.search("note about the harbour", mode="semantic", limit=100).hits) == len(TEXTS)


# ---------------------------------------------------------------- by command line


def test_the_command_line_says_how_many_wait(cli: Cli, tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text("\n".join(json.dumps({"text": text}) for text in TEXTS))
    done = cli("remember", "--jsonl", "--file", str(lines), "--defer-embeddings")
    assert done.code == 0
    assert "remembered 40" in done.out
    assert done.err.strip() == "40 without vectors yet, found by words only: run `nacre reembed`"
    again = cli("remember", "--jsonl", "--file", str(lines), "--defer-embeddings")
    assert "remembered 0 (40 already stored)" in again.out
    found = cli("search", "lighthouse", "--json").json
    assert found["hits"]
    assert found["notes"] == ["40 memories have no vectors yet: run `nacre reembed`"]
    assert "embedded 40 memories" in cli("reembed").out
    assert cli("search", "lighthouse", "--json").json["notes"] == []


def test_one_memory_and_an_imported_graph(cli: Cli) -> None:
    assert cli("remember", "The lighthouse keeper is away", "--defer-embeddings").err.startswith("1 without vectors")
    graph = {"type": "entity", "name": "Harbour", "entityType": "place", "observations": ["It has a lighthouse"]}
    imported = cli("import", "-", "--defer-embeddings", stdin=json.dumps(graph) + "\n")
    assert imported.code == 0, imported.err
    assert "without vectors yet" in imported.err
    assert "embedded" in cli("reembed").out


def test_plain_remembering_says_nothing_of_vectors(cli: Cli) -> None:
    assert cli("remember", "The lighthouse keeper is away").err == ""

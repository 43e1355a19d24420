"""Token vectors of memories: made when they are remembered, added and replaced by `reembed`, and switched off."""

from __future__ import annotations

import logging
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
from nacre.embedders.hashing import TOKEN_FORMAT, Hashing
from nacre.types.tokens import TOKEN_PASSAGES_MAX
from store_checks import check_token_vectors

TEXTS = [f"note {number} about the harbour and the lighthouse" for number in range(40)]
MODEL = Hashing().token_fingerprint
TOKEN_BYTES = TOKEN_FORMAT.token_bytes


class Newer(Hashing):
    """The same vectors, other token vectors."""

    @property
    def token_fingerprint(self) -> str:
        return "newer tokens"


class Counting(Newer):
    def __init__(self) -> None:
        super().__init__()
        self.embedded = 0

    def embed_with_tokens(self, texts: Sequence[str]) -> Any:
        self.embedded += len(texts)
        return super().embed_with_tokens(texts)


class Broken(Hashing):
    def embed_with_tokens(self, texts: Sequence[str]) -> Any:
        raise RuntimeError(f"no projection of {len(texts)}")


class Halved(Hashing):
    def embed_with_tokens(self, texts: Sequence[str]) -> Any:
        vectors, packed = super().embed_with_tokens(texts)
        return vectors, [each[:-1] for each in packed]


def stored(memory: nacre.Nacre, *ids: str, model: str = MODEL) -> dict[str, Any]:
    return memory._store.token_vectors(ids, model, Hashing().embed_query("harbour"), 100)


def test_remembering_stores_the_token_vectors_of_each_passage(path: Path) -> None:
    with nacre.open(path, embedder=Hashing()) as memory:
        long = " ".join(f"word{number}" for number in range(600))
        ids = [receipt.id for receipt in memory.remember_many(["The lighthouse", long])]
        found = stored(memory, *ids)
        assert found[ids[0]] == ((0, Hashing().embed_with_tokens(["lighthouse"])[1][0]),)
        assert [place for place, _ in found[ids[1]]] == [0, 1, 2]
        assert len(found[ids[1]][0][1]) == Hashing().pieces_max * TOKEN_BYTES
        memory.update(ids[0], text="the keeper of the lighthouse")
        assert len(stored(memory, ids[0])[ids[0]][0][1]) == 2 * TOKEN_BYTES
        kept = sum(len(packed) for passages in stored(memory, *ids).values() for _, packed in passages)
        stats = memory.stats()
        assert (stats.token_bytes, stats.pending_tokens, stats.token_model) == (kept, 0, MODEL)


@pytest.mark.parametrize(("text", "tokens"), [("x", 1), ("!?… --", 0), ("the", 0), ("🙂", 0), ("a" * 5_000, 1)])
def test_odd_texts(path: Path, text: str, tokens: int) -> None:
    with nacre.open(path, embedder=Hashing()) as memory:
        memory_id = memory.remember(text).id
        assert sum(len(packed) for _, packed in stored(memory, memory_id)[memory_id]) == tokens * TOKEN_BYTES
        assert memory.stats().pending_tokens == 0


def test_a_text_of_a_million_characters_takes_bounded_storage(path: Path) -> None:
    with nacre.open(path, embedder=Hashing(), extract=False) as memory:
        memory_id = memory.remember("lighthouse " * 90_000).id
        found = stored(memory, memory_id)[memory_id]
        assert len(found) == TOKEN_PASSAGES_MAX
        assert memory.stats().token_bytes <= TOKEN_PASSAGES_MAX * Hashing().pieces_max * TOKEN_BYTES
        assert memory.stats().passages > 300


def test_without_token_vectors_nothing_is_written(path: Path) -> None:
    with nacre.open(path, embedder=Hashing(), token_vectors=False) as memory:
        memory.remember_many(TEXTS)
        list(memory.reembed())
        stats = memory.stats()
        assert (stats.pending, stats.pending_tokens, stats.token_bytes, stats.token_model) == (0, 40, 0, None)
        assert memory.search("lighthouse").notes == ()
    with nacre.open(path, embedder=Hashing()) as memory:
        assert [(state.done, state.total) for state in memory.reembed()][-1] == (40, 40)
        assert memory.stats().pending_tokens == 0
        assert list(memory.reembed())[-1].total == 0
    check_token_vectors(path)


def test_token_vectors_that_come_later_are_those_that_come_at_once(tmp_path: Path) -> None:
    found = []
    for number, options in enumerate([{}, {"defer_embeddings": True}, {"token_vectors": False}]):
        path = tmp_path / f"{number}.db"
        with nacre.open(path, embedder=Hashing(), **options) as memory:  # type: ignore[arg-type]
            ids = [receipt.id for receipt in memory.remember_many(TEXTS)]
        with nacre.open(path, embedder=Hashing()) as memory:
            before = [memory._store.vectors(each) for each in ids]
            list(memory.reembed())
            assert all(
                old is None or (old == memory._store.vectors(each)).all() for each, old in zip(ids, before, strict=True)
            )
            found.append(list(stored(memory, *ids).values()))
    assert len(found[0]) == len(TEXTS)
    assert found[0] == found[1] == found[2]


def test_token_vectors_of_another_model_are_ignored_until_reembed(path: Path) -> None:
    with nacre.open(path, embedder=Hashing()) as memory:
        old = memory.remember("the old lighthouse").id
    with nacre.open(path, embedder=Newer()) as memory:
        new = memory.remember("the new lighthouse").id
        assert len(memory.search("lighthouse", mode="semantic").hits) == 2
        assert stored(memory, old, new).keys() == {old}
        assert stored(memory, old, new, model="newer tokens") == {}
        assert memory.stats().pending_tokens == 1
        assert list(memory.reembed())[-1] == nacre.Progress(2, 2)
        assert stored(memory, old, new) == {}
        assert stored(memory, old, new, model="newer tokens").keys() == {old, new}


def test_an_interrupted_reembed_goes_on_where_it_stopped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nacre.engine.writer.BATCH_EMBEDDED", 8)
    with nacre.open(path, embedder=Hashing()) as memory:
        memory.remember_many(TEXTS)
    with nacre.open(path, embedder=Counting()) as memory:
        for state in memory.reembed():
            if state.done >= 16:
                break
    second = Counting()
    with nacre.open(path, embedder=second) as memory:
        waiting = memory.stats().pending_tokens
        assert 0 < waiting <= 24
        states = list(memory.reembed())
        assert [states[0].total, states[-1].done, second.embedded] == [waiting] * 3  # nothing is embedded twice
        assert [each.done for each in states] == sorted(each.done for each in states)
        assert memory.stats().pending_tokens == 0


def test_one_reembed_adds_vectors_and_token_vectors(path: Path) -> None:
    with nacre.open(path, embedder=Hashing(), token_vectors=False) as memory:
        memory.remember_many(TEXTS[:15])
    with nacre.open(path, embedder=Hashing(), defer_embeddings=True) as memory:
        memory.remember_many(TEXTS[15:])
        states = list(memory.reembed())
        assert (states[0].total, states[-1].done) == (40, 40)
        assert (memory.stats().pending, memory.stats().pending_tokens) == (0, 0)


def test_a_link_that_was_undone_stays_undone_when_token_vectors_are_added(path: Path) -> None:
    with nacre.open(path, embedder=Hashing(), token_vectors=False) as memory:
        older = memory.remember("Ada lives in the lighthouse of Lisbon").id
        newer = memory.remember("Ada no longer lives in the lighthouse of Lisbon").id
        assert memory.unlink(newer, older)
    with nacre.open(path, embedder=Hashing()) as memory:
        list(memory.reembed())
        assert memory.stats().pending_tokens == 0
        assert not memory.unlink(newer, older)


def test_two_reembeds_that_disagree_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nacre.engine.writer.BATCH_EMBEDDED", 8)
    with nacre.open(path, embedder=Hashing(), token_vectors=False) as memory:
        memory.remember_many(TEXTS)
    with nacre.open(path, embedder=Hashing()) as one, nacre.open(path, embedder=Newer()) as other:
        running = one.reembed()
        next(running)
        list(other.reembed())
        one._store.switch_token_model("third tokens")
        with pytest.raises(nacre.EmbedderMismatch, match="run `nacre reembed` in one process at a time"):
            list(running)


@pytest.mark.parametrize(
    ("embedder", "said"), [(Broken(), "no projection"), (Halved(), f"a multiple of {TOKEN_BYTES}")]
)
def test_an_embedder_without_working_token_vectors_still_embeds(
    path: Path, embedder: Hashing, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with nacre.open(path, embedder=embedder) as memory, caplog.at_level(logging.WARNING, "nacre"):
        memory.remember("the lighthouse")
        assert (memory.stats().pending, memory.stats().pending_tokens) == (0, 1)
        assert len(memory.search("lighthouse", mode="semantic").hits) == 1
    assert "stored without token vectors" in caplog.text
    assert said in caplog.text


REEMBED = """
import sys, time, nacre
from nacre.embedders.hashing import Hashing
import nacre.engine.writer
nacre.engine.writer.BATCH_EMBEDDED = 4
class Slow(Hashing):
    def embed_with_tokens(self, texts):
        time.sleep(0.02)
        return super().embed_with_tokens(texts)
with nacre.open(sys.argv[1], embedder=Slow()) as memory:
    for state in memory.reembed():
        print(state.done, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills a process")
def test_a_killed_reembed_keeps_what_it_reported(path: Path) -> None:
    with nacre.open(path, embedder=Hashing(), token_vectors=False) as memory:
        memory.remember_many(TEXTS)
    child = subprocess.Popen([sys.executable, "-c", REEMBED, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    reported = 0
    while reported < 8:
        reported = int(child.stdout.readline())
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    check_token_vectors(path)
    with nacre.open(path, embedder=Hashing()) as memory:
        assert memory.stats().pending_tokens <= len(TEXTS) - reported
        list(memory.reembed())
        assert (memory.stats().pending_tokens, memory.stats().memories) == (0, len(TEXTS))


# ---------------------------------------------------------------- by command line


def test_the_command_line_says_how_many_lack_them(cli: Cli) -> None:
    one = cli("remember", "The lighthouse keeper is away", "--no-token-vectors", "--json").json["id"]
    cli("remember", "The harbour is closed")
    counted = cli("stats")
    assert "(1 memory without)" in counted.out
    assert counted.err == "note: 1 memory has no token vectors; run `nacre reembed`\n"
    assert cli("stats", "--json").json["pending_tokens"] == 1
    assert "embedded 0 memories" in cli("reembed", "--no-token-vectors").out
    assert "embedded 1 memory" in cli("reembed").out
    assert cli("stats").err == ""
    cli("update", one, "--text", "The keeper is back", "--no-token-vectors")
    assert cli("stats", "--json").json["pending_tokens"] == 1


def test_the_setting_switches_them_off(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_TOKEN_VECTORS", "off")
    cli("remember", "The lighthouse keeper is away")
    answer = cli("stats", "--json").json
    assert (answer["token_bytes"], answer["token_model"], answer["pending_tokens"]) == (0, None, 1)
    assert cli("stats").err == ""  # as it was wished
    monkeypatch.setenv("NACRE_TOKEN_VECTORS", "maybe")
    assert "on or off is allowed" in cli("stats").err

"""`nacre export`, and `nacre import` of what it wrote."""

from __future__ import annotations

import csv
import json
import os
import stat
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

import nacre
from command_line import Cli
from nacre.embedders.hashing import Hashing
from nacre.types.facts import NewFact
from nacre.types.memory import NewMemory

NOTE = "# Title\n\n```python\nprint('---')\n```\n\nlast line"


@pytest.fixture
def filled(path: Path) -> Path:
    with nacre.open(path, embedder=Hashing(), log=False) as memory:
        memory.remember("Alice lives in Berlin", key="docs/a", tags=["x", "two words"], created=day(1))
        memory.remember(NOTE, space="other", metadata={"a": [1, None, "ü"]}, created=day(1))
        memory.remember("=1+1", summary="a: 'summary'", session="s", position=3, pinned=True, created=day(2))
        memory.remember(
            "<!-- nacre {} -->\nno fields\n",
            facts=[NewFact(subject="tea", predicate="is", object="hot", relation=True, confidence=0.5)],
            importance=0.9,
            created=day(2),
        )
        memory.forget(memory.remember("forgotten", created=day(2)).id)
    return path


def day(number: int) -> datetime:
    return datetime(2026, 3, number, 12, tzinfo=UTC)


def memories(path: Path) -> list[nacre.Memory]:
    with nacre.open(path, embedder=Hashing(), log=False) as memory:
        spaces = tuple(memory.stats().stored_memories)
        return [
            each
            for forgotten in (False, True)
            for each in memory.every(nacre.Filter(spaces=spaces), forgotten=forgotten)
        ]


# ---------------------------------------------------------------- JSON Lines


def test_json_lines_make_an_equal_store(cli: Cli, filled: Path, tmp_path: Path) -> None:
    out, copy = tmp_path / "all.jsonl", tmp_path / "copy.db"
    said = cli("export", str(out))
    assert said.code == 0
    assert said.out.startswith(f"exported 5 memories to {out}; the next one continues with --since ")
    done = cli("import", str(out), "--store", str(copy))
    assert (done.code, done.out) == (0, "imported 5 memories\n")
    assert "5 without vectors yet" not in done.out
    assert memories(copy) == memories(filled)
    again = cli("import", str(out), "--store", str(copy))
    assert again.out == "imported 0 memories (5 already stored)\n"
    assert cli("doctor", "--store", str(copy)).code == 0


@pytest.mark.slow
@pytest.mark.parametrize("kill_at", [0.1, 0.5, 0.9])
def test_an_import_that_was_killed_goes_on_when_it_is_repeated(
    cli: Cli, path: Path, tmp_path: Path, kill_at: float
) -> None:
    count = 6_000
    with nacre.open(path, embedder=None, log=False) as memory:
        kept = memory.remember_many(NewMemory(text=f"note number {n}", key=f"k{n}") for n in range(count))
        for n in range(0, count, 7):
            memory.update(kept[n].id, tags=["seventh"])
        memory.forget([each.id for each in kept[::11]])
    out, copy = tmp_path / "all.jsonl", tmp_path / "copy.db"
    assert cli("export", str(out)).code == 0
    command = [sys.executable, "-m", "nacre", "import", str(out), "--store", str(copy), "--embedder", "none"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and _stored(copy) < kill_at * count:
            time.sleep(0.01)
        process.kill()
    assert _stored(copy) < count or process.returncode == 0
    repeated = cli("import", str(out), "--store", str(copy), "--embedder", "none", "--json")
    assert repeated.code == 0
    assert memories(copy) == memories(path)
    with nacre.open(path, embedder=None) as old, nacre.open(copy, embedder=None) as new:
        for each in kept[::50]:
            histories = [[(e.action, e.before) for e in engine.history(each.id)] for engine in (old, new)]
            assert histories[0] == histories[1]
    assert cli("doctor", "--store", str(copy)).code == 0


def _stored(path: Path) -> int:
    """How many memories are in the file by now, forgotten ones included."""
    if not path.exists():
        return 0
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as db:
            return int(db.execute("SELECT count(*) FROM memories").get)
    except apsw.Error:  # it is just being made
        return 0


def test_vectors_come_with_it(cli: Cli, filled: Path, tmp_path: Path) -> None:
    out, copy = tmp_path / "all.jsonl", tmp_path / "copy.db"
    assert cli("export", str(out), "--vectors").code == 0
    assert cli("import", str(out), "--store", str(copy)).code == 0
    with (
        nacre.open(copy, embedder=Hashing(), log=False) as new,
        nacre.open(filled, embedder=Hashing(), log=False) as old,
    ):
        assert new.stats().pending == new.stats().pending_tokens == 0
        found = [engine.search("where does Alice live?", mode="semantic").hits for engine in (old, new)]
        assert found[0] == found[1] != ()


def test_the_same_goes_to_stdout(cli: Cli, filled: Path) -> None:
    assert filled.exists()
    printed = cli("export")
    assert printed.code == 0
    assert "exported 5 memories" in printed.err
    first, *others = map(json.loads, printed.out.splitlines())
    assert first["format"] == "nacre-export"
    assert [each["record"] for each in others].count("memory") == 5


def test_a_folder_gets_one_export_after_another(cli: Cli, filled: Path, tmp_path: Path) -> None:
    outbox, copy = tmp_path / "outbox", tmp_path / "copy.db"
    outbox.mkdir()
    assert "5 memories" in cli("export", str(outbox), "--since", "last").out
    cli("remember", "newer", "--store", str(filled))
    assert "exported 1 memory" in cli("export", str(outbox), "--since", "last").out
    names = sorted(outbox.iterdir(), key=lambda each: int(each.stem.split("-")[2]))
    assert len(names) == 2
    for each in names:
        assert cli("import", str(each), "--store", str(copy)).code == 0
    assert memories(copy) == memories(filled)
    with_filter = cli("export", str(outbox), "--since", "last", "--tag", "x")
    assert "exported 1 memory" in with_filter.out  # another filter begins anew
    assert cli("export", str(tmp_path / "no.jsonl"), "--since", "last").code == 2


def test_since_a_number_or_a_time(cli: Cli, filled: Path, tmp_path: Path) -> None:
    seq = json.loads(cli("export", str(tmp_path / "a.jsonl"), "--json").out)["seq"]
    cli("remember", "newer", "--store", str(filled))
    assert "exported 1 memory" in cli("export", str(tmp_path / "b.jsonl"), "--since", str(seq)).out
    assert "exported 6 memories" in cli("export", str(tmp_path / "b.jsonl"), "--since", "1d").out
    assert "exported 0 memories" in cli("export", str(tmp_path / "b.jsonl"), "--since", "2099-01-01").out
    assert cli("export", str(tmp_path / "b.jsonl"), "--since", "whenever").code == 2


def test_spaces_and_filters(cli: Cli, filled: Path, tmp_path: Path) -> None:
    assert filled.exists()
    for options, memories_ in (
        (["--space", "other"], 1),
        (["--in-space", "other"], 1),
        (["--tag", "x"], 1),
        (["--key-prefix", "docs/"], 1),
        (["--until", "2026-03-02"], 2),
        (["--tag", "nothing"], 0),
    ):
        said = cli("export", str(tmp_path / "a.jsonl"), *options)
        assert said.out.startswith(f"exported {memories_} memor"), options


def test_a_bad_line_is_listed_and_stops_no_other(cli: Cli, filled: Path, tmp_path: Path) -> None:
    assert filled.exists()
    out, copy = tmp_path / "all.jsonl", tmp_path / "copy.db"
    cli("export", str(out))
    lines = out.read_text("utf-8").splitlines()
    bad = json.loads(lines[1])
    bad["created"] = "yesterday"
    half = json.loads(lines[2])
    half["text"] = "half \ud800"
    out.write_text("\n".join([lines[0], json.dumps(bad), json.dumps(half), "no json", *lines[3:]]), "utf-8")
    done = cli("import", str(out), "--store", str(copy))
    assert done.code == 2
    for part in (
        "line 2: memory.created: must be a time",
        "line 3: record: has text that is no valid",
        "line 4: is not",
    ):
        assert part in done.err
    assert len(memories(copy)) == 3


def test_a_newer_format_is_refused(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "new.jsonl"
    file.write_text('{"format": "nacre-export", "version": 99}\n', "utf-8")
    done = cli("import", str(file), "--store", str(tmp_path / "copy.db"))
    assert (done.code, "has version 99 of the format" in done.err) == (2, True)
    assert not (tmp_path / "copy.db").exists()


def test_a_dry_run_writes_nothing(cli: Cli, filled: Path, tmp_path: Path) -> None:
    assert filled.exists()
    out, copy = tmp_path / "all.jsonl", tmp_path / "copy.db"
    cli("export", str(out))
    said = cli("import", str(out), "--dry-run", "--store", str(copy))
    assert "would read 1 header, 5 memory" in said.out
    assert not copy.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="permissions mean nothing there")
def test_an_export_is_private_and_takes_its_name_in_the_end(cli: Cli, filled: Path, tmp_path: Path) -> None:
    assert filled.exists()
    for name in ("a.jsonl", "a.csv", "notes"):
        made = tmp_path / name
        made_format = ["--format", "markdown"] if name == "notes" else []
        assert cli("export", str(made), *made_format).code == 0
        assert not stat.S_IMODE(made.stat().st_mode) & 0o077
    assert [each for each in tmp_path.iterdir() if each.name.endswith(".part")] == []
    os.chmod(tmp_path / "notes" / "default", 0o500)  # noqa: PTH101
    missing = cli("export", str(tmp_path / "no folder" / "a.jsonl"))
    assert (missing.code, "cannot be written" in missing.err) == (3, True)


def test_options_that_do_not_fit_are_refused(cli: Cli, filled: Path, tmp_path: Path) -> None:
    assert filled.exists()
    for options, field in (
        (["--format", "markdown"], "file"),
        (["--format", "parquet"], "file"),
        ([str(tmp_path / "a.csv"), "--vectors"], "vectors"),
        ([str(tmp_path / "a.csv"), "--since", "3"], "since"),
        ([str(tmp_path / "a.csv"), "--per", "day"], "per"),
        ([str(tmp_path), "--format", "csv"], "file"),
    ):
        said = cli("export", *options)
        assert (said.code, said.err.startswith(f"error: {field}:")) == (2, True), (options, said.err)


# ---------------------------------------------------------------- Markdown and tables


@pytest.mark.parametrize("per", ["memory", "day"])
def test_markdown_is_read_back(cli: Cli, filled: Path, tmp_path: Path, per: str) -> None:
    notes, copy = tmp_path / "notes", tmp_path / "copy.db"
    assert cli("export", str(notes), "--format", "markdown", "--per", per).out == f"exported 4 memories to {notes}\n"
    names = sorted(str(each.relative_to(notes)) for each in notes.rglob("*.md"))
    assert len(names) == (4 if per == "memory" else 3)
    assert NOTE in (notes / next(each for each in names if each.startswith("other"))).read_text("utf-8")
    before = {each: each.stat().st_mtime_ns for each in notes.rglob("*.md")}
    assert f"({len(names)} files unchanged)" in cli("export", str(notes), "--per", per).out
    assert {each: each.stat().st_mtime_ns for each in notes.rglob("*.md")} == before

    done = cli("import", str(notes), "--store", str(copy))
    assert (done.code, done.out) == (0, "imported 4 memories from nacre-markdown\n"), done.err
    kept = (
        "text", "key", "space", "kind", "tags", "summary", "session", "position", "metadata", "importance", "created",
        "pinned", "happened", "expires", "origin", "namespace", "source",
    )  # fmt: skip

    def fields(store: Path) -> list[tuple[object, ...]]:
        live = [each for each in memories(store) if each.deleted is None]
        return sorted((tuple(getattr(each, name) for name in kept) for each in live), key=repr)

    assert fields(copy) == fields(filled)
    facts = [said(store) for store in (copy, filled)]
    assert facts[0] == facts[1]
    assert "4 already stored" in cli("import", str(notes), "--store", str(copy)).out


def said(store: Path) -> list[tuple[object, ...]]:
    with nacre.open(store, embedder=Hashing(), log=False) as memory:
        found = [each.fact for each in memory.facts(spaces=["default", "other"], history=True)]
        return sorted((each.statement, each.type, each.confidence, each.relation, each.origin) for each in found)


def test_csv_has_a_row_for_each_memory_and_no_formula(cli: Cli, filled: Path, tmp_path: Path) -> None:
    assert filled.exists()
    out = tmp_path / "all.csv"
    assert cli("export", str(out)).out == f"exported 4 memories to {out}\n"
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [each["text"] for each in rows] == [
        "Alice lives in Berlin", NOTE, "'=1+1", "<!-- nacre {} -->\nno fields\n",
    ]  # fmt: skip
    assert json.loads(rows[0]["tags"]) == ["x", "two words"]
    assert json.loads(rows[1]["metadata"]) == {"a": [1, None, "ü"]}
    assert rows[2]["position"] == "3"


def test_parquet_has_types(cli: Cli, filled: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert filled.exists()
    out = tmp_path / "all.parquet"
    assert cli("export", str(out)).code == 0
    rows = parquet.read_table(out).to_pylist()
    assert [each["tags"] for each in rows] == [["x", "two words"], [], [], []]
    assert [each["created"] for each in rows] == [day(1), day(1), day(2), day(2)]
    assert [each["pinned"] for each in rows] == [False, False, True, False]


def test_an_empty_store_gives_empty_files(cli: Cli, path: Path, tmp_path: Path) -> None:
    with nacre.open(path, embedder=Hashing(), log=False):
        pass
    for name in ("a.jsonl", "a.csv", "a.parquet"):
        assert "exported 0 memories" in cli("export", str(tmp_path / name)).out
    assert cli("export", str(tmp_path / "notes"), "--format", "markdown").code == 0

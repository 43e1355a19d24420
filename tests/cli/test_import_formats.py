"""`nacre import` of everything but the reference server's graph: what is shown, counted, refused and written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import nacre
from command_line import Cli
from nacre.cli.import_ import FORMATS
from nacre.importers import registry


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "tea.csv"
    file.write_text("id,body,written,text\n1,Tea at four,2026-03-01T16:00:00Z,x\n2,Ash,2026-03-02T16:00:00Z,y\n")
    return file


MAPPED = ("--map", "text=body", "--map", "created=written")


def test_a_dry_run_shows_what_would_come_in_and_writes_nothing(cli: Cli, table: Path, path: Path) -> None:
    said = cli("import", str(table), *MAPPED, "--dry-run")
    assert (said.code, said.err) == (0, "")
    assert said.out == (
        "would import 2 memories from csv\nfrom 2026-03-01 to 2026-03-02\n"
        "   2026-03-01  Tea at four\n   2026-03-02  Ash\n"
    )
    assert not path.exists()
    looked = cli("import", str(table), *MAPPED, "--dry-run", "--json").json
    assert (looked["new"], looked["from"], looked["until"]) == (2, "2026-03-01T16:00:00Z", "2026-03-02T16:00:00Z")
    assert looked["first"][0] == {
        "key": "csv:tea.csv#1", "created": "2026-03-01T16:00:00Z", "session": None, "tags": [], "text": "Tea at four",
    }  # fmt: skip
    assert not path.exists()


def test_it_is_repeated_and_updates(cli: Cli, table: Path, path: Path) -> None:
    assert cli("import", str(table), *MAPPED).out == "imported 2 memories from csv\n"
    assert cli("import", str(table), *MAPPED).out == "imported 0 memories from csv (2 already stored)\n"
    table.write_text(table.read_text().replace("four", "five") + "3,Clay,,\n")
    assert cli("import", str(table), *MAPPED, "--dry-run").out.startswith(
        "would import 1 memory from csv (1 updated, 1 already stored)\n"
    )
    assert cli("import", str(table), *MAPPED, "--json").json == {
        "format": "csv", "new": 1, "changed": 1, "unchanged": 1, "refused": 0, "forgotten": 0,
    }  # fmt: skip
    with nacre.open(path, embedder="hashing") as memory:
        assert [each.text for each in memory.get(keys=["csv:tea.csv#1", "csv:tea.csv#3"])] == ["Tea at five", "Clay"]


def test_what_was_forgotten_here_does_not_come_back(cli: Cli, table: Path, path: Path) -> None:
    """Also where the source has changed since, or thousands of records lie between."""
    rows = "".join(f"{number},Record number {number},,\n" for number in range(100, 1_300))
    table.write_text(table.read_text() + rows)
    cli("import", str(table), *MAPPED)
    for key in ("1", "1200"):
        assert cli("forget", "--key", f"csv:tea.csv#{key}").code == 0
    table.write_text(table.read_text().replace("Tea at four", "Tea at five"))
    left_out = "note: 2 memories were forgotten here and left out; --again brings back what was forgotten\n"
    looked = cli("import", str(table), *MAPPED, "--dry-run")
    assert looked.out.startswith("would import 0 memories from csv (1,200 already stored)\n")
    assert looked.err == left_out
    done = cli("import", str(table), *MAPPED)
    assert (done.code, done.out, done.err) == (0, "imported 0 memories from csv (1,200 already stored)\n", left_out)
    assert cli("import", str(table), *MAPPED, "--json").json["forgotten"] == 2
    again = cli("import", str(table), *MAPPED, "--again", "--json").json
    assert (again["new"], again["unchanged"], again["forgotten"]) == (2, 1_200, 0)
    assert cli("import", str(table), *MAPPED, "--json").json["unchanged"] == 1_202  # it is live again
    with nacre.open(path, embedder="hashing") as memory:
        assert memory.get(keys=["csv:tea.csv#1"])[0].text == "Tea at five"


def test_bad_records_are_listed_and_cost_no_other(cli: Cli, table: Path) -> None:
    table.write_text(table.read_text() + "a,b,c,d,e\n5,,,\n")
    done = cli("import", str(table), *MAPPED)
    assert (done.code, done.out) == (2, "imported 2 memories from csv\n")
    assert done.err == (
        "line 4: has 5 cells; the first line names 4\nline 5: text: is blank (column 'body')\n"
        "error: file: 2 records were not imported; all others were. Repair them and run the command again: "
        "nothing is stored twice\n"
    )
    dry = cli("import", str(table), *MAPPED, "--dry-run", "--json")
    assert (dry.code, dry.json["refused"], dry.json["unchanged"]) == (2, 2, 2)
    assert json.loads(dry.err)["error"]["errors"][0] == {
        "record": "line 4", "field": None, "message": "has 5 cells; the first line names 4",
    }  # fmt: skip


def test_all_memories_may_be_given_fields(cli: Cli, table: Path, path: Path) -> None:
    options = (
        "--tag",
        "a",
        "--tag",
        "b",
        "--namespace",
        "drinks",
        "--limit",
        "1",
        "--name",
        "mine",
        "--space",
        "other",
    )
    assert cli("import", str(table), *MAPPED, *options).out == "imported 1 memory from csv\n"
    with nacre.open(path, space="other", embedder="hashing") as memory:
        (found,) = memory.every()
    assert (found.key, found.tags, found.namespace) == ("csv:mine#1", ("a", "b"), "drinks")


def test_stdin_is_recognised_too(cli: Cli, path: Path) -> None:
    lines = '{"text": "Tea", "id": 1}\n{"text": "Ash", "id": 2}\n'
    assert cli("import", "-", stdin=lines).out == "imported 2 memories from jsonl\n"
    assert cli("import", "-", stdin=lines).out == "imported 0 memories from jsonl (2 already stored)\n"
    assert cli("import", "-", stdin="\x01").err.startswith(
        "error: path: - is in no known format; name it with --format"
    )
    assert cli("import", "-", "--format", "markdown", stdin="# Tea\n\n#hot").code == 0
    with nacre.open(path, embedder="hashing") as memory:
        assert memory.get(keys="file:stdin")[0].tags == ("hot",)


def test_texts_in_other_encodings(cli: Cli, tmp_path: Path, path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_bytes("Café".encode("cp1252"))
    refused = cli("import", str(file))
    assert (refused.code, "a.md: cannot be read as UTF-8 text; name its encoding" in refused.err) == (2, True)
    assert cli("import", str(file), "--encoding", "cp1252").code == 0
    with nacre.open(path, embedder="hashing") as memory:
        assert [each.text for each in memory.every()] == ["Café"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--encoding", "rot13"), "encoding: 'rot13' is unknown"),
        (("--encoding", "a\x00b"), "encoding: "),
        (("--format", "yaml"), "format: 'yaml' is unknown; known: knowledge-graph, "),
        (("--map", "text"), "map: 'text' must be FIELD=COLUMN, for example text=body"),
        (("--map", "colour=text"), "map: 'colour' is no field; allowed: text, key, created"),
        (("--map", "text=nothing"), "map: 'nothing' is no column; there are: id, body, written, text"),
        (("--namespace", " "), "1 record was not imported"),
    ],
)
def test_options_that_make_no_sense(cli: Cli, table: Path, options: tuple[str, str], problem: str) -> None:
    table.write_text("id,body,written,text\n1,,,Tea\n")
    refused = cli("import", str(table), *options)
    assert refused.code == 2
    assert problem in refused.err


def test_options_that_say_nothing_of_a_format_are_refused(cli: Cli, tmp_path: Path, path: Path) -> None:
    note, graph = tmp_path / "a.md", tmp_path / "memory.jsonl"
    note.write_text("Tea")
    graph.write_text('{"type": "entity", "name": "Ada", "entityType": "person", "observations": []}')
    assert "map: is not for the format markdown; omit it" in cli("import", str(note), "--map", "text=a").error
    for option in ("--tag", "--namespace", "--name", "--limit=1"):
        given = [option] if "=" in option else [option, "x"]
        assert f"{option[2:].partition('=')[0]}: is not for the format knowledge-graph" in cli(
            "import", str(graph), *given
        ).error  # fmt: skip
    assert not path.exists()


def test_every_format_is_listed(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    listed = cli("import", "--json").json
    names = [each["format"] for each in listed["formats"]]
    assert names == list(FORMATS)
    assert {*registry.ELSEWHERE, *(each.name for each in registry.IMPORTERS)} <= {*names}
    assert listed["found"] == []
    (tmp_path / ".claude/projects").mkdir(parents=True)
    place = str(tmp_path / ".claude/projects")
    assert cli("import", "--list", "--json").json["found"] == [{"format": "claude-code", "path": place}]
    text = cli("import").out
    assert all(f"\n{name} " in f"\n{text}" for name in names)
    assert f"found on this machine\nnacre import {place}  claude-code\n" in text


def test_every_format_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/import.md").read_text("utf-8")
    for each in FORMATS:
        assert f"\n| `{each}` |" in page

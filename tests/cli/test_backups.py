"""`nacre backup`, and `nacre restore` of a backup."""

from __future__ import annotations

from pathlib import Path

import pytest

import nacre
from command_line import Cli
from nacre.serialization import encode
from nacre.storage.sqlite.backup import files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "backups"
    made.mkdir()
    return made


def test_a_store_is_backed_up_and_restored(cli: Cli, path: Path, folder: Path) -> None:
    cli("remember", "The kettle is in the kitchen")
    full = cli("backup", "--to", str(folder))
    (first,) = folder.glob("*.db")
    assert full.out.splitlines()[0] == f"full backup  {first}"
    assert full.out.splitlines()[1].startswith("   1 memory, 0 forgotten, 1 event, ")
    assert full.err == ""  # progress is for terminals
    cli("remember", "The lamp is in the hall")
    cli("backup", "--to", str(folder), "--since", "last")
    path.unlink()
    (last,) = folder.glob("*incremental.db")
    answer = cli("restore", str(last))
    assert answer.code == 0
    assert answer.out.startswith(f"restored  {path}\n   2 memories, 0 forgotten, 2 events, as of ")
    assert "The [lamp] is in the hall" in cli("search", "lamp").out


def test_json_is_what_the_library_answers(cli: Cli, path: Path, folder: Path) -> None:
    cli("remember", "The kettle is in the kitchen")
    made = cli("backup", "--to", str(folder), "--since", "last", "--keep", "7d", "--json").json
    (file,) = folder.glob("*.db")
    backup = encode.backup(files.read(file))
    assert made["backup"] == backup
    assert made["removed"] == []
    assert made["notes"] == ["this is the first backup of this store in the folder, and a full one"]
    assert cli("restore", str(file), "--force", "--json").json == {"restored": str(path), "backup": backup}


def test_what_is_refused_has_its_exit_code(cli: Cli, folder: Path) -> None:
    missing = cli("backup", "--to", str(folder))
    assert (missing.code, missing.out) == (3, "")
    assert "nothing to back up" in missing.err
    cli("remember", "The kettle is in the kitchen")
    assert (
        "keep: 'daily' must be numbers of days, weeks and months"
        in cli("backup", "--to", str(folder), "--keep", "daily").error
    )
    assert (
        "since: 'yesterday' is unknown; allowed: last"
        in cli("backup", "--to", str(folder), "--since", "yesterday").error
    )
    cli("backup", "--to", str(folder / "one.db"))
    assert "replace it with --force" in cli("restore", str(folder / "one.db")).error
    (folder / "one.db").write_bytes(b"nothing")
    damaged = cli("restore", str(folder / "one.db"), "--force")
    assert (damaged.code, damaged.out) == (3, "")
    assert "is not a backup of Nacre" in damaged.err


def test_an_id_is_no_file_and_has_nothing_to_force(cli: Cli) -> None:
    kept = cli("remember", "The kettle is in the kitchen", "--json").json["id"]
    cli("forget", kept)
    assert "force: needs a backup file" in cli("restore", kept, "--force").error
    assert cli("restore", kept).out == f"restored {kept}\n"


def test_a_store_of_another_model_is_backed_up(cli: Cli, folder: Path) -> None:
    cli("remember", "The kettle is in the kitchen")
    assert cli("backup", "--to", str(folder), "--embedder", "minilm").code == 0


def test_the_default_folder_is_made_for_a_restored_store(
    cli: Cli, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("remember", "The kettle is in the kitchen")
    cli("backup", "--to", str(folder / "one.db"))
    monkeypatch.delenv("NACRE_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert cli("restore", str(folder / "one.db")).code == 0
    with nacre.open(tmp_path / "data" / "nacre" / "nacre.db", embedder="hashing") as memory:
        assert memory.stats().memories == 1

"""`nacre copy`."""

from __future__ import annotations

from pathlib import Path

from command_line import Cli
from postgres_server import fresh_schemas, needs_postgres


def test_a_store_is_copied_and_copied_again(cli: Cli, path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    cli("remember", "The kettle is in the kitchen")
    answer = cli("copy", str(path), str(other))
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[:2] == [
        f"copied  {path}  to  {other}",
        "   1 memory added, 0 changed; compared by counts and checksums",
    ]
    cli("remember", "The lamp is in the hall")
    done = cli("copy", str(path), str(other), "--json").json
    assert (done["added"], done["updated"], done["verified"], done["counts"]["memories"]) == (1, 0, True, 2)
    assert "The [lamp] is in the hall" in cli("search", "lamp", "--store", str(other)).out


def test_a_target_with_other_memories_is_refused_unless_they_are_merged(cli: Cli, path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    cli("remember", "The kettle is in the kitchen")
    cli("remember", "The lamp is in the hall", "--store", str(other))
    assert "has memories or access tokens of its own" in cli("copy", str(path), str(other)).error
    merged = cli("copy", str(path), str(other), "--merge")
    assert "1 memory added, 0 changed; not compared: it has others, too" in merged.out


@needs_postgres
def test_each_database_has_its_schema(cli: Cli, path: Path, tmp_path: Path) -> None:
    cli("remember", "The kettle is in the kitchen")
    with fresh_schemas() as schemas:
        one, two = schemas.new(), schemas.new()
        for source, target, options in (
            (str(path), schemas.dsn, ["--target-schema", one]),
            (schemas.dsn, schemas.dsn, ["--schema", one, "--target-schema", two]),
            (schemas.dsn, str(tmp_path / "back.db"), ["--schema", two]),
        ):
            assert cli("copy", source, target, *options, "--json").json["verified"]
    assert "kettle" in cli("search", "kettle", "--store", str(tmp_path / "back.db")).out


def test_what_is_wrong_has_its_exit_code(cli: Cli, path: Path, tmp_path: Path) -> None:
    assert cli("copy", str(path), str(tmp_path / "other.db")).code == 3
    cli("remember", "The kettle is in the kitchen")
    assert "itself" in cli("copy", str(path), str(path)).error
    assert "schema" in cli("copy", str(path), str(tmp_path / "other.db"), "--target-schema", "x").error

"""docs/operations.md: its variables are those of the code, its errors exist, and its backups work."""

from __future__ import annotations

import re
from pathlib import Path

import nacre
from command_line import Cli
from nacre.config import settings

TEXT = (Path(__file__).parents[2] / "docs" / "operations.md").read_text("utf-8")


def test_every_setting_has_its_variable() -> None:
    named = dict(re.findall(r"^\| `(NACRE_\w+)` \| `(\w+)`:", TEXT, re.MULTILINE))
    assert named == {settings.variable(name): name for name in settings.MEANINGS}


def test_every_error_of_a_store_or_embedder_is_explained() -> None:
    named = set(re.findall(r"^\| `((?:Store|Embedder|Wrong)\w+)` \|", TEXT, re.MULTILINE))
    assert named == {each for each in nacre.__all__ if re.match(r"(Store|Embedder|Wrong)(?!Error)", each)}


def test_the_commands_for_backups_run(tmp_path: Path, cli: Cli) -> None:
    with nacre.open(tmp_path / "memories.db", embedder="hashing") as memory:
        memory.remember("Backups run at six")
    commands = re.findall(
        r"^(?:\$|0 6 .*?) +nacre ((?:backup|restore) [^#\n]*)",
        TEXT.split("## Backup")[1].split("\n## ")[0],
        re.MULTILINE,
    )
    assert len(commands) == 5
    folder = tmp_path / "backups"
    folder.mkdir()
    for command in commands:
        last = max(folder.glob("*.db"), key=lambda path: path.stat().st_mtime_ns, default=None)
        named = re.sub(r"/\S+\.db", str(last), command).replace("/var/backups/nacre", str(folder))
        assert cli(*named.split()).code == 0, command

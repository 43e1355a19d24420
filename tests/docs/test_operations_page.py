"""docs/operations.md: its variables are those of the code, its errors exist, and its backup works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import nacre
from nacre.config import settings

TEXT = (Path(__file__).parents[2] / "docs" / "operations.md").read_text("utf-8")


def test_every_setting_has_its_variable() -> None:
    named = dict(re.findall(r"^\| `(NACRE_\w+)` \| `(\w+)`:", TEXT, re.MULTILINE))
    assert named == {settings.variable(name): name for name in settings.MEANINGS}


def test_every_error_of_a_store_or_embedder_is_explained() -> None:
    named = set(re.findall(r"^\| `((?:Store|Embedder)\w+)` \|", TEXT, re.MULTILINE))
    assert named == {each for each in nacre.__all__ if re.match(r"(Store|Embedder)(?!Error)", each)}


def test_a_backup_of_an_open_store_has_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    with nacre.open("nacre.db", embedder="hashing") as memory:
        memory.remember("Backups run at three")
        exec(compile(block, "docs/operations.md", "exec"), {})
        memory.remember("This one came later")
    with nacre.open("backup.db", embedder="hashing") as copy:
        assert [hit.text for hit in copy.search("backups").hits] == ["Backups run at three"]
        assert copy.stats().memories == 1

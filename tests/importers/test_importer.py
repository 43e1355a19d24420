"""What all importers share: the files of a folder, read in order and counted, and nothing from outside of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from nacre.errors import InvalidInput
from nacre.importers import importer, registry
from nacre.importers.importer import Refused, Source, storable

TEXTS = frozenset((".md", ".txt"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "notes"
    for name in ("b.md", "a/c.TXT", "a/.hidden/d.md", ".e.md", "picture.png", "a/deep/er/f.md"):
        (found / name).parent.mkdir(parents=True, exist_ok=True)
        (found / name).write_text(name)
    return found


def names(source: Source) -> list[str]:
    return [each[0] for each in source.files(TEXTS) if not isinstance(each, Refused)]


def test_the_files_of_a_folder_come_in_order(folder: Path) -> None:
    source = Source(folder)
    assert names(source) == ["b.md", "a/c.TXT", "a/deep/er/f.md"]
    assert (source.total, source.name) == (7 + 14 + 4, "notes")


def test_a_folder_is_called_by_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert Source(Path()).name == Source(folder / "a" / "..").name == "notes"
    assert Source(folder, name="mine").name == "mine"


@pytest.mark.skipif(sys.platform == "win32", reason="needs links")
def test_links_lead_nowhere(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "up").symlink_to(tmp_path)
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe.md")
    assert names(Source(folder)) == ["b.md", "a/c.TXT", "a/deep/er/f.md"]


def test_folders_that_are_too_deep_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importer, "DEPTH_MAX", 3)
    (tmp_path / "1/2/3/4").mkdir(parents=True)
    for where in ("1/2/3", "1/2/3/4"):
        (tmp_path / where / "x.md").write_text("x")
    found = list(Source(tmp_path).files(TEXTS))
    assert [each[0] for each in found] == ["1/2/3/x.md", "1/2/3/4/"]
    assert isinstance(found[1], Refused)


def test_a_large_file_is_not_read_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importer, "FILE_BYTES_MAX", 10)
    file = tmp_path / "a.md"
    file.write_bytes(b"x" * 10)
    assert Source(file).content() == b"x" * 10
    file.write_bytes(b"x" * 11)
    with pytest.raises(InvalidInput, match="is too long; at most 10 bytes"):
        Source(file).content()
    with pytest.raises(InvalidInput, match="cannot be read"):
        Source(file).content(tmp_path / "none")


def test_what_no_store_keeps_is_replaced() -> None:
    assert storable("a\x00b\ud800c") == "a\ufffdb\ufffdc"
    assert storable("Zoë 人") == "Zoë 人"


def test_every_importer_has_a_name_of_its_own() -> None:
    found = [each.name for each in registry.IMPORTERS]
    assert len(set(found)) == len(found)
    assert all(registry.named(each) for each in found)
    assert all(each.about and "\n" not in each.about for each in registry.IMPORTERS)
    with pytest.raises(InvalidInput, match="'yaml' is unknown; known: "):
        registry.named("yaml")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path / ("x" * 300), tmp_path / "a\x00b"):
        with pytest.raises(InvalidInput, match="cannot be read"):
            registry.recognised(path)
    odd = tmp_path / "odd.xyz"
    odd.write_bytes(b"\x00\x01")
    with pytest.raises(InvalidInput, match="is in no known format; name it with --format"):
        registry.recognised(odd)

"""Which space belongs to a folder: one for each project, however the folder is named."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import nacre
from command_line import Cli
from nacre import validation
from nacre.config.project_space import repository_of, space_of
from nacre.mcp_server.spaces import space_of_root

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="file names are texts there")


@pytest.fixture(autouse=True)
def _no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))


def project(folder: Path, mark: str = ".git") -> Path:
    (folder / mark).mkdir(parents=True)
    return folder


# ---------------------------------------------------------------- projects


def test_a_space_has_the_name_of_its_project_and_a_mark(tmp_path: Path) -> None:
    assert re.fullmatch(r"shop-[0-9a-f]{8}", space_of(project(tmp_path / "shop")))


@pytest.mark.parametrize("mark", [".git", ".hg", ".jj", ".svn"])
def test_all_of_a_repository_is_one_project(tmp_path: Path, mark: str) -> None:
    shop = project(tmp_path / "shop", mark)
    (shop / "src" / "deep").mkdir(parents=True)
    assert repository_of(shop / "src" / "deep") == shop
    for each in (shop / "src", shop / "src" / "deep", shop / "src" / "not there yet", shop / mark):
        assert space_of(each) == space_of(shop)


def test_a_worktree_is_a_repository_whose_mark_is_a_file(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "src").mkdir(parents=True)
    (tree / ".git").write_text("gitdir: /elsewhere\n")
    assert space_of(tree / "src") == space_of(tree) != space_of(tmp_path)


def test_the_nearest_repository_counts(tmp_path: Path) -> None:
    outer = project(tmp_path / "outer")
    inner = project(outer / "vendor" / "inner")
    assert repository_of(inner) == inner
    assert space_of(inner) != space_of(outer)


def test_without_a_repository_each_folder_is_a_project(tmp_path: Path) -> None:
    assert repository_of(tmp_path) is None
    assert len({space_of(tmp_path), space_of(tmp_path / "a"), space_of(tmp_path / "a" / "b")}) == 3


def test_two_projects_of_one_name_differ(tmp_path: Path) -> None:
    one, other = space_of(project(tmp_path / "work" / "api")), space_of(project(tmp_path / "home" / "api"))
    assert one.rpartition("-")[0] == other.rpartition("-")[0] == "api"
    assert one != other


def test_a_home_folder_under_version_control_is_not_the_project_of_everything(tmp_path: Path) -> None:
    """Some keep their dotfiles so."""
    home = project(tmp_path / "home")
    assert repository_of(home) is None
    assert repository_of(home / "notes") is None
    assert space_of(home / "notes") != space_of(home)
    assert repository_of(project(home / "shop") / "src") == home / "shop"


def test_a_home_folder_that_is_a_link_is_none_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = project(tmp_path / "volumes" / "ada")
    link = tmp_path / "ada"
    link.symlink_to(real, target_is_directory=True)
    monkeypatch.setenv("HOME", str(link))
    monkeypatch.setenv("USERPROFILE", str(link))
    assert space_of(link / "notes") != space_of(link / "letters")


# ---------------------------------------------------------------- spellings


def test_links_lead_to_the_project_they_point_to(tmp_path: Path) -> None:
    shop = project(tmp_path / "shop")
    (shop / "src").mkdir()
    link = tmp_path / "elsewhere"
    link.symlink_to(shop / "src", target_is_directory=True)
    assert space_of(link) == space_of(shop)


def test_links_that_lead_in_a_circle_are_folders_that_are_not_there(tmp_path: Path) -> None:
    circle, ring = tmp_path / "circle", tmp_path / "ring"
    circle.symlink_to(circle)
    ring.symlink_to(ring)
    assert space_of(circle) != space_of(ring)


def test_a_folder_may_be_spelled_in_many_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = project(tmp_path / "home" / "shop")
    (shop / "src").mkdir()
    monkeypatch.chdir(shop / "src")
    for each in (".", "..", "../src/../..//shop", "~/shop", str(shop) + os.sep, shop):
        assert space_of(each) == space_of(shop), each


def test_the_root_folder_has_a_name_too() -> None:
    assert re.fullmatch(r"root-[0-9a-f]{8}", space_of(Path(Path.cwd().anchor)))


def test_a_blank_name_is_a_name(tmp_path: Path) -> None:
    assert re.fullmatch(r"root-[0-9a-f]{8}", space_of(tmp_path / " "))
    assert space_of(tmp_path / " ") != space_of(tmp_path / "  ")


def test_long_names_are_cut_and_still_differ(tmp_path: Path) -> None:
    one, other = space_of(tmp_path / ("x" * 200)), space_of(tmp_path / ("x" * 199 + "y"))
    assert len(one) == len(other) == 100 + 1 + 8
    assert one != other


def test_a_name_that_no_file_system_has_is_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert space_of(tmp_path / ("x" * 1_000)) != space_of(tmp_path / ("y" * 1_000))


@LINUX
def test_names_that_are_not_utf8_differ_and_can_be_stored(tmp_path: Path, path: Path) -> None:
    names = [os.fsdecode(each) for each in (b"caf\xe9", b"caf\xe8", "café".encode(), b"caf?")]
    spaces = [space_of(project(tmp_path / each) / "src") for each in names]
    assert len(set(spaces)) == 4
    for each in spaces:
        with nacre.open(path, space=each, embedder=None) as memory:
            memory.remember("something")
            assert memory.search("something").hits[0].memory.space == each


_BYTES = st.sampled_from([chr(0xDC00 + each) for each in (0x80, 0xE9, 0xFF)])  # as Python shows them in names
NAMES = st.text(
    st.characters(exclude_characters="/\\\0", exclude_categories=["Cs"]) | _BYTES, min_size=1, max_size=60
).filter(lambda name: name.strip("."))


@LINUX
@settings(max_examples=100, deadline=None)
@given(NAMES, NAMES)
@example("a b", "a%20b")
@example("\udce9", "?")
@example("K", "k")
def test_any_two_folders_have_spaces_of_their_own(one: str, other: str) -> None:
    spaces = [space_of(Path("/nowhere") / each) for each in (one, other)]
    assert (spaces[0] == spaces[1]) == (one == other)
    for each in spaces:
        assert validation.space_name(each, validation.LIMITS) == each


# ---------------------------------------------------------------- as clients name them


def test_a_root_is_the_folder_that_it_names(tmp_path: Path) -> None:
    for name in ("shop", "my shop", "50% off", "a%20b", "c#", "what?", "naïve ☕", "a;b", "a+b", "a&b=c", "[x]", "~"):
        folder = project(tmp_path / name)
        assert space_of_root((folder / "src").as_uri()) == space_of(folder), name


def test_a_root_need_not_encode_what_it_could() -> None:
    assert space_of_root("file:///nowhere/my shop") == space_of("/nowhere/my shop")
    assert space_of_root("file://localhost/nowhere/shop") == space_of("/nowhere/shop")
    assert space_of_root("FILE:///nowhere/shop/") == space_of("/nowhere/shop")


@LINUX
def test_roots_that_are_not_utf8_are_their_folders(tmp_path: Path) -> None:
    for each in (b"caf\xe9", b"caf\xe8"):
        folder = tmp_path / os.fsdecode(each)
        assert space_of_root(folder.as_uri()) == space_of(folder)


@pytest.mark.parametrize("uri", ["file:///C:/Users/me/my%20shop", "file:///c%3A/Users/me/my%20shop"])
def test_a_windows_root_has_a_space(uri: str) -> None:
    found = space_of_root(uri)
    assert found is not None
    assert re.fullmatch(r"my shop-[0-9a-f]{8}", found)


@pytest.mark.parametrize(
    "uri", ["", "shop", "/shop", "https://example.org/shop", "untitled:Untitled-1", "vscode-remote://ssh/shop"]
)
def test_what_is_no_file_uri_has_no_space(uri: str) -> None:
    assert space_of_root(uri) is None


@pytest.mark.parametrize("uri", ["file:///a%00b", "file://[::1/shop", "file:shop", "file:", "file://"])
def test_a_root_that_names_no_folder_has_no_space(uri: str) -> None:
    assert space_of_root(uri) is None


def test_a_root_with_a_name_that_no_file_system_has_does_not_fail() -> None:
    assert space_of_root("file:///nowhere/" + "x" * 1_000) == space_of("/nowhere/" + "x" * 1_000)


# ---------------------------------------------------------------- on the command line


def test_the_command_line_names_a_project_by_its_folder(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = project(tmp_path / "my shop")
    (shop / "src").mkdir()
    monkeypatch.chdir(shop / "src")

    def spaces(*arguments: str) -> list[str]:
        answer = cli("timeline", "--json", *arguments)
        assert answer.code == 0
        return [each["space"] for each in answer.json["entries"]]

    assert cli("remember", "The till is open", "--space", "folder:.", "--json").code == 0
    for each in ("folder:.", "folder:..", f"folder:{shop}", space_of(shop)):
        assert spaces("--space", each) == [space_of(shop)]
    monkeypatch.setenv("NACRE_SPACE", "folder:.")
    assert spaces() == [space_of(shop)]
    monkeypatch.delenv("NACRE_SPACE")
    (tmp_path / "config.toml").write_text(f"space = 'folder:{shop}'\n", "utf-8")
    assert spaces() == [space_of(shop)]
    assert spaces("--space", "folder:../..") == []
    assert "space" in cli("timeline", "--space", "folder:", "--json").error

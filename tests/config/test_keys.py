"""Where a key comes from: the first of flag, variables and config file; a file of one's own, or the keyring."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from types import ModuleType

import pytest

from command_line import Cli
from nacre.config import keys, settings
from nacre.errors import InvalidInput
from nacre.hooks import client
from nacre.types.key import Key

DIGITS = "0a" * 32


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def test_the_first_place_that_is_given_counts(config: Path) -> None:
    """And no setting holds a key, so that none can be shown."""

    def given(environment: dict[str, str], **flags: str) -> tuple[str, str]:
        found = settings.load(flags, {"NACRE_CONFIG": str(config), **environment})
        assert DIGITS not in repr(found)
        return found.key_file.value, found.key_file.source

    config.write_text("key_file = '~/a.key'")
    home = str(Path.home())
    assert given({}) == (f"{home}{os.sep}a.key", f"file {config}")
    assert given({"NACRE_KEY_FILE": "b.key"}) == ("b.key", "environment NACRE_KEY_FILE")
    both = {"NACRE_KEY_FILE": "b.key", "NACRE_KEY": DIGITS}
    assert given(both) == ("", "environment NACRE_KEY")
    assert given(both, key_file="keyring:work") == ("keyring:work", "flag --key-file")
    found = settings.load({}, {"NACRE_CONFIG": str(config), **both})
    assert keys.of_settings(found, both) == Key(DIGITS)
    config.unlink()
    assert keys.of_settings(settings.load({}, {"NACRE_CONFIG": str(config)}), {}) is None


def test_a_created_key_is_random_and_private(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "store.key"
    assert cli("key", "create", str(file)).code == 0
    first = keys.read(str(file))
    assert len(set(first.digits)) > 5
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 or os.name != "posix"
    again = cli("key", "create", str(file), "--json")
    assert again.code == 2
    assert "exists" in again.err
    assert first.digits not in again.err
    assert keys.read(str(file)) == first
    assert cli("key", "create", str(tmp_path / "no" / "folder")).code == 2


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_key_file_of_everybody_is_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "store.key"
    keys.create(str(file))
    keys.read(str(file))
    assert caplog.text == ""
    file.chmod(0o640)
    keys.read(str(file))
    assert "can be read by other users" in caplog.text


@pytest.mark.parametrize("content", [b"", b"secret", b"\xff" * 64, DIGITS.encode() * 2, b"x" * 5_000])
def test_what_is_not_a_key_is_refused_and_not_shown(cli: Cli, path: Path, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "store.key"
    file.write_bytes(content)
    answer = cli("remember", "a", "--key-file", str(file))
    assert "64 hexadecimal digits" in answer.error
    assert not content.strip() or content[:6].decode("ascii", "replace") not in answer.err
    assert "cannot be read" in cli("remember", "a", "--key-file", str(tmp_path)).error
    assert "`nacre key create FILE` makes" in cli("remember", "a", "--key-file", str(tmp_path / "none")).error
    assert not path.exists()


def test_a_key_in_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    class KeyringError(Exception): ...

    kept: dict[tuple[str, str], str] = {}
    ring, errors = ModuleType("keyring"), ModuleType("keyring.errors")
    vars(errors)["KeyringError"] = KeyringError
    vars(ring).update(
        errors=errors,
        get_password=lambda service, name: kept.get((service, name)),
        set_password=lambda service, name, digits: kept.update({(service, name): digits}),
    )
    monkeypatch.setitem(sys.modules, "keyring", ring)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    with pytest.raises(InvalidInput, match=r"is not in the keyring; `nacre key create keyring:work`"):
        keys.read("keyring:work")
    keys.create("keyring:work")
    assert keys.read("keyring:work").digits == kept["nacre", "work"]
    with pytest.raises(InvalidInput, match="exists"):
        keys.create("keyring:work")
    with pytest.raises(InvalidInput, match="needs the name"):
        keys.create("keyring:")

    def locked(*_: str) -> None:
        raise KeyringError("it is locked")

    vars(ring)["get_password"] = locked
    with pytest.raises(InvalidInput, match="it is locked"):
        keys.read("keyring:work")
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(InvalidInput, match=r"nacre-memory\[keyring\]"):
        keys.read("keyring:work")


def test_a_hook_keeps_its_key_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is asked to answer for a hook has the store open already."""
    sent: list[bytes] = []
    monkeypatch.setattr(client, "_asked", lambda _, data, __: sent.append(data))
    runtime = tmp_path / "nacre"
    runtime.mkdir(mode=0o700)
    (runtime / "1.sock").touch()
    environment = {"XDG_RUNTIME_DIR": str(tmp_path), "NACRE_KEY": DIGITS, "NACRE_SPACE": "work"}
    client.ask(["--key-file", "a.key"], b"{}", environment)
    assert b'"flags": {"key_file": "a.key"}' in sent[0]
    assert b"work" in sent[0]
    assert DIGITS.encode() not in sent[0]

"""Where the key of an encrypted store comes from: a file, the environment, or the platform's keyring."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nacre.errors import InvalidInput
from nacre.types.key import Key

if TYPE_CHECKING:
    from nacre.config.settings import Settings

VARIABLE = "NACRE_KEY"
KEYRING = "keyring:"  # before the name of a key in the platform's keyring
_SERVICE = "nacre"
_FILE_BYTES_MAX = 1_000
_log = logging.getLogger("nacre")


def of_settings(settings: Settings, environment: Mapping[str, str]) -> Key | None:
    """The key that the settings name; None if they name none."""
    if settings.key_file.source == f"environment {VARIABLE}":
        return Key(environment[VARIABLE], VARIABLE)
    return read(settings.key_file.value) if settings.key_file.value else None


def read(place: str) -> Key:
    """The key in a file, or in the keyring under `keyring:NAME`."""
    if place.startswith(KEYRING):
        return _from_keyring(place)
    try:
        with Path(place).expanduser().open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            digits = file.read(_FILE_BYTES_MAX).decode("ascii", "replace")
    except (OSError, ValueError, RuntimeError) as error:  # a NUL in the path, or a user without a home
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidInput(
            "key-file", f"{place} cannot be read ({reason}); `nacre key create FILE` makes a new key"
        ) from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        _log.warning("the key file %s can be read by other users; run `chmod 600` on it", place)
    return Key(digits, f"key-file {place}")


def create(place: str) -> None:
    """Write a new random key to a new file that only its owner can read, or to the keyring."""
    key = Key.random()
    if place.startswith(KEYRING):
        _into_keyring(place, key)
        return
    try:
        created = os.open(Path(place).expanduser(), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(created, "w", encoding="ascii") as file:
            file.write(f"{key.digits}\n")
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise InvalidInput("file", f"{place} exists; a key is not overwritten, give another path") from None
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidInput("file", f"{place} cannot be written ({error})") from None


def _from_keyring(place: str) -> Key:
    keyring, errors = _keyring()
    try:
        digits = keyring.get_password(_SERVICE, place.removeprefix(KEYRING))
    except errors as error:
        raise InvalidInput("key-file", f"{place} cannot be read from the keyring ({error})") from None
    if digits is None:
        raise InvalidInput("key-file", f"{place} is not in the keyring; `nacre key create {place}` makes a new key")
    return Key(digits, f"key-file {place}")


def _into_keyring(place: str, key: Key) -> None:
    keyring, errors = _keyring()
    name = place.removeprefix(KEYRING)
    if not name.strip():
        raise InvalidInput("file", f"{KEYRING} needs the name of a key after it")
    try:
        if keyring.get_password(_SERVICE, name) is not None:
            raise InvalidInput("file", f"{place} exists; a key is not overwritten, give another name")
        keyring.set_password(_SERVICE, name, key.digits)
    except errors as error:
        raise InvalidInput("file", f"{place} cannot be written to the keyring ({error})") from None


def _keyring() -> tuple[Any, type[Exception]]:
    """The package, and the base of its errors."""
    try:
        import keyring
        import keyring.errors
    except ImportError:
        raise InvalidInput(
            "key-file", "the keyring needs a package; install it with `pip install 'nacre-memory[keyring]'`"
        ) from None
    return keyring, keyring.errors.KeyringError

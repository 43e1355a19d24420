"""Which key opens a store's file?

Pages are encrypted and authenticated one by one by SQLite3 Multiple Ciphers (ChaCha20-Poly1305), in the file and in its
write-ahead log. It comes with the package apsw-sqlite3mc, which has the module `apsw`, too.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import apsw

from nacre.errors import StoreUnavailable, WrongKey
from nacre.types.key import Key

CIPHER = "chacha20"
INSTALL = "pip install --force-reinstall --no-deps apsw-sqlite3mc"

PLAIN = b"SQLite format 3\0"  # how a database begins that is not encrypted
_HEADER_BYTES = 24
_FRACTIONS = b"\x40\x20\x20"  # the last bytes of the header, the same in every database; the cipher leaves them plain
_TRIES = 5  # of a key, while another process may be writing the first page
_TRY_S = 0.01


def check(path: Path, key: Key | None) -> None:
    """Raises WrongKey if the key does not open the file. SQLite says the rest, also of a file that is no database.

    It has to be called before SQLite opens the file. SQLite takes a write-ahead log of another key for an empty one and
    deletes it when the connection is closed: after a crash, acknowledged writes would be lost.
    """
    if key is not None:
        require()
    encrypted = is_encrypted(path)
    if encrypted and key is None:
        raise WrongKey(
            f"store: {path} is encrypted; give its key with --key-file, NACRE_KEY_FILE, NACRE_KEY or the setting "
            "key_file, in Python with nacre.open(…, key=…)"
        )
    if encrypted and key is not None and not _opens(path, key):
        raise WrongKey(f"store: the key does not open {path}; give the one that it was last encrypted with")
    if encrypted is False and key is not None:
        raise WrongKey(
            f"store: {path} is not encrypted, and a key was given; encrypt it with "
            "`nacre rekey --new-key-file FILE`, or open it without a key"
        )


def unlock(db: apsw.Connection, key: Key | None) -> None:
    """Give a new connection its key. It is used as it is: random bits need no key derivation, which takes long."""
    if key is not None:
        db.execute(f"PRAGMA cipher = '{CIPHER}'")
        db.execute(f"PRAGMA key = 'raw:{key.digits}'")


def require() -> None:
    """Raises StoreUnavailable if this `apsw` cannot encrypt."""
    if getattr(apsw, "mc_version", None) is None:
        raise StoreUnavailable(
            "key: encryption needs the package apsw-sqlite3mc in place of apsw, which is installed; "
            f"install it with `{INSTALL}`"
        )


def is_encrypted(path: Path) -> bool | None:
    """Whether the file of a store is encrypted. None: there is none, it is empty, or it is something else."""
    header = _header(path.absolute())
    if header.startswith(PLAIN):
        return False
    return True if header[-len(_FRACTIONS) :] == _FRACTIONS else None


def needed(path: Path, key: Key | None) -> Key | None:
    """The key, unless the file is plain: a key that is set may be meant for another file, or for later."""
    return None if is_encrypted(path) is False else key


def uri(path: Path, parameters: str) -> str:
    """The path as a URI with parameters."""
    return f"file:{quote('/' + path.absolute().as_posix().removeprefix('/'))}?{parameters}"


def aside(path: Path) -> Path:
    """Where `rekey` writes the new file of a store."""
    real = Path(os.path.realpath(path))  # a symbolic link to a store stays one
    return real.with_name(f"{real.name}-rekey")


def cache_folder(path: Path) -> Path:
    """Where index files of a store are kept that is not encrypted."""
    return path.with_name(f"{path.name}-cache")


def tidy(path: Path, key: Key | None) -> None:
    """Remove what a killed `rekey` has left: its copy, and caches in plain form. The caller has the store open."""
    copy = aside(path)
    for each in (copy, copy.with_name(f"{copy.name}-journal")):
        with suppress(OSError):
            each.unlink(missing_ok=True)
    if key is not None:
        shutil.rmtree(cache_folder(path), ignore_errors=True)


def _header(path: Path) -> bytes:
    """The first bytes of a file; fewer if there are fewer, or if it cannot be read.

    SQLite reads them: closing a file that Python has opened would take away the locks that this process holds on it.
    """
    try:
        file = apsw.VFSFile("", str(path), [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
    except (apsw.Error, ValueError):
        return b""
    try:
        return file.xRead(_HEADER_BYTES, 0)
    except apsw.Error:
        return b""
    finally:
        file.xClose()


def _opens(path: Path, key: Key) -> bool:
    """Whether a key opens an encrypted file, whose locks and write-ahead log are not touched."""
    for _ in range(_TRIES):
        db = apsw.Connection(uri(path, "immutable=1"), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            unlock(db, key)
            db.execute("PRAGMA schema_version").fetchall()
        except apsw.Error:
            time.sleep(_TRY_S)
        else:
            return True
        finally:
            db.close()
    return False

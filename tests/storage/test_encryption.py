"""Encryption at rest: what `encrypted.py` says holds with the package, and without it a key is refused in words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

import nacre

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / ".mc"  # `make test` installs it there: it would take the place of apsw
KEY = "1f" * 32
without_package = pytest.mark.skipif(hasattr(apsw, "mc_version"), reason="this apsw can encrypt")


@pytest.mark.slow
@pytest.mark.skipif(not (PACKAGE / ".installed").exists(), reason="apsw-sqlite3mc is not installed in .mc")
def test_encrypted_stores() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "tests/storage/encrypted.py"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@without_package
def test_a_key_without_the_package_says_what_to_install(path: Path) -> None:
    for call in (
        lambda: nacre.open(path, embedder=None, key=KEY),
        lambda: nacre.rekey_store(path, new_key=KEY),
    ):
        with pytest.raises(nacre.StoreUnavailable, match=r"install it with `pip install .* apsw-sqlite3mc`"):
            call()
    assert not path.exists()


def test_an_encrypted_store_without_a_key_is_not_touched(path: Path) -> None:
    """SQLite would take the write-ahead log for that of no database, and delete it."""
    log = path.with_name(f"{path.name}-wal")
    path.write_bytes(os.urandom(16) + bytes.fromhex("1000020220402020") + os.urandom(4096 - 24))
    log.write_bytes(os.urandom(8192))
    before = path.read_bytes(), log.read_bytes()
    with pytest.raises(nacre.WrongKey, match="is encrypted; give its key"):
        nacre.open(path, embedder=None)
    assert (path.read_bytes(), log.read_bytes()) == before

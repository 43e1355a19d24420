"""Where servers of this user listen for hooks: one socket each, in a folder that nobody else can enter.

Imports little, because a hook runs for every prompt.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

SUFFIX = ".sock"
REQUEST_BYTES_MAX = 1_000_000


def folder(environment: Mapping[str, str]) -> str | None:
    """The folder of the sockets; None where the platform has no Unix sockets."""
    if not hasattr(os, "getuid"):
        return None
    runtime = environment.get("XDG_RUNTIME_DIR")
    if runtime:
        return os.path.join(runtime, "nacre")
    shared = environment.get("TMPDIR") or "/tmp"  # noqa: S108  # `is_private` checks the folder in it
    return os.path.join(shared, f"nacre-{os.getuid()}")


def is_private(path: str) -> bool:
    """Whether the folder belongs to this user and nobody else may enter it. In /tmp anyone can create one."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077

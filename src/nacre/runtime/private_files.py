"""Creates files and folders for their owner alone, whatever the umask.

What exists already keeps its permissions: whoever shares a store with a group has set them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

FILE_MODE = 0o600


def create_file(path: Path, mode: int = FILE_MODE) -> bool:
    """Create an empty file, unless there is one. Returns whether it did. Raises OSError where none can be created."""
    try:
        created = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
    except FileExistsError:
        return False
    os.close(created)
    _set_mode(path, mode)
    return True


def create_folder(path: Path, file_mode: int = FILE_MODE, *, parents: bool = False) -> None:
    """Create a folder whose users may do in it what they may do with a file of `file_mode`."""
    mode = folder_mode(file_mode)
    if parents:
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode)
    except FileExistsError:
        if not path.is_dir():
            raise
    else:
        _set_mode(path, mode)


def set_mode(path: Path, mode: int = FILE_MODE) -> None:
    """For a file that another library has created."""
    with suppress(OSError):
        _set_mode(path, mode)


def mode_of(path: Path) -> int:
    """Who may read and write a file; its owner alone if it cannot be looked at."""
    try:
        return path.stat().st_mode & 0o666 | FILE_MODE
    except OSError:
        return FILE_MODE


def folder_mode(file_mode: int) -> int:
    """The mode of a folder for files of this mode: whoever may read them may enter it."""
    return file_mode | (file_mode & 0o444) >> 2


def _set_mode(path: Path, mode: int) -> None:
    if os.name != "nt":  # there, permissions are inherited from the folder
        path.chmod(mode)

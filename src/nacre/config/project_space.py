"""Which space belongs to a folder? One for each project, so that projects do not leak into each other."""

from __future__ import annotations

import os
from pathlib import Path

PREFIX = "folder:"  # `--space folder:.` is the space of the project that one works in
_REPOSITORY = (".git", ".hg", ".jj", ".svn")
_NAME_CHARS_MAX = 100


def space_of(folder: str | os.PathLike[str]) -> str:
    """The space of the project that a folder is in: its name, and a mark that tells projects of one name apart."""
    import hashlib  # brings OpenSSL, and most searches name no folder

    path = Path(os.path.realpath(Path(folder).expanduser()))
    project = repository_of(path) or path
    # Marks of one folder are equal however it is spelled, where the file system does not mind.
    mark = hashlib.blake2s(os.path.normcase(project).encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    name = project.name.encode("utf-8", "replace").decode()[:_NAME_CHARS_MAX]
    return f"{name.strip() or 'root'}-{mark}"


def working() -> Path | None:
    """The folder that the process runs in, unless it is gone."""
    try:
        return Path.cwd()
    except OSError:
        return None


def repository_of(folder: Path) -> Path | None:
    """The nearest folder from here upwards that is under version control. A home folder that is counts for none."""
    home = Path(os.path.realpath(Path.home()))
    for each in (folder, *folder.parents):
        if each != home and any(_is_there(each / name) for name in _REPOSITORY):
            return each
    return None


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long, or a folder that must not be looked into
        return False

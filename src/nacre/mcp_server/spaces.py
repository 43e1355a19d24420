"""Which space does a client use, and which engine serves that space?

A space that was named when the server was started is used for all clients. Otherwise a client uses the space of its
first root, or that of the repository that the server runs in, or the default space.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote_to_bytes, urlparse

from nacre.config import project_space
from nacre.config.factory import models_from_settings, open_from_settings
from nacre.config.settings import Settings
from nacre.engine.engine import Nacre

ROOTS_WAIT_S = 2.0  # a client that has not listed its roots by then has none


class ClientSpaces(Protocol):
    """What the handlers of requests ask: the space of a client, and the engine of a space."""

    @property
    def fixed(self) -> str | None:
        """The space that was named for all clients; None where each client uses that of its project."""

    def fallback(self, folder: Path | None) -> str:
        """The space of a client that names no project, where the server runs in `folder`."""

    def memory(self, space: str) -> Nacre: ...


class SpaceEngines:
    """One engine for each space, opened when it is first needed and confined to it. All share one store and the same
    models."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._models = models_from_settings(settings)
        self._engines: dict[str, Nacre] = {}
        self._lock = threading.Lock()

    @property
    def fixed(self) -> str | None:
        space = self._settings.space
        return None if space.source == "default" else space.value

    def fallback(self, folder: Path | None) -> str:
        if self.fixed is None and folder is not None and project_space.repository_of(folder) is not None:
            return project_space.space_of(folder)
        return self._settings.space.value

    def memory(self, space: str) -> Nacre:
        with self._lock:
            if space not in self._engines:
                self._engines[space] = open_from_settings(
                    self._settings, models=self._models, space=space, confined=True
                )
            return self._engines[space]

    def close(self) -> None:
        with self._lock:
            for each in self._engines.values():
                each.close()
            self._engines.clear()


def space_of_roots(uris: Iterable[str]) -> str | None:
    """The space of the first root that is a folder; None if none is."""
    return next((space for uri in uris if (space := space_of_root(uri)) is not None), None)


def space_of_root(uri: str) -> str | None:
    """The space of a root that a client names as a file URI; None for anything else."""
    try:
        parts = urlparse(uri)
        if parts.scheme != "file" or not parts.path.startswith("/"):
            return None
        return project_space.space_of(_path(parts.path))
    except (ValueError, OSError):  # not the name of a folder
        return None


def _path(path: str) -> str:
    """On POSIX a name that is not UTF-8 keeps its bytes. On Windows the path begins with the letter of a drive."""
    if os.name != "nt":
        return os.fsdecode(unquote_to_bytes(path))
    from urllib.request import url2pathname  # 25 ms, which the first answer need not wait for

    return url2pathname(path)

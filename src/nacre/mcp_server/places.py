"""Which memory belongs to a caller? One engine for each space, opened when it is first needed."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlparse
from urllib.request import url2pathname

from nacre.config import project_space
from nacre.config.factory import embedder_named, open_store
from nacre.config.settings import Settings
from nacre.engine.engine import Nacre


class Places:
    """Opens engines that are confined to one space each, on one store, with one model in memory."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._embedder = embedder_named(settings.embedder.value, settings.threads.value)
        self._opened: dict[str, Nacre] = {}
        self._lock = threading.Lock()

    @property
    def fixed(self) -> str | None:
        """The space that was named for all callers; None where each has that of its own project."""
        space = self._settings.space
        return None if space.source == "default" else space.value

    def usual(self, folder: Path | None) -> str:
        """The space of a caller that names no project: that of the repository the server runs in, if it does."""
        if self.fixed is None and folder is not None and project_space.repository_of(folder) is not None:
            return project_space.space_of(folder)
        return self._settings.space.value

    def memory(self, space: str) -> Nacre:
        with self._lock:
            if space not in self._opened:
                self._opened[space] = self._open(space)
            return self._opened[space]

    def _open(self, space: str) -> Nacre:
        settings = self._settings
        if settings.store.source == "default":
            settings.store.value.parent.mkdir(parents=True, exist_ok=True)
        return open_store(
            settings.store.value,
            space=space,
            confined=True,
            embedder=self._embedder,
            busy_timeout_ms=settings.busy_timeout_ms.value,
            extract=settings.extract.value,
            decay_rates=settings.decay_rates.value,
            log=settings.log.value,
            log_days=settings.log_days.value,
        )

    def close(self) -> None:
        with self._lock:
            for each in self._opened.values():
                each.close()
            self._opened.clear()


def space_of_root(uri: str) -> str | None:
    """The space of a root that a client names as a file URI; None for anything else."""
    try:
        parts = urlparse(uri)
        if parts.scheme != "file" or not parts.path.startswith("/"):
            return None
        # Names that are no UTF-8 stay what they are; Windows has none, but letters of drives.
        windows = os.name == "nt"
        return project_space.space_of(
            url2pathname(parts.path) if windows else os.fsdecode(unquote_to_bytes(parts.path))
        )
    except (ValueError, OSError):  # no name of a folder
        return None

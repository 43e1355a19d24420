"""Answers the hooks of this user in a server that runs anyway, over a Unix socket.

Each server has a socket of its own, so that one which ends leaves the others in place. A server that cannot listen
works as before: the hooks answer by themselves.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nacre import __version__
from nacre.hooks import sockets
from nacre.runtime import private_files

if TYPE_CHECKING:
    from nacre.config.settings import Settings
    from nacre.engine.engine import Nacre
    from nacre.hooks.answer import Call
    from nacre.types.location import Address, Location, Nodes

WAIT_S = 5.0  # for the rest of a request
_OF_WRITES = ("text_chars_max", "quota_memories", "quota_bytes", "quota_session_writes")
# Of these settings, each hook brings its own store and space, and the others change no answer.
_MAY_DIFFER = frozenset(
    {"store", "space", "threads", "busy_timeout_ms", "extract", "log_days", "log_megabytes", *_OF_WRITES}
)
_OF_A_PROCESS = re.compile(r"\$|folder:(?![/~])")  # variables, and paths from the folder that it runs in
_log = logging.getLogger("nacre")


class Listener:
    """A thread that answers hooks until it is closed. `memory` gives the engine of a space."""

    def __init__(self, settings: Settings, memory: Callable[[str], Nacre]) -> None:
        self._settings = settings
        self._memory = memory
        self._path: Path | None = None
        self._socket: socket.socket | None = None
        self._file = _identity(settings.store.value)  # None: it is not there yet

    def start(self) -> None:
        where = sockets.folder(os.environ)
        if where is None:
            return
        path = Path(where, f"{os.getpid()}{sockets.SUFFIX}")
        try:
            private_files.create_folder(path.parent, parents=True)
            if not sockets.is_private(where):
                return
            bound = path.with_suffix("")  # hooks see it once it listens: they remove those that refuse them
            bound.unlink(missing_ok=True)  # of a process with this number that was killed
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listening.bind(str(bound))
            private_files.set_mode(bound)
            listening.listen()
            bound.replace(path)
        except OSError as error:
            _log.debug("hooks are not answered: %s", error)
            return
        self._path, self._socket = path, listening
        threading.Thread(target=self._serve, args=(listening,), name="nacre-hooks", daemon=True).start()

    def close(self) -> None:
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()
        if self._socket is not None:
            self._socket.close()

    def _serve(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._answer, args=(connection,), name="nacre-hook", daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        """A hook that gets no answer answers by itself, so whatever fails here costs time only."""
        with connection:
            connection.settimeout(WAIT_S)
            try:
                request = json.loads(_received(connection))
                if request["version"] != __version__ or request["until"] < time.time():
                    said = None  # of one that has answered by itself, the log must not say that it was given more
                else:
                    said = self._said(request)
                connection.sendall(json.dumps({"out": said}).encode())
            except Exception as error:
                _log.debug("a hook was not answered: %s", error)

    def _said(self, request: Mapping[str, Any]) -> str | None:
        """None if the hook's settings name another store or other models than this server has, or may do so."""
        from nacre.hooks import answer, events

        flags, environment, working = dict(request["flags"]), request["environment"], request["working"]
        budget = int(flags.pop("budget", answer.BUDGET_TOKENS))
        call = answer.Call(answer.parse(request["event"]), flags, environment, working)
        asked = events.question(call.event, environment, working)
        wanted = answer.settings_for(call, asked.folder)
        if not (_mean_the_same_here(call, asked.folder) and self._serves(answer.store_of(call, wanted), wanted)):
            return None
        if not isinstance(wanted.store.value, Path) and not _reaches_the_same_server(environment):
            return None
        return answer.context(asked, lambda: self._memory(wanted.space.value), budget)

    def _serves(self, store: Location, wanted: Settings) -> bool:
        """Whether this server has this address, or the file that is at this path now, and would answer as the hook
        itself."""
        names = {each.name for each in fields(wanted)} - _MAY_DIFFER
        same = all(getattr(wanted, name).value == getattr(self._settings, name).value for name in names)
        own = self._settings.store.value
        if not same or store != (own.resolve() if isinstance(own, Path) else own):
            return False
        file = _identity(store)
        self._file = self._file or file
        return file is not None and file == self._file


def _identity(location: Location) -> tuple[int, int] | Address | Nodes | None:
    """Of a file, in whose place another one may be put; an address is its own."""
    if not isinstance(location, Path):
        return location
    try:
        found = location.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _mean_the_same_here(call: Call, folder: str) -> bool:
    """Whether the hook's settings can be read in this process, which has other variables and runs in another folder."""
    from nacre.config.settings import config_path

    config = config_path(call.environment)
    given = [folder, *map(str, call.flags.values()), *call.environment.values()]
    with suppress(OSError):
        given.append(config.read_text("utf-8", "replace"))
    home = call.environment.get("HOME") == os.environ.get("HOME")
    return home and config.is_absolute() and not any(map(_OF_A_PROCESS.search, given))


def _reaches_the_same_server(environment: Mapping[str, str]) -> bool:
    """Whether what an address of PostgreSQL leaves out is the same here. A password is each process's own."""
    there, here = ({name: each[name] for name in each if name.startswith("PG")} for each in (environment, os.environ))
    here.pop("PGPASSWORD", None)
    return there == here


def _received(connection: socket.socket) -> bytes:
    parts, size = [], 0
    while part := connection.recv(65_536):
        parts.append(part)
        size += len(part)
        if size > sockets.REQUEST_BYTES_MAX:
            raise ValueError("the request is too long")
    return b"".join(parts)

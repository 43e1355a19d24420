"""Asks a server that runs already: its models are loaded, so a hook need not load them. Imports little."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from nacre import __version__
from nacre.hooks import sockets

WAIT_S = 5.0  # for all servers together; then the hook answers by itself
_OPTIONS = ("--store", "--space", "--embedder", "--key-file", "--budget")
_VARIABLES = ("HOME", "CLAUDE_PROJECT_DIR")  # besides those of Nacre and of the platform's folders
_SECRETS = ("NACRE_KEY", "PGPASSWORD")  # stay in this process: the server has its own


def ask(arguments: Sequence[str], event: bytes, environment: Mapping[str, str]) -> str | None:
    """What a server says to the event; None if none runs that serves the same store."""
    where = sockets.folder(environment)
    flags = dict(zip(arguments[::2], arguments[1::2], strict=False))
    if where is None or 2 * len(flags) != len(arguments) or not flags.keys() <= set(_OPTIONS):
        return None
    if len(event) > sockets.REQUEST_BYTES_MAX // 2 or not sockets.is_private(where):
        return None
    request = {
        "version": __version__,
        "flags": {name.removeprefix("--").replace("-", "_"): value for name, value in flags.items()},
        "environment": {
            name: value
            for name, value in environment.items()
            if (name in _VARIABLES or name.startswith(("NACRE_", "XDG_", "PG"))) and name not in _SECRETS
        },
        "working": os.getcwd(),
        "event": event.decode("utf-8", "replace"),
        "until": time.time() + WAIT_S,
    }
    data = json.dumps(request).encode()
    until = time.monotonic() + WAIT_S
    names = sorted((each for each in os.listdir(where) if each.endswith(sockets.SUFFIX)), reverse=True)
    for name in names:
        answer = _asked(os.path.join(where, name), data, until)
        if answer is not None:
            return answer
    return None


def _asked(path: str, data: bytes, until: float) -> str | None:
    """The answer of one server; None if it is gone, hangs, fails, or serves another store."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(max(until - time.monotonic(), 0.01))
            connection.connect(path)
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            parts = []
            while part := connection.recv(65_536):
                parts.append(part)
                connection.settimeout(max(until - time.monotonic(), 0.01))
        answer = json.loads(b"".join(parts))
    except ConnectionRefusedError:  # it was killed
        with suppress(OSError):
            os.unlink(path)
        return None
    except (OSError, ValueError):
        return None
    said = answer.get("out") if isinstance(answer, dict) else None
    return said if isinstance(said, str) else None

"""Stores what was said in a process that goes on when the client, which may not wait, has ended. Imports little."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

_OPTIONS = ("--store", "--space", "--embedder", "--key-file")
_ANSWERED = b"beforeSubmitPrompt"  # an event whose client waits for an answer


def started(arguments: Sequence[str], event: bytes) -> bool:
    """Whether it was started. It is not where something has to be said first, such as what is wrong with an option."""
    if len(arguments) % 2 or not set(arguments[::2]) <= set(_OPTIONS) or _ANSWERED in event or not event.strip():
        return False
    start(arguments, event)
    return True


def start(flags: Sequence[str], event: bytes) -> None:
    process = subprocess.Popen(  # noqa: S603  # this program
        [sys.executable, "-m", "nacre", "hook", "remember", "--wait", *flags],
        stdin=subprocess.PIPE,  # not a file, not even a temporary one: the store may be encrypted
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        creationflags=getattr(subprocess, "DETACHED_PROCESS", 0),
    )
    assert process.stdin is not None
    with process.stdin as pipe:
        pipe.write(event)

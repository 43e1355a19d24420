"""The two pipes to a client: which messages come in, and which of its requests are not answered yet?

Every line that comes in is either a message or is answered with an error at once. Lines that go out are whole, from
whichever thread they come.
"""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Callable
from typing import Any

from nacre.mcp_server import json_rpc
from nacre.mcp_server.json_rpc import LINE_BYTES_MAX, Message

_READ_BYTES = 65_536
_BOM = b"\xef\xbb\xbf"


class ClientPipe:
    """Lines are read by a thread of its own, so that one can wait for the next one only so long."""

    def __init__(self, pipe: int, write: Callable[[bytes], None]) -> None:
        """`write` sends one line."""
        self._pipe = pipe
        self._write = write
        self._writing = threading.Lock()
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._unanswered: set[Any] = set()  # the ids of requests
        self._answered = threading.Condition()
        threading.Thread(target=self._read, name="nacre-stdin", daemon=True).start()

    # ---- in

    def next(self, timeout_s: float | None = None) -> tuple[bytes, Message]:
        """The next line that is a message, and what it says; empty at the end. Raises `queue.Empty` after the time."""
        while line := self._lines.get(timeout=timeout_s):
            message, errors = json_rpc.parsed(line)
            for each in errors:
                self.send(each)
            if not errors:
                self._note(message)
                return line, message
        self._lines.put(b"")  # it has ended for all who ask
        return b"", {}

    def settle(self, timeout_s: float) -> None:
        """Wait until every request is answered, but only so long."""
        with self._answered:
            self._answered.wait_for(lambda: not self._unanswered, timeout_s)

    def _note(self, message: Message) -> None:
        with self._answered:
            match message:
                case {"method": "notifications/cancelled", "params": {"requestId": str() | int() as number}}:
                    self._unanswered.discard(number)  # it gets no answer
                case {"method": _, "id": number}:
                    self._unanswered.add(number)

    def _read(self) -> None:
        """With `os.read`, because a thread in a buffered read would block the end of the process."""
        begun = bytearray()
        while data := self._more():
            *ended, rest = data.split(b"\n")
            for each in ended:
                self._put(bytes(begun + each))
                begun.clear()
            begun += rest
            del begun[LINE_BYTES_MAX + 1 :]  # it is refused in any case, and its rest need not be kept
        self._put(bytes(begun))
        self._lines.put(b"")

    def _more(self) -> bytes:
        try:
            return os.read(self._pipe, _READ_BYTES)
        except OSError:  # the client is gone
            return b""

    def _put(self, line: bytes) -> None:
        line = line.removeprefix(_BOM)
        if line.strip():
            self._lines.put(_whole_characters(line) + b"\n")

    # ---- out

    def send(self, message: Message) -> None:
        self.write(json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n", message)

    def write(self, line: bytes, message: Message | None = None) -> None:
        """Send a line. `message` is what it says, where that is known."""
        with self._writing:
            self._write(line)
        sent = json.loads(line) if message is None else message
        if "method" not in sent:
            with self._answered:
                self._unanswered.discard(sent.get("id"))
                self._answered.notify_all()


def _whole_characters(line: bytes) -> bytes:
    """JSON in which half a character is U+FFFD. JavaScript escapes one where a text was cut in the middle of an emoji;
    the SDK takes no such line, and the client would wait for an answer."""
    if b"\\ud" not in line.lower():
        return line
    import re  # rarely needed

    pair = rb"ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}"
    escape = re.compile(rb"\\(?:" + pair + rb"|(?P<half>ud[89a-f][0-9a-f]{2})|.)", re.IGNORECASE)
    return escape.sub(lambda found: rb"\ufffd" if found["half"] else found[0], line)

"""How much may a request take, and how long? Connections are limited in `mcp_server/http_limits.py`."""

from __future__ import annotations

from typing import Final

BODY_BYTES_MAX: Final = 16 * 2**20  # of a request that is no stream of lines
LINE_BYTES_MAX: Final = 16 * 2**20
REQUEST_S: Final = 60.0  # until the client is told that it takes too long; the verb itself ends by itself
CALLS_AT_ONCE: Final = 16  # verbs in threads; further requests wait
WAITING_MAX: Final = 256  # requests that may wait; further ones are refused
STREAMS_AT_ONCE: Final = 8  # exports, imports and the like
LISTENERS_MAX: Final = 128  # connections that wait for changes
ENGINES_KEPT: Final = 64  # of spaces and tokens
IDEMPOTENCY_KEY_CHARS_MAX: Final = 200
FAILED_SIGN_INS_MAX: Final = 20  # a minute and address
STALLED_S: Final = 60.0  # that a client may neither send nor take anything of a stream
HEARTBEAT_S: Final = 15.0  # between two signs of life to who waits for changes
POLL_S: Final = 0.25  # between two looks for changes
DRAIN_S: Final = 10  # that requests in work may take when the server stops
WORKER_START_S: Final = 20  # until a worker that says nothing is replaced: on a busy machine it takes long to start

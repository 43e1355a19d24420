"""Sends log lines to clients that asked for them: warnings and errors of the logger `nacre`.

Standard error has all lines, for whoever runs the server. A client gets only lines of its own requests, after it has
set a level (`logging/setLevel`, or the level in the request's `_meta` since the protocol of 2026). Tracebacks are not
sent: their messages may quote what somebody remembered.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import Any, get_args

import mcp_types as types
from mcp.server.connection import allowed_log_levels
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

LOGGER = "nacre"
_LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)  # ascending
_lines: ContextVar[list[logging.LogRecord] | None] = ContextVar("lines of this request", default=None)


def _collect(record: logging.LogRecord) -> bool:
    """Keep a line for the request that the current thread or task works for.

    A filter and not a handler: with a handler of its own, the logger would no longer write to standard error.
    """
    collected = _lines.get()
    if collected is not None and record.levelno >= logging.WARNING:
        collected.append(record)
    return True


class ClientLog:
    """The levels that clients have set, by connection, and the middleware that sends lines."""

    def __init__(self, clients_max: int) -> None:
        self._levels: dict[str | None, types.LoggingLevel] = {}
        self._clients_max = clients_max
        logging.getLogger(LOGGER).addFilter(_collect)  # the same one again changes nothing

    def set_level(self, connection: str | None, level: types.LoggingLevel) -> None:
        self._levels[connection] = level
        if len(self._levels) > self._clients_max:
            del self._levels[next(iter(self._levels))]

    async def send(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Answer a request, and send the lines that were logged meanwhile before its answer."""
        wanted = self._wanted(ctx)
        if not wanted:
            return await call_next(ctx)
        collected: list[logging.LogRecord] = []
        token = _lines.set(collected)
        try:
            result = await call_next(ctx)
        finally:
            _lines.reset(token)
        for each in collected:
            level = _level(each)
            if level in wanted:
                params = types.LoggingMessageNotificationParams(level=level, logger=LOGGER, data=_message(each))
                await ctx.session.send_notification(types.LoggingMessageNotification(params=params), ctx.request_id)
        return result

    def _wanted(self, context: ServerRequestContext[Any, Any]) -> frozenset[types.LoggingLevel]:
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return allowed_log_levels(context.protocol_version, context.meta)
        request = context.request
        level = self._levels.get(None if request is None else request.headers.get("mcp-session-id"))
        return frozenset() if level is None else frozenset(_LEVELS[_LEVELS.index(level) :])


def _level(record: logging.LogRecord) -> types.LoggingLevel:
    if record.levelno >= logging.CRITICAL:
        return "critical"
    return "error" if record.levelno >= logging.ERROR else "warning"


def _message(record: logging.LogRecord) -> str:
    """The line without the exceptions in it, which may quote a text: of these, only the class."""
    values = record.args if isinstance(record.args, tuple) else ()
    plain = tuple(type(each).__name__ if isinstance(each, BaseException) else each for each in values)
    return record.msg % plain if plain else str(record.msg)

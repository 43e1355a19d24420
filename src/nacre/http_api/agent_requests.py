"""Handlers of the agents' protocol that know who asks: in which space, and with which tools.

Import it after `sdk.load()`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nacre.http_api.agents import CALLER
from nacre.http_api.callers import Caller
from nacre.mcp_server.server import RequestHandlers, space_of_client
from nacre.mcp_server.tool import Tool
from nacre.serialization.routes import SPACE_HEADER


class TokenHandlers(RequestHandlers):
    """Answers the requests of agents, each as far as its token allows."""

    def _tools_of(self, context: Any) -> Mapping[str, Tool]:
        if _caller(context).may("write"):
            return self._tools
        return {name: each for name, each in self._tools.items() if each.effect == "reads"}

    async def _space(self, context: Any) -> str:
        caller = _caller(context)
        named = context.request.headers.get(SPACE_HEADER)
        if named is None and caller.spaces is None:
            return await super()._space(context)
        if named is None and caller.spaces is not None and len(caller.spaces) > 1:
            project = await space_of_client(context)
            named = project if project in caller.spaces else None
        return caller.space(named, self._engines.fallback(None))


def _caller(context: Any) -> Caller:
    """Who sends this request."""
    caller: Caller = context.request.scope[CALLER]
    return caller

"""Which tools is a client offered? Few by default: each costs room in every conversation."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.errors import InvalidInput
from nacre.mcp_server.more_tools import GROUPS
from nacre.mcp_server.tool import Tool
from nacre.mcp_server.tools import DEFAULT

ALL = "all"


def chosen(groups: str) -> Sequence[Tool]:
    """The tools that every agent gets, and those of the groups that are named."""
    named = [each.strip() for each in groups.split(",") if each.strip()]
    for each in named:
        if each != ALL and each not in GROUPS:
            raise InvalidInput("tools", f"{each!r} is unknown; allowed: {', '.join((*GROUPS, ALL))}")
    return (*DEFAULT, *(tool for name, tools in GROUPS.items() if name in named or ALL in named for tool in tools))


def graph() -> Sequence[Tool]:
    """The tools of the reference memory server."""
    from nacre.mcp_server.graph_tools import TOOLS

    return TOOLS

"""Which request over HTTP calls which verb? The server, its OpenAPI document and the client follow one table.

A path may have ids, `{like_this}`. The other arguments of the verb are in the query of the URL where the method is GET
or DELETE, and otherwise in the body, a JSON object. What streams is JSON Lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from nacre.types.access_tokens import Role

PREFIX: Final = "/v1"  # of all paths

SPACE_HEADER: Final = "Nacre-Space"  # the space that a request works in; without it, the token's first or the server's
SPACES_HEADER: Final = "Nacre-Spaces"  # those that a request may see at the most, a JSON list
LOG_HEADER: Final = "Nacre-Log"  # false: nothing of the request enters the recall log
VERSION_HEADER: Final = "Nacre-Version"  # of the server, in every answer

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    verb: str
    method: Method
    path: str
    role: Role  # that a token needs at least
    posts: bool = False  # POST with a body, too: arguments may be too long for a URL, or private
    lines_in: str | None = None  # the argument that the lines of the body are
    lines_out: bool = False
    safe: bool = False  # it changes nothing but the recall log, whatever its method is

    @property
    def in_path(self) -> tuple[str, ...]:
        """The arguments in the path."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @property
    def repeatable(self) -> bool:
        """Whether it may be sent again when no answer came: a second time changes nothing."""
        return self.safe or self.method in ("PUT", "DELETE")


def _reads(verb: str, path: str, *, role: Role = "read", posts: bool = False, lines_out: bool = False) -> Route:
    return Route(verb=verb, method="GET", path=path, role=role, posts=posts, lines_out=lines_out, safe=True)


def _writes(
    verb: str,
    method: Method,
    path: str,
    role: Role = "write",
    *,
    lines_in: str | None = None,
    lines_out: bool = False,
    safe: bool = False,
) -> Route:
    return Route(verb=verb, method=method, path=path, role=role, lines_in=lines_in, lines_out=lines_out, safe=safe)


_TABLE = (
    # memories: a path that has an argument comes after those that have words in its place
    _writes("remember", "POST", "/memories"),
    _writes("remember_many", "POST", "/memories/batch"),
    _writes("remember_batches", "POST", "/memories/lines", lines_in="items", lines_out=True),
    _reads("get", "/memories"),
    _reads("every", "/memories/lines", lines_out=True),
    _writes("forget", "POST", "/memories/forget"),
    _writes("restore", "POST", "/memories/restore"),
    _writes("purge", "POST", "/memories/purge", "admin"),
    _writes("update", "PATCH", "/memories/{memory_id}"),
    _reads("history", "/memories/{memory_id}/history"),
    _reads("similar", "/memories/{memory_id}/similar"),
    _writes("separate", "POST", "/memories/{memory_id}/separate"),
    _reads("related", "/memories/{memory_id}/related", posts=True),
    _writes("add_facts", "POST", "/memories/{memory_id}/facts"),
    # finding
    _reads("search", "/search", posts=True),
    _reads("why", "/why", posts=True),
    _reads("why_not", "/why-not", posts=True),
    _reads("facets", "/facets", posts=True),
    _reads("context", "/context", posts=True),
    _reads("timeline", "/timeline", posts=True),
    _writes("count_tokens", "POST", "/count-tokens", "read", safe=True),
    _writes("screen", "POST", "/screen", "read", safe=True),
    _reads("audit", "/audit", lines_out=True),
    # facts
    _reads("facts", "/facts"),
    _writes("state_fact", "POST", "/facts"),
    _writes("drop_facts", "POST", "/facts/drop"),
    _writes("reinforce", "POST", "/facts/reinforce"),
    _reads("stale", "/facts/stale"),
    _reads("conflicts", "/conflicts"),
    _writes("unlink", "POST", "/unlink"),
    # entities
    _reads("entities", "/entities"),
    _writes("add_entity", "POST", "/entities"),
    _reads("entity_counts", "/entities/counts"),
    _writes("drop_entity", "DELETE", "/entities"),
    _reads("related_entities", "/entities/related"),
    # the recall log, and lenses
    _reads("receipts", "/receipts"),
    _writes("clear_log", "POST", "/receipts/clear", "admin"),
    _writes("mark", "POST", "/mark"),
    _reads("lenses", "/lenses"),
    _writes("save_lens", "POST", "/lenses"),
    _reads("lens", "/lens"),
    _writes("drop_lens", "DELETE", "/lens"),
    # what changed; in and out
    _reads("changes", "/changes"),
    _reads("export", "/export", lines_out=True),
    _writes("load", "POST", "/load", "admin", lines_in="records", lines_out=True),
    # upkeep, of all spaces
    _reads("stats", "/stats", role="admin"),
    _writes("check", "POST", "/check", "admin"),
    _writes("rebuild", "POST", "/rebuild", "admin"),
    _writes("reembed", "POST", "/reembed", "admin", lines_out=True),
    _writes("backup", "POST", "/backup", "admin"),
    _reads("tokens", "/tokens", role="admin"),
    _writes("create_token", "POST", "/tokens", "admin"),
    _writes("revoke_token", "DELETE", "/tokens/{token_id}", "admin"),
)

ROUTES: Mapping[str, Route] = {each.verb: each for each in _TABLE}

# What has no route, and why.
NOT_SERVED: Mapping[str, str] = {
    "authenticate": "takes a secret; a request has it in its Authorization header",
    "close": "ends the engine itself",
    "within": "makes another engine; a request names its space in a header",
}

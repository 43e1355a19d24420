"""Who may use a server, and how: access tokens, of which only hashes are kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["read", "write", "admin"]  # each may do what those before it may

ROLES: tuple[Role, ...] = ("read", "write", "admin")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """What a token allows. `spaces=None` is all of them."""

    id: str
    role: Role
    spaces: tuple[str, ...] | None
    name: str = ""  # what it is for
    created: datetime
    expires: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewAccessToken:
    """A token that was just created. Nobody can be shown `secret` again."""

    token: AccessToken
    secret: str

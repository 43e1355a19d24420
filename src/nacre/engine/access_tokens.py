"""Access tokens: made, listed, revoked and checked.

A secret is `nacre_`, the token's id and 32 random bytes. Nobody can guess these, so that their SHA-256 says nothing of
them: a slow hash protects passwords, which can be guessed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from nacre import validation
from nacre.engine.parts import Parts
from nacre.errors import NotFound
from nacre.types.access_tokens import ROLES, AccessToken, NewAccessToken, Role

_RANDOM_BYTES = 32
_SECRET = re.compile(r"nacre_([0-9A-Za-z-]{1,64})_[0-9A-Za-z_-]{43}")


class AccessTokenService:
    """A confined engine has none of it: tokens are about all spaces."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._store = parts.store

    def create(
        self, name: str, role: Role, spaces: Sequence[str] | None, expires: datetime | timedelta | None
    ) -> NewAccessToken:
        parts = self._parts
        parts.access.check_unconfined("create_token", "makes tokens for")
        now = parts.clock()
        validation.choice("role", role, ROLES)
        token = AccessToken(
            id=parts.make_ids(now, 1)[0],
            role=role,
            spaces=None if spaces is None else validation.spaces(spaces, parts.access, parts.limits),
            name=validation.token_name(name, parts.limits),
            created=now,
            expires=None if expires is None else validation.expiry(expires, now),
        )
        parts.screening.label("name", token.name)
        secret = f"nacre_{token.id}_{secrets.token_urlsafe(_RANDOM_BYTES)}"
        self._store.add_token(token, _hash(secret))
        return NewAccessToken(token, secret)

    def all(self) -> list[AccessToken]:
        self._parts.access.check_unconfined("tokens", "lists the tokens of")
        return self._store.tokens()

    def revoke(self, token_id: str) -> None:
        self._parts.access.check_unconfined("revoke_token", "revokes tokens of")
        token_id = validation.looked_up("token_id", token_id)
        if not self._store.drop_token(token_id):
            raise NotFound((token_id,), "see `nacre token list`", what="token")

    def of_secret(self, secret: str) -> AccessToken | None:
        """The token of a secret, if it has not expired; None for any other text."""
        self._parts.access.check_unconfined("authenticate", "checks tokens of")
        match = _SECRET.fullmatch(validation.any_text("secret", secret))
        found = None if match is None else self._store.token(match[1])
        if found is None:
            return None
        token, secret_hash = found
        if not hmac.compare_digest(secret_hash, _hash(secret)):
            return None
        return None if token.expires is not None and token.expires <= self._parts.clock() else token


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()

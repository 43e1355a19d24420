"""Answers of a server to requests that may be sent again: see `types/kept_answers.py`."""

from __future__ import annotations

from nacre.engine.parts import Parts
from nacre.types.kept_answers import Claim, KeptAnswer


class AnswerService:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def claim(self, key: str, request: bytes) -> Claim:
        """Claim a request, by its key and a hash of all of it, unless it was carried out or is being carried out."""
        return self._parts.store.claim_answer(key, request, self._parts.clock())

    def keep(self, ticket: str, answer: KeptAnswer) -> None:
        """Keep the answer to a claimed request."""
        self._parts.store.keep_answer(ticket, answer, self._parts.clock())

    def drop(self, ticket: str) -> None:
        """Give up a claim: the request has changed nothing."""
        self._parts.store.drop_claim(ticket)

"""Requests that are sent again: with an Idempotency-Key, the second gets the answer of the first."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput, MaybeStored, NacreError
from nacre.http_api.answers import Answer, Refusal, failure
from nacre.http_api.callers import Caller
from nacre.http_api.limits import IDEMPOTENCY_KEY_CHARS_MAX
from nacre.http_api.requests import Request
from nacre.http_api.verbs import Verb
from nacre.serialization.routes import SPACES_HEADER
from nacre.types.access_tokens import NewAccessToken
from nacre.types.kept_answers import KeptAnswer
from nacre.types.memory import Forgotten, Purged, Remembered

HEADER: Final = "idempotency-key"
REPLAYED: Final = "idempotent-replay"  # in the answer to a request that was not carried out again
# Results that have ids and numbers only, so that they may be kept when memories are purged.
_WITHOUT_TEXTS: Final[tuple[Any, ...]] = (Remembered, list[Remembered], Forgotten, Purged, type(None), int, list[str])


def answer(
    root: Nacre, verb: Verb, request: Request, caller: Caller, space: str, body: bytes, call: Callable[[], Answer]
) -> Answer:
    """Carry out a request that writes, unless it was carried out before."""
    key = request.headers.get(HEADER)
    if key is None:
        return call()
    if not 0 < len(key) <= IDEMPOTENCY_KEY_CHARS_MAX:
        raise InvalidInput("Idempotency-Key", f"must have 1 to {IDEMPOTENCY_KEY_CHARS_MAX} characters")
    claim = root.answers.claim(f"{caller.id}:{key}", _digest(request, space, body))
    if claim.state == "different":
        raise Refusal(409, "Conflict", "Idempotency-Key: another request had this key; give each its own")
    if claim.state == "running":
        said = "the request with this Idempotency-Key is being carried out; ask again for its answer"
        raise Refusal(409, "Conflict", said, {"retry-after": "1"})
    if claim.state == "answered":
        if claim.answer is None:
            raise _lost("the request was carried out, and a purge has deleted its answer")
        kept = claim.answer
        return Answer(kept.status, kept.body, headers={**dict(kept.headers), REPLAYED: "true"})
    try:
        given = call()
    except MaybeStored as error:  # to carry it out again might do it twice: who asks again is told the same
        with suppress(NacreError):  # the store may still be away; then the claim keeps others off for a while
            told = failure(error)
            root.answers.keep(claim.ticket, KeptAnswer(told.status, (), told.body, quotes=False))
        raise
    except BaseException:
        root.answers.drop(claim.ticket)  # each verb is one transaction: nothing was written
        raise
    root.answers.keep(claim.ticket, _kept(verb, given))
    return given


def check_no_key(request: Request) -> None:
    """Raise InvalidInput where a request that streams has a key: its answer may be too long to be kept."""
    if HEADER in request.headers:
        raise InvalidInput("Idempotency-Key", "is not kept for streams; leave it out, and give memories keys instead")


def _kept(verb: Verb, given: Answer) -> KeptAnswer:
    if verb.result is NewAccessToken:  # a secret is shown once, and stored nowhere
        told = failure(_lost("the token was created, and its secret was shown; revoke it, and create another"))
        return KeptAnswer(told.status, (), told.body, quotes=False)
    return KeptAnswer(given.status, tuple(given.headers.items()), given.body, verb.result not in _WITHOUT_TEXTS)


def _lost(said: str) -> Refusal:
    return Refusal(409, "AnswerDeleted", f"Idempotency-Key: {said}")


def _digest(request: Request, space: str, body: bytes) -> bytes:
    """A hash of all that decides what a request does."""
    headers = [request.headers.get(each, "") for each in ("if-match", SPACES_HEADER.lower())]
    parts = (request.method, request.path, space, repr(request.pairs), *headers)
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass"))
    digest.update(b"\0" + body)
    return digest.digest()

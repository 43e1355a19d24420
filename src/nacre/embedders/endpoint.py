"""A model behind an endpoint for embeddings as OpenAI has them: of Ollama, LM Studio, vLLM, or a service.

Requests are sent to the address that the settings name and to no other, and only to embed. An answer that is not one
vector of finite numbers for each text, all as long as the ones before, is a failure: nothing of it is used.
"""

from __future__ import annotations

import json
import math
import random
import re
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from nacre.analysis.wordpiece import NAME
from nacre.errors import EmbedderFailed
from nacre.runtime import forks
from nacre.types.memory import Span

if TYPE_CHECKING:
    import httpx

    from nacre.types.memory import FloatMatrix, FloatVector

KEY_VARIABLE: Final = "NACRE_EMBEDDER_KEY"
TIMEOUT_S: Final = 60.0  # of one request
QUERY_TIMEOUT_S: Final = 10.0  # a search waits no longer, and answers by words
TEXTS_AT_ONCE: Final = 32
# The tokenizer is not known, so pieces are estimated: a piece for four letters, or for any other character. Passages of
# half of what most models take are never cut off by them.
PIECES_MAX: Final = 256
_UNIT: Final = re.compile(r"[!-~]{1,24}|[^\s!-~]{1,8}")
_LETTERS_A_PIECE: Final = 4
_ATTEMPTS: Final = 4
_ATTEMPTS_OF_QUERY: Final = 2
_FIRST_PAUSE_S: Final = 0.5  # each further one is twice as long
_CONNECT_S: Final = 5.0
_PASSING: Final = (408, 429, 500, 502, 503, 504)
_ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024
_SAID_CHARS_MAX: Final = 300
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_INSTALL: Final = "install it with `pip install 'nacre-memory[embedders]'`"


@dataclass(frozen=True, slots=True)
class EndpointModel:
    """Which model, where, and what its texts need before them."""

    url: str  # without a slash at the end
    model: str
    query: str = ""
    passage: str = ""
    dimensions: int | None = None  # asked for, of models that have several
    timeout_s: float = TIMEOUT_S

    @property
    def fingerprint(self) -> str:
        """The model by its name and all that changes its vectors.

        The address is left out, so that a store may go on when the endpoint moves. What is behind the name is not
        asked, so that a store opens while the endpoint is down.
        """
        given = {"query": self.query, "passage": self.passage, "dimensions": self.dimensions or ""}
        options = "&".join(f"{name}={quote(str(value), safe=': ')}" for name, value in given.items() if value)
        return f"endpoint/{self.model}" + (f"?{options}" if options else "")


class _Failure(Exception):
    """One attempt failed. `passes`: the next one may not; `after_s`: when the server wants to be asked again."""

    def __init__(self, problem: str, *, passes: bool = False, after_s: float | None = None) -> None:
        super().__init__(problem)
        self.passes = passes
        self.after_s = after_s


class Endpoint:
    """Asks for vectors over HTTP. It sends nothing before the first text is embedded."""

    def __init__(
        self,
        which: EndpointModel,
        key: str | None = None,
        *,
        pause: Callable[[float], None] = time.sleep,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._which = which
        self._key = key
        self._pause = pause
        self._timer = timer
        self._lock = threading.Lock()
        self._http: httpx.Client | None = None
        self._closes: weakref.finalize[..., Endpoint] | None = None
        self._dimensions: int | None = None  # of the vectors so far
        forks.renew_in_child(self)

    def after_fork(self) -> None:
        """Parent and child would read each other's answers."""
        self._lock = threading.Lock()
        self._http = None
        if self._closes is not None:
            self._closes.detach()

    @property
    def fingerprint(self) -> str:
        return self._which.fingerprint

    @property
    def pieces_max(self) -> int:
        return PIECES_MAX

    def weigh(self, text: str) -> list[tuple[Span, int]]:
        return [(Span(*found.span()), _pieces(found.group())) for found in _UNIT.finditer(text)]

    def vocabulary_coverage(self, text: str) -> float:
        """Its vocabulary is not known; identifiers such as ERR_2270 have no meaning to any model."""
        runs = text.split()
        total = sum(map(len, runs))
        return sum(len(run) for run in runs if not NAME.search(run)) / total if total else 0.0

    def embed_query(self, text: str) -> FloatVector:
        timeout_s = min(self._which.timeout_s, QUERY_TIMEOUT_S)
        vector: FloatVector = self._asked([self._which.query + text], timeout_s, timeout_s, _ATTEMPTS_OF_QUERY)[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> FloatMatrix:
        import numpy as np

        if not texts:
            return np.empty((0, self._dimensions or 0), np.float32)
        given = [self._which.passage + each for each in texts]
        parts = [
            self._asked(given[start : start + TEXTS_AT_ONCE], self._which.timeout_s, math.inf, _ATTEMPTS)
            for start in range(0, len(given), TEXTS_AT_ONCE)
        ]
        return np.concatenate(parts)

    # ---- requests

    def _asked(self, texts: Sequence[str], timeout_s: float, left_s: float, attempts: int) -> FloatMatrix:
        """The vectors of texts, after so many attempts at the most, each of `timeout_s`, all of `left_s`."""
        until = self._timer() + left_s
        for attempt in range(1, attempts + 1):
            try:
                return self._checked(self._sent(texts, min(timeout_s, max(until - self._timer(), 0.001))), len(texts))
            except _Failure as failure:
                pause = failure.after_s
                if pause is None:
                    pause = _FIRST_PAUSE_S * 2 ** (attempt - 1) * (0.5 + random.random() / 2)  # noqa: S311
                if (
                    not failure.passes
                    or attempt == attempts
                    or self._timer() + pause >= min(until, self._timer() + timeout_s)
                ):
                    raise EmbedderFailed(self._without_key(f"embedder: {self._which.url} {failure}")) from failure
                self._pause(pause)
        raise AssertionError("there is at least one attempt")

    def _sent(self, texts: Sequence[str], timeout_s: float) -> Any:
        """What the endpoint answers, as JSON."""
        client = self._client()
        import httpx

        body: dict[str, Any] = {"model": self._which.model, "input": list(texts)}
        if self._which.dimensions is not None:
            body["dimensions"] = self._which.dimensions
        sent = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        until = self._timer() + timeout_s
        limits = httpx.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_S))
        try:
            with client.stream("POST", f"{self._which.url}/embeddings", content=sent, timeout=limits) as response:
                content = b""
                for part in response.iter_bytes():
                    content += part
                    if self._timer() > until:
                        raise _Failure(f"did not answer within {timeout_s:g} s")
                    if len(content) > _ANSWER_BYTES_MAX:
                        raise _Failure(f"answers more than {_ANSWER_BYTES_MAX // 1024**2} MB")
        except httpx.TimeoutException:
            raise _Failure(f"did not answer within {timeout_s:g} s") from None
        except (httpx.ConnectError, httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError) as error:
            raise _Failure(f"cannot be reached ({error})", passes=True) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _Failure(f"cannot be asked ({error})") from None
        if response.status_code != 200:
            raise self._refusal(response.status_code, response.headers, content)
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise _Failure("answers something that is no JSON; does its address end in /v1?") from None

    def _client(self) -> httpx.Client:
        with self._lock:
            if self._http is None:
                self._http = self._new_client()
            return self._http

    def _new_client(self) -> httpx.Client:
        try:
            import httpx
        except ImportError as error:
            raise EmbedderFailed(f"embedder: an endpoint needs the package httpx; {_INSTALL}") from error
        headers = {"User-Agent": "nacre", "Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            client = httpx.Client(
                headers=headers,
                trust_env=httpx.URL(self._which.url).host not in _LOOPBACK,  # loopback is reached without a proxy
                verify=httpx.create_ssl_context() if self._which.url.startswith("https:") else False,
            )
        except Exception as error:  # of the address, the proxy or the certificates that the environment names
            raise EmbedderFailed(f"embedder: {self._which.url} cannot be asked ({error})") from error
        self._closes = weakref.finalize(self, client.close)
        return client

    def _refusal(self, status: int, headers: httpx.Headers, content: bytes) -> _Failure:
        after = headers.get("retry-after", "")
        said = _said(content)
        match status:
            case 401 | 403:
                problem = f"refuses the key; set {KEY_VARIABLE}"
            case 404:
                problem = f"has no model {self._which.model}, or no /embeddings"
            case _ if 300 <= status < 400:
                problem = f"sends elsewhere, to {headers.get('location', '?')}; name that address"
            case _:
                problem = f"answers with status {status}"
        return _Failure(
            f"{problem} ({said})" if said else problem,
            passes=status in _PASSING,
            after_s=float(after) if after.isdecimal() else None,
        )

    # ---- answers

    def _checked(self, answer: Any, texts: int) -> FloatMatrix:
        """The vectors in the order of the texts, each of length 1."""
        import numpy as np

        rows = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(rows, list) or not all(isinstance(each, dict) for each in rows):
            said = _said(json.dumps(answer).encode())
            raise _Failure(f"answers without a list of embeddings ({said}); does its address end in /v1?")
        if len(rows) != texts:
            raise _Failure(f"answers {len(rows)} vectors for {texts} texts")
        places = [each.get("index", number) for number, each in enumerate(rows)]
        if not all(type(each) is int for each in places) or sorted(places) != list(range(texts)):
            raise _Failure(f"answers vectors with the numbers {str(places)[:100]}, not one for each of {texts} texts")
        by_place = dict(zip(places, rows, strict=True))
        vectors = [_vector(by_place[place].get("embedding")) for place in range(texts)]
        lengths = sorted({len(each) for each in vectors})
        expected = self._dimensions or lengths[0]
        if lengths != [expected]:
            found = next(each for each in lengths if each != expected)
            raise _Failure(f"answers a vector of {found} numbers where others have {expected}")
        self._dimensions = expected
        matrix: FloatMatrix = np.array(vectors, np.float64).astype(np.float32)
        norms = np.sqrt(np.square(matrix, dtype=np.float64).sum(axis=1, keepdims=True))
        if not np.isfinite(matrix).all() or not (norms > 0).all():
            raise _Failure("answers a vector with NaN, infinity, or nothing but zeros")
        vectors_of_one: FloatMatrix = (matrix / norms).astype(np.float32)
        return vectors_of_one

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text


def _vector(value: Any) -> list[float]:
    if not isinstance(value, list) or not value or not all(type(each) in (int, float) for each in value):
        raise _Failure("answers an embedding that is no list of numbers")
    return value


def _pieces(unit: str) -> int:
    return math.ceil(len(unit) / _LETTERS_A_PIECE) if unit.isascii() else len(unit)


def _said(content: bytes) -> str:
    """What an answer says is wrong, in one line."""
    text = content.decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = text
    for field in ("error", "message", "detail"):
        if isinstance(found, dict) and field in found:
            found = found[field]
    said = " ".join((found if isinstance(found, str) else json.dumps(found)).split())
    return said if len(said) <= _SAID_CHARS_MAX else f"{said[:_SAID_CHARS_MAX]}…"

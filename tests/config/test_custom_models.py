"""A caller's own embedder and reranker: what is wrong with one is said when a store is opened, all of it at once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nacre
from nacre import InvalidInput
from nacre.config import custom_models
from nacre.embedders.hashing import Hashing
from nacre.embedders.minilm import MiniLM
from nacre.interfaces import Embedder, Reranker, RerankScore
from nacre.rerankers.nacre_rerank import NacreRerank
from nacre.types.tokens import TokenFormat


class Ours:
    """Right in everything. Tests change one attribute."""

    fingerprint = "ours/1"
    pieces_max = 100

    def weigh(self, text: str) -> list[Any]:
        return Hashing().weigh(text)

    def vocabulary_coverage(self, _: str) -> float:
        return 1.0

    def embed_passages(self, texts: Sequence[str]) -> Any:
        return Hashing(16).embed_passages(texts)

    def embed_query(self, text: str) -> Any:
        return Hashing(16).embed_query(text)

    def scores(self, _: str, texts: Sequence[Any]) -> list[RerankScore]:
        return [RerankScore(0.0) for _ in texts]


class Theirs(Ours):
    """Wrong in something."""


class Unreadable(Ours):
    @property
    def fingerprint(self) -> str:  # type: ignore[override]
        raise OSError("no such file")


def changed(**attributes: Any) -> Any:
    given = Theirs()
    for name, value in attributes.items():
        setattr(given, name, value)
    return given


async def _later(_: str) -> None: ...


NEEDS = (
    "It needs fingerprint, pieces_max, weigh(text), vocabulary_coverage(text), embed_passages(texts), "
    'embed_query(text); see "Your own embedder" in docs/api.md'
)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (changed(fingerprint=""), "Theirs is no embedder: fingerprint is '', not a text that is not empty."),
        (changed(fingerprint=7), "Theirs is no embedder: fingerprint is 7, not a text that is not empty."),
        (changed(fingerprint=lambda: "x"), "fingerprint is a method, not a text that is not empty."),
        (Unreadable(), "fingerprint fails (no such file)."),
        (changed(pieces_max=0), "pieces_max is 0, not a whole number from 1."),
        (changed(pieces_max=-3), "pieces_max is -3, not a whole number from 1."),
        (changed(pieces_max=True), "pieces_max is True, not a whole number from 1."),
        (changed(pieces_max="256"), "pieces_max is '256', not a whole number from 1."),
        (changed(weigh=None), "weigh is None, not a method."),
        (changed(embed_query=_later), "embed_query is asynchronous."),
        (changed(embed_passages=lambda: None), "embed_passages does not take (texts)."),
        (changed(embed_passages=lambda _, __: None), "embed_passages does not take (texts)."),
        (
            object(),
            "object is no embedder: fingerprint is missing; pieces_max is missing; weigh is missing;",
        ),
        (len, "builtin_function_or_method is no embedder: fingerprint is missing;"),
    ],
)
def test_a_wrong_embedder_is_refused(path: Path, given: Any, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        nacre.open(path, embedder=given)
    assert refused.value.field == "embedder"
    assert problem in refused.value.problem
    assert refused.value.problem.endswith(NEEDS)
    assert not path.exists()  # nothing was written


def test_a_class_is_no_object(path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"^embedder: is the class Ours; give an object of it, such as Ours\(\)$"):
        nacre.open(path, embedder=Ours)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (changed(scores=lambda _: None), "scores does not take (question, texts)."),
        (changed(scores_while=lambda _, __: None), "scores_while does not take (question, texts, goes_on)."),
        (changed(scores_while=None), "scores_while is None, not a method."),
        (changed(fingerprint=None), "fingerprint is None, not a text that is not empty."),
        (Hashing(), "Hashing is no reranker: scores is missing."),
    ],
)
def test_a_wrong_reranker_is_refused(path: Path, given: Any, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        nacre.open(path, embedder=None, reranker=given)
    assert refused.value.field == "reranker"
    assert problem in refused.value.problem
    assert '"Your own reranker" in docs/api.md' in refused.value.problem


@pytest.mark.parametrize(
    ("protocol", "check", "ours"),
    [
        (Embedder, custom_models.check_embedder, [Ours(), Hashing(), MiniLM()]),
        (Reranker, custom_models.check_reranker, [Ours(), NacreRerank()]),
    ],
)
def test_all_that_the_protocol_has_is_checked(protocol: Any, check: Callable[[object], None], ours: list[Any]) -> None:
    for each in ours:
        check(each)
    for name in (each for each in vars(protocol) if not each.startswith("_")):
        with pytest.raises(InvalidInput, match=f"{name} "):
            check(changed(**{name: None}))


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        (lambda _: np.ones(16, np.float32), "shape (16,) is not one row of numbers for each of 1 texts"),
        (lambda _: np.ones((3, 16), np.float32), "shape (3, 16) is not one row"),
        (lambda texts: np.ones((len(texts), 0), np.float32), "shape (1, 0) is not one row"),
        (lambda texts: np.full((len(texts), 16), np.nan, np.float32), "has NaN or infinity"),
        (lambda _: [["a"]], "could not convert"),
    ],
)
def test_vectors_that_go_wrong_later_are_a_failure_of_the_model(
    path: Path, vectors: Callable[[Sequence[str]], Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = changed()
    with nacre.open(path, embedder=given) as memory, caplog.at_level(logging.WARNING, "nacre"):
        given.embed_passages, given.embed_query = vectors, lambda text: vectors([text])[0]
        kept = memory.remember("apple pie").id
        assert said in caplog.text
        assert memory.stats().pending == 1
        (hit,) = memory.search("apple").hits
        assert (hit.id, hit.match_type) == (kept, "bm25")


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"embed_passages": lambda _: np.ones(16, np.float32)}, "shape (16,) is not one row of numbers for each of 3"),
        ({"embed_passages": lambda _: np.ones((3, 16), np.float32) / 4}, "shape (3, 16) is not one row of numbers"),
        ({"embed_passages": lambda texts: np.ones((len(texts), 0))}, "by embed_passages: an array of shape (3, 0)"),
        ({"embed_passages": lambda texts: np.full((len(texts), 16), np.nan)}, "has NaN or infinity"),
        ({"embed_passages": lambda _: [["a"]]}, "could not convert"),
        ({"embed_query": lambda _: np.full(16, np.inf)}, "by embed_query: a vector has NaN or infinity"),
        (
            {"embed_query": lambda text: Hashing(8).embed_query(text)},
            "vectors of 16 numbers, and questions vectors of 8",
        ),
        ({"embed_query": lambda text: 2 * Hashing(16).embed_query(text)}, "a vector of length 2; divide each by its"),
        ({"embed_passages": lambda texts: np.zeros((len(texts), 16))}, "a vector of length 0; divide each by its"),
        ({"embed_passages": lambda texts: _turned(len(texts))}, "gives one text different vectors from call to call"),
        (
            {"embed_passages": lambda texts: np.eye(len(texts), 16)},
            "gives one text different vectors from call to call",
        ),
    ],
)
def test_wrong_vectors_are_refused_when_a_store_is_opened(path: Path, attributes: Any, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        nacre.open(path, embedder=changed(**attributes))
    assert refused.value.field == "embedder"
    assert said in refused.value.problem
    assert '"Your own embedder" in docs/api.md' in refused.value.problem
    assert not path.exists()


def _turned(texts: int) -> Any:
    """All texts of a call have one vector, which depends on how many there are."""
    return np.tile([np.cos(texts), np.sin(texts), *[0.0] * 14], (texts, 1))


def test_an_embedder_that_is_away_does_not_keep_a_store_closed(path: Path) -> None:
    def away(_: object) -> Any:
        raise OSError("no route to the model")

    with nacre.open(path, embedder=changed(embed_passages=away, embed_query=away)) as memory:
        kept = memory.remember("apple pie").id
        assert memory.search("apple").hits[0].id == kept


def test_vectors_may_be_lists(path: Path) -> None:
    def vector(text: str) -> list[float]:
        return [0.6, 0.8] if "pie" in text else [0.8, 0.6]

    given = changed(embed_passages=lambda texts: [vector(text) for text in texts], embed_query=vector)
    with nacre.open(path, embedder=given) as memory:
        memory.remember("apple pie")
        assert memory.search("tart", mode="semantic").hits[0].match_type == "semantic"


# ---------------------------------------------------------------- token vectors


def test_an_embedder_with_some_of_token_vectors_needs_all_of_them() -> None:
    with pytest.raises(InvalidInput) as raised:
        custom_models.check_embedder(changed(embed_with_tokens=lambda texts: texts))
    for name in ("token_fingerprint", "token_format", "query_tokens", "token_spans"):
        assert f"{name} is missing" in str(raised.value)
    custom_models.check_embedder(Hashing())


@pytest.mark.parametrize("form", [None, (64, 4), TokenFormat(63, 4), TokenFormat(64, 2), TokenFormat(0, 8)])
def test_a_format_that_cannot_be_packed(form: Any) -> None:
    class Odd(Hashing):
        token_format = form

    with pytest.raises(InvalidInput, match="an even number of dimensions and 4 or 8 bits"):
        custom_models.check_embedder(Odd())

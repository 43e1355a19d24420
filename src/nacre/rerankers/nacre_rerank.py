"""nacre-rerank, Nacre's own cross-encoder, run locally by ONNX Runtime. Nothing is downloaded.

The model scores how well a text answers a question, for ranking, and says how likely it answers at all. Both depend on
this pair alone, to the last bit: each pair is one run on one thread, without padding. Several runs work in parallel.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.interfaces import RerankScore, RerankText
from nacre.runtime import onnx_models
from nacre.runtime.threads import Threads

if TYPE_CHECKING:
    from nacre.analysis.wordpiece import WordPiece

FOLDER = onnx_models.RERANKER
VOCABULARY = onnx_models.EMBEDDER / onnx_models.VOCABULARY  # the model was initialized from that one
MODEL_SHA256 = "29a5a2ed4043fccf6ca56359fc522531ad6b1783a6e0abc0dde1f8a505932fc4"

# As in training/training_data.py: inputs must have the format of the training data.
FIRST, BREAK = 101, 102  # [CLS], [SEP]
TEXT_BEGINS, TEXT_ENDS = 2, 3  # [unused1], [unused2]: around the text to score; its neighbours are outside
# No text has a higher score. The last layer is normalised, so the product with the weights of the score has a bound:
# training/export_reranker.py computes it.
SCORE_MAX = 5.6775
PIECES_MAX = 192  # of the whole input
QUESTION_PIECES = 40
TEXT_PIECES = 96  # of a text with neighbours; a text without may fill the rest of the input
NEIGHBOUR_PIECES = 12  # the beginning of each; twice as many took 25 % longer and found no more


class NacreRerank:
    """The reranker that ships with Nacre. The model is loaded when it is first needed."""

    def __init__(self, threads: int | None = None, folder: Path = FOLDER) -> None:
        self._model = onnx_models.OnnxModel(
            folder / onnx_models.MODEL, VOCABULARY, purpose="reranking", fallback="search without reranking"
        )
        self._threads = threads or os.cpu_count() or 1
        self._pool = Threads()

    @property
    def fingerprint(self) -> str:
        return f"nacre-rerank-v3/{PIECES_MAX}/{MODEL_SHA256[:12]}"

    @property
    def score_max(self) -> float:
        return SCORE_MAX

    def preload(self) -> None:
        """Start to load the model in the background, so that the first call of `scores` waits less."""
        self._model.preload()

    def vocabulary_coverage(self, question: str) -> float:
        # Invented names are compared letter by letter, which needs no training.
        return self._model.word_pieces().vocabulary_coverage(question, names=True)

    def scores(self, question: str, texts: Sequence[RerankText]) -> list[RerankScore]:
        # The longest come first, so that the last runs to finish are short.
        order = sorted(range(len(texts)), key=lambda place: sum(map(len, texts[place])), reverse=True)
        found = self.scores_while(question, [texts[place] for place in order], lambda _: True)
        by_place = dict(zip(order, found, strict=True))
        return [by_place[place] for place in range(len(texts))]

    def scores_while(
        self, question: str, texts: Sequence[RerankText], goes_on: Callable[[Sequence[RerankScore]], bool]
    ) -> list[RerankScore]:
        if not texts:
            return []
        pieces = self._model.word_pieces()
        question_pieces = pieces.first_pieces(question, QUESTION_PIECES)
        self._model.session()  # before the threads start, so that they do not wait for each other
        found: dict[int, RerankScore] = {}
        places = _while(goes_on, found, len(texts))
        lock = threading.Lock()

        def work() -> None:
            while True:
                with lock:
                    place = next(places, None)
                if place is None:
                    return
                found[place] = self._run(_encode_pair(pieces, question_pieces, texts[place]))

        others = [self._pool.start(work) for _ in range(min(self._threads, len(texts)) - 1)]  # besides this thread
        work()
        for each in others:
            each.result()
        return [found[place] for place in range(len(found))]  # all that were taken, from the first on

    def _run(self, pair: Sequence[int]) -> RerankScore:
        (score,), (answers,) = self._model.run([pair], ["score", "answers"])
        return RerankScore(float(score), float(answers))


def _while(
    goes_on: Callable[[Sequence[RerankScore]], bool], found: Mapping[int, RerankScore], number: int
) -> Iterator[int]:
    """0, 1, … up to `number`, each only if `goes_on` allows it after the scores so far, up to the first gap."""
    for place in range(number):
        if not goes_on([found[each] for each in takewhile(found.__contains__, range(place))]):
            return
        yield place


def _encode_pair(pieces: WordPiece, question: Sequence[int], placed: RerankText) -> list[int]:
    """The model's input for a question and a text. Parts that are too long are truncated."""
    before = pieces.first_pieces(placed.before, NEIGHBOUR_PIECES)
    after = pieces.first_pieces(placed.after, NEIGHBOUR_PIECES)
    if before or after:
        text = pieces.first_pieces(placed.text, TEXT_PIECES)
        return [FIRST, *question, BREAK, *before, TEXT_BEGINS, *text, TEXT_ENDS, *after, BREAK]
    text = pieces.first_pieces(placed.text, PIECES_MAX - len(question) - 3)
    return [FIRST, *question, BREAK, *text, BREAK]

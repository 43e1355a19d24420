"""Training data of late interaction: the lists of the reranker with each text by itself, dialogues, notes and code."""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import BertWordPieceTokenizer

import near_misses
import network
import train_reranker
import training_data
from near_misses import Note, Scene
from train_reranker import Weights
from training_data import CLS, SEP, TARGET, TARGET_END, Asked, Corpus, Lists, Mined, Pieces

TEXT_PIECES = 160
QUESTION_PIECES = 40
# The share of each form of list.
MIX = {
    "spoken": 0.15,
    "turns": 0.17,
    "sentences": 0.10,
    "paragraphs": 0.16,
    "quoted": 0.08,
    "meeting": 0.06,
    "dialogue": 0.14,
    "note": 0.05,
    "code": 0.09,
}
UNTAUGHT = ("code",)  # forms that nacre-rerank was not trained on
_FUNCTION_WORDS = (
    "a an the of to in and or is are was were be been being am do does did it its that this these those with as for "
    "on at by from but so if than then there s"
).split()


class Code(NamedTuple):
    """A function: what it does, in one sentence, and its source without and with the docstring."""

    asks: Pieces
    bare: Pieces
    documented: Pieces


class Sources(NamedTuple):
    """What lists are made of."""

    corpus: Corpus
    mined: Mined
    scenes: Sequence[Scene]
    notes: Sequence[Note]
    code: Sequence[Code]
    near_code: npt.NDArray[np.int32]
    near_notes: npt.NDArray[np.int32]


class Prepared(NamedTuple):
    pieces: BertWordPieceTokenizer
    weights: Weights  # of the sentence model
    trunk: network.CrossEncoder  # the sentence model
    sources: Sources


class Batch(NamedTuple):
    """Padded ids and lengths. A question has `many + 1` texts, each with the turn before and the turn after."""

    questions: npt.NDArray[np.uint16]
    texts: npt.NDArray[np.uint16]
    beside: npt.NDArray[np.uint16]  # two rows for each text; empty where there is no neighbour
    pairs: npt.NDArray[np.uint16]  # question and text together, for the teacher
    groups: npt.NDArray[np.int64]  # questions with the same number may have the same answer
    taught: npt.NDArray[np.float32]  # whether the teacher's opinion counts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What every training on these lists is given."""
    parser.add_argument("--squad", type=Path, required=True, help="squad-train-v1.1.json.gz")
    parser.add_argument("--qmsum", type=Path, required=True, help="folder of QMSum")
    parser.add_argument("--friendsqa", type=Path, required=True, help="folder of FriendsQA")
    parser.add_argument("--code", type=Path, required=True, help="pairs by code_pairs.py")
    parser.add_argument("--articles", type=int, help="of SQuAD, for a trial")
    parser.add_argument("--seconds", type=float, help="stop early, with the rate fallen as at the end")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--workers", type=int, default=15)


def read(options: argparse.Namespace, model: Path) -> Prepared:
    """The sentence model in this folder, and what lists are made of: questions and texts, with their hard negatives."""
    begun = time.time()
    torch.backends.cuda.matmul.allow_tf32 = True
    pieces = training_data.tokenizer(model)
    weights = network.shipped_weights(model / "model.onnx")
    trunk = network.initialised(weights, list(range(train_reranker.LAYERS))).to(options.device).eval()
    corpus = training_data.load(options.squad, options.qmsum, pieces, options.articles)
    scenes = [each for each in near_misses.read_scenes(options.friendsqa) if not each.held_out]
    notes = near_misses.read_notes(sorted(Path(__file__).parent.glob("notes_*.jsonl")))
    code = read_code(options.code, pieces)
    print(
        f"{len(corpus.questions)} questions, {len(scenes)} scenes, {len(notes)} notes, {len(code)} functions",
        flush=True,
    )
    mined = train_reranker.mine(corpus, weights, pieces, options.device)
    near_code = nearest_to(trunk, [each.asks for each in code], [each.bare for each in code], 24, options.device)
    encoded = [pieces.encode(each.text, add_special_tokens=False).ids for each in notes]
    near_notes = nearest_to(trunk, encoded, encoded, 24, options.device)
    print(f"mined, {time.time() - begun:.0f} s", flush=True)
    sources = Sources(corpus, mined, scenes, notes, code, near_code, near_notes)
    return Prepared(pieces, weights, trunk, sources)


_lists: TokenLists | None = None  # of a worker process


def _begin(sources: Sources, model: Path, many: int) -> None:
    global _lists
    torch.set_num_threads(1)
    _lists = TokenLists(sources, training_data.tokenizer(model), many)


def _made(numbers: Sequence[int], seed: int) -> Batch:
    assert _lists is not None
    return _lists.batch(numbers, seed)


@contextmanager
def batches(
    sources: Sources, model: Path, many: int, options: argparse.Namespace
) -> Iterator[tuple[Iterator[Batch], Callable[[], list[Batch]]]]:
    """Batches without end, made by worker processes, and a function that returns those of held-out articles."""
    asked = sources.corpus.questions
    train = [at for at, each in enumerate(asked) if each.article >= training_data.HELD_OUT_ARTICLES]
    held_out = [at for at, each in enumerate(asked) if each.article < training_data.HELD_OUT_ARTICLES]
    generator = np.random.default_rng(3)
    with ProcessPoolExecutor(options.workers, initializer=_begin, initargs=(sources, model, many)) as workers:
        checks = [
            workers.submit(_made, held_out[start : start + 32], start)
            for start in range(0, 512, 32)
            if held_out[start:]
        ]
        pending: deque[Future[Batch]] = deque()

        def more() -> None:
            numbers = generator.choice(len(train), options.questions, replace=False)
            seed = int(generator.integers(1 << 40))
            pending.append(workers.submit(_made, [train[at] for at in numbers], seed))

        def made() -> Iterator[Batch]:
            while True:
                more()
                yield pending.popleft().result()

        for _ in range(4 * options.workers):
            more()
        pending[0].result()  # the clock of a training starts when its workers have
        try:
            yield made(), lambda: [each.result() for each in checks]
        finally:
            for each in pending:
                each.cancel()


def shares(options: argparse.Namespace) -> Iterator[float]:
    """For each step, the share of the training that is done. It ends after its steps, or when its time is up."""
    start = time.time()
    for step in range(options.steps):
        share = step / options.steps
        if options.seconds:
            share = max(share, (time.time() - start) / options.seconds)
        if share >= 1:
            return
        yield share


def rate_at(share: float, rate: float) -> float:
    """The learning rate when this share of the training is done: it rises, and then falls to 2 %."""
    return rate * min(1.0, share / 0.05) * max(0.02, 1 - share)


def on_device(rows: npt.NDArray[Any], device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and attention mask. An empty row attends to its first place, so that nothing is undefined."""
    ids = torch.from_numpy(rows.astype(np.int32)).to(device, non_blocking=True).long()
    mask = (ids > 0).long()
    mask[:, 0] = 1
    return ids, mask


def scored(score: Callable[..., torch.Tensor], rows: npt.NDArray[Any], device: str) -> torch.Tensor:
    """What a cross-encoder says of pairs. Those of like length run together, so that little of it is padding."""
    lengths = (rows > 0).sum(1)
    order = np.argsort(lengths, kind="stable")
    with torch.autocast(device, torch.bfloat16):
        parts = [score(*on_device(rows[part, : lengths[part].max()], device)) for part in np.array_split(order, 4)]
    return torch.cat(parts).float()[torch.from_numpy(np.argsort(order)).to(device)]


def dropped_pieces(pieces: BertWordPieceTokenizer) -> npt.NDArray[np.bool_]:
    """By id, whether a piece of a text gets no vector: punctuation, function words, the end mark, padding."""
    words = pieces.get_vocab()
    dropped = np.zeros(len(words), np.bool_)
    for word, number in words.items():
        dropped[number] = not any(each.isalnum() for each in word.removeprefix("##")) or word in _FUNCTION_WORDS
    dropped[[0, SEP]] = True
    dropped[CLS] = False
    return dropped


def read_code(path: Path, pieces: BertWordPieceTokenizer) -> list[Code]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]

    def encoded(texts: Sequence[str]) -> list[Pieces]:
        return [each.ids for each in pieces.encode_batch(list(texts), add_special_tokens=False)]

    asks = encoded([each["doc"].rstrip(".") for each in lines])
    bare = encoded([each["code"] for each in lines])
    documented = encoded([_documented(each) for each in lines])
    return [Code(*each) for each in zip(asks, bare, documented, strict=True)]


def _documented(line: Mapping[str, Any]) -> str:
    head, _, body = line["code"].partition("\n")
    return f'{head}\n    """{line["docstring"]}"""\n{body}'


class TokenLists(Lists):
    """Makes lists of texts, each with its neighbours."""

    def __init__(self, sources: Sources, pieces: BertWordPieceTokenizer, many: int) -> None:
        super().__init__(sources.corpus, sources.mined, pieces, many, MIX)
        self._code, self._near_code, self._near_notes = sources.code, sources.near_code, sources.near_notes
        self._scenes = [
            ([self._encoded(f"{turn.speaker}: {turn.text}") for turn in scene.turns], scene.questions)
            for scene in sources.scenes
        ]
        self._asked_scenes = [
            (at, one) for at, scene in enumerate(sources.scenes) for one in range(len(scene.questions))
        ]
        self._notes = [(self._encoded(each.text), [self._encoded(ask) for ask in each.asks]) for each in sources.notes]
        self._group = 0

    def _encoded(self, text: str) -> Pieces:
        found: Pieces = self._pieces.encode(text, add_special_tokens=False).ids
        return found

    def _forms(self) -> dict[str, Callable[[int], Asked]]:
        return super()._forms() | {"dialogue": self._dialogue, "note": self._note, "code": self._function}

    def _dialogue(self, _: int) -> Asked:
        scene, one = self.chance.choice(self._asked_scenes)
        turns, questions = self._scenes[scene]
        text, _answers, relevant = questions[one]

        def placed(at: int) -> Pieces:
            before = turns[at - 1][: training_data.BESIDE_PIECES] if at else []
            after = turns[at + 1][: training_data.BESIDE_PIECES] if at + 1 < len(turns) else []
            return [*before, TARGET, *turns[at][: training_data.TARGET_PIECES], TARGET_END, *after]

        right = self.chance.choice(sorted(relevant))
        wrong = self._some([at for at in range(len(turns)) if at not in relevant], self._many)
        other = self.chance.choice(self._scenes)[0]
        more = [[TARGET, *turn[: training_data.TARGET_PIECES], TARGET_END] for turn in self._some(other, self._many)]
        texts = [placed(right), *map(placed, wrong), *more]
        return Asked(self._encoded(text), texts[: self._many + 1])

    def _note(self, _: int) -> Asked:
        at = self.chance.randrange(len(self._notes))
        text, asks = self._notes[at]
        wrong = [int(near) for near in self._near_notes[at] if near != at][:10]
        wrong += [self.chance.randrange(len(self._notes)) for _ in range(self._many)]
        texts = [self._notes[near][0] for near in dict.fromkeys(wrong) if near != at]
        return Asked(self.chance.choice(asks), [text, *texts[: self._many]])

    def _function(self, _: int) -> Asked:
        at = self.chance.randrange(len(self._code))
        code = self._code[at]
        # All texts of a list have docstrings, or none has: otherwise having one would tell.
        documented = self.chance.random() < 0.6
        wrong = [int(near) for near in self._near_code[at] if near != at][:10]
        wrong += [self.chance.randrange(len(self._code)) for _ in range(self._many)]
        texts = [self._code[near] for near in dict.fromkeys(wrong) if near != at][: self._many]
        question = code.asks
        if self.chance.random() < 0.4:
            question = [piece for piece in question if piece not in self._mined.common] or question
        if documented:  # as people ask, who do not have the docstring before them: with some of its words
            kept = self.chance.uniform(0.3, 0.9)
            question = [piece for piece in question if self.chance.random() < kept] or question
        if self.chance.random() < 0.3:
            question = [*self._encoded("python"), *question]
        return Asked(question, [each.documented if documented else each.bare for each in (code, *texts)])

    def batch(self, numbers: Sequence[int], seed: int) -> Batch:
        self.chance = random.Random(seed)
        questions, texts, beside, pairs, groups, taught = [], [], [], [], [], []
        for number in numbers:
            form, asked = self.asked(number)
            found = list(asked.texts)
            while len(found) < self._many + 1:
                found.append(found[self.chance.randrange(1, len(found))] if len(found) > 1 else [TARGET])
            questions.append([CLS, *asked.question[:QUESTION_PIECES], SEP])
            for text in found:
                before, here, after = apart(text)
                texts.append([CLS, *here[:TEXT_PIECES], SEP])
                beside += [[CLS, *each, SEP] if each else [] for each in (before, after)]
                pairs.append(training_data.paired(asked.question, text))
            self._group += 1
            of_article = form in ("spoken", "turns", "sentences", "paragraphs", "quoted")
            groups.append(self._corpus.questions[number].article if of_article else 1_000_000 + self._group)
            taught.append(float(form not in UNTAUGHT))
        return Batch(
            padded(questions),
            padded(texts),
            padded(beside),
            padded(pairs),
            np.array(groups, np.int64),
            np.array(taught, np.float32),
        )


def apart(text: Pieces) -> tuple[Pieces, Pieces, Pieces]:
    """What stands before, between and after the marks."""
    if TARGET not in text:
        return [], text, []
    begin = text.index(TARGET)
    end = text.index(TARGET_END, begin) if TARGET_END in text[begin:] else len(text)
    return text[:begin], text[begin + 1 : end], text[end + 1 :]


def padded(rows: Sequence[Sequence[int]]) -> npt.NDArray[np.uint16]:
    """Rows of ids with zeros behind. No text has the padding's id."""
    length = -(-max(map(len, rows)) // 8) * 8
    ids = np.zeros((len(rows), max(8, length)), np.uint16)
    for at, row in enumerate(rows):
        ids[at, : len(row)] = row
    return ids


def nearest_to(
    model: Any, asked: Sequence[Sequence[int]], texts: Sequence[Sequence[int]], many: int, device: str
) -> npt.NDArray[np.int32]:
    """For each question, the nearest texts by cosine."""
    questions, found = (training_data.vectors(model, each, device, 192) for each in (asked, texts))
    best = [
        (questions[start : start + 1024] @ found.T).topk(min(many, len(texts)), dim=1).indices.to(torch.int32).cpu()
        for start in range(0, len(asked), 1024)
    ]
    numbers: npt.NDArray[np.int32] = torch.cat(best).numpy()
    return numbers

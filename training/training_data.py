"""Training data of the reranker: questions, texts that answer them, and hard negatives.

From SQuAD: the sentence with the answer (alone, marked between its neighbours like a turn of a conversation, or in the
first person) and the paragraph with the answer, or a part of it. From QMSum: passages of meetings. Also sentences as
queries for the paragraph they were taken from, because not every query is a question. Hard negatives are mined with the
sentence model and BM25, or come from the same paragraph, article or meeting.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import BertWordPieceTokenizer

CLS, SEP, TARGET, TARGET_END = 101, 102, 2, 3  # the last two are [unused1] and [unused2]
QUESTION_PIECES, TARGET_PIECES, BESIDE_PIECES, PIECES = 40, 96, 24, 192
HELD_OUT_ARTICLES = 30

Pieces: TypeAlias = list[int]  # ids of word pieces
T = TypeVar("T")

_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[A-Z0-9\"'(\[])")
_NAME = re.compile(r"\b[A-Z][\w'’.-]*[\w](?: (?:of |the |de |van )?[A-Z][\w'’.-]*[\w])*")
_ASKS_WHEN = re.compile(r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|decade|century)\b", re.IGNORECASE)
_WHEN = (
    "yesterday|last week|last month|recently|last Friday|two days ago|a few weeks ago|last weekend|this morning|"
    "next month|last year|the other day|on Tuesday|a while back|last night|today|next week|three years ago"
).split("|")
_AS_SPOKEN = [
    (re.compile(pattern, re.IGNORECASE), said)
    for pattern, said in (
        (r"\b(?:he|she|they)\b", "I"),
        (r"\b(?:his|their)\b", "my"),
        (r"\bher\b(?= \w)", "my"),
        (r"\b(?:him|them|her)\b", "me"),
        (r"\b(?:himself|herself|themselves)\b", "myself"),
        (r"\bI is\b", "I'm"),
        (r"\bI has\b", "I have"),
    )
]
_OPENERS = ("", "", "", "", "Yeah, ", "Well, ", "Thanks! ", "Wow! ", "Hey, ", "Sure. ", "I know! ", "Oh, ")
_COMMON = frozenset(
    "a an the of in on at to for by with from and or but is are was were be been do does did has have had what which "
    "who whom whose when where why how that this these those it its as than".split()
)
_NAMES = (
    "Ana Ben Carol Dev Elif Farid Grace Hugo Ines Jonas Kemi Lena Marco Nadia Omar Petra Quinn Rosa Sam Tara Uma "
    "Viktor Wen Xenia Yusuf Zoe Alice Boris Chloe Diego Emma Felix Gita Hannah Ivan Julia Karim Laura Mia Noah Olga "
    "Paul Rita Sofia Tom Ursula Vera Will Yara Anton"
).split()


@dataclass
class Unit:
    """A text with the texts before and after it."""

    pieces: Pieces
    article: int
    paragraph: int
    before: int | None = None
    after: int | None = None
    text: str = ""


@dataclass
class Question:
    text: str
    pieces: Pieces
    article: int
    paragraph: int
    sentence: int  # the number of the sentence that answers
    answers: tuple[str, ...]


class Meeting(NamedTuple):
    """A question about a meeting, and passages of the meeting."""

    question: Pieces
    relevant: list[Pieces]
    others: list[Pieces]
    split: str


class Tokenised(Protocol):
    text: str
    pieces: Pieces


class Mined(NamedTuple):
    """Hard negatives: for each question, the numbers of the nearest sentences and paragraphs."""

    sentences: npt.NDArray[np.int32]
    paragraphs: npt.NDArray[np.int32]
    common: frozenset[int]  # pieces that say little, which people leave out


@dataclass
class Corpus:
    sentences: list[Unit]
    paragraphs: list[Unit]
    questions: list[Question]
    meetings: list[Meeting]


def tokenizer(folder: Path) -> BertWordPieceTokenizer:
    return BertWordPieceTokenizer(str(folder / "vocab.txt"), lowercase=True)


def load(squad: Path, qmsum: Path, pieces: BertWordPieceTokenizer, most: int | None = None) -> Corpus:
    """At most so many articles, for a trial."""
    articles = json.loads(gzip.decompress(squad.read_bytes()))["data"][:most]
    sentences: list[Unit] = []
    paragraphs: list[Unit] = []
    questions: list[Question] = []
    for article, each in enumerate(articles):
        for found in each["paragraphs"]:
            context, number = found["context"], len(paragraphs)
            paragraphs.append(Unit([], article, number, text=context))
            starts = [0, *(end.end() for end in _SENTENCE.finditer(context))]
            first = len(sentences)
            for at, start in enumerate(starts):
                end = starts[at + 1] if at + 1 < len(starts) else len(context)
                here = len(sentences)
                before = here - 1 if at else None
                after = here + 1 if at + 1 < len(starts) else None
                sentences.append(Unit([], article, number, before, after, context[start:end].strip()))
            for one in found["qas"]:
                place = one["answers"][0]["answer_start"]
                at = max(index for index, start in enumerate(starts) if start <= place)
                answers = tuple({answer["text"].casefold() for answer in one["answers"]})
                questions.append(Question(one["question"].strip(), [], article, number, first + at, answers))
    for units in (sentences, paragraphs, questions):
        _tokenise(units, pieces)
    return Corpus(sentences, paragraphs, questions, _meetings(qmsum, pieces))


def _tokenise(units: Sequence[Tokenised], pieces: BertWordPieceTokenizer) -> None:
    encoded = pieces.encode_batch([unit.text for unit in units], add_special_tokens=False)
    for unit, each in zip(units, encoded, strict=True):
        unit.pieces = each.ids[:PIECES]


def _meetings(folder: Path, pieces: BertWordPieceTokenizer) -> list[Meeting]:
    def lines(name: str) -> Iterator[Any]:
        with gzip.open(folder / name, "rt", encoding="utf-8") as file:
            yield from map(json.loads, file)

    cleaned = re.compile(r"\{[a-z]+\}")
    passages = {each["_id"]: cleaned.sub("", each["text"]) for each in lines("corpus.jsonl.gz")}
    encoded = pieces.encode_batch(list(passages.values()), add_special_tokens=False)
    ids = {name: each.ids[:PIECES] for name, each in zip(passages, encoded, strict=True)}
    relevant: dict[str, set[str]] = {}
    with gzip.open(folder / "qrels.tsv.gz", "rt", encoding="utf-8") as file:
        next(file)
        for line in file:
            query, passage, score = line.split("\t")
            if int(score) > 0:
                relevant.setdefault(query, set()).add(passage)
    found = []
    by_meeting: dict[str, list[str]] = {}
    for name in passages:
        by_meeting.setdefault(name.rpartition("/")[0], []).append(name)
    for each in lines("queries.jsonl.gz"):
        good = relevant.get(each["_id"], set())
        others = [name for name in by_meeting[each["metadata"]["scope"]] if name not in good]
        if good and len(others) >= 7:
            question = pieces.encode(each["text"], add_special_tokens=False).ids
            answers, rest = [ids[name] for name in good], [ids[name] for name in others]
            found.append(Meeting(question, answers, rest, each["metadata"]["split"]))
    return found


# ---------------------------------------------------------------- hard negatives


def vectors(network: Any, units: Sequence[Sequence[int]], device: str, pieces_max: int = 96) -> torch.Tensor:
    """Sentence vectors of texts in float16."""
    order = sorted(range(len(units)), key=lambda at: len(units[at]))
    out = torch.empty(len(units), 384, dtype=torch.float16, device=device)
    for start in range(0, len(order), 1024):
        rows = order[start : start + 1024]
        ids, mask = padded([[CLS, *units[at][:pieces_max], SEP] for at in rows], device)
        with torch.no_grad(), torch.autocast(device, torch.bfloat16):
            out[rows] = network.meaning(ids, mask).half()
    return out


def bm25_weights(units: Sequence[Sequence[int]], words: int, device: str) -> torch.Tensor:
    """A sparse matrix of documents by pieces: what each piece adds to the BM25 score of a document."""
    rows, columns, values = [], [], []
    mean = np.mean([len(each) for each in units])
    having = np.zeros(words)
    counted = []
    for each in units:
        unique, counts = np.unique(each, return_counts=True)
        having[unique] += 1
        counted.append((unique, counts))
    idf = np.log1p((len(units) - having + 0.5) / (having + 0.5))
    for row, (unique, counts) in enumerate(counted):
        length = 1.2 * (0.25 + 0.75 * len(units[row]) / mean)
        rows.append(np.full(len(unique), row))
        columns.append(unique)
        values.append(idf[unique] * counts * 2.2 / (counts + length))
    places = torch.tensor(np.stack([np.concatenate(rows), np.concatenate(columns)]))
    weights = torch.tensor(np.concatenate(values), dtype=torch.float32)
    return torch.sparse_coo_tensor(places, weights, (len(units), words)).coalesce().to(device).to_sparse_csr()


def nearest(
    questions: torch.Tensor,
    units: torch.Tensor,
    asked: Sequence[Sequence[int]],
    weights: torch.Tensor,
    words: int,
    many: int,
) -> npt.NDArray[np.int32]:
    """The best units for each question by the sum of cosine and BM25, each divided by its maximum."""
    found = []
    for start in range(0, len(asked), 512):
        cosine = (questions[start : start + 512] @ units.T).float()
        query = torch.zeros(words, len(cosine), device=cosine.device)
        for column, pieces in enumerate(asked[start : start + 512]):
            query[torch.tensor(sorted(set(pieces)), device=cosine.device), column] = 1
        lexical = (weights @ query).T
        blended = cosine / cosine.amax(1, keepdim=True) + lexical / lexical.amax(1, keepdim=True).clamp_min(1e-6)
        found.append(blended.topk(many, dim=1).indices.to(torch.int32).cpu())
    numbers: npt.NDArray[np.int32] = torch.cat(found).numpy()
    return numbers


# ---------------------------------------------------------------- lists to rank


def alone(unit: Unit, name: list[int]) -> list[int]:
    return [*name, *unit.pieces[:TARGET_PIECES]]


def marked(unit: Unit, units: Sequence[Unit], names: Sequence[list[int]], beside: int) -> list[int]:
    """A text between its neighbours, with markers around it."""
    here, there = names
    before = [] if unit.before is None else [*there, *units[unit.before].pieces][:beside]
    after = [] if unit.after is None else [*there, *units[unit.after].pieces][:beside]
    return [*before, TARGET, *here, *unit.pieces[:TARGET_PIECES], TARGET_END, *after]


def paired(question: Sequence[int], text: Sequence[int], pieces_max: int = PIECES) -> list[int]:
    head = [CLS, *question[:QUESTION_PIECES], SEP]
    return [*head, *text[: pieces_max - len(head) - 1], SEP]


def padded(rows: Sequence[Sequence[int]], device: str) -> tuple[torch.Tensor, torch.Tensor]:
    length = -(-max(map(len, rows)) // 8) * 8
    ids = np.zeros((len(rows), length), np.int64)
    mask = np.zeros((len(rows), length), np.int64)
    for at, row in enumerate(rows):
        ids[at, : len(row)] = row
        mask[at, : len(row)] = 1
    return torch.from_numpy(ids).to(device, non_blocking=True), torch.from_numpy(mask).to(device, non_blocking=True)


class Asked(NamedTuple):
    """A question, the text that answers it, and texts that do not."""

    question: Sequence[int]
    texts: list[Pieces]


class Lists:
    """Makes lists to rank: one text that answers, then `many` that do not."""

    def __init__(
        self, corpus: Corpus, mined: Mined, pieces: BertWordPieceTokenizer, many: int, mix: Mapping[str, float]
    ) -> None:
        self._corpus, self._mined, self._pieces, self._many, self._mix = corpus, mined, pieces, many, mix
        self._names = speaker_names(pieces)
        self.chance = random.Random()
        self._in_paragraph: dict[int, list[int]] = {}
        self._in_article: dict[int, list[int]] = {}
        self._article_paragraphs: dict[int, list[int]] = {}
        for at, unit in enumerate(corpus.sentences):
            self._in_paragraph.setdefault(unit.paragraph, []).append(at)
            self._in_article.setdefault(unit.article, []).append(at)
        for at, unit in enumerate(corpus.paragraphs):
            self._article_paragraphs.setdefault(unit.article, []).append(at)
        self._meetings = [each for each in corpus.meetings if each.split == "train"]

    def of(self, number: int) -> list[list[int]]:
        """The list of one question, in a random form, as rows of question and text."""
        return self.drawn(number)[1]

    def drawn(self, number: int) -> tuple[str, list[list[int]]]:
        """A random form, and the list of one question in it."""
        form, (question, texts) = self.asked(number)
        rows = [paired(question, text) for text in texts]
        while len(rows) < self._many + 1:  # rare: there are too few negatives
            rows.append(rows[self.chance.randrange(1, len(rows))] if len(rows) > 1 else paired(question, [TARGET]))
        return form, rows

    def asked(self, number: int) -> tuple[str, Asked]:
        """A random form, and a question in it with the texts to rank: the first answers."""
        form = self.chance.choices(list(self._mix), list(self._mix.values()))[0]
        return form, self._forms()[form](number)

    def _forms(self) -> dict[str, Callable[[int], Asked]]:
        return {
            "spoken": self._spoken,
            "turns": self._turns,
            "sentences": self._sentences,
            "paragraphs": self._paragraphs,
            "quoted": self._quoted,
            "meeting": self._meeting,
        }

    def _question(self, asked: Question) -> list[int]:
        """The question, or as people type it: without the words that say little."""
        if self.chance.random() < 0.15:
            return [piece for piece in asked.pieces if piece not in self._mined.common] or asked.pieces
        return asked.pieces

    def _wrong_sentences(self, number: int) -> list[int]:
        corpus, asked = self._corpus, self._corpus.questions[number]
        near = [at for at in self._in_paragraph[asked.paragraph] if at != asked.sentence]
        mined = [int(at) for at in self._mined.sentences[number] if at != asked.sentence]
        wrong = list(dict.fromkeys([*self._some(near, 4), *self._some(mined[:24], 9)]))
        wrong += self._some(self._in_article[asked.article], self._many)
        found = []
        for at in dict.fromkeys(wrong):
            text = corpus.sentences[at].text.casefold()
            if at != asked.sentence and not any(answer in text for answer in asked.answers):
                found.append(at)
        return found[: self._many]

    def _spoken(self, number: int) -> Asked:
        """In the first person: the name becomes "I", and a date may become a word like "yesterday"."""
        corpus, asked = self._corpus, self._corpus.questions[number]
        right = corpus.sentences[asked.sentence].text
        names = sorted((each.group() for each in _NAME.finditer(asked.text, 1)), key=len, reverse=True)
        name = next((each for each in names if each in right), names[0] if names else None)
        if name is None or name.casefold() in asked.answers:
            return self._turns(number)
        speaker, other = self.chance.sample(_NAMES, 2)
        if _ASKS_WHEN.search(asked.text) and self.chance.random() < 0.6:
            for answer in sorted(asked.answers, key=len, reverse=True):
                place = right.casefold().find(answer)
                if place >= 0:
                    right = right[:place] + self.chance.choice(_WHEN) + right[place + len(answer) :]
                    break
        texts = [self._said(right, corpus.sentences[asked.sentence], name, speaker, other)]
        for at in self._wrong_sentences(number):
            who = (speaker, other) if self.chance.random() < 0.6 else (other, speaker)
            texts.append(self._said(corpus.sentences[at].text, corpus.sentences[at], name, *who))
        question = re.sub(rf"(?:\bthe )?\b{re.escape(name)}\b", speaker, asked.text)
        encoded = self._pieces.encode(question, add_special_tokens=False).ids
        if self.chance.random() < 0.1:
            encoded = [piece for piece in encoded if piece not in self._mined.common] or encoded
        return Asked(encoded, texts)

    def _said(self, text: str, unit: Unit, name: str, speaker: str, other: str) -> list[int]:
        """A sentence as a turn of one speaker between turns of the other."""

        def turn(sentence: str, by: str, most: int) -> list[int]:
            sentence = re.sub(rf"(?:\b[Tt]he )?\b{re.escape(name)}['’]s\b", "my", sentence)
            sentence = re.sub(rf"(?:\b[Tt]he )?\b{re.escape(name)}\b", "I", sentence)
            for pattern, said in _AS_SPOKEN:
                sentence = pattern.sub(said, sentence)
            line = f"{by}: {self.chance.choice(_OPENERS)}{sentence}"
            encoded: Pieces = self._pieces.encode(line, add_special_tokens=False).ids
            return encoded[:most]

        units = self._corpus.sentences
        here = turn(text, speaker, TARGET_PIECES)
        if self.chance.random() < 0.15:
            return here
        before = [] if unit.before is None else turn(units[unit.before].text, other, BESIDE_PIECES)
        after = [] if unit.after is None else turn(units[unit.after].text, other, BESIDE_PIECES)
        return [*before, TARGET, *here, TARGET_END, *after]

    def _turns(self, number: int) -> Asked:
        corpus, asked = self._corpus, self._corpus.questions[number]
        named = self.chance.random() < 0.5
        beside = self.chance.choice((BESIDE_PIECES, BESIDE_PIECES, BESIDE_PIECES // 2))
        texts = []
        for at in (asked.sentence, *self._wrong_sentences(number)):
            names = self.chance.sample(self._names, 2) if named else ([], [])
            texts.append(marked(corpus.sentences[at], corpus.sentences, names, beside))
        return Asked(self._question(asked), texts)

    def _sentences(self, number: int) -> Asked:
        asked = self._corpus.questions[number]
        named = self.chance.random() < 0.3
        texts = [
            alone(self._corpus.sentences[at], self.chance.choice(self._names) if named else [])
            for at in (asked.sentence, *self._wrong_sentences(number))
        ]
        return Asked(self._question(asked), texts)

    def _paragraphs(self, number: int) -> Asked:
        asked = self._corpus.questions[number]
        mined = [int(at) for at in self._mined.paragraphs[number][:20]]
        wrong = [*self._some(mined, 9), *self._some(self._article_paragraphs[asked.article], self._many)]
        found = []
        for at in dict.fromkeys(wrong):
            text = self._corpus.paragraphs[at].text.casefold()
            if at != asked.paragraph and not any(answer in text for answer in asked.answers):
                found.append(at)
        shortened = self.chance.random() < 0.5
        texts = [
            self._window(at, asked.sentence) if shortened else self._corpus.paragraphs[at].pieces
            for at in (asked.paragraph, *found[: self._many])
        ]
        return Asked(self._question(asked), texts)

    def _window(self, paragraph: int, sentence: int) -> list[int]:
        """Some sentences of a paragraph around this one, because long texts are reranked through a window."""
        inside = self._in_paragraph[paragraph]
        middle = sentence if sentence in inside else self.chance.choice(inside)
        first = max(inside[0], middle - self.chance.randrange(3))
        last = min(inside[-1], middle + self.chance.randrange(3))
        return [piece for at in range(first, last + 1) for piece in self._corpus.sentences[at].pieces]

    def _quoted(self, number: int) -> Asked:
        """A sentence is the query for the paragraph that it was taken from."""
        asked = self._corpus.questions[number]
        inside = self._in_paragraph[asked.paragraph]
        if len(inside) < 3:
            return self._paragraphs(number)
        taken = self.chance.choice(inside)
        kept = self.chance.uniform(0.5, 1.0)
        said = [piece for piece in self._corpus.sentences[taken].pieces if self.chance.random() < kept]
        rest = [piece for at in inside if at != taken for piece in self._corpus.sentences[at].pieces]
        mined = [int(at) for at in self._mined.paragraphs[number][:20] if at != asked.paragraph]
        others = [at for at in self._article_paragraphs[asked.article] if at != asked.paragraph]
        wrong = list(dict.fromkeys([*self._some(others, 8), *self._some(mined, self._many)]))[: self._many]
        return Asked(said or asked.pieces, [rest, *(self._corpus.paragraphs[at].pieces for at in wrong)])

    def _meeting(self, _: int) -> Asked:
        meeting = self.chance.choice(self._meetings)
        relevant = self.chance.choice(meeting.relevant)
        return Asked(meeting.question, [relevant, *self._some(meeting.others, self._many)])

    def _some(self, of: Sequence[T], many: int) -> list[T]:
        return self.chance.sample(list(of), min(many, len(of)))


def common_pieces(pieces: BertWordPieceTokenizer) -> frozenset[int]:
    return frozenset(pieces.token_to_id(word) for word in (*_COMMON, "?")) - {None}


def speaker_names(pieces: BertWordPieceTokenizer) -> list[list[int]]:
    return [pieces.encode(f"{name}:", add_special_tokens=False).ids for name in _NAMES]

"""Questions with known answers: from a file, from judged searches in the recall log, or probes of the memories.

Open the engine without a recall log: these questions must not enter it. Nothing here writes.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from nacre import validation
from nacre.access import Access
from nacre.analysis import tokenizer
from nacre.analysis.names import fold
from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput
from nacre.evaluation.metrics import seeded_random
from nacre.query.lexer import preview
from nacre.types.memory import Memory
from nacre.types.recall_log import Receipt
from nacre.types.search import Filter, SearchRequest
from nacre.validation import LIMITS

Source: TypeAlias = Literal["file", "log", "probes"]
Lines: TypeAlias = Iterable[bytes | str]

JUDGED_MIN = 20  # questions that the log must have to be used by default
SAMPLE = 200  # probes by default
SAMPLE_MAX = 10_000
SEED = 1
_PAGE = 1_000

_RARE_WORDS = 4
_SENTENCE_WORDS_MIN = 6
_SENTENCE_WORDS_MAX = 24
_LEFT_OF_SENTENCE = 2 / 3
_SENTENCE_END = re.compile(r"[.!?…。！？\n]+")


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A question and its answers. Each answer is a group of interchangeable memories; the first represents it."""

    query: str
    space: str
    answers: tuple[tuple[str, ...], ...]
    wrong: tuple[str, ...] = ()  # memories that were marked as wrong
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of a source. `unanswered` are those that no live memory answers."""

    source: Source
    judged: tuple[JudgedQuestion, ...]
    unanswered: tuple[str, ...] = ()
    elsewhere: int = 0  # questions about other spaces, which were left out


# ---------------------------------------------------------------- questions


def load_questions(
    memory: Nacre,
    space: str,
    source: Source | None = None,
    lines: Lines | None = None,
    *,
    sample: int | None = None,
    seed: int = SEED,
) -> Questions:
    """The questions of a source. By default the file's, or the log's if it has enough, or else probes."""
    if sample is not None and not 1 <= sample <= SAMPLE_MAX:
        raise InvalidInput("sample", f"is {sample}; a whole number from 1 to {SAMPLE_MAX:,} is allowed")
    if lines is not None and source not in (None, "file"):
        raise InvalidInput("from", f"is {source}, but a file was given; give one of the two")
    if source == "file" and lines is None:
        raise InvalidInput("file", "is missing; name a file with questions")
    if lines is not None:
        return _sampled(from_file(memory, space, lines), sample, seed)
    if source in (None, "log"):
        logged = from_log(memory, space)
        if source == "log" or len(logged.judged) >= JUDGED_MIN:
            return _sampled(logged, sample, seed)
    return from_probes(memory, space, sample or SAMPLE, seed)


def _sampled(questions: Questions, sample: int | None, seed: int) -> Questions:
    if sample is None or len(questions.judged) <= sample:
        return questions
    return replace(questions, judged=tuple(seeded_random(seed).sample(questions.judged, sample)))


def _answers(
    memory: Nacre, ids: Iterable[str], alternatives: Iterable[tuple[str, ...]] = ()
) -> tuple[tuple[str, ...], ...]:
    """The answers: each memory with its near-duplicates, and the alternatives. Overlapping groups are merged."""
    answers: list[tuple[str, ...]] = []
    for given in (*((each, *(like.id for like in memory.similar(each))) for each in ids), *alternatives):
        shared = [answer for answer in answers if not set(answer).isdisjoint(given)]
        joined = tuple(dict.fromkeys(each for several in (*shared, given) for each in several))
        answers = [*(answer for answer in answers if answer not in shared), joined]
    return tuple(answers)


def _live(memory: Nacre, ids: Iterable[str], space: str) -> list[str]:
    wanted = list(dict.fromkeys(ids))
    there = {
        each.id: each
        for start in range(0, len(wanted), _PAGE)
        for each in memory.get(wanted[start : start + _PAGE], missing_ok=True)
    }
    return [each for each in wanted if each in there and there[each].deleted is None and there[each].space == space]


# ---- from a file


class _FileQuestion(NamedTuple):
    """A question in a file."""

    query: str
    space: str | None
    ids: tuple[str, ...]
    text: str | None  # that an answer contains


def from_file(memory: Nacre, space: str, lines: Lines) -> Questions:
    """Questions from JSON Lines with `ids` or `answer`, or from lines of a query, a tab and an id."""
    wanted: dict[tuple[str, str], list[_FileQuestion]] = {}
    for each in _parse_lines(lines):
        wanted.setdefault((each.space or space, fold(each.query)), []).append(each)
    texts = {(within, each.text) for (within, _), several in wanted.items() for each in several if each.text}
    having = _memories_containing(memory, texts)
    judged: list[JudgedQuestion] = []
    unanswered: list[str] = []
    for (within, _), several in wanted.items():
        ids = _live(memory, (memory_id for each in several for memory_id in each.ids), within)
        alternatives = [having[within, each.text] for each in several if each.text and having[within, each.text]]
        answers = _answers(memory, ids, alternatives)
        if answers:
            judged.append(JudgedQuestion(several[0].query, within, answers))
        else:
            unanswered.append(several[0].query)
    return Questions("file", tuple(judged), tuple(unanswered))


def _memories_containing(memory: Nacre, texts: Iterable[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, ...]]:
    """By space and text, the memories of the space that contain the text. Case and white space are ignored."""
    found: dict[tuple[str, str], list[str]] = {each: [] for each in texts}
    for space in sorted({space for space, _ in found}):
        sought = [(fold(text), ids) for (within, text), ids in found.items() if within == space]
        for each in memory.every(Filter(spaces=(space,))):
            folded = fold(each.text)
            for text, ids in sought:
                if text in folded:
                    ids.append(each.id)
    return {each: tuple(ids) for each, ids in found.items()}


def _parse_lines(lines: Lines) -> Iterator[_FileQuestion]:
    for number, raw in enumerate(lines, 1):
        try:
            line = (raw.decode("utf-8-sig") if isinstance(raw, bytes) else raw).strip("\r\n\ufeff")
            if line.strip():
                yield _parse_line(line)
        except InvalidInput as problem:
            raise InvalidInput(f"line {number}: {problem.field}", problem.problem) from None
        except (ValueError, RecursionError) as problem:
            raise InvalidInput(f"line {number}", f"cannot be read ({problem})") from None


def _parse_line(line: str) -> _FileQuestion:
    if line.lstrip().startswith("{"):
        read = _parse_object(json.loads(line))
    else:
        query, tab, memory_id = line.partition("\t")
        if not tab or not memory_id.strip() or "\t" in memory_id:
            raise InvalidInput(
                "query", "must be followed by a tab and an id, or be in a JSON object with ids or answer"
            )
        read = _FileQuestion(query, None, (memory_id.strip(),), None)
    if not read.query.strip():
        raise InvalidInput("query", "is blank; give the question")
    validation.search(SearchRequest(query=read.query, where=_space_filter(read.space)), Access(), LIMITS)
    validation.ids(read.ids, LIMITS)
    return read


def _parse_object(data: dict[str, Any]) -> _FileQuestion:
    unknown = sorted(data.keys() - {"query", "ids", "answer", "space"})
    if unknown:
        raise InvalidInput(preview(unknown[0]), "is unknown; allowed: query, ids, answer, space")
    if ("ids" in data) == ("answer" in data):
        raise InvalidInput("ids", "or answer must be given, but not both")
    for name in sorted(data.keys() - {"ids"}):
        if not isinstance(data[name], str) or not data[name].strip():
            raise InvalidInput(name, "must be a text that is not blank")
    ids = data.get("ids", [])
    if not isinstance(ids, list) or ("ids" in data and not ids) or not all(isinstance(each, str) for each in ids):
        raise InvalidInput("ids", "must be a list of ids, at least one")
    return _FileQuestion(data.get("query", ""), data.get("space"), tuple(ids), data.get("answer"))


def _space_filter(space: str | None) -> Filter:
    return Filter() if space is None else Filter(spaces=(space,))


# ---- from the log


def from_log(memory: Nacre, space: str) -> Questions:
    """The logged queries, with the memories that were opened or used as their answers.

    Each is run as of the time when it was last logged. Otherwise the usage that it caused would favour its answers,
    and recency would differ from that of the original search.
    """
    latest: dict[str, tuple[str, datetime]] = {}  # by folded query: its latest wording and time
    marks: dict[str, dict[str, bool]] = {}  # by folded query: whether each marked memory is right
    for receipt in _receipts(memory, space):  # the newest first
        if not receipt.query.strip():
            continue
        latest.setdefault(fold(receipt.query), (receipt.query, receipt.at))
        right = marks.setdefault(fold(receipt.query), {})
        for each in receipt.deliveries:
            if each.wrong is not None or each.opened is not None or each.used is not None:
                right[each.memory_id] = each.wrong is None and right.get(each.memory_id, True)
    judged: list[JudgedQuestion] = []
    unanswered: list[str] = []
    for folded, (query, at) in latest.items():
        right = marks[folded]
        answers = _answers(memory, _live(memory, (each for each, is_right in right.items() if is_right), space))
        if answers:
            wrong = tuple(each for each, is_right in right.items() if not is_right)
            judged.append(JudgedQuestion(query, space, answers, wrong, at))
        elif right:
            unanswered.append(query)
    return Questions("log", tuple(judged), tuple(unanswered))


def _receipts(memory: Nacre, space: str) -> Iterator[Receipt]:
    before = None
    while page := memory.receipts(spaces=(space,), limit=_PAGE, before=before):
        yield from page
        before = page[-1].id


# ---- from the memories


def from_probes(memory: Nacre, space: str, sample: int = SAMPLE, seed: int = SEED) -> Questions:
    """A query for each of `sample` random memories, made of its rare words, its summary or a part of a sentence."""
    chance = seeded_random(seed)
    drawn: list[Memory] = []
    for number, each in enumerate(memory.every(_space_filter(space))):
        if len(drawn) < sample:
            drawn.append(each)
        elif (place := chance.randrange(number + 1)) < sample:
            drawn[place] = each
    rarity = _document_frequencies(memory, space, {word for each in drawn for word in _significant_words(each.text)})
    queries = [(each, _probe(each, rarity, chance)) for each in drawn]
    judged = [JudgedQuestion(query, space, _answers(memory, [each.id])) for each, query in queries if query]
    return Questions("probes", tuple(judged))


def _document_frequencies(memory: Nacre, space: str, wanted: set[str]) -> Counter[str]:
    """The number of memories that have each of these words."""
    having = Counter[str]()
    for each in memory.every(_space_filter(space)):
        having.update(wanted.intersection(tokenizer.tokenise(each.text).words))
    return having


def _significant_words(text: str) -> list[str]:
    return [word for word in dict.fromkeys(tokenizer.tokenise(text).words) if not tokenizer.is_common(word)]


def _probe(memory: Memory, rarity: Mapping[str, int], chance: random.Random) -> str:
    """A query of plain words, without operators and filters; "" if the memory has no significant words."""
    significant = _significant_words(memory.text)
    rare = sorted(significant, key=lambda word: (rarity[word], word))[:_RARE_WORDS]
    ways: list[Sequence[str]] = [[word for word in significant if word in rare]]
    ways.append(tokenizer.tokenise(memory.summary or "").words)
    sentences = [tokenizer.tokenise(each).words[:_SENTENCE_WORDS_MAX] for each in _SENTENCE_END.split(memory.text)]
    long = [each for each in sentences if len(each) >= _SENTENCE_WORDS_MIN]
    if long:
        sentence = chance.choice(long)
        kept = sorted(chance.sample(range(len(sentence)), round(len(sentence) * _LEFT_OF_SENTENCE)))
        ways.append([sentence[place] for place in kept])
    usable = [each for each in ways if not all(map(tokenizer.is_common, each))]
    return " ".join(chance.choice(usable)) if usable else ""

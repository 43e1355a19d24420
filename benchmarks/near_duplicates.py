"""Are near-duplicates recognised, and are texts that only look alike kept apart?

    python -m benchmarks.near_duplicates [--data ../shared/eval] [--sentences 200] [--model none|hashing|minilm]

Sentences are edited in harmless, arguable and harmful ways. `lookup` is the share of pairs whose sketches share enough
hashes to be compared; `same` is the share recognised as duplicates, without vectors and with the cosine of a model.
It should be 1 for harmless edits and 0 for harmful ones. `cosine .95` and `shingles .6` show each criterion alone.
The second table counts duplicates among real texts; the third varies the threshold of `nacre.analysis.near_duplicates`.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from benchmarks.common import report
from benchmarks.common.labelled_sets import load
from benchmarks.common.paths import EVAL
from nacre.analysis import near_duplicates, stopwords
from nacre.analysis.tokenizer import tokenise
from nacre.embedders.hashing import Hashing
from nacre.embedders.minilm import MiniLM
from nacre.types.memory import Tokens

SETS = ("locomo", "hotpotqa-1k", "xquad-en", "nfcorpus", "cosqa", "xquad-de", "cmrc2018-zh")
SENTENCE_CHARS = range(25, 400)
BUCKET_MAX = 200  # texts that share a hash; more of them share only a common phrase
SHOWN_CHARS = 80
JACCARDS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)

Edit: TypeAlias = Callable[[str, random.Random], str | None]
Row: TypeAlias = dict[str, object]
Kind: TypeAlias = Literal["harmless", "arguable", "harmful"]


class Pair(NamedTuple):
    edit: str
    kind: Kind
    a: str
    b: str
    tokens_a: Tokens
    tokens_b: Tokens
    cosine: float | None


def main() -> None:
    parser = report.parser(__doc__, "near-duplicates")
    parser.add_argument("--data", type=Path, default=EVAL, help="folder of labelled sets (default: %(default)s)")
    parser.add_argument("--sentences", type=int, default=200, help="sentences per set (default: %(default)s)")
    parser.add_argument(
        "--model",
        choices=["none", "hashing", "minilm"],
        default="hashing",
        help="embedder for cosines (default: %(default)s)",
    )
    parser.add_argument(
        "--examples", type=int, default=6, help="duplicates among real texts to list (default: %(default)s)"
    )
    arguments = parser.parse_args()
    texts = {name: texts_of(arguments.data, name) for name in SETS}
    pairs = with_cosines(list(edited(texts, arguments.sentences)), arguments.model)
    among = {name: Among(each) for name, each in [*texts.items(), ("all", list(dict.fromkeys(chain(*texts.values()))))]}
    tables: report.Tables = {
        "Edited sentences": edits_table(pairs),
        "Real texts": [{"texts": name, **each.counts()} for name, each in among.items()],
        "Thresholds": thresholds_table(pairs),
        "Duplicates among real texts": [
            {"one": a[:SHOWN_CHARS], "other": b[:SHOWN_CHARS]} for a, b in among["all"].examples(arguments.examples)
        ],
    }
    report.write(arguments.name, tables, [f"{arguments.sentences} sentences per set, cosine: {arguments.model}."])


def texts_of(data: Path, name: str) -> list[str]:
    """The distinct sentences of a set; for code, whole documents."""
    found: dict[str, None] = {}
    for document in load(data, name).documents:
        parts = [document.body] if name == "cosqa" else re.split(r"(?<=[.!?])\s+|(?<=[。！？])", document.body)
        found.update(dict.fromkeys(part.strip() for part in parts if len(part.strip()) in SENTENCE_CHARS))
    return list(found)


# ---------------------------------------------------------------- edits


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


LIGHT_ADDED = ("just", "really", "also", "actually", "the", "very")
EMPHASIS = ("really", "actually", "basically", "simply", "quite", "please", "thanks")
GREETINGS = ("Hey, ", "Well, ", "OK, ", "Hi! ", "So ", "And ")
SMALL = word_set("a an the that just really very of is are has do does so and I we my this these")
SPOKEN_FOR = word_set("to in at for on with as have had been did will would there who which")
OPENERS = word_set("after at because before during for if in on since until when while with")
CONTRACTIONS = {"do not": "don't", "does not": "doesn't", "did not": "didn't", "is not": "isn't", "I am": "I'm"}
CONTRACTIONS |= {"cannot": "can't", "I have": "I've", "we are": "we're", "you are": "you're", "it is": "it's"}
OPPOSITES = """enable disable, on off, true false, before after, increase decrease, increased decreased, allow deny,
 start stop, add remove, success failure, left right, up down, more less, high low, higher lower, first last, all some,
 always never, with without, to from, over under, good bad, and or, he she, his her, can could, must may, is was,
 was were, here there, now then, new old, love hate, open close, positive negative, north south, east west, my your"""
OPPOSITE = {
    word: opposite
    for one, other in (each.split() for each in OPPOSITES.split(","))
    for word, opposite in ((one, other), (other, one))
}
NAMES = ("Anna", "Bob", "Tokyo", "Redis", "Marta", "Oslo", "Siemens", "Priya")
CONTENT = ("staging", "garden", "weekly", "violin", "server", "purple", "invoice", "winter")
AUXILIARIES = re.compile(r"\b(is|are|was|were|will|can|should|has|have|had|do|does|did|could|would|must)\b(?! not\b)")
IDENTIFIER = re.compile(r"\b[A-Za-z]+(?:_[A-Za-z]+)+\b|\b[a-z]+[A-Z]\w*\b")


def at_a_word(text: str, rng: random.Random, wanted: Callable[[str], bool], made: Callable[[str], str]) -> str | None:
    """The text with one of its wanted words replaced."""
    words = text.split(" ")
    places = [at for at, word in enumerate(words) if wanted(word)]
    if not places:
        return None
    at = rng.choice(places)
    words[at] = made(words[at])
    return " ".join(word for word in words if word)


def is_content(word: str) -> bool:
    plain = word.isascii() and word.isalpha() and word.islower() and len(word) > 3
    return plain and word not in stopwords.WORDS and word not in EMPHASIS


def is_name(word: str) -> bool:
    return word.isalpha() and word.istitle() and len(word) > 2 and word.lower() not in stopwords.WORDS


def moved_clause(text: str, _: random.Random) -> str | None:
    end = "." if text.endswith(".") else ""
    words = text.removesuffix(".").split()
    for at in range(len(words) - 2, 2, -1):
        if words[at] in OPENERS and text[-1].isalpha() | bool(end):
            tail = " ".join(words[at:]).rstrip(",;")
            return f"{tail[0].upper()}{tail[1:]}, {words[0]} {' '.join(words[1:at]).rstrip(',;')}{end}"
    return None


def exchanged(wanted: Callable[[str], bool]) -> Edit:
    def exchange(text: str, rng: random.Random) -> str | None:
        words = text.split(" ")
        places = [at for at, word in enumerate(words) if wanted(word) and at]
        if len(places) < 2:
            return None
        one, other = rng.sample(places, 2)
        if words[one] == words[other]:
            return None
        words[one], words[other] = words[other], words[one]
        return " ".join(words)

    return exchange


def added(words: Sequence[str]) -> Edit:
    """Insert a word before a content word: "the old garden" becomes "the old purple garden"."""
    return lambda text, rng: at_a_word(text, rng, is_content, lambda word: f"{rng.choice(words)} {word}")


def negated(text: str, _: random.Random) -> str | None:
    found = AUXILIARIES.search(text)
    return None if found is None else f"{text[: found.end()]} not{text[found.end() :]}"


def without_negation(text: str, rng: random.Random) -> str | None:
    if re.search(r"n't\b", text):
        return re.sub(r"n't\b", "", text, count=1)
    return at_a_word(text, rng, lambda word: word.lower() in ("not", "never", "no", "without"), lambda _: "")


def contracted(text: str, _: random.Random) -> str | None:
    for apart, together in CONTRACTIONS.items():
        for one, other in ((apart, together), (together, apart)):
            if re.search(rf"\b{one}\b", text):
                return re.sub(rf"\b{one}\b", other, text, count=1)
    return None


def other_digit(text: str, rng: random.Random) -> str | None:
    places = [at for at, char in enumerate(text) if char in "0123456789"]
    if not places:
        return None
    at = rng.choice(places)
    return f"{text[:at]}{(int(text[at]) + rng.randint(1, 9)) % 10}{text[at + 1 :]}"


def other_identifier(text: str, rng: random.Random) -> str | None:
    found = list(IDENTIFIER.finditer(text))
    if not found:
        return None
    one = rng.choice(found)
    return f"{text[: one.end()]}_{rng.choice(CONTENT)}{text[one.end() :]}"


def opposite(word: str) -> str:
    other = OPPOSITE[word.lower()]
    return other.capitalize() if word[0].isupper() else other


HARMLESS: Mapping[str, Edit] = {
    "lower case": lambda text, _: text.lower(),
    "capitals": lambda text, _: text.upper(),
    "no full stop, no commas": lambda text, _: re.sub(r"[,;.!](?=\s|$)", "", text),
    "white space": lambda text, _: "  " + re.sub(" ", "\n ", text, count=3) + "\n",
    "curly quotes": lambda text, _: re.sub(r"'", "’", text) if "'" in text else None,
    "quoted": lambda text, _: f"“{text}”",
    "a greeting in front": lambda text, rng: rng.choice(GREETINGS) + text,
    "a small word added": added(LIGHT_ADDED),
    "a small word removed": lambda text, rng: at_a_word(text, rng, SMALL.__contains__, lambda _: ""),
    "contracted or expanded": contracted,
    "a clause moved": moved_clause,
}
ARGUABLE: Mapping[str, Edit] = {
    "an auxiliary or preposition removed": lambda text, rng: at_a_word(
        text, rng, SPOKEN_FOR.__contains__, lambda _: ""
    ),
    "a question mark added": lambda text, _: re.sub(r"\.$", "?", text),
}
HARMFUL: Mapping[str, Edit] = {
    "another digit": other_digit,
    "a number added": added(("2", "30", "1999")),
    "negated": negated,
    "negation removed": without_negation,
    "another name": lambda text, rng: at_a_word(text, rng, is_name, lambda _: rng.choice(NAMES)),
    "two names exchanged": exchanged(is_name),
    "another identifier": other_identifier,
    "an opposite": lambda text, rng: at_a_word(text, rng, lambda word: word.lower() in OPPOSITE, opposite),
    "another content word": lambda text, rng: at_a_word(text, rng, is_content, lambda _: rng.choice(CONTENT)),
    "a content word added": added(CONTENT),
    "a content word removed": lambda text, rng: at_a_word(text, rng, is_content, lambda _: ""),
    "two content words exchanged": exchanged(is_content),
    "a sentence added": lambda text, rng: f"{text} It is {rng.choice(CONTENT)}.",
}
EDITS: Mapping[Kind, Mapping[str, Edit]] = {"harmless": HARMLESS, "arguable": ARGUABLE, "harmful": HARMFUL}


def edited(texts: Mapping[str, Sequence[str]], count: int) -> Iterator[Pair]:
    for name, all_texts in texts.items():
        sample = random.Random(name).sample(all_texts, min(count, len(all_texts)))
        for kind, edits in EDITS.items():
            for label, edit in edits.items():
                rng = random.Random(f"{name} {label}")
                for text in sample:
                    other = edit(text, rng)
                    if other is not None and other != text:
                        yield Pair(label, kind, text, other, tokenise(text), tokenise(other), None)


def with_cosines(pairs: Sequence[Pair], model: str) -> list[Pair]:
    if model == "none":
        return list(pairs)
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.a, pair.b)))
    embedder = MiniLM() if model == "minilm" else Hashing()
    vectors = dict(zip(texts, embedder.embed_passages(texts), strict=True))
    return [pair._replace(cosine=float(vectors[pair.a] @ vectors[pair.b])) for pair in pairs]


# ---------------------------------------------------------------- tables


def edits_table(pairs: Sequence[Pair]) -> list[Row]:
    rows: list[Row] = []
    for kind, edits in EDITS.items():
        those = [pair for pair in pairs if pair.kind == kind]
        rows += [
            {"kind": kind, "edit": edit, **shares([each for each in those if each.edit == edit])} for edit in edits
        ]
        rows.append({"kind": kind, "edit": "ALL", **shares(those)})
    return rows


def looked_up(pair: Pair) -> bool:
    """Whether the store would compare the two texts."""
    sketch = near_duplicates.sketch(pair.tokens_b)
    return len(set(near_duplicates.sketch(pair.tokens_a)) & set(sketch)) >= max(
        1, min(near_duplicates.SHARED_MIN, len(sketch))
    )


def shares(pairs: Sequence[Pair]) -> Row:
    known = [pair for pair in pairs if pair.cosine is not None]
    return {
        "pairs": len(pairs),
        "lookup": share(looked_up(each) for each in pairs),
        "same": share(near_duplicates.are_near_duplicates(*each[2:6], None) for each in pairs),
        "same, cosine": share(near_duplicates.are_near_duplicates(*each[2:]) for each in known),
        "cosine .95": share(each.cosine is not None and each.cosine >= 0.95 for each in known),
        "shingles .6": share(near_duplicates.jaccard(each.tokens_a, each.tokens_b) >= 0.6 for each in pairs),
    }


def share(answers: Iterable[bool]) -> str:
    found = list(answers)
    return f"{sum(found) / len(found):.4f}" if found else ""


class Among:
    """Pairs of real texts that share a hash, and those recognised as duplicates: without vectors, and at cosine 1."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        tokens = [tokenise(text) for text in texts]
        holders: dict[int, list[int]] = defaultdict(list)
        for at, each in enumerate(tokens):
            for number in near_duplicates.sketch(each):
                holders[number].append(at)
        self._most = max(map(len, holders.values()), default=0)
        self._candidates = {two for several in holders.values() for two in combinations(several[:BUCKET_MAX], 2)}
        self._same: list[tuple[int, int]] = []
        self._same_alone = 0
        for a, b in sorted(self._candidates):
            if near_duplicates.are_near_duplicates(texts[a], texts[b], tokens[a], tokens[b], 1.0):
                self._same.append((a, b))
                self._same_alone += near_duplicates.are_near_duplicates(texts[a], texts[b], tokens[a], tokens[b], None)

    def counts(self) -> Row:
        return {
            "count": len(self._texts),
            "pairs sharing a hash": len(self._candidates),
            "most texts of one hash": self._most,
            "same": self._same_alone,
            "same, cosine 1": len(self._same),
        }

    def examples(self, count: int) -> list[tuple[str, str]]:
        shown = random.Random(7).sample(self._same, min(count, len(self._same)))
        return [(self._texts[a], self._texts[b]) for a, b in shown]


def thresholds_table(pairs: Sequence[Pair]) -> list[Row]:
    rows: list[Row] = []
    shipped = near_duplicates.JACCARD_MIN, near_duplicates.JACCARD_ALONE_MIN
    for jaccard in JACCARDS:
        near_duplicates.JACCARD_MIN = near_duplicates.JACCARD_ALONE_MIN = jaccard
        row: Row = {"shingles": jaccard}
        for kind in EDITS:
            those = [pair for pair in pairs if pair.kind == kind]
            row[f"{kind}, same"] = share(near_duplicates.are_near_duplicates(*each[2:6], None) for each in those)
            row[f"{kind}, same, cosine"] = share(
                near_duplicates.are_near_duplicates(*each[2:]) for each in those if each.cosine is not None
            )
        rows.append(row)
    near_duplicates.JACCARD_MIN, near_duplicates.JACCARD_ALONE_MIN = shipped
    return rows


if __name__ == "__main__":
    main()

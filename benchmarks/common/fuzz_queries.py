"""Random, adversarial, pasted and misspelled queries. A seed and a number determine each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

import hypothesis
from hypothesis import strategies as st

from nacre.analysis.tokenizer import is_unigram
from nacre.query.filters import KEYS
from nacre.types.search import Part

HYPOTHESIS_EXAMPLES = 500  # of each strategy
CHARS_MAX = 12_000  # longer than a query may be, to test the cut
SAMPLED_TEXTS = 3_000  # whose words are searched for

TAGS = ("rust", "python", "release-notes", "two words", "Ünïcode", "a", "100%")
KINDS = ("note", "fact", "decision")
NAMESPACES = ("general", "decisions", "people")
SPACES = ("work", "home", "ещё")  # besides the default
SESSIONS = ("s1", "s2", "2026-03-01 standup")
SOURCES = (
    "chat",
    "docs/{}.md",
    "src/module_{}/main.py",
    "https://example.org/{}/page?q=a&b=[c]*",
    "https://x.org/" + "a/" * 150,
)
PARTS: tuple[Part, ...] = ("tags", "summary", "source", "session", "metadata", "facts")


@dataclass(frozen=True, slots=True)
class Material:
    """What random queries are made of."""

    words: Sequence[str]  # of the store, common ones more often
    questions: Sequence[str]
    given: Sequence[tuple[str, str]]  # family and query: those of Hypothesis, and the special forms


Generator = Callable[[Random, Material], str]

RANGES = (
    (0x00, 0x1F), (0x20, 0x7E), (0x7F, 0x9F), (0xA0, 0xFF), (0x100, 0x24F), (0x300, 0x36F), (0x370, 0x52F),
    (0x590, 0x6FF), (0x900, 0x97F), (0xE00, 0xEFF), (0x1100, 0x11FF), (0x1200, 0x137F), (0x1E00, 0x1FFF),
    (0x2000, 0x206F), (0x20D0, 0x20F0), (0x2100, 0x2BFF), (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xA000, 0xA4CF),
    (0xAC00, 0xD7A3), (0xD800, 0xDFFF), (0xE000, 0xF8FF), (0xFB00, 0xFDFF), (0xFE00, 0xFE2F), (0xFF00, 0xFFFF),
    (0x10000, 0x10FFF), (0x13000, 0x1342F), (0x1D400, 0x1D7FF), (0x1F1E6, 0x1F1FF), (0x1F300, 0x1FAFF),
    (0x20000, 0x2A6DF), (0xE0000, 0xE01EF), (0x100000, 0x10FFFF), (0, 0x10FFFF),
)  # fmt: skip
LETTERS = [
    letters
    for block in range(0, 0x20000, 128)
    if (letters := [char for char in map(chr, range(block, block + 128)) if char.isalpha() and not is_unigram(char)])
]
SYMBOLS = (
    '"', '"', '""', '"""', "(", ")", "((", "))", "*", "**", "^", ":", "::", "-", "--", "+", ",", ".", "'", ";", "{",
    "}", "[", "]", "<", "|", "\\", "/", "?", "!", "%", "$", "@", "~", "=", "\x00", "\n", "\t", "\u3000", "\u200b",
    "…",
)  # fmt: skip
OPERATORS = ("AND", "OR", "NOT", "AND NOT", "OR NOT", "NOT NOT", "NEAR", "NEAR(", "NEAR/2", "and", "Or", "MATCH")
TIMES = (
    "7d", "1y", "yesterday", "last-week", '"last week"', "2026-03", "2026-03-01", "2026-03-01T12:30", "2026-w05",
    "q3", "now", "today", "march", '"3 March 2025"', "2020..2024", '"from May to June"', "0000-00-00", "9999-12-31",
    "0001-01", "2026-02-30", "2026-13", "999999999d", "999999999y", "999999999s", "99999999999999999999d", "-1d",
    "1e9d", "٣d", "", '""', "2026-03-01T25:61", "2026-03-01T12:30+14:59", "2026-03-01T12:30:00.123456789z",
    "2026-w54", "next-year", "29-feb-1900",
)  # fmt: skip
VALUES = (
    *TAGS, *KINDS, *NAMESPACES, *SPACES, *SESSIONS, *PARTS, "default", "chat", "docs/*", "*", "?", "*?*?*?*?",
    "*a*b*c*d*e*f*g*h*i", "[a-z]*", "", '""', '"', '" "', "a,b,c", ",", ",,,", '"a,b",c', '"', ":", "::x", "//x",
    "\\", "\x00", "'", "''", "x\ty", '"x\ny"', "%", "_", "facts,tags", "nonsense", "🙂", "\ud800", "a" * 300,
)  # fmt: skip
FORMS = (
    "words : {a}", "words:{a}", "{{words forms}} : {a}", "{{words}}:{a}*", "- words : {a}", "-{{words forms}} : {a}",
    "-words:{a}", "- {{words : {a}", "space : {a}", "summary : ({a} OR {b})", "words : NEAR({a} {b}, 3)",
    "nosuch : {a}", '"words" : {a}', "words : {b} : {a}", "^{a}", "^ {a}", "^{a}*", "words : ^{a}", '^"{a} {b}"',
    "^^{a}", "{a}^", "^", "^*", "{a} + {b}", "{a}+{b}", '"{a}" + "{b}"', "+ {a}", "{a} +", "+", '"{a}" "{b}"',
    '"{a}""{b}"', '"{a} {b}"', '""', '"', '"""', '""""', '"{a}', '{a}"', '"{a}""', '""{a}""', '"""{a}"""',
    '"{a}"{b}"', '"{a}\x00{b}"', "{a}\x00{b}", "NEAR({a} {b}, 3)", "NEAR({a} {b})", "NEAR({a})", "NEAR()", "NEAR(",
    "NEAR", "NEAR({a} {b}, -1)", "NEAR({a}, 3)", "NEAR({a} {b}, 99999999999999999999)", "NEAR({a} {b}, x)",
    "NEAR({a} {b},)", "NEAR({a} NEAR({b} c, 2), 3)", "NEAR/2", "{a} NEAR {b}", "{a} NEAR/2 {b}",
    "{a} NEAR/99999999999 {b}", 'NEAR("{a} {b}" c*, 5)', "NEAR(^{a} {b}, 2)", "NEAR({a} AND {b}, 2)",
    "near({a} {b}, 2)", "{a}*", "{a} *", '"{a}" *', '"{a}"*', '"{a} {b}" *', "*{a}", "*", "**", "* *", "{a}**",
    "{a}*{b}", "{a}* *", "a*", '"" *', "{a} AND {b}", "{a} OR {b}", "{a} NOT {b}", "{a} AND NOT {b}",
    "{a} OR NOT {b}", "NOT {a}", "AND", "OR", "NOT", "AND NOT", "{a} AND", "AND {a}", "{a} AND AND {b}",
    "{a} OR OR {b}", "{a} NOT NOT {b}", "{a} and {b}", "{a} AND OR NOT {b}", "NOT NOT NOT", "({a}", "{a})", ")(",
    "()", "(())", "(({a}) AND ({b}))", "({a} AND (", "({a} OR {b}) NOT ({b} AND", "{a} ({b} OR c)", "{a} () {b}",
    "rank", "rank : {a}", "rowid", "rank MATCH 'bm25(10)'", "fts", "fts : {a}", "fts MATCH '{a}'", "fts MATCH ?",
    "delete-all", "rebuild", "optimize", "integrity-check", "'delete', 1, 2", "automerge=0",
    "'; DROP TABLE memories; --", '"; DROP TABLE memories; --', "{a}' OR '1'='1", "{a}; SELECT * FROM fts",
    "UNION SELECT 1", "?1", ":a", "@a", "$a", "{a},{b}", "{a}.{b}", "{a}:{b}", "{a}-{b}", "-{a}", "-{a} -{b}",
    "- -{a}", "-(-{a})", "-({a} OR {b})", "{a} -({b}", '-"{a} {b}"', "-{a}*", "snippet(fts, 0, '[', ']', '…', 10)",
    "highlight(fts, 0, 1, 2)", "bm25(fts)", "tokenchars '-'", "trigram", "porter unicode61", "content=''",
)  # fmt: skip


def amount(chance: Random, usual: int = 30) -> int:
    """Mostly small, sometimes large."""
    return 1 + int(chance.expovariate(1 / (usual * (20 if chance.random() < 0.02 else 1))))


def unicode(chance: Random, _: Material) -> str:
    """Characters of few ranges at a time: stacked marks, right-to-left, controls, surrogates."""
    ranges = chance.sample(RANGES, chance.choice([1, 1, 2, 3, 6]))
    if chance.random() < 0.5:
        ranges.append((0x20, 0x20))
    return "".join(chr(chance.randint(*chance.choice(ranges))) for _ in range(amount(chance)))


def many_scripts(chance: Random, _: Material) -> str:
    """Words with letters of many scripts: all are unknown, so each might be misspelled."""
    return " ".join(
        "".join(chance.choice(chance.choice(LETTERS)) for _ in range(chance.randint(4, 30)))
        for _ in range(chance.randint(1, 6))
    )


def latin1(chance: Random, _: Material) -> str:
    return chance.randbytes(amount(chance)).decode("latin-1")


def typo(chance: Random, word: str) -> str:
    at = chance.randrange(len(word))
    letter = chance.choice("abcdefghijklmnopqrstuvwxyzéß")
    return chance.choice(
        [
            word[:at] + word[at + 1 :],
            word[:at] + letter + word[at:],
            word[:at] + letter + word[at + 1 :],
            word[:at] + word[at : at + 2][::-1] + word[at + 2 :],
        ]
    )


def misspelled(chance: Random, material: Material) -> str:
    words = chance.choices(material.words, k=amount(chance, 4))
    return " ".join(typo(chance, word) if chance.random() < 0.7 else word for word in words)


def filter_of(chance: Random, material: Material) -> str:
    key = (
        chance.choice(sorted(KEYS)) if chance.random() < 0.95 else chance.choice(["tags", "id", "KIND", "", "a-b", "é"])
    )
    value = chance.choice(TIMES if key in ("since", "until", "on") and chance.random() < 0.7 else VALUES)
    if chance.random() < 0.1:
        value = chance.choice(material.words)
    return chance.choice(["", "", "", "-", "--", "("]) + key + chance.choice([":", ":", ":", ": ", "::"]) + value


def language(chance: Random, material: Material) -> str:
    """Elements of the query language in any order, valid and invalid, with and without spaces."""
    parts: list[str] = []
    for _ in range(amount(chance, 8)):
        match chance.randrange(8):
            case 0 | 1:
                parts.append(chance.choice(material.words) + chance.choice(["", "", "*", "^"]))
            case 2 | 3:
                parts.append(chance.choice(SYMBOLS))
            case 4:
                parts.append(chance.choice(OPERATORS))
            case 5 | 6:
                parts.append(filter_of(chance, material))
            case _:
                parts.append(
                    chance.choice(FORMS).format(a=chance.choice(material.words), b=chance.choice(material.words))
                )
        parts.append(chance.choice([" ", " ", " ", ""]))
    return "".join(parts)


def expression(chance: Random, material: Material, depth: int = 0) -> str:
    """Well-formed, with operators, groups and filters."""
    if depth > 4 or chance.random() < 0.3:
        word = chance.choice(material.words)
        made = (
            word,
            f"{word[:2]}*",
            f'"{word} {chance.choice(material.words)}"',
            f"-{word}",
            filter_of(chance, material),
        )
        return chance.choice(made)
    parts = [expression(chance, material, depth + 1) for _ in range(chance.randint(1, 4))]
    joined = chance.choice([" AND ", " OR ", " NOT ", " ", " AND NOT "]).join(parts)
    return f"({joined})" if chance.random() < 0.5 else joined


def fts5(chance: Random, material: Material) -> str:
    """Special forms of FTS5, alone, joined, or one inside another."""
    first, second = (
        chance.choice(FORMS).format(a=chance.choice(material.words), b=chance.choice(material.words)) for _ in range(2)
    )
    return chance.choice(
        [
            first,
            f"{first} {second}",
            f"({first}) OR ({second})",
            f'"{first}"',
            chance.choice(FORMS).format(a=first, b=second),
        ]
    )


def mutated(chance: Random, material: Material) -> str:
    """A natural question with symbols inserted, removed, repeated and moved."""
    text = chance.choice(material.questions)
    for _ in range(chance.randint(1, 8)):
        at, end = sorted(chance.randrange(len(text) + 1) for _ in range(2))
        end = min(end, at + 6)
        piece = chance.choice([*SYMBOLS, *OPERATORS, " ", f" {filter_of(chance, material)} "])
        text = chance.choice(
            [
                text[:at] + text[end:],
                text[:at] + piece + text[at:],
                text[:at] + piece + text[end:],
                text[:end] + text[at:],
            ]
        )
        text = text or piece
    return text


def pasted(chance: Random, material: Material) -> str:
    """What users paste: JSON, HTML, code, log lines, addresses, emoji."""
    a, b, c = chance.choices(material.words, k=3)
    number = chance.randrange(10**6)
    emoji = "".join(
        chance.choices(
            ["👩", "\u200d", "💻", "🏽", "🇩", "🇪", "\ufe0f", "❤", "1\ufe0f\u20e3", "🏴\U000e0067\U000e007f"],
            k=amount(chance, 8),
        )
    )
    texts = (
        json.dumps({a: [b, number, None, {c: f'"{a}"'}], "when": "2026-03-01T12:30Z"}, indent=chance.choice([None, 2])),
        f'<div class="{a}" id={b}><a href="https://{a}.org/?q={b}&amp;x=1#{c}">{c}</a><!-- {number} --></div><script>',
        f"def {a}_{b}(self, *args, **kwargs) -> dict[str, {c.title()}]:\n    return {{k: v for k, v in x}}",
        f"#include <{a}.h>\nstd::vector<std::pair<int, {b}*>> {c}; for (auto&& [k, v] : m) {{ *p++ = ~k ^ v; }}",
        f"SELECT {a}, count(*) FROM {b} WHERE {c} LIKE '%{a}%' AND id NOT IN (1, 2) OR \"x\" = 'it''s' -- {number}",
        f"2026-03-01T12:30:00.{number:06}Z ERROR [{a}.{b}:{number}] - {c}: failed (c=-{number}) at /{a}/{b}.py:42",
        f"https://user:pass@{a}.example.org:8080/{b}/{c}.html?since=7d&tag:{a}=%20%{number}#frag:{b}",
        f"C:\\Users\\{a}\\{b}.txt \\\\server\\{c}$ ~/{a}/.{b}rc ../{c} file:///{a}",
        f"$ {a} --{b}={c} -x -- | grep -v '{a}' && rm -rf \"${{{b.upper()}:-{number}}}\" > /dev/null 2>&1",
        f"From: {a}@{b}.org\nTo: \"{c}, {a}\" <{c}@x.org>\nSubject: Re: {a} NOT {b}\n\n> {c}\n>> {a}\n-- \n{b}",
        f"{emoji} {a} {emoji}",
        f"| {a} | {b} |\n|---|:-:|\n| **{c}** | `{a}` ~~{b}~~ [x]({c}:{number}) |",
        f"{a[:1]}{number}.{number}e-{number} 0x{number:x} 1,000.00 -5 +3 ½ ² ⅷ ١٢٣ {number}:{number}",
    )  # fmt: skip
    text = chance.choice(texts)
    cut = sorted(chance.randrange(len(text) + 1) for _ in range(2))
    return text if chance.random() < 0.7 else text[cut[0] : cut[1]] or text


def filled(pieces: Callable[[], str], separator: str, most: int) -> str:
    """Joined pieces, at least `most` characters."""
    made: list[str] = []
    chars = 0
    while chars < most:
        made.append(pieces())
        chars += len(made[-1]) + len(separator)
    return separator.join(made)


def long(chance: Random, material: Material) -> str:
    """As long as the limit of a query, and longer."""
    most = chance.choice([1_000, 4_000, 9_990, CHARS_MAX])
    word = chance.choice(material.words)
    letter = chance.choice('aeéж٣😀ꀀ0_-.:/#+~"*^,(\x00\u0301\u200d\ud800')
    deep = chance.choice([60, 500, most // 2 - 10])

    def any_word() -> str:
        return chance.choice(material.words)

    texts: Sequence[Callable[[], str]] = (
        lambda: filled(any_word, " ", most),
        lambda: filled(any_word, chance.choice(["-", ".", "_", "/", "::", "\t", "\x00", ", "]), most),
        lambda: filled(any_word, chance.choice([" AND ", " OR ", " NOT ", " AND NOT "]), most),
        lambda: filled(any_word, '" "', most),
        lambda: " ".join([word] * (most // (len(word) + 1))),
        lambda: letter * most,
        lambda: (letter + " ") * (most // 2),
        lambda: (letter + word + " ") * (most // (len(word) + 2)),
        lambda: "(" * deep + f"{word} AND x" + ")" * deep,
        lambda: f"{word} OR " + "(" * deep,
        lambda: f"{word} OR " + "(a AND " * (most // 8),
        lambda: "(" * deep + f" a OR {word} " + ") AND b" * (deep // 8),
        lambda: f"{word} AND " + ")(" * (most // 2 - 10),
        lambda: "-(" * (most // 4) + f"a OR {word}",
        lambda: f"tag:{',' * most}",
        lambda: f"tag:{filled(any_word, ',', most)}",
        lambda: filled(lambda: f"tag:{any_word()}", " ", most),
        lambda: filled(lambda: filter_of(chance, material), " ", most),
        lambda: filled(lambda: f"since:{chance.choice(TIMES)}", chance.choice([" ", " OR "]), most),
        lambda: filled(lambda: chance.choice([*TIMES, "since", "between", "and", "to", "2 days ago"]), " ", most),
        lambda: "between " * (most // 8),
        lambda: "since" + " " * most + "2020",
        lambda: f"NEAR({filled(any_word, ' ', most)}, 5)",
        lambda: filled(lambda: f"NEAR({any_word()} {any_word()}, {chance.choice([0, 3, 10**9])})", " ", most),
        lambda: f"NEAR({word} {word}, {'9' * most})",
        lambda: f"since:{'9' * most}d {'9' * most}",
        lambda: "NEAR(" * (most // 5),
        lambda: "NOT " * (most // 4) + word,
        lambda: "AND OR NOT " * (most // 11),
        lambda: "".join(chr(chance.randint(0x4E00, 0x9FFF)) for _ in range(most)),
        lambda: "中" * most,
        lambda: "".join(chr(chance.randint(0xAC00, 0xD7A3)) for _ in range(most)) + "*",
        lambda: "e" + "\u0301" * most,
        lambda: "\U0001f469\u200d" * (most // 2),
        lambda: "\ufdfa" * most,  # one character that is eighteen when normalised
        lambda: "".join(chance.choice(chance.choice(LETTERS)) for _ in range(most)),
        lambda: '"' * most,
        lambda: f'"{word}" ' * (most // (len(word) + 3)),
        lambda: "a:b:" * (most // 4),
        lambda: "'" * (most // 2) + word + "l'" * (most // 4),
        lambda: filled(lambda: typo(chance, any_word()), " ", most),
        lambda: filled(lambda: unicode(chance, material), chance.choice(["", " "]), most),
        lambda: filled(lambda: language(chance, material), " ", most),
        lambda: filled(lambda: pasted(chance, material), "\n", most),
    )  # fmt: skip
    return chance.choice(texts)()


def costly(chance: Random, material: Material) -> str:
    """Long, with expensive parts."""
    most = chance.choice([2_000, 9_990])
    common = chance.choice(["a", "the", "of", "in"])

    def prefix() -> str:
        return chance.choice("abcdefghilmnoprstw") + chance.choice(["*", "*", "o*", "e*"])

    def any_word() -> str:
        return chance.choice(material.words)

    def strange_word() -> str:
        return "".join(chance.choice(chance.choice(LETTERS)) for _ in range(64))

    spaces = [
        f"space:{','.join(chr(0x4E00 + at) for at in range(first, first + 100))}" for first in range(0, 4_500, 100)
    ]
    texts: Sequence[Callable[[], str]] = (
        lambda: filled(prefix, " ", most),
        lambda: filled(prefix, " AND ", most),
        lambda: filled(prefix, " NOT ", most),
        lambda: "tag:rust OR " + filled(prefix, " OR ", most),
        lambda: "-tag:rust " + filled(lambda: f"-{prefix()}", " ", most),
        lambda: filled(lambda: f"({prefix()} NOT {prefix()})", " OR ", most),
        lambda: filled(lambda: f"({prefix()} OR {prefix()} OR tag:a)", " AND ", most),
        lambda: filled(lambda: f"({prefix()} -kind:fact)", " OR ", most),
        lambda: filled(lambda: f"source:*{chance.choice('aeghmopx/.')}*", chance.choice([" ", " OR "]), most),
        lambda: filled(lambda: f"-source:*{chance.choice('aeghmopx/.')}*?*", " ", most),
        lambda: filled(lambda: "source:" + ",".join(f"*{each}*e*/*?*a*" for each in "abcdefgh"), " OR ", most),
        lambda: filled(lambda: f"tag:{','.join(TAGS)}".replace("two words", "x"), " OR ", most),
        lambda: filled(lambda: f"-tag:{chance.choice(TAGS)[:1]}", " ", most),
        lambda: filled(lambda: f'"{any_word()} {any_word()}"', " OR ", most),
        lambda: filled(lambda: f'-"{common} {any_word()}"', " ", most),
        lambda: f'"{" ".join([common] * (most // (len(common) + 1)))}"',
        lambda: f'x AND {".".join([common] * (most // (len(common) + 1)))}',
        lambda: f'"{" ".join(["of the"] * (most // 7))}" AND x',
        lambda: f"NEAR({filled(prefix, ' ', most)}, 1000)",
        lambda: f"NEAR({' '.join([common] * (most // (len(common) + 1)))}, 1000)",
        lambda: filled(lambda: f"NEAR({prefix()} {prefix()} {prefix()}, 1000)", " OR ", most),
        lambda: filled(lambda: f"(NEAR({common} the, 1000) NOT tag:a)", " OR ", most),
        lambda: filled(lambda: f"NEAR({' '.join([common] * 8)}, {chance.randrange(1000)})", " OR ", most),
        lambda: filled(lambda: f'"{" ".join(chance.choices(["of", "the", "in", "a"], k=8))}"', " OR ", most),
        lambda: f"entity:{filled(any_word, ',', most)}",
        lambda: filled(lambda: f"entity:{common},the,{any_word()}", " OR ", most),
        lambda: filled(lambda: f"has:{chance.choice(PARTS)}", " OR ", most),
        lambda: " ".join([*spaces, "space:default", *(typo(chance, any_word()) + "qx" for _ in range(20))]),
        lambda: " ".join([*spaces[:20], "space:default", filled(prefix, " ", most // 2)]),
        lambda: filled(strange_word, " ", 400),
        lambda: filled(lambda: "".join(chance.choice("abcdefgh") for _ in range(64)), " ", most),
        lambda: filled(lambda: f"con{any_word()}ation", " ", most),
        lambda: "kind:note OR " + filled(any_word, " OR ", most),
        lambda: filled(lambda: f"(since:{chance.choice(TIMES)} {prefix()})", " OR ", most),
        lambda: filled(lambda: chance.choice(["1 to ", "from 2020 to ", "May and ", "2 days ago to "]), "", most),
    )  # fmt: skip
    return chance.choice(texts)()


FAMILIES: tuple[tuple[str, Generator, float], ...] = (
    ("any Unicode", unicode, 18),
    ("words of many scripts", many_scripts, 1.5),
    ("bytes as Latin-1", latin1, 9),
    ("pieces of the language", language, 18),
    ("expressions", expression, 10),
    ("FTS5 forms", fts5, 12),
    ("misspelled words", misspelled, 10),
    ("mutated questions", mutated, 11),
    ("pasted text", pasted, 7.5),
    ("long", long, 2),
    ("long and costly", costly, 1),
)


def query(seed: int, number: int, material: Material) -> tuple[str, str]:
    """The family and the text of a query."""
    if number < len(material.given):
        return material.given[number]
    chance = Random(f"{seed} {number}")
    name, generator, _ = chance.choices(FAMILIES, [weight for _, _, weight in FAMILIES])[0]
    return name, generator(chance, material)[:CHARS_MAX]


def special_forms(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each form with common words, words of the store, symbols, and empty strings."""
    for form, (a, b) in product(FORMS, (("the", "of"), (words[0], words[1]), ('"', "*"), ("天気", "é"), ("", ""))):
        yield "FTS5 forms", form.format(a=a, b=b)


def from_hypothesis(seed: int, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Hypothesis generates edge cases that random choice rarely finds."""
    every = st.characters(exclude_categories=())  # lone surrogates, too
    operand = st.one_of(st.sampled_from(words), st.text(every, max_size=8), st.sampled_from(SYMBOLS))
    strategies: Sequence[st.SearchStrategy[str]] = (
        st.text(),
        st.text(every),
        st.text(st.characters(categories=("Mn", "Mc", "Cf", "Cc", "Zs", "Lo"))),
        st.text("ab\"'()*^:-+,. ANDORNT天\x00"),
        st.binary().map(lambda raw: raw.decode("latin-1")),
        st.from_regex(r"(?:-?[a-z]{2,9}:(?:\"[^\"]*\"|[^\s\"]+)\s+){1,4}"),
        st.from_regex(r"(?:NEAR\(\w* \w*, ?\d+\)|\"\w+ \w+\"\*?|\w+\*|-\w+|\^\w+)+", fullmatch=True),
        st.tuples(st.sampled_from(sorted(KEYS)), operand).map(":".join),
        st.recursive(
            operand,
            lambda inner: st.one_of(
                st.tuples(inner, st.sampled_from([" AND ", " OR ", " NOT ", " ", ""]), inner).map("".join),
                inner.map(lambda text: f"({text})"),
                inner.map(lambda text: f'-"{text}"'),
            ),
        ),
        st.datetimes().map(lambda moment: f"since:{moment.isoformat()} until:{moment.date()} in {moment:%d %B %Y}"),
    )
    for strategy in strategies:
        yield from (("Hypothesis", text) for text in _collected(strategy, seed))


def _collected(strategy: st.SearchStrategy[str], seed: int) -> list[str]:
    found: list[str] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=HYPOTHESIS_EXAMPLES,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def collect(text: str) -> None:
        found.append(text)

    collect()
    return found


def material_of(texts: Sequence[str], asked: Sequence[str], seed: int) -> Material:
    words = re.findall(r"\w{2,}", " ".join(texts[:SAMPLED_TEXTS]))
    return Material(words, asked, [*from_hypothesis(seed, words[:100]), *special_forms(words)])

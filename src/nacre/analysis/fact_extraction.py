"""Rule-based extraction of facts that a text states explicitly. The same text always gives the same facts.

Five kinds of text are read: front matter, Markdown tables, `key: value` lines, lines of settings (`KEY=value`), and
plain sentences that begin with the name of someone or something. A missed fact costs less than a wrong one, so
questions, suppositions, negations, quotations and past states give no facts. The time is linear in the length of the
text.

A setting belongs to its file: `timeout = 30` and `timeout: 45  # raised` of one source are two values of one fact,
those of two sources are two facts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise, takewhile
from typing import NamedTuple

from nacre.analysis import stopwords
from nacre.analysis.secrets import find_secrets, names_password, names_secret
from nacre.analysis.tokenizer import chunks
from nacre.types.facts import FactType, NewFact

FACTS_MAX, CHARS_READ_MAX = 50, 20_000
PART_CHARS_MAX, QUOTE_CHARS_MAX = 200, 300  # a part is a subject, a predicate or an object
_SENTENCE_CONFIDENCE, _TABLE_FACTS_MAX, _TABLE_COLUMNS_MAX = 0.9, 30, 12
_KEY_WORDS_MAX, _VALUE_WORDS_MAX, _VALUE_CHARS_MAX = 4, 8, 120
_PAIR_WORDS_MAX = _KEY_WORDS_MAX + _VALUE_WORDS_MAX + 2  # a bullet and a colon may be chunks of their own
_SUBJECT_WORDS_MAX, _PHRASE_WORDS_MAX, _DECISION_WORDS_MAX = 5, 10, 30


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


class _Triple(NamedTuple):
    subject: str
    predicate: str
    object: str
    type: FactType
    relation: bool
    single: bool | None = None  # None: the predicate decides


class _Verb(NamedTuple):
    predicate: str
    type: FactType
    object: str  # "entity": a name; "phrase": a name or a short phrase; "date"; "clause": the rest of the sentence


_VERB_GROUPS: tuple[tuple[FactType, str, str], ...] = (
    ("relationship", "phrase", "uses, depends on, runs on, works on, works at, works for, owns, is hosted on"),
    (
        "relationship",
        "entity",
        "reports to, maintains, manages, leads, heads, chairs, is married to, is written in, is owned by",
    ),
    ("preference", "phrase", "prefers, likes, loves, enjoys, hates, dislikes"),
    ("location", "entity", "lives in, is from, is located in"),
    ("identity", "phrase", "is allergic to, is responsible for"),
    ("decision", "clause", "decided"),
    ("temporal", "date", "was born on, is on, is due on, is due by"),
)
_THIRD_PERSON = {
    phrase: _Verb(phrase, kind, object_) for kind, object_, phrases in _VERB_GROUPS for phrase in phrases.split(", ")
}
_THIRD_PERSON |= {
    "moved to": _THIRD_PERSON["lives in"],
    "relocated to": _THIRD_PERSON["lives in"],
    "born on": _THIRD_PERSON["was born on"],
}
_FIRST_PERSON = {f"{phrase} ".replace("s ", " ", 1).strip(): verb for phrase, verb in _THIRD_PERSON.items()}
_AFTER_IS = {phrase[3:]: verb for phrase, verb in _THIRD_PERSON.items() if phrase.startswith("is ")}
_AFTER_IS |= {
    "based in": _THIRD_PERSON["lives in"],
    "living in": _THIRD_PERSON["lives in"],
    "using": _THIRD_PERSON["uses"],
}
_AFTER_IS |= {f"working {where}": _THIRD_PERSON[f"works {where}"] for where in ("on", "at", "for")}
_IS, _AFTER_STATUS = _set("is are am I'm We're I’m We’re"), _set("again since until for due in on")
_VERB_PHRASES = _IS | _THIRD_PERSON.keys() | _FIRST_PERSON.keys()
_VERB_FIRST_WORDS = {phrase.split()[0] for phrase in _VERB_PHRASES}
_VERBS_AFTER_NOUNS = {phrase.split()[0] for phrase in _IS | _THIRD_PERSON.keys()}
_TRIGGERS = (_IS | {phrase.split()[0] for table in (_THIRD_PERSON, _FIRST_PERSON) for phrase in table}) - {
    "was",
    "wa",
    "i",
}
_STATUS = _set("""down up offline online deprecated broken done finished blocked ready running stopped archived
unavailable available disabled enabled failing fixed merged released deployed paused pending closed open stable""")
_HEDGES = _set("""if unless might may could would should maybe perhaps possibly probably supposedly apparently planning
plan hope hoping imagine suppose assume whether said says told asked claims think thinks thought used will""")
_NEGATIONS = _set("not never no longer neither nor without cannot hardly barely rarely nobody nothing none anymore")
_ADVERBS = _set("""really also now currently still always mostly usually generally absolutely definitely just totally
truly actually recently finally both all already strongly officially primarily only simply too today again lately""")
_DISCOURSE_MARKERS = _set(
    "also actually btw fyi yes yeah well so and but now today remember note that okay ok plus oh currently"
)
_CLAUSE_ENDS = _set(
    "who which whose that where because but when while since so although though as until after before - – — &"
)
_PREPOSITIONS = _set("""for in at from by with on to via under over during into about within near around based located
and""")
_DEICTIC = _set("""it this that them these those you your he she him her his they their its us me my our mine myself
how what why when who everything something anything someone everyone such there here one ones""")
_OPINIONS = _set("""great good awesome amazing big huge lot must key best better fan mess nice important real true whole
kind thing way time bad hard easy fun cool beautiful special major part little small new very sure happy sad""")
_VAGUE = stopwords.WORDS | _set("problem question answer issue result first second last next thing one reason best")
_DAYS = _set("""monday tuesday wednesday thursday friday saturday sunday january february march april may june july
august september october november december""")
_PARTICLES, _KEY_JOINERS = _set("of de la le van von der den di da del"), _set("of in for to on by per and at up")
_ATTRIBUTES = _set("name job role title occupation birthday email phone hobby favorite favourite preferred")
_PEOPLE = _set("""wife husband partner boss manager brother sister mother father son daughter dog owner author lead
leader head chair""")
_TECHNICAL_KEYS = _set("""port host url endpoint version path db database server username timeout ip domain branch repo
runtime region cluster image container env schema model os cpu build file api backend editor shell""")
_PLAIN_KEYS = _set("""status deadline due date created updated location priority budget city country age price total
size color type state release contact channel project company team decision duration language timezone id""")
_GROUPS = _set("""team group squad guild department service project module committee board club choir class course
repo repository app platform pipeline library office shop store""")
_ROLES = _PEOPLE | _TECHNICAL_KEYS | _set("lead leader head chair price cost deadline address password code")
_ROLE_OF_VERB = {"leads": "lead", "manages": "manager", "owns": "owner", "heads": "head", "chairs": "chair"}
_LABELS = _set("note notes fyi update background summary about result results fact facts context info today")
_NO_KEYS = _set("""warning todo fixme example q a question answer tip hint important error exception debug remember ps
quote problem issue reason idea lambda def class return print re subject e.g etc step returns args""")
_NO_VALUES = _set("""hi hello hey thanks ok okay sure yes yeah no nope bye lol great cool wow nice awesome good sorry
well please maybe exactly agreed same really is are do does can did not never int str float bool none i we""")
_NO_TOPICS = _set("config configuration settings overview details todo general information metadata setup")
_NO_STARTS = _set("""people work time love music suppose imagine say ask make use check call hey hi hello wow thanks
congrats sorry please sure maybe perhaps good great add fix remember like mom dad however conclusions objective""")
_TYPE_OF_ROLE: list[tuple[frozenset[str], FactType]] = [(_set("favorite favourite preferred"), "preference")]
_TYPE_OF_ROLE += [(_TECHNICAL_KEYS, "config"), (_PEOPLE, "relationship"), (_ATTRIBUTES, "identity")]
_KEY_HEADERS, _NO_ROW_NAMES = _set("key setting parameter property option variable"), _set("# no id rank date time")
_KNOWN_KEYS = _PLAIN_KEYS | _ATTRIBUTES | _PEOPLE
_NO_KEY_WORDS = stopwords.WORDS | _NO_KEYS | _LABELS
_NO_SPEAKERS = _KNOWN_KEYS | _TECHNICAL_KEYS | _LABELS | _NO_KEYS | _DAYS
_NO_NAMES = _NO_STARTS | stopwords.WORDS | _DEICTIC | _DAYS | _LABELS | _CLAUSE_ENDS
_NOT_PROPER = _DAYS | {"i"}
_CLAUSE_STARTS = stopwords.WORDS | _TRIGGERS | {"I"}
_TRAILING = (_ADVERBS | stopwords.WORDS | {""}) - _DEICTIC - _STATUS
_ORDINARY_ENDINGS = ("ing", "tion", "sion", "ness", "ity", "ment", "ism", "ship", "ology", "osis", "itis", "emia")
_OPENING, _CLOSING = " \t\r\n\"'`*“”‘’,;:!?", " \t\r\n\"'`*“”‘’,;:!?….)"

_MONTH, _DAY = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]{0,6}\.?", r"\d{1,2}(?:st|nd|rd|th)?"
_DATE = (
    r"(?i:\d{4}-\d\d(?:-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?)?"
    rf"|(?:{_DAY}(?: of)? {_MONTH}|{_MONTH} {_DAY})(?:,? \d{{4}})?|{_MONTH} \d{{4}})"
)
_KEY = r"[*_`]{0,3}(?P<key>[^\W\d_][^:|<>{}\[\]=\"!?,;*`]{0,49})[*`]{0,3}:[*`]{0,3}"
_PAIR = _KEY + r"[ \t]+(?P<value>\S.*)"
_BULLET = r"(?:[-*+•]|\d{1,3}[.)])[ \t]+"
_TABLE_RULE = r"\|?(?:[ :]*-+[ :]*\|)+[ :-]*"
_ABBREVIATED = r"(?<!\b[A-Z].)(?<!\b[A-Z]\.[A-Z].)(?<!\b(?:Mr|Ms|Dr|St|Jr|Sr|vs).)(?<!\b(?:Mrs|Inc|Ltd|etc|e\.g|i\.e).)"
_SENTENCE_END = rf"[.!?…](?<![.!?…].){_ABBREVIATED}[.!?…]*+[\"')\]”]*+(?=\s|\Z)"
_NO_VALUE = r"^[{\[(|>&*!<=]|[.!?:;] |['’]|[{\[(\\:,;!?.]$"
_SYMBOL = r"[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]"
_CODE = (
    r"(?:async |export )?(?:def|class|function|interface|struct|enum)\s+\w.*[:{(]\Z|[{}\[\]()]+[;,]?\Z|Traceback \("
    r"|(?:if|for|while|with|elif|except|switch|try|else|finally)\b.{0,200}[:{]\Z|import [\w.{]+\Z|from [\w.]+ import "
    r"|return\b|raise \w|@\w+|#include|\"\"\"|(?:self|this)\.\w|[\w.]{1,80}\(|[\w.\[\]\"' ]{1,80} [-+*|]?= "
)
_MEASURED = r"\d|://|@"
_FILE = r"[^\s:]*[^\s:/]\.[a-z][a-z0-9]{0,9}|(?:[^\s:]*/)?(?:\.env[\w.-]*|Dockerfile|Makefile)"
_CONFIG_FILE = r".*(?:\.(?:env|ya?ml|toml|ini|cfg|conf|json|properties|tf|service)|(?:^|/)(?:\.env[\w.-]*|Dockerfile))"
_ASSIGNMENT = (
    rf"(?:(?P<file>{_FILE}): )?(?:export |set )?(?P<key>[^\W\d][\w.-]{{1,60}})(?: = |=)"
    r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s\"'(){}\[\]=<>][^\s\"(){}\[\]=<>]*)(?:[ \t]*(?:[#;]|//|\().*)?"
)
_SECTION = r"\[+(?P<name>[\w. \"-]{1,60})\]+"
_COMMENT = r"[ \t]+(?:#|//)(?:[ \t].*)?$"
_EXACT = (
    r"[a-z][a-z+]{1,15}://\S+|[\w.+-]+@[\w-]+\.[\w.-]+|[v~$€£#]?\d[\d.,:/x-]*+ ?[\w%]{0,9}|[~.]{0,2}[\w.-]*[/_][\w./-]*"
    r"|`[^`]+`|[\w-]+(?:\.[\w-]+)+(?::\d+)?|[A-Z][A-Z0-9_]{2,}|[A-Za-z+#-]+[: ]?v?\d[\w.:-]*|localhost|" + _DATE
)


@cache
def _re(pattern: str) -> re.Pattern[str]:
    """Compiled on first use, because a process that only searches never needs it."""
    return re.compile(pattern)


def extract(text: str, title: str | None = None, source: str | None = None) -> list[NewFact]:
    """The facts in the first CHARS_READ_MAX characters of a text, in order, each once.

    `title` is the text's topic, `source` the file that it is from.
    """
    read = text[:CHARS_READ_MAX]
    words = chunks(read)
    brief = "\n" in read or len(words) <= _PAIR_WORDS_MAX
    may_have_pairs = brief and (":" in read or "|" in read or "=" in read)
    if not may_have_pairs and _TRIGGERS.isdisjoint(words):
        return []
    place = source[-PART_CHARS_MAX:] if source and may_have_pairs and _re(_FILE).fullmatch(source) else ""
    found: dict[tuple[str, ...], NewFact] = {}
    for fact in _facts(read, _clean(title) if title else "", place):
        if _is_secret(fact):
            continue
        found.setdefault((fact.subject.casefold(), fact.predicate.casefold(), fact.object.casefold()), fact)
        if len(found) == FACTS_MAX:
            break
    if not found:
        return []
    # Several values in one text belong together: the last does not supersede the others.
    values = Counter(key[:2] for key in found)
    return [replace(fact, single=values[key[:2]] == 1) if fact.single else fact for key, fact in found.items()]


def _is_secret(fact: NewFact) -> bool:
    """Whether a fact states a password or the like. As a fact it would be shown where its text would not."""
    names = (fact.predicate, fact.subject)
    if any(map(names_password, names)) or find_secrets(fact.object) or find_secrets(fact.quote or ""):
        return True
    return " " not in fact.object and any(map(names_secret, names))  # "API_KEY: stored in the vault" is none


class _Line(NamedTuple):
    start: int
    text: str  # without bullet and surrounding white space
    indent: int


def _facts(text: str, title: str, place: str) -> Iterator[NewFact]:
    begin, named, pairs = _front_matter(text) if text.startswith("---") else (0, "", [])
    title = named or title
    for line, key, value, single in pairs:
        yield from _key_value_fact(line, title, key, value, single)
    lines = list(_lines(text, begin))
    if "=" in text and (settings := _settings(lines, title, place)):
        yield from settings
        return
    body = _body(text, lines, title, place)
    first = next(body, None)  # most texts have no fact, so the check for code is rarely needed
    if first is not None and not any(_re(_CODE).match(line.text) for line in lines):
        yield first
        yield from body


def _settings(lines: Sequence[_Line], title: str, place: str) -> list[NewFact]:
    """The facts of a text that has nothing but `KEY=value` lines, sections and comments."""
    found: list[NewFact] = []
    section = ""
    for line in lines:
        if not line.text or line.text[0] in "#;":
            continue
        if heading := _re(_SECTION).fullmatch(line.text):
            section = heading["name"].strip(' "')
            continue
        pair = _re(_ASSIGNMENT).fullmatch(line.text)
        if pair is None:
            return []
        file = place if not pair["file"] or place.endswith(pair["file"]) else pair["file"]
        if not _is_config(file) and not _is_technical_key(pair["key"]):
            return []
        found += _key_value_fact(line, f"{title or file} {section}".strip(), pair["key"], pair["value"])
    return found


def _body(text: str, lines: Sequence[_Line], title: str, place: str) -> Iterator[NewFact]:
    section = subject = title
    at, above = 0, -1  # the line, and the indent of the key above it
    while at < len(lines):
        line, end = lines[at], at + 1
        if line.text and line.indent <= above:
            subject, above = section, -1
        if line.text.startswith("#"):
            if line.text.lstrip("#")[:1].isspace():
                section = subject = _topic(line.text) or title
        elif "|" in line.text and end < len(lines) and _re(_TABLE_RULE).fullmatch(lines[end].text):
            while end < len(lines) and "|" in lines[end].text:
                end += 1
            yield from _table(lines[at:end], _about(subject, title, place))
        elif ":" not in line.text:
            while end < len(lines) and lines[end].text[:1].islower() and ":" not in lines[end].text:
                end += 1
            yield from _sentences(text, line.start, lines[end - 1].start + len(lines[end - 1].text))
        elif line.text[-1] in ":*`" and (bare := _re(_KEY).fullmatch(line.text)):
            if _is_key(bare["key"].strip()):
                subject, above = _topic(bare["key"]) or section, line.indent
        else:
            while end < len(lines) and lines[end].indent > above and _re(_PAIR).fullmatch(lines[end].text):
                end += 1
            yield from _pairs(text, lines[at:end], _about(subject, title, place), place)
        at = end


def _about(subject: str, title: str, place: str) -> str:
    """What a pair is about. The sections of a configuration file belong to the file, those of a document do not."""
    if _is_config(place) and (subject != title or not title):
        return f"{place} {subject}"[:PART_CHARS_MAX].strip()
    return subject


def _is_config(place: str) -> bool:
    return bool(place) and _re(_CONFIG_FILE).fullmatch(place) is not None


def _lines(text: str, begin: int) -> Iterator[_Line]:
    """The lines outside of fenced code."""
    fence, start = "", begin
    for raw in text[begin:].split("\n"):
        line = raw.strip()
        if line.startswith(("```", "~~~")) and fence in ("", line[:3]):
            fence = "" if fence else line[:3]
        elif not fence:
            bullet = _re(_BULLET).match(line) if line[:1] in "-*+•0123456789" else None
            skipped = bullet.end() if bullet else 0
            indent = len(raw) - len(raw.lstrip()) + skipped
            yield _Line(start + indent, line[skipped:], indent)
        start += len(raw) + 1


def _clean(part: str) -> str:
    """A part of a fact on one line, without surrounding quotation marks and punctuation, truncated if too long."""
    line = " ".join(part.split()).lstrip(_OPENING)
    return line.rstrip(_OPENING if "(" in line else _CLOSING)[:PART_CHARS_MAX].strip()


def _topic(heading: str) -> str:
    """The topic that a heading names; empty for general headings like "Overview"."""
    name = _clean(heading.strip(" \t#*_`"))
    return "" if name.casefold() in _NO_TOPICS | _LABELS or len(name) > 80 else name


def _front_matter(text: str) -> tuple[int, str, list[tuple[_Line, str, str, bool]]]:
    """Where the body begins, its topic, and the pairs as (line, key, value, whether it is the key's only value)."""
    head, closed, _ = text.partition("\n---")
    first, _, block = head.partition("\n")
    pairs: list[tuple[_Line, str, str, bool]] = []
    key = name = ""
    for line in _lines(block, 0) if closed and first.strip() == "---" else ():
        before, colon, after = (each.strip() for each in line.text.partition(":"))
        if line.indent and key:
            if not colon and line.text:
                pairs.append((line, key, line.text, False))
        elif colon and before[:1].isalpha() and len(before.split()) <= _KEY_WORDS_MAX:
            key = before
            if after.startswith("[") and after.endswith("]"):
                pairs += [(line, key, each, False) for each in after[1:-1].split(",")]
            elif key.casefold() in ("title", "name") and not name:
                name = _clean(after)
            elif after and after[0] not in "{[|>&*!":
                pairs.append((line, key, after, True))
        elif line.text and line.text[0] != "#":
            return 0, "", []
    return (len(head) + len(closed), name, pairs) if key else (0, "", [])


def _table(rows: Sequence[_Line], subject: str) -> Iterator[NewFact]:
    """The facts of a table. In a table of two columns the first may hold keys; otherwise it holds subjects."""
    header, _, *others = [[_clean(cell) for cell in row.text.strip("|").split("|")] for row in rows]
    first = header[0].casefold()
    keyed = len(header) == 2 and (first in _KEY_HEADERS or header[1].casefold() == "value")
    left = _TABLE_FACTS_MAX if 2 <= len(header) <= _TABLE_COLUMNS_MAX and first not in _NO_ROW_NAMES else 0
    for row, cells in zip(rows[2:], others, strict=True):
        named = len(cells) == len(header) and cells[0] and not cells[0][0].isdigit()
        for column, cell in zip(header[1:], cells[1:], strict=False) if named else ():
            if left and column and any(map(str.isalnum, cell)) and not _re(_SYMBOL).search(cell):
                left -= 1
                yield from (
                    _key_value_fact(row, subject, cells[0], cell)
                    if keyed
                    else _key_value_fact(row, cells[0], column, cell)
                )


def _key_value_fact(line: _Line, about: str, key: str, value: str, only: bool = True) -> Iterator[NewFact]:
    key, value, quote = _clean(key), _clean(_without_comment(value)), line.text[:QUOTE_CHARS_MAX]
    kind: FactType = "config" if _is_technical_key(key) else "kv"
    if _re(_DATE).fullmatch(value):
        kind = "temporal"
    elif key.casefold() == "decision":
        kind, only = "decision", False
    subject, predicate, single = (about, key, only) if about else (key, "is", False)
    if key and value:
        yield NewFact(subject=subject, predicate=predicate, object=value, type=kind, quote=quote, single=single)


def _without_comment(value: str) -> str:
    return _re(_COMMENT).split(value, maxsplit=1)[0] if "#" in value or "//" in value else value


def _pairs(text: str, run: Sequence[_Line], subject: str, place: str) -> Iterator[NewFact]:
    """The facts of adjacent lines with a colon. Two `key: value` lines support each other, unless it is a dialogue."""
    matches = [_re(_PAIR).fullmatch(line.text) for line in run]
    pairs = [(found["key"].strip(), found["value"]) if found else ("", "") for found in matches]
    plain = [_without_comment(value) for _, value in pairs]
    likely = [_is_value(value) and _is_key(key) for (key, _), value in zip(pairs, plain, strict=True)]
    config = _is_config(place)
    spoken = [_is_speaker(key) for key, _ in pairs]
    talk = any(speaks and not fits for speaks, fits in zip(spoken, likely, strict=True))
    several = sum(likely) > 1
    for line, (key, value), bare, fits, speaks in zip(run, pairs, plain, likely, spoken, strict=True):
        label, end = key.casefold(), line.start + len(line.text)
        technical = _is_technical_key(key)
        telling = config or technical or not _KNOWN_KEYS.isdisjoint(label.split()) or several
        if fits and not (talk and speaks) and (telling or _re(_EXACT).fullmatch(bare)):
            yield from _key_value_fact(line, subject or (place if technical else ""), key, value)
        elif speaks or label in _LABELS or label in _DAYS:
            yield from _sentences(text, end - len(value), end, key if speaks else "")
        elif not fits and label not in _NO_KEYS:
            yield from _sentences(text, line.start, end)


def _is_key(key: str) -> bool:
    words = key.casefold().split()
    odd = key.count("(") != key.count(")") or key.endswith(("Error", "Exception", "Warning", ".", "…")) or len(key) < 2
    if odd or len(words) > _KEY_WORDS_MAX or words[0] in _KEY_JOINERS or _re(_SYMBOL).search(key):
        return False
    return all(word in _KEY_JOINERS or word not in _NO_KEY_WORDS for word in words)


def _is_technical_key(key: str) -> bool:
    words = key.casefold().split()
    identifier = "_" in key or "." in key or (key.isupper() and len(key) > 2)
    return not _TECHNICAL_KEYS.isdisjoint(words) or (len(words) == 1 and identifier)


def _is_value(value: str) -> bool:
    if len(value) > _VALUE_CHARS_MAX:
        return False
    words = value.casefold().split()
    if not 0 < len(words) <= _VALUE_WORDS_MAX or _re(_NO_VALUE).search(value):
        return False
    plain = [_strip_punctuation(word) for word in words]
    return plain[0] not in _NO_VALUES and _DEICTIC.isdisjoint(plain) and not _re(_SYMBOL).search(value)


def _is_speaker(key: str) -> bool:
    words = key.split()
    named = 0 < len(words) <= 2 and all(word[0].isupper() and word.replace("-", "").isalpha() for word in words)
    return key in ("user", "assistant") or (named and _NO_SPEAKERS.isdisjoint(key.casefold().split()))


def _sentences(text: str, start: int, end: int, speaker: str = "") -> Iterator[NewFact]:
    if _TRIGGERS.isdisjoint(text[start:end].split()):
        return
    for found in (*_re(_SENTENCE_END).finditer(text, start, end), None):
        place = found.end() if found else end
        quote = text[start:place].strip()
        start = place
        plain = quote and quote[-1] != "?" and quote[0] not in "\"'“‘>["
        triples = _sentence_triples(quote.replace("’", "'").split(), text) if plain else ()
        for each in triples:
            name, value = speaker if each.subject == "I" and speaker else _clean(each.subject), _clean(each.object)
            if name and value:
                yield NewFact(
                    subject=name,
                    predicate=_clean(each.predicate),
                    object=value,
                    type=each.type,
                    relation=each.relation,
                    single=each.single,
                    confidence=_SENTENCE_CONFIDENCE,
                    quote=quote[:QUOTE_CHARS_MAX],
                )


class _Subject(NamedTuple):
    name: str
    kind: str  # "self", "name", "thing"
    role: str = ""  # as in "my role", "Ada's role"


def _sentence_triples(words: list[str], text: str) -> Iterator[_Triple]:
    """The triples of one sentence. Its first verb decides; the words before it are the subject."""
    words = words[
        next(
            (at for at, word in enumerate(words) if _strip_punctuation(word).casefold() not in _DISCOURSE_MARKERS),
            len(words),
        ) :
    ]
    noun = words[:1] in (["The"], ["the"], ["Our"], ["our"])  # "the lead of the team", not "I lead"
    verbs = _VERBS_AFTER_NOUNS if noun else _VERB_FIRST_WORDS
    pairs = enumerate(pairwise(words[: _SUBJECT_WORDS_MAX + 4]))
    first = (at for at, (word, after) in pairs if word in verbs and _VERB_PHRASES & {word, f"{word} {after}"})
    if (at := next(first, None)) is None:
        return
    before, verb, rest = words[:at], words[at], words[at + 1 :]
    if "'" in verb and not before:
        before, verb = [verb.split("'")[0]], "am"
    while len(before) > 1 and (before[-1] in _ADVERBS or (before[-1] == "was" and verb == "born")):
        before = before[:-1]
    while len(rest) > 1 and rest[0] in _ADVERBS:
        rest = rest[1:]
    subject = _subject(before, verb in _IS, text)
    if not subject or not _HEDGES.isdisjoint(
        (_strip_punctuation(words[0]).casefold(), *map(_strip_punctuation, words))
    ):
        return
    if verb in _IS:
        yield from _copula_triples(subject, rest)
    elif not subject.role:
        table = _FIRST_PERSON if subject.kind == "self" else _THIRD_PERSON
        longer = table.get(f"{verb} {rest[0]}")
        if found := longer or table.get(verb):
            yield from _verb_triples(subject, found, rest[1:] if longer else rest)


def _subject(words: list[str], being: bool, text: str) -> _Subject | None:
    if not 0 < len(words) <= _SUBJECT_WORDS_MAX + 2 * ("of" in words) or _re(r"[,;:!?\"()]").search("".join(words)):
        return None
    first, others = words[0].casefold(), words[1:]
    if first in ("i", "we", "i've", "we've"):
        return None if others else _Subject(first.split("'")[0].capitalize(), "self")
    if first in ("my", "our") and being and _is_plain(others):
        return _Subject("I" if first == "my" else "We", "self", " ".join(others))
    article = first in ("the", "our", "a", "an")
    if being and first in ("the", "our") and "of" in words and (owned := _role_of(words[1:])):
        return owned
    owner = next((at for at, word in enumerate(words) if word.endswith("'s") and word != "'s"), -1)
    name, role = words[article:], words[owner + 1 :]
    if owner >= 0:
        name = [*words[article:owner], words[owner][:-2]]
        role = role[role[:1] == ["new"] :]
        known = _is_name(name) or name in (["user"], ["User"]) or (first == "the" and _is_group(name))
        return _Subject(" ".join(name), "name", " ".join(role)) if being and _is_plain(role) and known else None
    if name in (["user"], ["User"]) or (len(name) == 1 and _is_identifier(name[0])):
        return _Subject(name[0], "name")
    if _is_name(name):
        word = name[0].casefold()
        ordinary = len(name) == 1 and (word.endswith(_ORDINARY_ENDINGS) or f" {word}" in text)
        return None if ordinary else _Subject(" ".join(name), "name")
    return _Subject(" ".join(name), "thing") if first in ("the", "our") and _is_plain(name) else None


def _role_of(words: Sequence[str]) -> _Subject | None:
    """The role of a thing, as in "lead of the platform team". "The end of the year" is none."""
    at = words.index("of")
    role, name = [word for word in words[:at] if word not in ("new", "current")], words[at + 1 :]
    name = name[name[:1] in (["the"], ["our"]) :]
    known = 0 < len(role) <= 2 and role[-1] in _ROLES and (_is_name(name) or _is_plain(name))
    return _Subject(" ".join(name), "name", " ".join(role)) if known else None


def _is_group(words: Sequence[str]) -> bool:
    """Whether these words name something that people lead or own: "platform team", "billing service"."""
    return 1 < len(words) <= 4 and words[-1].casefold() in _GROUPS and _is_plain(words)


def _is_plain(words: Sequence[str]) -> bool:
    """Whether these words may name a thing: a few words, none of them vague."""
    return 0 < len(words) <= 4 and all(word == "of" or word not in _VAGUE for word in map(str.casefold, words))


def _copula_triples(subject: _Subject, rest: list[str]) -> Iterator[_Triple]:
    phrase, role, after = _phrase(rest, whole=False), subject.role.casefold().split(), " ".join(rest[:2])
    phrase = phrase[bool(role) and phrase[:1] == ["on"] :]
    if not role and (verb := _AFTER_IS.get(after) or _AFTER_IS.get(rest[0])):
        yield from _verb_triples(subject, verb, rest[2 if after in _AFTER_IS else 1 :])
    elif phrase and phrase[0].casefold() in _STATUS:
        if not role and subject.kind != "self" and (len(phrase) == 1 or phrase[1] in _AFTER_STATUS):
            yield _Triple(subject.name, "is", " ".join(phrase), "state", relation=False)
    elif phrase and phrase[0] != "to" and _OPINIONS.isdisjoint(phrase[:4]) and _DEICTIC.isdisjoint(phrase):
        value, topic = " ".join(phrase), role or (subject.name.casefold().split() if subject.kind == "thing" else [])
        exact = _is_entity(phrase[phrase[0] in ("a", "an") :]) or _re(_EXACT).fullmatch(value[:PART_CHARS_MAX])
        kind = next(
            (kind for words, kind in _TYPE_OF_ROLE if not words.isdisjoint(topic)), "kv" if role else "identity"
        )
        kind = "temporal" if _re(_DATE).fullmatch(value) else kind
        noun = phrase[0] in ("a", "an", "the") and (kind == "relationship" if role else subject.kind != "thing")
        if exact or noun or (role and kind in ("preference", "identity")):
            # A thing has one port, price or date at a time, but is many things.
            single = True if subject.kind == "thing" and not role and _re(_MEASURED).search(value) else None
            relation = kind == "relationship" and _is_entity(phrase)
            yield _Triple(subject.name, subject.role or "is", value, kind, relation, single)


def _verb_triples(subject: _Subject, verb: _Verb, rest: list[str]) -> Iterator[_Triple]:
    phrase, clause = _phrase(rest), [_strip_punctuation(word).casefold() for word in rest]
    if verb.object == "clause":
        if 1 < len(rest) <= _DECISION_WORDS_MAX and _DEICTIC.isdisjoint(clause[clause[0] == "that" :]):
            yield _Triple(subject.name, verb.predicate, " ".join(rest), verb.type, relation=False)
    elif verb.object == "date":
        if _re(_DATE).fullmatch(" ".join(phrase)):
            yield _Triple(subject.name, verb.predicate, " ".join(phrase), verb.type, relation=False)
    elif phrase and (verb.type != "location" or subject.kind != "thing"):
        name, likes = _entity(phrase), verb.type == "preference"
        thing = phrase[phrase[0] in ("the", "our") :]
        if verb.predicate in _ROLE_OF_VERB and subject.kind == "name" and _is_group(thing):
            # Many people may lead something in turn, but one at a time: the thing is what has one value.
            role = _ROLE_OF_VERB[verb.predicate]
            yield _Triple(" ".join(thing), role, subject.name, "relationship", relation=True, single=True)
        elif name and "".join(phrase[len(name) + (phrase[0] == "the") :][:1]) in _TRAILING:
            if verb.type != "location" or not _is_identifier(name[0]):
                yield _Triple(subject.name, verb.predicate, " ".join(name), verb.type, relation=True)
        elif verb.object == "phrase" and _DEICTIC.isdisjoint(word.casefold().split("'")[0] for word in phrase):
            end = next((at for at, word in enumerate(phrase) if word in _PREPOSITIONS and not likes), len(phrase))
            begins = ("a", "an", "to", "both") if likes else ("a", "an", "the")
            if end and (phrase[0] not in stopwords.WORDS or phrase[0] in begins):
                yield _Triple(subject.name, verb.predicate, " ".join(phrase[:end]), verb.type, relation=False)


def _phrase(words: Sequence[str], whole: bool = True) -> list[str]:
    """The words up to the end of the clause; empty if they are a negation, too long, or possibly incomplete."""
    kept: list[str] = []
    for word, after in zip(words, (*words[1:], ""), strict=False):
        lower, other = _strip_punctuation(word).casefold(), after in _CLAUSE_STARTS or after.endswith(("s", "ed"))
        if (
            lower in _NEGATIONS
            or lower[1:].endswith(("n't", "-"))
            or (lower in _CLAUSE_ENDS if whole else word[0] in "([")
        ):
            return []
        if lower in _CLAUSE_ENDS or word[0] in "([" or (lower == "and" and other):
            break
        last = word[-1] in ",;:!?…)" or (word[-1] == "." and _re(_SENTENCE_END).search(word))
        kept.append(word if word[-1] == "." and not last else _strip_punctuation(word))
        if last:
            if word[-1] == "," and after.islower() and (len(kept) < 3 or not other) and not whole:
                return []  # "a popular, tasty fruit"
            break
    while kept and (kept[-1] in _TRAILING or (len(kept) > 2 and kept[-1].endswith("ed"))):
        if (dropped := kept.pop()) == "of" or (dropped.endswith("ed") and len(kept) < 3):
            return []
    return kept if len(kept) <= _PHRASE_WORDS_MAX else []


def _strip_punctuation(word: str) -> str:
    return word.lstrip(_OPENING).rstrip(_CLOSING)


def _is_proper(word: str) -> bool:
    return (word[:1].isupper() or ("-" not in word and _is_identifier(word))) and word.casefold() not in _NOT_PROPER


def _entity(words: Sequence[str]) -> list[str]:
    """The longest name or identifier that these words begin with, without an article."""
    named = list(takewhile(lambda word: word in _PARTICLES or _is_proper(word), words[words[:1] == ["the"] :]))
    while named and (named[-1] in _PARTICLES or named[0] in _PARTICLES):
        named.pop()
    return named


def _is_entity(words: Sequence[str]) -> bool:
    return 0 < len(_entity(words)) == len(words) - (words[:1] == ["the"]) <= _SUBJECT_WORDS_MAX


def _is_name(words: Sequence[str]) -> bool:
    edges = bool(words) and words[0][:1].isupper() and words[-1][:1].isupper()
    heading = edges and len(words) > 1 and len(words[0]) > 5 and words[0].isupper()  # "RESULTS Ada is a nurse"
    capitals = edges and all(word[:1].isupper() or word in _PARTICLES for word in words)
    return capitals and not heading and words[0].casefold().split("'")[0] not in _NO_NAMES


def _is_identifier(word: str) -> bool:
    inner = word.strip(_CLOSING)[1:]
    mixed = any(map(str.isupper, inner)) and not word.isupper()
    numbered = word.isalnum() and not word.isalpha() and not word.isdigit()
    marked = word[:1] == "`" or _re(r"[_./@]").search(inner) is not None or ("-" in inner and word.islower())
    return bool(inner) and (mixed or numbered or marked)

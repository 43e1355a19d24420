"""Any query: nothing raises, both stores return the same, and the results can be displayed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.embedders.hashing import Hashing
from nacre.engine.engine import Nacre
from nacre.interfaces import Store
from nacre.query.filters import KEYS
from nacre.storage.reference import MemoryStore
from nacre.types.memory import NewMemory
from nacre.types.search import Mode, SearchResult
from nacre.types.stats import Facets
from postgres_server import needs_postgres
from stores import REAL_KINDS, REAL_STORES, Stores

pytestmark = pytest.mark.slow

NOW = datetime(2026, 3, 11, 15, 30, tzinfo=UTC)
NOTE_CHARS_MAX = 300
TEXTS = (
    "We deploy to staging every Friday.", "The deployment of staging failed: ERR-404 in main.py:42.",
    "the of a in", "a", "Ada Lovelace wrote the first program.", "C++ and C# are not Rust.",
    "snake_case is not camelCase", "café, naïve, straße", "今天天气很好", "東京都の天気", "привет мир",
    "שלום עולם", "नमस्ते दुनिया", "🙂 👩‍💻 🇩🇪", "rank MATCH rowid fts words forms space summary",
    "NEAR AND OR NOT near and or not", "'; DROP TABLE memories; --", '"quoted" ""twice""',
    "since yesterday until 2026-03-01", "a* ^b {c} (d) [e] + - : ;",
    "one two three four five six seven eight nine ten " * 30, "x" * 100,
)  # fmt: skip

# What means something to FTS5, to SQL, or to the query language, whole and broken.
SPECIAL_FORMS = (
    # columns of FTS5
    "words : staging", "words:staging", "{words forms} : staging", "{words}:stag*", "- words : staging",
    "-words:staging", "-{words forms} : staging", "- {words : staging", "summary : (a OR b)",
    "words : NEAR(a b, 3)", "nosuch : staging", '"words" : a', "words : forms : a", "space : a", "tags : red",
    # beginnings, joins, phrases
    "^staging", "^ staging", "^stag*", "words : ^staging", '^"deploy to"', "^^a", "a^", "^", "^*", "a + b", "a+b",
    '"a" + "b"', "+ a", "a +", "+", '"a" "b"', '"a""b"', '"deploy to"', '""', '"', '"""', '""""', '"""""', '"a',
    'a"', '"a""', '""a""', '"""a"""', '"a"b"', '"a\x00b"', "a\x00b", "\x00", '"\n"', '"deploy\nto"',
    # NEAR
    "NEAR(deploy staging, 3)", "NEAR(a b)", "NEAR(a)", "NEAR()", "NEAR(", "NEAR", "NEAR)", "NEAR(a b, -1)",
    "NEAR(-a -b, 3)", "x NEAR(a -b)", "NEAR(a, 3)", "NEAR(a b, 99999999999999999999)", "NEAR(a b, 0)",
    "NEAR(a b, x)", "NEAR(a b,)", "NEAR(a NEAR(b c, 2), 3)", "NEAR/2", "a NEAR b", "a NEAR/2 b",
    "a NEAR/99999999999 b", 'NEAR("deploy to" s*, 5)', "NEAR(^a b, 2)", "NEAR(a AND b, 2)", "near(a b, 2)",
    "NEAR(天気 京, 2)", "NEAR(* *, 2)", 'NEAR("" "", 2)', "NEAR(a* b*, 1000)", "-NEAR(a b, 3)",
    "NOT NEAR(a b, 3)",
    # prefixes
    "stag*", "stag *", '"stag" *', '"stag"*', '"deploy to" *', "*stag", "*", "**", "* *", "a**", "a*b", "a* *",
    "a*", '"" *', "-*", "天*", "é*", "🙂*",
    # operators and groups
    "a AND b", "a OR b", "a NOT b", "a AND NOT b", "a OR NOT b", "NOT a", "AND", "OR", "NOT", "AND NOT", "a AND",
    "AND a", "OR a OR", "a AND AND b", "a OR OR b", "a NOT NOT b", "a AND OR NOT b", "NOT NOT NOT", "(a", "a)",
    ")(", "()", "(())", "((a) AND (b))", "(a AND (", "a (b OR c)", "a () b", "(a OR b) NOT (b AND", "a,b", "a.b",
    "a:b", "a-b", "-a", "-a -b", "- -a", "--a", "-(-a)", "-(a OR b)", "a -(b", '-"deploy to"', "-stag*", "-",
    "-()", "a AND ()", "() OR ()", "-a OR -b", "(tag:red OR a) NOT (b -c)",
    # SQL and commands of FTS5
    "rank", "rank : a", "rowid", "rank MATCH 'bm25(10)'", "fts", "fts : a", "fts MATCH 'a'", "fts MATCH ?",
    "delete-all", "rebuild", "optimize", "integrity-check", "'delete', 1, 2", "automerge=0",
    "'; DROP TABLE memories; --", '"; DROP TABLE memories; --', "a' OR '1'='1", "?1", ":a", "@a", "$a",
    "a; SELECT * FROM fts", "UNION SELECT 1", "snippet(fts, 0, '[', ']', '…', 10)", "bm25(fts)", "%", "_", "\\",
    "'", "''", "`", ";", "--", "/*",
    # filters
    "tag:", "tag:red", "tag:,", "tag:,,red,,", 'tag:"two words"', 'tag:"', 'tag:""', 'tag:"" ""', "tag::",
    "tag:red:blue", "-tag:red", "--tag:red", "TAG:red", "tags:red", "tag :red", "tag: red", "(tag:red)",
    "tag:red AND", "NOT tag:red", "tag:\x00", "space:other", "space:nowhere", "space:*",
    "space:default space:other a", "-space:default a", "space:nowhere OR a", "source:*", "source:?*",
    "source:[a-z]*", "source:docs/*", "source:*a*b*c*d*e*f*g*h*i", "source:**********", "has:tags",
    "has:everything", "has:", 'has:"a\nb"', "-has:facts", "has:tags,facts", "kind:fact", "ns:decisions a",
    "namespace:x", "session:s1", "entity:ada", 'entity:"Ada Lovelace"', "entity:,", "entity:天,京", "entity:🙂",
    # times
    "since:7d", "since:", "since:x", 'since:"a\nb"', 'since:"\n"', "since:999999999d", "since:999999999y",
    "since:99999999999999999999d", "on:0000-00-00", "until:9999-12-31", "on:9999-12", "on:0001-01-01",
    "on:2026-02-30", "on:2026-w54", "on:٣d", "since:-1d", "on:29-feb", "since:2026-03-01T25:61",
    "since:2026-03-01T12:30+14:59", "on:0001-01-01T00:00+14:00", "on:9999-12-31T23:59-12:00",
    "what happened yesterday?", "between 1 and 2 May", "year 9999", "on 31 December 9999", "999999999 years ago",
    "since 999999999 weeks", "before the year 0001",
    # Unicode
    "", " ", "\t\n", "\u3000", "\ud800", "\udfff\ud800", "deplyo \ud800", "tag:\ud800", "\ufffe\uffff",
    "\U0010ffff", "e\u0301", "e" + "\u0301" * 500, "\u200b", "\u200dx\u200d", "\u202eevil", "ﷺ", "ﬀ*", "İi", "ẞ",
    "ǅ", "½", "٣", "ｄｅｐｌｏｙ", "𝖉𝖊𝖕𝖑𝖔𝖞", "🇩🇪🇩", "👩‍💻*", "a\u2028b", "a\x85b", "l'été", "qu'", "'s",
    "ꀀ𗀀ᚠሀꓐ𓀀𐎀ᐁ", "天", "天気", "天気 京", "กขค", "ॐ", "שָׁלוֹם", "مُحَمَّد",
)  # fmt: skip
LONG_FORMS = {
    "letters": "a" * 12_000,
    "words": "deploy staging " * 800,
    "different words": " ".join(f"word{number}" for number in range(1_500)),
    "typos": " ".join(f"deploi{number}" for number in range(1_500)),
    "deep": "(" * 5_000 + "a OR b" + ")" * 5_000,
    "deep, each with an operator": "(a AND " * 1_400,
    "deep exclusions": "-(" * 2_000 + "a OR b",
    "unbalanced": "a OR " + ")(" * 4_000,
    "quotes": '"' * 9_999,
    "stars": "*" * 10_000,
    "carets": "^:" * 5_000,
    "a star inside": "a*" * 5_000,
    "prefixes": "a* b* s* " * 1_100,
    "prefixes joined": " AND ".join(["s*"] * 1_400),
    "conditions": "tag:red OR " + " OR ".join(["s*"] * 1_400),
    "exclusions": "-tag:red " + "-s* " * 2_000,
    "filters": "tag:red " * 1_200,
    "filters joined": " OR ".join(["entity:ada,b"] * 700),
    "commas": "tag:" + "," * 10_000,
    "values": "tag:" + ",".join(f"t{number}" for number in range(2_000)),
    "spaces": " ".join(f"space:s{number}" for number in range(900)),
    "a long value": "tag:" + "x" * 9_000,
    "a long value of has": "has:" + "x" * 9_000,
    "a long time": "since:" + "9" * 9_000 + "d",
    "a long key": "k" * 9_000 + ":x",
    "globs": " OR ".join(["source:*o*c*"] * 700),
    "a phrase": '"' + "staging " * 1_200 + '"',
    "an identifier": "x AND " + ".".join(["staging"] * 1_200),
    "NEAR many": "NEAR(" + "deploy staging " * 600 + ", 5)",
    "NEAR again and again": "NEAR(deploy staging, 5) " * 400,
    "NEAR unclosed": "NEAR(" * 2_000,
    "NEAR far": "NEAR(deploy staging, " + "9" * 9_000 + ")",
    "operators": "AND OR NOT " * 900,
    "NOT NOT NOT": "NOT " * 2_400 + "a",
    "times": "between 2 days ago and yesterday " * 300,
    "blanks in a time": "since" + " " * 9_900 + "2020",
    "CJK": "天気" * 5_000,
    "marks": "e" + "\u0301" * 9_999,
    "one that becomes eighteen": "\ufdfa" * 500,
    "emoji": "👩\u200d" * 5_000,
    "surrogates": "\ud800" * 10_001,
    "controls": "\x00\x1f\x7f" * 3_000,
    "letters of many scripts": "".join(map(chr, range(0xA000, 0xA48C, 7)))
    + " "
    + "".join(map(chr, range(0x1200, 0x1240))),
}

EVERY = st.characters(exclude_categories=())  # lone surrogates, too
PIECES = (
    "deploy", "staging", "stagng", "the", "a", "天気", "café", "🙂", "s*", "*", '"', '""', "(", ")", "-", "--",
    "+", "^", ":", ",", ", 3)", "NEAR(", "NEAR", "AND", "OR", "NOT", "NEAR(a b, 2)", '"deploy to"', "7d",
    "yesterday", "since", "2026-03", "\n", "\x00", "\ud800", "'", "\\", "?", "{words}",
    *(f"{key}:" for key in sorted(KEYS)), "tag:red", "-kind:fact", "source:docs/*", "space:other", "has:tags",
)  # fmt: skip
mixtures = st.lists(
    st.tuples(st.one_of(st.sampled_from(PIECES), st.text(EVERY, max_size=3)), st.sampled_from([" ", " ", ""])).map(
        "".join
    ),
    max_size=12,
).map("".join)
filters = st.tuples(
    st.sampled_from(["", "-", "a ", "NOT ", "("]),
    st.sampled_from(sorted(KEYS)),
    st.sampled_from([":", ":", ':"']),
    st.one_of(st.text(EVERY, max_size=12), st.from_regex(r"[0-9]{1,10}[a-z]{0,2}|[0-9]{4}-[0-9]{2}-?[0-9]{0,2}")),
    st.sampled_from(["", '"', " staging", ")", " OR a"]),
).map("".join)


class Pair(NamedTuple):
    real: Nacre
    reference: Nacre


def numbered(_now: datetime, count: int) -> list[str]:
    """All memories are remembered in one call."""
    return [f"id-{number:03}" for number in range(count)]


def engine(store: Store) -> Nacre:
    made = Nacre(store, Hashing(64), clock=lambda: NOW, make_ids=numbered, zone=UTC)
    made.remember_many(
        [
            NewMemory(
                text=text,
                space="other" if number % 5 == 4 else None,
                kind=("note", "fact")[number % 2],
                namespace=("general", "decisions")[number % 3 == 0],
                summary=None if number % 3 else f"summary of staging {number}",
                tags=(("red",), (), ("two words", "red"))[number % 3],
                source=(None, "docs/deploy.md", "chat")[number % 3],
                session=(None, "s1")[number % 2],
                metadata={"number": number} if number % 4 == 0 else {},
                created=NOW - timedelta(days=7 * number),
            )
            for number, text in enumerate(TEXTS)
        ]
    )
    return made


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Pair]]:
    """By the kind of the real store."""
    with ExitStack() as stack:

        @cache
        def opened(kind: str) -> Pair:
            stores = stack.enter_context(Stores(kind, tmp_path_factory.mktemp("any")))
            return Pair(engine(stores.open()), engine(MemoryStore()))

        yield opened


@pytest.fixture
def pair(request: pytest.FixtureRequest, pairs: Callable[[str], Pair]) -> Pair:
    return pairs(request.param)


def on_each_store(forms: Iterable[str], name: Callable[[str], str]) -> pytest.MarkDecorator:
    """All forms on SQLite, and every fifth on PostgreSQL: how a query is read does not depend on the store."""
    listed = list(forms)
    cases = [pytest.param("sqlite", each, id=name(each)) for each in listed]
    cases += [pytest.param("postgres", each, id=f"postgres-{name(each)}", marks=needs_postgres) for each in listed[::5]]
    return pytest.mark.parametrize(("pair", "query"), cases, indirect=["pair"])


def check(pair: Pair, query: str) -> None:
    for mode in get_args(Mode):
        found = pair.real.search(query, mode=mode)
        assert found == pair.reference.search(query, mode=mode), mode
        check_result(found)
    assert pair.real.search(query, mode="hybrid") == found  # the last of the modes
    spread = pair.real.facets(query)
    assert spread == pair.reference.facets(query)
    check_notes(spread)
    assert pair.real.facets(query) == spread


def check_result(found: SearchResult) -> None:
    check_notes(found)
    if found.did_you_mean is not None:
        found.did_you_mean.query.encode()
    for hit in found.hits:
        snippet = hit.snippet
        assert hit.text[snippet.start :].startswith(snippet.text)
        ends = [0, *(place for span in snippet.highlights for place in span), len(snippet.text)]
        assert ends == sorted(ends)
        assert all(start < end for start, end in snippet.highlights)


def check_notes(answer: SearchResult | Facets) -> None:
    """Each is one line that any door can show."""
    for note in answer.notes:
        assert note.splitlines() == [note]
        assert note.strip()
        assert len(note) <= NOTE_CHARS_MAX
        note.encode()


@on_each_store(SPECIAL_FORMS, ascii)
def test_a_special_form_is_answered(pair: Pair, query: str) -> None:
    check(pair, query)


@on_each_store(LONG_FORMS, str)
def test_a_long_query_is_answered(pair: Pair, query: str) -> None:
    check(pair, LONG_FORMS[query])


@settings(max_examples=200, deadline=None)
@given(kind=REAL_KINDS, query=st.one_of(st.text(EVERY), st.text("ab\"'()*^:-+,. ANDORNT天\x00")))
def test_any_text_is_answered(pairs: Callable[[str], Pair], kind: str, query: str) -> None:
    check(pairs(kind), query)


@settings(max_examples=200, deadline=None)
@given(kind=REAL_KINDS, query=mixtures)
def test_any_mixture_of_the_languages_pieces_is_answered(pairs: Callable[[str], Pair], kind: str, query: str) -> None:
    check(pairs(kind), query)


@settings(max_examples=200, deadline=None)
@given(kind=REAL_KINDS, query=filters)
def test_any_filter_is_answered(pairs: Callable[[str], Pair], kind: str, query: str) -> None:
    check(pairs(kind), query)


@pytest.mark.parametrize("pair", REAL_STORES, indirect=True)
def test_the_store_is_still_whole(pair: Pair) -> None:
    """Nothing that was asked has changed anything."""
    assert pair.real.stats().memories == len(TEXTS)
    assert pair.real.search("DROP TABLE memories", mode="keyword").hits[0].id == "id-016"

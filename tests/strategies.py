"""Memories, filters, queries and recipes for tests of stores, drawn by Hypothesis or made by a rule.

The alphabets are small on purpose: texts, tags and filters have to collide.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any, get_args

from hypothesis import strategies as st

from nacre.types.facts import FactQuery, NewEntity, NewFact
from nacre.types.memory import Json, JsonScalar, NewMemory
from nacre.types.recipe import Fusion, Recipe, adjusted
from nacre.types.search import Filter

# ---------------------------------------------------------------- small alphabets

WORDS = (
    "deploy", "Deploying", "deployed", "staging", "stages", "run", "running", "the", "did", "not", "NOT", "kubernetes",
    "snake_case", "snakeCase", "main.py:42", "c++", "c", "C#", "gpt4", "ERR-404", "don't", "x@y.org",
    "café", "cafe", "naïve", "STRASSE", "straße", "今天天气", "天气", "東京都", "京", "ไทย", "привет", "🙂", "…",
)  # fmt: skip
KINDS = ("note", "fact", "episode")
NAMESPACES = ("general", "decisions")
SPACES = ("default", "other", "ещё")
SUMMARIES = ("a summary", "the deploy to staging", "今天天气, café", "snakeCase? snake_case! did run")
TAGS = ("red", "Red", "two words", 'quo"te', "100%", "deploy", "snake_case")
SOURCES = ("chat", "https://example.org/?a=1&b='2'", "docs/deploy/main.py", "docs/[x] staging.md")
PATTERNS = ("docs/*", "*deploy*", "ch?t", "docs/[x]*", "?", "*", "docs/[xy] staging.md")
SESSIONS = ("s1", "s2")
KEYS = ("a", "b", 'quo"te', "back\\slash", "new\nline", "", "a.b", "$", "ключ")
SCALARS: tuple[JsonScalar, ...] = (
    True, False, None, 0, 1, 1.0, -0.0, 0.1, 1.5, 1e300, -1, 2**62, 2**53 + 1, float(2**53),
    "", "1", "true", "null", "Ы\n",
)  # fmt: skip
ZONE = timezone(timedelta(hours=5, minutes=45))
START = datetime(2024, 5, 1, 12, tzinfo=UTC)
MOMENTS = tuple(START + timedelta(hours=hours, microseconds=hours % 2) for hours in (-10_000, -30, -29, -1, 0, 1, 30))

# From which facts are read, and which say nearly the same.
SAYINGS = (
    "Alice lives in Berlin", "Alice lives in Paris.", "alice works at Acme", "Bob lives in Berlin and uses Vim",
    "Acme is based in Paris", "port: 8080", "port: 9090", "I prefer tea", "Robert is married to Alice.",
    # newer texts that may update an older one
    "Correction: alice works at Berlin instead of Acme", "the old town is now called Acme",
    "port: 9090 instead of 8080",
)  # fmt: skip
REPEATED = (
    "we met Bob on Monday in the old town", "We met Bob on Monday in the old town!", "did we meet Bob on Monday?",
    "on Monday in the old town we met Bob", "hey we met Bob on Monday in old town", "we met Bob on Monday in new town",
)  # fmt: skip
PEOPLE = ("Alice", "alice", "Al", "Bob", "Robert", "Acme", "Berlin", "it")
PREDICATES = ("lives in", "livesIn", "uses", "works_at", "port")
OBJECTS = ("Berlin", "berlin", "Paris", "Acme", "Bob", "Al", "8080", "9090")

# Prefixes of each other, beyond all letters, and before what cannot be written.
CALLERS_KEYS = ("docs/a", "docs/ab", "k", "\U0010ffff", "docs/\ud7ff")
LANGUAGES = ("de", "fr")
KEY_PREFIXES = ("docs/", "docs/a", "k", "\U0010ffff", "docs/\ud7ff", "unknown")
DURATIONS = (timedelta(minutes=30), timedelta(hours=23), timedelta(days=100))

texts = st.one_of(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join),
    st.sampled_from(WORDS),
    st.sampled_from([*SAYINGS, *REPEATED]),
    # Long enough for several passages.
    st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)).map(lambda two: f"{two[0]} first. " * 150 + two[1]),
)
scalars = st.sampled_from(SCALARS)
values: st.SearchStrategy[Json] = st.one_of(scalars, st.sampled_from([["a", 1], {"b": None}, []]))
metadata = st.dictionaries(st.sampled_from(KEYS), values, max_size=3)


def some(options: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(options), max_size=2, unique=True).map(tuple)


new_facts = st.builds(
    NewFact,
    subject=st.sampled_from(PEOPLE),
    predicate=st.sampled_from(PREDICATES),
    object=st.sampled_from(OBJECTS),
    type=st.sampled_from(["kv", "location", "relationship", "preference", "state"]),
    confidence=st.sampled_from([1.0, 1.0, 0.6, 1 / 3, 0.05, 0]),
    decay_rate=st.sampled_from([None, None, 0, 0.5]),
    valid_from=st.sampled_from([None, None, *MOMENTS[:4]]),
    valid_to=st.sampled_from([None, None, None, *MOMENTS[3:]]),
    quote=st.sampled_from([None, 'as it "says"']),
    relation=st.booleans(),
    single=st.sampled_from([None, None, True, False]),
)
new_entities = st.one_of(
    st.sampled_from(PEOPLE),
    st.builds(
        NewEntity, name=st.sampled_from(PEOPLE), type=st.sampled_from([None, "person", "place"]), aliases=some(PEOPLE)
    ),
)


@st.composite
def new_memories(draw: st.DrawFn) -> NewMemory:
    """Mostly plain, so that equal texts meet; every field is given now and then."""
    session = draw(st.sampled_from([None, None, *SESSIONS]))
    return NewMemory(
        text=draw(texts),
        space=draw(st.sampled_from([None, None, *SPACES])),
        kind=draw(st.sampled_from(KINDS)),
        namespace=draw(st.sampled_from(NAMESPACES)),
        summary=draw(st.sampled_from([None, None, *SUMMARIES])),
        tags=draw(some(TAGS)),
        source=draw(st.sampled_from([None, *SOURCES])),
        session=session,
        position=None if session is None else draw(st.sampled_from([None, -1, 0, 1])),
        metadata=draw(metadata),
        importance=draw(st.sampled_from([0, 0.5, 1, 1 / 3])),
        created=draw(st.sampled_from([None, None, *MOMENTS])),
        happened=draw(st.sampled_from([None, None, *MOMENTS])),
        pinned=draw(st.sampled_from([False, False, True])),
        origin=draw(st.sampled_from([None, None, "a run"])),
        key=draw(st.sampled_from([None, None, None, *CALLERS_KEYS])),
        expires=draw(st.sampled_from([None, None, None, *DURATIONS])),
        language=draw(st.sampled_from([None, None, None, *LANGUAGES])),
        facts=draw(st.one_of(st.just([]), st.lists(new_facts, max_size=3))),
        entities=draw(st.one_of(st.just([]), st.lists(new_entities, max_size=2))),
        extract=draw(st.sampled_from([None, True, False])),
    )


# Memories that say nearly the same, that supersede and that contradict each other.
WELL_KNOWN = (
    NewMemory(text=REPEATED[0], created=MOMENTS[0]),
    NewMemory(text=REPEATED[1], created=MOMENTS[1]),
    NewMemory(text=REPEATED[3], entities=[NewEntity(name="Robert", aliases=["Bob"])]),
    NewMemory(text="Alice lives in Berlin", created=MOMENTS[0]),
    NewMemory(text="Alice lives in Paris.", created=MOMENTS[2]),
    NewMemory(
        text="perhaps she moved",
        created=MOMENTS[3],
        facts=[
            NewFact(subject="Alice", predicate="lives in", object="Bob", confidence=0.05, relation=True, single=True)
        ],
    ),
    NewMemory(text="Al works at Acme", created=MOMENTS[1], happened=MOMENTS[0]),
)

changes = st.fixed_dictionaries(
    {},
    optional={
        "text": texts,
        "kind": st.sampled_from(KINDS),
        "namespace": st.sampled_from(NAMESPACES),
        "summary": st.sampled_from([None, "another summary", *SUMMARIES]),
        "tags": some(TAGS),
        "source": st.sampled_from([None, *SOURCES]),
        "session": st.sampled_from([None, *SESSIONS]),
        "position": st.sampled_from([None, 0, 7]),
        "metadata": metadata,
        "importance": st.sampled_from([0.25, 2]),  # the second one is refused
        "happened": st.sampled_from([None, *MOMENTS]),
        "pinned": st.booleans(),
        "origin": st.sampled_from([None, "another run"]),
        "key": st.sampled_from([None, *CALLERS_KEYS]),
        "expires": st.sampled_from([None, *DURATIONS, timedelta(0)]),  # the last one is refused
        "language": st.sampled_from([None, *LANGUAGES, "deu"]),  # the last one is refused
    },
)


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    """Each field is left out most of the time, else hardly anything would pass."""
    chosen: dict[str, Any] = {}
    fields: Mapping[str, st.SearchStrategy[Any]] = {
        "spaces": st.lists(st.sampled_from([*SPACES, "nowhere"]), max_size=3),
        "kinds": some((*KINDS, "unknown")),
        "namespaces": some((*NAMESPACES, "unknown")),
        "tags_any": some((*TAGS, "unknown")),
        "tags_all": some((*TAGS, "unknown")),
        "tags_none": some((*TAGS, "unknown")),
        "sources": some((*SOURCES, *PATTERNS, "unknown")),
        "sessions": some((*SESSIONS, "unknown")),
        "key_prefixes": some(KEY_PREFIXES),
        "languages": some((*LANGUAGES, "en", "zh")),
        "has": some(("facts", "tags", "source", "session", "summary", "metadata")),
        "fact_types": some(("preference", "location", "kv", "relationship", "temporal")),
        "created_from": st.sampled_from(MOMENTS),
        "created_until": st.sampled_from(MOMENTS),
        "metadata": st.dictionaries(st.sampled_from(KEYS), scalars, min_size=1, max_size=2),
        "importance_min": st.sampled_from([0, 0.3, 1 / 3, 0.5]),
        "importance_max": st.sampled_from([0.5, 0.9, 1]),
    }
    for name in draw(st.lists(st.sampled_from(sorted(fields)), max_size=3, unique=True)):
        chosen[name] = draw(fields[name])
    return Filter(**chosen)


MISSPELLED = ("deplyo", "stagnig", "runing", "kuberntees", "првиет", "tje")
FIELDS = (
    "tag:red", "tag:red,deploy", 'tag:"two words"', "tag:deploy", "ns:decisions", "namespace:general,decisions",
    "kind:fact", "kind:note,fact", "entity:deploy", 'entity:"the deploy",天气', "entity:snake_case", "entity:京",
    "entity:alice", "entity:Al,Acme", "-entity:bob",
    "source:chat", "source:docs/*", "source:*deploy*", "source:ch?t", 'source:"docs/[x]*"', "session:s1,s2",
    "has:tags", "has:summary,session", "has:facts", "has:metadata", "has:source",
    "fact-type:location", "-fact-type:kv", "Fact-Type:KV,preference", "fact-type:nothing",
    "since:1d", "until:2024-05-01", "on:yesterday", "on:2024-04", "since:2023", "until:2024-05-01T17:45",
    "lang:de", "lang:en,FR", "-lang:de", "lang:german", "key:docs/", "-key:docs/a,k", "key:unknown",
    "space:other", "space:default,other", "space:ещё", "space:nowhere", "has:nothing", "since:whenever", "tag:,",
    "importance>=0.5", "importance<0.5", "importance:0.3..0.5", "-importance>0.5", "importance:0", "importance>=2",
)  # fmt: skip
TIMES = ("yesterday", "in March 2023", "last month", "since 2023", "today", "first", "last", "recently", "used to")
# Questions that stages of their own answer: identifiers, requests, events, former states.
ASKED_WHOLE = (
    "what is ERR-404 about?", 'who said "old town" about main.py:42', "please deploy the staging run",
    "deploy before Alice",
    "what did we run after the deploy?", "where did Alice use to live?", "the first deploy in April 2024",
    "what happened yesterday?", "write to Alice about tea",
)  # fmt: skip

asked_words = st.sampled_from([*WORDS, *MISSPELLED, *PEOPLE, "lives", "Paris", "town", "unknown", "stage"])
prefixes = st.sampled_from(["dep*", "s*", "sta*", "caf*", "天*", "京*", "g*"])
phrases = st.lists(asked_words, min_size=1, max_size=2).map(lambda run: f'"{" ".join(run)}"')
nears = st.builds(
    lambda near, distance: f"NEAR({' '.join(near)}{distance})",
    st.lists(st.one_of(asked_words, prefixes, phrases), min_size=1, max_size=3),
    st.sampled_from(["", ", 0", ", 1", ", 2"]),
)
operands = st.one_of(asked_words, asked_words, prefixes, phrases, st.sampled_from(FIELDS), nears)
queries = st.one_of(
    st.lists(asked_words, max_size=4).map(" ".join),
    st.lists(st.one_of(asked_words, st.sampled_from(TIMES)), max_size=6).map(" ".join),
    st.sampled_from(ASKED_WHOLE),
    st.lists(st.sampled_from(FIELDS), min_size=1, max_size=2).map(" ".join),
    st.tuples(st.lists(asked_words, max_size=2).map(" ".join), st.sampled_from(FIELDS)).map(" ".join),
    st.recursive(
        st.one_of(operands, operands.map(lambda operand: f"-{operand}")),
        lambda part: st.one_of(
            st.tuples(part, st.sampled_from([" AND ", " OR ", " NOT ", " ", " AND NOT "]), part).map("".join),
            part.map(lambda inner: f"({inner})"),
        ),
        max_leaves=4,
    ),
    st.text(alphabet='ab"()-* ORNT天\x00', max_size=8),
)
recipes = st.one_of(
    st.just(Recipe()),
    st.builds(
        partial(adjusted, Recipe()),
        fusion=st.sampled_from(get_args(Fusion)),
        k=st.sampled_from([0, 5, 60]),
        alpha=st.sampled_from([0, 0.3, 0.5, 1]),
        boost_weight=st.sampled_from([0, 1, 3]),
        pool=st.sampled_from([1, 2, 100]),
        crowd=st.sampled_from([1, 2, 20]),
        echo_next=st.sampled_from([0, 0.5, 1]),
        echo_far=st.sampled_from([0, 0.2]),
        echo_back=st.sampled_from([0, 0.2]),
        semantic_floor=st.sampled_from([-1, 0, 0.3, 0.9]),
        passages_weight=st.sampled_from([0, 0.04, 1]),
        recency_weight=st.sampled_from([0, 0.1, 1]),
        temporal_weight=st.sampled_from([0, 0.2, 1]),
        session_weight=st.sampled_from([0, 0.1, 1]),
        bm25_k1=st.sampled_from([0, 1.2, 3]),
        bm25_b=st.sampled_from([0, 0.4, 1]),
        summary_weight=st.sampled_from([0, 1, 2.5]),
        tags_weight=st.sampled_from([0, 0.001, 1]),
        source_weight=st.sampled_from([0, 0.5, 100]),
        confidence_weight=st.sampled_from([0, 0.2, 1]),
        min_confidence=st.sampled_from([0, 0.1, 0.5, 1]),
        entity_weight=st.sampled_from([0, 0.2, 1]),
        intent_weight=st.sampled_from([0, 1]),
        namespace_weights=st.sampled_from([{}, {"decisions": 1.5, "general": 0.5}]),
        exact_weight=st.sampled_from([0, 0.5, 1]),
        standing_weight=st.sampled_from([0, 0.8, 1]),
        fresh_weight=st.sampled_from([0, 1]),
        hop_weight=st.sampled_from([0, 0.2, 1]),
        importance_weight=st.sampled_from([0, 0, 0.3, 1]),
        usage_weight=st.sampled_from([0, 0.1, 0.9]),
        relation_weight=st.sampled_from([0.1, 0.8, 2]),
    ),
)
wishes = st.fixed_dictionaries(
    {},
    optional={
        "as_of": st.sampled_from(MOMENTS),
        "boost_entities": some((*PEOPLE, "nobody")),
        "merge_relations": st.just(True),
        "min_score": st.sampled_from([0.1, 0.4, 0.9]),
        "collapse": st.just(False),
        "match": st.just("all"),
        "min_similarity": st.sampled_from([-1, 0, 0.2, 0.7]),
        "token_budget": st.sampled_from([1, 20, 200]),
    },
)
views = st.fixed_dictionaries(
    {},
    optional={
        "start": st.sampled_from(MOMENTS),
        "end": st.sampled_from(MOMENTS),
        "span": st.integers(0, 3),
        "oldest_first": st.booleans(),
        "forgotten": st.booleans(),
        "histogram": st.sampled_from(["day", "week", "month"]),
    },
)
fact_queries = st.builds(
    FactQuery,
    spaces=some((*SPACES, "nowhere")),
    subject=st.sampled_from([None, None, "ALICE", *PEOPLE]),
    predicate=st.sampled_from([None, None, "LIVES-IN", *PREDICATES]),
    object=st.sampled_from([None, None, *OBJECTS]),
    type=st.sampled_from([None, None, "kv", "location"]),
    memory_id=st.sampled_from([None, None, "id-0000", "id-0001"]),
    relations=st.booleans(),
    as_of=st.sampled_from([None, *MOMENTS]),
    history=st.booleans(),
    min_confidence=st.sampled_from([0, 0, 0.1, 0.3, 1]),
    limit=st.sampled_from([1, 2, 100]),
)


def varied_memories() -> list[NewMemory]:
    """Two hundred that differ in every field, each value of each alphabet several times."""
    return [
        NewMemory(
            text=f"{WORDS[at % len(WORDS)]} {WORDS[at * 7 % len(WORDS)]} {WORDS[at // 3 % len(WORDS)]} number {at}",
            space=SPACES[at % 3],
            kind=("note", "fact", "episode")[at % 5 % 3],
            namespace=("general", "decisions")[at % 2],
            summary=None if at % 4 else f"summary of {WORDS[at % 11]}",
            tags=[tag for number, tag in enumerate(TAGS) if at % (number + 2) == 0],
            source=None if at % 3 == 1 else SOURCES[at // 2 % len(SOURCES)],
            session=None if at % 5 else f"s{at % 3}",
            metadata={
                KEYS[(at + number) % len(KEYS)]: SCALARS[(at * 3 + number) % len(SCALARS)] for number in range(at % 4)
            }
            | ({"listed": [1, "a"], "kept": {"b": None}} if at % 7 == 0 else {}),
            created=START + timedelta(hours=at, microseconds=at % 2),
            happened=None if at % 6 else START + timedelta(hours=at // 2),
            importance=(0.5, 1 / 3, 0.0, 1.0, 0.5)[at % 5],
            key=f"{CALLERS_KEYS[at % len(CALLERS_KEYS)]}{at}" if at % 4 == 1 else None,
            pinned=at % 8 == 0,
            language=(None, "de", "en", "fr", None, "de")[at % 6],
            entities=["Alice"] if at % 9 == 0 else [],
        )
        for at in range(200)
    ]


# ---------------------------------------------------------------- sessions

SESSION_QUERIES = ("apricots", "melon tea", "kettle -tag:hot", "cherries NOT melon", "tea tag:hot")
SESSION_FILTERS = (Filter(), Filter(spaces=["default", "work"]), Filter(tags_any=["hot"]))


def session_memories(now: datetime) -> st.SearchStrategy[list[NewMemory]]:
    """Short memories of the last days, most of them in one of two sessions."""
    words = st.sampled_from(["apricots", "cherries", "melon", "kettle", "tea"])
    one = st.builds(
        NewMemory,
        text=st.lists(words, min_size=1, max_size=3).map(" ".join),
        session=st.sampled_from([None, "s", "t"]),
        space=st.sampled_from(["default", "default", "work"]),
        tags=st.sampled_from([(), ("hot",)]),
        created=st.integers(0, 3).map(lambda days: now - timedelta(days=days)),
    )
    return st.lists(one, min_size=1, max_size=12)

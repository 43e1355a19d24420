"""Spelling suggestions: distances by hand, and the same suggestions from every store."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.engine.engine import Nacre
from nacre.interfaces import Store
from nacre.query import spelling
from nacre.types.memory import NewMemory
from stores import REAL_KINDS, Stores

# ---------------------------------------------------------------- distances


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [
        ("", "", 0),
        ("", "abc", 3),
        ("deploy", "deploy", 0),
        ("deploy", "deplyo", 1),  # two neighbours swapped
        ("deploy", "depoly", 1),
        ("deploy", "eploy", 1),  # one left out
        ("deploy", "deployy", 1),  # one added
        ("deploy", "deplay", 1),  # one replaced
        ("deploy", "edplyo", 2),  # two swaps
        ("ab", "ba", 1),
        ("abc", "cab", 2),  # c taken away behind, and put in front
        ("ca", "abc", 3),  # no letter is edited twice: not swapped and then parted
        ("kitten", "sitting", 3),
        ("kubernetes", "kuberntees", 1),  # e and t swapped
        ("kubernetes", "kubrenetes", 1),
        ("kubernetes", "kubrentees", 2),
        ("straße", "strasse", 2),
        ("привет", "првиет", 1),
    ],
)
def test_edits_between_two_words(one: str, other: str, edits: int) -> None:
    assert spelling.edit_distance(one, other) == edits
    assert spelling.edit_distance(other, one) == edits


def slow_distance(one: str, other: str) -> int:
    """The definition, without a table."""
    if not one or not other:
        return len(one) + len(other)
    ways = [
        slow_distance(one[1:], other) + 1,
        slow_distance(one, other[1:]) + 1,
        slow_distance(one[1:], other[1:]) + (one[0] != other[0]),
    ]
    if len(one) > 1 and len(other) > 1 and one[0] == other[1] and one[1] == other[0]:
        ways.append(slow_distance(one[2:], other[2:]) + 1)
    return min(ways)


@given(st.text(alphabet="abc", max_size=6), st.text(alphabet="abc", max_size=6))
def test_the_distance_is_that_of_the_definition(one: str, other: str) -> None:
    assert spelling.edit_distance(one, other) == slow_distance(one, other)


@given(st.text(alphabet="abc", max_size=8), st.text(alphabet="abc", max_size=8), st.integers(0, 3))
def test_beyond_the_most_it_is_only_known_that_there_are_more(one: str, other: str, most: int) -> None:
    edits = spelling.edit_distance(one, other)
    assert (
        spelling.edit_distance(one, other, most) == edits
        if edits <= most
        else spelling.edit_distance(one, other, most) > most
    )


# ---------------------------------------------------------------- which words are alike


@pytest.mark.parametrize(
    ("word", "known", "edits"),
    [
        # One edit, whatever it is, for words of six letters and more.
        ("deplyo", "deploy", 1),
        ("deplay", "deploy", 1),
        ("teploy", "deploy", 1),
        ("eploys", "deploys", 1),
        ("deployy", "deploy", 1),
        ("deploy", "deploy", None),  # it is known
        ("edplyo", "deploy", None),  # two edits are too many for six letters
        # Below six letters the first one has to be the same.
        ("staeg", "stage", 1),
        ("stags", "stage", 1),
        ("ftage", "stage", None),
        ("tsage", "stage", None),
        ("tage", "stage", None),
        # Below five letters none is replaced, but letters are swapped, added and left out.
        ("went", "sent", None),
        ("want", "went", None),
        ("wnet", "went", 1),
        ("wen", "went", 1),
        ("weent", "went", 1),
        ("wendt", "wends", 1),  # five letters may have one replaced
        # Two edits, for words of eight letters and more that begin with the same three.
        ("kubrentees", "kubernetes", 2),
        ("kubernetse", "kubernetes", 1),
        ("kubernet", "kubernetes", 2),
        ("ukbernetse", "kubernetes", None),  # they begin differently
        ("uubernetes", "kubernetes", 1),  # but one edit may be at the beginning
        ("kebernetis", "kubernetes", None),
        ("databas", "database", 1),
        ("databss", "database", None),  # seven letters, two edits
        ("datbaess", "database", None),  # swapped, swapped, replaced: three
        ("databees", "database", 2),
        # Only letters of the word's own script.
        ("cafes", "cafe5", None),
        ("привет", "приветы", 1),
        ("privet", "приvет", None),
        ("naïve", "naive", 1),
        ("straße", "straßen", 1),
    ],
)
def test_words_that_may_be_meant_for_each_other(word: str, known: str, edits: int | None) -> None:
    assert spelling.edits_between(word, known) == edits


LETTERS = st.sampled_from(["abcdefgst", "абвгде", "àéîø", "αβγδ"])
SPELLED = LETTERS.flatmap(lambda letters: st.text(alphabet=letters, min_size=1, max_size=12))


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, str]:
    """A word, and the same after one edit with a letter of the same script."""
    letters = draw(LETTERS)
    word = draw(st.text(alphabet=letters, min_size=1, max_size=12))
    at = draw(st.integers(0, len(word)))
    letter = draw(st.sampled_from(letters))
    before, after = word[:at], word[at:]
    kind = draw(st.sampled_from(["add", "leave out", "replace", "swap"]))
    if kind == "add" or not after:
        return word, before + letter + after
    if kind == "leave out":
        return word, before + after[1:]
    if kind == "replace":
        return word, before + letter + after[1:]
    return word, before + after[1:2] + after[0] + after[2:]


@given(edited())
@settings(deadline=None)
def test_every_word_one_edit_away_is_listed(two: tuple[str, str]) -> None:
    word, known = two
    listed = set(spelling.single_edits(word, len(word) + 1))
    assert known in listed or known == word
    if len(known) and spelling.edits_between(word, known) == 1:
        assert known in listed


@given(SPELLED)
@settings(max_examples=30, deadline=None)
def test_whatever_is_listed_is_at_most_one_edit_away(word: str) -> None:
    assert all(spelling.edit_distance(word, each) <= 1 for each in spelling.single_edits(word, len(word) + 1))


@given(SPELLED, SPELLED)
def test_alike_is_never_further_than_it_says(word: str, known: str) -> None:
    edits = spelling.edits_between(word, known)
    if edits is not None:
        assert edits == spelling.edit_distance(word, known)
        assert 1 <= edits <= (2 if len(word) >= 8 else 1)
        assert edits == 1 or known[:3] == word[:3]


# ---------------------------------------------------------------- the best of them


@pytest.mark.parametrize(
    ("word", "known", "best"),
    [
        ("deplyo", [("deploy", 1)], ("deploy",)),
        ("deplyo", [("staging", 9)], ()),
        # The nearest before the commonest.
        ("databaes", [("database", 1), ("databases", 50), ("databank", 90)], ("databases", "database", "databank")),
        ("databaess", [("databases", 1), ("database", 50)], ("databases", "database")),  # 1 and 2 edits
        # The commonest of those as near, then by the alphabet.
        ("stagex", [("staged", 2), ("stages", 7), ("stage", 2)], ("stages", "stage", "staged")),
        # Three at the most.
        ("stagex", [("staged", 2), ("stages", 7), ("stage", 3), ("stager", 1)], ("stages", "stage", "staged")),
    ],
)
def test_the_nearest_then_the_commonest(word: str, known: list[tuple[str, int]], best: tuple[str, ...]) -> None:
    assert spelling.suggestions(word, known) == best
    assert spelling.suggestions(word, list(reversed(known))) == best


# ---------------------------------------------------------------- in the stores


@pytest.fixture
def store(any_store: Store) -> Store:
    return any_store


def remember(store: Store, *items: str | NewMemory) -> Nacre:
    engine = Nacre(store, None)
    engine.remember_many(items)
    return engine


def spelled(store: Store, word: str, spaces: Sequence[str] = ("default",)) -> dict[str, int]:
    found = store.spellings(word, spaces)
    assert len(dict(found)) == len(found)
    return dict(found)


def test_words_are_given_with_the_number_of_their_memories(store: Store) -> None:
    remember(store, "databases", "the databases", "database database", "databank", "data")
    # "databases" has the stem "databas", as has "database": a word, a stem and a form are three tokens.
    assert spelled(store, "databaes") == {"databases": 2, "database": 1, "databank": 1}
    assert spelled(store, "databse") == {"database": 1}


def test_words_of_labels_alone_are_not_suggested_but_counted(store: Store) -> None:
    """A suggestion is a word that someone wrote in a text; how many have it is counted everywhere."""
    labels = NewMemory(text="one", summary="kettles teapots", tags=["kettle"], source="teapots")
    remember(store, labels, NewMemory(text="a kettle", tags=["x"]), NewMemory(text="two", tags=["kettle"]))
    assert spelled(store, "ketlte") == {"kettle": 3}
    assert spelled(store, "teapotz") == {}


def test_stems_are_not_suggested(store: Store) -> None:
    """Nobody wrote "happi", although it is looked for when someone asks for "happy"."""
    remember(store, "happiness", "happy", "stories")
    assert spelled(store, "happpi") == {}
    assert spelled(store, "storiez") == {"stories": 1}
    assert spelled(store, "storri") == {}


def test_words_of_forgotten_memories_are_not_suggested(store: Store) -> None:
    engine = remember(store, "kettle", "a kettle", "teapot")
    ids = {entry.summary: entry.id for entry in engine.timeline().entries}
    engine.forget([ids["kettle"], ids["teapot"]])
    assert spelled(store, "ketlte") == {"kettle": 1}
    assert spelled(store, "teapto") == {}
    engine.purge(ids["a kettle"])
    assert spelled(store, "ketlte") == {}


def test_words_of_other_spaces_are_not_suggested(store: Store) -> None:
    remember(
        store,
        "a garden",
        NewMemory(text="kettle", space="kitchen"),
        NewMemory(text="the kettle", space="kitchen"),
        NewMemory(text="some kettle", space="cellar"),
        # The token is known in this space, but as a label: the text that has it is in another.
        NewMemory(text="one", tags=["teapot"]),
        NewMemory(text="teapot", space="kitchen"),
    )
    assert spelled(store, "ketlte") == {}
    assert spelled(store, "teapto") == {}
    assert spelled(store, "ketlte", ["kitchen"]) == {"kettle": 2}
    assert spelled(store, "ketlte", ["cellar", "default", "kitchen"]) == {"kettle": 3}
    assert spelled(store, "ketlte", ["nowhere"]) == {}
    assert spelled(store, "teapto", ["kitchen", "default"]) == {"teapot": 2}


VOCABULARY = ["database", "databases", "databank", "stage", "stages", "staged", "sage", "привет", "приветы", "naïve"]


@pytest.mark.slow
@given(
    st.one_of(st.just("reference"), REAL_KINDS),
    st.lists(st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=3).map(" ".join), min_size=1, max_size=6),
    st.lists(st.one_of(st.sampled_from(VOCABULARY), SPELLED), min_size=1, max_size=8),
    st.sampled_from([lambda word: word, lambda word: word[1:] + "s", lambda word: word[:3] + word[4:]]),
)
@settings(max_examples=100, deadline=None)
def test_every_store_gives_exactly_the_words_that_are_alike(
    kind: str, texts: list[str], asked: list[str], spoil: Callable[[str], str]
) -> None:
    # ï is folded away: "naive" is the word that is known.
    known = {word.replace("ï", "i") for text in texts for word in text.split()}
    with tempfile.TemporaryDirectory() as folder, Stores(kind, Path(folder)) as stores:
        store = stores.open()
        remember(store, *texts, NewMemory(text="stager databused", space="other"))
        for word in filter(None, map(spoil, asked)):
            assert spelled(store, word).keys() == {
                each for each in known if spelling.edits_between(word, each) is not None
            }

"""The recall guard: only texts that repeat delivered memories word for word are recognised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from nacre.analysis.quoting import HEADER, fence, left_out_line
from nacre.analysis.recall_guard import DeliveredTexts
from nacre.ranking.context_packing import Candidate, pack

DATE = "2026-08-03"
M1, M2, M3, M4 = (f"1m7gbew6wcr4c5w{number}" for number in range(4))
LONDON = "Ada lives in London, near the river. She doesn't own 3 boats."
TEA = "The tea is in the blue cupboard"
ALL = {M1: LONDON, M2: TEA, M3: "东京的天气很好。我们去公园。"}


def repeated(text: str, delivered: Mapping[str, str]) -> tuple[str, ...]:
    return DeliveredTexts(delivered).repeated(text)


# ---------------------------------------------------------------- the same words


@pytest.mark.parametrize(
    ("text", "of"),
    [
        (LONDON, (M1,)),
        (LONDON.upper(), (M1,)),
        (LONDON.lower(), (M1,)),
        (f"  {LONDON}\n\n", (M1,)),
        (LONDON.replace(" ", "\n  "), (M1,)),
        ("Ada lives in London: near the river! She doesn’t own 3 boats", (M1,)),
        ("“Ada lives in London (near the river); she doesn't own 3 boats...”", (M1,)),
        ("'The tea' is in the [blue] «cupboard».", (M2,)),
        ("东京的天气很好，我们去公园", ()),  # other words: characters without spaces are one
        ("东京的天气很好。我们去公园", (M3,)),
    ],
)
def test_case_punctuation_and_blanks_make_no_news(text: str, of: tuple[str, ...]) -> None:
    assert repeated(text, ALL) == of


@pytest.mark.parametrize(
    "text",
    [
        f"{LONDON} Really?",
        f"{LONDON} She rows.",
        LONDON.replace("3", "4"),
        LONDON.replace("3", "-3"),
        LONDON.replace("3", "30"),
        LONDON.replace("doesn't own", "owns"),
        LONDON.replace("lives", "does not live"),
        LONDON.replace("lives", "lives not"),
        LONDON.replace("London", "Paris"),
        LONDON.replace("London, near", "London, once near"),
        LONDON.replace("boats.", "boats?"),
        f"Is it true? {LONDON}",
        "Ada lives in London, near the river.",
        "She doesn't own 3 boats.",
        "Ada lives in … boats.",
        "Ada lives in London, … own 3 boats",
        "Ada lives in the London",
        "",
        "   ",
        "…",
        "… …",
        "?!",
    ],
)
def test_anything_more_other_or_less_is_news(text: str) -> None:
    assert repeated(text, ALL) == ()


@pytest.mark.parametrize("word", ["also", "just", "very", "please", "really", "ok", "the", "actually", "hey"])
@pytest.mark.parametrize("place", [0, 1, 3, 7])
def test_small_words_are_words(word: str, place: int) -> None:
    """Ada *also* lives in London: who would say so for nothing?"""
    words = TEA.split()
    assert repeated(" ".join([*words[:place], word, *words[place:]]), ALL) == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("it is 3 degrees", "it is -3 degrees"),
        ("delete env today", "delete .env today"),
        ("call init first", "call __init__ first"),
        ("push with force", "push with --force"),
        ("look into /tmp now", "look into ~/tmp now"),
        ("we use C", "we use C++"),
        ("it costs 5", "it costs $5"),
        ("it rose by 5", "it rose by 5%"),
        ("it is 5' wide", 'it is 5" wide'),
        ("it is called apiKey", "it is called APIKey"),
        ("it is called apiKey", "it is called apikey"),
        ("No es lunes", "No, es lunes"),
        ("No deploys on Friday", "No. Deploys on Friday"),
    ],
)
def test_signs_that_belong_to_a_word_are_heard(one: str, other: str) -> None:
    assert repeated(one, {M1: other}) == ()
    assert repeated(other, {M1: one}) == ()
    assert repeated(f"  {other.upper()}! ", {M1: other}) == (M1,)


@pytest.mark.parametrize("sign", "-+")
def test_a_change_is_more_than_its_line(sign: str) -> None:
    assert repeated(f"```diff\n{sign} retries: five\n```", {M1: "retries: five"}) == ()
    assert repeated(f"```yaml\n{sign} retries: five\n```", {M1: "retries: five"}) == (M1,)


@pytest.mark.parametrize("preamble", ["Note:", "so,", "Well,", "Remember:"])
def test_a_preamble_is_no_news_nor_does_it_hide_any(preamble: str) -> None:
    """Whether it counts or not, what follows does."""
    assert repeated(f"{preamble} Ada lives in Rome", {M1: "Ada lives in London"}) == ()
    assert repeated(preamble, {M1: "Ada lives in London"}) == ()


def test_a_question_gives_no_statement_back_and_a_statement_no_question() -> None:
    assert repeated("Ada lives in London?", {M1: "Ada lives in London."}) == ()
    assert repeated("Ada lives in London.", {M1: "Ada lives in London?"}) == ()
    assert repeated("“ada lives in london”?", {M1: "Ada lives in London?"}) == (M1,)
    assert repeated("Ada lives in London？", {M1: "Ada lives in London"}) == ()


def test_nothing_was_given() -> None:
    assert repeated(LONDON, {}) == ()


def test_of_two_that_said_it_the_first_is_named() -> None:
    assert repeated("tea", {M2: "Tea!", M1: "tea"}) == (M2,)


def test_two_given_texts_without_fences_are_a_new_text() -> None:
    assert repeated(f"{LONDON} {TEA}", ALL) == ()


# ---------------------------------------------------------------- parts


@pytest.mark.parametrize(
    "text",
    [
        "…London, near the river. She…",
        "… London, near the river …",
        "Ada lives in London…",
        "Ada lives in London …",
        "…own 3 boats.",
        "…lives in…",
        "…" + LONDON + "…",
        "  …near the river…\n",
    ],
)
def test_a_part_is_recognised_by_its_marks(text: str) -> None:
    assert repeated(text, ALL) == (M1,)


@pytest.mark.parametrize(
    "text",
    [
        "…lives in Paris…",
        "…near the river",  # it says that it ends here
        "lives in London…",  # it says that it begins here
        "…in London, by the river…",
        "…London river…",
        "…lives in London? …",
        "…Ada lives … the river…",
        "…3 boats. And 4…",
    ],
)
def test_a_part_with_anything_else_is_news(text: str) -> None:
    assert repeated(text, ALL) == ()


def test_words_that_occur_twice_are_found_at_either_place() -> None:
    delivered = {M1: "buy tea and milk, then buy tea"}
    assert repeated("…buy tea", delivered) == (M1,)
    assert repeated("buy tea…", delivered) == (M1,)
    assert repeated("…then buy tea", delivered) == (M1,)
    assert repeated("…buy milk", delivered) == ()


def test_a_given_text_that_has_such_marks_itself() -> None:
    delivered = {M1: "Wait… what is this"}
    assert repeated("wait… what is this", delivered) == (M1,)
    assert repeated("Wait…", delivered) == (M1,)
    assert repeated("Wait… what", delivered) == ()


# ---------------------------------------------------------------- quotations


def quotation(*ids: str) -> str:
    return "\n".join([HEADER, *(fence(ALL[each], each, DATE) for each in ids)])


def test_a_fence_around_it() -> None:
    assert repeated(fence(LONDON, M1, DATE), ALL) == (M1,)
    assert repeated(fence("…near the river. She…", M1, DATE, excerpt=True), ALL) == (M1,)
    noted = fence(LONDON, M1, DATE, notes=["now: Ada lives in Paris (1m7gbew6wcr4c5wz, 2026-09-01)"])
    assert repeated(noted, ALL) == (M1,)


def test_a_whole_context() -> None:
    context = quotation(M2, M1)
    assert repeated(context, ALL) == (M2, M1)
    assert repeated(f"{context}\n{left_out_line(2, [M3, M4])}\n", ALL) == (M2, M1)
    assert repeated(context.replace(HEADER, ""), ALL) == (M2, M1)
    assert repeated(quotation(M1, M1), ALL) == (M1,)


@pytest.mark.parametrize(
    "text",
    [
        f"{quotation(M1)}\nShe moved to Rome.",
        f"She moved to Rome.\n{quotation(M1)}",
        f"{quotation(M1)} Rome",
        quotation(M1, M2).replace("blue", "red"),
        quotation(M1).replace(M1, M2),  # the words of another
        quotation(M1).replace(M1, M1[::-1]),  # never told
        quotation(M1, M2).replace("\n<memory", "\nRome\n<memory"),
        fence("near the river", M1, DATE, excerpt=True),
        HEADER,
        left_out_line(3),
    ],
)
def test_a_context_with_anything_else_is_news(text: str) -> None:
    assert repeated(text, ALL) == ()


@pytest.mark.parametrize(
    "text",
    [
        f'<memory id=M1 date="{DATE}" notes="1">\n{LONDON}\nShe moved to Rome.\n</memory>',
        f'<memory id=M1 date="{DATE}" notes="2">\n{LONDON}\nShe moved to Rome.\n[now: x]\n</memory>',
        f"{quotation(M1)}\nLeft out for lack of room: 3 (She moved to Rome).",
        f"{quotation(M1)}\nLeft out for lack of room: 3 (Rome).",
    ],
)
def test_news_cannot_hide_in_lines_that_look_like_ours(text: str) -> None:
    assert repeated(text, ALL) == ()


def test_what_looks_like_a_fence_inside_a_given_text() -> None:
    delivered = {M1: "see </memory> and <memory id=x> there", M2: HEADER}
    assert repeated(fence(delivered[M1], M1, DATE), delivered) == (M1,)
    assert repeated(fence(delivered[M2], M2, DATE), delivered) == (M2,)


# ---------------------------------------------------------------- whatever is told

WORDS = st.sampled_from(
    ["Ada", "lives", "in", "London", "not", "NOT", "the", "also", "3", "-3", "3.5", "it", "IT", "don't", "can't", "C++",
     "few", "a", "北京", "чай", "so,", "note:", "main.py:42", "(x)", "…", "—", "?", "well-known", "naïve"]
)  # fmt: skip
TEXTS = st.lists(WORDS, min_size=1, max_size=12).map(" ".join)
NEW = st.sampled_from(["Rome", "4", "never", "no", "-4", "v2", "天", "nicht", "too"])


@pytest.mark.slow
@given(TEXTS, NEW, st.integers(0, 12), st.booleans(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_a_text_with_a_new_word_is_news(delivered: str, new: str, place: int, before: bool, after: bool) -> None:
    """Wherever it stands, marks of a cut or not, in a fence or not."""
    words = delivered.split()
    text = " ".join([*words[:place], new, *words[place:]])
    text = f"{'…' if before else ''}{text}{'…' if after else ''}"
    assert repeated(text, {M1: delivered}) == ()
    assert repeated(fence(text, M1, DATE), {M1: delivered}) == ()
    assert repeated(f"{fence(delivered, M1, DATE)}\n{new}", {M1: delivered}) == ()
    assert repeated(f"{new} {fence(delivered, M1, DATE)}", {M1: delivered}) == ()


@pytest.mark.slow
@given(TEXTS, st.integers(0, 11))
@example("Ada — … Ada", 0)
@example("note: … Ada Ada", 2)
@settings(max_examples=200, deadline=None)
def test_a_text_with_a_word_less_is_news(delivered: str, place: int) -> None:
    words = delivered.split()
    # Without marks of a cut: after a label or a dash, one would make an excerpt of what is left.
    rest = [word for word in (*words[:place], *words[place + 1 :]) if word != "…"]
    gone = words[place] if place < len(words) else "…"
    assume(any(map(str.isalnum, gone)) and gone != "note:")  # a label may be dropped
    assume(sorted(word for word in rest if any(map(str.isalnum, word))))
    assert repeated(" ".join(rest).strip("… —"), {M1: delivered}) == ()


@given(st.dictionaries(st.sampled_from([M1, M2, M3]), TEXTS, min_size=1), st.booleans(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_what_was_given_is_recognised(delivered: dict[str, str], quoted: bool, shouted: bool) -> None:
    for memory_id, text in delivered.items():
        if not any(map(str.isalnum, text)):
            continue
        again = text.upper() if shouted and not {"IT", "it"} & set(text.split()) else text
        found = repeated(fence(again, memory_id, DATE) if quoted else f" {again}\n", delivered)
        assert len(found) == 1
        assert not quoted or found == (memory_id,)


SENTENCES = st.lists(
    st.lists(st.sampled_from(["tea", "is", "not", "here", "today", "Rome", "3"]), min_size=1, max_size=9).map(" ".join),
    min_size=1,
    max_size=30,
).map(". ".join)


@pytest.mark.slow
@given(st.lists(SENTENCES, min_size=1, max_size=5), st.integers(20, 400))
@settings(max_examples=100, deadline=None)
def test_every_context_is_recognised(texts: Sequence[str], budget: int) -> None:
    """Whole and in parts, with and without a line for what is left out."""
    delivered = {f"1m7gbew6wcr4c5w{number}": text for number, text in enumerate(texts)}
    packed = pack(
        [Candidate(each, DATE, text, 0.5) for each, text in delivered.items()], budget, lambda text: len(text) // 4
    )
    assume(packed.items)
    assert set(repeated(packed.text, delivered)) == {item.id for item in packed.items}

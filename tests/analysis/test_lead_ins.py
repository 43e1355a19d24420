"""A delivered text is recognised with what agents put around it, and a text that says anything else is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from growth import Repeated, assert_linear
from nacre.analysis.lead_ins import is_lead_in, undecorate
from nacre.analysis.quoting import fence
from nacre.analysis.recall_guard import DeliveredTexts

M1, M2, M3, M4, M5, M6 = (f"1m7gbew6wcr4c5w{number}" for number in range(6))
DAY = "2026-03-01"
ADA = "Ada lives in London, near the river."
TEA = "The tea is in the blue cupboard"
RUST = "Decision: we use Rust 1.80 for the gateway"
LIKE = "User: I like my coffee black"
STEPS = "Deploy in two steps:\n- push the tag\n- watch the canary for 10 minutes"
GERMAN = "Ada wohnt in der Nähe von Köln"
FRENCH = "Ada habite à Lyon"
SPANISH = "Ada vive en Sevilla"
TEXTS = {M1: ADA, M2: TEA, M3: RUST, M4: LIKE, M5: STEPS, M6: "Remember: the alarm code is on the fridge"}
GIVEN = DeliveredTexts({**TEXTS, "german": GERMAN, "french": FRENCH, "spanish": SPANISH}, dict.fromkeys(TEXTS, DAY))

RECOGNISED: Sequence[tuple[str, Sequence[str]]] = [
    # lead-ins
    (f"I was told that {ADA}", [M1]),
    (f"I was told: {ADA}", [M1]),
    (f"I was told {ADA}", [M1]),
    (f"I have been told that {ADA}", [M1]),
    (f"I've been informed that {ADA}", [M1]),
    (f"Note: {ADA}", [M1]),
    (f"NOTE: {ADA.upper()}", [M1]),
    (f"Note that {ADA}", [M1]),
    (f"Please note: {ADA}", [M1]),
    (f"Note to self: {TEA}", [M2]),
    (f"N.B.: {TEA}", [M2]),
    (f"Remember: {ADA}", [M1]),
    (f"Remember that {TEA.lower()}.", [M2]),
    (f"Please remember that {TEA}!", [M2]),
    (f"Reminder: {TEA}", [M2]),
    (f"FYI: {TEA}", [M2]),
    (f"For the record: {TEA}", [M2]),
    (f"Context: {TEA}", [M2]),
    (f"According to memory, {ADA}", [M1]),
    (f"According to my notes: {ADA}", [M1]),
    (f"Based on my memory, {ADA}", [M1]),
    (f"As per my notes, {ADA}", [M1]),
    (f"As noted earlier: {ADA}", [M1]),
    (f"As mentioned before, {ADA}", [M1]),
    (f"As previously stated, {ADA}", [M1]),
    (f"As I said, {ADA}", [M1]),
    (f"As you already mentioned above: {ADA}", [M1]),
    (f"From memory: {ADA}", [M1]),
    (f"My notes say that {ADA}", [M1]),
    (f"The memory says: {ADA}", [M1]),
    (f"I recall that {TEA}", [M2]),
    (f"I remember: {TEA}", [M2]),
    (f"It is known that {TEA}", [M2]),
    (f"Here's what I know: {TEA}", [M2]),
    (f"Recalled memory: {TEA}", [M2]),
    (f"Keep in mind that {TEA}", [M2]),
    (f"I've noted that {TEA}", [M2]),
    (f"I have already noted: {TEA}", [M2]),
    (f"I already know that {TEA}", [M2]),
    (f"As a reminder, {TEA}", [M2]),
    (f"Just to recap: {TEA}", [M2]),
    (f"According to my records, {TEA}", [M2]),
    (f"Remembered: {TEA}", [M2]),
    (f"Memory 2: {TEA}", [M2]),
    (f'"Note: {TEA}".', [M2]),
    # German, French, Spanish
    (f"Notiz: {GERMAN}", ["german"]),
    (f"Hinweis: {GERMAN}.", ["german"]),
    (f"Zur Erinnerung: {GERMAN}", ["german"]),
    (f"Mir wurde gesagt: {GERMAN}", ["german"]),
    (f"Laut meinen Notizen: {GERMAN}", ["german"]),
    (f"Wie bereits erwähnt: {GERMAN}", ["german"]),
    (f"Merke dir: „{GERMAN}“", ["german"]),
    (f"Note : {FRENCH}", ["french"]),
    (f"Pour mémoire : {FRENCH}.", ["french"]),
    (f"On m'a dit que {FRENCH}", ["french"]),
    (f"On m’a dit qu’{FRENCH}", ["french"]),
    (f"D'après mes notes, {FRENCH}", ["french"]),
    (f"Comme mentionné précédemment, « {FRENCH} »", ["french"]),
    (f"Nota: {SPANISH}", ["spanish"]),
    (f"Recuerda que {SPANISH}", ["spanish"]),
    (f"Me dijeron que {SPANISH}", ["spanish"]),
    (f"Según mis notas, {SPANISH}", ["spanish"]),
    (f"Como ya se mencionó antes: {SPANISH}", ["spanish"]),
    # marks
    (f"- {ADA}", [M1]),
    (f"* {ADA}", [M1]),
    (f"• {ADA}", [M1]),
    (f"+ {ADA}", [M1]),
    (f"1. {ADA}", [M1]),
    (f"2) {ADA}", [M1]),
    (f"> {ADA}", [M1]),
    (f"## {TEA}", [M2]),
    (f'"{ADA}"', [M1]),
    (f"“{ADA}”", [M1]),
    (f"'{TEA}'", [M2]),
    (f"**{TEA}**", [M2]),
    (f"*{TEA}*", [M2]),
    (f"_{TEA}_", [M2]),
    (f"`{TEA}`", [M2]),
    (f"```\n{TEA}\n```", [M2]),
    ("The tea is in the **blue** `cupboard`", [M2]),
    (f"- **Note:** {TEA}", [M2]),
    (f"**Note**: {TEA}", [M2]),
    (f'> - Note: "I was told that {TEA}."', [M2]),
    # labels, dates and ids
    (f"User: {TEA}", [M2]),
    (f"Assistant: {TEA}", [M2]),
    (f"Decision: {TEA}", [M2]),
    (f"Fact: {TEA}", [M2]),
    (f"**Preference:** {TEA}", [M2]),
    (f"Entscheidung: {GERMAN}", ["german"]),
    (f"The user said that {TEA}", [M2]),
    (f"You told me: {TEA}", [M2]),
    ("We use Rust 1.80 for the gateway", [M3]),
    ("- we use Rust 1.80 for the gateway.", [M3]),
    ("Note: Decision: we use Rust 1.80 for the gateway", [M3]),
    ("**Decision**: We use Rust 1.80 for the gateway", [M3]),
    ("I like my coffee black", [M4]),
    ("User: I was told that I like my coffee black", [M4]),
    ("The alarm code is on the fridge", [M6]),
    ("Note: the alarm code is on the fridge", [M6]),
    (f"[{DAY}] {ADA}", [M1]),
    (f"({DAY}) {ADA}", [M1]),
    (f"{DAY}: {ADA}", [M1]),
    (f"{DAY} - {ADA}", [M1]),
    (f"- [{DAY}] Note: {ADA}", [M1]),
    (f"{ADA} ({DAY})", [M1]),
    (f"[{M1}] {ADA}", [M1]),
    (f"{M1}: {ADA}", [M1]),
    (f"Memory {M1}: {ADA}", [M1]),
    (f"{ADA} ({M1}, {DAY})", [M1]),
    (f"{ADA} [{M1}]", [M1]),
    (f"{ADA} (from memory)", [M1]),
    # several
    (f"- {ADA}\n- {TEA}", [M1, M2]),
    (f"1. {ADA}\n2. {TEA}\n3. we use Rust 1.80 for the gateway", [M1, M2, M3]),
    (f"3. {ADA}\n4. {TEA}", [M1, M2]),
    (f"Recalled memories:\n\n* {ADA}\n* {TEA}\n", [M1, M2]),
    (f"## What I know\n- [{DAY}] {ADA}\n- [{DAY}] {TEA}", [M1, M2]),
    (f"I was told:\n{ADA}", [M1]),
    (f"Note: {ADA}\nNote: {TEA}", [M1, M2]),
    (f"{TEA}\n{ADA}\n{TEA}", [M2, M1]),
    (STEPS, [M5]),
    (f"Note: {STEPS}", [M5]),
    (f"{TEA}\n{STEPS}\n{ADA}", [M2, M5, M1]),
    (f"From memory:\n{fence(ADA, M1, DAY)}\nNote: {TEA}", [M1, M2]),
    (f"I was told:\n{fence(ADA, M1, DAY)}", [M1]),
    # parts
    ("Note: …near the river.", [M1]),
    ("- Ada lives in London…", [M1]),
]

NEWS = [
    # another word, number, name, date or negation
    f"Note: {ADA} She rows.",
    f"Note: {ADA.replace('London', 'Paris')}",
    f"Note: {ADA.replace('lives', 'does not live')}",
    f"Note: {ADA.replace('near', 'not near')}",
    f"I was told that {ADA.replace('lives', 'lived')}",
    f"I was told that {ADA} But she moved.",
    f"I was told that {ADA.replace('Ada', 'Bob')}",
    f"- {TEA.replace('blue', 'red')}",
    f"1. {TEA} now",
    f"**{TEA}** again",
    f'"{TEA}" was wrong',
    "Decision: we use Rust 1.81 for the gateway",
    "we use Rust 1.80 for the gateway, not Go",
    "Note: we use Rust 1.8 for the gateway",
    "I like my coffee black and sweet",
    "Note: the alarm code is not on the fridge",
    f"[2026-03-02] {ADA}",
    f"{ADA} (2026-05-01)",
    f"2025-03-01: {TEA}",
    f"[{DAY}] {GERMAN}",  # nobody said when that was
    f"[{M2}] {ADA}",
    f"{TEA} ({M1}, {DAY})",
    f"{TEA} ({M2}, 2026-03-09)",
    # words that say something
    f"I doubt that {ADA}",
    f"I was never told that {ADA}",
    f"I was not told that {ADA}",
    f"I was wrongly told that {ADA}",
    f"It is not true that {ADA}",
    f"It is unknown whether {ADA}",
    f"Not: {ADA}",
    f"Wrong: {ADA}",
    f"Maybe: {ADA}",
    f"Update: {ADA}",
    f"Correction: {ADA}",
    f"Confirmed: {ADA}",
    f"TODO: {TEA}",
    f"Done: {TEA}",
    f"Goal: {TEA}",
    f"Question: {TEA}",
    f"Previously: {ADA}",
    f"Since Monday: {ADA}",
    f"Until 2027: {ADA}",
    f"According to Ada, {TEA}",
    f"According to the contract, {TEA}",
    f"Bob said: {ADA}",
    f"Bob: {TEA}",
    f"Ada told me that {TEA}",
    f"I was told by Bob that {ADA}",
    f"I was told yesterday that {ADA}",
    f"As noted in March: {ADA}",
    f"As agreed with Bob, {TEA}",
    f"Remember to check: {TEA}",
    f"Forget that {TEA}",
    f"Do not remember that {TEA}",
    f"Important: {TEA}",
    f"Is it true that {TEA}",
    f"Note: {TEA}?",
    f"I was told that {ADA.rstrip('.')}?",
    f"- [ ] {TEA}",
    f"- [x] {TEA}",
    f"~~{TEA}~~",
    f"¬ {TEA}",
    f"5 {TEA}",
    f"3. {TEA}",  # a single number may be an ordinal: 3. Platz
    f"(3) {TEA}",
    # labels that were exchanged
    "Assistant: I like my coffee black",
    "Fact: we use Rust 1.80 for the gateway",
    "Preference: we use Rust 1.80 for the gateway",
    f"Decision: Fact: {TEA}",
    # several, and one of them is new
    f"- {ADA}\n- {TEA}\n- Bob lives in Rome",
    f"- {ADA}\n- {TEA.replace('blue', 'red')}",
    f"1. {ADA}\n3. {TEA}",
    f"What changed:\n- {ADA}",
    f"These are wrong:\n- {ADA}\n- {TEA}",
    f"{ADA} {TEA}",
    f"{STEPS}\n- roll back on errors",
    "Deploy in two steps:\n- push the tag",
    f"Bob disagrees:\n{fence(ADA, M1, DAY)}",
    f"{fence(ADA, M1, DAY)}\nNote: Bob lives in Rome",
    # nothing is left
    "Note:",
    "- ",
    "Recalled memories:",
    "I was told that",
    f"[{DAY}]",
    "**Note:**",
    "1.",
    "> ",
    # German, French, Spanish
    f"Notiz: {GERMAN} nicht",
    f"Mir wurde nicht gesagt: {GERMAN}",
    f"Falsch: {GERMAN}",
    f"On m'a dit que {FRENCH} depuis mai",
    f"Je doute que {FRENCH}",
    f"No recuerdo que {SPANISH}",
    f"Nota: {SPANISH.replace('Sevilla', 'Madrid')}",
]


def test_the_tables_are_long() -> None:
    assert len(RECOGNISED) >= 60
    assert len(NEWS) >= 60


@pytest.mark.parametrize(("text", "of"), RECOGNISED)
def test_what_adds_nothing(text: str, of: Sequence[str]) -> None:
    assert GIVEN.repeated(text) == tuple(of)


@pytest.mark.parametrize("text", NEWS)
def test_what_says_something(text: str) -> None:
    assert GIVEN.repeated(text) == ()


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("- 3 degrees", "3 degrees"),
        ("– 5 °C at night", "5 °C at night"),
        ("> 5 GB of memory", "5 GB of memory"),
        ("+ 2 points", "2 points"),
        ("# 1 priority", "1 priority"),
        ("Memory: 16 GB", "16 GB"),
        ("2**3**4", "234"),
        ("call __init__", "call init"),
        ("delete *tmp*", "delete tmp"),
        ("`a` or b", "a and b"),
        ("Ada lives in London", "I was told that Ada lives in London"),  # hearsay is not the fact
        ("Ada lives in London", "According to Bob, Ada lives in London"),
        ("User: I like tea", "Assistant: I like tea"),
        ("Per record: 5 boxes", "5 boxes"),
        ("we use Rust", "Maybe: we use Rust"),
        ("user that owns the key", "owns the key"),
        ("the fact that it rains", "it rains"),
        ("Product 7 (recalled)", "Product 7"),
        ("Recall: product 7", "product 7"),
        ("Stored: 5 boxes", "5 boxes"),
        ("1. Mai: frei", "2. Mai: frei"),
    ],
)
def test_signs_that_belong_to_the_text(text: str, stored: str) -> None:
    assert DeliveredTexts({M1: stored}).repeated(text) == ()


@pytest.mark.parametrize(
    ("line", "announces"),
    [
        ("Recalled memories:", True),
        ("## Notes", True),
        ("**Notes:**", True),
        ("- From memory:", True),
        ("I was told:", True),
        ("Notes", False),
        ("Errors:", False),
        ("", False),
        (":", False),
        ("Notes of Ada:", False),
    ],
)
def test_what_announces_others(line: str, announces: bool) -> None:
    assert is_lead_in(line) == announces


# ---------------------------------------------------------------- whatever was delivered

WORDS = ["ada", "lives", "in", "london", "not", "the", "also", "3", "3.5", "boats", "don't", "tea", "gateway", "köln"]
WORDS += ["чай", "port", "main.py:42", "well-known", "of", "it"]
STATEMENTS = st.lists(st.sampled_from(WORDS), min_size=2, max_size=9).map(" ".join)
AROUND = st.sampled_from(
    [
        *("{}", "Note: {}", "I was told that {}", "According to memory, {}", "As noted earlier: {}", "From memory: {}"),
        *("Remember: {}", "Hinweis: {}", "Wie schon erwähnt: {}", "On m'a dit que {}", "Según la memoria, {}"),
        *("• {}", "* {}", "1. {}", "2) {}", '"{}"', "“{}”", "**{}**", "`{}`", "{}.", "{}!"),
        *("User: {}", "Decision: {}", f"[{DAY}] {{}}", f"{{}} ({DAY})", f"({M1}) {{}}", f"{{}} ({M1}, {DAY})"),
    ]
)
NEW = st.sampled_from(["rome", "4", "never", "v2", "天", "nicht", "moved", "bob", "2027", "red"])


def decorated(text: str, around: Sequence[str]) -> str:
    """Each decoration once, and marks of code only around words."""
    for each in dict.fromkeys(around):
        text = each.format(text)
    return f"  {text}\n"


@pytest.mark.slow
@given(STATEMENTS, st.lists(AROUND, max_size=3))
@settings(max_examples=300, deadline=None)
def test_any_text_is_recognised_with_anything_around_it(text: str, around: list[str]) -> None:
    marks = [each for each in around if each[0] in "*`"]
    assume(len(marks) < 2)
    assume(len({each for each in around if each.startswith(("User", "Decision"))}) < 2)
    said = decorated(text, around)
    assert DeliveredTexts({M1: text}, {M1: DAY}).repeated(said) == (M1,), said


@pytest.mark.slow
@given(STATEMENTS, st.lists(AROUND, max_size=3), NEW, st.integers(0, 9), st.booleans())
@settings(max_examples=300, deadline=None)
def test_any_text_with_another_word_is_new(text: str, around: list[str], new: str, place: int, instead: bool) -> None:
    words = text.split()
    place = min(place, len(words) - instead)
    other = " ".join([*words[:place], new, *words[place + instead :]])
    delivered = DeliveredTexts({M1: text, M2: "the tea of ada"}, {M1: DAY, M2: DAY})
    assert delivered.repeated(decorated(other, around)) == ()
    assert delivered.repeated(f"- {text}\n- {decorated(other, around)}") == ()


@pytest.mark.slow
@given(st.lists(STATEMENTS, min_size=1, max_size=5, unique=True), st.sampled_from(["- ", "* ", "• ", "", "Note: "]))
@settings(max_examples=200, deadline=None)
def test_any_list_of_texts_is_recognised(texts: list[str], marker: str) -> None:
    assume(not any(text[0].isdigit() for text in texts))
    given_texts = {f"m{number}": text for number, text in enumerate(texts)}
    said = "\n".join(f"{marker}{text}" for text in texts)
    found = DeliveredTexts(given_texts).repeated(f"Recalled memories:\n{said}\n")
    assert [given_texts[each] for each in found] == texts


@given(st.text(max_size=300))
def test_any_text_can_be_undecorated(text: str) -> None:
    states = list(undecorate(text))
    assert len(states) <= 9
    assert all(len(each.text) <= len(text) for each in states)
    assert DeliveredTexts({}).repeated(text) == ()


@pytest.mark.parametrize(
    ("make", "size"),
    [
        (Repeated("Note: "), 100_000),
        (Repeated(" ", start="note", end="x"), 100_000),
        (Repeated("**"), 100_000),
        (Repeated("`a"), 100_000),
        (Repeated("("), 100_000),
        (Repeated("> "), 100_000),
        (Repeated("- x\n"), 80_000),  # lists of so many lines are not read
        (Repeated("- x\n"), 7_600),
        (Repeated("as "), 100_000),
        (Repeated("1m7gbew6wcr4c5w0 ", start="["), 80_000),
    ],
)
def test_time_is_linear(make: Callable[[int], str], size: int) -> None:
    delivered = DeliveredTexts({M1: "x", M2: "line\n" * 30})
    assert_linear(delivered.repeated, make, size)

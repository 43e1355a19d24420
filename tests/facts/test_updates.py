"""Updates: which older memory a text with a cue is about. Examples of each condition, and properties."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.analysis.update_cues import Cue, find_cue
from nacre.facts.updates import LINKS_MAX, Dated, Judged, judge, subject_terms
from nacre.types.stats import Frequencies

MAY = datetime(2026, 5, 1, tzinfo=UTC)
OLD = "Chamber choir rehearses Wednesdays 19:30 in the parish hall."
NEW = "The chamber choir rehearses in room 2.14 instead of the parish hall."


def judged(newer: str, *older: tuple[str, float], days: int = 30, turns: bool = False) -> list[Judged]:
    cue = find_cue(newer)
    assert cue is not None
    session = "s" if turns else None
    candidates = [(Dated(f"o{at}", text, MAY, session), cosine) for at, (text, cosine) in enumerate(older)]
    counts = dict.fromkeys(subject_terms(newer), 2)
    return judge(Dated("n", newer, MAY + timedelta(days=days), session), cue, candidates, Frequencies(100, counts))


def verdicts(newer: str, *older: tuple[str, float], days: int = 30, turns: bool = False) -> list[str]:
    return [f"{each.older} {each.verdict}" for each in judged(newer, *older, days=days, turns=turns)]


def test_a_shared_subject_and_close_vectors_are_an_update() -> None:
    assert verdicts(NEW, (OLD, 0.7)) == ["o0 linked"]


def test_far_vectors_are_none() -> None:
    text = "Parish council minutes: the hall roof leaks, Mr Brandt gets three offers until the end of the summer."
    assert verdicts(NEW, (text, 0.05)) == []


@pytest.mark.parametrize("days", [0, -30])
def test_what_is_not_older_is_none(days: int) -> None:
    assert verdicts(NEW, (OLD, 0.9), days=days) == []


@pytest.mark.parametrize(
    "older",
    [
        "Where does the chamber choir rehearse, in the parish hall?",
        "Wednesdays at 19:30 in 2026",
        "Bring your own pencil.",
        f"{OLD} {'The programme has many pieces. ' * 30}",
    ],
)
def test_questions_other_subjects_and_documents_are_none(older: str) -> None:
    assert verdicts(NEW, (older, 0.8)) == []


def test_numbers_and_dates_are_no_subject() -> None:
    assert subject_terms("On Monday, 12 May 2026 at 10:30, la semaine, der Freitag, the") == {"semain"}


def test_the_old_value_makes_up_for_other_words() -> None:
    assert verdicts("We moved from Trello to Linear", ("Tickets are in Trello", 0.6)) == ["o0 linked"]
    assert verdicts("We moved from Jira to Linear", ("Tickets are in Trello", 0.6)) == []
    newer = "API pool size 20 -> 30, as agreed with Ada for the autumn sale."
    older = "The pool of the API has size {}, see the wiki page of the platform team."
    assert verdicts(newer, (older.format(20), 0.4)) == ["o0 linked"]
    assert verdicts(newer, (older.format(70), 0.4)) == ["o0 arguable"]


def test_the_subject_stands_in_the_sentence_of_the_cue() -> None:
    older = ("Server closet at Ropewalk has its own air conditioning.", 0.7)
    assert verdicts("The server closet at Ropewalk is no longer cooled by air conditioning.", older) == ["o0 linked"]
    assert verdicts("Air conditioning of the server closet at Ropewalk: fine. Ada no longer smokes.", older) == []


def test_documents_with_other_titles_are_about_something_else() -> None:
    newer = "Leeds Arena\nThe arena in Leeds was moved to Elland Road."
    older = "Arena in Leeds, Elland Road, 12,000 seats."
    assert verdicts(newer, (older, 0.8)) == ["o0 linked"]
    assert verdicts(newer, (f"Leeds Museum\n{older}", 0.8)) == []


def test_a_weak_cue_needs_a_new_value_and_more_evidence() -> None:
    older = ("Rent for the cello is 27 a month at Fiddlestick Lane.", 0.75)
    assert verdicts("Rent for the cello at Fiddlestick Lane is now 33 a month.", older) == ["o0 linked"]
    assert verdicts("rent for the cello at fiddlestick lane is now fine", older) == []
    assert verdicts("The cello costs 33 now.", ("Rent for the cello is 27 a month.", 0.4)) == []


def test_turns_of_one_conversation_need_more_than_notes() -> None:
    older = ("The chamber choir meets somewhere in town, on Wednesdays, I think, and Hedda has all the scores.", 0.5)
    newer = "The chamber choir sings in room 2.14 from now on."
    assert verdicts(newer, older) == ["o0 linked"]
    assert verdicts(newer, older, turns=True) == []


def test_the_best_comes_first_and_the_next_only_if_it_is_nearly_as_good() -> None:
    far = ("The children's choir sings in the parish hall on Fridays.", 0.4)
    assert verdicts(NEW, far, (OLD, 0.7)) == ["o1 linked"]
    assert verdicts(NEW, ("Choir rehearses in the parish hall.", 0.72), (OLD, 0.7)) == ["o1 linked", "o0 linked"]


texts = st.lists(st.sampled_from([*NEW.split(), *OLD.split(), "now", "Trello", "12", "?", "été", "会议"])).map(" ".join)


@given(texts, st.lists(st.tuples(texts, st.floats(-1, 1)), max_size=5), texts)
def test_properties(newer: str, older: list[tuple[str, float]], value: str) -> None:
    cue = Cue("now", strong=True, sentence=newer, old=value)
    candidates = [(Dated(f"o{at}", text, MAY), cosine) for at, (text, cosine) in enumerate(older)]
    found = judge(Dated("n", newer, MAY + timedelta(days=1)), cue, candidates, Frequencies(10, {}))
    assert len(found) <= LINKS_MAX
    assert found == sorted(found, key=lambda each: (-each.evidence, each.older))
    assert {each.older for each in found} <= {each.id for each, _ in candidates}
    assert found == judge(Dated("n", newer, MAY + timedelta(days=1)), cue, candidates[::-1], Frequencies(10, {}))

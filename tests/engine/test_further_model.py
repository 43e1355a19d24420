"""A second model beside the store's own: for questions and memories in other languages than English."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

import nacre
from engines import opened
from further_models import Bilingual
from nacre.embedders.hashing import Hashing
from nacre.interfaces import Store
from nacre.ranking.scoring import describe, score
from stores import Opening

NOTES = [
    "The key of the cellar is under the flowerpot",
    "The next meeting of the gardeners is on Tuesday",
    "Ada has repaired the heating in March",
    "The heating of the office is switched off at night",
    "Deploy staging before production, and tell Ada",
]
CELLAR, MEETING = "Wo liegt der Schlüssel für den Keller?", "Wann ist das nächste Treffen der Gärtner?"


class English(Hashing):
    """Counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def embed_query(self, text: str) -> Any:
        self.asked.append(text)
        return super().embed_query(text)


def texts(result: nacre.SearchResult) -> list[str]:
    return [hit.text for hit in result.hits]


def test_a_question_in_another_language_is_answered_by_the_model_that_knows_it(any_store: Store) -> None:
    own = English()
    with opened(any_store, *NOTES, embedder=own, further=Bilingual()) as memory:
        assert texts(memory.search(CELLAR))[0] == NOTES[0]
        assert texts(memory.search(MEETING, mode="semantic"))[0] == NOTES[1]
        assert own.asked == []
        hit = memory.search(CELLAR).hits[0]
        assert [reason.signal for reason in hit.reasons if reason.effect == "add"] == ["multilingual"]
        assert describe(hit.reasons[0]).startswith("meaning, by the multilingual model: cosine ")
        assert hit.score == score(hit.reasons)
        why = memory.why(CELLAR, hit.id)
        assert why.hit is not None
        assert why.hit.reasons == hit.reasons
        keyword = memory.search(CELLAR, mode="keyword")
        assert all(reason.signal != "multilingual" for hit in keyword.hits for reason in hit.reasons)


def test_english_questions_on_english_memories_lose_nothing(any_store: Store) -> None:
    with opened(any_store, *NOTES, further=Bilingual()) as memory:
        asked = ["where is the key of the cellar", "heating", "what did Ada do", "deploy"]
        without = nacre.Nacre(any_store, Hashing(), log=False, clock=memory._parts.clock, zone=memory._parts.zone)
        for query in asked:
            assert memory.search(query).hits == without.search(query).hits


def test_a_language_that_nobody_knows_is_left_to_words_as_before(any_store: Store) -> None:
    query = "Привет, где ключ от подвала cellar?"
    with opened(any_store, *NOTES, further=Bilingual()) as memory:
        without = nacre.Nacre(any_store, Hashing(), log=False, clock=memory._parts.clock, zone=memory._parts.zone)
        found = memory.search(query)
        assert found.hits == without.search(query).hits
        assert NOTES[0] in texts(found)


def test_memories_whose_language_it_does_not_know_are_not_pending_for_it(any_store: Store) -> None:
    further = Bilingual()
    with opened(any_store, *NOTES, "Привет, ключ лежит под горшком", further=further) as memory:
        assert memory.stats().further_models == {further.fingerprint: 0}
        assert "Привет, ключ лежит под горшком" not in further.asked
        assert "Привет, ключ лежит под горшком" not in texts(memory.search(CELLAR, mode="semantic"))


def test_a_changed_text_is_embedded_again_and_a_restored_one_is_found(any_store: Store) -> None:
    with opened(any_store, *NOTES, further=Bilingual()) as memory:
        memory.update("m0", text="The key of the cellar hangs beside the door")
        assert texts(memory.search(CELLAR))[0] == "The key of the cellar hangs beside the door"
        memory.update("m0", tags=["home"])
        memory.forget("m0")
        assert "m0" not in [hit.id for hit in memory.search(CELLAR, mode="semantic").hits]
        memory.restore("m0")
        assert memory.search(CELLAR).hits[0].id == "m0"
        assert set(memory.stats().further_models.values()) == {0}
        memory.purge("m0")
        assert "m0" not in [hit.id for hit in memory.search(CELLAR, mode="semantic").hits]


def test_a_memory_that_is_remembered_without_the_model_is_embedded_later(any_store: Store) -> None:
    further = Bilingual()
    with opened(any_store, *NOTES, further=further) as memory:
        without = nacre.Nacre(any_store, Hashing(), log=False, clock=memory._parts.clock)
        late = without.remember("The key of the attic is under the carpet").id
        assert memory.stats().further_models == {further.fingerprint: 1}
        found = memory.search(CELLAR)
        assert found.hits[0].text == NOTES[0]
        assert found.notes == ("1 memory has no multilingual vectors yet: run `nacre reembed`",)
        assert without.search("the key of the attic").notes == ()
        states = list(memory.reembed())
        assert (states[0].total, states[-1].done) == (1, 1)
        assert memory.stats().further_models == {further.fingerprint: 0}
        assert late in [hit.id for hit in memory.search(CELLAR, mode="semantic").hits]


def test_reembed_adds_its_vectors_to_a_store_that_has_none(any_store: Store) -> None:
    with opened(any_store, *NOTES) as before:
        before.search("heating")
        memory = nacre.Nacre(any_store, Hashing(), further=Bilingual(), log=False, clock=before._parts.clock)
        assert memory.search(CELLAR).notes == ()  # the store does not know the model yet, so everything is as before
        states = list(memory.reembed())
        assert states[-1].done == len(NOTES)
        assert texts(memory.search(CELLAR))[0] == NOTES[0]
        later = nacre.Nacre(any_store, Hashing(), further=Bilingual(64), log=False, clock=before._parts.clock)
        list(later.reembed())  # another version takes the place of the former
        assert later.stats().further_models == {Bilingual(64).fingerprint: 0}
        assert texts(later.search(MEETING))[0] == NOTES[1]


def test_what_is_deferred_is_deferred_for_both_models(any_store: Store) -> None:
    further = Bilingual()
    with opened(any_store, *NOTES, further=further, defer_embeddings=True) as memory:
        assert further.asked == []
        assert memory.stats().pending == len(NOTES)
        list(memory.reembed())
        assert (memory.stats().pending, memory.stats().further_models) == (0, {further.fingerprint: 0})


class Broken(Bilingual):
    def embed_passages(self, _: Sequence[str]) -> Any:
        raise RuntimeError("no memory left")


def test_a_model_that_fails_costs_no_memory(any_store: Store, caplog: pytest.LogCaptureFixture) -> None:
    with opened(any_store, *NOTES, further=Bilingual()) as memory:
        broken = nacre.Nacre(any_store, Hashing(), further=Broken(), log=False, clock=memory._parts.clock)
        broken.remember("The attic is empty")
        assert "stored without multilingual vectors (no memory left)" in caplog.text
        assert memory.stats().pending == 0
        assert memory.stats().further_models == {Bilingual().fingerprint: 1}
        found = broken.search(CELLAR)
        assert found.notes == ("the embedder failed: keyword results only (no memory left)",)


def test_a_store_that_is_opened_without_the_model_has_everything(open_one: Opening) -> None:
    further = Bilingual()
    with open_one(embedder=Hashing(), multilingual=further) as memory:
        memory.remember_many(NOTES)
    with open_one(embedder=Hashing()) as memory:
        assert len(memory.timeline().entries) == len(NOTES)
        assert memory.stats().further_models == {further.fingerprint: 0}
        memory.remember("The attic is empty")
        list(memory.reembed())
        assert memory.stats().further_models == {further.fingerprint: 1}
    with open_one(embedder=Hashing(), multilingual=further) as memory:
        assert texts(memory.search(CELLAR))[0] == NOTES[0]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("on", "'on' is unknown; allowed: auto, off, or a model of your own"),
        (Hashing(16), "languages is missing"),
        (Bilingual(256), "is the embedder itself"),
    ],
)
def test_a_model_that_cannot_stand_beside_the_embedder(open_one: Opening, given: Any, problem: str) -> None:
    with pytest.raises(nacre.InvalidInput, match=re.escape(problem)):
        open_one(embedder=Hashing(), multilingual=given)


LONG = "Der Schlüssel für den Keller ist unter dem Blumentopf, und der Gärtner hat einen"


def test_an_english_question_finds_memories_in_other_languages_beside_the_own_model(any_store: Store) -> None:
    own, further = English(), Bilingual()
    with opened(any_store, *NOTES[1:], embedder=own, further=further) as memory:
        before = memory.search("where is the key of the cellar").hits
        assert own.asked == ["where is the key of the cellar"]
        assert "where is the key of the cellar" not in [*further.asked, *further.looked_at]  # all is in English
        german = memory.remember(LONG).id
        hits = memory.search("where is the key of the cellar").hits
        assert hits[0].id == german
        reasons = {reason.signal: reason for reason in hits[0].reasons}
        assert {"multilingual", "maxsim"} <= reasons.keys()
        assert "semantic" not in reasons
        assert "no token vectors" in describe(reasons["maxsim"])  # it gets what those around it have
        assert hits[0].score == score(hits[0].reasons)
        of_english = {hit.id: [reason for reason in hit.reasons if reason.signal == "semantic"] for hit in hits[1:]}
        assert of_english == {
            hit.id: [reason for reason in hit.reasons if reason.signal == "semantic"]
            for hit in before
            if hit.id in of_english
        }


def test_what_is_in_the_language_of_the_question_is_compared_token_by_token(any_store: Store) -> None:
    with opened(any_store, LONG, f"{LONG} Hut", further=Bilingual()) as memory:
        assert all("maxsim" in [reason.signal for reason in hit.reasons] for hit in memory.search(CELLAR).hits)
        memory.remember(NOTES[0])  # nothing is known of it, and it may answer better
        assert not any("maxsim" in [reason.signal for reason in hit.reasons] for hit in memory.search(CELLAR).hits)


@pytest.mark.parametrize("query", ["flask routes add", "chanterelle mushrooms", "Kaiser Franz Joseph"])
def test_words_alone_are_no_question_in_another_language(any_store: Store, query: str) -> None:
    own = English()
    with opened(any_store, *NOTES, embedder=own, further=Bilingual()) as memory:
        memory.search(query)
        assert own.asked == [query]

"""Questions in other languages on English notes, by the multilingual model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import multilingual_model
import nacre
from nacre.embedders.hashing import Hashing
from nacre.embedders.use_multilingual import UseMultilingual
from nacre.ranking.scoring import score

NOTES = {
    "key": "The key of the cellar is under the flowerpot",
    "meeting": "The next meeting of the gardeners is on Tuesday at seven",
    "heating": "Ada has repaired the heating in March",
    "dentist": "The dentist moved my appointment to Friday at nine",
    "database": "We decided to use PostgreSQL for the billing service, because of its transactions",
    "allergy": "My daughter is allergic to nuts",
    "train": "The last train home leaves at 23:40 from platform 4",
    "cake": "Grandmother's apple cake needs six eggs and an hour in the oven",
    "deploy": "Deploy to staging first, and to production only after the smoke tests",
    "invoice": "The invoice of the electrician is paid",
    "garage": "The garage door sticks when it is cold",
    "school": "School starts again on the second of September",
}
ASKED = """
key: Wo liegt der Kellerschlüssel?
key: Où est la clé de la cave ?
key: ¿Dónde está la llave del sótano?
meeting: Wann treffen sich die Gärtner?
meeting: Quando si riuniscono i giardinieri?
meeting: 园丁们下次什么时候开会？
heating: Wer hat die Heizung repariert?
heating: Кто починил отопление?
heating: 暖房を直したのは誰ですか？
dentist: Wann ist mein Termin beim Zahnarzt?
dentist: ¿Cuándo es mi cita con el dentista?
dentist: 치과 예약이 언제예요?
database: Welche Datenbank nehmen wir für die Abrechnung?
database: 我们的计费服务用哪个数据库？
allergy: Wogegen ist meine Tochter allergisch?
allergy: На что аллергия у моей дочери?
allergy: ลูกสาวของฉันแพ้อะไร
train: Wann fährt der letzte Zug nach Hause?
train: متى يغادر آخر قطار إلى المنزل؟
train: À quelle heure part le dernier train ?
cake: Wie viele Eier braucht der Apfelkuchen?
cake: Ile jajek potrzeba do szarlotki?
cake: Büyükannenin elmalı keki için kaç yumurta lazım?
"""


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nacre.Nacre]:
    path = tmp_path_factory.mktemp("notes") / "memories.db"
    further = UseMultilingual(folder=multilingual_model.FOLDER)
    with nacre.open(path, embedder=Hashing(), multilingual=further, log=False) as opened:
        opened.remember_many(NOTES.values())
        yield opened


@pytest.mark.parametrize("line", ASKED.strip().splitlines())
def test_a_question_in_any_language_finds_the_english_note(memory: nacre.Nacre, line: str) -> None:
    wanted, _, question = line.partition(": ")
    hit = memory.search(question).hits[0]
    assert hit.text == NOTES[wanted]
    assert "multilingual" in [reason.signal for reason in hit.reasons]


def test_beside_minilm_it_is_found_where_it_is_installed(path: Path) -> None:
    with nacre.open(path, log=False) as memory:
        memory.remember("The key of the cellar is under the flowerpot")
        assert list(memory.stats().further_models) == [UseMultilingual(folder=multilingual_model.FOLDER).fingerprint]
    with nacre.open(path, log=False, multilingual="off") as memory:
        memory.remember("The attic is empty")
        assert list(memory.stats().further_models.values()) == [1]


FOREIGN = {
    "Der Schlüssel für den Keller liegt unter dem Blumentopf neben der Tür": "where is the key of the cellar?",
    "Ada hat im März die Heizung repariert, und sie läuft wieder": "who repaired the heating?",
    "La cita con el dentista se ha cambiado al viernes a las nueve": "when is my appointment with the dentist?",
    "Последний поезд домой отправляется в 23:40 с четвёртой платформы": "when does the last train home leave?",
    "我们决定计费服务使用 PostgreSQL 数据库，因为它支持事务": "which database did we choose for billing?",
}
ENGLISH = [
    "The meeting about the budget is on Tuesday at seven",
    "My daughter is allergic to nuts",
    "Grandmother's apple cake needs six eggs and an hour in the oven",
    "Deploy to staging first, and to production only after the smoke tests",
    "The garage door sticks when it is cold",
    "School starts again on the second of September",
    "The bicycle has a new chain and new brakes",
]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nacre.Nacre]:
    path = tmp_path_factory.mktemp("mixed") / "memories.db"
    with nacre.open(path, multilingual=UseMultilingual(folder=multilingual_model.FOLDER), log=False) as opened:
        opened.remember_many([*ENGLISH, *FOREIGN])
        yield opened


@pytest.mark.parametrize(("note", "question"), FOREIGN.items())
def test_an_english_question_finds_a_note_in_another_language(mixed: nacre.Nacre, note: str, question: str) -> None:
    hit = mixed.search(question).hits[0]
    assert hit.text == note
    assert "multilingual" in [reason.signal for reason in hit.reasons]
    assert hit.score == score(hit.reasons)


@pytest.mark.parametrize("question", ["what is my daughter allergic to?", "how many eggs?", "bicycle chain"])
def test_english_notes_are_ranked_by_minilm_as_ever(mixed: nacre.Nacre, question: str) -> None:
    hit = mixed.search(question).hits[0]
    assert hit.text in ENGLISH
    assert "multilingual" not in [reason.signal for reason in hit.reasons]


NEAR = {  # what shares words with the question, and does not answer it
    "My daughter is allergic to nuts": (
        "Wogegen ist meine Tochter allergisch?",
        "Die Tochter der Nachbarn lernt jetzt Geige",
    ),
    "The password of the old server is in the safe": (
        "Wo ist das Passwort des alten Servers?",
        "Der neue Server steht im Keller und ist laut",
    ),
    "Grandmother's apple cake needs six eggs and an hour in the oven": (
        "Wie viele Eier braucht der Apfelkuchen?",
        "Der Apfelbaum im Garten trägt dieses Jahr viel",
    ),
}


def test_an_english_answer_comes_before_what_only_shares_the_words_of_the_question(path: Path) -> None:
    with nacre.open(path, multilingual=UseMultilingual(folder=multilingual_model.FOLDER), log=False) as memory:
        memory.remember_many([*NEAR, *(distractor for _, distractor in NEAR.values()), *ENGLISH])
        assert {question: memory.search(question).hits[0].text for question, _ in NEAR.values()} == {
            question: note for note, (question, _) in NEAR.items()
        }

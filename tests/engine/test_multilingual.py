"""Questions in other languages on English notes, by the multilingual model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import multilingual_model
import nacre
from nacre.embedders.hashing import Hashing
from nacre.embedders.use_multilingual import UseMultilingual

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

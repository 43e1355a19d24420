"""Ordinary words are no misspellings, and misspellings are no ordinary words: tables of both, through a search."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import nacre
from nacre import Nacre
from nacre.analysis import tokenizer
from nacre.query import ordinary_words, spelling
from nacre.runtime import onnx_models

# Words of questions, by language. The store has something like each of them.
ORDINARY = {
    "english": (
        "much happened before remind people during recently usually password holiday birthday favourite allergic "
        "breakfast dinner colleague manager meeting yesterday tomorrow weekend morning language country address number "
        "version server database deploy release project company customer invoice budget deadline ticket branch review "
        "friend sister brother doctor school travel flight hotel kitchen garden music guitar movie book coffee "
        "vegetarian decided agreed prefer recommend changed moved bought finished broken slow"
    ),
    "german": "haben warum welche gestern letzte unsere wohnt arbeit zuletzt besser vielleicht nächste",
    "french": "pourquoi combien dernier notre toujours aujourd'hui travail semaine quelle depuis comment prochaine",
    "spanish": "cuándo dónde cuánto nuestro último trabajo siempre también mañana reunión quién hacemos",
}
# Found without a suggestion: they share their stem, or their letters, with what was meant.
FOUND = {
    "occured", "independant", "occurence", "persistant", "prefered", "relevent", "kubernets", "jenkin", "contrasena",
}  # fmt: skip
MISSPELLED = {
    "english": (
        "recieve:receive seperate:separate definately:definitely occured:occurred recomend:recommend becuase:because "
        "freind:friend adress:address calender:calendar accomodate:accommodate acheive:achieve beleive:believe "
        "collegue:colleague enviroment:environment goverment:government independant:independent knowlege:knowledge "
        "liason:liaison neccessary:necessary occurence:occurrence persistant:persistent posession:possession "
        "prefered:preferred relevent:relevant succesful:successful suprise:surprise tommorow:tomorrow wierd:weird "
        "databse:database pasword:password deplyo:deploy relase:release projcet:project custmer:customer "
        "invioce:invoice budegt:budget deadlien:deadline brnach:branch reveiw:review meetign:meeting "
        "birthady:birthday vegitarian:vegetarian restaraunt:restaurant kubernets:kubernetes postgress:postgres "
        "dokcer:docker jenkin:jenkins terrafrom:terraform grafna:grafana promethues:prometheus "
        "elasticsarch:elasticsearch rabitmq:rabbitmq nignx:nginx ansibel:ansible webpak:webpack "
        "typscript:typescript javascrpit:javascript pyhton:python authenication:authentication "
        "autorization:authorization configuraton:configuration"
    ),
    "german": "Besprechnug:Besprechung Rechnug:Rechnung Geburstag:Geburtstag Kenwort:Kennwort Urlabu:Urlaub",
    "french": "facutre:facture rendezvouz:rendezvous anniversiare:anniversaire vacnces:vacances réunoin:réunion",
    "spanish": "facutra:factura cumpleanso:cumpleaños contrasena:contraseña vacacoines:vacaciones reunoin:reunión",
    "names": "sara:sarah catherine:katherine johan:johann alison:allison",
}


def pairs(language: str) -> list[tuple[str, str]]:
    return [(wrong, right) for wrong, _, right in (each.partition(":") for each in MISSPELLED[language].split())]


def folded(word: str) -> str:
    return "".join(tokenizer.tokenise(word).words)


def neighbour(word: str) -> str:
    """Something that the word may be a misspelling of."""
    return f"{word[:-1]}q{word[-1]}"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("words")


@pytest.fixture(scope="module")
def alike(path: Path) -> Iterator[Nacre]:
    """Has a neighbour of every ordinary word."""
    with nacre.open(path / "alike.db", embedder=None, log=False) as engine:
        engine.remember_many(neighbour(folded(each)) for listed in ORDINARY.values() for each in listed.split())
        yield engine


@pytest.fixture(scope="module")
def spelled(path: Path) -> Iterator[Nacre]:
    """Has every word that is misspelled."""
    with nacre.open(path / "spelled.db", embedder=None, log=False) as engine:
        engine.remember_many(right for language in MISSPELLED for _, right in pairs(language))
        yield engine


def offered(memory: Nacre, query: str) -> str | None:
    meant = memory.search(query, mode="keyword").did_you_mean
    return None if meant is None else meant.query


@pytest.mark.parametrize("language", ORDINARY)
def test_ordinary_words_get_no_suggestion(alike: Nacre, language: str) -> None:
    words = ORDINARY[language].split()
    assert len(words) >= (60 if language == "english" else 10)
    for word in words:
        assert spelling.edits_between(folded(word), neighbour(folded(word))) == 1
        assert offered(alike, f"xyzzy {word}") is None
        assert offered(alike, word.capitalize()) is None  # as the first word
    assert offered(alike, " ".join(words)) is None


def test_others_get_one_from_the_same_store(alike: Nacre) -> None:
    for word in ORDINARY["english"].split():
        assert offered(alike, f"xyzzy {word}q") == f"xyzzy {neighbour(word)}"


@pytest.mark.parametrize("language", MISSPELLED)
def test_misspelled_words_get_one(spelled: Nacre, language: str) -> None:
    for wrong, right in pairs(language):
        assert not ordinary_words.is_ordinary(folded(wrong)), wrong
        if wrong in FOUND:
            assert spelled.search(wrong, mode="keyword").hits
        else:
            assert offered(spelled, f"xyzzy {wrong}") == f"xyzzy {folded(right)}"


def test_a_capital_makes_a_name_of_an_ordinary_word(path: Path) -> None:
    with nacre.open(path / "names.db", embedder=None, log=False) as memory:
        memory.remember("Munch and Hopper were painters from Ostlo")
        assert offered(memory, "how much is it?") is None
        assert offered(memory, "Hoppers paintings") is None  # found by its stem
        assert offered(memory, "the painting of Copper") == "the painting of hopper"
        assert offered(memory, "the painting of copper") is None
        assert offered(memory, "Copper and others") is None  # any first word has a capital
        assert offered(memory, "Why? Copper?") is None
        assert offered(memory, "WHERE IS COPPER?") is None


@pytest.mark.parametrize(
    ("word", "ordinary"),
    [
        ("much", True), ("where", True), ("nicht", True), ("pourquoi", True), ("cuando", True), ("wanneer", True),
        ("password", True), ("sarah", False), ("john", False), ("mark", True), ("recieve", False), ("xyzzy", False),
        ("kubernetes", False),
    ],
)  # fmt: skip
def test_words(word: str, ordinary: bool) -> None:
    assert ordinary_words.is_ordinary(word) is ordinary


def test_without_the_vocabulary_there_are_more_suggestions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(onnx_models, "EMBEDDER", tmp_path)
    assert not ordinary_words.is_ordinary("password")
    assert ordinary_words.is_ordinary("much")

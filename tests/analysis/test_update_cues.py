"""Cues that a text changes what held before: found where a text says so, with the values, and not in other texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth import Repeated, assert_linear
from nacre.analysis.update_cues import CHARS_MAX, find_cue

# A text, and how its cue begins, with the old and the new value.
STRONG = [
    ("The CI runner moved from Jenkins to Buildkite.", "moved", "jenkins", "buildkite"),
    ("We switched the billing database from MySQL 5.7 to Postgres 16", "switched", "mysql 5.7", "postgres 16"),
    ("Bumped the timeout from 30 s to 45 s.", "bumped", "30 s", "45 s"),
    ("Rent raised from 1,200 to 1,350 euros", "raised", "1,200", "1,350 euros"),
    ("The repo was renamed from acme-web to acme-site.", "renamed", "acme-web", "acme-site"),
    ("Use pnpm instead of npm.", "instead of", "npm", ""),
    ("We meet at noon rather than ten.", "rather than", "ten", ""),
    ("Lena no longer leads the team", "no longer", "leads the team", ""),
    ("Nobody uses that server any more", "nobody", "", ""),
    ("He doesn't work there anymore.", "n't", "", ""),
    ("Correction: the key is under the second pot.", "correction", "", ""),
    ("UPDATE: the flight leaves at 18:05", "update", "", ""),
    ("As of May the fee is 30.", "as of may", "", ""),
    ("From now on deploys happen on Tuesdays", "from now on", "", ""),
    ("Redis replaces Memcached for sessions", "replaces", "memcached for sessions", ""),
    ("The old pump was replaced by a Grundfos.", "replaced by", "", "a grundfos"),
    ("The hearing is postponed to 16 September", "postponed to", "", "16 september"),
    ("The party is cancelled", "cancelled", "", ""),
    ("They called the match off", "called", "", ""),
    ("Irina took over payroll", "took over", "", ""),
    ("Omar stepped down as chair", "stepped down", "", ""),
    ("The v1 endpoint is deprecated", "deprecated", "", ""),
    ("Scratch that, we fly on Monday", "scratch that", "", ""),
    ("The alarm code has been changed to 4711", "changed to", "", "4711"),
    ("Bisoprolol goes up to 5 mg", "goes up to", "", "5 mg"),
    ("osprey-db: max_connections 200 -> 350", "->", "200", "350"),
    ("Tenacity 8.2 → 8.5", "->", "8.2", "8.5"),
    # German
    ("Wir nehmen Eiche statt Buche.", "statt", "buche", ""),
    ("Frau Reuter ist nicht mehr zuständig", "nicht mehr", "", ""),
    ("Wir sind umgezogen", "umgezogen", "", ""),
    ("Ab sofort gilt der neue Code", "ab sofort", "", ""),
    ("Korrektur: Abfahrt ist um neun", "korrektur", "", ""),
    ("Der Termin wurde auf Freitag verschoben", "verschoben", "", ""),
    ("Das Fest ist abgesagt", "abgesagt", "", ""),
    ("Nicht Dienstag, sondern Mittwoch", "nicht", "dienstag", "mittwoch"),
    ("Wir sind von Slack auf Mattermost umgestellt", "von", "slack", "mattermost"),
    # French
    ("Désormais le code est 90A33.", "désormais", "", ""),
    ("On n'utilise plus Trello", "n'utilise plus", "", ""),
    ("Du thé au lieu de café", "au lieu de", "café", ""),
    ("La réunion est reportée à jeudi", "reportée", "", ""),
    ("Le concert est annulé", "annulé", "", ""),
    ("Correction : c'est le quai 4", "correction", "", ""),
    ("Marie a déménagé à Lyon", "déménagé", "", ""),
    ("À partir de mai le tarif est de 30 €", "à partir de", "", ""),
    # Spanish
    ("Ya no trabajo allí", "ya no", "", ""),
    ("Usamos Redis en lugar de Memcached", "en lugar de", "memcached", ""),
    ("La cita cambió de lunes a martes", "cambió", "lunes", "martes"),
    ("Ana se mudó a Sevilla", "se mudó", "", ""),
    ("El concierto está aplazado", "aplazado", "", ""),
    ("Corrección: es el andén 4", "corrección", "", ""),
    # Scripts without spaces
    ("会议改到周五", "改到", "", ""),
    ("会議は金曜に変更になりました", "変更", "", ""),
]
WEAK = [
    "Marrow is now on Postgres 14",
    "Actually, it was Tuesday.",
    "It turns out the key was in the car",
    "The new lead is Hauke.",
    "Seit Mai macht das die Firma EnerPlus",
    "Das Treffen ist jetzt im Saal",
    "Nouvelle box : Combe-Fibre",
    "Ahora vive en Cádiz",
    "Meet at gate B, not gate A",
]
NONE = [
    "Redis runs on port 6379",
    "I had a great time at the beach with the kids!",
    "Change freeze from 20 Nov to 2 Dec.",
    "The train from Berlin to Hamburg takes two hours.",
    "Bye for now!",
    "We got a new puppy",
    "She pushed me to apply",
    "The stay can be cancelled until Friday.",
    "Returns within no longer than two days",
    "What moves you?",
    "",
    "    ",
]


@pytest.mark.parametrize(("text", "words", "old", "new"), STRONG)
def test_a_text_that_says_that_something_changed_has_a_strong_cue(text: str, words: str, old: str, new: str) -> None:
    cue = find_cue(text)
    assert cue is not None
    assert cue.strong
    assert cue.words.startswith(words)
    assert (cue.old, cue.new) == (old, new)
    assert cue.sentence in text.lower()


@pytest.mark.parametrize("text", WEAK)
def test_a_text_that_may_say_so_has_a_weak_cue(text: str) -> None:
    cue = find_cue(text)
    assert cue is not None
    assert not cue.strong


@pytest.mark.parametrize("text", NONE)
def test_other_texts_have_none(text: str) -> None:
    assert find_cue(text) is None


def test_a_strong_cue_comes_first() -> None:
    cue = find_cue("It is now clear: the parish hall is no longer free. We actually sing in the school.")
    assert cue is not None
    assert (cue.words, cue.sentence) == ("no longer", "it is now clear: the parish hall is no longer free")


def test_a_long_text_is_a_document() -> None:
    assert find_cue("We moved from A to B. " + "x" * CHARS_MAX) is None


@given(st.text(max_size=CHARS_MAX))
def test_no_text_is_an_error(text: str) -> None:
    cue = find_cue(text)
    assert cue is None or (cue.words and cue.sentence)


@pytest.mark.parametrize(
    "piece", ["moved ", "from to ", "not but ", "was , now ", "no longer ", "von auf ", "ne plus ", "a,1,", "(), "]
)
def test_time_is_linear(piece: str) -> None:
    assert_linear(find_cue, Repeated(piece), CHARS_MAX)

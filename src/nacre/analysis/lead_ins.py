"""What agents put around a text that they were given: bullets, quotation marks, "Note:", "I was told that", a date.

None of it adds anything to the text. So the tables name what may be removed, word by word, and everything else is
part of the text: "Maybe:", "Not:", "Update:", "According to Ada," or "I doubt that" say something.

Labels of a kind or a speaker, dates and ids may be added or dropped, too, but not exchanged. They are returned with
what is left, so that the caller can compare them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise

_STEPS_MAX = 8  # of decoration around one text
# A sign before a number may belong to it: "- 3 degrees", "> 5 GB", "# 1".
_MARKER = re.compile(r"(?:[•‣◦▪*]|(?:[-+–—>]|#{1,6})(?=\s+(?![.,$€£]?[0-9]))|[0-9]{1,2}\)|1\.)\s+")
_NUMBERED = re.compile(r"\s*([0-9]{1,2})\.\s+")
_CODE_BLOCK = re.compile(r"```(?!diff|patch)\w*\n([^`]+)\n```")
# Nothing inside of these is emphasis: `2**3**4`, `*.py`, `__init__`.
_BOLD = re.compile(r"(?<![\w*])\*\*(?=[^\s*])([^*\n]+)(?<=\S)\*\*(?![\w*])")
_CODE = re.compile(r"(?<![\w`])`([^`\n]+)`(?![\w`])")
_QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“”", "«": "»", "‘": "’", "‹": "›"}

_DATE = r"(?P<{0}date>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})"
_ID = r"(?P<{0}id>[0-9a-z]{{16}})"
_BEFORE = re.compile(
    rf"(?:memory\s+|id[:=]?\s*)?(?:[\[(]\s*(?:{_ID.format('a')}|{_DATE.format('a')})"
    rf"(?:\s*[,;]\s*(?:{_ID.format('b')}|{_DATE.format('b')}))?\s*[\])]\s*[:：]?|"
    rf"(?:{_ID.format('c')}|{_DATE.format('c')})(?:\s*[:：]|\s+[-–—](?=\s)|(?=\s)))\s*",
    re.IGNORECASE,
)
_AFTER = re.compile(
    rf"\s*[\[(]\s*(?:(?:memory\s+|id[:=]?\s*)?(?:{_ID.format('a')}|{_DATE.format('a')})"
    rf"(?:\s*[,;]\s*(?:{_ID.format('b')}|{_DATE.format('b')}))?"
    r"|from (?:my )?(?:memory|notes)|already known|aus dem Gedächtnis|de mémoire|de memoria)\s*[\])][.!]*\Z",
    re.IGNORECASE,
)
_AFTER_CHARS = 80  # the longest of these

_SAID = "(?:noted|mentioned|stated|recorded|remembered|said|told|known)"
_EARLIER = "(?:earlier|before|above|previously|already)"
_MEMORY = r"(?:stored |own )?(?:memory|memories|notes?)"
# Before a colon.
_NOTES = "|".join(
    (
        r"notes?|note to self|n\.?b\.?|nota bene|remember|(?:just a )?reminder|memories|memory(?!\s*[:：]\s*[0-9])",
        r"memory #?[0-9]{1,2}(?!\s*[:：]\s*[0-9])|remembered|(?:(?:just )?to )?recap",
        r"from (?:my )?(?:memory|notes)|from earlier|(?:just )?f\.?y\.?i\.?|info|context|background",
        r"for (?:the record|reference|context|your information)|(?:already )?known|known facts?|key (?:facts?|points?)",
        r"(?:recalled|relevant|retrieved|stored|saved|existing|known|previous|earlier) (?:memor(?:y|ies)|notes?)",
        r"(?:here(?:'s| is) )?what (?:i|we) (?:know|remember|recall|was told|were told)|what is known|it is known",
        # German
        r"(?:kurze )?notiz(?:en)?(?: an mich)?|hinweis|merke(?: dir)?|anmerkung|(?:zur )?erinnerung(?:en)?",
        r"(?:nur )?zur info|bekannt|gedächtnis|kontext|hintergrund|was ich weiß",
        # French
        r"remarques?|(?:pour )?rappel|pour (?:mémoire|info|information)|à (?:noter|retenir)|mémoire|souvenirs?",
        r"contexte|ce que je sais",
        # Spanish
        r"notas?(?: para mí)?|recuerda|recordatorio|memorias?|recuerdos?|para (?:recordar|que conste)|apuntes?",
        r"contexto|lo que sé",
    )
)
# Before a colon, a comma or "that".
_PHRASES = "|".join(
    (
        r"i (?:was|have been) (?:told|informed)|i've been (?:told|informed)",
        r"(?:i|we) (?:already )?(?:recall|remember|know|noted|learned|learnt)|as a reminder|according to my records",
        r"(?:i|we)(?:'ve| have) (?:already )?(?:noted|learned|learnt|recorded)",
        r"it(?:'s| is) known|it (?:was|has been) (?:noted|recorded)",
        rf"(?:my|the) {_MEMORY} (?:say|state|show|mention)s?|memory (?:says|states)",
        r"(?:please )?(?:note|remember|keep in mind|bear in mind)",
        rf"(?:according to|based on|from) (?:(?:my|the|your|our) )?{_MEMORY}",
        rf"(?:as )?per (?:my|the|your|our) {_MEMORY}",
        rf"as (?:(?:i|you|we|already|previously|was|were|it was) ){{0,2}}{_SAID}(?: {_EARLIER}){{0,2}}",
        # German
        r"mir wurde (?:gesagt|mitgeteilt)|man hat mir gesagt|ich (?:erinnere mich|weiß|weiss)|es ist bekannt",
        r"(?:laut|gemäß|nach) (?:(?:meine[mnr]|de[mnr]) )?(?:gedächtnis|erinnerung(?:en)?|notizen|aufzeichnungen)",
        r"aus (?:dem|meinem) gedächtnis|aus der erinnerung",
        r"wie (?:(?:bereits|schon|oben|vorhin|früher|zuvor) ){0,2}(?:erwähnt|notiert|gesagt|festgehalten|bekannt)",
        # French
        r"on m['’]a (?:dit|informée?)|je (?:me souviens|me rappelle|sais)|(?:souviens|rappelle)-toi|not(?:e|ez) bien",
        r"il est connu|(?:d['’]après|selon) (?:mes|ma|la|les) (?:notes|mémoire|souvenirs)|de mémoire",
        r"comme (?:déjà )?(?:noté|mentionné|indiqué|dit)(?: (?:plus tôt|précédemment|auparavant|ci-dessus|avant))?",
        # Spanish
        r"me (?:dijeron|han dicho|informaron)|recuerd[oa]|ten en cuenta|sé|se sabe|de memoria",
        r"según (?:mis?|las?|los) (?:notas|memoria|recuerdos|apuntes)",
        r"como (?:ya )?(?:se )?(?:mencion|anot|indic|dij)(?:ó|o|é|e)(?: (?:antes|anteriormente|arriba))?",
    )
)
# Before a clause without any sign.
_CLAUSES = r"i (?:was|have been) told|i've been told|(?:my|the) (?:notes|memory|memories) says?|memory says"
_KINDS: Mapping[str, str] = {
    "decision": r"decisions?|entscheidung(?:en)?|décisions?|decisi(?:ón|ones)",
    "preference": r"(?:user )?preferences?|präferenz(?:en)?|vorliebe|préférences?|preferencias?",
    "instruction": r"instructions?|anweisung(?:en)?|instrucci(?:ón|ones)|consignes?",
    "fact": r"facts?|fakt(?:en)?|tatsache|faits?|hechos?",
    "learning": r"learnings?|lessons?(?: learned)?|erkenntnis(?:se)?|lecciones|lección|leçons?",
    "observation": r"observations?|beobachtung(?:en)?|observaci(?:ón|ones)",
    "pattern": r"patterns?|muster",
    "config": r"config|configuration|konfiguration|configuración",
    "event": r"events?|ereignis(?:se)?|événements?|eventos?",
}
_SPEAKERS: Mapping[str, str] = {
    "user": r"user|human|(?:be)?nutzer(?:in)?|utilisat(?:eur|rice)|usuari[oa]",
    "assistant": r"assistant|agent|ai|assistent(?:in)?|assistante|asistente",
}
_USER_SAID = r"(?:the )?user (?:said|mentioned|stated|noted|told me)|you (?:said|told me|mentioned)"


@dataclass(frozen=True, slots=True)
class Undecorated:
    """What is left of a text, and what was removed that must not contradict the memory."""

    text: str
    kind: str | None = None
    speaker: str | None = None
    dates: frozenset[str] = field(default_factory=frozenset)
    ids: frozenset[str] = field(default_factory=frozenset)


@cache  # they are only needed once something was delivered
def _lead_in() -> re.Pattern[str]:
    that = r"(?:\s*[:：,]\s*|,?\s+(?:that|dass|que)\s+|,?\s+qu['’])"
    return re.compile(rf"(?:(?:{_NOTES})\s*[:：]\s*|(?:{_PHRASES}){that}|(?:{_CLAUSES})\s+)", re.IGNORECASE)


@cache
def _note() -> re.Pattern[str]:
    return re.compile(rf"(?:{_NOTES})\s*[:：]\s*", re.IGNORECASE)


@cache
def _lead_in_alone() -> re.Pattern[str]:
    return re.compile(rf"(?:{_NOTES}|{_PHRASES})", re.IGNORECASE)


@cache
def _label() -> re.Pattern[str]:
    """A named group for each label."""
    named = "|".join(f"(?P<{name}>{words})" for name, words in {**_KINDS, **_SPEAKERS}.items())
    return re.compile(rf"(?:{named})\s*[:：]\s*|(?P<user_said>{_USER_SAID})(?:\s*[:：,]\s*|\s+that\s+)", re.IGNORECASE)


def unemphasised(text: str) -> str:
    """The text without bold and code marks around words."""
    if "*" in text:
        text = _BOLD.sub(r"\1", text)
    return _CODE.sub(r"\1", text) if "`" in text else text


def undecorate(text: str) -> Iterator[Undecorated]:
    """A text as it is, then without one decoration after the other."""
    state = Undecorated(unemphasised(_CODE_BLOCK.sub(r"\1", text) if "```" in text else text).strip())
    yield state
    for _ in range(_STEPS_MAX):
        fewer = _without_frame(state) or _without_labels(state) or _without_place(state)
        if fewer is None or not fewer.text:
            return
        state = fewer
        yield state


def labels_removed(text: str) -> Undecorated | None:
    """A stored text without its labels; None if it has none.

    What else it begins with is part of it: that something was told is not the same as that it is so.
    """
    left, state = None, Undecorated(unemphasised(text).strip())
    while (fewer := _without_labels(state, stored=True)) is not None and fewer.text:
        left = state = fewer
    return left


def is_lead_in(line: str) -> bool:
    """Whether a line only announces what follows: "Recalled memories:", "## Notes"."""
    bare = unemphasised(line).strip()
    marker = _MARKER.match(bare)
    said = bare[marker.end() :] if marker else bare
    heading = bare.startswith("#") or said.endswith((":", "："))
    return heading and _lead_in_alone().fullmatch(said.rstrip(":： ")) is not None


def without_numbers(lines: list[str]) -> list[str]:
    """The lines of a numbered list without their numbers. A single number counts only if it is the first."""
    numbers = [_NUMBERED.match(line) for line in lines]
    values = [int(each[1]) for each in numbers if each is not None]
    if len(values) < 2 or any(after != before + 1 for before, after in pairwise(values)):
        return lines
    return [line if each is None else line[each.end() :] for line, each in zip(lines, numbers, strict=True)]


# ---------------------------------------------------------------- one decoration


def _without_frame(state: Undecorated) -> Undecorated | None:
    """Without a bullet, or marks around the whole."""
    text = state.text
    marker = _MARKER.match(text)
    if marker is not None:
        return replace(state, text=text[marker.end() :])
    first = text[:1]
    whole = text.rstrip(".,;!") if first in _QUOTES else text  # a sentence may end after its quotation
    last, inner = whole[-1:], whole[1:-1]
    quoted = first in _QUOTES and last in _QUOTES[first] and len(whole) > 1
    italic = first in ("*", "_") and first == last and first not in inner and " " in inner and inner.strip() == inner
    return replace(state, text=inner.strip()) if quoted or italic else None


def _without_labels(state: Undecorated, *, stored: bool = False) -> Undecorated | None:
    """Without "Note:" and the like, or the label of a kind or a speaker."""
    text = state.text
    lead_in = (_note() if stored else _lead_in()).match(text)
    if lead_in is not None:
        return replace(state, text=text[lead_in.end() :])
    label = _label().match(text)
    if label is None:
        return None
    name, left = label.lastgroup, text[label.end() :]
    if name in _KINDS:
        return replace(state, text=left, kind=name) if state.kind in (None, name) else None
    speaker = "user" if name == "user_said" else name
    return replace(state, text=left, speaker=speaker) if state.speaker in (None, speaker) else None


def _without_place(state: Undecorated) -> Undecorated | None:
    """Without the date or the id of the memory, before or after it."""
    text = state.text
    found = _BEFORE.match(text)
    if found is not None:
        left = text[found.end() :]
    else:
        found = _AFTER.search(text, max(0, len(text) - _AFTER_CHARS))
        if found is None:
            return None
        left = text[: found.start()]
    given = {name: value for name, value in found.groupdict().items() if value is not None}
    dates = {value for name, value in given.items() if name.endswith("date")}
    ids = {value.lower() for name, value in given.items() if name.endswith("id")}
    return replace(state, text=left.strip(), dates=state.dates | dates, ids=state.ids | ids)

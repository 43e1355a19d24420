"""Italian times. A month or a season counts with a preposition, an adjective or a year; "marzo" may be a name."""

from __future__ import annotations

import re

from nacre.query.dates import meanings
from nacre.query.dates.grammar import DIGIT, Language, Surroundings, by_first_word, form, nearby
from nacre.query.dates.meanings import part
from nacre.query.dates.words import (
    IT_MONTHS,
    IT_NUMBERS,
    IT_ORDINALS,
    IT_SEASONS,
    IT_UNITS,
    IT_WEEKDAYS,
    any_of,
    words_of,
)

_HELPERS = frozenset(
    {"in", "a", "ad", "nel", "nell'", "since", "before", "after", "until", "between", "from", "to", "durante"}
)


def _name_counts(match: re.Match[str], place: Surroundings) -> bool:
    named = part(match, "which") or part(match, "year") or part(match, "era")
    return bool(named or place.helpers & _HELPERS)


def _weekday_counts(_: re.Match[str], place: Surroundings) -> bool:
    """ "Il lunedì" and "ogni lunedì" are every Monday."""
    return "until" not in place.helpers and place.article != "il" and not nearby(_EVERY).search(place.before)


def _season_counts(match: re.Match[str], place: Surroundings) -> bool:
    """ "In estate" may be English."""
    return _name_counts(match, place) and not (match[0].lower() == "estate" and place.helpers & {"in", "a"})


def _weekend_counts(match: re.Match[str], place: Surroundings) -> bool:
    """ "Weekend" alone is English."""
    return match[0][0] in "fF" or bool(part(match, "which") or place.article or place.helpers & {"nel", "since"})


def _year_counts(match: re.Match[str], place: Surroundings) -> bool:
    """ "In 2000 words" is not Italian, which says "nel 2000"."""
    return match[0][0] in "aA" or bool(place.helpers & (_HELPERS - {"in", "a", "ad", "from", "to"}))


def _part_counts(match: re.Match[str], place: Surroundings) -> bool:
    """Not "Meta 2025"."""
    return " d" in match[0].lower() or bool(place.article or place.helpers & {"a", "alla", "da", "since", "until"})


_EVERY = r"\b(?:ogni|di|il|i)\s+$"
_YEAR = "(?P<year>[0-9]{4})"
_LAST = "scors[oaie]|passat[oaie]|ultim[oaie]|prossim[oaie]"
_LONG = f"(?P<long>{any_of(*IT_UNITS)})"
_NUMBER = f"(?:(?P<digits>[0-9]{{1,9}})|(?P<word>un paio di|{any_of(*IT_NUMBERS)}))"
_AMOUNT = f"{_NUMBER} {_LONG}"
_PART_OF_DAY = "(?: (?:mattina|pomeriggio|sera|notte))?"
_WEEKDAY = f"(?P<weekday>{any_of(*IT_WEEKDAYS)})"
_MONTH = f"(?P<month>{any_of(*IT_MONTHS)})"
_ERA = "dell'anno (?P<era>scorso|passato)"
_MAYBE_YEAR = f"(?: (?:del )?{_YEAR}| {_ERA})?"
_DAY = f"(?:{_WEEKDAY},? )?(?P<day>[0-9]{{1,2}}) {_MONTH}{_MAYBE_YEAR}"
_QUARTER = f"(?P<quarter>{any_of(*(word for word in IT_ORDINALS if IT_ORDINALS[word] in range(1, 5)))}) trimestre"
_SEASON = f"(?P<season>{any_of(*IT_SEASONS)})"
_HOLIDAY = "(?P<holiday>natale|capodanno)"
_PART = "(?P<part>inizio|meta|fine)(?: d(?:i|el|ella|ell'))? ?(?:mese di )?"
_UNIT = "(?P<long>settimana|mese|anno|trimestre)"
_WHOLES = (
    (f"{_MONTH}{_MAYBE_YEAR}", meanings.month_or_quarter),
    (f"{_SEASON}{_MAYBE_YEAR}", meanings.season),
    (_YEAR, meanings.year_or_week),
    (f"{_UNIT}(?: (?P<which>{_LAST}))?", meanings.which_unit),
)
_AMOUNTS = words_of(IT_NUMBERS) | DIGIT
_WEEKDAYS, _MONTHS = words_of(IT_WEEKDAYS), words_of(IT_MONTHS)
_SEASONS, _ORDINALS = words_of(IT_SEASONS), words_of(IT_ORDINALS)
_THIS = "(?P<which>quest[oa]|scors[oa]|passat[oa]|ultim[oa]|prossim[oa])"
_THISES = "questo questa scorso scorsa passato passata ultimo ultima prossimo prossima"

_FORMS = (
    form(_AMOUNTS, f"{_AMOUNT} fa", meanings.ago),
    form("ultimi ultime scorsi scorse", f"(?:ultim|scors)[ie] {_AMOUNT}", meanings.up_to_now),
    form("ultimi scorsi", "(?:ultimi|scorsi) giorni", meanings.back(7)),
    form("ultime scorse", "(?:ultime|scorse) settimane", meanings.back(30)),
    form("ultimi scorsi", "(?:ultimi|scorsi) mesi", meanings.back(90)),
    form("oggi stamattina stamani stasera", "oggi|stamattina|stamani|stasera", meanings.day(0)),
    form("ieri", f"ieri{_PART_OF_DAY}", meanings.day(-1)),
    form("ieri altro avantieri", "altro ieri|ieri l'altro|avantieri", meanings.day(-2)),
    form("dopodomani", "dopodomani", meanings.day(2)),
    form("notte stanotte scorsa", "notte scorsa|scorsa notte|stanotte", meanings.last_night),
    form("recentemente ultimamente poco", "recentemente|ultimamente|poco fa", meanings.back(30)),
    form("settimana mese anno trimestre", f"{_UNIT} (?P<which>{_LAST})", meanings.which_unit),
    form(_THISES, f"{_THIS} {_UNIT}", meanings.which_unit),
    form("fine weekend", f"(?:fine settimana|weekend)(?: (?P<which>{_LAST}))?", meanings.weekend, _weekend_counts),
    form(_THISES, f"{_THIS} (?:fine settimana|weekend)", meanings.weekend),
    form(_WEEKDAYS, f"{_WEEKDAY}(?: (?P<which>{_LAST}))?{_PART_OF_DAY}", meanings.weekday, _weekday_counts, "floating"),
    form(_THISES, f"{_THIS} {_WEEKDAY}{_PART_OF_DAY}", meanings.weekday, kind="floating"),
    form(
        _MONTHS | {"mese"}, f"(?:mese di )?{_MONTH}{_MAYBE_YEAR}", meanings.month_or_quarter, _name_counts, "floating"
    ),
    form(_MONTHS, f"{_MONTH} (?P<which>{_LAST})", meanings.month_or_quarter, kind="floating"),
    form(_THISES, f"{_THIS} {_MONTH}", meanings.month_or_quarter, kind="floating"),
    form(_WEEKDAYS | DIGIT, _DAY, meanings.calendar_day, kind="floating"),
    form(DIGIT | {"anno"}, f"(?:anno )?{_YEAR}", meanings.year_or_week, _year_counts),
    form("anni", "anni (?P<decade>(?:19|20)[0-9]0|[5-9]0)", meanings.decade),
    form(_ORDINALS, f"{_QUARTER}{_MAYBE_YEAR}", meanings.month_or_quarter, kind="floating"),
    form(_SEASONS, f"{_SEASON}{_MAYBE_YEAR}", meanings.season, _season_counts, "floating"),
    form(_SEASONS, f"{_SEASON} (?P<which>{_LAST})", meanings.season, kind="floating"),
    form(_THISES, f"{_THIS} {_SEASON}", meanings.season, kind="floating"),
    form("natale capodanno", f"{_HOLIDAY}{_MAYBE_YEAR}", meanings.holiday, _name_counts, "floating"),
    *(form("inizio meta fine", _PART + pattern, meanings.third_of(whole), _part_counts) for pattern, whole in _WHOLES),
)

_HEADS = {"da": "since", "dal": "since", "dallo": "since", "dalla": "since", "dall'": "since", "dopo": "after"}
_HEADS |= {"prima di": "before", "prima del": "before", "prima della": "before", "prima dell'": "before"}
_HEADS |= {"fino a": "until", "fino al": "until", "entro": "until", "tra": "between", "fra": "between"}
_HEADS |= {"di": "from", "del": "from", "della": "from", "dell'": "from"}
_LEADS = "in|a|ad|nel|nella|nell'|negli|nelle|durante|per|al|alla"
ITALIAN = Language(
    forms=by_first_word(_FORMS),
    opening=f"(?:(?P<head>{any_of(*_HEADS)})(?: |(?<=')))?(?:(?P<lead>{any_of(*_LEADS.split('|'))})(?: |(?<=')))?"
    "(?P<the>(?:il|lo|la|gli|le|i) |l')?",
    heads=_HEADS,
    to=r"(?: (?P<to>a|al|fino a) | ?– ?|\s+-\s+)(?:il |la )?",
    and_=" e (?:il |la )?",
    openers=words_of(_HEADS, _LEADS.split("|"), ("il lo la gli le i l",)),
    words=words_of(
        *(("ieri avantieri oggi stamattina stamani stasera stanotte dopodomani recentemente ultimamente poco fa",),),
        *(("natale capodanno weekend notte",), IT_UNITS, IT_WEEKDAYS, IT_MONTHS, IT_SEASONS),
    ),
    dated=words_of(("in nel dal dopo prima tra fra entro fino anno anni inizio meta fine",)),
)

"""French times. "hier" also is a German word, and "été" a participle: such words count beside other French words."""

from __future__ import annotations

import re

from nacre.query.dates import meanings
from nacre.query.dates.grammar import DIGIT, Language, Surroundings, by_first_word, form, nearby
from nacre.query.dates.meanings import part
from nacre.query.dates.words import (
    FR_MONTHS,
    FR_NUMBERS,
    FR_ORDINALS,
    FR_SEASONS,
    FR_UNITS,
    FR_WEEKDAYS,
    any_of,
    words_of,
)

_OTHER_DAY_BEFORE = r"\b(?:chaque|tous les|les?|jusqu'[aà])\s+$"
_GERMAN_AROUND = (
    r"\b(?:ist|sind|war|wer|was|wie|wo|und|der|die|das|ein|eine|ich|wir|gibt|es|nicht|haben|hat|von|noch|alles|steht|"
    r"man)\b"
)
_NOT_MORNING = r"\s+(?:gras)\b"
_HELPERS = frozenset({"en", "since", "before", "after", "until", "between", "from", "to", "de", "courant"})


def _yesterday_counts(match: re.Match[str], place: Surroundings) -> bool:
    if len(match[0]) > len("hier"):  # "hier soir"
        return True
    return not nearby(_GERMAN_AROUND).search(place.before) and not nearby(_GERMAN_AROUND).search(place.after)


def _name_counts(match: re.Match[str], place: Surroundings) -> bool:
    return bool(part(match, "which") or part(match, "year") or part(match, "era") or place.helpers & _HELPERS)


def _season_counts(match: re.Match[str], place: Surroundings) -> bool:
    if part(match, "which") or part(match, "year") or part(match, "era"):
        return True
    return bool(place.helpers & {"en", "au", "since", "before", "after"})


def _holiday_counts(match: re.Match[str], place: Surroundings) -> bool:
    return bool(part(match, "year") or place.helpers & {"a", "au", "since", "before", "after"})


def _weekday_counts(match: re.Match[str], place: Surroundings) -> bool:
    """Not "le lundi", which is every Monday, nor "mardi gras"."""
    if (
        nearby(_OTHER_DAY_BEFORE).search(place.before)
        or nearby(_NOT_MORNING).match(place.after)
        or "until" in place.helpers
    ):
        return False
    return bool(part(match, "which") or not place.article)


def _year_counts(match: re.Match[str], place: Surroundings) -> bool:
    return match[0][0] in "aA" or (not place.article and bool(place.helpers & (_HELPERS - {"de", "from", "to"})))


_YEAR = "(?P<year>[0-9]{4})"
_LAST = "derniere?s?|passee?s?|prochaine?s?"
_LONG = f"(?P<long>{any_of(*FR_UNITS)})"
_AMOUNT = f"(?:(?P<digits>[0-9]{{1,9}})|(?P<word>{any_of(*FR_NUMBERS)})) {_LONG}"
_LAST_AMOUNT = f"(?:(?P<digits>[0-9]{{1,9}})|(?P<word>{any_of(*FR_NUMBERS)})) (?:derniere?s) {_LONG}"
_PART_OF_DAY = "(?: (?:matin|apres midi|soir|midi))?"
_WEEKDAY = f"(?P<weekday>{any_of(*FR_WEEKDAYS)}){_PART_OF_DAY}"
_MONTH = f"(?P<month>{any_of(*FR_MONTHS)})"
_ERA = "(?:de )?l'(?:an|annee) (?P<era>derniere?|passee?)"
_MAYBE_YEAR = f"(?: (?:de )?{_YEAR}| {_ERA})?"
_DAY_NUMBER = "(?P<day>[0-9]{1,2})(?:er)?"
_DAY = f"(?:{_WEEKDAY} )?{_DAY_NUMBER} {_MONTH}{_MAYBE_YEAR}"
_FIRST = "(?P<first>[0-9]{1,2})(?:er)?(?: ?[-–] ?| au | et (?:le )?| a )"
_QUARTER = f"(?P<quarter>{any_of(*(word for word in FR_ORDINALS if FR_ORDINALS[word] in range(1, 5)))}) trimestre"
_SEASON = f"(?P<season>{any_of(*FR_SEASONS)})"
_HOLIDAYS = "noel|saint sylvestre|nouvel an"
_PART = "(?P<part>debut|mi|milieu|fin) (?:de |d'|du )?(?:mois (?:de |d'))?"
_WHOLES = (
    (f"{_MONTH}{_MAYBE_YEAR}", meanings.month_or_quarter),
    (f"(?:la |le |l')?{_SEASON}{_MAYBE_YEAR}", meanings.season),
    (_YEAR, meanings.year_or_week),
    (f"(?:la |l'|cette |ce )?(?P<long>semaine|mois|annee|an|trimestre)(?: (?P<which>{_LAST}))?", meanings.which_unit),
)

_AMOUNTS = words_of(FR_NUMBERS) | DIGIT
_WEEKDAYS, _MONTHS = words_of(FR_WEEKDAYS), words_of(FR_MONTHS)
_SEASONS, _ORDINALS = words_of(FR_SEASONS), words_of(FR_ORDINALS)

_FORMS = (
    form(_AMOUNTS, _AMOUNT, meanings.up_to_now, lambda _, place: "since" in place.helpers, "duration"),
    form("il", f"il y a (?:environ |a peu pres )?{_AMOUNT}", meanings.ago),
    form(_AMOUNTS | {"ces", "les"}, f"(?:ces |les )?{_LAST_AMOUNT}", meanings.up_to_now),
    form("ces les derniers", "(?:ces |les )?derniers jours|ces jours(?: ci)?", meanings.back(7)),
    form("ces les dernieres", "(?:ces |les )?dernieres semaines|ces temps(?: ci)?", meanings.back(30)),
    form("ces les derniers", "(?:ces |les )?derniers mois", meanings.back(90)),
    form(
        "aujourd ce cet cette", "aujourd'hui|ce (?:matin|soir|midi)|cet(?:te)? apres midi|cette nuit", meanings.day(0)
    ),
    form("hier", f"hier{_PART_OF_DAY}", meanings.day(-1), _yesterday_counts),
    form("avant", f"avant hier{_PART_OF_DAY}", meanings.day(-2)),
    form("apres", "apres demain", meanings.day(2)),
    form("demain", "demain", meanings.day(1)),
    form("nuit", "nuit derniere", meanings.last_night),
    form("recemment dernierement", "recemment|dernierement", meanings.back(30)),
    form("autre", "autre jour", meanings.back(14), lambda _, place: bool(place.article)),
    form(
        "semaine mois annee an trimestre",
        f"(?P<long>semaine|mois|annee|an|trimestre) (?P<which>{_LAST})",
        meanings.which_unit,
    ),
    form("ce cette", "(?P<which>ce|cette) (?P<long>semaine|mois|annee|trimestre)(?: ci)?", meanings.which_unit),
    form("week weekend", f"week ?end (?P<which>{_LAST})", meanings.weekend),
    form("ce", "(?P<which>ce) week ?end", meanings.weekend),
    form(
        "week weekend",
        "week ?end",
        meanings.weekend,
        lambda _, place: place.article == "le" and place.helpers == {""},
        "floating",
    ),
    form(_WEEKDAYS, f"{_WEEKDAY}(?: (?P<which>{_LAST}))?", meanings.weekday, _weekday_counts, "floating"),
    form("ce", f"(?P<which>ce) {_WEEKDAY}", meanings.weekday),
    form(
        _MONTHS | {"mois"}, f"(?:mois de )?{_MONTH}{_MAYBE_YEAR}", meanings.month_or_quarter, _name_counts, "floating"
    ),
    form(_MONTHS | {"mois"}, f"(?:mois de )?{_MONTH} (?P<which>{_LAST})", meanings.month_or_quarter, kind="floating"),
    form(_WEEKDAYS | DIGIT, _DAY, meanings.calendar_day, kind="floating"),
    form(DIGIT, f"{_FIRST}{_DAY_NUMBER} {_MONTH}{_MAYBE_YEAR}", meanings.days_of_month, kind="range"),
    form(DIGIT | {"annee"}, f"(?:annee )?{_YEAR}", meanings.year_or_week, _year_counts),
    form("annees", "annees (?P<decade>(?:19|20)[0-9]0|[5-9]0)", meanings.decade),
    form(_ORDINALS | DIGIT, f"{_QUARTER}{_MAYBE_YEAR}", meanings.month_or_quarter, kind="floating"),
    form("t", f"t(?P<quarter>[1-4]) {_YEAR}", meanings.month_or_quarter),
    form("semaine", f"semaine du {_DAY}", meanings.week_of_day),
    form(
        _ORDINALS,
        f"(?P<nth>{any_of(*FR_ORDINALS)}) semaine (?:de |d'|du mois de ){_MONTH}{_MAYBE_YEAR}",
        meanings.week_of_month,
    ),
    form(_SEASONS, f"{_SEASON}{_MAYBE_YEAR}", meanings.season, _season_counts, "floating"),
    form(_SEASONS, f"{_SEASON} (?P<which>{_LAST})", meanings.season, kind="floating"),
    form("ce cet", f"(?P<which>cet?) {_SEASON}", meanings.season, kind="floating"),
    form("noel saint nouvel", f"(?P<holiday>{_HOLIDAYS}){_MAYBE_YEAR}", meanings.holiday, _holiday_counts, "floating"),
    *(form("debut mi milieu fin", _PART + pattern, meanings.third_of(whole)) for pattern, whole in _WHOLES),
)

_HEADS = {"depuis": "since", "apres": "after", "avant": "before", "jusqu'a": "until", "jusqu'en": "until"}
_HEADS |= {"jusqu'au": "until", "entre": "between", "de": "from", "du": "from", "des": "from"}
_LEADS = "en|au|aux|a|pendant|durant|courant|dans|vers|sur"
FRENCH = Language(
    forms=by_first_word(_FORMS),
    opening=f"(?:(?P<head>{any_of(*_HEADS)}) )?(?:(?P<lead>{_LEADS}) )?(?P<the>la |le |les |l')?",
    heads=_HEADS,
    to=r"(?: (?P<to>a|au|jusqu'en|jusqu'a|jusqu'au) | ?– ?|\s+-\s+)(?:la |le |l')?",
    and_=" et (?:la |le |l')?",
    openers=words_of(_HEADS, _LEADS.split("|"), ("la le les l",)),
    words=words_of(
        *(("hier aujourd'hui demain matin soir midi nuit recemment dernierement noel sylvestre nouvel temps",),),
        *(("weekend", "week-end"), FR_UNITS, FR_WEEKDAYS, FR_MONTHS, FR_SEASONS),
    ),
    dated=words_of(("en depuis avant apres entre debut mi fin t",)),
)

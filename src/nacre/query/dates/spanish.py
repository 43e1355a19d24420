"""Spanish times. A month or a season counts with a preposition, an adjective or a year; "mayo" may be a sauce."""

from __future__ import annotations

import re

from nacre.query.dates import meanings
from nacre.query.dates.grammar import DIGIT, Language, Surroundings, by_first_word, form
from nacre.query.dates.meanings import part
from nacre.query.dates.words import (
    ES_MONTHS,
    ES_NUMBERS,
    ES_ORDINALS,
    ES_SEASONS,
    ES_UNITS,
    ES_WEEKDAYS,
    any_of,
    words_of,
)

_HELPERS = frozenset({"en", "since", "before", "after", "until", "between", "from", "to", "durante", "hacia"})


def _name_counts(match: re.Match[str], place: Surroundings) -> bool:
    named = part(match, "which") or part(match, "year") or part(match, "era")
    return bool(named or place.helpers & _HELPERS)


def _weekday_counts(match: re.Match[str], place: Surroundings) -> bool:
    """With "el" or "pasado": "los lunes" and "cada lunes" are every Monday. "Hasta el viernes" is to come."""
    return "until" not in place.helpers and bool(
        part(match, "which") or place.article == "el" or "from" in place.helpers
    )


def _year_counts(match: re.Match[str], place: Surroundings) -> bool:
    return match[0][0] in "aA" or bool(place.helpers & (_HELPERS - {"from", "to"}))


def _days_count(match: re.Match[str], place: Surroundings) -> bool:
    return " y " not in match[0].lower() or "between" in place.helpers


_YEAR = "(?P<year>[0-9]{4})"
_LAST = "pasad[oa]s?|antepasad[oa]|ultim[oa]s?|proxim[oa]s?"
_LONG = f"(?P<long>{any_of(*ES_UNITS)})"
_SEVERAL = "un par de|un[oa]s(?: poc[oa]s)?|algun[oa]s"
_NUMBER = f"(?:(?P<digits>[0-9]{{1,9}})|(?P<word>{_SEVERAL}|{any_of(*(set(ES_NUMBERS) - {'par'}))}))"
_AMOUNT = f"{_NUMBER} {_LONG}"
_PART_OF_DAY = "(?: por la (?:manana|tarde|noche))?"
_WEEKDAY = f"(?P<weekday>{any_of(*ES_WEEKDAYS)})"
_MONTH = f"(?P<month>{any_of(*ES_MONTHS)})"
_ERA = "del ano (?P<era>pasado)"
_MAYBE_YEAR = f"(?: (?:del? )?{_YEAR}| {_ERA})?"
_DAY = f"(?:{_WEEKDAY},? )?(?P<day>[0-9]{{1,2}}) de {_MONTH}{_MAYBE_YEAR}"
_FIRST = "(?P<first>[0-9]{1,2})(?: ?[-–] ?| al? | y (?:el )?)"
_QUARTER = f"(?P<quarter>{any_of(*(word for word in ES_ORDINALS if ES_ORDINALS[word] in range(1, 5)))}) trimestre"
_SEASON = f"(?P<season>{any_of(*ES_SEASONS)})"
_HOLIDAY = "(?P<holiday>navidad(?:es)?|nochebuena|nochevieja|ano nuevo)"
_PART = "(?P<part>principios?|comienzos|inicios|mediados|finales|final|fin) del? (?:la |este |esta )?(?:mes de )?"
_WHOLES = (
    (f"{_MONTH}{_MAYBE_YEAR}", meanings.month_or_quarter),
    (f"{_SEASON}{_MAYBE_YEAR}", meanings.season),
    (_YEAR, meanings.year_or_week),
    (f"(?P<long>semana|mes|ano|trimestre)(?: (?P<which>{_LAST}))?", meanings.which_unit),
)

_WEEKDAYS, _MONTHS = words_of(ES_WEEKDAYS), words_of(ES_MONTHS)
_SEASONS, _ORDINALS = words_of(ES_SEASONS), words_of(ES_ORDINALS)

_FORMS = (
    form("hace", f"hace (?:unos |unas |casi )?{_AMOUNT}", meanings.ago),
    form("ultimos ultimas pasados pasadas", f"(?:ultim|pasad)[oa]s {_AMOUNT}", meanings.up_to_now),
    form("ultimos pasados estos", "(?:ultimos|pasados) dias|estos dias", meanings.back(7)),
    form("ultimas pasadas", "(?:ultimas|pasadas) semanas", meanings.back(30)),
    form("ultimos pasados", "(?:ultimos|pasados) meses", meanings.back(90)),
    form("hoy esta", "hoy|esta (?:manana|tarde|noche)", meanings.day(0)),
    form("ayer", f"ayer{_PART_OF_DAY}", meanings.day(-1)),
    form("anteayer antier antes", "anteayer|antier|antes de ayer", meanings.day(-2)),
    form("pasado", "pasado manana", meanings.day(2)),
    form("anoche", "anoche", meanings.last_night),
    form("recientemente ultimamente hace", "recientemente|ultimamente|hace poco", meanings.back(30)),
    form("otro", "otro dia", meanings.back(14), lambda _, place: bool(place.article or "from" in place.helpers)),
    form("semana mes ano trimestre", f"(?P<long>semana|mes|ano|trimestre) (?P<which>{_LAST})", meanings.which_unit),
    form(
        "este esta ultimo ultima pasado pasada proximo proxima",
        "(?P<which>est[ea]|ultim[oa]|pasad[oa]|proxim[oa]) (?P<long>semana|mes|ano|trimestre)",
        meanings.which_unit,
    ),
    form("fin", f"fin de semana (?P<which>{_LAST})", meanings.weekend),
    form("este pasado ultimo proximo", "(?P<which>este|pasado|ultimo|proximo) fin de semana", meanings.weekend),
    form("fin", "fin de semana", meanings.weekend, lambda _, place: bool(place.article), "floating"),
    form(_WEEKDAYS, f"{_WEEKDAY}(?: (?P<which>{_LAST}))?{_PART_OF_DAY}", meanings.weekday, _weekday_counts, "floating"),
    form(
        "este pasado proximo",
        f"(?P<which>este|pasado|proximo) {_WEEKDAY}{_PART_OF_DAY}",
        meanings.weekday,
        kind="floating",
    ),
    form(_MONTHS | {"mes"}, f"(?:mes de )?{_MONTH}{_MAYBE_YEAR}", meanings.month_or_quarter, _name_counts, "floating"),
    form(_MONTHS | {"mes"}, f"(?:mes de )?{_MONTH} (?P<which>{_LAST})", meanings.month_or_quarter, kind="floating"),
    form("este pasado proximo", f"(?P<which>este|pasado|proximo) {_MONTH}", meanings.month_or_quarter, kind="floating"),
    form(_WEEKDAYS | DIGIT, _DAY, meanings.calendar_day, kind="floating"),
    form(
        DIGIT, f"{_FIRST}(?P<day>[0-9]{{1,2}}) de {_MONTH}{_MAYBE_YEAR}", meanings.days_of_month, _days_count, "range"
    ),
    form(DIGIT | {"ano"}, f"(?:ano )?{_YEAR}", meanings.year_or_week, _year_counts),
    form("anos", "anos (?P<decade>(?:19|20)[0-9]0|[5-9]0)", meanings.decade),
    form(_ORDINALS, f"{_QUARTER}{_MAYBE_YEAR}", meanings.month_or_quarter, kind="floating"),
    form("t", f"t(?P<quarter>[1-4]) (?:de )?{_YEAR}", meanings.month_or_quarter),
    form("semana", f"semana del {_DAY}", meanings.week_of_day),
    form(_ORDINALS, f"(?P<nth>{any_of(*ES_ORDINALS)}) semana de {_MONTH}{_MAYBE_YEAR}", meanings.week_of_month),
    form(_SEASONS, f"{_SEASON}{_MAYBE_YEAR}", meanings.season, _name_counts, "floating"),
    form(_SEASONS, f"{_SEASON} (?P<which>{_LAST})", meanings.season, kind="floating"),
    form("este esta pasado pasada", f"(?P<which>est[ea]|pasad[oa]) {_SEASON}", meanings.season, kind="floating"),
    form(
        "navidad navidades nochebuena nochevieja ano",
        f"{_HOLIDAY}{_MAYBE_YEAR}",
        meanings.holiday,
        _name_counts,
        "floating",
    ),
    *(
        form(
            "principio principios comienzos inicios mediados finales final fin",
            _PART + pattern,
            meanings.third_of(whole),
        )
        for pattern, whole in _WHOLES
    ),
)

_HEADS = {"desde": "since", "despues de": "after", "despues del": "after", "tras": "after", "antes de": "before"}
_HEADS |= {"antes del": "before", "hasta": "until", "entre": "between", "de": "from", "del": "from"}
_LEADS = "en|a|durante|hacia|por|para"
SPANISH = Language(
    forms=by_first_word(_FORMS),
    opening=f"(?:(?P<head>{any_of(*_HEADS)}) )?(?:(?P<lead>{_LEADS}) )?(?P<the>el |la |los |las )?",
    heads=_HEADS,
    to=r"(?: (?P<to>al?|hasta) | ?– ?|\s+-\s+)(?:el |la )?",
    and_=" y (?:el |la )?",
    openers=words_of(_HEADS, _LEADS.split("|"), ("el la los las",)),
    words=words_of(
        *(("ayer anteayer antier hoy anoche manana tarde noche recientemente ultimamente poco",),),
        *(("navidad navidades nochebuena nochevieja",), ES_UNITS, ES_WEEKDAYS, ES_MONTHS, ES_SEASONS),
    ),
    dated=words_of(
        ("en desde antes despues entre hasta t principio principios comienzos inicios mediados finales final fin",)
    ),
)

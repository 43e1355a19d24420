"""Does a question with a time ask about the past?

"On Friday" and "this week" may lie ahead: "who is away on Friday?" asks for what memories say of that day, not for
what was written on the last one. Only a verb in the past tells. Other periods, such as "last week" or "in June 2025",
need no verb.
"""

from __future__ import annotations

import re
from functools import cache

from nacre.query.dates.past_tense import PAST_TENSE
from nacre.query.dates.words import MONTHS, SEASONS, WEEKDAYS, fold_accents
from nacre.query.requests import is_request
from nacre.types.times import TimeQuestion

_MAY_LIE_AHEAD = (
    r"\W*(?:(?:on|the|this|by|until|for|at|am|den|der|diese[nrs]?|bis|le|la|ce|cette|el|los|las|est[ae]|n?est[ae]|quest[ao]|n[oa]|il|la|o|a|to|and|or|from)\W+)*"
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|mon|tue|wed|thu|fri|sat|sun|"
    r"montags?|dienstags?|mittwochs?|donnerstags?|freitags?|samstags?|sonntags?|"
    r"lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|segunda|terça|quarta|quinta|sexta|feira|sábado|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica|lunes|martes|miércoles|jueves|viernes|sábado|domingo|"
    r"this|today|tonight|heute|aujourd'hui|hoy|hoje|oggi|сегодня|завтра|tomorrow|morgen|demain|mañana|weekend|week|month|year|woche|wochenende|"
    r"понедельника?|вторника?|сред[уы]|четверга?|пятниц[уы]|суббот[уы]|воскресень[ея]|выходны[ех]|недел[еюи]|месяце?|году|"
    r"в|на|до|по|с|эт(?:от|у|ой|ом|и)|to|and|through|bis|und|monat|jahr|semaine|mois|année|semana|mes|año|mês|ano|settimana|mese|anno|今天|今日|明天|明日|本周|这周|今週|\W)+"
)
_IS_OVER = (
    r"\b(?:last|past|previous|yesterday|ago|recent(?:ly)?|letzte[nrsm]?|vorige[nrsm]?|vergangene[nrsm]?|gestern|vor|hier|"
    r"вчера|позавчера|назад|прошл\w+|последни\w+|ontem|ieri|atrás|fa|h[áa]|passad[oa]s?|scors[oaie]|"
    r"derni[eè]re?s?|passée?s?|il y a|ayer|pasad[oa]s?|hace|últim[oa]s?|[0-9]{4})\b|昨|上[个周月]|去年|先|前"
)
_VAGUE = (
    r"recent|lately|the other day|these days|a while|kürzlich|neulich|in letzter zeit|récemment|dernièrement|"
    r"recientemente|últimamente|hace poco|recentemente|ultimamente|há pouco|poco fa|недавно|最近|近来|この頃"
)


_NAMES = frozenset({*MONTHS, *WEEKDAYS, *SEASONS})
_WORD_OR_DIGITS = re.compile(r"[0-9]+|[^\W\d_]+")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled on first use: most questions name no time."""
    return re.compile(pattern, re.I)


def words_to_search(text: str, time: TimeQuestion) -> str:
    """The question without times that move with the clock, such as "last week".

    Texts that tell of the same time say "yesterday" or nothing. But they do say "June", "Friday" or "2023".
    """
    kept = list(text)
    for start, end in (each.span for each in time.mentions):
        named = _WORD_OR_DIGITS.findall(fold_accents(text[start:end]).lower())
        if not any(each.isdigit() or each in _NAMES for each in named) and text[start:end].isascii():
            kept[start:end] = " " * (end - start)
    return "".join(kept)


def is_vague(text: str, time: TimeQuestion) -> bool:
    """Whether its periods have no border, like "recently"."""
    named = (text[each.span.start : each.span.end] for each in time.mentions)
    return all(_compiled(_VAGUE).search(each) for each in named)


def asks_about_past(text: str, time: TimeQuestion) -> bool:
    """Whether the periods of a question are those of what happened."""
    if time.order or time.anchor or time.asks_past or not time.mentions:
        return True
    named = [text[each.span.start : each.span.end] for each in time.mentions]
    if is_request(text):  # "plan the trip in May" looks ahead, "summarise last week" does not
        return any(map(_compiled(_IS_OVER).search, named))
    if not all(_compiled(_MAY_LIE_AHEAD).fullmatch(each) for each in named):
        return True
    return _compiled(PAST_TENSE).search(fold_accents(text)) is not None

"""Chinese and Japanese times. They share most characters, so one set of forms reads both; spaces are optional."""

from __future__ import annotations

import re
from functools import cache

from nacre.query.dates import meanings
from nacre.query.dates.grammar import Language, Surroundings, form, nearby
from nacre.query.dates.words import CJK_UNITS, any_of

_RECURRING_BEFORE = r"[每毎](?:个|周|週|星期|年|月|の)*$"

_NUMERAL = "[一二两兩三四五六七八九十几幾数數]{1,3}"
_COUNT = f"(?P<digits>[0-9]{{1,3}}|{_NUMERAL})"
_UNIT = f"(?P<long>{any_of(*CJK_UNITS)})"
_YEAR = r"(?P<year>[0-9]{4})\s*年"
_ERA = "(?P<era>去年|昨年|一昨年|前年|今年|明年|来年)"
_ANY_YEAR = rf"(?:(?:{_YEAR}|{_ERA})(?:の)?\s*)?"
_MONTH = r"(?P<month>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])\s*月份?"
_DAY = r"の?\s*(?P<day>[0-9]{1,2}|[一二三]?十[一二三四五六七八九]?|[一二三四五六七八九])\s*[日号號]"
_WEEK = "(?:周|週|星期|礼拜)"
_ZH_WEEKDAY, _JA_WEEKDAY = "(?P<weekday>[一二三四五六日天])", "(?P<weekday>[月火水木金土日])曜日?"
_PART = "(?P<part>初|头|中旬|底|末|上旬|下旬|半ば)"


def _once(_: re.Match[str], place: Surroundings) -> bool:
    return not nearby(_RECURRING_BEFORE).search(place.before)


def _season_counts(match: re.Match[str], place: Surroundings) -> bool:
    return bool(match["year"] or match["era"]) or not place.after.startswith(("节", "節", "休み"))


_NAMED_DAYS = (
    ("今天|今日|きょう|今朝|今晚|今夜|今晩|今早", 0),
    ("昨天|昨日|きのう|昨晚|昨夜|昨晩|ゆうべ", -1),
    ("前天|一昨日|おととい", -2),
    ("明天|明日", 1),
    ("后天|後天|明後日|あさって", 2),
)
_NAMED_UNITS = (
    ("上上个?(?:周|週|星期|礼拜)|先々週", "week", -2),
    ("上个?(?:周|週|星期|礼拜)|先週", "week", -1),
    ("(?:这|這|本|今)(?:个|個)?(?:周|週|星期|礼拜)|今週", "week", 0),
    ("下个?(?:周|週|星期|礼拜)|来週", "week", 1),
    ("上上(?:个|個)月|先々月", "month", -2),
    ("上(?:个|個)?月|先月", "month", -1),
    ("(?:这|這)(?:个|個)?月|本月|今月", "month", 0),
    ("下(?:个|個)?月|来月", "month", 1),
    ("上(?:个|個)?季度|前四半期", "quarter", -1),
    ("(?:这|這|本)(?:个|個)?季度|今四半期", "quarter", 0),
    ("前年|一昨年|おととし", "year", -2),
    ("去年|昨年", "year", -1),
    ("今年", "year", 0),
    ("明年|来年", "year", 1),
)

_FORMS = (
    form("", rf"{_COUNT}\s*{_UNIT}(?:之?前|以前)", meanings.ago),
    form("", rf"(?:最近|过去|過去|近)(?:的|の|这|這)?\s*{_COUNT}\s*{_UNIT}", meanings.up_to_now),
    form("", rf"(?:ここ|この){_COUNT}\s*{_UNIT}", meanings.up_to_now),
    form("", "最近|近来|近來|这几天|這幾天|这阵子|このところ", meanings.back(30)),
    form("", "前几天|前幾天|前些天|先日|この間|この前", meanings.back(14)),
    *(form("", pattern, meanings.day(offset)) for pattern, offset in _NAMED_DAYS),
    *(form("", pattern, meanings.unit(name, offset)) for pattern, name, offset in _NAMED_UNITS),
    form("", f"(?P<week>上|这|這|本|下)[个個]?{_WEEK}{_ZH_WEEKDAY}", meanings.weekday_of_week),
    form("", f"(?P<week>先|今|来)週の?{_JA_WEEKDAY}", meanings.weekday_of_week),
    form("", f"{_WEEK}{_ZH_WEEKDAY}", meanings.weekday, _once, "floating"),
    form("", _JA_WEEKDAY, meanings.weekday, _once, "floating"),
    form("", "(?:周末|週末)", meanings.weekend, _once, "floating"),
    form("", "上个?(?:周末|週末)|先週末", meanings.last_weekend),
    form("", f"{_ANY_YEAR}{_MONTH}", meanings.month_or_quarter, _once, "floating"),
    form("", f"{_ANY_YEAR}{_MONTH}の?{_PART}", meanings.third_of(meanings.month_or_quarter), kind="floating"),
    form("", f"{_ANY_YEAR}{_MONTH}{_DAY}", meanings.calendar_day, _once, "floating"),
    form("", _YEAR, meanings.year_or_week),
    form("", rf"(?P<year>[0-9]{{4}})\s*年の?{_PART}", meanings.third_of(meanings.year_or_week)),
    form("", f"{_ERA}の?{_PART}", meanings.third_of(meanings.era)),
    form("", "(?P<part>年初|年底|年末)", meanings.third_of(meanings.unit("year", 0))),
    form("", f"{_ANY_YEAR}第?(?P<quarter>[1-4一二三四])(?:季度|四半期)", meanings.month_or_quarter, kind="floating"),
    form("", f"{_ANY_YEAR}(?P<season>[春夏秋冬])(?:天|季)", meanings.season, _season_counts, "floating"),
    form("", f"(?:{_YEAR}|{_ERA})の?(?P<season>[春夏秋冬])", meanings.season, kind="floating"),
    form(
        "",
        f"{_ANY_YEAR}(?P<holiday>圣诞节?|聖誕節|クリスマス|元旦|元日|お?正月|大晦日)",
        meanings.holiday,
        kind="floating",
    ),
    form("", "(?P<decade>(?:19|20)[0-9]0|[5-9]0)年代", meanings.decade),
)

_HEADS = {"自从": "since", "自從": "since", "自": "since", "从": "from", "從": "from", "在": "", "于": ""}
_TAILS = {"以来": "since", "以來": "since", "以降": "since", "から": "since", "之前": "before", "以前": "before"}
_TAILS |= {"より前": "before", "までに": "by", "まで": "until", "之后": "after", "之後": "after", "以后": "after"}
_TAILS |= {"以後": "after", "より後": "after", "之间": "", "之間": "", "の間": "", "间": "", "间的": ""}
EAST_ASIAN = Language(
    forms={"": _FORMS},
    opening=rf"(?:(?P<head>{any_of(*_HEADS)})\s*)?(?P<lead>)(?P<the>)",
    heads=_HEADS | _TAILS,
    to=r"\s*(?:(?P<to>到|至|から)|〜|~|–|(?P<and>和|与|與|と))\s*",
    and_="(?!)",
    words=frozenset(),
    tail=rf"\s*(?P<tail>{any_of(*_TAILS)})",
    spaced=False,
)
# The first characters of all forms and heads.
_STARTS = (
    r"(?<![0-9A-Za-z０-９.])[0-9０-９]|[一二两兩三四五六七八九十几幾数數最过過近こ这這前先今き昨ゆお明后後あ上本下来去周週星礼月火水木金土日"
    r"自从從在于春夏秋冬圣聖ク元正大年第]"
)


@cache
def starts() -> re.Pattern[str]:
    """Where a time may begin. Compiled on first use: large character classes take milliseconds."""
    return re.compile(_STARTS)


@cache
def _script() -> re.Pattern[str]:
    return re.compile("[\u3040-\u30ff\u4e00-\u9fff]")


def is_eastern(text: str) -> bool:
    """Whether a text has Chinese or Japanese characters."""
    return not text.isascii() and _script().search(text) is not None

"""Words of all languages with what they count, in lower case and without accents.

A pattern of a language matches that language's words only, so one table can have the words of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_FOLDED = str.maketrans(
    "áàâäãéèêëíìîïóòôöõúùûüñçÁÀÂÄÃÉÈÊËÍÌÎÏÓÒÔÖÕÚÙÛÜÑÇ’", "aaaaaeeeeiiiiooooouuuuncAAAAAEEEEIIIIOOOOOUUUUNC'"
)
_WIDE = str.maketrans("０１２３４５６７８９～", "0123456789〜")


def fold_accents(text: str) -> str:
    """The text without the accents of Western European languages. Every character keeps its place."""
    return text if text.isascii() else text.translate(_FOLDED)


# Patterns are of ASCII letters, so Russian is read in letters of one to one. Two that no words differ by may share one.
_LATIN = "abvgdeejziyklmnoprstufxchwq'yqeua"
_CYRILLIC = str.maketrans("абвгдеёжзийклмнопрстуфхцчшщъыьэюя" + "АБВГДЕЁЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ", 2 * _LATIN)


def in_latin_letters(text: str) -> str:
    """The text with other letters for Russian ones. Every character keeps its place."""
    return text.translate(_CYRILLIC)


def fold_widths(text: str) -> str:
    """The text with ASCII digits. Every character keeps its place."""
    return text.translate(_WIDE)


def any_of(*words: str) -> str:
    """A pattern of alternatives, longest first, so that no word hides a longer one."""
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


def numbered(*lists: str) -> dict[str, int]:
    """Words by their place in each list, from 1. Words joined by a slash share a place."""
    return {word: place for each in lists for place, words in enumerate(each.split(), 1) for word in words.split("/")}


def _named(**lists: str) -> dict[str, str]:
    return {word: name for name, words in lists.items() for word in words.split()}


EN_UNITS = _named(
    second="second seconds",
    minute="minute minutes",
    hour="hour hours",
    day="day days",
    week="week weeks",
    month="month months",
    quarter="quarter quarters",
    year="year years",
)
EN_SHORT_UNITS = _named(
    second="s sec", minute="m min mins", hour="h hr hrs", day="d", week="w", month="mo", year="y yr yrs"
)
DE_UNITS = _named(
    second="sekunde sekunden",
    minute="minute minuten",
    hour="stunde stunden",
    day="tag tage tagen tages",
    week="woche wochen",
    month="monat monate monaten monats",
    quarter="quartal quartale quartalen quartals",
    year="jahr jahre jahren jahres",
)
FR_UNITS = _named(
    second="seconde secondes",
    minute="minute minutes",
    hour="heure heures",
    day="jour jours",
    week="semaine semaines",
    month="mois",
    quarter="trimestre trimestres",
    year="an ans annee annees",
)
ES_UNITS = _named(
    second="segundo segundos",
    minute="minuto minutos",
    hour="hora horas",
    day="dia dias",
    week="semana semanas",
    month="mes meses",
    quarter="trimestre trimestres",
    year="ano anos",
)
PT_UNITS = _named(
    second="segundo segundos",
    minute="minuto minutos",
    hour="hora horas",
    day="dia dias",
    week="semana semanas",
    month="mes meses",
    quarter="trimestre trimestres",
    year="ano anos",
)
IT_UNITS = _named(
    second="secondo secondi",
    minute="minuto minuti",
    hour="ora ore",
    day="giorno giorni",
    week="settimana settimane",
    month="mese mesi",
    quarter="trimestre trimestri",
    year="anno anni",
)
RU_UNITS = _named(
    second=in_latin_letters("секунда секунды секунд секунду"),
    minute=in_latin_letters("минута минуты минут минуту"),
    hour=in_latin_letters("час часа часов"),
    day=in_latin_letters("день дня дней дни"),
    week=in_latin_letters("неделя недели недель неделю неделе"),
    month=in_latin_letters("месяц месяца месяцев месяцы месяце"),
    quarter=in_latin_letters("квартал квартала кварталов квартале"),
    year=in_latin_letters("год года лет году годы"),
)
CJK_UNITS = _named(
    minute="分钟 分鐘 分",
    hour="小时 小時 个小时 個小時 時間",
    day="天 日 日間",
    week="周 週 星期 个星期 個星期 礼拜 个礼拜 週間",
    month="个月 個月 か月 ヶ月 カ月 ヵ月",
    quarter="个季度 個季度 四半期",
    year="年 年間",
)
UNITS: Mapping[str, str] = (
    EN_UNITS | EN_SHORT_UNITS | DE_UNITS | FR_UNITS | ES_UNITS | PT_UNITS | IT_UNITS | RU_UNITS | CJK_UNITS
)

EN_MONTHS = numbered("january february march april may june july august september october november december")
EN_SHORT_MONTHS = {name[:3]: number for name, number in EN_MONTHS.items()} | {"sept": 9}
DE_MONTHS = numbered("januar/janner februar marz/maerz april mai juni juli august september oktober november dezember")
FR_MONTHS = numbered("janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre")
ES_MONTHS = numbered(
    "enero febrero marzo abril mayo junio julio agosto septiembre/setiembre octubre noviembre diciembre"
)
PT_MONTHS = numbered("janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro")
IT_MONTHS = numbered("gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre")
RU_MONTHS = numbered(
    in_latin_letters(
        "январь/января/январе/январем февраль/февраля/феврале/февралем март/марта/марте/мартом "
        "апрель/апреля/апреле/апрелем май/мая/мае/маем июнь/июня/июне/июнем июль/июля/июле/июлем "
        "август/августа/августе/августом сентябрь/сентября/сентябре/сентябрем октябрь/октября/октябре/октябрем "
        "ноябрь/ноября/ноябре/ноябрем декабрь/декабря/декабре/декабрем"
    )
)
MONTHS: Mapping[str, int] = (
    EN_MONTHS | EN_SHORT_MONTHS | DE_MONTHS | FR_MONTHS | ES_MONTHS | PT_MONTHS | IT_MONTHS | RU_MONTHS
)

EN_WEEKDAYS = numbered("monday tuesday wednesday thursday friday saturday sunday")
EN_SHORT_WEEKDAYS = numbered("mon tue/tues wed thu/thur/thurs fri sat sun")
DE_WEEKDAYS = numbered("montag dienstag mittwoch donnerstag freitag samstag/sonnabend sonntag")
FR_WEEKDAYS = numbered("lundi mardi mercredi jeudi vendredi samedi dimanche")
ES_WEEKDAYS = numbered("lunes martes miercoles jueves viernes sabado domingo")
PT_WEEKDAYS = numbered("segunda terca quarta quinta sexta sabado domingo")
IT_WEEKDAYS = numbered("lunedi martedi mercoledi giovedi venerdi sabato domenica")
RU_WEEKDAYS = numbered(
    in_latin_letters(
        "понедельник/понедельника вторник/вторника среда/среду/среды четверг/четверга пятница/пятницу/пятницы "
        "суббота/субботу/субботы воскресенье/воскресенья"
    )
)
CJK_WEEKDAYS = numbered("一/月 二/火 三/水 四/木 五/金 六/土 日/天")
WEEKDAYS: Mapping[str, int] = (
    EN_WEEKDAYS
    | EN_SHORT_WEEKDAYS
    | DE_WEEKDAYS
    | FR_WEEKDAYS
    | ES_WEEKDAYS
    | CJK_WEEKDAYS
    | PT_WEEKDAYS
    | IT_WEEKDAYS
    | RU_WEEKDAYS
)

EN_NUMBERS = numbered("one/a/an two/couple three/few/several four five six seven eight nine ten eleven twelve")
DE_NUMBERS = numbered(
    "ein/eine/einen/einem/einer/eins zwei drei/paar/einige/einigen/wenige/wenigen vier funf/fuenf sechs sieben acht "
    "neun zehn elf zwolf/zwoelf"
)
FR_NUMBERS = numbered("un/une deux trois/quelques quatre cinq six sept huit neuf dix onze douze")
ES_NUMBERS = numbered(
    "un/una/uno dos/par tres/unos/unas/algunos/algunas/pocos/pocas cuatro cinco seis siete ocho nueve diez once doce"
)
PT_NUMBERS = numbered(
    "um/uma dois/duas tres/uns/umas/alguns/algumas/poucos/poucas quatro cinco seis sete oito nove dez onze doze"
)
IT_NUMBERS = numbered(
    "un/una/uno due/paio tre/alcuni/alcune/qualche/pochi/poche quattro cinque sei sette otto nove dieci undici dodici"
)
RU_NUMBERS = numbered(
    in_latin_letters(
        "один/одна/одну два/две/пару три/несколько четыре пять шесть семь восемь девять десять одиннадцать двенадцать"
    )
)
NUMBERS: Mapping[str, int] = EN_NUMBERS | DE_NUMBERS | FR_NUMBERS | ES_NUMBERS | PT_NUMBERS | IT_NUMBERS | RU_NUMBERS

EN_ORDINALS = numbered("first/1st second/2nd third/3rd fourth/4th fifth/5th") | {"last": -1}
DE_ORDINALS = numbered(
    *(f"erste{end} zweite{end} dritte{end} vierte{end} funfte{end}/fuenfte{end}" for end in ("", "n", "r", "s"))
)
DE_ORDINALS |= {f"letzte{end}": -1 for end in ("", "n", "r", "s")}
FR_ORDINALS = numbered("premier/1er deuxieme/2e/2eme troisieme/3e/3eme quatrieme/4e/4eme cinquieme", "premiere")
FR_ORDINALS |= {"derniere": -1, "dernier": -1}
ES_ORDINALS = numbered("primer segundo tercer cuarto quinto", "primera segunda tercera cuarta quinta")
ES_ORDINALS |= {"ultima": -1, "ultimo": -1}
PT_ORDINALS = numbered("primeiro segundo terceiro quarto quinto", "primeira segunda terceira quarta quinta")
PT_ORDINALS |= {"ultima": -1, "ultimo": -1}
IT_ORDINALS = numbered("primo secondo terzo quarto quinto", "prima seconda terza quarta quinta")
IT_ORDINALS |= {"ultima": -1, "ultimo": -1}
RU_ORDINALS = numbered(
    in_latin_letters(
        "первый/первого/первом второй/второго/втором третий/третьего/третьем четвертый/четвертого/четвертом"
    )
)
ORDINALS: Mapping[str, int] = (
    EN_ORDINALS | DE_ORDINALS | FR_ORDINALS | ES_ORDINALS | PT_ORDINALS | IT_ORDINALS | RU_ORDINALS
)

_CJK_DIGITS = {digit: value for value, digit in enumerate("一二三四五六七八九", 1)} | dict.fromkeys("两兩", 2)
_CJK_DIGITS |= dict.fromkeys("几幾数數", 3)  # "a few"


def number(text: str) -> int:
    """The number that digits or Chinese numerals below a hundred write. ValueError if they write none."""
    if text.isascii():
        return int(text)
    tens, ten, ones = text.rpartition("十")
    if len(tens) > 1 or len(ones) > 1:
        raise ValueError("not one number")
    return (_CJK_DIGITS.get(tens, 1) * 10 if ten else 0) + (_CJK_DIGITS[ones] if ones else 0)


# Beginnings of words that count from the current unit. The first that fits counts.
_WHICH = (
    *(("vorletzt", -2), ("antepasad", -2)),
    *((stem, -1) for stem in ("last", "past", "previous", "letzt", "vorig", "vergang", "dernier", "passe")),
    *((stem, -1) for stem in ("pasad", "ultim", "passad", "passat", "scors")),
    *((stem, 0) for stem in ("this", "these", "the", "dies", "est", "ce", "nest", "dest", "quest")),
    *((stem, 1) for stem in ("next", "nachst", "naechst", "kommend", "prochain", "proxim", "prossim")),
    *((in_latin_letters("прошл"), -1), (in_latin_letters("последн"), -1), (in_latin_letters("следующ"), 1)),
    *((in_latin_letters(word), 0) for word in ("этот", "эта", "эту", "этой", "этом", "этого", "это")),
    *(("前年", -2), ("一昨年", -2), ("去年", -1), ("昨年", -1), ("今年", 0), ("明年", 1), ("来年", 1)),
    *(("上", -1), ("先", -1), ("这", 0), ("這", 0), ("本", 0), ("今", 0), ("下", 1), ("来", 1)),
)


def which(word: str) -> int | None:
    """-1 for "last", 0 for "this", 1 for "next"; None for an empty word."""
    return next((offset for stem, offset in _WHICH if word.startswith(stem)), None) if word else None


# 0: the first third, 1: the second, 2: the last.
_PARTS = _named(
    early="early beginning start anfang beginn debut principios principio comienzos inicios inicio comeco inizio "
    "初 头 上旬 年初 " + in_latin_letters("начало начале начала"),
    mid="mid middle mitte mi milieu mediados meados meta 中 中旬 半ば "
    + in_latin_letters("середина середине середины"),
    late="late end ende fin finales final fim fine 底 末 下旬 年底 年末 " + in_latin_letters("конец конце конца"),
)
PARTS: Mapping[str, int] = {word: ("early", "mid", "late").index(name) for word, name in _PARTS.items()}

EN_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
DE_SEASONS = {"fruhling": 3, "fruehling": 3, "fruhjahr": 3, "fruehjahr": 3, "sommer": 6, "herbst": 9, "winter": 12}
FR_SEASONS = {"printemps": 3, "ete": 6, "automne": 9, "hiver": 12}
ES_SEASONS = {"primavera": 3, "verano": 6, "otono": 9, "invierno": 12}
PT_SEASONS = {"primavera": 3, "verao": 6, "outono": 9, "inverno": 12}
IT_SEASONS = {"primavera": 3, "estate": 6, "autunno": 9, "inverno": 12}
RU_SEASONS = {
    in_latin_letters(word): month
    for month, words in {
        3: "весна весну весной весны",
        6: "лето летом лета",
        9: "осень осенью осени",
        12: "зима зиму зимой зимы",
    }.items()
    for word in words.split()
}
CJK_SEASONS = {"春": 3, "夏": 6, "秋": 9, "冬": 12}
SEASONS: Mapping[str, int] = (
    EN_SEASONS | DE_SEASONS | FR_SEASONS | ES_SEASONS | PT_SEASONS | IT_SEASONS | RU_SEASONS | CJK_SEASONS
)  # the first month


def _holidays(day: tuple[int, int, int], names: str) -> dict[str, tuple[int, int, int]]:
    return dict.fromkeys(names.split("/"), day)


# Month, day, number of days.
HOLIDAYS: Mapping[str, tuple[int, int, int]] = {
    **_holidays((12, 24, 3), "christmas/weihnachten/noel/navidad/navidades/natal/natale"),
    **_holidays((12, 24, 1), "christmas eve/heiligabend/nochebuena"),
    **_holidays((12, 25, 1), "christmas day"),
    **_holidays((12, 31, 1), "new year's eve/new years eve/silvester/saint sylvestre/nochevieja"),
    **_holidays(
        (1, 1, 1), "new year's day/new years day/new year's/new year/neujahr/nouvel an/ano nuevo/ano novo/capodanno"
    ),
    **_holidays((10, 31, 1), "halloween"),
    **_holidays((2, 14, 1), "valentine's day/valentines day/valentine's/valentines"),
    **_holidays((12, 24, 3), "圣诞节/圣诞/聖誕節/クリスマス"),
    **_holidays((12, 31, 1), "大晦日"),
    **_holidays((1, 1, 1), "元旦/元日"),
    **_holidays((1, 1, 3), "正月"),
}


def words_of(*groups: Iterable[str]) -> frozenset[str]:
    """The single words of all groups, for the test whether a text may have any."""
    return frozenset(word for group in groups for phrase in group for word in phrase.replace("'", " ").split())

"""What a question says about time: periods, order ("the first time"), events ("after the migration"), former states.

Every part is found by patterns of English, German, French, Spanish, Chinese and Japanese, and tuned for precision:
"first name", "last resort" and "look after the dog" are not about time. Most questions have none of the words that the
patterns need, which a set of words tells at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from functools import cache

from nacre.analysis import stopwords
from nacre.query import dates
from nacre.query.dates.east_asian import is_eastern
from nacre.query.dates.past_tense import PAST_TENSE
from nacre.query.dates.words import fold_accents
from nacre.types.memory import Span
from nacre.types.times import Anchor, Order, Relation, TimeQuestion

READ_CHARS_MAX = 400  # of a longer text, only the beginning is searched for cues other than periods


def understand(text: str, now: datetime, zone: tzinfo | None = None) -> TimeQuestion | None:
    """What a question says about time; None if nothing."""
    folded = fold_accents(text[:READ_CHARS_MAX])
    words = frozenset(_WORD.findall(folded.lower()))
    eastern = is_eastern(text)
    mentions = tuple(dates.find_mentions(text, now, zone)) if dates.may_mention_period(text) else ()
    if not mentions and not eastern and words.isdisjoint(_CUE_WORDS):
        return None
    taken = [each.span for each in mentions]
    order, ordered = _order(folded, words, taken, eastern)
    anchor, relation = _anchor(folded, words, taken, eastern)
    asks_when = _asks(folded, words, eastern, _WHEN_WORDS, _WHEN, _WHEN_EAST)
    asks_past = _asks(folded, words, eastern, _PAST_WORDS, _PAST, _PAST_EAST)
    asks_past = asks_past or (anchor is not None and anchor.relation == "before")
    if not (mentions or order or anchor or asks_when or asks_past):
        return None
    rest = _without(text, [*taken, *ordered, *relation])
    if anchor:
        anchor = Anchor(anchor.relation, anchor.span, text[anchor.span.start : anchor.span.end])
    listing = bool(mentions) and not order and not anchor and _is_light(rest, eastern)
    return TimeQuestion(mentions, order, anchor, asks_when, asks_past, rest, listing)


# --- Which of many: the first or the last. The group `cue` has the words that are kept out of `rest`.


def _order(
    text: str, words: frozenset[str], taken: Sequence[Span], eastern: bool
) -> tuple[Order | None, Sequence[Span]]:
    """The order that a question asks for, with the span of its words. The first one in the text counts."""
    patterns = {pattern: order for word in words & _ORDER_WORDS.keys() for order, pattern in _ORDER_WORDS[word]}
    if eastern:
        patterns |= _ORDERS_EAST
    found = [
        (Span(*match.span("cue")), order)
        for pattern, order in patterns.items()
        for match in _compiled(pattern).finditer(text)
    ]
    free = [(span, order) for span, order in found if not any(_overlap(span, other) for other in taken)]
    if not free:
        return None, ()
    span, order = min(free, key=lambda each: (each[0].start, -each[0].end))
    return order, (span,)


# Nouns of places, not of times, and words after which "last" is a verb or a number's.
_EN_THINGS = (
    r"(?:names?|aid|columns?|rows?|lines?|pages?|floors?|class|person|lady|part(?:y|ies)|principles?|place|hand|"
    r"elements?|arguments?|params?|parameters?|letters?|characters?|chars?|digits?|bytes?|bits?|half|halves|chapters?|"
    r"paragraphs?|sentences?|words?|fields?|options?|priority|choice|language|degree|resort|straw|minute|mile|supper|"
    r"ditch|laugh|gasp|rites|index|items?|step|slot|track|gear|cousin|strand|base|world|generation|born|thing|of|but|"
    r"and|or|is|are|was|the|a|an|for|long|longer|until|more|forever|all|so|two|three|four|five|six|few|"
    r"n|seconds?|hours?|days?|weeks?|months?|quarters?|years?|decades?|century|nights?|mornings?|evenings?|weekends?)\b"
)
_EN_OWNER = r"(?:the|my|our|his|her|their|your|its|whose|which|i|we|you|he|she|they|it|who|[\w-]+'s)"
_EN_NAME = r"(?<![.!?] )(?<!^)\b(?-i:[A-Z])\w+"
_DE_THINGS = r"(?:hilfe|spalte|zeile|seite|linie|klasse|stock|mal\b|name|buchstabe|schritt|nacht|woche|monat|jahr|tag)"
_FR_THINGS = r"(?:colonne|ligne|page|etage|lettre|mot|pas|classe|nom|semaine|mois|annee|an\b|jour|nuit|heure|ministre)"
_ES_THINGS = r"(?:columna|linea|pagina|planta|letra|palabra|paso|clase|nombre|semana|mes|ano|dia|noche|hora|ministr)"
_DE_OWNER = r"(?:der|die|das|den|dem|unser\w*|mein\w*|sein\w*|ihr\w*)"
_FR_OWNER = "(?:le|la|les|notre|mon|ma|son|sa|leur|votre)"
_ES_OWNER = "(?:el|la|los|las|nuestr[oa]|mi|su|tu)"
# The order, words of which a question must have one, and the pattern.
_ORDERS: Sequence[tuple[Order, str, str]] = (
    ("first", "first", r"\b(?P<cue>(?:for the )?(?:very )?first time)\b"),
    ("first", "earliest originally initially", r"\b(?P<cue>earliest|originally|initially)\b"),
    ("first", "first", rf"(?:^\s*|\b{_EN_OWNER}\s+)(?:very )?(?P<cue>first)\s+(?:\d+\s+)?(?!{_EN_THINGS})[a-z]"),
    ("first", "first", rf"{_EN_NAME}\s+(?P<cue>first)\s+(?!{_EN_THINGS})[a-z]"),
    ("last", "last", r"\b(?P<cue>(?:for the )?(?:very )?last time)\b"),
    ("last", "latest recent recently newest", r"\b(?P<cue>latest|most recent(?:ly)?|newest)\b"),
    ("last", "current", r"\b(?P<cue>current)\s+(?:status|state|situation|progress)\b"),
    ("last", "last", rf"(?:^\s*|\b{_EN_OWNER}\s+)(?:very )?(?P<cue>last)\s+(?:\d+\s+)?(?!{_EN_THINGS})[a-z]"),
    ("last", "last", rf"{_EN_NAME}\s+(?P<cue>last)\s+(?!{_EN_THINGS})[a-z]"),
    ("first", "mal", r"\b(?P<cue>(?:zum |das )?erste[ns]? mal)\b"),
    (
        "first",
        "zuerst erstmals ursprunglich ursprungliche ursprunglichen ursprunglicher fruheste fruhesten",
        r"\b(?P<cue>zuerst|erstmals|ursprunglich\w*|fruhesten?)\b",
    ),
    (
        "first",
        "erste ersten erster erstes erstem",
        rf"(?:^\s*|\b{_DE_OWNER}\s+)(?P<cue>erste[nrsm]?)\s+(?!{_DE_THINGS})\w",
    ),
    ("last", "mal", r"\b(?P<cue>(?:zum |das )?letzte[ns]? mal)\b"),
    (
        "last",
        "zuletzt letztmals neueste neuesten neuester neuestes neuste neusten aktuellste aktuellsten",
        r"\b(?P<cue>zuletzt|letztmals|neue?ste[nrs]?|aktuellsten?)\b",
    ),
    (
        "last",
        "letzte letzten letzter letztes letztem",
        rf"(?:^\s*|\b{_DE_OWNER}\s+)(?P<cue>letzte[nrsm]?)\s+(?!{_DE_THINGS})\w",
    ),
    (
        "first",
        "fois origine initialement ancien ancienne anciens anciennes",
        r"\b(?P<cue>(?:pour )?(?:la )?premiere fois|a l'origine|initialement|plus ancien(?:ne)?s?)\b",
    ),
    (
        "first",
        "premier premiere premiers premieres",
        rf"(?:^\s*|\b{_FR_OWNER}\s+)(?P<cue>premiere?s?)\s+(?!{_FR_THINGS})[a-z]",
    ),
    (
        "last",
        "fois recent recente recents recentes",
        r"\b(?P<cue>(?:pour )?(?:la )?derniere fois|plus recente?s?)\b",
    ),
    ("last", "dernier derniere", rf"(?:^\s*|\b{_FR_OWNER}\s+)(?P<cue>derniere?)\s+(?!{_FR_THINGS})[a-z]"),
    (
        "first",
        "vez originalmente inicialmente antiguo antigua antiguos antiguas",
        r"\b(?P<cue>(?:por )?(?:la )?primera vez|originalmente|inicialmente|mas antigu[oa]s?)\b",
    ),
    ("first", "primer primera primero", rf"(?:^\s*|\b{_ES_OWNER}\s+)(?P<cue>primer[oa]?)\s+(?!{_ES_THINGS})[a-z]"),
    (
        "last",
        "vez reciente recientes nuevo nueva nuevos nuevas",
        r"\b(?P<cue>(?:por )?(?:la )?ultima vez|mas recientes?|mas nuev[oa]s?)\b",
    ),
    ("last", "ultimo ultima", rf"(?:^\s*|\b{_ES_OWNER}\s+)(?P<cue>ultim[oa])\s+(?!{_ES_THINGS})[a-z]"),
)
_ORDERS_EAST: Mapping[str, Order] = {
    r"(?P<cue>第一次(?!世界)|最早|最初|首次|起初|一开始|初めて|はじめて)": "first",
    r"(?P<cue>最后一次|最後一次|上一次|上次|最新|最近一次|最後に|直近|前回)": "last",
}


def _patterns_by_word() -> Mapping[str, Sequence[tuple[Order, str]]]:
    found: dict[str, list[tuple[Order, str]]] = {}
    for order, words, pattern in _ORDERS:
        for word in words.split():
            found.setdefault(word, []).append((order, pattern))
    return found


_ORDER_WORDS = _patterns_by_word()


# --- Before, after or since an event


def _anchor(
    text: str, words: frozenset[str], taken: Sequence[Span], eastern: bool
) -> tuple[Anchor | None, Sequence[Span]]:
    """The event that a question counts from, with the span of the word that relates to it."""
    patterns: list[str] = []
    if not words.isdisjoint(_RELATIONS) and not _compiled(_INSTRUCTION).search(text):
        patterns += [*(_ANCHORS_OF_THE_PAST if _compiled(PAST_TENSE).search(text) else ()), *_ANCHORS]
    if eastern:
        patterns.append(_ANCHOR_EAST)
    for pattern in patterns:
        for match in _compiled(pattern).finditer(text):
            if found := _event(match, text, taken):
                return found, (Span(*match.span("cue")),)
    return None, ()


def _event(match: re.Match[str], text: str, taken: Sequence[Span]) -> Anchor | None:
    """The event of a match, up to a period in it: "the workshop" of "after the workshop on 4 May"."""
    start, end = match.span("event")
    end = min([end, *(each.start for each in taken if each.start > start)])
    span = Span(start, start + len(text[start:end].rstrip()))
    whole = Span(min(match.start("cue"), start), max(match.end("cue"), span.end))
    if any(_overlap(whole, other) for other in taken) or span.start >= span.end:
        return None
    return Anchor(_RELATIONS[match["relation"].split()[0].lower()], span, text[span.start : span.end])


_RELATION_WORDS: Sequence[tuple[Relation, str]] = (
    ("before", "before prior vor bevor avant antes 之前 の前 の前に より前"),
    ("after", "after nach nachdem apres despues tras 之后 之後 以后 以後 の後 の後に"),
    ("since", "since seit seitdem depuis desde 以来 以來 以降 てから"),
)
_RELATIONS = {word: relation for relation, words in _RELATION_WORDS for word in words.split()}
# Steps and habits: "what should I run before deploying", "what do we do after lunch".
_INSTRUCTION = (
    r"\b(?:should|must|shall|will|does|always|usually|every|how to|need to|have to|going to|how do|"
    r"do (?:i|we|you) (?!know|have|remember)|"
    r"soll(?:en|te|ten)?|muss|immer|jede[nrsm]?|doit|dois|toujours|chaque|debo|debe|siempre|cada)\b"
)
# An event ends with the clause, or where the question begins after it.
_CLAUSE = (
    r"(?=(?P<event>[^\s,;:?!()\"][^,;:?!()\"\n]{0,160}?)\s*"
    r"(?:[,;:?!()\"\n]|\.(?:\s|$)|$|\s(?:what|who|whom|which|how|where|why)\s))"
)
_NOT_EVENT = (
    r"(?!(?:what|which|whose|who|whom|how|that|this|it|then|and|or|the fact|all|now|long|hours|midnight|noon|lunch|"
    r"dinner|breakfast|work|school|bed|sleep|another|each|one|me|you|him|her|us|them|day|next|"
    r"we\s+(?:are|can|need|have|want)|we'|"
    r"(?:you|i|it|there|they)\s*(?:'|is|are|am|have|has|can|know|need|want|do)\b)\b)"
)
_NOT_AFTER = (
    r"(?<!look )(?<!looks )(?<!looked )(?<!looking )(?<!named )(?<!name )(?<!take )(?<!takes )(?<!took )(?<!called )"
    r"(?<!modeled )(?<!modelled )(?<!run )(?<!runs )(?<!go )(?<!goes )(?<!ask )(?<!sought )(?<!one )(?<!day in, day )"
)
_DE_ARTICLE = r"(?:de[mrn]|das|die|eine[mr]|unsere[mrn]|meine[mrn]|seine[mrn]|ihre[mrn]|diese[mrn])"
_DE_NOUN = (
    r"(?:[a-z]\w+\s+){0,2}?(?-i:[A-Z])[\w-]+"
    r"(?:\s+(?:nach|von|in|zu|zum|zur|auf|mit|bei|der|des)\s+(?:[a-z]\w+\s+)?(?-i:[A-Z])[\w-]+)*"
)
_DE_NO_TIME = (
    r"(?!\w+\s+(?:haus|tur|gebaude|buro|laden|regel|meinung|ansicht|fenster|allem|kuste|gefahr\w*|obersten|gericht\w*|"
    r"augen|tor|publikum|kamera)\b)"
)
_FR_ARTICLE = "(?:le|la|les|l|notre|nos|mon|ma|mes|son|sa|leur|qu)"
_ES_ARTICLE = "(?:la|el|los|las|nuestr[oa]|mi|su|que)"
_ES_NO_TIME = (
    r"(?!\w+\s+(?:linea|punto|casa|oficina|principio|inicio)\b|que (?!nos?\b|se\b|\w+(?:amos|imos|aron|o|e)\b))"
)
_NO_TITLE = r"(?:^|(?=(?-i:[a-z])))"  # not "Life After People"
_CLOSELY = "(?:(?:right|just|shortly|soon|ever) )?"
# English and German relate things in space, in rules and in habits with the same words: there must be a past tense.
_ANCHORS_OF_THE_PAST = (
    rf"{_NOT_AFTER}{_NO_TITLE}\b(?P<cue>{_CLOSELY}(?P<relation>before|after|since|prior to))\s+{_NOT_EVENT}{_CLAUSE}",
    rf"\b(?P<cue>(?P<relation>vor|nach|seit))\s+{_DE_NO_TIME}(?P<event>{_DE_ARTICLE}\s+{_DE_NOUN})",
)
_ANCHORS = (
    rf"\b(?P<cue>(?P<relation>bevor|nachdem|seitdem|seit))\s+(?=(?:wir|ich|er|sie|es|du|ihr|man)\b){_CLAUSE}",
    rf"\b(?P<cue>(?P<relation>avant|apres|depuis))\s+(?={_FR_ARTICLE}\b){_CLAUSE}",
    rf"\b(?P<cue>(?P<relation>antes del?|despues del?|tras|desde))\s+{_ES_NO_TIME}(?:(?<=del )|(?={_ES_ARTICLE}\b))"
    + _CLAUSE,
)
_NO_EVENT_EAST = (
    r"(?:我们?|我們|你们?|您|他们?|她|大家|私たち|私|彼女?|いつ|很久|不久|多久|此|那|这|這)(?:之|以|の|より)"
)
_ANCHOR_EAST = (
    rf"(?:^|[，。、,\s]|は)(?:自从|自從|自|在)?(?!{_NO_EVENT_EAST})(?P<event>[^，。、,\s？?！!はをが什哪谁何]{{1,20}}?)"
    r"(?P<cue>(?P<relation>之前(?!的)|之后|之後|以后|以後|以来|以來|以降|の前(?=[には、])に?|の後(?=[には、])に?|より前|てから))"
)


# --- When something was, and what was before


def _asks(text: str, words: frozenset[str], eastern: bool, cues: frozenset[str], pattern: str, east: str) -> bool:
    if not words.isdisjoint(cues) and _compiled(pattern).search(text):
        return True
    return eastern and _compiled(east).search(text) is not None


_WHEN = (
    r"\b(?:(?<!since )when (?:did|was|were|is|are|do|does|has|have|had|will|would|exactly)|(?:since|until|till) when|"
    r"how long ago|how long (?:has|have|is|are|was|were|did)|how recently|"
    r"(?:what|which) (?:day|date|month|year|week|time)|"
    r"(?:seit |bis |ab )?wann|wie lange (?:ist|hat|haben|war|sind)|welche[mnr] (?:tag|datum|monat|jahr)|"
    r"(?:depuis )?quand(?! meme)|quelle? (?:date|jour|annee|mois)|"
    r"(?:desde |hasta )?cuando|que (?:dia|fecha|ano|mes)|"
    r"(?:desde |ate |da |fino a )?quando|che (?:giorno|data|mese|anno)|"
    r"(?:em )?que (?:data|semana))\b|\bwhen\W*$|^when\b"
)
_WHEN_CUES = """
when long recently day date month year week time wann lange welchem welcher welchen quand quel quelle cuando que quando
che
"""
_WHEN_WORDS = frozenset(_WHEN_CUES.split())
_WHEN_EAST = r"什么时候|甚麼時候|什麼時候|何时|何時|几月|几号|哪天|哪年|哪一年|多久以前|多久前|いつ|何年|何月|何日"
_ATTRIBUTE = (
    r"(?:address|numbers?|phone|name|job|role|title|password|laptop|car|office|apartment|flat|house|home|city|employer|"
    r"company|boss|manager|team|plan|price|version|port|url|domain|setup|config\w*|setting|value|key|email|server|"
    r"provider|bank|doctor|school|owner|lead|database|schedule|deadline|date|policy|logo|design|account|limit|diet)"
)
_PAST = (
    r"\bdid(?:n't)?\s[^?.!,]{0,60}\bused? to\b|\b(?:i|we|you|he|she|they|it|there|who|(?-i:[A-Z])\w+)\s+"
    r"(?:never |also |always )?used to\b|"
    r"\b(?:previously|formerly|originally|back then|in the past|at the time|once upon)\b|"
    rf"\b(?:old|previous|former|prior|original)\s+(?:[a-z]+\s+)?{_ATTRIBUTE}\b|"
    r"\b(?:ever )?before\W*$|\bbefore that\b|\bprior\W*$|\bbeforehand\b|"
    r"\b(?:fruher(?! als)|ehemals|ehemalige[nrsm]?|damals|vorher|zuvor|ursprunglich\w*|einst|"
    r"(?:alte|vorherige|fruhere|vorige)[nrsm]? (?:adresse|nummer|name|job|stelle|passwort|wohnung|firma|chef|plan|"
    r"preis|version|port|arbeitgeber|auto|handynummer|telefonnummer))\b|"
    r"\bavant\W*$|\b(?:auparavant|autrefois|jadis|precedemment|anciennement|a l'epoque|ancien(?:ne)?s?|"
    r"precedente?s?)\b|"
    r"\bantes(?! de| del)\b|\b(?:anteriormente|antiguamente|previamente|solia[ns]?|soliamos|"
    r"antigu[oa]s?)\b|\b(?:el|la|los|las|mi|su|tu|nuestr[oa])\s+(?:\w+\s+)?anterior(?:es)?\b"
)
_PAST_CUES = """
used use previously formerly originally back past time once old previous former prior original before beforehand fruher
ehemals ehemalige ehemaligen ehemaliger damals vorher zuvor ursprunglich ursprungliche ursprunglichen einst alte alten
altes alter vorherige vorherigen fruhere fruheren vorige vorigen avant auparavant autrefois jadis precedemment
anciennement epoque ancien ancienne anciens anciennes precedent precedente antes anteriormente antiguamente
previamente solia solian solias soliamos antiguo antigua antiguos antiguas anterior anteriores
"""
_PAST_WORDS = frozenset(_PAST_CUES.split())
_PAST_EAST = r"以前|之前|曾经|曾經|原来|原來|从前|從前|过去|過去(?![0-9０-９])|当时|當時|かつて|昔|もともと|(?<!名)前は"


# --- What is left


def _without(text: str, spans: Iterable[Span]) -> str:
    """The text without these spans, and without the gaps that they leave."""
    pieces, at = [], 0
    for span in sorted(spans):
        if span.start >= at:
            pieces.append(text[at : span.start])
            at = span.end
    rest = " ".join(" ".join([*pieces, text[at:]]).split())
    rest = _compiled(r" +(?=[,;:.?!？。，、](?:\s|$))").sub("", rest).strip(" ,;:")
    return rest if _compiled(r"\w").search(rest) else ""


def _is_light(rest: str, eastern: bool) -> bool:
    """Whether only words are left that nothing can be searched by."""
    if eastern:
        return not _compiled(r"\w").search(_compiled(_LIGHT_EAST).sub("", rest))
    return _light_words().issuperset(_WORD.findall(fold_accents(rest).lower().replace("'", " ")))


@cache
def _light_words() -> frozenset[str]:
    return stopwords.WORDS.union(_LIGHT.split())


_LIGHT = """
happen happened happening happens occur occurred discuss discussed discussing discussion discussions talk talked
talking say said speak spoke mention mentioned tell told work worked working note notes noted memory memories remember
recall anything everything something nothing thing things stuff new news event events list show find summary summarize
summarise recap overview log logs entry entries write wrote written save saved stored record recorded go went going
chat chats conversation conversations topic topics please me about update updates activity activities did done do
learn learned learnt know day week month year times time s re d ll ve t m
was wer wie wo wann ist war waren sind wurde wurden haben hat habe hatte hatten wir ich du er sie es man ihr uns mir
mich los passiert passierte geschah geschehen gemacht machen machten getan besprochen besprachen gesprochen sprachen
geredet gesagt notiert geschrieben gab gibt gewesen alles etwas nichts neues neue neuigkeiten notiz notizen erinnerung
erinnerungen ereignisse zeig zeige liste mal denn so der die das den dem des ein eine und von vom zu im in am an auf
uber aus bei mit fur worum ging
que qu quoi quel quelle quels quelles qui est ce c s il elle on nous vous je j ai avons avez a ont ete etait etaient
sont fait faisions faire passe passee passait arrive arrivee parle parlions parler discute discuter dit dire note
notes notee souvenir souvenirs tout rien quelque chose choses nouveau nouvelles evenements evenement montre liste de
du des d la le les l un une et en au aux sur dans pour ma mes mon nos notre t y
qu que quien quienes paso pasaba ocurrio sucedio hicimos hice hizo hicieron haciamos hacer hablamos hablaba hable
discutimos dijimos dijo dije nota notas recuerdo recuerdos todo nada algo cosa cosas nuevo nuevas noticias eventos
evento muestra lista fue era eran hubo habia he hemos ha han estuvo estuvimos de del el la los las un una y en a al
sobre con por para mi mis nos nuestro nuestra lo le se acerca
"""
_LIGHT_EAST = (
    r"我们|我們|我|你们|你|他们|他|她|大家|发生|發生|讨论|討論|说|說|谈|談|聊|做|干|决定|記錄|记录|笔记|筆記|事情|事|什么|什麼|哪些|有|了|过|過|的|"
    r"吗|嗎|呢|在|是|都|和|关于|列出|一下|新闻|情况|何|話し|話|した|しました|あった|ありました|起き|起こっ|ましたか|ました|たか|か|は|が|を|に|の|で|と|も|"
    r"た|て|メモ|記録|こと|出来事|ニュース|教えて|ください|私たち|私|みんな|全部|まし"
)


# --- Shared

_WORD = re.compile(r"[^\W\d_]+")
_CUE_WORDS = frozenset(_ORDER_WORDS) | frozenset(_RELATIONS) | _WHEN_WORDS | _PAST_WORDS


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled on first use: most questions need none of them."""
    return re.compile(pattern, re.I)

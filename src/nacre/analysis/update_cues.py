"""The words by which a text shows that it changes what held before: "moved from X to Y", "no longer", "Correction:".

A cue alone proves nothing: `nacre.facts.updates` decides whether an older memory is about the same thing. A strong cue
says outright that something changed. A weak one, such as "now", is common in other texts and needs more evidence.

Each word of a text is looked up in one dictionary. Only the words that begin a cue cost a regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

CHARS_MAX = 400  # a longer text is a document, and its cues are about its own contents


class Cue(NamedTuple):
    """The words that show a change, and the old and the new value where the text names them, all in lower case."""

    words: str
    strong: bool
    sentence: str  # in which they stand
    old: str = ""
    new: str = ""


class _Pattern(NamedTuple):
    triggers: tuple[str, ...]  # one of these words must be in the text, in lower case
    pattern: str
    strong: bool


def _says(triggers: str, *patterns: str) -> _Pattern:
    return _Pattern(tuple(triggers.split()), "|".join(patterns), strong=True)


def _hints(triggers: str, *patterns: str) -> _Pattern:
    return _Pattern(tuple(triggers.split()), "|".join(patterns), strong=False)


def _any_of(words: str) -> str:
    return rf"\b(?:{'|'.join(words.split())})\b"


def _says_word(words: str) -> _Pattern:
    return _says(words, _any_of(words))


def _hints_word(words: str) -> _Pattern:
    return _hints(words, _any_of(words))


_W = r"(?:[^\s,;!?()]|,(?=\d))+"
_NEXT = rf"(?:(?<![.:…]) {_W})"  # a value ends with its sentence
_UP_TO_4 = rf"{_W}{_NEXT}{{0,3}}"
_OLD_UNTIL, _OLD, _NEW = rf"(?P<old>{_W}{_NEXT}{{0,5}}?)", rf"(?P<old>{_UP_TO_4})", rf"(?P<new>{_UP_TO_4})"
_GAP = r"[^.!?\n]{0,60}?"
_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
# Not a year alone: "as of 2017" and "since 2002" tell history.
_WHEN = rf"(?:now|today|tomorrow|tonight|yesterday|this|next|last|(?!\d{{4}}\b)\d+|the \d+\w*|v\d|{_MONTH}|{_DAY})\b"
_WANN = (
    r"(?:heute|morgen|gestern|diese[mnrs]?|nächste[mnrs]?|letzte[mnrs]?|dem \d|\d|(?:montag|dienstag|mittwoch"
    r"|donnerstag|freitag|samstag|sonntag|januar|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember)\b)"
)
_QUAND = (
    r"(?:demain|hier|cette|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|janvier|février|mars|avril|mai|juin"
    r"|juillet|août|septembre|octobre|novembre|décembre|la semaine|la rentrée|le \d|\d)"
)
_CUANDO = (
    r"(?:hoy|mañana|ayer|este|esta|lunes|martes|miércoles|jueves|viernes|sábado|domingo|enero|febrero|marzo|abril|mayo"
    r"|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|la semana|el \d|\d)"
)
_FROM_VERBS = (
    "moves moved moving switches switched switching migrates migrated migrating changes changed changing bump bumps "
    "bumped bumping upgrades upgraded upgrading downgraded renames renamed renaming raise raises raised raising lower "
    "lowers lowered lowering increase increases increased decreased reduces reduced cut cuts transitioned converted "
    "swaps swapped drops dropped shifts shifted relocated transferred reassigned rescheduled postponed extended "
    "shortened goes went promoted updated"
)
# Verbs that name the new value without the old one.
_TO_VERBS = (
    "moved moves moving switched switches switching migrated migrates migrating changed bumped bumps upgraded "
    "downgraded renamed raised raises lowered lowers increased decreased reduced relocated reassigned shifted relisted "
    "rescheduled postponed shortened delayed promoted swapped"
)
_NOT_A_VALUE = r"(?!sure|yet|only|just|even|to|that|a|an|the|in|on|because|so|very|really|too|as|for|at|when|if|by)\b"

_PATTERNS: tuple[_Pattern, ...] = (
    # ---- English
    _says(_FROM_VERBS, rf"{_any_of(_FROM_VERBS)}{_GAP}\bfrom {_OLD_UNTIL} (?:over )?(?:in)?to {_NEW}"),
    _says("instead", rf"\binstead of {_OLD}"),
    _says("instead", r"\binstead\b"),
    _says("rather", rf"\brather than {_OLD}"),
    _says("replaced replace", rf"\breplaced? (?!by\b|with\b){_OLD_UNTIL} (?:by|with) {_NEW}"),
    _says("replaced", rf"\breplaced (?:by|with) {_NEW}"),
    _says("replaces replacing supersedes", rf"\b(?:replaces|replacing|supersedes) {_OLD}"),
    _says_word("superseded obsolete obsoletes"),
    _says("longer", rf"\bno longer(?! than\b)(?: {_OLD})?"),
    _says("anymore more", r"(?:\b(?:not|no|nobody|nothing|never|cannot)|n['’]t)\b(?: \w+){1,5}? any ?more\b"),
    _hints("formerly", rf"\bformerly (?:known as |called |at |in )?{_OLD}"),
    _hints("used", rf"\bused to be {_OLD}"),
    _hints("not", rf"\bnot {_OLD_UNTIL} but {_NEW}"),
    _hints("not", rf"(?:,|;| –| —| -) not {_NOT_A_VALUE}{_OLD}"),
    _says("correction", r"^\W*correction\b", r"\bcorrection(?= ?[:,–—]| to\b| of\b)"),
    _says("update", r"^\W*(?:\w+: )?update\b(?: on[^:\n]{1,40})?\s?[:,–—-]"),
    _says("scratch", r"\bscratch that\b"),
    _says(
        "ignore disregard forget",
        r"\b(?:ignore|disregard|forget) (?:(?:my|the|our) (?:last|previous|earlier|old)|what (?:i|we|he|she))\b",
    ),
    _says("mind minds", r"\bchang(?:ed|es|ing) (?:my|her|his|our|their|your) minds?\b"),
    _hints("after", r"\bafter all\b(?! (?:the|these|those|this|that|of)\b)"),
    _says("as", rf"\bas of {_WHEN}"),
    _says("effective", rf"\beffective (?:immediately|from|{_WHEN})"),
    _says("from", rf"\bfrom (?:now|{_WHEN}(?: {_W}){{0,2}}?) on(?:wards?)?\b"),
    _hints("from starting", rf"(?:^|[.!?;,:] |\b(?:is|are|at|in|mg) )(?:starting|from) (?!\d+[:.]\d){_WHEN}"),
    _says("took takes taking", r"\b(?:took|takes|taking) over\b"),
    _says("stepped steps stepping", r"\bstep(?:ped|s|ping) down\b"),
    _says("handed hands", r"\bhands over\b", r"\bhand(?:ed|s) (?:\w+ ){0,3}?over to\b"),
    _says(
        _TO_VERBS, rf"{_any_of(_TO_VERBS)}(?: (?!(?:me|us|you|him|and|or)\b)[\w'’-]+){{0,4}}? (?:to|until|onto) {_NEW}"
    ),
    _says("goes went go going", rf"\b(?:goes|went|go|going) (?:(?:up|down) to (?=[€$£]?\d)|over to ){_NEW}"),
    _says("pushed", r"\bpushed (?:back|out|to (?:\d|next|monday|tuesday|wednesday|thursday|friday|q\d))"),
    _says_word("postponed rescheduled relisted vacated adjourned renamed"),
    _says("cancelled canceled cancels", r"(?<!be )\bcancel(?:l?ed|s)\b"),
    _says("called calls calling", r"\bcall(?:ed|s|ing) (?:\w+ ){0,2}?off\b"),
    _says_word("deprecated discontinued decommissioned abandoned scrapped revoked withdrawn outdated rotated"),
    _says("changed", r"\b(?:been|is|was|are|were) changed\b", r"\bchanged (?:after|again)\b"),
    _hints("changed", r"\b(?:has|have) changed\b"),
    _says_word("amended revised reverted upped doubled halved"),
    _says("plan plans", r"\bchange of plans?\b"),
    _says("fell", r"\bfell through\b"),
    _says("rolled", r"\brolled back\b"),
    _says("over", rf"\btaken over by {_NEW}"),
    _says("notice", r"\buntil further notice\b", r"\b(?:handed in|gave) (?:\w+ )?notice\b"),
    _says("closed shut", r"\b(?:closed|shut) (?:down|for good)\b"),
    _says("left", r"\b(?:has|have|had)?\s?left the (?:company|team|firm|band|club|project|group|board)\b"),
    _says("mistake", r"\bmy mistake\b"),
    _says("wrong", r"\b(?:was|were|i had it|got (?:it|that)|is|are) wrong\b"),
    _says("meant", r"\bi meant\b"),
    _says("make", r"\bmake (?:it|that) (?=\S*\d)"),
    _says("extended", rf"\bextended (?:to|until|till|by) (?:{_WHEN}|(?:the )?end\b)"),
    _says("now", rf"\b(?:was|were) (?P<old>{_W}{_NEXT}?)[,;] (?:(?:it|he|she|they) )?(?:is |are )?now {_NEW}"),
    _hints("moved delayed corrected", r"\b(?:has|have|been|is|was|are|were|be) (?:moved|delayed|corrected)\b"),
    _hints("stopped stops quit", r"\b(?:stopped|stops|quit) \w+ing\b"),
    _hints("actually", r"(?:^|[.!?:] )actually\b"),
    _hints("turns turned", r"\bturn(?:s|ed) out\b"),
    _hints("now", r"(?<!right )(?<!for )(?<!just )(?<!until )(?<!till )(?<!by )\bnow\b(?! and then)"),
    _hints("new", r"\bnew(?: [\w-]+){1,3}?(?: is\b| are\b| will be\b| ?:| =)"),
    _hints_word("retired retires"),
    _hints("since", rf"\bsince {_WHEN}"),
    # ---- German
    _says("statt anstatt", rf"\b(?:an)?statt {_OLD}"),
    _says("anstelle", rf"\banstelle (?:von |der |des )?{_OLD}"),
    _says("mehr", r"\b(?:nicht|kein(?:e[mnrs]?)?|nichts|nie|niemand)\b(?: \w+){0,3}? mehr\b"),
    _says("zieht ziehen", rf"\bzieh(?:t|en)\b{_GAP}\bum\b"),
    _says(
        "gewechselt wechselt wechseln umgestellt umgestiegen umgezogen erhöht gesenkt",
        rf"\b(?:gewechselt|wechsel[nt]|umgestellt|umgestiegen|umgezogen|erhöht|gesenkt)\b"
        rf"(?:{_GAP}\bvon {_OLD_UNTIL} (?:auf|zu|nach|in) {_NEW})?",
    ),
    _says(
        "von", rf"\bvon {_OLD_UNTIL} (?:auf|nach) {_NEW} (?:gewechselt|umgestellt|umgezogen|geändert|erhöht|gesenkt)"
    ),
    _says("ab", rf"\bab (?:sofort\b|{_WANN})"),
    _says_word(
        "stattdessen korrektur korrigiert berichtigung umbenannt verschoben verlegt vertagt vorgezogen verschiebt"
    ),
    _says_word("abgesagt storniert gestrichen entfällt geändert änderung ersetzt abgelöst übernimmt übernommen"),
    _says_word("aufgegeben aufgehört gekündigt abgeschafft abgeschaltet ausgetauscht irrtümlich preiserhöhung"),
    _says("falsch", r"\b(?:war|ist|waren) falsch\b"),
    _says("neuer", r"\bneuer termin\b"),
    _says("rente", r"\bin rente\b"),
    _says("fällt fallen", rf"\bfäll(?:t|en)\b{_GAP}\b(?:aus|weg)\b"),
    _says("sondern", rf"\bnicht {_OLD_UNTIL},? sondern {_NEW}", r"\bsondern\b"),
    _says("heißt", r"\bheißt (?:jetzt|nun|ab)\b"),
    _says("doch", r"\bdoch (?:lieber|nicht|kein\w*|erst)\b"),
    _hints_word("jetzt nun neuerdings künftig inzwischen"),
    _hints("neu neue neuer neues", r"\bneu(?:e[rs]?)?(?: [\w-]+){0,3}?(?: ist\b| sind\b| hei(?:ß|ss)t\b| ?:)"),
    _hints("seit", rf"\bseit {_WANN}"),
    # ---- French
    _says_word(
        "désormais dorénavant annulé annulée annulés annulées reporté reportée reportés reportées repoussé décalé"
    ),
    _says_word(
        "remplace remplacent remplacé remplacée rectificatif déménagé déménage renommé renommée déplacé modifié"
    ),
    _says("quitté", r"\ba quitté\b"),
    _says("augmente augmenté baisse baissé", rf"\b(?:augment|baiss)(?:e|é) (?:de {_OLD_UNTIL} )?à {_NEW}"),
    _says("erreur", r"\b(?:mon|une) erreur\b", r"\berreur de ma part\b"),
    _says("plus", r"\bn(?:e |['’])\w+(?: \w+){0,2}? plus\b"),
    _says("lieu", rf"\bau lieu (?:de |d['’]|du |des ){_OLD}"),
    _says("place", r"\bà la place\b"),
    _says("partir", r"\b[àa] partir d(?:e |u |el? |['’])"),
    _says("changé changée changés", r"\bchangée?s?\b"),
    _says("passe passons passent passé", rf"\bpass(?:e|ons|ent|é) (?:de {_OLD_UNTIL} )?à {_NEW}"),
    _hints("plutôt", rf"\bplutôt que {_OLD}"),
    _hints("mais", rf"\bpas {_OLD_UNTIL},? mais {_NEW}"),
    _hints("depuis", rf"\bdepuis {_QUAND}"),
    _hints_word("maintenant finalement retraite"),
    _hints("nouveau nouvelle nouvel", r"\bnouve(?:au|lle|l)(?: [\w-]+){1,3}?(?: est\b| sera\b| ?:)"),
    # ---- Spanish
    _says("ya", r"\bya no\b"),
    _says("lugar vez", rf"\b(?:en|em) (?:lugar|vez) de {_OLD}"),
    _says(
        "cambió cambia cambian cambiado cambiada cambiamos",
        rf"\bcambi(?:ó|an?|ad[oa]|amos)\b(?:{_GAP}\bde {_OLD_UNTIL} a {_NEW})?",
    ),
    _says("mudó muda mudamos mudaron trasladó", r"\b(?:se|nos) (?:mud|traslad)(?:ó|a|amos|aron)\b"),
    _says_word("aplazado aplazada aplazó pospuesto pospuesta cancelado cancelada canceló anulado anulada suspendido"),
    _says_word("corrección rectificación reemplaza sustituye sustituido sustituida modificado trasladado"),
    _says("sube baja subió bajó", rf"\b(?:sube|baja|subió|bajó) (?:de {_OLD_UNTIL} )?a {_NEW}"),
    _says("sino", rf"\bno {_OLD_UNTIL},? sino {_NEW}"),
    _says("dejó deja dejamos", r"\bdej(?:ó|a|amos) de \w+r\b"),
    _says("pasa pasan pasó pasamos", rf"\bpas(?:an?|ó|amos) (?:de {_OLD_UNTIL} )?a (?:ser )?{_NEW}"),
    _hints("desde", rf"\bdesde {_CUANDO}"),
    _hints_word("ahora"),
    _hints("nuevo nueva", r"\bnuev[oa](?: [\w-]+){1,3}?(?: es\b| será\b| ?:)"),
    # ---- Portuguese, Italian, Dutch, Russian
    _says("já", r"\bjá não\b"),
    _says("più", r"\bnon\b(?: \w+){1,3}? più\b"),
    _says("invece", rf"\binvece (?:di|del|della) {_OLD}"),
    _says("poi", r"\bd['’]ora in poi\b"),
    _says_word("correção correzione spostato spostata annullato annullata rinviato rinviata adiado adiada"),
    _says("meer", r"\b(?:niet|geen|nooit|niemand)\b(?: \w+){0,3}? meer\b"),
    _says("plaats", rf"\bin plaats van {_OLD}"),
    _says_word("voortaan verhuisd verzet verplaatst geannuleerd afgelast uitgesteld gewijzigd vervangen correctie"),
    _says("вместо", rf"\bвместо {_OLD}"),
    _says("больше", r"\bбольше не"),
    _says_word("теперь перенесли перенесён перенесена отменили отменён отменена переехали"),
    _hints("sinds vanaf", r"\b(?:sinds|vanaf) \w+"),
    _hints_word("agora adesso"),
)
_ARROW = r"(?P<old>\S*\d\S*) ?(?:->|→) ?(?P<new>\S*\d\S*)"  # "max_connections 200 -> 350"
# Scripts without spaces have no words to look up.
_UNSPACED = (
    "改为|改成|改到|不再|取消|换成|搬到|更正|推迟|从现在起|変更|中止|延期|訂正|引っ越|ではなく"
    "|말고|변경|취소|연기|더 이상|바뀌"
)
_UNSPACED_FROM = "\u1100"
_SENTENCE_END = r"[.!?…](?=\s)|[\n。！？]"


def _by_trigger() -> Mapping[str, tuple[_Pattern, ...]]:
    found: dict[str, tuple[_Pattern, ...]] = {}
    for each in _PATTERNS:
        for trigger in each.triggers:
            found[trigger] = (*found.get(trigger, ()), each)
    return found


_BY_TRIGGER = _by_trigger()


@cache
def _re(pattern: str) -> re.Pattern[str]:
    """Compiled on first use, because most texts have none of the words."""
    return re.compile(pattern)


def find_cue(text: str) -> Cue | None:
    """The cue of a short text: a strong one before a weak one, then one that names the old value; else the first."""
    if len(text) > CHARS_MAX:
        return None
    return max(_cues(text.lower()), key=lambda cue: (cue.strong, bool(cue.old)), default=None)


def _cues(text: str) -> Iterator[Cue]:
    triggers = [word for word in dict.fromkeys(_re(r"[^\W_]+").findall(text)) if word in _BY_TRIGGER]
    for each in dict.fromkeys(pattern for word in triggers for pattern in _BY_TRIGGER[word]):
        if found := _re(each.pattern).search(text):
            values = found.groupdict(default="")
            end = found.start("new") if values.get("new") else found.start("old") if values.get("old") else found.end()
            words = " ".join(text[found.start() : end].split())
            old, new = _value(values.get("old", "")), _value(values.get("new", ""))
            yield Cue(words.strip(" ,;:–—-"), each.strong, _sentence(text, found.start(), found.end()), old, new)
    if ("->" in text or "→" in text) and (found := _re(_ARROW).search(text)):
        yield Cue("->", strong=True, sentence=_sentence(text, *found.span()), old=found["old"], new=found["new"])
    if max(text, default="") >= _UNSPACED_FROM and (found := _re(_UNSPACED).search(text)):
        yield Cue(found[0], strong=True, sentence=_sentence(text, *found.span()))


def _sentence(text: str, start: int, end: int) -> str:
    before = max((found.end() for found in _re(_SENTENCE_END).finditer(text, 0, start)), default=0)
    after = _re(_SENTENCE_END).search(text, max(start, end - 1))  # the match may end with the sentence
    return text[before : after.start() if after else len(text)]


def _value(words: str) -> str:
    """A value without the end of its sentence and what follows."""
    return _re(r"[.:…](?=\s|\Z)").split(words, maxsplit=1)[0].strip(" \"'`*“”‘’«»")

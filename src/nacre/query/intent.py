"""Detects the intent of a question from its form: "how do I …", "where is …", "why …", "… vs …", words like "crash".

A text is read word by word. Some words begin a cue, which has a pattern of what follows, an intent, and its strength
at the beginning of the text and elsewhere. The strongest cue wins; the strongest cue of another intent reduces its
confidence. Questions of other forms ("who", "when", "how many") get low confidence, whatever cues they have. For other
languages than English there are fewer patterns (`analysis/languages/`). A question without cues is general.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

from nacre.analysis.language import language_of
from nacre.analysis.languages import known
from nacre.types.intents import NAMESPACE_WEIGHTS, Intent, IntentName

__all__ = ["NAMESPACE_WEIGHTS", "Intent", "IntentName", "detect"]

READ_CHARS_MAX = 400  # questions are short; a pasted text shows its intent at the beginning
GENERAL = Intent("general", 0.0)
_RIVALRY = 1 / 3  # of the second intent's strength is subtracted from the confidence

_SURE = (0.9, 0.9)
_FORM = (0.9, 0.6)  # at the beginning, elsewhere
_LIKELY = (0.6, 0.6)
_WEAK = (0.4, 0.4)
_SPECIAL = (1.0, 0.7)  # wins over another intent that has the same form

# Of two equally strong intents, the first is the more specific.
_ORDER: Sequence[IntentName] = ("troubleshoot", "comparison", "how-to", "location", "explanation")

_I = r"(?:i|we|one|you|someone|people|users)\b"
_FEELING = r"(?! (?:feel|like|think|know|mean|want|see yourself|spend)\b)"
_MEND = r"(?:fix|solve|resolve|debug|troubleshoot|repair|recover from|get rid of|work around)\b"
_OUR_THING = r"(?:the|our|my|this|that|these|those|all|your|its|a|an)\b"
_KEPT = (
    r"(?:defined|stored|located|documented|implemented|configured|kept|set|declared|saved|hosted|logged|handled|called"
    r"|deployed|registered|described|written down|file|files|config|code|source|docs?|logs?)\b"
)
_PLACE = (
    r"(?:file|files|folder|directory|module|repo|repository|class|function|method|endpoint|url|path|package"
    r"|script|config|bucket)\b"
)
_PERHAPS_PLACE = r"(?:branch|table|page|document|doc|channel|port|host|server|line)\b"
_ADDRESS = r"(?:url|path|location|address|endpoint|link|filename|file name|port|hostname)\b"
_REASON = (
    r"(?:reason|reasons|rationale|reasoning|point|purpose|motivation|justification|meaning|idea behind|thinking)\b"
)
_STEPS = r"(?:steps|procedure|process|recipe|instructions|command|commands|(?:[a-z]+ )?way) (?:to|for|of)\b"
_BE = r"(?:is|are|was|were)"
_NO_TROUBLE = (
    r"(?! (?:handling|budgets?|codes?|types?|class|classes|boundary|boundaries|rates?|pages?|bars?|log|logs)\b)"
)

_KEEP = (
    r"(?:find|get|see|keep|store|put|define|set|look|log|configure|save|document|host|declare|implement|register|deploy"
    r"|call|handle|write|read|change|edit)\b"
)
_BUILT = r"(?:work|works|worked|implemented|done|handled|built|connected|related|structured|organi[sz]ed)\b"
_RUN = r"(?:work|start|load|build|compile|connect|respond|run|install|import|show)"
_RUNNING = r"(?:work|working|starting|responding|loading|compiling|building|running|connecting)\b"
_FAILS = (
    rf"(?:fail(?:s|ing|ed)?|broken|break(?:s|ing)?|crash\w*|hang(?:s|ing)?|stuck|not {_RUN}\w*|throw(?:s|ing)?|flaky"
    r"|tim(?:e|es|ed|ing) out|leaking|get(?:ting)? (?:an? )?(?:[\w-]+ )?(?:error|exception|timeout)s?)\b"
)
_BETTER = r"(?:better|faster|cheaper|safer|best|worse|simpler|or)\b"
_DOES = r"(?:is|are|does|do|did|was|were|am|has|have|isn't|aren't|won't|can't|doesn't|don't|didn't)"
_DOES_NOT = r"(?:won't|can't|doesn't|don't|didn't|isn't|aren't)"
_TO = r"(?:log in|login|find|open|reach|resolve|deploy|access)"

# First words of the cue, pattern of what follows, intent, strength.
_Line: TypeAlias = tuple[str, str, IntentName, tuple[float, float]]
_LINES: Sequence[_Line] = (
    # how-to
    ("how", rf"[ -]to\b(?! {_MEND})", "how-to", _FORM),
    ("how", rf" (?:do|can|should|would|could|might|must|shall) {_I}{_FEELING}(?! {_MEND})", "how-to", _FORM),
    ("how", rf" did (?:i|we)\b(?! {_MEND})(?! (?:end|get|feel|meet|know|like|do)\b)", "how-to", _WEAK),
    ("howto tutorial walkthrough", r"", "how-to", _LIKELY),
    ("steps instructions guide", r" (?:to|for|on|how)\b", "how-to", _FORM),
    ("show teach remind tell explain", r" (?:me |us |to me )?how (?:to|i|we|you)\b", "how-to", _FORM),
    ("walk", r" (?:me|us) through\b", "how-to", _FORM),
    ("what whats", rf"(?: is| are)? (?:the|a) (?:[a-z]+ )?{_STEPS}", "how-to", _FORM),
    ("is", r" there (?:a|any) way (?:to|of)\b", "how-to", _FORM),
    ("best right correct recommended proper usual preferred easiest", r" way (?:to|of|for)\b", "how-to", _LIKELY),
    ("show give", r" (?:me |us )?(?:an|some) examples? (?:of|for)\b", "how-to", _LIKELY),
    # location
    ("where", rf" {_BE} {_OUR_THING}", "location", _FORM),
    ("where", rf" {_BE} [^?.!]{{0,60}}\b{_KEPT}", "location", _FORM),
    ("where", rf" (?:do|can|could|should|would|did|does|have) {_I} {_KEEP}", "location", _FORM),
    (
        "where",
        rf" (?:do|does|did) [^?.!]{{0,60}}\b(?:live in the|{_KEPT}|come from|get (?:set|called|stored))",
        "location",
        _LIKELY,
    ),
    ("where", r" to (?:find|look|put|get|store|see|configure|set)\b", "location", _FORM),
    ("where", rf"(?: {_BE}| do| does| did| can| should| has| have| would| will)\b", "location", _WEAK),
    ("which what", rf" (?:[a-z]+ )?{_PLACE}(?! (?:is (?:better|faster)|name should)\b)", "location", _FORM),
    ("which", rf" (?:[a-z]+ )?{_PERHAPS_PLACE}", "location", _LIKELY),
    ("what whats", rf"(?: is| are)? the (?:[a-z]+ ){{0,2}}{_ADDRESS}", "location", _FORM),
    ("path link url", r" (?:of|to|for)\b", "location", _FORM),
    ("locate", r" \w", "location", _FORM),
    ("location", r" of\b", "location", _LIKELY),
    # explanation
    ("why", r"(?! not\b)", "explanation", _FORM),
    ("why", r" not\b", "explanation", _LIKELY),
    ("how", r" come\b", "explanation", _FORM),
    ("how", rf" (?:do|does|did|is|are) (?!{_I})[^?.!]{{1,80}}\b{_BUILT}", "explanation", _FORM),
    ("what whats", rf"(?: is| are| was| were)? (?:the|our) (?:[a-z]+ )?{_REASON}", "explanation", _FORM),
    ("what", r" (?:do|does|did) [^?.!]{1,80}\b(?:mean|stand for|refer to)\b", "explanation", _FORM),
    ("what", r" does [^?.!]{1,60}\bdo\b\W*$", "explanation", _LIKELY),
    ("what", rf" {_BE} meant by\b", "explanation", _FORM),
    ("what", r" (?:made|makes|led) (?:us|you|them|him|her|me)\b", "explanation", _LIKELY),
    ("explain clarify", r"(?! how to\b)", "explanation", _FORM),
    ("explanation", r" (?:of|for)\b", "explanation", _FORM),
    ("rationale reasoning", r"", "explanation", _FORM),
    ("reason reasons", r" (?:for|why|behind|that|we|to)\b", "explanation", _LIKELY),
    # troubleshoot
    ("how", rf" (?:to|(?:do|can|should|would|could|did|might) {_I}) {_MEND}", "troubleshoot", _FORM),
    ("why", rf" {_DOES}\b[^?.!]{{0,80}}\b{_FAILS}", "troubleshoot", _SPECIAL),
    ("why", rf" {_DOES_NOT} [^?.!]{{0,40}}\b(?:{_RUN}\b|{_RUNNING})", "troubleshoot", _SPECIAL),
    ("what", r" is (?:wrong|broken|failing|going wrong)\b", "troubleshoot", _FORM),
    ("what", r" (?:causes the|caused|is causing|could cause)\b", "troubleshoot", _LIKELY),
    ("traceback stacktrace segfault segmentation", r"", "troubleshoot", _SURE),
    ("stack", r" trace\b", "troubleshoot", _SURE),
    ("not isn't aren't wasn't stopped stops", rf" {_RUNNING}", "troubleshoot", _FORM),
    (
        "doesn't don't didn't won't doesnt dont wont can't cant cannot not",
        rf" (?:{_RUN}|{_TO})\b",
        "troubleshoot",
        _LIKELY,
    ),
    ("error errors", r"(?: code)?:? ?#?\d{2,}\b|: \w", "troubleshoot", _FORM),
    ("http status", r" [45]\d\d\b", "troubleshoot", _LIKELY),
    (
        "fails failing crash crashes crashing crashed broken exception exceptions stuck hangs freezes flaky panics",
        r"",
        "troubleshoot",
        _LIKELY,
    ),
    ("fix debug troubleshoot diagnose solve", r" (?:the|this|that|my|our|a|an|it)\b", "troubleshoot", _FORM),
    ("error errors", _NO_TROUBLE, "troubleshoot", _WEAK),
    ("timed times timing", r" out\b", "troubleshoot", _LIKELY),
    (
        "timeout timeouts",
        r"(?! (?:of|for|value|values|setting|settings|default|config|be|is|should|in)\b)(?!$|[?.])",
        "troubleshoot",
        _WEAK,
    ),
    (
        "fail failed failure failures bug bugs fix outage regression deadlock leak",
        r"(?! (?:tracker|bounty|report template|statement|set)\b)",
        "troubleshoot",
        _WEAK,
    ),
    ("issue issues problem problems trouble", r" (?:with|when|while)\b", "troubleshoot", _LIKELY),
    # comparison
    ("vs versus", r"", "comparison", _SURE),
    ("difference differences", r" (?:between|in|of)\b", "comparison", _SURE),
    ("differ differs", r" (?:from|between)\b", "comparison", _LIKELY),
    ("how", r" (?:do|does|did|is|are) [^?.!]{1,80}\b(?:compare|differ|different from)\b", "comparison", _SURE),
    ("compare comparing comparison contrast", r"", "comparison", _FORM),
    ("compared", r" (?:to|with)\b", "comparison", _LIKELY),
    ("pros", r" and cons\b", "comparison", _FORM),
    ("better worse faster slower cheaper safer simpler easier", r" than\b", "comparison", _LIKELY),
    (
        "which",
        rf"(?: [a-z]+)? (?:is|are|was|would be|should|performs|works|do|does)\b[^?.!]{{0,80}}\b{_BETTER}",
        "comparison",
        _FORM,
    ),
    ("should", r" (?:i|we|you) [^?.!]{1,80} or (?!not\b)\w", "comparison", _LIKELY),
    ("or", r" [^.!]{1,80}\bwhich\b", "comparison", _LIKELY),
    ("advantage advantages benefits", r" of [^?.!]{1,60} (?:over|versus|compared)\b", "comparison", _FORM),
    ("instead", r" of\b", "comparison", _WEAK),
    ("rather", r" than\b", "comparison", _WEAK),
)


_WORD = r"[a-z]+(?:'[a-z]+)?"
_PREAMBLE = (
    r"(?:(?:hey|hi|hello|so|and|but|ok|okay|well|please|also|in|on|at|from|to|then|now|again|(?:quick )?question|"
    r"(?:can|could|would|will) you(?: please)?|(?:do|does) (?:you|anyone|anybody) (?:know|remember|recall)|"
    r"(?:please )?tell me|remind me|i(?:'d like| want| need)? (?:to )?(?:know|wonder|understand)|i'm wondering|"
    r"give me|list|find|what is|what are|the)[,:!]? )*"
)
_OTHER_FORM = r"(?:when|who|whose|whom|how (?:many|much|old|long|often|far|big))\b"


class _Cue(NamedTuple):
    follows: str
    intent: IntentName
    strengths: tuple[float, float]


def detect(text: str) -> Intent:
    """The intent of a question with its confidence; general with confidence 0 if there is no cue."""
    text = " ".join(text[:READ_CHARS_MAX].lower().replace("’", "'").split())
    text = text.replace("what's", "what is").replace("where's", "where is")
    found: dict[IntentName, float] = {}
    begun = _compiled(_PREAMBLE).match(text)
    beginning = begun.end() if begun else 0
    for word in _compiled(_WORD).finditer(text):
        for follows, intent, strengths in _cues().get(word[0], ()):
            strength = strengths[word.start() > beginning]
            if strength > found.get(intent, 0) and _compiled(follows).match(text, word.end()):
                found[intent] = strength
    if not found:
        return _in_another_language(text)
    if _compiled(_OTHER_FORM).match(text, beginning):
        found = {each: min(strength, _WEAK[0]) for each, strength in found.items()}
    ranked = sorted(found, key=lambda each: (-found[each], _ORDER.index(each)))
    rival = found[ranked[1]] if len(ranked) > 1 else 0.0
    return Intent(ranked[0], round(min(found[ranked[0]], _SURE[0]) - _RIVALRY * rival, 2))


def _in_another_language(text: str) -> Intent:
    about = known(language_of(text))
    for intent, pattern in about.intents.items() if about else ():
        if cue := _compiled(pattern).search(text):
            return Intent(intent, _FORM[cue.start() > 0])
    return GENERAL


_compiled = cache(re.compile)  # on first use: all together take milliseconds, and a question needs few of them


@cache
def _cues() -> Mapping[str, Sequence[_Cue]]:
    """The cues by their first word."""
    cues: dict[str, list[_Cue]] = defaultdict(list)
    for beginnings, follows, intent, strengths in _LINES:
        for word in beginnings.split():
            cues[word].append(_Cue(follows, intent, strengths))
    return dict(cues)

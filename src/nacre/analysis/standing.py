"""What is worth knowing in every later conversation: lasting preferences and needs of people, and instructions.

A memory of a sentence or two is recognised by its words, in English, German, French and Spanish. Precision comes before
recall: statements about systems, questions, single events, code and logs are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

Standing: TypeAlias = Literal["preference", "instruction"]

CHARS_MAX = 420  # a longer text is a report, in which a preference is one thing among others
WORDS_MAX = 60
SENTENCES_MAX = 5


class _When(NamedTuple):
    """A pattern, and its cues: a sentence without any of these words is not compared with it."""

    cues: str
    pattern: str


class _Language(NamedTuple):
    """Patterns of one language. `<name>` in a pattern stands for the part of that name."""

    parts: Mapping[str, str]
    once: str  # words of a single occasion: a sentence with one of them states nothing lasting, but for needs
    needs: Sequence[_When]
    tastes: Sequence[_When]
    orders: Sequence[_When]


# ---------------------------------------------------------------- English

_ENGLISH = _Language(
    parts={
        "no person": (
            "Nobody|Nothing|Everyone|Everybody|Everything|Someone|Somebody|Anyone|People|Who|Whoever|It|This|That|"
            "There|The|These|Those|Here|What|When|If|Git|Github|Gitlab|Postgres|Postgresql|Mysql|Sqlite|Redis|Nginx|"
            "Apache|Docker|Kubernetes|Linux|Windows|Macos|Android|Chrome|Firefox|Safari|Python|Java|Javascript|"
            "Typescript|Rust|Go|Ruby|Node|React|Django|Kafka|Terraform|Ansible|Jenkins|Excel|Outlook|Google|"
            "Microsoft|Apple|Amazon|Stripe|Slack|Production|Staging|Server|Service|Scheduler|Parser|Compiler|Client|"
            "App|Dinner|Lunch|Breakfast|Dessert|Soup|Menu|Food|Cake|Curry|Lasagn[ea]|Wine"
        ),
        "name": r"(?-i:(?!(?:<no person>)\b)[A-ZÀ-Þ][a-zß-ÿ]+(?:-[A-ZÀ-Þ][a-zß-ÿ]+)?(?: [A-ZÀ-Þ][a-zß-ÿ]+)?)",
        "close": (
            "wife|husband|partner|girlfriend|boyfriend|spouse|mother|father|mum|mom|dad|parents|sons?|daughters?|"
            "sisters?|brothers?|child|children|kids?|boss|manager|colleagues?|friends?|roommate|flatmate|grandma|"
            "grandpa|grandmother|grandfather|aunt|uncle|cousin|niece|nephew|clients?|customers?|dogs?|cats?|doctor|"
            "teacher|neighbou?rs?|girls|boys|baby|toddler|twins|landlord|landlady|in-laws|mother-in-law|"
            "father-in-law|family|user|guests?|tenant|patient|student|teammate"
        ),
        "who": (
            r"(?:\b(?:he|she)|<at>(?:<name>(?:(?:,| and| &) <name>)?(?: \([^()]{1,30}\))?|(?:my|our|his|her|their|"
            r"the) (?:\w+ )?(?:<close>)(?: <name>)?|mum|mom|dad|grandma|user))"
        ),
        "at": r"(?:^|[:;,(–—-] ?|\b(?:and|but|because|since|so|note) )",
        "start": "(?:^|[:;] ?|[–—-] )(?:please,? )?",
        "I": r"(?<!thing )(?<!things )(?<!what )(?<!that )\bI",
        "very": (
            "(?:(?:really|absolutely|just|also|still|always|generally|usually|much|strongly|totally|simply|"
            "especially|very|particularly|so|definitely|truly|honestly|actually|personally|both|only|strictly|"
            "severely|highly|deeply) ){0,2}"
        ),
        # What somebody likes in general, and not the one thing that is talked about.
        "general": (
            "(?!(?:the|this|that|these|those|it|its|your|you|him|her|hers|them|his|their|us|our|my|me|how|what|when|"
            "where|who|which|why|all|every|everything|each|both|some|any|anything|and|but|or|so|too|about|from|for|"
            "by|with|one|two|three|several|someone|is|are|was|makes|seeing|hearing|knowing|having|getting|sharing|"
            "if|as|even|more|most|another|nothing|not|hanging|catching|chatting|talking|being (?:able|in|at|on|"
            r"there|here|part)|\w+ing (?:him|her|them|it|this|that|you|your|their|his)|to (?:see|hear|know|have|get|"
            r"""help|be|think|say|join|try|come|check|chat|share))\b)[\w"'“]"""
        ),
        "not": "(?:do not|don't|does not|doesn't|never|no longer|cannot|can't|can not|won't|will not|must not|mustn't)",
        "weekday": "(?:mon|tues|wednes|thurs|fri|satur|sun)days?",
        "food": "(?:dairy|gluten|nuts|alcohol|caffeine|sugar|meat|pork|milk|lactose)",
        # What one does, or does not do, as a rule.
        "doing": (
            "eat|drink|smoke|fly|drive|cook|wear|use|travel|train|work (?:on )?<weekday>|tolerate|celebrate|speak|"
            "work (?:weekends|nights|before|after)|answer (?:the phone|calls)|do (?:night|early|late) shifts|board|"
            "swim|climb|lift|have <food>"
        ),
        # What only a person does: a project has a name, too, and "uses" and "reads" things.
        "does": (
            "eats|drinks|smokes|flies|drives|cooks|wears|travels|speaks|sits|sleeps|trains|orders|wants|buys|"
            "reads (?:e-?mail|mail|messages|news)|answers (?:e-?mail|mail|calls|messages|before|after|the phone)|"
            "works (?:from|on|nights|mornings|afternoons|part)|pays (?:cash|by|in)|takes (?:the|a) (?:train|bus|"
            "stairs|bike|aisle|window)"
        ),
        "do": (
            "eat|drink|smoke|fly|drive|cook|wear|use|take|travel|train|work|speak|read|answer|buy|pay|write|book|"
            "sign|go to bed|get up|round"
        ),
        "state": (
            "vegan|vegetarian|pescatarian|coeliac|celiac|diabetic|pregnant|breastfeeding|(?:lactose|"
            "gluten)[- ]intolerant|(?:red-green )?colou?r[- ]?blind|dyslexic|deaf|hard of hearing|left-handed|"
            "claustrophobic|asthmatic|epileptic|teetotal|autistic|an? (?:vegetarian|vegan|diabetic|coeliac|celiac|"
            "early bird|night owl|morning person|lefty)|(?:allergic|intolerant) to"
        ),
        "illness": (
            r"(?:an? )?(?:(?:\w+[- ]){0,2}(?:allergy|allergies|intolerance)(?! (?:clinic|pill|test|season|medic|"
            "appoint|doctor|shot))|(?:type [12] )?diabetes|asthma|co?eliac disease|(?:fear|phobia) of|"
            r"claustrophobia|dyslexia|epilepsy|arachnophobia)\b"
        ),
        "fear": (
            "flying|heights|dogs|cats|spiders|snakes|the dark|needles|water|lifts|elevators|enclosed|crowds|thunder|"
            "bees|wasps|horses|birds|mice|rats|clowns|driving|deep water|dentists|blood"
        ),
        "language": (
            "(?:(?:formal|informal|simple|plain|british|american) )?(?:german|english|french|spanish|italian|"
            "portuguese|dutch|polish|swedish|danish|norwegian|finnish|czech|turkish|greek|russian|ukrainian|arabic|"
            "hebrew|hindi|chinese|mandarin|japanese|korean|catalan|romanian|hungarian|vietnamese|thai)"
        ),
        "order": (
            "abbreviate|add|address|answer|apologi[sz]e|ask|assume|attach|back up|book|buy|call|charge|check|choose|"
            "cite|cc|commit|confirm|contact|convert|copy|delete|deploy|disturb|double-check|drop|edit|e-?mail|enter|"
            "explain|feed|force-push|format|give(?! up)|include|invite|keep|label|leave|let|link|log|mail|make|"
            "mention|merge|message|name|offer|omit|order|phone|ping|pin|plan|post|promise|propose|publish|push|put|"
            "quote|recommend|remind|remove|rename|reply|respond|reveal|review|round|schedule|send|serve|share|ship|"
            "show|sign|speak|spell|squash|store|suggest|summari[sz]e|talk|tell|test|text|touch|translate|use|verify|"
            "wake|wear|write"
        ),
        # Without those that are mostly said of one thing, as in "don't touch that".
        "dont": (
            "abbreviate|address|apologi[sz]e|assume|book|call|cc|cite|contact|disturb|e-?mail|force-push|include|"
            "interrupt|invite|mail|mention|message|offer|phone|ping|post|propose|publish|put|quote|recommend|remind|"
            "reply|respond|schedule|send|serve|share|sign|speak|suggest|text|translate|use|wake|write"
        ),
        "way": (
            "tabs|spaces|(?:two|four) spaces|metric|imperial|celsius|fahrenheit|kilomet(?:re|er)s|km|miles|euros|"
            "dollars|(?:the )?24[- ]hour|iso dates|(?:british|american|uk|us) (?:spelling|english)|plain (?:english|"
            "language|text)|simple (?:english|language|words)|type hints|bullet points|markdown|short (?:sentences|"
            "answers|words)|emojis?|formal|informal|my (?:first|last|full|nick)|they/them|she/her|he/him|"
            "gender-neutral|inclusive|dark mode|(?:single|double) quotes|snake_case|camelcase|conventional commits"
        ),
        "banned": (
            "meetings?|(?:phone |video )?calls?|e-?mails?|messages|appointments?|bookings|deploys?|deployments|"
            "releases|caffeine|coffee|alcohol|meat|pork|beef|fish|seafood|shellfish|sugar|dairy|milk|gluten|nuts|"
            "peanuts|eggs|onions|garlic|emojis?|jargon|slang|tables|bullet points|exclamation marks|small talk|"
            "spoilers|night shifts|flights|stairs|(?:push )?notifications|perfume|gifts|surprises|photos|"
            "abbreviations|markdown"
        ),
        "money": (
            r"(?:[€$£]\s?\d[\d.,]*|\d[\d.,]*\s?(?:€|\$|£|(?:euros?|eur|dollars?|usd|pounds?|quid|francs?|chf|zł|"
            r"bucks)\b))"
        ),
        "most": r"(?:at most|no more than|not more than|max\.?|maximum|up to|under|below|less than)",
        "reply": "(?:answers?|replies|messages|e-?mails|explanations|summaries|responses|texts)",
    },
    once=(
        r"\b(?:today|tonight|tomorrow|yesterday|this (?:week|weekend|month|morning|afternoon|evening|time|year|round|"
        "sprint)|next (?:week|weekend|month|time|year|sprint|<weekday>)|last (?:night|week|month|year|time|"
        "<weekday>)|right now|for now|at the moment|until|till|yet|ago|used to|back then|back when|as a (?:kid|"
        r"child)|growing up|\d{1,2}(?:st|nd|rd|th)? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*|"
        r"\d{4}-\d\d-\d\d)\b"
    ),
    needs=(
        _When(
            "vegan vegetarian pescatarian coeliac celiac diabetic pregnant breastfeeding intolerant blind "
            "colorblind colourblind dyslexic deaf hearing handed claustrophobic asthmatic epileptic teetotal "
            "autistic allergic owl bird lefty morning",
            r"(?:\bI(?:'m| am)|<who>(?:'s| is| are)) <very>(?:<state>)\b",
        ),
        _When("allergic intolerant", r"^(?:[\w ]{1,30}: )?<very>(?:allergic|intolerant) to \w"),
        _When(
            "allergy allergies intolerance diabetes asthma coeliac celiac phobia fear claustrophobia dyslexia epilepsy",
            r"(?:\bI(?:'ve got| have| suffer from|'ve)|<who> (?:has|have|suffers? from|(?:was|"
            "got) diagnosed with)) <illness>",
        ),
        _When(
            "kosher halal vegan vegetarian gluten",
            r"(?:\bI|<who>) (?:eats?|keeps?) <very>(?:kosher|halal|vegan|vegetarian|gluten-free)\b",
        ),
        _When("diet", r"(?:\bI(?:'m| am)|<who>(?:'s| is)) on an? (?:\w+[- ]){1,3}diet\b"),
        _When(
            "wheelchair",
            r"(?:\bI|<who>) (?:uses?|needs?|am in|is in|has been using|have been using) a wheelchair\b",
        ),
        _When(
            "sick carsick seasick airsick",
            r"(?:\bI get|\bI(?:'m| am)|<who> (?:gets|is)) <very>(?:badly |easily )?(?:car|sea|air|motion)[- ]?sick\b",
        ),
        _When(
            "afraid scared terrified frightened",
            r"(?:\bI(?:'m| am)|<who>(?:'s| is)) (?:\w+ )?(?:afraid|scared|terrified|frightened) of (?:<fear>)\b",
        ),
        _When(
            "mustn must allowed",
            r"(?:\bI|<who>) (?:mustn't|must not|(?:am|is|are) not allowed to|(?:isn't|aren't) allowed to) (?:eat|"
            r"drink|smoke|fly|drive|wear|travel|train|swim|climb|lift|have <food>|do (?:night|early|late) shifts)\b",
        ),
        _When("consent", r"<who> (?:do not|don't|does not|doesn't|did not|didn't) consent to\b"),
        _When("he/him she/her they/them", r"\b(?:he|she|they)/(?:him|her|them)\b"),
    ),
    tastes=(
        _When("prefer", r"\b(?:I|we) <very>prefer <general>"),
        _When(
            "prefer rather",
            r"\b(?:I|he|she)(?:'d| would) (?:much )?(?:prefer|rather) (?!(?:not|say|show|tell|ask|wait|just|die|"
            r"be here|have been)\b)\w",
        ),
        _When(
            "prefers rather insists dislikes detests stand hates loathes refuses",
            "<who> <very>(?:prefers|would rather|insists on|dislikes|detests|can't stand|cannot stand|hates|loathes|"
            r"refuses)\b(?! (?:it|this|that)\b)",
        ),
        _When(
            "love like enjoy adore hate dislike detest loathe despise",
            "<I> <very>(?:love|like|enjoy|adore|hate|dislike|detest|loathe|despise) <general>",
        ),
        _When(
            "stand bear deal cope",
            r"(?:\bI|<who>) <very>(?:can't|cannot) (?:stand|bear|deal with|cope with) <general>",
        ),
        _When(
            "like enjoy care",
            "<I> (?:really )?(?:do not|don't) (?:really |particularly )?(?:like|enjoy|care for) <general>",
        ),
        _When("refuse", r"\bI refuse to (?:<doing>|stand|wait|pay|go)\b"),
        _When("loves likes enjoys adores", "<who> <very>(?:loves|likes|enjoys|adores) <general>"),
        _When(
            "fan fond into passionate keen crazy obsessed",
            r"(?:\bI(?:'m| am)|<who>(?:'s| is)) (?:not |really |also |such )*(?:an? )?(?:huge |big |great |"
            "massive )?(?:fan of|fond of|into|passionate about|keen on|crazy about|obsessed with) <general>",
        ),
        _When(
            "favourite favorite",
            r"\b(?:my|his|her|our) (?:all-time |absolute )?favou?rite \w+(?: \w+)? (?:is|are)\b(?! (?:when|that|how|"
            r"this))|^(?:[\w ]{1,30}: )?favou?rite \w+(?: \w+)?: \w",
        ),
        _When(
            "seat",
            r"\b(?:aisle|window) seats?\b.{0,20}\b(?:always|please|prefer)|\b(?:always|prefers?)\b.{0,20}\b(?:aisle|"
            "window) seat",
        ),
        _When(
            "eat drink smoke fly drive cook wear use travel train work tolerate celebrate speak answer shifts board "
            "swim",
            r"\bI (?:do not|don't|never|no longer) (?:<doing>)\b(?! (?:it|this|that|the|much|long|enough|well)\b)",
        ),
        _When(
            "eat drink tolerate climb dairy gluten nuts alcohol caffeine sugar meat pork milk lactose",
            r"(?:\bI|<who>) (?:cannot|can't|can not|won't) (?:have <food>|climb stairs|(?:eat|drink|"
            "tolerate) <general>)",
        ),
        _When(
            "eat drink smoke fly drive board celebrate shifts work",
            r"(?:<who>|\bwe) <not> (?:eat|drink|smoke|fly|drive|board|celebrate|do night shifts|"
            r"work (?:on )?<weekday>)\b",
        ),
        _When(
            "always never only",
            r"\bI (?:(?:always|never) (?:want|need|choose|avoid|skip|order|sit|sleep|<do>)|only (?:<do>))\b|"
            r"<who> (?:always|never|only) (?:<does>)\b",
        ),
        _When("always never only", r"\bwe (?:always|never|only) (?:eat|drink|buy|cook|fly|speak|celebrate)\b"),
        _When(
            "wants",
            r"<who> wants (?!the |this |that |an? )(?:\w+ ){1,3}(?:as an?|in writing|in person|by (?:e-?mail|phone|"
            r"text|post))\b",
        ),
        _When("budget", r"\b(?:my|our) budget (?:for [\w' ]{1,30} )?is (?:\w+ ){0,2}<money>"),
        _When("spend pay", r"\b(?:I|we) (?:can|want to|will|would) (?:only )?(?:spend|pay) <most> <money>"),
        _When(
            "spend pay spends pays",
            r"\b(?:(?:I|we) (?:don't|do not|won't|can't|cannot) (?:want to )?(?:spend|pay)|(?:nobody|"
            r"no one) (?:spends|pays)) more than \w",
        ),
    ),
    orders=(
        _When(
            "call",
            r"\bcall me (?-i:(?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|(?:If|When|Back|Later|At|On|A|"
            r"""After)\b)["'“]?[A-ZÀ-Þ]\w+)""",
        ),
        _When("pronouns go", r"\b(?:my pronouns (?:are|:)|(?:preferred )?pronouns:|I go by) \S"),
        _When("always never", r"<start>(?:always|never) (?-i:(?:<order>)\b)(?! (?:and|but)\b)"),
        _When("please", r"\bplease,? (?:always|never|only) (?:<order>)\b"),
        _When("don not", r"(?:<start>|\bplease,? )(?:don't|do not) (?:ever )?(?:<dont>)\b(?! (?:that|this|it|to)\b)"),
        _When(
            "no",
            r"<start>no (?:more )?(?:<banned>),? (?:on (?:<weekday>|weekends|weekdays)|before (?:\d|noon|nine|ten|"
            r"eight|lunch)|after (?:\d|noon|two|three|four|five|six|lunch)|for (?:me|him|her|us)\b|please\b|in my|"
            "at (?:night|weekends)|during)",
        ),
        _When("no", "<start>no (?:more )?(?:<banned>)(?:,? please)?[.!]?$"),
        _When("no", r"<start>no [\w` -]{2,40} in (?:anything|new code|client work|any of (?:my|our))\b"),
        _When(
            "answer reply respond write speak talk text translate",
            r"\b(?:answer|reply|respond|write|speak|talk|text|translate)(?: (?:to )?(?:me|him|her|them|us|everything|"
            r"back))?(?: only| always)? in <language>\b",
        ),
        _When(
            "please",
            r"\bplease,? (?:show|give|tell|write|quote|list|convert)\b.{1,50}\bin (?:<way>|writing|<language>)\b",
        ),
        _When(
            "keep",
            "<start>keep (?:it|(?:your |the |all )?<reply>) (?:very |as )?(?:(?:short|brief|concise|simple|formal|"
            r"informal|polite)\b|(?:under|below) [€$£\d]|to (?:one|two|three|a)\b)",
        ),
        _When(
            "brief concise blunt briefly short",
            r"<start>(?:be (?:brief|concise|blunt)|answer briefly|short answers(?: only)?)\b",
        ),
        _When("use write prefer", r"<start>(?:always )?(?:use|write with|prefer) (?:<way>)\b"),
        _When(
            "now forward henceforth",
            r"\b(?:from now on|going forward|henceforth),? (?:you|please|always|never|no|only|don't|do not|we|"
            r"(?:<order>))\b|<start>(?:<order>)\b[^?]{1,80}\b(?:from now on|going forward)\W*$",
        ),
        _When(
            "when whenever",
            "<start>when(?:ever)? you (?:draft|book|reply|answer|schedule|suggest|recommend|write to|(?:write|"
            r"send) (?:me |an? )?(?:e-?mail|mail|letter|message)s?)\b",
        ),
        _When(
            "rule policy convention",
            r"\b(?:house|group|team|family|club|office|company|support|kitchen) (?:rule|policy|convention)\b.{0,30}:",
        ),
        _When("exceptions", r"\bno exceptions(?:[.!,;]|$| for| without)"),
        _When(
            "anything whoever nobody nothing",
            r"\b(?:anything|whoever|nobody|nothing)\b[^.,;:?]{0,60}\b(?:has to|must|may|is allowed to) (?:be|go|have|"
            r"bring|wear|use|take|ask|sign)\b(?! been)",
        ),
    ),
)


# ---------------------------------------------------------------- German

_GERMAN = _Language(
    parts={
        "name": (
            "(?-i:(?!(?:Der|Die|Das|Es|Man|Wer|Jeder|Alle|Niemand|Keiner|Essen|Kuchen|Suppe|Menü|Buffet|Lasagne|"
            "Server|System|Postgres|Nginx|"
            r"Docker)\b)[A-ZÄÖÜ][a-zäöüß]+(?:-[A-ZÄÖÜ][a-zäöüß]+)?(?: [A-ZÄÖÜ][a-zäöüß]+)?)"
        ),
        "close": (
            "frau|mann|freundin|freund|mutter|mama|vater|papa|tochter|sohn|schwester|bruder|kind|chefin|chef|"
            "kollegin|kollege|oma|opa|tante|onkel|nachbarin|nachbar|kundin|kunde|hund|katze|partnerin|partner|"
            "schwiegermutter"
        ),
        "who": (
            r"(?:^|[:;,–—-] ?|\b(?:und|aber|weil|denn) )(?:er|sie|<name>|(?:meine?|unsere?|seine?|"
            "ihre?) (?:<close>)(?: <name>)?)"
        ),
        "start": "(?:^|[:;] ?|[,–—-] )(?:bitte,? )?",
        "state": (
            r"(?:\w+ )?allergisch (?:gegen|auf)|vegan|veganer(?:in)?|vegetarier(?:in)?|schwanger|diabetiker(?:in)?|"
            "laktoseintolerant|linkshänder(?:in)?|farbenblind|gehörlos|schwerhörig|legastheniker(?:in)?"
        ),
        "general": (
            r"(?!(?:dich|euch|sie|ihn|es|das|den|die|dies\w*|ihre?n?|seine?n?|deine?n?|eure?n?|wie|wenn|"
            r"nicht mehr)\b)\w"
        ),
        "meat": (
            r"(?:fleisch|fisch|schwein\w*|alkohol|kaffee|milch\w*|gluten|nüsse|zucker|eier|käse|laktose|weizen|"
            "koriander)"
        ),
        "language": "(?:deutsch|englisch|französisch|spanisch|italienisch|polnisch|türkisch|schwedisch|niederländisch)",
        "banned": (
            "termine?|meetings?|besprechungen|anrufe?|mails?|e-mails|nachrichten|deployments?|kaffee|alkohol|"
            "fleisch|emojis?|nüsse|abkürzungen|überraschungen|tabellen|fremdwörter|anglizismen"
        ),
        "order": (
            "antworten?|antworte|schreiben?|schreibe|nutzen?|nutze|verwenden?|verwende|benutzen?|benutze|anrufen|"
            "ruf|rufen|schicken?|schicke|buchen?|buche|planen?|plane|fragen?|frage|duzen|siezen|angeben|nennen|"
            "erwähnen|hinzufügen|bestellen?|stören|committen|pushen|mergen|deployen|löschen"
        ),
        "money": r"\d[\d.,]*\s?(?:€|(?:euro|eur|franken|chf)\b)",
    },
    once=(
        r"\b(?:heute|morgen (?:früh|abend|mittag)|gestern|diese[rsnm]? (?:woche|monat|jahr|mal|wochenende)|"
        "nächste[rsnm]? (?:woche|monat|jahr|mal)|letzte[rsnm]? (?:woche|monat|jahr|mal)|gerade|momentan|bis|früher|"
        r"damals|\d{1,2}\. ?(?:\d{1,2}\.|jan|feb|mär|apr|mai|jun|jul|aug|sep|okt|nov|dez))"
    ),
    needs=(
        _When(
            "allergisch vegan veganer veganerin vegetarier vegetarierin schwanger diabetiker diabetikerin "
            "laktoseintolerant linkshänder linkshänderin farbenblind gehörlos schwerhörig legastheniker",
            r"(?:\bich bin|<who> ist) (?:<state>)\b",
        ),
        _When(
            "allergie nussallergie unverträglichkeit laktoseintoleranz zöliakie flugangst höhenangst platzangst "
            "diabetes asthma glutenunverträglichkeit laktoseunverträglichkeit erdnussallergie hausstauballergie "
            "pollenallergie",
            r"(?:\bich habe|<who> hat) (?:eine? )?(?:starke )?(?:\w*allergie|\w*unverträglichkeit|zöliakie|flugangst|"
            r"höhenangst|platzangst|diabetes|asthma|laktoseintoleranz)\b",
        ),
        _When("vertrage verträgt", r"(?:\bich vertrage|<who> verträgt) (?:\w+ )?(?:keine?n?\b|\w+ nicht)"),
        _When(
            "rollstuhl",
            r"(?:\bich sitze|<who> sitzt|\bich bin|<who> ist) (?:\w+ )?(?:im rollstuhl|auf (?:einen|den) rollstuhl)",
        ),
        _When(
            "vegan vegetarisch koscher halal glutenfrei",
            r"(?:\bich|<who>) (?:esse|isst|lebe|lebt|ernähre mich|ernährt sich) (?:\w+ )?(?:vegan|vegetarisch|"
            r"koscher|halal|glutenfrei)\b",
        ),
        _When("allergisch allergie", r"^allergi(?:e|sch) (?:gegen|auf) \w"),
    ),
    tastes=(
        _When("bevorzuge bevorzugt", r"(?:\bich bevorzuge|<who> bevorzugt)\b"),
        _When("hasse liebe verabscheue", r"\bich (?:hasse|liebe|verabscheue) <general>"),
        _When("hasst liebt verabscheut", "<who> (?:hasst|liebt|verabscheut) <general>"),
        _When("mag", r"(?:\bich|<who>) mag (?:(?:gar|überhaupt|absolut|besonders|sehr|am liebsten) )?<general>"),
        _When(
            "lieber liebsten grundsätzlich immer nie niemals nur",
            r"(?:\bich|<who>) (?:esse|isst|trinke|trinkt|fahre|fährt|fliege|fliegt|arbeite|arbeitet|nehme|nimmt|"
            r"sitze|sitzt) (?:\w+ ){0,2}?(?:lieber|am liebsten|grundsätzlich|immer|nie|niemals|nur)\b",
        ),
        _When(
            "kein keine keinen",
            r"(?:\bich|<who>) (?:esse|isst|trinke|trinkt) (?:gar |überhaupt |absolut )?(?:kein|keine|keinen) <meat>",
        ),
        _When("ausstehen leiden", r"\bkann (?:\w+ ){1,3}nicht (?:ausstehen|leiden)\b"),
        _When("ist sind", r"\b(?:meine?|ihre?|seine?) lieblings\w+ (?:ist|sind)\b"),
        _When("budget", r"\b(?:mein|unser) budget (?:\w+ ){0,3}(?:ist|beträgt|liegt bei) (?:\w+ ){0,2}<money>"),
        _When(
            "höchstens maximal",
            r"\b(?:ich|wir) (?:will|wollen|möchte|möchten|kann|können) (?:höchstens|maximal) <money>",
        ),
    ),
    orders=(
        _When("nenn nennt nennen", r"\b(?:nenn|nennt|nennen sie) mich (?:bitte |einfach )?(?-i:[A-ZÄÖÜ]\w+)"),
        _When(
            "duze duz duzt duzen sieze siezen",
            r"\b(?:duze?|duzt|siezen sie|sieze?) mich\b|\bbitte (?:immer )?(?:duzen|siezen)\b",
        ),
        _When("bitte", r"\bbitte (?:immer|nie|niemals|künftig|in zukunft|ab jetzt|ab sofort)\b"),
        _When("bitte", r"<start>bitte (?:nur|keine?n?) (?:<banned>)\b|\bbitte (?:nur )?auf <language>\b"),
        _When(
            "jetzt sofort künftig zukunft",
            "<start>(?:ab jetzt|ab sofort|künftig|in zukunft),? (?:bitte|immer|nie|nur|keine?n?|nicht mehr|"
            r"(?:<order>))\b",
        ),
        _When(
            "immer nie niemals nur stets künftig zukunft",
            r"<start>(?:<order>) (?:mir |uns |ihr |ihm )?(?:\w+ )?(?:immer|nie|niemals|nur|stets|künftig|"
            r"in zukunft)\b",
        ),
        _When("immer nie niemals", r"<start>(?:immer|niemals|nie) (?:\w+ ){0,5}(?:<order>)[.!]?$"),
        _When(
            "antworte antworten schreib schreibe schreiben sprich rede",
            r"\b(?:antworte|antworten sie|schreibe?|schreiben sie|sprich|rede)(?: \w+)?(?: bitte)?(?: immer|"
            r" nur)? auf <language>\b",
        ),
        _When(
            "kein keine keinen",
            r"<start>keine?n? (?:<banned>) (?:vor \d|nach \d|am (?:\w+tag|wochenende)|an \w+tagen|bitte|für mich|"
            "(?:mon|diens|donners|frei|sams|sonn)tags)",
        ),
        _When(
            "kurz kurze",
            r"<start>(?:fass dich kurz|halte? (?:es|dich|die antworten) (?:bitte )?kurz|kurze antworten)\b",
        ),
    ),
)


# ---------------------------------------------------------------- French

_FRENCH = _Language(
    parts={
        "name": (
            "(?-i:(?!(?:Le|La|Les|Un|Une|Il|Elle|Ce|Cela|Tout|Personne|On|"
            r"Serveur)\b)[A-ZÀ-Þ][a-zß-ÿ]+(?:-[A-ZÀ-Þ][a-zß-ÿ]+)?)"
        ),
        "close": (
            "femme|mari|mère|maman|père|papa|fille|fils|sœur|frère|copine|copain|chef|cheffe|collègue|ami|amie|"
            "voisin|voisine|cliente?|chien|chat|grand-mère|grand-père|compagne|compagnon|belle-mère"
        ),
        "who": (
            r"(?:^|[:;,–—-] ?|\b(?:et|mais|car) )(?:il|elle|<name>|(?:ma|mon|sa|son|notre|la|"
            "le) (?:<close>)(?: <name>)?)"
        ),
        "start": "(?:^|[:;] ?|[,–—-] )(?:(?:s'il (?:te|vous) plaît|svp|merci de),? )?",
        "state": (
            "allergique (?:à|au|aux)|végétarien(?:ne)?|végane?|vegan|végétalien(?:ne)?|enceinte|diabétique|cœliaque|"
            "intolérante? (?:à|au|aux)|daltonien(?:ne)?|gaucher|gauchère|sourde?|malentendante?|en fauteuil roulant"
        ),
        "general": (
            "(?:(?:le|la|les|du|de) |l')?(?!(?:ça|ce|cet|cette|ces|ton|ta|tes|votre|vos|son|sa|ses|que|quand|toi|"
            r"vous|lui|bien|mon|ma|mes|nouveau|nouvelle)\b)\w"
        ),
        "language": "(?:français|anglais|allemand|espagnol|italien|portugais|néerlandais|arabe)",
        "order": (
            "réponds|répondez|répondre|écris|écrivez|écrire|utilise|utilisez|utiliser|appelle|appelez|appeler|"
            "envoie|envoyez|envoyer|réserve|réservez|réserver|mets|mettez|mettre|ajoute|ajoutez|planifie|planifiez|"
            "propose|proposez|proposer|tutoie|tutoyez|vouvoie|demande|demandez|dis|dites"
        ),
        "money": r"\d[\d.,]*\s?(?:€|(?:euros?|eur|francs?)\b)",
    },
    once=(
        r"\b(?:aujourd'hui|demain|hier|ce (?:soir|matin|mois|week-end)|cette (?:semaine|année|fois)|"
        "semaine prochaine|mois prochain|semaine dernière|pour l'instant|en ce moment|jusqu|avant-hier|autrefois|"
        r"encore)\b"
    ),
    needs=(
        _When(
            "allergique végétarien végétarienne végane végan vegan végétalien végétalienne enceinte diabétique "
            "cœliaque intolérant intolérante daltonien daltonienne gaucher gauchère sourd sourde malentendant "
            "malentendante fauteuil",
            r"(?:\bje suis|<who> est) (?:très |gravement |aussi )?(?:<state>)",
        ),
        _When(
            "allergie intolérance peur diabète",
            r"(?:\bj'ai|<who> a) (?:une )?(?:allergie|intolérance|peur (?:de l'avion|du vide|des chiens|"
            "des araignées)|du diabète)",
        ),
        _When(
            "casher halal végétarien végane vegan gluten",
            r"(?:\bje|<who>) mange (?:\w+ )?(?:casher|halal|végétarien|végane?|sans gluten)\b",
        ),
        _When("allergique allergie", r"^allergi(?:e|que) (?:à|au|aux) \w"),
    ),
    tastes=(
        _When("préfère préférerais", r"(?:\bje|<who>) préfère\b|\bje préférerais\b"),
        _When(
            "déteste adore aime",
            r"(?:\bje déteste|\bj'adore|\bj'aime|<who> (?:déteste|adore|aime)) (?:beaucoup |vraiment |"
            "surtout )?<general>",
        ),
        _When("aime", r"(?:\bje|<who>) n'aime pas (?:du tout )?<general>"),
        _When("supporte", r"(?:\bje|<who>) ne supporte pas\b"),
        _When(
            "mange bois boit fume conduis conduit prends prend mangeons buvons",
            r"(?:\bje|<who>|\bnous) ne (?:mange|bois|boit|fume|conduis|conduit|prends|prend|mangeons|buvons) (?:pas|"
            r"jamais|plus)\b",
        ),
        _When("préféré préférée", r"\bm(?:on|a) \w+ préférée? est\b"),
        _When("budget", r"\b(?:mon|notre) budget est (?:\w+ ){0,3}<money>"),
    ),
    orders=(
        _When("appelle appelez", r"\b(?:appelle|appelez)-moi (?-i:[A-ZÀ-Þ]\w+)"),
        _When("tutoie tutoyez vouvoie vouvoyez", r"\b(?:tutoie|tutoyez|vouvoie|vouvoyez)-moi\b"),
        _When(
            "désormais dorénavant avenir maintenant",
            r"<start>(?:désormais|dorénavant|à l'avenir|à partir de maintenant),? (?:ne |il faut |(?:<order>)\b)",
        ),
        _When("toujours", r"<start>(?:<order>)(?:[- ](?:moi|lui|nous|leur))? toujours\b|<start>toujours (?:<order>)\b"),
        _When(
            "jamais pas",
            r"<start>(?:ne jamais|ne pas|jamais) (?:<order>)\b|<start>ne (?:me |m'|lui )?(?:<order>) (?:jamais|pas)\b",
        ),
        _When(
            "réponds répondez écris écrivez parle parlez",
            r"\b(?:réponds|répondez|écris|écrivez|parle|parlez)(?:-moi|-lui)?(?: toujours)? en <language>\b",
        ),
        _When(
            "pas",
            "<start>pas de (?:réunions?|rendez-vous|appels?|viande|café|alcool|porc|[ée]mojis?|noix|gluten|"
            r"surprises?) (?:avant \d|après \d|le (?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|week-end)|"
            "pour moi|s'il|svp)",
        ),
        _When(
            "bref brève concis concise court",
            r"<start>(?:(?:sois|soyez) (?:bref|brève|concise?)|(?:fais|faites) court)\b",
        ),
    ),
)


# ---------------------------------------------------------------- Spanish

_SPANISH = _Language(
    parts={
        "name": r"(?-i:(?!(?:El|La|Los|Las|Un|Una|Eso|Esto|Todo|Nadie|Servidor)\b)[A-ZÀ-Þ][a-zß-ÿ]+)",
        "close": (
            "mujer|marido|esposa|esposo|madre|mamá|padre|papá|hija|hijo|hermana|hermano|novia|novio|jefa|jefe|amiga|"
            "amigo|vecina|vecino|clienta?|perro|gato|abuela|abuelo|suegra|suegro|compañera|compañero|colega"
        ),
        "who": (
            r"(?:^|[:;,–—-] ?|\b(?:y|pero|porque) )(?:él|ella|<name>|(?:mi|su|nuestra|nuestro|la|"
            "el) (?:<close>)(?: <name>)?)"
        ),
        "start": "(?:^|[:;] ?|[,–—-] )(?:por favor,? )?",
        "state": (
            "(?:muy )?alérgic[oa] (?:a|al)|vegetarian[oa]|vegan[oa]|diabétic[oa]|celíac[oa]|intolerante (?:a|al)|"
            "daltónic[oa]|zurd[oa]|sord[oa]"
        ),
        "general": r"(?!(?:que|eso|esto|ese|esa|este|esta|cuando|cómo|tu|tus|su|sus|verte|saber)\b)\w",
        "dont": "llames|reserves|pongas|propongas|programes|menciones|escribas|uses|envíes|invites|mandes",
        "language": "(?:español|inglés|alemán|francés|italiano|portugués|catalán|gallego|euskera)",
        "order": (
            "responde|responda|responder|contesta|contestar|escribe|escriba|escribir|usa|use|usar|utiliza|utilice|"
            "llama|llames|llamar|envía|envíe|enviar|reserva|reserve|reserves|reservar|pon|ponga|pongas|poner|añade|"
            "añadir|propón|propongas|proponer|programes|programar|menciones|mencionar|pregunta|preguntar"
        ),
        "money": r"\d[\d.,]*\s?(?:€|(?:euros?|eur|pesos|dólares)\b)",
    },
    once=(
        r"\b(?:hoy|(?<!la )mañana|ayer|esta (?:semana|noche|tarde|vez|mañana)|este (?:mes|año|fin)|próxim[oa]|"
        r"pasad[oa]|ahora mismo|por ahora|hasta|todavía|antes me)\b"
    ),
    needs=(
        _When(
            "alérgico alérgica vegetariano vegetariana vegano vegana diabético diabética celíaco celíaca "
            "intolerante daltónico daltónica zurdo zurda sordo sorda",
            r"(?:\bsoy|<who> es) (?:<state>)",
        ),
        _When("embarazada", r"(?:\bestoy|<who> está) embarazada\b"),
        _When(
            "alergia intolerancia diabetes asma miedo",
            r"(?:\btengo|<who> tiene) (?:una? )?(?:alergia|intolerancia|diabetes|asma|miedo (?:a volar|a las alturas|"
            "a los perros))",
        ),
        _When(
            "kosher halal vegetariano vegano gluten",
            r"(?:\bcomo|<who> come) (?:\w+ )?(?:kosher|halal|vegetariano|vegano|sin gluten)\b",
        ),
        _When("ruedas", r"(?:\buso|<who> usa|\bvoy en|<who> va en) (?:una )?silla de ruedas\b"),
        _When("alergia alérgico alérgica", r"^alérgi(?:a|c[oa]) (?:a|al) \w"),
    ),
    tastes=(
        _When("prefiero prefiere", r"\bprefiero\b|<who> prefiere\b"),
        _When("odio odia detesto detesta", r"(?:\bodio|\bdetesto|<who> (?:odia|detesta)) <general>"),
        _When("gusta gustan", r"\bno (?:me|le) (?:gusta|gustan) (?:nada )?<general>"),
        _When("soporto soporta", r"\bno soporto\b|<who> no soporta\b"),
        _When("encanta encantan gusta gustan", r"\b(?:me|le) (?:encanta|encantan|gusta mucho|gustan mucho) <general>"),
        _When(
            "como bebo fumo conduzco come bebe fuma conduce",
            r"(?:\bno (?:como|bebo|fumo|conduzco)|<who> no (?:come|bebe|fuma|conduce)) (?!(?:nada|mucho|en|si|antes|"
            r"siempre|ahora|tú|yo|el|la|un|una)\b)\w",
        ),
        _When("nunca siempre", r"\b(?:nunca|siempre) (?:como|bebo|tomo|uso|viajo|llevo|pido|reservo|escribo)\b"),
        _When("favorito favorita", r"\bmi \w+ favorit[oa] es\b"),
        _When("presupuesto", r"\b(?:mi|nuestro) presupuesto es (?:\w+ ){0,3}<money>"),
    ),
    orders=(
        _When("llámame llámeme", r"\b(?:llámame|llámeme) (?-i:[A-ZÀ-Þ]\w+)"),
        _When("tutéame tráteme", r"\btutéame\b|\btráteme de usted\b"),
        _When(
            "adelante ahora",
            r"<start>(?:de ahora en adelante|a partir de ahora|en adelante),? (?:no |nunca |siempre |(?:<order>)\b)",
        ),
        _When("siempre", r"<start>(?:<order>)(?:me)? siempre\b|<start>siempre (?:me |le )?(?:<order>)\b"),
        _When("nunca jamás no", r"<start>(?:nunca|jamás|no) (?:me |le )?(?:<dont>)\b(?! (?:eso|esto)\b)"),
        _When(
            "responde responda respóndeme contesta escribe escríbeme habla háblame",
            r"\b(?:responde|responda|respóndeme|contesta|escribe|escríbeme|habla|háblame)(?: siempre|"
            r" me)? en <language>\b",
        ),
        _When(
            "sin nada",
            "<start>(?:sin|nada de) (?:reuniones|llamadas|carne|café|alcohol|cerdo|emojis|gluten|"
            "sorpresas) (?:antes de|después de|los (?:lunes|martes|miércoles|jueves|viernes|sábados|domingos)|"
            "para mí|por favor)",
        ),
        _When("breve cortas", r"<start>(?:sé breve|sea breve|respuestas cortas)\b"),
    ),
)

_LANGUAGES = (_ENGLISH, _GERMAN, _FRENCH, _SPANISH)


# ---------------------------------------------------------------- recognition

_WORD = re.compile(r"[^\W\d_]+(?:/[^\W\d_]+)*")
_NAMED = re.compile("<([A-Za-z ]+)>")
_SENTENCE_END = r"(?<=[.!?…])[\"')”]?\s+|\n+"
# Code, configuration and logs say "always" and "never" of machines.
_CODE = (
    r"(?m)```|[{};]\s*$|=>|->|\w\(\)|::|</|^\s*(?:#|//|/\*|--|\$|>|\[)|^\s*[\w.-]+\s*=|\b(?:ERROR|WARN|INFO|DEBUG|FATAL)\b"
    r"|^\d{4}-\d\d-\d\d[T ]\d\d:|^\s*(?:def|class|import|return|const|let|var|function|SELECT|INSERT)\b"
)


class _Rule(NamedTuple):
    """A pattern, and the words of a single occasion that make it void."""

    kind: Standing
    pattern: str
    once: str | None

    def matches(self, sentence: str) -> bool:
        return bool(_re(self.pattern).search(sentence)) and not (self.once and _re(self.once).search(sentence))


def standing_kind(text: str) -> Standing | None:
    """Whether a short text states a lasting preference or need of a person, or gives a lasting instruction."""
    if len(text) > CHARS_MAX:
        return None
    words = _WORD.findall(text.lower())
    rules = _rules_by_cue()
    if rules.keys().isdisjoint(words) or len(words) > WORDS_MAX:
        return None
    plain = text.replace("’", "'")
    sentences = _re(_SENTENCE_END).split(plain.strip())
    if len(sentences) > SENTENCES_MAX:
        return None
    kinds = {kind for each in sentences if not each.endswith("?") for kind in _kinds(each, rules)}
    if not kinds or _re(_CODE).search(plain):
        return None
    return "instruction" if "instruction" in kinds else "preference"


def _kinds(sentence: str, rules: Mapping[str, Sequence[_Rule]]) -> set[Standing]:
    worth_trying = {rule for word in _WORD.findall(sentence.lower()) for rule in rules.get(word, ())}
    return {rule.kind for rule in worth_trying if rule.matches(sentence)}


@cache
def _re(pattern: str) -> re.Pattern[str]:
    """Compiled on first use, because a process that only searches never needs it, and a text needs few."""
    return re.compile(pattern)


@cache
def _rules_by_cue() -> dict[str, list[_Rule]]:
    rules: dict[str, list[_Rule]] = {}
    for language in _LANGUAGES:
        once = _filled(language.once, language.parts)
        groups: tuple[tuple[Standing, Sequence[_When], str | None], ...] = (
            ("preference", language.needs, None),
            ("preference", language.tastes, once),
            ("instruction", language.orders, once),
        )
        for kind, listed, unless in groups:
            for cues, pattern in listed:
                rule = _Rule(kind, _filled(pattern, language.parts), unless)
                for cue in cues.split():
                    rules.setdefault(cue, []).append(rule)
    return rules


def _filled(pattern: str, parts: Mapping[str, str]) -> str:
    """The pattern without regard to case, each `<name>` replaced by its part."""

    def part(found: re.Match[str]) -> str:
        return _NAMED.sub(part, parts[found[1]])

    return f"(?i:{_NAMED.sub(part, pattern)})"

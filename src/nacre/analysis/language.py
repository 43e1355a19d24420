"""Is a text English? The models were trained on English, and what they say of other languages means little."""

from __future__ import annotations

import re
from functools import cache

from nacre.analysis import tokenizer

_WORD = re.compile(r"[^\W\d_]+")
_READ_CHARS = 300
_ENGLISH = frozenset(
    re.findall(
        r"\S+",
        """
    a about an and any are as at be been but by can could did do does for from had has have he her his how i if
    in is it its may my not of on or our out she should so some than that the their then there they this to up
    was we were what when where which who why will with would you your
    """,
    )
)
# Function words of German, Dutch, French, Spanish, Portuguese, Italian, Polish, Turkish and Swedish.
_OTHER = frozenset(
    re.findall(
        r"\S+",
        """
    aan al att au auch auf aus aux av avec bei bij bir ce ces cette che chez chi co com come como con cuál
    cuándo czy cómo da dans das de degli del dem den depuis der des desde det değil di dla dos dove du dónde een
    ein eine einem einen einer el elle elles en es est está están et eu för für gdzie gli het hoe hur ich ihr ik
    il ile ils im inte io ist için jak je jest jullie kiedy kim komt kto la laat las le les leur lo los ma med
    mes met mi mis mit mon mu mı na naar nach nas nasıl nel nell nella nerede nicht nie niet noch nog noi non
    nos nosotros nous nur não när nós och od oder onde ook op ora oraz os ou où par para pas per plus po por
    pour przez på qu qual quale quand quando quante que quel quelle quem qui quién quoi qué sa se seit ses seu
    siamo sie sind sinds się soll sollen som son sono sont su sua suo sur sus são są till uit um uma un una unas
    und une uno unos uns van ve vem vom von voor vous waar wann wanneer warum welche welcher welches wem wen wer
    werden wie wij wir wird wo wordt wurde ya yo za zaman zijn zum zur är über
    """,
    )
)
# These do not tell the language: English has them as other words, or people leave their accents out.
_ALSO = frozenset(
    re.findall(r"\S+", "am bin cual cuando die donde era esta fue habe haben hat man quien son war waren zu")
)


@cache
def foreign_function_words() -> frozenset[str]:
    """The function words of other languages than English, as tokens of queries that are not English."""
    return frozenset(token for word in _OTHER | _ALSO for token in tokenizer.query_tokens(word))


def is_english(text: str) -> bool:
    """Whether a text may be English: it has more function words of English than of other languages.

    A text without any is taken as English if its letters are.
    """
    words = [each.lower() for each in _WORD.findall(text[:_READ_CHARS])]
    english, other = sum(each in _ENGLISH for each in words), sum(each in _OTHER for each in words)
    if english or other:
        return english > other
    foreign = sum(not each.isascii() for each in words)
    return 2 * foreign <= len(words)

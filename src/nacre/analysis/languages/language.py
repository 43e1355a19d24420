"""What is known of one language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nacre.types.intents import IntentName


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """`stop_words` are the words that any text and any question may have.

    `stemmer` is the algorithm of Snowball that texts in this language are stemmed with beside the one of their script.
    `endings` are those that it misses, each with what takes its place before a word is stemmed. `articles` are parts
    that are written together with the word that follows, the longest first: a word is looked up without them, too.
    `prefixes` are single letters of that kind, of which a word may have several. `linking` is what may stand between
    the words of a compound, if compounds are written as one word. `intents` are patterns of what questions of a kind
    have, in lower case, the most specific kind first.
    """

    name: str
    stop_words: str
    stemmer: str | None = None
    endings: tuple[tuple[str, str], ...] = ()
    articles: tuple[str, ...] = ()
    prefixes: str = ""
    linking: tuple[str, ...] = ()
    intents: Mapping[IntentName, str] = field(default_factory=dict)

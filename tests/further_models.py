"""A further model for tests: what it knows of English, and of some German, each word by its English one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from nacre.embedders.hashing import Hashing

GERMAN = """wann when wird is das the nächste next treffen meeting der the die the gärtner gardeners wo where liegt is
schlüssel key für of den the keller cellar ist is unter under dem the blumentopf flowerpot hat has heizung heating"""
WORDS = dict(zip(GERMAN.split()[::2], GERMAN.split()[1::2], strict=True))


class Bilingual(Hashing):
    """Knows English and some words of German, and no Russian."""

    languages = frozenset({"en", "de"})

    def __init__(self, dimensions: int = 96) -> None:
        super().__init__(dimensions)
        self.asked: list[str] = []
        self.looked_at: list[str] = []

    def vocabulary_coverage(self, text: str) -> float:
        self.looked_at.append(text)
        return 0.2 if "Привет" in text else 1.0

    def embed_passages(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        english = [re.sub(r"\w+", lambda word: WORDS.get(word[0].lower(), word[0]), text) for text in texts]
        return super().embed_passages(english)

"""What is known of each language, one file each, named by its code of ISO 639-1. docs/languages.md says how to add one.

The lists of stop words are made from those of the PyPI package `stop-words` (BSD-3-Clause, see LICENSE) and added to.
English has a place of its own: `analysis/stopwords.py`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from nacre.analysis.languages.language import Language

CODES = (
    "ar", "bg", "ca", "cs", "da", "de", "el", "es", "fa", "fi", "fr", "he", "hi", "hu", "id", "it", "ja", "ko",
    "nl", "no", "pl", "pt", "ro", "ru", "sk", "sv", "tr", "uk", "vi", "zh",
)  # fmt: skip


@cache
def known(code: str | None) -> Language | None:
    """The language with this code, or None if nothing is known of it. Only its own file is read."""
    if code not in CODES:
        return None
    found: Language = import_module(f"nacre.analysis.languages.{code}").LANGUAGE
    return found

"""docs/languages.md says what the code knows."""

from __future__ import annotations

import re
from pathlib import Path

from nacre.analysis import language
from nacre.analysis.languages import CODES, known
from nacre.analysis.word_forms import inflects
from nacre.query import dates

PAGE = Path(__file__).parents[2] / "docs" / "languages.md"
ROW = re.compile(
    r"^\| ([A-Z]\w+) \| `([a-z]{2})` \| (script|n-grams) \| (yes|–) \| (yes|–) \| (yes|–) \| (yes|–) \|$", re.M
)
BY_SCRIPT_STEMMED = {"ru", "el", "hi"}  # by the tokenizer, whatever the language


def rows() -> dict[str, tuple[str, ...]]:
    return {code: (name, *rest) for name, code, *rest in ROW.findall(PAGE.read_text("utf-8"))}


def test_every_language_is_on_the_page() -> None:
    assert rows().keys() == {*CODES, "en"}


def test_the_page_says_what_is_known_of_each() -> None:
    by_ngrams = {code for script in ("latin", "cyrillic", "arabic") for code in language._scores(script).languages}
    for code, (name, recognised, stems, stop_words, intent, times) in rows().items():
        about = known(code)
        assert recognised == ("n-grams" if code in by_ngrams else "script"), name
        assert (stems == "yes") == (inflects(code) or code in {*BY_SCRIPT_STEMMED, "en"}), name
        assert (stop_words == "yes") == (about is not None or code == "en"), name
        assert (intent == "yes") == (code == "en" or (about is not None and bool(about.intents))), name
        assert (times == "yes") == (code in dates.LANGUAGES), name
        assert about is None or about.name == name

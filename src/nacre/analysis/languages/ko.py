"""Korean. Words are found by pairs of syllables; these pairs are particles and endings of verbs."""

from __future__ import annotations

from nacre.analysis.languages.language import Language

LANGUAGE = Language(
    name="Korean",
    stop_words="""
에서 에게 까지 부터 으로 에는 에도 이나 에서는 습니다 니다 입니다
합니다 었습 았습 있습 했습 됩니 하는 하고 이다 있는 있다
하다 무엇 어디 언제 누가 누구 어떻 어떤 왜요 얼마 은요 는지 인가 까요 나요 가요
""",
)

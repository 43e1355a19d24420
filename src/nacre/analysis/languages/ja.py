"""Japanese. Words are found by pairs of characters; these pairs are parts of words that any question may have."""

from __future__ import annotations

from nacre.analysis.languages.language import Language

LANGUAGE = Language(
    name="Japanese",
    intents={
        "troubleshoot": r"エラー|失敗|動かない|動きません|落ちる|不具合|障害",
        "comparison": r"違い|比較|比べ|どちらが",
        "how-to": r"方法|やり方|手順|どうやって|どうすれば|するには",
        "location": r"どこ|場所|どのファイル",
        "explanation": r"なぜ|どうして|理由",
    },
    stop_words="""
です ます した して いる ある こと もの から まで では には とは のは 何で 何が 何を 何と
どこ いつ だれ 誰が 誰で どの どれ なに なぜ すか ます ませ でし まし れた され てい った
たの るの うか ょう しょ という いう また その この あの それ これ
""",
)

"""Chinese. Words are found by pairs of characters; these pairs are parts of words that any question may have."""

from __future__ import annotations

from nacre.analysis.languages.language import Language

LANGUAGE = Language(
    name="Chinese",
    intents={
        "troubleshoot": r"错误|报错|失败|崩溃|无法|异常",
        "comparison": r"区别|相比|比较|哪个更|优缺点",
        "how-to": r"怎么(?!样|了|回事)|怎样|如何|步骤",
        "location": r"在哪|哪里|哪个(?:文件|目录)",
        "explanation": r"为什么|为何|原因",
    },
    stop_words="""
什么 怎么 哪里 哪个 哪些 哪一 多少 为什 什么时 时候 是谁 谁的 如何 是否 有没 没有 可以 我们
你们 他们 她们 它们 这个 那个 这些 那些 一个 是什 是哪 么时 个是 在哪 么是 何时 何地 几个
几年 为何 以及 因为 所以 但是 还是 或者 已经 就是 不是
""",
)

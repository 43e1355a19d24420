"""How many hits fit into a budget of tokens?"""

from __future__ import annotations

from collections.abc import Sequence

_BYTES_PER_TOKEN = 4  # of English with the usual tokenizers; other scripts have more bytes, and more tokens
_FRAME = 12  # tokens around a text: its id, its time, its score


def tokens(text: str) -> int:
    """About how many tokens a text costs."""
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN)


def fitting(texts: Sequence[str], budget: int | None) -> int:
    """How many of the first texts fit; the first always does."""
    if budget is None:
        return len(texts)
    spent = 0
    for number, text in enumerate(texts):
        spent += _FRAME + tokens(text)
        if spent > budget:
            return max(1, number)
    return len(texts)

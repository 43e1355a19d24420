"""Text between <private> and </private>, which is never stored.

In doubt a part is private: an opening tag without a closing one reaches to the end of the text, and a closing tag
without an opening one reaches back to the beginning, because the other tag may have been cut off.
"""

from __future__ import annotations

import re

PRIVATE_ONLY = "is private as a whole; nothing of it is stored"

# An opening tag may have attributes and may lack its `>`; `<private-key>` is another tag.
_TAG = re.compile(
    r"<\s*(?P<closing>/)\s*private(?![\w-])[^<>]*>?|<private(?=[\s/<>]|\Z)[^<>]*>?|<\s*private\s*>", re.IGNORECASE
)


def has_private(text: str) -> bool:
    return "<" in text and _TAG.search(text) is not None


def without_private(text: str) -> str:
    """The text without its private parts; "" if all of it is private."""
    while has_private(text):  # again if what is left makes a tag
        text = _open_parts(text)
    return text


def _open_parts(text: str) -> str:
    kept: list[str] = []
    depth = at = 0
    for tag in _TAG.finditer(text):
        if depth == 0:
            kept.append(text[at : tag.start()])
        at = tag.end()
        if tag["closing"] is None:
            depth += not tag[0].endswith("/>")
        elif depth:
            depth -= 1
        else:
            kept.clear()
    if depth == 0:
        kept.append(text[at:])
    return _joined(kept)


def _joined(parts: list[str]) -> str:
    """The parts without the white space that is left where something was taken out."""
    text = parts[0] if parts else ""
    for part in parts[1:]:
        text = f"{text.rstrip(' ')} {part.lstrip(' ')}" if text[-1:] == " " and part[:1] == " " else text + part
    return text.strip()

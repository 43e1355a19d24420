"""The bytes of a file as a text.

Files are UTF-8. A byte order mark at the start, which some editors write, is skipped. One of UTF-16 is believed:
Windows PowerShell redirects output in it. No other encoding is guessed.
"""

from __future__ import annotations

import codecs

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decoded(content: bytes) -> str:
    """The text. Raises UnicodeDecodeError where it is none."""
    return content.decode("utf-16" if content.startswith(UTF_16) else "utf-8-sig")


def text_of(content: bytes, encoding: str | None = None) -> str | None:
    """The text with lines that end with a line feed; None where it is none. `encoding` is one that it is known to have.

    NUL says that it is none, but in UTF-16.
    """
    if b"\x00" in content and not content.startswith(UTF_16):
        return None
    try:
        text = decoded(content) if encoding is None else content.decode(encoding)
    except UnicodeDecodeError:
        return None
    return text.replace("\r\n", "\n")

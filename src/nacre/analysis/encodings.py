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

"""The key that a store is encrypted with."""

from __future__ import annotations

import re
import secrets
from typing import Any, NoReturn

from nacre.errors import InvalidInput

_BYTES = 32
_DIGITS = re.compile(r"[0-9a-fA-F]{64}")


class Key:
    """256 bits, written as 64 hexadecimal digits. No text, representation or error of it shows them."""

    __slots__ = ("digits",)

    digits: str

    def __init__(self, digits: str, field: str = "key") -> None:
        if not isinstance(digits, str) or not _DIGITS.fullmatch(digits.strip()):
            raise InvalidInput(
                field, "is not a key: 64 hexadecimal digits (256 bits) are allowed; `nacre key create FILE` makes one"
            )
        self.digits = digits.strip().lower()

    @classmethod
    def random(cls) -> Key:
        return cls(secrets.token_hex(_BYTES))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and secrets.compare_digest(self.digits, other.digits)

    def __hash__(self) -> int:
        return hash(self.digits)

    def __repr__(self) -> str:
        return "Key(…)"

    def __reduce_ex__(self, _: Any) -> NoReturn:
        raise TypeError("a key is not pickled: it would be written in plain text")

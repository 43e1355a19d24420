"""What all integrations share: the error for a missing package, the engine they work on, and keys made of parts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

from nacre.config.factory import open_store
from nacre.engine.engine import Nacre

_ESCAPED = re.compile("[%/\x00-\x1f\x7f\ud800-\udfff]")  # what separates parts, and what no key may have
_ESCAPE = re.compile("%(u[0-9A-F]{4}|[0-9A-F]{2})")


@contextmanager
def needs(module: str) -> Iterator[None]:
    """Around the imports of a framework: a missing package is an error that says which extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        extra = module.replace("_", "-")  # as metadata has it; older installers know no other spelling
        raise ModuleNotFoundError(
            f"nacre.integrations.{module} needs the package {error.name}; "
            f"install it with `pip install 'nacre-memory[{extra}]'`",
            name=error.name,
        ) from None


def opened(memory: Nacre | str | PathLike[str], **options: Any) -> tuple[Nacre, bool]:
    """The engine to work on, and whether it was opened here and so is to be closed here.

    A path is opened with these options of `nacre.open`. An engine is taken as it is.
    """
    if not isinstance(memory, Nacre):
        return open_store(memory, **options), True
    if options:
        raise TypeError(f"an open engine takes no options of nacre.open: {', '.join(options)}; give a path instead")
    return memory, False


def joined(*names: str) -> str:
    """A key made of names. No two sequences of names give the same, and the names of a folder begin all keys in it.

    `joined("a", "b", "")` is the prefix of the keys of everything below a and b.
    """
    return "/".join(_ESCAPED.sub(_escape, name) for name in names)


def names_of(key: str) -> tuple[str, ...]:
    """The names that a key was made of."""
    return tuple(_ESCAPE.sub(lambda found: chr(int(found[1].lstrip("u"), 16)), name) for name in key.split("/"))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"%{code:02X}" if code < 0x100 else f"%u{code:04X}"

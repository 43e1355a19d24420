"""What all integrations share: the error for a missing package, and the engine they work on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

from nacre.config.factory import open_store
from nacre.engine.engine import Nacre


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Around the imports of a framework: a missing package is an error that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"nacre.integrations.{extra} needs the package {error.name}; "
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

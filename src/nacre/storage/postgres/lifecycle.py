"""What becomes of memories: they are added, replaced, forgotten, restored, purged, embedded, or they expire."""

from __future__ import annotations

from typing import Any


def add(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def replace(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def forget(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def restore(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def expire(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def purge(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def embed(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def switch_model(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def switch_token_model(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def next_expiry(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def retokenise_if_older(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def rebuild(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def vacuum(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError

"""Where a store is: in a file, at an address of PostgreSQL, or on several nodes, which are addresses."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from nacre.errors import InvalidInput

SCHEMA = "nacre"  # of PostgreSQL, that the tables are in
CONNECTIONS_MAX = 16  # of one store in one process
CONNECTIONS_MOST = 1_000  # that this may be set to
REPLICAS_MAX = 16
STALENESS_S = 5.0  # that a search on a replica may lag behind the primary
STALENESS_MOST_S = 3_600  # that this may be set to
_SCHEMA_BYTES_MAX = 63  # PostgreSQL cuts longer names off

_SCHEME = re.compile(r"\s*([a-z][a-z0-9+.-]+):/", re.IGNORECASE)  # of two letters or more: one is a drive of Windows
_OURS = ("postgresql", "postgres")
_ADDRESS = re.compile(r"postgres(?:ql)?://([^/?\s]*)(/[^?\s]*)?(\?\S*)?", re.IGNORECASE)
_PASSWORD = re.compile(r"(://[^:/?@]*):[^@/?]*@")
_SECRET_PARAMETER = re.compile(r"([?&][^=&]*(?:password|secret)[^=&]*=)[^&]*", re.IGNORECASE)
_LIKE = "postgresql://user@host/database"


@dataclass(frozen=True, slots=True)
class Address:
    """Of a database of PostgreSQL, as libpq reads it. Neither text nor representation shows its password."""

    dsn: str = field(repr=False)

    def __str__(self) -> str:
        return _SECRET_PARAMETER.sub(r"\1***", _PASSWORD.sub(r"\1:***@", self.dsn))

    @property
    def has_password(self) -> bool:
        return str(self) != self.dsn


@dataclass(frozen=True, slots=True)
class Nodes:
    """Several databases that are one store. Each space is on one of them."""

    addresses: tuple[Address, ...]

    def __str__(self) -> str:
        return " ".join(map(str, self.addresses))


Location: TypeAlias = Path | Address | Nodes
StoreName: TypeAlias = str | os.PathLike[str] | Sequence[str]  # as callers name one


def named(location: Location) -> StoreName:
    """The location as `nacre.open` takes it, with the password."""
    match location:
        case Address(dsn):
            return dsn
        case Nodes(addresses):
            return [each.dsn for each in addresses]
    return location


def is_missing_file(location: Location) -> bool:
    """Whether nothing can be there. What a server has is known once it is asked."""
    return isinstance(location, Path) and not location.exists()


def address(field_name: str, name: object) -> Address | Nodes | None:
    """What a store is name by, if it is an address or several; None if it may be the path of a file.

    Several are a sequence, or a text with spaces between them. Raises InvalidInput for addresses that are none.
    """
    if isinstance(name, os.PathLike):
        if isinstance(name.__fspath__(), str) and is_address(os.fspath(name)):
            raise InvalidInput(field_name, "is an address that was made a path; give it as a text")
        return None
    if isinstance(name, str):
        scheme = _SCHEME.match(name)
        if scheme is None or not (is_address(name) or name[scheme.end() :].startswith("/")):
            return None
        several: Sequence[object] = name.split()
    elif isinstance(name, Sequence) and not isinstance(name, bytes | bytearray):
        several = name
    else:
        return None
    found = tuple(_address(field_name, each) for each in several)
    if not found:
        raise InvalidInput(field_name, f"names no store; give a path, or addresses like {_LIKE}")
    if len(set(found)) < len(found):
        raise InvalidInput(field_name, "names one address twice; give each node once")
    return found[0] if len(found) == 1 else Nodes(found)


def is_address(text: str) -> bool:
    """Whether a text is meant as an address, right or wrong."""
    scheme = _SCHEME.match(text)
    return scheme is not None and scheme[1].lower() in _OURS


def _address(field_name: str, name: object) -> Address:
    if not isinstance(name, str) or _SCHEME.match(name) is None:
        raise InvalidInput(field_name, f"several stores must be addresses of PostgreSQL, each like {_LIKE}")
    if not is_address(name):
        scheme = name.partition(":")[0].strip()
        raise InvalidInput(
            field_name,
            f"{scheme}:// is no address of a store; give a path, or {_LIKE}; `nacre.connect` is for servers of Nacre",
        )
    parts = _ADDRESS.fullmatch(name)
    # What libpq would read as the name of a host or a database may be half of a password, so it is not shown.
    if parts is None or parts[1].count("@") > 1 or "@" in (parts[2] or "") or not _is_text(name):
        raise InvalidInput(
            field_name,
            f"is no address of PostgreSQL; write it like {_LIKE}, and characters like @, / and # of a password as "
            "%40, %2F and %23",
        )
    return Address(name)


def schema_name(field_name: str, value: object) -> str:
    """The name of a schema that PostgreSQL can have."""
    if not isinstance(value, str) or not value.strip() or not _is_text(value):
        raise InvalidInput(field_name, "must be the name of a schema, and not blank")
    if len(value.encode()) > _SCHEMA_BYTES_MAX or value.startswith("pg_"):
        raise InvalidInput(
            field_name,
            f"{value[:_SCHEMA_BYTES_MAX]!r} is no name of a schema; {_SCHEMA_BYTES_MAX} bytes at most are, without pg_ "
            "at their beginning",
        )
    return value


def replicas_of(field_name: str, value: object) -> tuple[Address, ...]:
    """The addresses of replicas: a text with spaces between them, or a sequence; none where nothing is named."""
    if value is None or value == "" or value == () or value == []:
        return ()
    found = address(field_name, value)
    if found is None:
        raise InvalidInput(field_name, f"must be an address like {_LIKE}, or several")
    several = (found,) if isinstance(found, Address) else found.addresses
    if len(several) > REPLICAS_MAX:
        raise InvalidInput(field_name, f"names {len(several)} replicas; up to {REPLICAS_MAX} are allowed")
    return several


def _is_text(text: str) -> bool:
    try:
        return "\0" not in text and bool(text.encode())
    except UnicodeEncodeError:
        return False

"""What errors of PostgreSQL mean: the error of Nacre that says so, and whether trying again may help.

The client library gives errors of a failed connection without a code, so their texts are compared. A server that speaks
another language than English gives the general message, with its own words in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

import psycopg
from psycopg import errors

from nacre.errors import (
    InvalidInput,
    NacreError,
    SpaceMoved,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreUnavailable,
)

LOST = "while this was written, and it may not be stored; search for it before you repeat it"
_NOT_HERE = "NC001"  # what the function hold_spaces raises
UNDONE = (errors.SerializationFailure, errors.DeadlockDetected)  # by the server, which may carry it out the next time
_ENDED = ("FATAL", "PANIC")  # after an error of this severity, the server closes the connection


class _Refusal(NamedTuple):
    """Why a server refuses a connection."""

    text: re.Pattern[str]  # part of what it says
    kind: type[StoreError]
    remedy: str
    waits: bool  # it may accept one in a moment


def _refusal(text: str, kind: type[StoreError], remedy: str, *, waits: bool = False) -> _Refusal:
    return _Refusal(re.compile(text), kind, remedy, waits)


_CONNECTING = re.compile("connection (failed|is bad)|failed to resolve host")  # not: an open one was lost

_REFUSALS = (
    _refusal(
        "too many clients|too many connections|remaining connection slots|no more connections allowed",
        StoreBusy,
        "allows no more connections ({said}); try again, raise max_connections, or set `connections` lower",
        waits=True,
    ),
    _refusal(
        "is starting up|is shutting down|in recovery mode|not yet accepting connections|shutdown in progress",
        StoreUnavailable,
        "is starting, stopping or recovering ({said}); try again in a moment",
        waits=True,
    ),
    _refusal(
        "session is read-only|session is not read-only|in hot standby mode|not in hot standby mode",
        StoreUnavailable,
        "has no server of the kind that target_session_attrs asks for ({said}); is a replica being promoted?",
        waits=True,
    ),
    _refusal(
        "SSL was required|does not support SSL|certificate|no encryption|SSL error",
        StoreUnavailable,
        "and this client do not agree about encryption ({said}); see sslmode and sslrootcert of the address, and `ssl` "
        "and pg_hba.conf of the server",
    ),
    _refusal(
        "password|pg_hba.conf|authentication|role .* does not exist|not permitted to log in|permission denied",
        StoreUnavailable,
        "refuses the user ({said}); check user and password of the address, ~/.pgpass, and pg_hba.conf of the server",
    ),
    _refusal(
        "database .* does not exist",
        StoreUnavailable,
        "is no database of this server ({said}); create it with `createdb`, or check its name",
    ),
    _refusal(
        "could not translate host name|failed to resolve host",
        StoreUnavailable,
        "has a host whose address cannot be found ({said}); check its name",
    ),
)


# ---------------------------------------------------------------- trying again


def is_lost(db: psycopg.Connection[tuple[object, ...]], error: BaseException) -> bool:
    """Whether the connection is of no more use, by an error of its own."""
    if not isinstance(error, psycopg.Error):
        return False
    return db.closed or error.diag.severity_nonlocalized in _ENDED or isinstance(error, errors.CannotConnectNow)


def is_read_only(error: BaseException) -> bool:
    """Whether the server takes no writes, as a replica does."""
    return isinstance(error, errors.ReadOnlySqlTransaction)


def may_pass(error: BaseException) -> bool:
    """Whether a lost connection may be replaced by another one in a moment. Nobody corrects a password meanwhile."""
    refusal = _refusal_of(error)
    return refusal is None or refusal.waits


def will_pass(error: BaseException) -> bool:
    """Whether a server is there that will accept connections."""
    refusal = _refusal_of(error)
    return refusal is not None and refusal.waits


def _refusal_of(error: BaseException) -> _Refusal | None:
    """Why there is no connection, as far as it is known."""
    if not isinstance(error, psycopg.OperationalError) or not _CONNECTING.match(str(error)):
        return None
    return next((each for each in _REFUSALS if each.text.search(str(error))), None)


# ---------------------------------------------------------------- errors of Nacre


def moved(spaces: Sequence[str], location: str) -> SpaceMoved:
    named = ", ".join(map(repr, spaces[:3]))
    return SpaceMoved(
        f"store: {location} is one of several nodes and does not have space {named}; name all nodes of the store",
        tuple(spaces),
    )


def translated(error: BaseException, location: str, secrets: Sequence[str] = ()) -> NacreError:
    """The error of Nacre that says what is wrong and what to do. No secret is in it."""
    if isinstance(error, psycopg.Error) and error.sqlstate == _NOT_HERE:
        return moved(json.loads(error.diag.message_detail or "[]"), location)
    said = _said(error, secrets)
    refusal = _refusal_of(error)
    if refusal is not None:
        return refusal.kind(f"store: {location} {refusal.remedy.format(said=said)}")
    for kinds, name, text in _MEANINGS:
        if isinstance(error, kinds):
            return name(f"store: {location} {text.format(said=said)}")
    if isinstance(error, psycopg.DataError | errors.ProgramLimitExceeded):
        return InvalidInput("value", f"PostgreSQL cannot store it ({said}); nothing was written; change or shorten it")
    if isinstance(error, psycopg.OperationalError):
        return StoreUnavailable(
            f"store: cannot reach {location} ({said}); is the server running, and are address, user and password right?"
        )
    return StoreError(f"store: {location}: {type(error).__name__}: {said}")


_MEANINGS: tuple[tuple[tuple[type[psycopg.Error], ...], type[StoreError], str], ...] = (
    (
        (errors.LockNotAvailable,),
        StoreBusy,
        "was busy for longer than this call waits ({said}); try again, or raise busy_timeout_ms",
    ),
    (
        (errors.QueryCanceled,),
        StoreBusy,
        "ended this call, and nothing was written ({said}); try again when fewer others use the server, or with less",
    ),
    (
        (*UNDONE, errors.TransactionRollback),
        StoreBusy,
        "was written to by others at the same time ({said}); nothing was written; try again",
    ),
    (
        (errors.TooManyConnections,),
        StoreBusy,
        "allows no more connections ({said}); try again, raise max_connections, or set `connections` lower",
    ),
    (
        (errors.DiskFull,),
        StoreFull,
        "has no more room on its disk ({said}); nothing was written; make room there",
    ),
    (
        (errors.OutOfMemory, errors.InsufficientResources, errors.ConfigurationLimitExceeded),
        StoreUnavailable,
        (
            "has too little memory, or another limit of the server is reached ({said}); nothing was written; write "
            "less at once, or raise the limit"
        ),
    ),
    (
        (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement),
        StoreUnavailable,
        (
            "is behind a pooler that gives each transaction another session, and hides it ({said}); nothing was "
            "written; let it pool by session, or name the server itself"
        ),
    ),
    (
        (errors.DataCorrupted, errors.IndexCorrupted),
        StoreCorrupt,
        "is damaged ({said}); restore the last backup",
    ),
    (
        (errors.IoError, errors.UndefinedFile, errors.DuplicateFile),
        StoreUnavailable,
        "cannot read or write its files ({said}); see the log of the server",
    ),
    (
        (errors.ReadOnlySqlTransaction,),
        StoreUnavailable,
        (
            "is read-only, as a replica is, and nothing was written ({said}); name the primary, or all servers with "
            "target_session_attrs=read-write"
        ),
    ),
    (
        (errors.InsufficientPrivilege,),
        StoreUnavailable,
        (
            "does not let its user do this ({said}); nothing was written; name a user with the rights of a writer, or "
            "of the owner where tables are created or upgraded"
        ),
    ),
    (
        (errors.InvalidPassword, errors.InvalidAuthorizationSpecification),
        StoreUnavailable,
        "refuses the user ({said}); check user and password of the address, ~/.pgpass, and pg_hba.conf of the server",
    ),
    (
        (
            *(errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction, errors.UndefinedObject),
            *(errors.InvalidSchemaName, errors.InvalidCatalogName),
        ),
        StoreUnavailable,
        (
            "lacks tables, types or functions that it had when it was opened ({said}); somebody has changed or dropped "
            "them, or the extension vector: restore them, and open the store again"
        ),
    ),
)


def _said(error: BaseException, secrets: Sequence[str]) -> str:
    """The first line of what PostgreSQL says, with its hint."""
    said = str(error).strip().split("\n")[0]
    hint = error.diag.message_hint if isinstance(error, psycopg.Error) else None
    if hint:
        said = f"{said}: {hint}"
    for secret in filter(None, secrets):
        said = said.replace(secret, "***")
    return said

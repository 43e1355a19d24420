"""What every check of a store finds, and how it is repaired.

Each check stands for itself, so one that fails does not hide the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from nacre.errors import StoreBusy, StoreError
from nacre.storage.postgres import repairs, server_checks, table_checks
from nacre.storage.postgres.connection import Connections
from nacre.types.health import Finding

Check = Callable[[Connections], Iterator[Finding]]
Repair = Callable[[Connections], None]


def diagnose(connections: Connections, now: datetime, *, fix: bool) -> list[Finding]:
    """What every check finds. With `fix`, what can be put right is, and is marked as fixed."""
    checks: dict[str, Check] = {
        "server": server_checks.server,
        "versions": server_checks.versions,
        "clock": partial(server_checks.clock, now=now),
        "rows": server_checks.rows_seen,
        "transactions": server_checks.transactions,
        "connections": server_checks.connections_allowed,
        "tables": server_checks.tables,
        "indexes": server_checks.indexes,
        "integrity": table_checks.integrity,
        "words": table_checks.texts_and_words,
        "vectors": table_checks.vectors,
        "facts": table_checks.facts,
        "counts": table_checks.counts,
        "pending": table_checks.pending,
    }
    found = after = _findings(connections, checks)
    tried: set[str] = set()
    while fix and (wanted := _repairable(after) - tried):  # a repair may show what else is wrong
        for name in REPAIRS:
            if name in wanted:
                REPAIRS[name](connections)
        tried |= wanted
        after = _findings(connections, checks)
    if not tried:
        return found
    still = {each.check for each in after if each.level == "problem"}
    fixed = [replace(each, fixed=True) for each in found if each.level == "problem" and each.check not in still]
    return [*fixed, *after]


def _repairable(found: Sequence[Finding]) -> set[str]:
    broken = {each.check for each in found if each.level == "problem"}
    if "texts" in broken:  # nothing can be made from memories that cannot be read
        broken.discard("words")
    return broken & REPAIRS.keys()


def _findings(connections: Connections, checks: Mapping[str, Check]) -> list[Finding]:
    return [finding for name, check in checks.items() for finding in _guarded(connections, name, check)]


def _guarded(connections: Connections, name: str, check: Check) -> list[Finding]:
    """The findings of one check. What it cannot read is a finding, too; a server that is away is an error."""
    findings: list[Finding] = []
    try:
        findings.extend(check(connections))
    except StoreBusy as error:
        findings.append(
            table_checks.note(name, f"this took too long to be checked: {error}", "check at a quieter time")
        )
    except StoreError as error:
        text = f"this could not be checked: {error}"
        findings.append(table_checks.problem(name, text, "restore the last backup, or see the log of the server"))
    return findings


# By check. What none of these repairs is restored from a backup, or is for the operator of the server to do.
REPAIRS: dict[str, Repair] = {
    "integrity": repairs.clear_dangling,
    "indexes": repairs.make_indexes,
    "vectors": repairs.drop_odd_vectors,
    "facts": repairs.index_facts,
    "words": repairs.rebuild_words,
    "counts": repairs.recount,
}

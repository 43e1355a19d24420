"""What is wrong with a store file?

Every check opens nothing but what it needs and stands for itself, so one that fails does not hide the others. The file
is read by a connection of its own: a store that is too damaged to be opened can still be checked.
"""

from __future__ import annotations

import os
import platform
import shutil
import stat
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw

from nacre.analysis import tokenizer
from nacre.analysis.word_forms import tokens_of
from nacre.analysis.wording import counted
from nacre.errors import NacreError, StoreError, WrongKey
from nacre.storage.sqlite import damage, encryption, further_vectors, page_checksums, rows, schema
from nacre.storage.sqlite.connection import integrity_problems
from nacre.storage.sqlite.opened_file import open_file
from nacre.types.health import Finding
from nacre.types.key import Key

REBUILD = "`nacre doctor --fix` rebuilds it from the memories"
SALVAGE = f"{rows.RESTORE}, or save what can be read with `nacre doctor --salvage NEW`"
_NAMED_MAX = 5  # ids in a sentence
_BATCH_ROWS = 500
_FREE_BYTES_MIN = 100 << 20
_LOG_BYTES_MAX = 64 << 20  # of the write-ahead log; SQLite usually empties it at 4 MB
_CLOCK_AHEAD = timedelta(days=1)
_PRIVATE = stat.S_IRWXG | stat.S_IRWXO  # the bits that nobody else should have


@dataclass(frozen=True, slots=True)
class Checked:
    """What the checks look at."""

    path: Path
    key: Key | None
    db: apsw.Connection
    now: datetime


def loose_files(path: Path) -> list[Path]:
    """The files and the folder of a store that others than its owner may use. None where modes mean nothing."""
    if os.name != "posix":
        return []
    beside = [path.with_name(path.name + each) for each in ("", "-wal", "-shm", "-cache")]
    return [each for each in beside if each.exists() and each.stat().st_mode & _PRIVATE]


Check = Callable[[Checked], Iterator[Finding]]


def examine(path: Path, key: Key | None, now: datetime) -> list[Finding]:
    """Check everything. A wrong key raises WrongKey: nothing is known of the file then."""
    try:
        db = open_file(path, apsw.SQLITE_OPEN_READWRITE, key=key)
    except WrongKey:
        if key is not None:
            raise
        text = f"{path} is encrypted, or its first page is damaged"
        return [_problem("schema", text, f"give its key with --key-file, or {rows.RESTORE}")]
    except apsw.Error as error:
        return [_problem("file", f"{path} cannot be opened ({error})", SALVAGE)]
    try:
        checked = Checked(path, key, db, now)
        try:
            schema.check_known(db, schema.version(db))
        except (NacreError, apsw.Error) as error:
            found = _guarded("integrity", _integrity, checked)
            return [*_guarded("file", _file, checked), *found, _problem("schema", str(error), SALVAGE)]
        return [finding for name, check in CHECKS.items() for finding in _guarded(name, check, checked)]
    finally:
        db.close()


def _guarded(name: str, check: Check, checked: Checked) -> list[Finding]:
    """The findings of one check. What it cannot read is a finding, too."""
    findings: list[Finding] = []
    try:
        findings.extend(check(checked))
    except (apsw.Error, StoreError, OSError, ValueError, OverflowError) as error:
        mismatch = isinstance(error, apsw.Error) and page_checksums.is_mismatch(error)
        said = page_checksums.MISMATCH if mismatch else str(error)
        findings.append(_problem(name, f"this could not be checked: {said}", SALVAGE))
    return findings


# ---------------------------------------------------------------- the file


def _file(checked: Checked) -> Iterator[Finding]:
    size = checked.path.stat().st_size
    free = shutil.disk_usage(checked.path.parent).free
    text = f"{checked.path}, {size / 1e6:,.1f} MB; {free / 1e9:,.1f} GB free"
    if free < max(_FREE_BYTES_MIN, size // 10):
        yield _problem("file", text, "free some space: a write needs room, and so does emptying the log")
    else:
        yield _fine("file", text)
    log = checked.path.with_name(checked.path.name + "-wal")
    log_size = log.stat().st_size if log.exists() else 0
    if log_size > max(_LOG_BYTES_MAX, size):
        yield _note("file", f"the write-ahead log has {log_size / 1e6:,.0f} MB", "close processes that read for long")


def _permissions(checked: Checked) -> Iterator[Finding]:
    loose = loose_files(checked.path)
    if loose:
        named = ", ".join(each.name for each in loose)
        yield _problem("permissions", f"other users may read {named}", "`nacre doctor --fix` makes them private")
    else:
        yield _fine("permissions", "nobody else may read the files")


def _versions(checked: Checked) -> Iterator[Finding]:
    found = schema.version(checked.db)
    text = (
        f"schema {found}, SQLite {apsw.sqlite_lib_version()}, apsw {apsw.apsw_version()}, "
        f"Python {platform.python_version()}"
    )
    if found < schema.VERSION:
        yield _note("versions", f"{text}; the current schema is {schema.VERSION}", "open the store once to upgrade it")
    else:
        yield _fine("versions", text)


def _clock(checked: Checked) -> Iterator[Finding]:
    newest = checked.db.execute("SELECT at_us FROM events ORDER BY seq DESC LIMIT 1").get
    last = datetime.fromtimestamp(newest / 1e6, UTC) if newest is not None else None
    if last is not None and last > checked.now + _CLOCK_AHEAD:
        yield _note(
            "clock",
            f"the last change is of {last:%Y-%m-%d %H:%M} UTC, which is later than now",
            "check the clock of this machine, and of others that write to the store",
        )
    else:
        yield _fine("clock", f"{checked.now:%Y-%m-%d %H:%M} UTC")


# ---------------------------------------------------------------- what cannot be made again


def only_checksums_differ(path: Path, key: Key | None) -> bool:
    """Whether pages do not match their checksums, and nothing else is wrong: SQLite finds the file in order, and every
    text matches its own checksum. A program that knows nothing of checksums leaves a file like that."""
    with closing(open_file(path, apsw.SQLITE_OPEN_READWRITE, key=key)) as db:
        if integrity_problems(db) != page_checksums.MISMATCH:
            return False
        db.execute("PRAGMA checksum_verification = OFF")
        try:
            return not integrity_problems(db) and not any(damage.damaged_memories(db))
        except apsw.Error:
            return False


def _integrity(checked: Checked) -> Iterator[Finding]:
    problems = integrity_problems(checked.db)
    if problems == page_checksums.MISMATCH and only_checksums_differ(checked.path, checked.key):
        yield _problem(
            "integrity",
            "pages do not match their checksums, but SQLite finds no other damage and every text matches its own: "
            "another program may have copied the file or written to it",
            "if so, `nacre doctor --fix` accepts the pages; facts, tags and metadata cannot be verified then",
        )
        return
    dangling = checked.db.execute("PRAGMA foreign_key_check").fetchall()
    if problems:
        yield _problem("integrity", f"SQLite finds the file damaged: {problems}", SALVAGE)
    if dangling:
        tables = ", ".join(sorted({str(table) for table, *_ in dangling}))
        said = counted(len(dangling), "row refers", "rows refer")
        yield _problem("integrity", f"{said} to something that is gone, in {tables}", SALVAGE)
    if not problems and not dangling:
        verified = page_checksums.verified(checked.db)
        yield _fine("integrity", f"SQLite finds no damage; pages have {'checksums' if verified else 'no checksums'}")
        if not verified:
            yield _note("integrity", "damage to a page may go unnoticed", "`nacre rebuild` adds checksums")


def _texts(checked: Checked) -> Iterator[Finding]:
    damaged = list(damage.damaged_memories(checked.db))
    if damaged:
        said = counted(len(damaged), "memory cannot be read or is", "memories cannot be read or are")
        yield _problem("texts", f"{said} not what was written: {_named(damaged)}", SALVAGE)
    else:
        total = checked.db.execute("SELECT count(*) FROM memories").get
        yield _fine("texts", f"{counted(total, 'text matches its', 'texts match their')} checksum")


def _vectors(checked: Checked) -> Iterator[Finding]:
    from nacre.runtime import native_packages

    native_packages.numpy()
    import numpy as np

    db = checked.db
    lacking = db.execute(
        "SELECT count(*) FROM memories AS m WHERE m.embedded = 1 AND NOT EXISTS "
        "(SELECT 1 FROM passages AS p WHERE p.row = m.row)"
    ).get
    sizes = Counter[int]()
    broken = 0
    for (blob,) in db.execute("SELECT vector FROM passages"):
        sizes[len(blob)] += 1
        broken += len(blob) % 2 != 0 or not np.isfinite(np.frombuffer(blob, np.float16)).all()
    odd = sum(sizes.values()) - max(sizes.values(), default=0)
    of_models = defaultdict[int, Counter[int]](Counter)
    for model, blob in db.execute("SELECT model, vector FROM further_passages"):
        of_models[model][len(blob)] += 1
        broken += len(blob) % 2 != 0 or not np.isfinite(np.frombuffer(blob, np.float16)).all()
    odd += sum(sum(each.values()) - max(each.values()) for each in of_models.values())
    complete = sum(sizes.values()) + sum(sum(each.values()) for each in of_models.values())
    if lacking or broken or odd:
        said = f"{lacking} memories lack theirs, {broken} are no numbers, {odd} have another size than the rest"
        yield _problem("vectors", f"vectors are wrong: {said}", "`nacre reembed` after `nacre doctor --fix`")
    else:
        yield _fine("vectors", f"{counted(complete, 'vector is', 'vectors are')} complete")


# ---------------------------------------------------------------- what is made from the memories


def _words(checked: Checked) -> Iterator[Finding]:
    """Tokens, the full-text index and counts of words are what the memories give."""
    db = checked.db
    if rows.meta(db, "words_version") != str(tokenizer.VERSION):
        yield _note("words", "the words are those of another version", "open the store once to renew them")
        return
    wrong, counts, lengths, live = 0, Counter[tuple[str, str]](), Counter[str](), Counter[str]()
    after = 0
    sql = (
        f"SELECT m.row, {rows.READ_COLUMNS}, {rows.WORD_COLUMNS} "
        "FROM memories AS m LEFT JOIN tokens AS t ON t.row = m.row WHERE m.row > ? ORDER BY m.row LIMIT ?"
    )
    words = rows.WORD_COLUMNS.count(",") + 1
    while batch := rows.fetch(db, sql, (after, _BATCH_ROWS)):
        for row, *columns in batch:
            memory, stored = rows.memory(columns[:-words]), columns[-words:]
            tokens = tokens_of(memory)
            wrong += stored[0] is None or rows.tokens(stored) != tokens
            after = row
            if memory.deleted is None:
                counts.update((memory.space, term) for term in tokenizer.vocabulary(tokens))
                lengths[memory.space] += tokens.length
                live[memory.space] += 1
    stray = db.execute(
        "SELECT count(*) FROM (SELECT rowid FROM fts EXCEPT SELECT row FROM memories WHERE deleted_us IS NULL)"
    ).get
    missing = db.execute(
        "SELECT count(*) FROM (SELECT row FROM memories WHERE deleted_us IS NULL EXCEPT SELECT rowid FROM fts)"
    ).get
    stored_counts = {(space, term): n for space, term, n in db.execute("SELECT space, term, memories FROM vocabulary")}
    corpus = {space: (n, length) for space, n, length in db.execute("SELECT space, memories, length FROM corpus") if n}
    miscounted = stored_counts != dict(counts) or corpus != {each: (live[each], lengths[each]) for each in live}
    if wrong or stray or missing or miscounted:
        parts = [
            f"{wrong} memories with wrong words",
            f"{missing} missing from the full-text index",
            f"{stray} stray in it",
        ]
        if miscounted:
            parts.append("wrong counts of words")
        yield _problem("words", f"the keyword index does not fit the memories: {', '.join(parts)}", REBUILD)
    else:
        yield _fine("words", "the keyword index fits the memories")


def _caches(checked: Checked) -> Iterator[Finding]:
    folder = encryption.cache_folder(checked.path)
    if not folder.is_dir():
        yield _fine("caches", "no index files")
        return
    from nacre.runtime import native_packages

    native_packages.numpy()
    from nacre.storage.sqlite.index import hnsw, segment

    sound = {".segment": segment.is_sound, ".hnsw": hnsw.is_sound}
    kinds = {
        path: path.suffix.rstrip("0123456789") for path in folder.iterdir()
    }  # graphs of further models have numbers
    files = sorted(path for path, kind in kinds.items() if kind in sound)
    bad = [path.name for path in files if not sound[kinds[path]](path)]
    if bad:
        said = counted(len(bad), "index file is", "index files are")
        yield _problem("caches", f"{said} damaged: {_named(bad)}", "`nacre doctor --fix` removes them")
    else:
        yield _fine("caches", f"{counted(len(files), 'index file is', 'index files are')} sound")


# ---------------------------------------------------------------- work that is left


def _pending(checked: Checked) -> Iterator[Finding]:
    db = checked.db
    waiting = db.execute("SELECT count(*) FROM memories WHERE embedded = 0 AND deleted_us IS NULL").get
    if waiting and rows.meta(db, "model") is not None:
        said = counted(waiting, "memory has", "memories have")
        yield _note("pending", f"{said} no vectors yet and are found by words only", "run `nacre reembed`")
    elif further := sum(further_vectors.pending_count(db, each) for each in further_vectors.models(db)):
        said = counted(further, "memory waits", "memories wait")
        yield _note("pending", f"{said} for vectors of a further model", "run `nacre reembed`")
    else:
        yield _fine("pending", "nothing is left to be done")


TRUTH = ("schema", "integrity", "texts")  # where these find a problem, the memories cannot be trusted
CHECKS: dict[str, Check] = {
    "file": _file,
    "permissions": _permissions,
    "versions": _versions,
    "clock": _clock,
    "integrity": _integrity,
    "texts": _texts,
    "vectors": _vectors,
    "words": _words,
    "caches": _caches,
    "pending": _pending,
}


def _fine(check: str, text: str) -> Finding:
    return Finding(check, "fine", text)


def _note(check: str, text: str, remedy: str) -> Finding:
    return Finding(check, "note", text, remedy)


def _problem(check: str, text: str, remedy: str) -> Finding:
    return Finding(check, "problem", text, remedy)


def _named(names: list[str]) -> str:
    more = len(names) - _NAMED_MAX
    return ", ".join(names[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")

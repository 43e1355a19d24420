"""The command `export`, and the import of what it wrote as JSON Lines."""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from itertools import chain, groupby, islice
from pathlib import Path
from typing import IO, Any

import click

from nacre.analysis.wording import count_memories, counted
from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import common, filters, lines_of, opened, settings_of, to_filter, to_moment, wants_json
from nacre.cli.refusals import Refusals
from nacre.config import keys
from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput, StoreFull, StoreUnavailable
from nacre.runtime import private_files
from nacre.serialization import markdown, tables, transfer
from nacre.serialization.numbered_lines import LineReader
from nacre.types.memory import Json, Memory, Progress
from nacre.types.search import Filter
from nacre.types.transfer import Header, LoadCounts, MemoryRecord, Record

FORMATS = ("jsonl", "markdown", "csv", "parquet")
_SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}
_STDOUT = Path("-")
_NAME = re.compile(r"nacre-(?P<store>[0-9a-f]+)-(?P<since>\d+)-(?P<seq>\d+)\.jsonl")
_PAGE = 100  # memories whose facts are read at once
_SPOOLED_BYTES = 1 << 20


def _export_filters(command: Any) -> Any:
    """The filters of other commands, but for `--since`, which is about changes here."""
    command = filters(command)
    parameters = command.params if isinstance(command, click.Command) else command.__click_params__
    parameters[:] = [each for each in parameters if each.name != "since"]
    return command


@nacre.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--format", "format_", type=click.Choice(FORMATS), help="Default: by the name of FILE, or else jsonl.")
@click.option("--since", metavar="WHEN", help="Only what changed since a number, a time, or `last`.")
@click.option("--vectors", is_flag=True, help="With vectors, so that nothing has to be embedded again.")
@click.option("--per", type=click.Choice(["memory", "day"]), help="Markdown: one file a memory, or one a day.")
@_export_filters
@common
@click.pass_context
def export(
    context: click.Context,
    /,
    file: Path | None,
    format_: str | None,
    since: str | None,
    vectors: bool,
    per: str | None,
    **given: Any,
) -> None:
    """Write memories to FILE or stdout: as JSON Lines that `import` reads back, as Markdown, CSV or Parquet."""
    where = to_filter({**given, "since": None})
    to = file or _STDOUT
    kind = format_ or _SUFFIXES.get(to.suffix.lower(), "markdown" if per else "jsonl")
    for name, value, of in (("since", since, "jsonl"), ("vectors", vectors, "jsonl"), ("per", per, "markdown")):
        if value and kind != of:
            raise InvalidInput(name, f"is for {of}, and the format is {kind}")
    if kind in ("markdown", "parquet") and to == _STDOUT:
        raise InvalidInput("file", "is missing; markdown needs a folder and parquet a file")
    with opened(context, switch_model=True, log=False) as memory:
        if keys.of_settings(settings_of(context), os.environ) is not None:
            render.tell("the store is encrypted, and an export is not: keep it where nobody else can read it")
        chosen = _everywhere(context, memory, where)
        if kind == "jsonl":
            _write_jsonl(context, memory, to, chosen, since, vectors)
            return
        with render.progress("exporting") as bar:
            memories = _with_facts(memory, chosen)
            total = memory.stats().memories if chosen is None else memory.facets(where=chosen).total

            def shown(done: int) -> None:
                bar(Progress(done, total))

            if kind == "markdown":
                written, unchanged = _write_markdown(to, memories, per or "memory", shown)
            else:
                written, unchanged = _write_table(to, memories, kind, shown), None
    _tell(context, to, written, {"unchanged": unchanged} if unchanged is not None else {})


def _everywhere(context: click.Context, memory: Nacre, where: Filter) -> Filter | None:
    """All spaces, unless some are named. None: everything."""
    if where.spaces or context.ensure_object(dict).get("space"):
        return where
    if where == Filter():
        return None
    return replace(where, spaces=tuple(memory.stats().stored_memories) or where.spaces)


# ---------------------------------------------------------------- JSON Lines


def _write_jsonl(
    context: click.Context, memory: Nacre, to: Path, where: Filter | None, since: str | None, vectors: bool
) -> None:
    number = _since(memory, to, where, since, vectors)
    records = memory.export(where, since=number, vectors=vectors)
    header = next(records)
    assert isinstance(header, Header)
    if _is_folder(to):
        to /= f"nacre-{header.store}-{header.since}-{header.seq}.jsonl"
    with render.progress("exporting") as bar, _target(to) as out:
        for line in transfer.lines(_counted(chain([header], records), header.memories, bar)):
            out.write(line)
    said: dict[str, Json] = {"since": header.since, "seq": header.seq}
    _tell(context, to, header.memories, said, f"; the next one continues with --since {header.seq}")


def _counted(records: Iterable[Record], total: int, bar: Callable[[Progress], None]) -> Iterator[Record]:
    done = 0
    for record in records:
        if isinstance(record, MemoryRecord):
            done += 1
            bar(Progress(done, total))
        yield record


def _since(memory: Nacre, to: Path, where: Filter | None, since: str | None, vectors: bool) -> int | datetime | None:
    if since is None:
        return None
    if since.isdecimal():
        return int(since)
    if since != "last":
        return to_moment("since", since)
    if not _is_folder(to):
        raise InvalidInput("since", "`last` needs a folder that exists, to which exports are written one after another")
    now = next(memory.export(where, vectors=vectors))
    assert isinstance(now, Header)
    return max(_exported(to, now), default=None)


def _exported(folder: Path, now: Header) -> Iterator[int]:
    """Up to which numbers a folder has exports of this store that leave out no more than this one."""
    for path in folder.iterdir():
        found = _NAME.fullmatch(path.name)
        if found is not None and found["store"] == now.store:
            with suppress(InvalidInput, OSError), path.open("rb") as file:
                header = transfer.read_header(file.readline(transfer.HEADER_BYTES_MAX))
                if header.where == now.where and header.vectors >= now.vectors:
                    yield header.seq


# ---------------------------------------------------------------- Markdown, CSV, Parquet


def _with_facts(memory: Nacre, where: Filter | None) -> Iterator[Memory]:
    """Live memories with their facts, the oldest first."""
    everywhere = tuple(memory.stats().stored_memories)
    if where is None and not everywhere:
        return
    found = memory.every(where or Filter(spaces=everywhere))
    while page := list(islice(found, _PAGE)):
        facts = {each.id: each.facts for each in memory.get([each.id for each in page], missing_ok=True).memories}
        yield from (replace(each, facts=facts.get(each.id, ())) for each in page)


def _write_markdown(
    folder: Path, memories: Iterator[Memory], per: str, shown: Callable[[int], None]
) -> tuple[int, int]:
    """Write files that are new or changed. Returns the number of memories, and of files that were right already."""
    done = unchanged = 0
    spaces: set[str] = set()
    with _errors(folder):
        private_files.create_folder(folder)
        if per == "memory":
            for memory in memories:
                path = _place(folder, memory, spaces) / markdown.memory_name(memory)
                unchanged += not _write_file(path, markdown.memory_file(memory))
                done += 1
                shown(done)
            return done, unchanged
        for day, several in groupby(memories, markdown.day_name):
            parts: dict[str, list[str]] = {}
            for memory in several:
                parts.setdefault(memory.space, [markdown.day_head(memory)]).append(markdown.day_part(memory))
                done += 1
                shown(done)
            for space, texts in parts.items():
                place = folder / markdown.safe_name(space)
                private_files.create_folder(place)
                unchanged += not _write_file(place / day, "".join(texts))
    return done, unchanged


def _place(folder: Path, memory: Memory, known: set[str]) -> Path:
    """The folder of a memory's space."""
    place = folder / markdown.safe_name(memory.space)
    if memory.space not in known:
        private_files.create_folder(place)
        known.add(memory.space)
    return place


def _write_file(path: Path, text: str) -> bool:
    """Write a file unless it has this content already. Returns whether it did."""
    content = text.encode()
    with suppress(OSError):
        if path.stat().st_size == len(content) and path.read_bytes() == content:
            return False
    with _target(path) as out:
        out.write(text)
    return True


def _write_table(to: Path, memories: Iterator[Memory], kind: str, shown: Callable[[int], None]) -> int:
    done = 0
    if kind == "csv":
        with _target(to) as out:
            for number in tables.write_csv(out, memories):
                done = number
                shown(done)
        return done
    with _part(to) as part:
        for number in tables.write_parquet(part, memories):
            done = number
            shown(done)
    return done


# ---------------------------------------------------------------- files


@contextmanager
def _target(to: Path) -> Iterator[IO[str]]:
    """A file that gets its name when it is complete, or stdout."""
    if to == _STDOUT:
        sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
        yield sys.stdout
        sys.stdout.flush()
        return
    with _part(to) as part, part.open("w", encoding="utf-8", newline="", buffering=_SPOOLED_BYTES) as out:
        yield out


@contextmanager
def _part(to: Path) -> Iterator[Path]:
    """A new file beside the one that it takes the place of in the end. Only its owner may read it."""
    with _errors(to):
        if _is_folder(to):
            raise InvalidInput("file", f"{to} is a folder; give a new file in it")
        part = to.with_name(f".{to.name}.{secrets.token_hex(4)}.part")
        private_files.create_file(part)
        try:
            yield part
            part.replace(to)
        finally:
            part.unlink(missing_ok=True)


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112  # a Path raises where a name is too long


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno in (28, 122):
            raise StoreFull(f"export: no room left for {path}; free some space and try again") from error
        reason = error.strerror or error
        raise StoreUnavailable(f"export: {path} cannot be written ({reason}); check the path") from error


def _tell(context: click.Context, to: Path, memories: int, more: dict[str, Json], then: str = "") -> None:
    """To stdout goes only the export itself; what there is to say about it goes to stderr."""
    said = f"exported {count_memories(memories)}"
    unchanged = more.get("unchanged")
    files = f" ({counted(int(str(unchanged)), 'file')} unchanged)" if unchanged else ""
    if to == _STDOUT:
        render.tell(f"{said}{then}")
    else:
        answer(
            context, {"file": str(to), "memories": memories, **more}, [[(f"{said} to {to}{files}", ""), (then, "dim")]]
        )


# ---------------------------------------------------------------- import


def is_export(path: Path) -> bool:
    if _is_folder(path):
        return False
    with path.open("rb") as file:
        return transfer.is_export(file.readline(transfer.HEADER_BYTES_MAX))


def import_export(context: click.Context, path: Path, create: Callable[[], Any], *, dry_run: bool) -> None:
    """Take in a file that `nacre export` wrote. `create` opens the store."""
    done = LoadCounts()
    refusals = Refusals("line")
    with lines_of(path) as lines:
        transfer.read_header(next(iter(lines), b""))  # a file that cannot be read at all is no bad line
    with lines_of(path) as lines:
        reader = LineReader(lines, transfer.read_line, refusals.add)
        if dry_run:
            counts = _looked_at(reader)
            answer(context, {"format": "nacre", **counts}, [[(f"would read {_listed(counts)}", "")]])
            refusals.report(context, "importable")
            return
        with create() as memory, render.progress("importing") as bar:
            size = path.stat().st_size
            for so_far in memory.load(reader, refused=reader.refuse):
                done = so_far
                bar(Progress(reader.done, size))
            waiting = memory.stats().pending
    encoded: dict[str, Json] = {"format": "nacre", **transfer.load_counts(done)}
    answer(context, encoded, [[(f"imported {count_memories(done.added)}", ""), (_others(done), "dim")]])
    if done.screened and not wants_json(context):
        said = count_memories(done.screened)
        render.tell(f"{said} with secrets or private parts: these were handled as --secrets says; see `nacre audit`")
    if waiting and not wants_json(context):
        render.tell(f"{waiting:,} without vectors yet, found by words only: run `nacre reembed`")
    refusals.report(context, "imported")


def _looked_at(records: Iterable[Record]) -> dict[str, Json]:
    counts: dict[str, int] = {}
    for record in records:
        name = type(record).__name__.removesuffix("Record").lower()
        counts[name] = counts.get(name, 0) + 1
    return {**counts}


def _listed(counts: dict[str, Json]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in counts.items()) or "nothing"


def _others(done: LoadCounts) -> str:
    named = (
        (done.updated, "updated"),
        (done.unchanged, "already stored"),
        (done.kept, "newer here"),
        (done.displaced, "displaced"),
        (done.purged, "purged"),
        (done.left_out, "left out"),
    )
    said = [f"{number:,} {what}" for number, what in named if number]
    return f" ({', '.join(said)})" if said else ""

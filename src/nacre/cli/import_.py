"""`nacre import`: bring in what other programs keep."""

from __future__ import annotations

import codecs
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import click

from nacre.analysis.wording import count_memories, counted
from nacre.cli import render
from nacre.cli.export import import_export, is_export
from nacre.cli.group import answer, nacre
from nacre.cli.options import (
    common,
    deferring,
    lines_of,
    opened,
    secret_policy,
    settings_of,
    wants_json,
    without_tokens,
)
from nacre.cli.refusals import Refusals
from nacre.config.factory import open_store
from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput
from nacre.importers import registry
from nacre.importers.conversations import beginning
from nacre.importers.importer import Importer, Source
from nacre.importers.tables import GUESSES, TABLES
from nacre.intake.importing import Import, ImportCounts, Preview, Records, Unforgotten, adjusted, preview
from nacre.knowledge_graph import model
from nacre.knowledge_graph.graph import Element, KnowledgeGraph, MergeCounts
from nacre.knowledge_graph.model import Edge, Node
from nacre.serialization import decode, encode
from nacre.serialization.numbered_lines import LineReader
from nacre.types.location import is_missing_file
from nacre.types.memory import Json, Progress

EXPORT = "nacre"
EXPORT_ABOUT = "JSON Lines that `nacre export` wrote"
GRAPH = "knowledge-graph"
GRAPH_ABOUT = "the memory.jsonl of the MCP reference memory server"
FORMATS = (GRAPH, EXPORT, *(each.name for each in registry.IMPORTERS))
_STDIN = Path("-")
_GRAPH_WITHIN = 10  # lines
_AT_ONCE = 64  # memories of one transaction, where they are embedded
_LONG_GRAPH_LINE = re.compile(r'\s*\{\s*"type"\s*:\s*"(?:entity|relation)"\s*,')
_SHOWN_CHARS = 80


@nacre.command("import")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--format", "format_", metavar="NAME", help="Format of PATH; default: recognised. --list shows all.")
@click.option("--list", "list_", is_flag=True, help="List the formats, and what of them is found on this machine.")
@click.option("--dry-run", is_flag=True, help="Show what would come in, and write nothing.")
@click.option("--map", "columns", metavar="FIELD=COLUMN", multiple=True, help="Column of a field. Repeatable.")
@click.option("--namespace", metavar="NAME", help="Namespace of all memories.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="A tag for all memories. Repeatable.")
@click.option("--limit", type=click.IntRange(min=1), metavar="NUMBER", help="Import no more memories than this.")
@click.option("--again", is_flag=True, help="Also bring back what was imported before and forgotten since.")
@click.option("--name", metavar="NAME", help="Name in the keys, in place of that of the file or folder.")
@click.option("--encoding", metavar="NAME", help="Encoding of texts that are not UTF-8, such as cp1252.")
@deferring
@without_tokens
@secret_policy
@common
@click.pass_context
def import_(
    context: click.Context,
    /,
    path: Path | None,
    format_: str | None,
    list_: bool,
    dry_run: bool,
    columns: tuple[str, ...],
    namespace: str | None,
    tags: tuple[str, ...],
    limit: int | None,
    again: bool,
    name: str | None,
    encoding: str | None,
    defer_embeddings: bool,
) -> None:
    """Import what other programs keep from the file or folder PATH; - is stdin. Repeating it adds only what is new."""
    if path is None or list_:
        _list(context)
        return
    _check_format(format_)
    mapped, known = _columns(columns), encoding_named(encoding)
    with _on_disk(path) as place:
        registry.head(place, path)  # raises where it cannot be read
        named = {
            "map": columns,
            "namespace": namespace,
            "tag": tags,
            "limit": limit,
            "again": again,
            "name": name,
            "encoding": encoding,
        }
        if format_ in (None, EXPORT) and is_export(place):
            _without(named, EXPORT)
            import_export(context, place, lambda: _target(context, dry_run, defer_embeddings), dry_run=dry_run)
            return
        if format_ == GRAPH or (format_ is None and _is_graph(place)):
            _without(named, GRAPH)
            _import_graph(context, place, dry_run, defer_embeddings)
            return
        importer = registry.recognised(place, path) if format_ is None else registry.named(format_)
        if importer not in TABLES:
            _without({"map": columns}, importer.name)
        source = Source(place, name=name, columns=mapped, encoding=known)
        records = adjusted(importer.read(source), namespace=namespace, tags=tags, limit=limit)
        refusals = Refusals("record")
        with _target(context, dry_run, defer_embeddings) as memory:
            records = records if again else Unforgotten(memory, records)
            if dry_run:
                looked = _looked_at(memory, source, records, refusals)
                encoded = _preview_json(importer, looked) | {"forgotten": _forgotten(records)}
                answer(context, encoded, _preview_lines(importer, looked))
            else:
                _bring_in(context, memory, importer, source, records, refusals, defer_embeddings)
            if _forgotten(records) and not wants_json(context):
                said = counted(_forgotten(records), "memory was", "memories were")
                render.remark([f"{said} forgotten here and left out; --again brings back what was forgotten"])
    refusals.report(context, "importable" if dry_run else "imported")


def _looked_at(memory: Nacre, source: Source, records: Records, refusals: Refusals) -> Preview:
    looked = Preview()
    with render.progress("reading") as bar:
        for so_far in preview(memory, records, refusals.add):
            looked = so_far
            bar(Progress(source.done, source.total))
    return looked


def _bring_in(
    context: click.Context,
    memory: Nacre,
    importer: Importer,
    source: Source,
    records: Records,
    refusals: Refusals,
    defer_embeddings: bool,
) -> None:
    done = ImportCounts()
    # Embedding takes so long that one would wait for minutes to see any progress.
    embeds = settings_of(context).embedder.value != "none" and not defer_embeddings
    whole = Import(memory, records, refusals.add, at_once=_AT_ONCE if embeds else None)
    with render.progress("importing") as bar:
        for so_far in whole.run():
            done = so_far
            bar(Progress(source.done, source.total))
    notes: dict[str, Json] = {"notes": [*whole.notes]} if whole.notes else {}
    encoded = {"format": importer.name, **asdict(done), "forgotten": _forgotten(records), **notes}
    answer(context, encoded, [_imported(importer, done)])
    if not wants_json(context):
        render.remark_first(whole.notes)


def _forgotten(records: Records) -> int:
    """How many were left out because they were forgotten here."""
    return records.forgotten if isinstance(records, Unforgotten) else 0


def _without(options: Mapping[str, object], format_: str) -> None:
    """Raise InvalidInput for an option that says nothing about this format."""
    for name, value in options.items():
        if value:
            raise InvalidInput(name, f"is not for the format {format_}; omit it, or name another with --format")


def _check_format(name: str | None) -> None:
    if name is not None and name not in FORMATS:
        raise InvalidInput("format", f"{name!r} is unknown; known: {', '.join(FORMATS)}")


def _columns(pairs: Sequence[str]) -> Mapping[str, str]:
    """FIELD=COLUMN pairs."""
    found: dict[str, str] = {}
    for pair in pairs:
        field, equals, column = pair.partition("=")
        if not equals or not column:
            raise InvalidInput("map", f"{pair!r} must be FIELD=COLUMN, for example text=body")
        if field not in GUESSES:
            raise InvalidInput("map", f"{field!r} is no field; allowed: {', '.join(GUESSES)}")
        found[field] = column
    return found


def encoding_named(name: str | None) -> str | None:
    """Only encodings of texts: Python knows others, such as rot13 and zip."""
    if name is None:
        return None
    try:
        if not codecs.lookup(name)._is_text_encoding:
            raise LookupError
    except (LookupError, ValueError):
        raise InvalidInput("encoding", f"{name!r} is unknown; cp1252, latin-1 and utf-16 are examples") from None
    return name


@contextmanager
def _on_disk(path: Path) -> Iterator[Path]:
    """The path; of stdin, a file with all of it, because formats are recognised by looking at a file."""
    if path != _STDIN:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="nacre-import-") as folder:
        spooled = Path(folder, "stdin")
        with spooled.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield spooled


# ---------------------------------------------------------------- formats


def _list(context: click.Context) -> None:
    """Every format, and what programs keep on this machine."""
    formats = [(GRAPH, GRAPH_ABOUT), (EXPORT, EXPORT_ABOUT), *((each.name, each.about) for each in registry.IMPORTERS)]
    found = [(importer.name, place) for importer, place in registry.at_home(Path.home(), os.environ)]
    width = max(len(name) for name, _ in formats)
    lines: list[render.Line] = [[(f"{name:<{width}}", "bold"), (f"  {about}", "")] for name, about in formats]
    if found:
        lines += [[], [("found on this machine", "bold")]]
        lines += [[(f"nacre import {place}", "cyan"), (f"  {name}", "dim")] for name, place in found]
    encoded: dict[str, Json] = {
        "formats": [{"format": name, "about": about} for name, about in formats],
        "found": [{"format": name, "path": str(place)} for name, place in found],
    }
    answer(context, encoded, lines)


# ---------------------------------------------------------------- memories


def _imported(importer: Importer, done: ImportCounts) -> render.Line:
    return [(f"imported {count_memories(done.new)} from {importer.name}", ""), (_others(done), "dim")]


def _others(done: ImportCounts) -> str:
    said = [f"{done.changed:,} updated"] if done.changed else []
    said += [f"{done.unchanged:,} already stored"] if done.unchanged else []
    return f" ({', '.join(said)})" if said else ""


def _preview_lines(importer: Importer, looked: Preview) -> Iterator[render.Line]:
    counts = looked.counts
    yield [(f"would import {count_memories(counts.new)} from {importer.name}", ""), (_others(counts), "dim")]
    if looked.earliest is not None and looked.latest is not None:
        span = f"from {render.day(looked.earliest)} to {render.day(looked.latest)}"
        sessions = f", {counted(looked.sessions, 'session')}" if looked.sessions else ""
        yield [(f"{span}{sessions}", "dim")]
    for each in looked.first:
        tags = "".join(f" #{tag}" for tag in each.tags[:5])
        when = each.happened or each.created
        yield [render.INDENT, (f"{render.day(when) if when else ''}{tags}  ", "dim"), (_brief(each.text), "")]
    left = counts.new + counts.changed - len(looked.first)
    if left > 0:
        yield [render.INDENT, (f"… and {left:,} more", "dim")]


def _brief(text: str) -> str:
    line = " ".join(text[: 4 * _SHOWN_CHARS].split())
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"


def _preview_json(importer: Importer, looked: Preview) -> dict[str, Json]:
    first: list[Json] = [
        {
            "key": each.key,
            "created": _encoded(each.created),
            "session": each.session,
            "tags": [*each.tags],
            "text": _brief(each.text),
        }
        for each in looked.first
    ]
    return {
        "format": importer.name,
        **asdict(looked.counts),
        "sessions": looked.sessions,
        "from": _encoded(looked.earliest),
        "until": _encoded(looked.latest),
        "first": first,
    }


def _encoded(moment: datetime | None) -> str | None:
    return None if moment is None else encode.moment(moment)


# ---------------------------------------------------------------- the reference server's graph


def _import_graph(context: click.Context, file: Path, dry_run: bool, defer_embeddings: bool) -> None:
    merged = MergeCounts()
    refusals = Refusals("line")
    with lines_of(file) as lines:
        size = file.stat().st_size  # in bytes
        with _target(context, dry_run, defer_embeddings) as memory, render.progress("importing") as bar:
            graph = KnowledgeGraph(memory)
            reader = LineReader(lines, lambda line: _decoded(line, graph), refusals.add)
            for so_far in graph.merge(reader, dry_run=dry_run):
                merged = so_far
                bar(Progress(reader.done, size))
    answer(context, asdict(merged) | ({"notes": list(graph.notes)} if graph.notes else {}), [_merged(merged, dry_run)])
    if not wants_json(context):
        render.remark_first(graph.notes)
    refusals.report(context, "imported")


def _is_graph(path: Path) -> bool:
    """Whether one of the first lines is an entity or a relation. A file of nothing is an empty graph."""
    if path.is_dir():
        return False
    text = beginning(registry.head(path))  # not its first line, which may be all of a large export
    first = text.split("\n", _GRAPH_WITHIN)[:_GRAPH_WITHIN]
    return not text.strip() or any(map(_is_graph_line, first)) or _LONG_GRAPH_LINE.match(text) is not None


@contextmanager
def _target(context: click.Context, dry_run: bool, defer_embeddings: bool) -> Iterator[Nacre]:
    """The engine to import into. A dry run creates no store: without one, it uses an empty temporary store."""
    if not dry_run or not is_missing_file(settings_of(context).store.value):
        deferring_now = defer_embeddings and not dry_run
        with opened(context, create=not dry_run, defer_embeddings=deferring_now, log=False) as memory:
            yield memory
        return
    with (
        tempfile.TemporaryDirectory(prefix="nacre-import-") as folder,
        open_store(Path(folder) / "empty.db", embedder="none", log=False) as memory,
    ):
        yield memory


def _is_graph_line(line: str) -> bool:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("type") in ("entity", "relation")


def _decoded(line: bytes | str, graph: KnowledgeGraph) -> Node | Edge:
    value = decode.json_line(line)
    kind = value.get("type") if isinstance(value, dict) else None
    if kind not in ("entity", "relation"):
        raise InvalidInput("", "is neither an entity nor a relation")
    if kind == "entity":
        return _screened(model.to_node("", value), graph)
    return _screened(model.to_edge("", value), graph)


def _screened(read: Element, graph: KnowledgeGraph) -> Element:
    model.validate(read)
    kept = graph.screened(read)
    model.validate(kept)  # what was redacted may be too long now
    return kept


def _merged(merged: MergeCounts, dry_run: bool) -> render.Line:
    added = ", ".join(
        (
            counted(merged.entities, "entity", "entities"),
            counted(merged.observations, "observation"),
            counted(merged.relations, "relation"),
        )
    )
    already = f" ({merged.already:,} already stored)" if merged.already else ""
    return [("would import " if dry_run else "imported ", ""), (added, ""), (already, "dim")]

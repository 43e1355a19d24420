"""`nacre import`: import the memories of another memory server."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.analysis.wording import counted
from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import common, deferring, lines_of, opened, settings_of
from nacre.config.factory import open_store
from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput
from nacre.knowledge_graph import model
from nacre.knowledge_graph.graph import KnowledgeGraph, MergeCounts
from nacre.knowledge_graph.model import Edge, Node
from nacre.types.memory import Progress

if TYPE_CHECKING:
    from nacre.evaluation.questions import Lines

FORMATS = ("knowledge-graph",)
_RECOGNISED_WITHIN = 10  # lines
_NAMED_MAX = 10  # bad lines


class _Reader:
    """Entities and relations, read line by line. Errors are collected, so that a bad line stops no other."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self.done = 0  # bytes
        self.bad: list[InvalidInput] = []

    def __iter__(self) -> Iterator[Node | Edge]:
        for number, line in enumerate(self._lines, 1):
            self.done += len(line)
            if line.strip():
                try:
                    yield _decoded(line, number)
                except InvalidInput as problem:
                    self.bad.append(problem)


@nacre.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", "format_", type=click.Choice(FORMATS), help="Format of FILE; default: detected.")
@click.option("--dry-run", is_flag=True, help="Count what would be added, and write nothing.")
@deferring
@common
@click.pass_context
def import_(context: click.Context, /, file: Path, format_: str | None, dry_run: bool, defer_embeddings: bool) -> None:
    """Import memories of another server from FILE; - is stdin. A repeated import adds only what is new."""
    merged = MergeCounts()
    with lines_of(file) as lines:
        size = 0 if lines is sys.stdin else file.stat().st_size  # in bytes, where that is known
        reader = _Reader(lines if format_ else _recognised(file, lines))
        with _target(context, dry_run, defer_embeddings) as memory, render.progress("importing") as bar:
            for so_far in KnowledgeGraph(memory).merge(reader, dry_run=dry_run):
                merged = so_far
                bar(Progress(reader.done, size))
    answer(context, asdict(merged), [_said(merged, dry_run)])
    if reader.bad:
        named = "; ".join(map(str, reader.bad[:_NAMED_MAX]))
        more = f"; and {len(reader.bad) - _NAMED_MAX:,} more" if len(reader.bad) > _NAMED_MAX else ""
        raise InvalidInput(
            "file",
            f"{named}{more}. All other lines were imported. Repair these and import again; nothing is added twice",
        )


@contextmanager
def _target(context: click.Context, dry_run: bool, defer_embeddings: bool) -> Iterator[Nacre]:
    """The engine to import into. A dry run creates no store: without one, it uses an empty temporary store."""
    if not dry_run or settings_of(context).store.value.exists():
        deferring_now = defer_embeddings and not dry_run
        with opened(context, create=not dry_run, defer_embeddings=deferring_now, log=False) as memory:
            yield memory
        return
    with (
        tempfile.TemporaryDirectory(prefix="nacre-import-") as folder,
        open_store(Path(folder) / "empty.db", embedder="none", log=False) as memory,
    ):
        yield memory


def _recognised(file: Path, lines: Lines) -> Lines:
    """The same lines, if one of the first is an entity or a relation. An empty file is an empty graph."""
    rest = iter(lines)
    first = list(islice(rest, _RECOGNISED_WITHIN))
    if any(line.strip() for line in first) and not any(map(_is_graph_line, first)):
        raise InvalidInput(
            "file",
            f"{file} is in no known format; known: knowledge-graph, the memory.jsonl of the MCP reference memory "
            "server. Import Nacre's own JSON Lines with `nacre remember --jsonl --file`",
        )
    return chain(first, rest)


def _is_graph_line(line: bytes | str) -> bool:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("type") in ("entity", "relation")


def _decoded(line: bytes | str, number: int) -> Node | Edge:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise InvalidInput(f"line {number}", f"is not JSON ({problem})") from None
    kind = value.get("type") if isinstance(value, dict) else None
    if kind not in ("entity", "relation"):
        raise InvalidInput(f"line {number}", "is neither an entity nor a relation")
    try:
        read = model.to_node("", value) if kind == "entity" else model.to_edge("", value)
        model.validate(read)
    except InvalidInput as problem:
        raise InvalidInput(f"line {number}: {problem.field}", problem.problem) from None
    return read


def _said(merged: MergeCounts, dry_run: bool) -> render.Line:
    added = ", ".join(
        (
            counted(merged.entities, "entity", "entities"),
            counted(merged.observations, "observation"),
            counted(merged.relations, "relation"),
        )
    )
    already = f" ({merged.already:,} already stored)" if merged.already else ""
    return [("would import " if dry_run else "imported ", ""), (added, ""), (already, "dim")]

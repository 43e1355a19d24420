"""`nacre import`: import the memories of another memory server."""

from __future__ import annotations

import json
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
from nacre.cli.refusals import LineReader
from nacre.config.factory import open_store
from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput
from nacre.knowledge_graph import model
from nacre.knowledge_graph.graph import Element, KnowledgeGraph, MergeCounts
from nacre.knowledge_graph.model import Edge, Node
from nacre.serialization import decode
from nacre.types.memory import Progress

if TYPE_CHECKING:
    from nacre.evaluation.questions import Lines

FORMATS = ("knowledge-graph",)
_RECOGNISED_WITHIN = 10  # lines


@nacre.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", "format_", type=click.Choice(FORMATS), help="Format of FILE; default: detected.")
@click.option("--dry-run", is_flag=True, help="Count what would be added, and write nothing.")
@deferring
@without_tokens
@secret_policy
@common
@click.pass_context
def import_(context: click.Context, /, file: Path, format_: str | None, dry_run: bool, defer_embeddings: bool) -> None:
    """Import memories of another server from FILE; - is stdin. A repeated import adds only what is new."""
    merged = MergeCounts()
    with lines_of(file) as lines:
        size = 0 if str(file) == "-" else file.stat().st_size  # in bytes, where that is known
        recognised = lines if format_ else _recognised(file, lines)
        with _target(context, dry_run, defer_embeddings) as memory, render.progress("importing") as bar:
            graph = KnowledgeGraph(memory)
            reader = LineReader(recognised, lambda line: _decoded(line, graph))
            for so_far in graph.merge(reader, dry_run=dry_run):
                merged = so_far
                bar(Progress(reader.done, size))
    answer(context, asdict(merged) | ({"notes": list(graph.notes)} if graph.notes else {}), [_said(merged, dry_run)])
    if not wants_json(context):
        render.remark_first(graph.notes)
    reader.refusals.report(context, "imported")


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
            "server. Nacre's own JSON Lines are stored with `nacre remember --jsonl --file`, Markdown and plain text "
            "with `nacre remember --file`",
        )
    return chain(first, rest)


def _is_graph_line(line: bytes | str) -> bool:
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

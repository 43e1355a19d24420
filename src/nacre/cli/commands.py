"""The commands that write, find and keep memories."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import click

from nacre.cli import render
from nacre.cli.group import answer, nacre, print_json
from nacre.cli.options import (
    QueryCommand,
    common,
    deferring,
    filters,
    folder,
    only_given,
    opened,
    search_options,
    settings_of,
    to_filter,
    to_metadata,
    to_moment,
    to_search,
    wants_json,
)
from nacre.errors import InvalidInput, NotFound
from nacre.serialization import decode, encode
from nacre.types.memory import Json, NewMemory, Progress
from nacre.types.recipe import Recipe
from nacre.types.search import RelatedRequest
from nacre.types.views import Bucket, ContextRequest, TimelineRequest

# ---------------------------------------------------------------- writing


def _fields(command: Any) -> Any:
    """The options that set fields of a memory."""
    for name, metavar, help_text in (
        ("--kind", "KIND", "note, fact, episode, action, intent, observation, …"),
        ("--namespace", "NAME", "decisions, patterns, learnings, context, apis, config, …"),
        ("--summary", "TEXT", "One line that stands for it in the timeline."),
        ("--source", "SOURCE", "Where it comes from."),
        ("--session", "SESSION", "The conversation or run it belongs to."),
        ("--happened", "TIME", "When what it tells took place, where that is not when it is remembered."),
    ):
        command = click.option(name, metavar=metavar, help=help_text)(command)
    command = click.option("--tag", "tags", metavar="TAG", multiple=True, help="May be repeated.")(command)
    command = click.option("--position", type=int, help="Its place in the session.")(command)
    command = click.option("--importance", type=float, help="From 0 to 1.")(command)
    return click.option("--meta", metavar="KEY=VALUE", multiple=True, help="Metadata; may be repeated.")(command)


@nacre.command()
@click.argument("text", nargs=-1)
@click.option("--file", type=click.Path(path_type=Path), help="Remember the content of this file; - is stdin.")
@click.option("--jsonl", is_flag=True, help="Input is JSON Lines, one memory a line, with the fields of a memory.")
@click.option("--created", metavar="TIME", help="When it was remembered; now if not given.")
@click.option("--entity", "entities", metavar="NAME", multiple=True, help="What it is about; may be repeated.")
@click.option("--extract", type=click.Choice(["on", "off"]), help="Whether facts are read from the text.")
@_fields
@deferring
@common
@click.pass_context
def remember(
    context: click.Context,
    /,
    text: tuple[str, ...],
    file: Path | None,
    jsonl: bool,
    defer_embeddings: bool,
    meta: tuple[str, ...],
    **given: Any,
) -> None:
    """Remember TEXT, a file, or what comes from stdin."""
    for name in ("created", "happened"):
        given[name] = to_moment(name, given[name])
    given["extract"] = None if given["extract"] is None else given["extract"] == "on"
    fields = only_given(metadata=to_metadata(meta) or None, **given)
    if jsonl:
        if text or fields:
            raise InvalidInput("jsonl", "takes all fields from the input; give no text and no field options with it")
        _remember_lines(context, file, defer_embeddings)
        return
    new = NewMemory(text=_text_given(text, file), **fields)
    with opened(context, create=True, defer_embeddings=defer_embeddings) as memory:
        receipt = memory.remember(new)
    said = "already remembered as" if receipt.duplicate else "remembered"
    answer(context, encode.remembered(receipt), [[(f"{said} ", ""), (receipt.id, "cyan")]])


def _text_given(text: tuple[str, ...], file: Path | None) -> str:
    if text and file:
        raise InvalidInput("text", "give either a text or --file, not both")
    if text and text != ("-",):
        return " ".join(text)
    if file and str(file) != "-":
        return _read(file)
    if sys.stdin.isatty() and text != ("-",):
        raise InvalidInput("text", "is missing; give it as an argument, with --file, or pipe it in")
    return sys.stdin.read()


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("file", f"{file} cannot be read as UTF-8 text ({error})") from None


def _remember_lines(context: click.Context, file: Path | None, defer_embeddings: bool) -> None:
    done = duplicates = 0
    with (
        opened(context, create=True, defer_embeddings=defer_embeddings) as memory,
        render.progress("remembering") as bar,
    ):
        for receipts in memory.remember_batches(_new_memories(file)):
            done += len(receipts)
            duplicates += sum(receipt.duplicate for receipt in receipts)
            bar(Progress(done, 0))
            if wants_json(context):
                for receipt in receipts:
                    print_json(encode.remembered(receipt), indent=None)
    if not wants_json(context):
        render.show([[(f"remembered {done - duplicates:,}", ""), (f" ({duplicates:,} were there already)", "dim")]])


def _new_memories(file: Path | None) -> Iterator[NewMemory]:
    if file is None or str(file) == "-":
        yield from _decoded(sys.stdin)
        return
    try:
        with file.open(encoding="utf-8") as lines:
            yield from _decoded(lines)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("file", f"{file} cannot be read as UTF-8 text ({error})") from None


def _decoded(lines: Iterable[str]) -> Iterator[NewMemory]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield decode.new_memory_line(line, number)


@nacre.command()
@click.argument("memory_id", metavar="ID")
@click.option("--text", help="The new text.")
@_fields
@common
@click.pass_context
def update(context: click.Context, /, memory_id: str, meta: tuple[str, ...], **given: Any) -> None:
    """Change the given fields of a memory. What they were is kept in its history."""
    given["happened"] = to_moment("happened", given["happened"])
    with opened(context) as memory:
        changed = memory.update(memory_id, **only_given(metadata=to_metadata(meta) or None, **given))
    answer(context, encode.memory(changed), render.memory_lines(changed))


@nacre.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@common
@click.pass_context
def forget(context: click.Context, ids: tuple[str, ...]) -> None:
    """Hide memories. They are not found any more, and `restore` brings them back."""
    with opened(context) as memory:
        memory.forget(ids)
    _say_done(context, "forgotten", ids)


@nacre.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@common
@click.pass_context
def restore(context: click.Context, ids: tuple[str, ...]) -> None:
    """Bring forgotten memories back."""
    with opened(context) as memory:
        memory.restore(ids)
    _say_done(context, "restored", ids)


@nacre.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@click.option("--yes", is_flag=True, help="Do not ask.")
@common
@click.pass_context
def purge(context: click.Context, ids: tuple[str, ...], yes: bool) -> None:
    """Delete memories for good. This cannot be undone."""
    if not yes:
        click.confirm(f"Delete {len(ids)} memories for good?", abort=True, err=True)
    with opened(context) as memory:
        memory.purge(ids)
    _say_done(context, "purged", ids)


def _say_done(context: click.Context, action: str, ids: tuple[str, ...]) -> None:
    answer(context, {action: list(ids)}, [[(f"{action} ", ""), (" ".join(ids), "cyan")]])


# ---------------------------------------------------------------- reading


@nacre.command(cls=QueryCommand)
@click.argument("query", nargs=-1, required=True)
@click.option("--brief", is_flag=True, help="A line each, as agents get it.")
@search_options
@filters
@common
@click.pass_context
def search(context: click.Context, /, query: tuple[str, ...], **given: Any) -> None:
    """Find memories that answer QUERY, best first, each with its reasons.

    Words are alternatives that rank. AND, OR, NOT, "phrases", prefix*, -exclusions, NEAR(a b, 5) and filters
    like tag:x, ns:decisions, kind:fact, source:docs/*, since:7d, on:yesterday are honoured.
    """
    brief = given.pop("brief")
    request = to_search(" ".join(query), given)
    with opened(context) as memory:
        result = memory.search(request)
    if brief:
        answer(context, encode.brief(result), render.brief_lines(result))
    else:
        answer(context, encode.search_result(result), render.search_lines(result))


@nacre.command(cls=QueryCommand)
@click.argument("query", nargs=-1, required=True)
@click.option("--budget", "budget_tokens", type=int, metavar="TOKENS", help="What the text may cost.")
@click.option("--asked-in", "asked_in", metavar="SESSION", help="The session that asks: it is told nothing twice.")
@click.option("--repeat", is_flag=True, help="Also what this session was given before.")
@click.option("--min-score", type=float, metavar="RELEVANCE", help="The least relevance of a memory, from 0 to 1.")
@click.option("--as-of", metavar="TIME", help="Answer as of then.")
@filters
@common
@click.pass_context
def context(context: click.Context, /, query: tuple[str, ...], asked_in: str | None, **given: Any) -> None:
    """Pack what is known of QUERY into a text for an agent, within a budget of tokens."""
    where = to_filter(given)
    given["as_of"] = to_moment("as_of", given["as_of"])
    options = only_given(session=asked_in, repeat=given.pop("repeat") or None, **given)
    request = ContextRequest(query=" ".join(query), where=where, folder=folder(), **options)
    with opened(context) as memory:
        packed = memory.context(request)
    answer(context, encode.context(packed), render.context_lines(packed))


@nacre.command()
@click.argument("memory_id", metavar="ID")
@click.option("--limit", type=int, help="At most so many hits.")
@click.option("--alpha", type=float, help="Weight of meaning against shared words, from 0 to 1.")
@filters
@common
@click.pass_context
def related(context: click.Context, /, memory_id: str, limit: int | None, alpha: float | None, **given: Any) -> None:
    """Find memories like the one with this ID: near in meaning, sharing rare words, from the same session."""
    options = only_given(limit=limit, recipe=None if alpha is None else Recipe(alpha=alpha))
    request = RelatedRequest(memory_id=memory_id, where=to_filter(given), **options)
    with opened(context) as memory:
        result = memory.related(request)
    answer(context, encode.search_result(result), render.search_lines(result))


@nacre.command(cls=QueryCommand)
@click.argument("query", nargs=-1)
@filters
@common
@click.pass_context
def facets(context: click.Context, /, query: tuple[str, ...], **given: Any) -> None:
    """Count all memories, or those that match QUERY, by kind, namespace, tag, source and month."""
    where = to_filter(given)
    with opened(context) as memory:
        counted = memory.facets(" ".join(query), where)
    answer(context, encode.facets(counted), render.facets_lines(counted))


@nacre.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@click.option("--entities", is_flag=True, help="With the entities that each is about.")
@click.option("--neighbours", type=int, help="With so many memories before and after each in its session.")
@common
@click.pass_context
def get(context: click.Context, ids: tuple[str, ...], entities: bool, neighbours: int | None) -> None:
    """Show memories in full."""
    options = only_given(entities=entities or None, neighbours=neighbours)
    with opened(context) as memory:
        found = memory.get(ids, missing_ok=True, **options)
    answer(context, encode.fetched(found), render.fetched_lines(found))
    if found.missing:
        raise NotFound(found.missing)


@nacre.command()
@click.option("--limit", type=int, help="At most so many memories.")
@click.option("--oldest-first", is_flag=True, help="The other way round.")
@click.option("--forgotten", is_flag=True, help="The forgotten ones instead.")
@click.option("--cursor", metavar="CURSOR", help="Go on where a page ended.")
@click.option("--around", metavar="ID", help="Those before and after this memory.")
@click.option("--span", type=int, help="With --around: so many before it and after it.")
@click.option("--histogram", metavar="|".join(get_args(Bucket)), help="Count all that match by that.")
@filters
@common
@click.pass_context
def timeline(context: click.Context, /, oldest_first: bool, forgotten: bool, **given: Any) -> None:
    """List memories by time, newest first, a line each."""
    where = to_filter(given)
    options = only_given(oldest_first=oldest_first or None, forgotten=forgotten or None, **given)
    request = TimelineRequest(where=where, **options)
    with opened(context) as memory:
        page = memory.timeline(request)
    answer(context, encode.timeline(page), render.timeline_lines(page))


@nacre.command()
@click.argument("memory_id", metavar="ID")
@common
@click.pass_context
def history(context: click.Context, memory_id: str) -> None:
    """Show what happened to a memory, and what each update replaced."""
    with opened(context) as memory:
        events = memory.history(memory_id)
    answer(context, [encode.event(each) for each in events], render.history_lines(events))


@nacre.command()
@common
@click.pass_context
def stats(context: click.Context) -> None:
    """Count what the store holds."""
    with opened(context) as memory:
        counted = memory.stats()
    answer(context, encode.stats(counted), render.stats_lines(counted))


# ---------------------------------------------------------------- upkeep


@nacre.command()
@common
@click.pass_context
def reembed(context: click.Context) -> None:
    """Give every memory a vector of the configured model. Interrupted, it goes on where it stopped."""
    state = Progress(0, 0)
    with opened(context, switch_model=True) as memory, render.progress("embedding") as bar:
        for state in memory.reembed():
            bar(state)
    answer(context, {"embedded": state.done}, [[(f"embedded {state.done:,} memories", "")]])


@nacre.command()
@common
@click.pass_context
def rebuild(context: click.Context) -> None:
    """Make every index and cache anew from the memories."""
    with opened(context) as memory:
        memory.rebuild()
    answer(context, {"rebuilt": True}, [[("rebuilt", "")]])


@nacre.command()
@common
@click.pass_context
def config(context: click.Context) -> None:
    """Show each setting and where its value came from."""
    settings = settings_of(context)
    sourced = {name: getattr(settings, name) for name in settings.__dataclass_fields__}
    encoded: dict[str, Json] = {
        name: {"value": str(each.value) if isinstance(each.value, Path) else each.value, "source": each.source}
        for name, each in sourced.items()
    }
    answer(context, encoded, render.settings_lines(settings))


@nacre.command()
@click.argument("question", nargs=-1)
@common
@click.pass_context
def demo(context: click.Context, question: tuple[str, ...]) -> None:
    """Ask a question of 212 sample memories: by words, by meaning, and by both."""
    from nacre.cli.demo import run_demo

    run_demo(" ".join(question) or None, settings_of(context), as_json=wants_json(context))

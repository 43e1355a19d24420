"""Commands on memories: remember, update, forget, restore, purge, unlink, get, timeline, history."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import click

from nacre.analysis.wording import count_memories
from nacre.cli import render
from nacre.cli.group import answer, nacre, print_json
from nacre.cli.options import (
    common,
    deferring,
    filters,
    in_order,
    lines_of,
    only_given,
    opened,
    secret_policy,
    stdin_text,
    to_expiry,
    to_filter,
    to_metadata,
    to_moment,
    wants_json,
    without_tokens,
)
from nacre.cli.refusals import Refusals
from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput, NotFound
from nacre.serialization import decode, encode
from nacre.serialization.numbered_lines import LineReader
from nacre.types.memory import Forgotten, NewMemory, Progress, Purged
from nacre.types.views import Bucket, TimelineRequest

_CHOSEN_AT_ONCE = 1_000  # memories of one transaction

# ---------------------------------------------------------------- remember, update


def _fields(command: Any) -> Any:
    """The options that set fields of a memory."""
    valued = (
        ("--kind", "KIND", "note, preference, instruction, fact, episode, … or any other word."),
        ("--namespace", "NAME", "decisions, patterns, learnings, context, apis, config or any other word."),
        ("--summary", "TEXT", "One line that the timeline shows instead of the text."),
        ("--source", "SOURCE", "Where the memory comes from."),
        ("--session", "SESSION", "The conversation that it is a turn of."),
        ("--origin", "ORIGIN", "The connection or run that wrote it."),
        ("--happened", "TIME", "When the event took place, if not at creation."),
        ("--key", "KEY", "Your own name for it, unique in its space: the memory with this key is replaced."),
        ("--expires", "TIME", "When it is forgotten: 30d, 12h, 2027-03-01."),
    )
    return in_order(
        command,
        [
            *(click.option(name, metavar=metavar, help=text) for name, metavar, text in valued),
            click.option("--lang", "language", metavar="CODE", help="Its language, as de or zh; default: recognised."),
            click.option("--tag", "tags", metavar="TAG", multiple=True, help="A tag. Repeatable."),
            click.option("--position", type=int, help="Position in the session."),
            click.option("--importance", type=float, help="A number from 0 to 1."),
            click.option("--pinned/--no-pinned", default=None, help="Keep it in every context that has room."),
            click.option("--meta", metavar="KEY=VALUE", multiple=True, help="Metadata. Repeatable."),
        ],
    )


@nacre.command()
@click.argument("text", nargs=-1)
@click.option(
    "--file",
    "files",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Store this file, or the texts in this folder; - is stdin. Repeatable; all arguments are files then.",
)
@click.option("--jsonl", is_flag=True, help="Read JSON Lines: one object per line with the fields of a memory.")
@click.option("--created", metavar="TIME", help="Creation time; default: now.")
@click.option("--entity", "entities", metavar="NAME", multiple=True, help="An entity it is about. Repeatable.")
@click.option("--extract", type=click.Choice(["on", "off"]), help="Extract facts and recognise the kind, or not.")
@click.option("--supersedes", metavar="ID", multiple=True, help="An older memory that it replaces. Repeatable.")
@_fields
@deferring
@without_tokens
@secret_policy
@common
@click.pass_context
def remember(
    context: click.Context,
    /,
    text: tuple[str, ...],
    files: tuple[Path, ...],
    jsonl: bool,
    defer_embeddings: bool,
    meta: tuple[str, ...],
    **given: Any,
) -> None:
    """Store TEXT, the content of files, or stdin as memories."""
    for name in ("created", "happened"):
        given[name] = to_moment(name, given[name])
    given["expires"] = to_expiry(given["expires"])
    given["extract"] = None if given["extract"] is None else given["extract"] == "on"
    fields = only_given(metadata=to_metadata(meta) or None, **given)
    paths = (*files, *map(Path, text)) if files else ()
    if jsonl:
        if fields or (text and not files):
            raise InvalidInput("jsonl", "takes all fields from the input; omit the text and all field options")
        if len(paths) > 1:
            raise InvalidInput("file", f"is given {len(paths)} times; with --jsonl, give one file")
        _remember_lines(context, paths[0] if paths else None, defer_embeddings)
        return
    if paths:
        from nacre.cli.files import new_memory, remember_files

        if len(paths) > 1 or os.path.isdir(paths[0]):  # noqa: PTH112  # a Path raises where a name is too long
            remember_files(context, paths, fields, defer_embeddings)
            return
        new = new_memory(paths[0], fields)
    else:
        new = NewMemory(text=_text_given(text), **fields)
    with opened(context, create=True, defer_embeddings=defer_embeddings) as memory:
        receipt = memory.remember(new)
    message = "already remembered as" if receipt.duplicate else "remembered"
    changed = f" (changed: {', '.join(receipt.changed)})" if receipt.changed else ""
    answer(context, encode.remembered(receipt), [[(f"{message} ", ""), (receipt.id, "cyan"), (changed, "dim")]])
    _remark(context, receipt.notes)


def _text_given(text: tuple[str, ...]) -> str:
    if text and text != ("-",):
        return " ".join(text)
    if sys.stdin.isatty() and text != ("-",):
        raise InvalidInput("text", "is missing; give it as an argument, with --file, or on stdin")
    return stdin_text()


def _remember_lines(context: click.Context, file: Path | None, defer_embeddings: bool) -> None:
    """Store every good line; the bad ones are listed in the end."""
    done = duplicates = 0
    notes: list[str] = []
    refusals = Refusals("line")
    with (
        lines_of(file or Path("-")) as lines,
        opened(context, create=True, defer_embeddings=defer_embeddings) as memory,
        render.progress("remembering") as bar,
    ):
        reader = LineReader(lines, lambda line: decode.new_memory(decode.json_line(line)), refusals.add)
        for receipts in memory.remember_batches(reader, refused=reader.refuse):
            done += len(receipts)
            duplicates += sum(receipt.duplicate for receipt in receipts)
            notes += [f"{receipt.id}: {note}" for receipt in receipts for note in receipt.notes]
            bar(Progress(done, 0))
            if wants_json(context):
                for receipt in receipts:
                    print_json(encode.remembered(receipt), indent=None)
    if not wants_json(context):
        render.show([[(f"remembered {done - duplicates:,}", ""), (f" ({duplicates:,} already stored)", "dim")]])
    _remark(context, notes)
    refusals.report(context, "stored")


@nacre.command()
@click.argument("memory_id", metavar="ID")
@click.option("--text", help="The new text.")
@_fields
@without_tokens
@secret_policy
@common
@click.pass_context
def update(context: click.Context, /, memory_id: str, meta: tuple[str, ...], **given: Any) -> None:
    """Change the given fields of a memory. `history` shows the previous values."""
    given["happened"] = to_moment("happened", given["happened"])
    given["expires"] = to_expiry(given["expires"])
    with opened(context) as memory:
        changed = memory.update(memory_id, **only_given(metadata=to_metadata(meta) or None, **given))
    answer(context, encode.memory(changed), render.memory_lines(changed))
    _remark(context, changed.notes)


def _remark(context: click.Context, notes: Sequence[str]) -> None:
    """Notes of a write. In JSON they are part of the answer."""
    if not wants_json(context):
        render.remark_first(notes)


# ---------------------------------------------------------------- forget, restore, purge


def _named(command: Any) -> Any:
    """What names the memories that are forgotten or purged."""
    return in_order(
        command,
        [
            click.argument("ids", nargs=-1, metavar="[ID]…"),
            click.option("--key", "keys", metavar="KEY", multiple=True, help="The memory with this key. Repeatable."),
            click.option("--where", metavar="QUERY", help="All memories with this, such as 'tag:draft until:2025'."),
            click.option("--yes", is_flag=True, help="Do not ask for confirmation."),
        ],
    )


def _chosen(memory: Nacre, ids: Sequence[str], keys: Sequence[str], where: str | None, forgotten: bool) -> list[str]:
    """The ids of the memories that a query chooses; none if they are named."""
    if where is None and forgotten:
        raise InvalidInput("forgotten", "goes with --where; forgotten memories are named by their ids as others are")
    if where is None and not (ids or keys):
        raise InvalidInput("ids", "are missing; give ids, --key or --where")
    if where is not None and (ids or keys):
        raise InvalidInput("where", "does not go with ids or keys; give one of them")
    return [] if where is None else [each.id for each in memory.every(where, forgotten=forgotten)]


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + _CHOSEN_AT_ONCE] for start in range(0, len(ids), _CHOSEN_AT_ONCE))


@nacre.command()
@_named
@common
@click.pass_context
def forget(context: click.Context, ids: tuple[str, ...], keys: tuple[str, ...], where: str | None, yes: bool) -> None:
    """Hide memories from all searches. `restore` undoes this."""
    with opened(context) as memory:
        chosen = _chosen(memory, ids, keys, where, forgotten=False)
        if where is None:
            done = memory.forget(ids, keys=keys, missing_ok=True)
        else:
            if chosen and not yes:
                click.confirm(f"Forget {count_memories(len(chosen))}?", abort=True, err=True)
            several = [memory.forget(batch, missing_ok=True) for batch in _batches(chosen)]
            done = Forgotten(tuple(each for one in several for each in one.ids))
    said = [("forgotten ", ""), (" ".join(done.ids), "cyan")] if where is None else [_counted("forgotten", done.ids)]
    answer(context, encode.forgotten(done), [said] if done.ids or where is not None else [])
    if done.missing:
        raise NotFound(done.missing)


def _counted(done: str, ids: Sequence[str]) -> tuple[str, str]:
    return f"{done} {count_memories(len(ids))}", ""


@nacre.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID… | BACKUP")
@click.option("--force", is_flag=True, help="With BACKUP: replace the store that is there.")
@common
@click.pass_context
def restore(context: click.Context, ids: tuple[str, ...], force: bool) -> None:
    """Restore forgotten memories by their ids, or the whole store from a backup file.

    An argument with a dot or a slash is a file, such as ./backup.
    """
    if len(ids) == 1 and not {".", "/", os.sep}.isdisjoint(ids[0]):
        from nacre.cli.backups import restore_store

        restore_store(context, Path(ids[0]), force=force)
        return
    if force:
        raise InvalidInput("force", "needs a backup file, such as ./backup, not ids of memories")
    with opened(context) as memory:
        memory.restore(ids)
    answer(context, {"restored": list(ids)}, [[("restored ", ""), (" ".join(ids), "cyan")]])


@nacre.command()
@_named
@click.option("--forgotten", is_flag=True, help="With --where: forgotten memories instead, expired ones among them.")
@common
@click.pass_context
def purge(
    context: click.Context, ids: tuple[str, ...], keys: tuple[str, ...], where: str | None, yes: bool, forgotten: bool
) -> None:
    """Delete memories permanently. This cannot be undone."""
    with opened(context) as memory:
        chosen = _chosen(memory, ids, keys, where, forgotten)
        number = len(ids) + len(keys) if where is None else len(chosen)
        if number and not yes:
            click.confirm(f"Delete {count_memories(number)} permanently?", abort=True, err=True)
        if where is None:
            done = memory.purge(ids, keys=keys)
        else:
            several = [memory.purge(batch) for batch in _batches(chosen)]
            pending = next((each.pending for each in reversed(several)), None)
            done = Purged(tuple(each for one in several for each in one.ids), pending)
    answer(context, encode.purged(done), render.purged_lines(done))


@nacre.command()
@click.argument("newer", metavar="NEWER")
@click.argument("older", metavar="OLDER")
@common
@click.pass_context
def unlink(context: click.Context, newer: str, older: str) -> None:
    """Undo that a memory updates an older one. Both count as current again."""
    with opened(context) as memory:
        done = memory.unlink(newer, older)
    said = f"{newer} no longer updates {older}" if done else f"{newer} does not update {older}"
    answer(context, {"unlinked": done}, [[(said, "")]])


# ---------------------------------------------------------------- get, timeline, history


@nacre.command()
@click.argument("ids", nargs=-1, metavar="[ID]…")
@click.option("--key", "keys", metavar="KEY", multiple=True, help="The memory with this key. Repeatable.")
@click.option("--entities", is_flag=True, help="Include the entities that each memory is about.")
@click.option("--neighbours", type=int, help="Include this many memories before and after each in its session.")
@click.option("--asked-in", metavar="SESSION", help="The asking session; it was given these in full.")
@common
@click.pass_context
def get(
    context: click.Context,
    ids: tuple[str, ...],
    keys: tuple[str, ...],
    entities: bool,
    neighbours: int | None,
    asked_in: str | None,
) -> None:
    """Show memories in full."""
    if not (ids or keys):
        raise InvalidInput("ids", "are missing; give ids or --key")
    options = only_given(entities=entities or None, neighbours=neighbours, session=asked_in)
    with opened(context) as memory:
        found = memory.get(ids, keys=keys, missing_ok=True, **options)
    answer(context, encode.fetched(found), render.fetched_lines(found))
    if found.missing:
        raise NotFound(found.missing)


@nacre.command()
@click.option("--limit", type=int, help="Maximum number of memories.")
@click.option("--oldest-first", is_flag=True, help="List the oldest memories first.")
@click.option("--forgotten", is_flag=True, help="List forgotten memories instead.")
@click.option("--cursor", metavar="CURSOR", help="Continue after the previous page.")
@click.option("--around", metavar="ID", help="List the memories before and after this one.")
@click.option("--span", type=int, help="With --around: how many memories before it, and how many after it.")
@click.option("--histogram", metavar="|".join(get_args(Bucket)), help="Count all matching memories per period.")
@filters
@common
@click.pass_context
def timeline(context: click.Context, /, oldest_first: bool, forgotten: bool, **given: Any) -> None:
    """List memories by creation time, newest first, one line each."""
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
    """Show all changes to a memory. Each update is listed with the values that it replaced."""
    with opened(context) as memory:
        events = memory.history(memory_id)
    answer(context, [encode.event(each) for each in events], render.history_lines(events))

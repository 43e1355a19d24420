"""Options that several commands share, and how they become values. Imports little: `nacre --help` needs no engine."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from nacre.config import project_space
from nacre.config import settings as settings_module
from nacre.config.settings import Settings
from nacre.errors import InvalidInput

if TYPE_CHECKING:
    from nacre.engine.engine import Nacre
    from nacre.evaluation.questions import Lines
    from nacre.types.memory import JsonScalar
    from nacre.types.search import Filter, SearchRequest

F = TypeVar("F", bound=Callable[..., Any])


def _remember_flag(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Flags may stand before or after the command; the last one given counts."""
    flags = context.ensure_object(dict)
    if value is not None and value is not False:
        flags[parameter.name] = value


def common(command: F) -> F:
    """--store, --space, --embedder and --json, on the group and on every command."""
    for name, metavar, help_text in (
        ("--store", "PATH", "The file that holds the memories."),
        ("--space", "NAME", "The space to remember in and to search."),
        ("--embedder", "NAME", "minilm, minilm-cuda, hashing or none."),
    ):
        command = click.option(name, metavar=metavar, expose_value=False, callback=_remember_flag, help=help_text)(
            command
        )
    return click.option(
        "--json", is_flag=True, expose_value=False, callback=_remember_flag, help="Print JSON, also for errors."
    )(command)


def wants_json(context: click.Context) -> bool:
    return bool(context.ensure_object(dict).get("json"))


def settings_of(context: click.Context) -> Settings:
    return settings_module.load(context.ensure_object(dict), os.environ)


@contextmanager
def lines_of(file: Path) -> Iterator[Lines]:
    """The lines of a file; - is stdin."""
    if str(file) == "-":
        yield sys.stdin
        return
    try:
        lines = file.open("rb")
    except OSError as error:
        raise InvalidInput("file", f"{file} cannot be read ({error})") from None
    with lines:
        yield lines


@contextmanager
def opened(
    context: click.Context,
    *,
    create: bool = False,
    switch_model: bool = False,
    defer_embeddings: bool = False,
    log: bool = True,
) -> Iterator[Nacre]:
    """The engine that flags, environment and config file ask for. Only remembering makes a store."""
    from nacre.config.factory import open_store

    settings = settings_of(context)
    if create and settings.store.source == "default":
        settings.store.value.parent.mkdir(parents=True, exist_ok=True)
    with open_store(
        settings.store.value,
        space=settings.space.value,
        embedder=settings.embedder.value,
        threads=settings.threads.value,
        busy_timeout_ms=settings.busy_timeout_ms.value,
        create=create,
        switch_model=switch_model,
        extract=settings.extract.value,
        defer_embeddings=defer_embeddings,
        decay_rates=settings.decay_rates.value,
        log=log and settings.log.value,
        log_days=settings.log_days.value,
    ) as memory:
        yield memory
        if defer_embeddings and settings.embedder.value != "none":
            waiting = memory.stats().pending
            click.echo(f"{waiting:,} without vectors yet, found by words only: run `nacre reembed`", err=True)


def deferring(command: Any) -> Any:
    """The option of commands that remember much."""
    help_text = "Remember at once, and leave the vectors to `nacre reembed`."
    return click.option("--defer-embeddings", is_flag=True, help=help_text)(command)


class QueryCommand(click.Command):
    """A command whose arguments are a query: in `deploy -staging`, -staging is an exclusion and no option."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if "--" not in args:
            words = [
                each
                for before, each in pairwise(["", *args])
                if _excludes(each) and not (before.startswith("--") and _is_number(each))
            ]
            args = [*(each for each in args if each not in words), "--", *words]
        return super().parse_args(context, args)


def _excludes(word: str) -> bool:
    return len(word) > 2 and word[0] == "-" and word[1] != "-"


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def filters(command: F) -> F:
    """The options that restrict which memories may be found."""
    from nacre.types.search import Part

    for name, metavar, help_text in (
        ("--kind", "KIND", "Only this kind; may be repeated: any of them."),
        ("--namespace", "NAME", "Only this namespace; may be repeated: any of them."),
        ("--tag", "TAG", "Must have this tag; may be repeated: all of them."),
        ("--any-tag", "TAG", "Must have one of these tags; may be repeated."),
        ("--no-tag", "TAG", "Must not have this tag; may be repeated."),
        ("--source", "SOURCE", "Only from this source, * and ? allowed; may be repeated: any of them."),
        ("--session", "SESSION", "Only from this session; may be repeated: any of them."),
        ("--in-space", "NAME", "Search this space instead; may be repeated: all of them."),
        ("--meta", "KEY=VALUE", "Metadata that must be equal; may be repeated."),
        ("--has", "PART", f"Must have {', '.join(get_args(Part))}; may be repeated: all of them."),
    ):
        command = click.option(name, metavar=metavar, multiple=True, help=help_text)(command)
    command = click.option("--since", metavar="TIME", help="Created then or later: 7d, yesterday, 2026-03-01, …")(
        command
    )
    return click.option("--until", metavar="TIME", help="Created before that time begins.")(command)


FILTER_OPTIONS = (
    "kind", "namespace", "tag", "any_tag", "no_tag", "source", "session", "in_space", "meta", "has", "since", "until",
)  # fmt: skip


def to_filter(given: dict[str, Any]) -> Filter:
    """Take the filter options out of a command's parameters."""
    from nacre.types.search import Filter

    taken = {name: given.pop(name) for name in FILTER_OPTIONS}
    return Filter(
        spaces=taken["in_space"],
        kinds=taken["kind"],
        namespaces=taken["namespace"],
        tags_all=taken["tag"],
        tags_any=taken["any_tag"],
        tags_none=taken["no_tag"],
        sources=taken["source"],
        sessions=taken["session"],
        created_from=to_moment("since", taken["since"]),
        created_until=to_moment("until", taken["until"]),
        metadata=to_metadata(taken["meta"]),
        has=taken["has"],
    )


def search_options(command: F) -> F:
    """The options that say how a question is to be answered."""
    from nacre.types.search import Mode

    for name, kind, metavar, help_text in (
        ("--mode", str, "MODE", f"{', '.join(get_args(Mode))}."),
        ("--limit", int, "NUMBER", "At most so many hits."),
        ("--alpha", float, "WEIGHT", "Weight of meaning against words, from 0 to 1."),
        ("--lens", str, "NAME", "Look through this lens; none keeps those away that select themselves."),
        ("--as-of", str, "TIME", "Answer as of then: later memories are not seen, and facts hold as they did."),
        ("--min-score", float, "RELEVANCE", "Only hits of at least this relevance, from 0 to 1."),
        ("--token-budget", int, "TOKENS", "Only as many hits as fit into so many tokens."),
        ("--asked-in", str, "SESSION", "The session that asks, for the recall log."),
    ):
        command = click.option(name, type=kind, metavar=metavar, help=help_text)(command)
    command = click.option(
        "--boost-entity", metavar="NAME", multiple=True, help="Memories about it a little higher; may be repeated."
    )(command)
    command = click.option(
        "--merge-relations", is_flag=True, help="Let relations that match raise their memories among the hits."
    )(command)
    command = click.option(
        "--omit-delivered", is_flag=True, help="Leave out what searches of the same session gave already."
    )(command)
    command = click.option("--no-rerank", is_flag=True, help="Do not read the best again together with the question.")(
        command
    )
    return click.option("--no-collapse", is_flag=True, help="Show near-duplicates one by one.")(command)


def to_search(query: str, given: dict[str, Any]) -> SearchRequest:
    """A search from a command's parameters. The folder it is called in may select a lens."""
    from nacre.types.recipe import Recipe
    from nacre.types.search import SearchRequest

    alpha = given.pop("alpha")
    options = only_given(
        mode=given.pop("mode"),
        limit=given.pop("limit"),
        recipe=None if alpha is None else Recipe(alpha=alpha),
        lens=given.pop("lens"),
        as_of=to_moment("as_of", given.pop("as_of")),
        min_score=given.pop("min_score"),
        token_budget=given.pop("token_budget"),
        session=given.pop("asked_in"),
        boost_entities=given.pop("boost_entity"),
        merge_relations=given.pop("merge_relations") or None,
        collapse=False if given.pop("no_collapse") else None,
        omit_delivered=given.pop("omit_delivered") or None,
        rerank=False if given.pop("no_rerank") else None,
    )
    return SearchRequest(query=query, where=to_filter(given), folder=folder(), **options)


def folder() -> str | None:
    """The folder that a command is called in, unless it is gone or has no name that can be written."""
    from nacre.validation import storable

    name = str(project_space.working() or "")
    return name if name and storable(name) else None


def to_moment(field: str, text: str | None) -> datetime | None:
    """A time that a person typed: without a time zone it is local."""
    if text is None:
        return None
    from nacre.serialization import decode

    return decode.parse_time(field, text, datetime.now(UTC))


def to_metadata(pairs: tuple[str, ...]) -> dict[str, JsonScalar]:
    """KEY=VALUE, where VALUE is a JSON scalar or else a plain text."""
    metadata: dict[str, JsonScalar] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise InvalidInput("meta", f"{pair!r} must be KEY=VALUE")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        metadata[key] = text if isinstance(value, dict | list) else value
    return metadata


def only_given(**values: Any) -> dict[str, Any]:
    """What was given on the command line. The rest keeps the default of its dataclass."""
    return {name: value for name, value in values.items() if value is not None and value != ()}

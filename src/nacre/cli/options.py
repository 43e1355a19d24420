"""Options that several commands share, and their conversion to values. Imports no engine: --help needs none."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast, get_args

import click

from nacre.analysis import encodings
from nacre.config import project_space
from nacre.config import settings as settings_module
from nacre.config.settings import Settings
from nacre.errors import InvalidInput
from nacre.types.location import is_address

if TYPE_CHECKING:
    from nacre.engine.engine import Nacre
    from nacre.evaluation.questions import Lines
    from nacre.types.memory import JsonScalar
    from nacre.types.recipe import Recipe
    from nacre.types.search import Filter, SearchRequest

F = TypeVar("F", bound=Callable[..., Any])

PASSED_ON = ("store", "space", "embedder", "key_file")  # flags that a process which this one starts is given, too
MODES = "keyword (or text), semantic (or vector), hybrid"


def _remember_flag(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Keep a flag for the whole command line. It may come before or after the command; the last one wins."""
    flags = context.ensure_object(dict)
    if value is not None and value is not False:
        flags[parameter.name] = value


def _remember_store(context: click.Context, _: click.Parameter, several: tuple[str, ...]) -> None:
    """The same for stores: several addresses are one store, of several files the last one wins."""
    if several:
        addresses = all(map(is_address, several))
        context.ensure_object(dict)["store"] = " ".join(several) if addresses else several[-1]


def in_order(command: F, options: Sequence[Callable[[F], F]]) -> F:
    """A command with these options, listed in this order by --help: decorators apply from the last to the first."""
    for option in reversed(options):
        command = option(command)
    return command


def common(command: F) -> F:
    """--store, --space, --embedder, --multilingual, --key-file, --json and --printable, which every command takes."""
    named = (
        ("--space", "NAME", "The space to read and write."),
        ("--embedder", "NAME", "minilm, minilm-cuda, hashing, none, onnx:DIR or http://HOST/v1#MODEL."),
        ("--multilingual", "WHEN", "auto: use the multilingual model where it is installed; off: use none."),
        ("--key-file", "FILE", "The key of an encrypted store; keyring:NAME is allowed."),
    )
    kept: dict[str, Any] = {"expose_value": False, "callback": _remember_flag}
    return in_order(
        command,
        [
            click.option(
                "--store",
                metavar="STORE",
                multiple=True,
                expose_value=False,
                callback=_remember_store,
                help="The file that holds the memories, or an address: postgresql://user@host/database.",
            ),
            *(click.option(name, metavar=metavar, help=help_text, **kept) for name, metavar, help_text in named),
            click.option("--json", is_flag=True, help="Print JSON, errors included.", **kept),
            click.option(
                "--printable",
                is_flag=True,
                help="Replace control characters, as on a terminal, also in a pipe.",
                **kept,
            ),
        ],
    )


def wants_json(context: click.Context) -> bool:
    return bool(context.ensure_object(dict).get("json"))


def wants_printable() -> bool:
    """Of the command that runs now."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.ensure_object(dict).get("printable"))


def settings_of(context: click.Context) -> Settings:
    return settings_module.load(context.ensure_object(dict), os.environ)


@contextmanager
def lines_of(file: Path) -> Iterator[Lines]:
    """The lines of a file; - is stdin."""
    if str(file) == "-":
        yield _lines(file, sys.stdin.buffer)
        return
    try:
        content = file.open("rb")
    except OSError as error:
        raise InvalidInput("file", f"{file} cannot be read ({error.strerror})") from None
    with content:
        yield _lines(file, content)


def _lines(file: Path, content: IO[bytes]) -> Iterator[bytes | str]:
    """Lines as bytes, so that one that is no text can be refused alone; those of UTF-16 as texts. Of a line that is
    too long only the beginning is read, which is refused."""
    from nacre.serialization.decode import LINE_BYTES_MAX

    most = LINE_BYTES_MAX + 1
    try:
        line = content.readline(most)
        if line.startswith(encodings.UTF_16):
            yield from io.StringIO(encodings.decoded(line + content.read()))
            return
        while line:
            yield line
            while len(line) == most and not line.endswith(b"\n"):
                line = content.readline(most)
            line = content.readline(most)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("file", f"{file} cannot be read ({error})") from None


def stdin_text() -> str:
    """What is piped in, read as a file is."""
    try:
        return encodings.decoded(sys.stdin.buffer.read()).replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise InvalidInput("text", "cannot be read as UTF-8 from stdin") from None


@contextmanager
def opened(
    context: click.Context,
    *,
    create: bool = False,
    switch_model: bool = False,
    defer_embeddings: bool = False,
    log: bool = True,
    shows_notes: bool = False,
) -> Iterator[Nacre]:
    """The engine that flags, environment and config file name. Only commands that remember create a store.

    `shows_notes`: the command prints the notes of its result, those on the store among them.
    """
    from nacre.cli import render
    from nacre.config.factory import open_from_settings

    settings = settings_of(context)
    with open_from_settings(
        settings,
        create=create,
        switch_model=switch_model,
        defer_embeddings=defer_embeddings,
        log=log,
        creates="`nacre remember` creates it",
    ) as memory:
        if not (shows_notes or wants_json(context)):
            render.remark(memory.notes)
        yield memory
        if defer_embeddings and settings.embedder.value != "none":
            waiting = memory.stats().pending
            click.echo(f"{waiting:,} without vectors yet, found by words only: run `nacre reembed`", err=True)


def deferring(command: Any) -> Any:
    """The option of commands that store many memories."""
    help_text = "Store without embedding; `nacre reembed` embeds later."
    return click.option("--defer-embeddings", is_flag=True, help=help_text)(command)


def without_tokens(command: F) -> F:
    """The option of commands that embed."""
    return click.option(
        "--no-token-vectors",
        "token_vectors",
        is_flag=True,
        flag_value="off",
        expose_value=False,
        callback=_remember_flag,
        help="Store no token vectors: a smaller file, ranked less well.",
    )(command)


def secret_policy(command: F) -> F:
    """The option of commands that store what people write."""
    return click.option(
        "--secrets",
        metavar="POLICY",
        expose_value=False,
        callback=_remember_flag,
        help="What to do with keys, tokens and passwords in it: warn, redact, refuse or off.",
    )(command)


class QueryCommand(click.Command):
    """A command with a query as its arguments: in `deploy -staging`, -staging is an exclusion, not an option."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if "--" not in args:
            words = [
                each
                for before, each in pairwise(["", *args])
                if _excludes(each) and not (before.startswith("--") and _is_number(each))
            ]
            if words:  # else a last option without its value would take the dashes for it
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
    from nacre.types.facts import FactType
    from nacre.types.search import Part

    several = (
        ("--kind", "KIND", "Only this kind. Repeatable: any of them."),
        ("--namespace", "NAME", "Only this namespace. Repeatable: any of them."),
        ("--tag", "TAG", "Only with this tag. Repeatable: all of them."),
        ("--any-tag", "TAG", "Only with one of these tags. Repeatable."),
        ("--no-tag", "TAG", "Only without this tag. Repeatable."),
        ("--source", "SOURCE", "Only from this source; * and ? are wildcards. Repeatable: any of them."),
        ("--session", "SESSION", "Only from this session. Repeatable: any of them."),
        ("--in-space", "NAME", "Search this space instead of the current one. Repeatable: all of them."),
        ("--meta", "KEY=VALUE", "Only with this metadata. Repeatable: all of them."),
        ("--key-prefix", "TEXT", "Only with a key that begins so. Repeatable: any of them."),
        ("--has", "PART", f"Only with {', '.join(get_args(Part))}. Repeatable: all of them."),
        ("--fact-type", "TYPE", f"Only with a fact of this type: {', '.join(get_args(FactType))}. Repeatable: any."),
        ("--lang", "CODE", "Only in this language: de, fr, zh. Repeatable: any of them."),
    )
    times = (
        ("--since", "Created at this time or later: 7d, yesterday, 2026-03-01."),
        ("--until", "Created before the start of this time."),
    )
    bounds = (
        ("--min-importance", "Only with this importance or more, from 0 to 1."),
        ("--max-importance", "Only with this importance or less, from 0 to 1."),
    )
    return in_order(
        command,
        [
            *(click.option(name, metavar=metavar, multiple=True, help=text) for name, metavar, text in several),
            *(click.option(name, metavar="TIME", help=text) for name, text in times),
            *(click.option(name, type=float, metavar="NUMBER", help=text) for name, text in bounds),
        ],
    )


FILTER_OPTIONS = (
    "kind", "namespace", "tag", "any_tag", "no_tag", "source", "session", "in_space", "meta", "has", "fact_type",
    "since", "until", "min_importance", "max_importance",
    "key_prefix", "lang",
)  # fmt: skip


def to_filter(given: dict[str, Any]) -> Filter:
    """Build a filter from a command's parameters, and remove them there."""
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
        fact_types=taken["fact_type"],
        importance_min=taken["min_importance"],
        importance_max=taken["max_importance"],
        key_prefixes=taken["key_prefix"],
        languages=taken["lang"],
    )


def search_options(command: F) -> F:
    """The options of a search, apart from filters."""
    from nacre.types.search import SearchRequest

    usual = SearchRequest(query="")
    valued = (
        ("--mode", str, "MODE", f"{MODES}; default: {usual.mode}."),
        ("--limit", int, "NUMBER", f"Maximum number of hits; default: {usual.limit}."),
        ("--alpha", float, "WEIGHT", f"Weight of meaning against words, from 0 to 1; default: {usual.recipe.alpha:g}."),
        ("--lens", str, "NAME", "Search with this lens; `none` disables automatic lenses."),
        ("--as-of", str, "TIME", "Search as of this time, with the memories and facts current then."),
        ("--min-score", float, "RELEVANCE", "Minimum relevance of a hit, from 0 to 1."),
        ("--min-similarity", float, "COSINE", "Minimum cosine of a hit with QUERY, from -1 to 1."),
        ("--token-budget", int, "TOKENS", "Maximum size of all hits in tokens."),
        ("--asked-in", str, "SESSION", "The asking session, for the recall log."),
    )
    flags = (
        ("--merge-relations", "Let matching relations compete with texts in one list."),
        ("--omit-delivered", "Omit memories that were delivered to the asking session before."),
        ("--include-facts", "Show the facts of each hit with their confidence after decay."),
        ("--all-words", "Find only memories that have every word of QUERY but stop words."),
        ("--no-collapse", "Show near-duplicates as separate hits."),
    )
    boosted = "Rank memories about this entity a little higher. Repeatable."
    return in_order(
        command,
        [
            *(click.option(name, type=kind, metavar=metavar, help=text) for name, kind, metavar, text in valued),
            click.option("--boost-entity", metavar="NAME", multiple=True, help=boosted),
            recipe_fields,
            rerank_options,
            *(click.option(name, is_flag=True, help=text) for name, text in flags),
        ],
    )


def rerank_options(command: F) -> F:
    """--rerank and --no-rerank."""
    how = "fast reranks the best few in a short time, full more of them without a limit; default: fast."
    command = click.option("--no-rerank", is_flag=True, help="Skip reranking.")(command)
    return click.option("--rerank", metavar="HOW", help=how)(command)


def to_rerank(given: dict[str, Any]) -> str | bool | None:
    """Take --rerank and --no-rerank out of a command's parameters; None if neither was given."""
    how, skip = given.pop("rerank"), given.pop("no_rerank")
    if how is not None and skip:
        raise InvalidInput("rerank", "--rerank and --no-rerank contradict each other; give one of them")
    return False if skip else cast("str | None", how)


def recipe_fields(command: F) -> F:
    """--recipe: weights of the ranking."""
    help_text = "Set a field of the recipe, such as recency_weight=0.5. Repeatable."
    return click.option("--recipe", metavar="FIELD=VALUE", multiple=True, help=help_text)(command)


def to_recipe_fields(pairs: Sequence[str]) -> dict[str, Any]:
    """Parse FIELD=VALUE pairs."""
    from nacre.types.recipe import parse_weight

    fields: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InvalidInput("recipe", f"{pair!r} must be FIELD=VALUE, for example recency_weight=0.5 or fusion=rank")
        fields[name.strip()] = parse_weight(name.strip(), value)
    return fields


def to_recipe(pairs: Sequence[str], alpha: float | None = None) -> Recipe | None:
    """The recipe with these fields; None if none is given. `alpha` is that of the option of its own."""
    from nacre.types.recipe import USUAL_RECIPE, adjusted

    fields = to_recipe_fields(pairs) | only_given(alpha=alpha)
    return adjusted(USUAL_RECIPE, **fields) if fields else None


def with_reasons(command: F) -> F:
    """--why: the reasons of every hit."""
    return click.option(
        "--why", "--verbose", "-v", "why", is_flag=True, help="Show the reasons and the score of every hit."
    )(command)


def in_space(command: F) -> F:
    """--in-space, for commands without the other filters."""
    return click.option(
        "--in-space",
        "spaces",
        metavar="NAME",
        multiple=True,
        help="Search this space instead of the current one. Repeatable: all of them.",
    )(command)


def to_search(query: str, given: dict[str, Any]) -> SearchRequest:
    """Build a search request from a command's parameters. The working folder may select a lens."""
    from nacre.types.search import SearchRequest

    options = only_given(
        mode=given.pop("mode"),
        limit=given.pop("limit"),
        recipe=to_recipe(given.pop("recipe"), given.pop("alpha")),
        lens=given.pop("lens"),
        as_of=to_moment("as_of", given.pop("as_of")),
        min_score=given.pop("min_score"),
        min_similarity=given.pop("min_similarity"),
        token_budget=given.pop("token_budget"),
        session=given.pop("asked_in"),
        boost_entities=given.pop("boost_entity"),
        merge_relations=given.pop("merge_relations") or None,
        collapse=False if given.pop("no_collapse") else None,
        omit_delivered=given.pop("omit_delivered") or None,
        rerank=to_rerank(given),
        include_facts=given.pop("include_facts") or None,
        match="all" if given.pop("all_words") else None,
    )
    return SearchRequest(query=query, where=to_filter(given), folder=folder(), **options)


def folder() -> str | None:
    """The working folder, unless it was deleted or its name is not valid text."""
    from nacre.validation import storable

    name = str(project_space.working() or "")
    return name if name and storable(name) else None


def to_moment(field: str, text: str | None) -> datetime | None:
    """Parse a time as people write it. Without a time zone, it is local."""
    if text is None:
        return None
    from nacre.serialization import decode

    return decode.parse_time(field, text, datetime.now(UTC))


def to_expiry(text: str | None) -> datetime | timedelta | None:
    """Parse a time to come, or how long from now. Without a time zone, it is local."""
    if text is None:
        return None
    from nacre.serialization import decode

    return decode.expiry("expires", text)


def to_metadata(pairs: tuple[str, ...]) -> dict[str, JsonScalar]:
    """Parse KEY=VALUE pairs. VALUE is a JSON scalar, or else plain text."""
    metadata: dict[str, JsonScalar] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise InvalidInput("meta", f"{pair!r} must be KEY=VALUE, for example pr=482")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        metadata[key] = text if isinstance(value, dict | list) else value
    return metadata


def only_given(**values: Any) -> dict[str, Any]:
    """Drop options that were not given, so that the defaults of the dataclass apply."""
    return {name: value for name, value in values.items() if value is not None and value != ()}

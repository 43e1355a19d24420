"""A toolset of Pydantic AI: what an agent may do with its memory.

`Agent(model, toolsets=[NacreToolset("agent.db")])` gives it six tools. They see one space: that of the engine.
"""

# Pydantic AI reads the types of the tools where the toolset is made, so annotations are no texts here.

import functools
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from nacre.analysis import quoting
from nacre.engine.engine import Nacre
from nacre.errors import Conflict, InvalidInput, NotFound
from nacre.integrations.owner import Owner
from nacre.integrations.parts import needs
from nacre.serialization import decode, encode
from nacre.types.memory import Json, NewMemory

with needs("pydantic_ai"):
    from pydantic_ai import FunctionToolset, ModelRetry, RunContext

Answer = dict[str, Any]

TOOLS = ("remember", "search_memories", "timeline", "get_memories", "context", "forget")


class NacreToolset(Owner, FunctionToolset[Any]):  # type: ignore[misc]
    """Tools to remember, search, list, get, recall within a budget, and forget.

    Give it a path with options of `nacre.open`, or an engine that is open, which then is not closed here. A path is
    opened confined to its space, so that no id leads to another; open an engine with `confined=True` to the same end.
    `session` tells conversations apart: a context leaves out what its conversation was given. None: that of the run.
    `tools` are the names of those that are offered.
    """

    def __init__(
        self,
        memory: Nacre | str | PathLike[str],
        *,
        session: str | None = None,
        tools: Sequence[str] = TOOLS,
        id: str | None = "nacre",  # noqa: A002  # the framework's name for it
        **options: Any,
    ) -> None:
        FunctionToolset.__init__(self, id=id)
        unknown = [each for each in tools if each not in TOOLS]
        if unknown:
            raise InvalidInput("tools", f"{unknown[0]!r} is unknown; allowed: {', '.join(TOOLS)}")
        if not isinstance(memory, Nacre):
            options.setdefault("confined", True)
        Owner.__init__(self, memory, **options)
        self._session = session
        for name in tools:
            self.add_function(_asking(getattr(self, f"_{name}")), name=name)

    def _conversation(self, ctx: RunContext[Any]) -> str | None:
        return self._session or ctx.conversation_id or ctx.run_id

    # ---- the tools: their descriptions and parameters are what a model reads

    def _remember(
        self,
        ctx: RunContext[Any],
        text: str,
        summary: str | None = None,
        namespace: str | None = None,
        kind: str | None = None,
        tags: list[str] | None = None,
        source: str | None = None,
        happened: str | None = None,
        expires: str | None = None,
        importance: float | None = None,
        supersedes: list[str] | None = None,
        pinned: bool | None = None,
    ) -> Answer:
        """Store one self-contained fact, decision, preference or event worth knowing later.

        Args:
            text: what to remember
            summary: one line
            namespace: general, decisions, learnings, patterns, config, ...
            kind: note, fact, preference, instruction, ...
            tags: labels to find it by
            source: where it is from
            happened: when, if not now
            expires: when it no longer holds: 30d or a date
            importance: from 0 to 1
            supersedes: ids it replaces
            pinned: keep it in every context
        """
        given = _given(
            text=text, summary=summary, namespace=namespace, kind=kind, tags=tags, source=source, importance=importance,
            supersedes=supersedes, pinned=pinned,
            happened=None if happened is None else decode.moment("happened", happened),
            expires=None if expires is None else decode.expiry("expires", expires),
        )  # fmt: skip
        receipt = self.memory.remember(NewMemory(origin=self._conversation(ctx), **given))
        return encode.brief_remembered(receipt)

    def _search_memories(
        self,
        ctx: RunContext[Any],
        query: str,
        limit: int | None = None,
        mode: Literal["hybrid", "keyword", "semantic"] = "hybrid",
        min_score: float | None = None,
        as_of: str | None = None,
        namespaces: list[str] | None = None,
        kinds: list[str] | None = None,
        tags: list[str] | None = None,
    ) -> Answer:
        """Find memories by words and meaning. Returns snippets, best first; get_memories returns full texts.

        Args:
            query: words or a question; also "phrase", -word, tag:x, ns:x, kind:x, entity:x, since:7d, until:2026-03
            limit: at most so many
            mode: by words, by meaning, or both
            min_score: least relevance, from 0 to 1
            as_of: as it was known then
            namespaces: any of them
            kinds: any of them
            tags: all of them
        """
        asked = _given(
            query=query, limit=limit, mode=mode, min_score=min_score, as_of=as_of, namespaces=namespaces, kinds=kinds,
            tags=tags, session=self._conversation(ctx),
        )  # fmt: skip
        return encode.brief(self.memory.search(decode.search_request(asked)))

    def _timeline(
        self,
        start: str | None = None,
        end: str | None = None,
        limit: int | None = None,
        oldest_first: bool | None = None,
        cursor: str | None = None,
        namespaces: list[str] | None = None,
        kinds: list[str] | None = None,
        tags: list[str] | None = None,
    ) -> Answer:
        """List memories by time, newest first, each with day, id and summary. Use it for recent work.

        Args:
            start: 7d, yesterday, 2026-03-01, ...
            end: like start
            limit: at most so many
            oldest_first: begin with the oldest
            cursor: `next` of the previous page
            namespaces: any of them
            kinds: any of them
            tags: all of them
        """
        asked = _given(
            start=start, end=end, limit=limit, oldest_first=oldest_first, cursor=cursor, namespaces=namespaces,
            kinds=kinds, tags=tags,
        )  # fmt: skip
        page = self.memory.timeline(decode.timeline_request(asked))
        return encode.brief_timeline(page, count=self.memory.count_tokens)

    def _get_memories(self, ctx: RunContext[Any], ids: list[str], neighbours: int = 0) -> Answer:
        """Get full texts by id, with their facts.

        Args:
            ids: of memories that were found
            neighbours: how many memories before and after each in its session
        """
        session = self._conversation(ctx)
        fetched = self.memory.get(ids, neighbours=neighbours, missing_ok=True, session=session)
        return encode.brief_fetched(fetched)

    def _context(
        self,
        ctx: RunContext[Any],
        query: str,
        budget_tokens: int | None = None,
        repeat: bool | None = None,
        min_score: float | None = None,
        as_of: str | None = None,
        namespaces: list[str] | None = None,
        kinds: list[str] | None = None,
        tags: list[str] | None = None,
    ) -> str:
        """Get what is known about a question or task, without what was given before. Call it first for a task.

        Args:
            query: the question or task
            budget_tokens: size of the answer at most
            repeat: you lost what was given before
            min_score: least relevance, from 0 to 1
            as_of: as it was known then
            namespaces: any of them
            kinds: any of them
            tags: all of them
        """
        asked = _given(
            query=query, budget_tokens=budget_tokens, repeat=repeat, min_score=min_score, as_of=as_of,
            namespaces=namespaces, kinds=kinds, tags=tags, session=self._conversation(ctx),
        )  # fmt: skip
        packed = self.memory.context(decode.context_request(asked))
        return packed.text or quoting.shortest_line(packed.outcome)  # an empty text would say nothing

    def _forget(self, ids: list[str]) -> Answer:
        """Hide memories that are wrong or obsolete. People can restore them.

        Args:
            ids: of memories that were found
        """
        done = self.memory.forget(ids, missing_ok=True)
        if done.missing and not done.ids:
            raise NotFound(done.missing)
        return encode.forgotten(done)


def _given(**fields: object) -> Mapping[str, Any]:
    """The arguments that a model gave. A missing one keeps the default of the verb."""
    return {name: value for name, value in fields.items() if value is not None}


def _asking(tool: Callable[..., Json]) -> Callable[..., Json]:
    """A tool that says to the model what is wrong with its arguments, so that it can call again."""

    @functools.wraps(tool)
    def call(*given: Any, **named: Any) -> Json:
        try:
            return tool(*given, **named)
        except (InvalidInput, NotFound, Conflict) as error:
            raise ModelRetry(str(error)) from error

    return call

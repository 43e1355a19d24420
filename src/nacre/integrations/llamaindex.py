"""For LlamaIndex: a retriever of memories, and a block of long-term memory for an agent's chat."""

import re
from collections.abc import Sequence
from os import PathLike
from typing import Any

from nacre.engine.engine import Nacre
from nacre.integrations.conversation import Conversation, Item
from nacre.integrations.owner import Owner, in_thread
from nacre.integrations.parts import needs, opened
from nacre.serialization import encode
from nacre.types.memory import Json, Memory
from nacre.types.search import Filter, Mode, ModeAlias

with needs("llamaindex"):
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.bridge.pydantic import Field
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

_SPEAKERS = ("user", "assistant")
_OF_MEMORY = ("kind", "namespace", "tags", "source", "session", "position", "key", "created", "happened")
_FOR_A_MODEL = ("created", "happened", "source")  # of these, what a model reads beside the text
_MEMORY_TAG = re.compile(r"\n(?=<memory id=)")
_NOBODY = "default"  # the session of messages that have none


class NacreRetriever(Owner, BaseRetriever):  # type: ignore[misc]
    """Memories that answer a query, as nodes: best first, each with its relevance, from 0 to 1, as the score.

    Give it a path with options of `nacre.open`, or an engine that is open, which then is not closed here. A node has
    the id and the text of its memory, and its metadata with `created`, `source` and the like added.
    """

    def __init__(
        self,
        memory: Nacre | str | PathLike[str],
        *,
        similarity_top_k: int = 10,
        mode: Mode | ModeAlias = "hybrid",
        where: Filter | None = None,
        min_score: float = 0.0,
        callback_manager: Any = None,
        verbose: bool = False,
        **options: Any,
    ) -> None:
        Owner.__init__(self, memory, **options)
        self.similarity_top_k = similarity_top_k
        self._asked = {"mode": mode, "where": Filter() if where is None else where, "min_score": min_score}
        BaseRetriever.__init__(self, callback_manager=callback_manager, verbose=verbose)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        asked: Any = self._asked
        hits = self.memory.search(query_bundle.query_str, limit=self.similarity_top_k, **asked).hits
        return [NodeWithScore(node=_node(hit.memory), score=hit.relevance) for hit in hits]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found: list[NodeWithScore] = await in_thread(self._retrieve, query_bundle)
        return found


class NacreMemoryBlock(BaseMemoryBlock[str]):  # type: ignore[misc]
    """A block of LlamaIndex's `Memory`. What leaves its short-term queue is remembered as turns of its session.

    For each answer, what is known about the latest messages of the user comes back, within `budget_tokens`: from all
    sessions, from notes and documents, whatever is in the space. Give it an engine, or the path of a store.
    """

    name: str = Field(default="RecalledMemories", description="The name of the block.")
    memory: Any = Field(exclude=True, description="The engine, or the path of a store, which is opened.")
    budget_tokens: int = Field(default=800, description="How many tokens are recalled at most.")
    user_messages: int = Field(default=1, description="How many of the user's latest messages make the question.")
    where: Any = Field(default=None, exclude=True, description="A nacre.Filter: which memories may be recalled.")

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self.memory, self._ours = opened(self.memory)

    def close(self) -> None:
        """Close the store, if it was opened here."""
        if self._ours:
            self.memory.close()

    async def _aget(self, messages: list[ChatMessage] | None = None, **_: Any) -> str:
        asked = [each.content for each in messages or () if each.role == "user" and each.content]
        query = "\n".join(asked[-self.user_messages :])
        if not query.strip():
            return ""
        where = Filter() if self.where is None else self.where
        # Each prompt is made anew, so that nothing counts as delivered before.
        packed = await in_thread(self.memory.context, query, self.budget_tokens, where=where, repeat=True)
        return str(packed.text) if packed.outcome == "answered" else ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        said: dict[str, list[Item]] = {}
        for each in messages:
            if each.role in _SPEAKERS and each.content:
                session = str(each.additional_kwargs.get("session_id", _NOBODY))
                said.setdefault(session, []).append(Item(None, str(each.role.value), each.content))
        for session, items in said.items():
            await in_thread(Conversation(self.memory, "llamaindex", session).add, items)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """The content without as many of its last memories as take these tokens."""
        quoted = _MEMORY_TAG.split(content)
        saved = 0
        while len(quoted) > 1 and saved < tokens_to_truncate:
            saved += self.memory.count_tokens(quoted.pop())
        return "\n".join(quoted) if len(quoted) > 1 else None


def _node(memory: Memory) -> TextNode:
    fields = encode.memory(memory)
    own: dict[str, Json] = {name: fields[name] for name in _OF_MEMORY if fields.get(name) not in (None, [])}
    metadata = own | {**memory.metadata}
    hidden: Sequence[str] = [each for each in metadata if each not in _FOR_A_MODEL]
    return TextNode(
        id_=memory.id,
        text=memory.text,
        metadata=metadata,
        excluded_llm_metadata_keys=[*hidden],
        excluded_embed_metadata_keys=[*metadata],
    )

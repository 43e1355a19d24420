"""A session of the OpenAI Agents SDK whose items are kept as memories.

`Runner.run(agent, "…", session=NacreSession("chat-1", "agent.db"))` goes on where the session ended, in any process.
What its user and agent said is found by every search of the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from nacre.engine.engine import Nacre
from nacre.integrations.conversation import Conversation, Item
from nacre.integrations.owner import Owner, in_thread
from nacre.integrations.parts import needs

with needs("openai_agents"):
    from agents import SessionSettings, TResponseInputItem

_SPEAKERS = ("user", "assistant")


class NacreSession(Owner):
    """A `Session` of the SDK. Give it a path, or an engine that is open, which then is not closed here.

    Items come back as they were added. The text of a user's or an assistant's message is a turn: a memory with this
    session, its position and a key. Other items are memories of the kind "item".
    """

    def __init__(
        self,
        session_id: str,
        memory: Nacre | str | PathLike[str],
        *,
        session_settings: SessionSettings | None = None,
        **options: Any,
    ) -> None:
        self.session_id = session_id
        self.session_settings = SessionSettings() if session_settings is None else session_settings
        super().__init__(memory, **options)
        self._conversation = Conversation(self.memory, "openai-agents", session_id)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """All items in order, or the latest `limit` of them."""
        if limit is None:
            limit = self.session_settings.limit
        items = await in_thread(self._conversation.items)
        return items if limit is None or limit < 0 else items[len(items) - min(limit, len(items)) :]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items. They stay together, whatever others append meanwhile."""
        if items:
            await in_thread(self._conversation.add, [_item(each) for each in items])

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the last item away, and return it."""
        return await in_thread(self._conversation.pop)

    async def clear_session(self) -> None:
        """Forget all items of this session. They can be restored until they are purged."""
        await in_thread(self._conversation.clear)


def _item(item: TResponseInputItem) -> Item:
    role = item.get("role")
    if role in _SPEAKERS:
        return Item(item, role, _text(item.get("content")))
    return Item(item, label=" ".join(str(item[name]) for name in ("type", "role", "name") if item.get(name)))


def _text(content: object) -> str:
    """What a message says: its text, or the texts of its parts."""
    if isinstance(content, str):
        return content
    parts = [each for each in content if isinstance(each, Mapping)] if isinstance(content, list | tuple) else []
    texts = [part.get("text", part.get("refusal")) for part in parts]
    return "\n".join(each for each in texts if isinstance(each, str))

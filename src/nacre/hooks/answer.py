"""What a hook answers to a client's event, in the hook's own process or in a server that runs anyway."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nacre.config import settings as settings_module
from nacre.config.project_space import PREFIX
from nacre.config.settings import Settings
from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput
from nacre.hooks import events
from nacre.types.location import Location
from nacre.types.views import ContextRequest

BUDGET_TOKENS = 800


@dataclass(frozen=True, slots=True)
class Call:
    """An event, and the process that a client started for it."""

    event: Mapping[str, Any]
    flags: Mapping[str, object]
    environment: Mapping[str, str]
    working: str  # the folder that the process runs in


def parse(text: str) -> Mapping[str, Any]:
    """The event as JSON."""
    try:
        event = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("event", f"is not JSON ({error}); clients hand it to a hook") from None
    if not isinstance(event, dict):
        raise InvalidInput("event", f"must be a JSON object, not {type(event).__name__}")
    return event


def settings_for(call: Call, folder: str) -> Settings:
    """The settings of a hook. Unless a space is named, it is that of the folder's project."""
    settings = settings_module.load(call.flags, call.environment)
    if settings.space.source == "default":
        settings = settings_module.load({**call.flags, "space": PREFIX + folder}, call.environment)
    return settings


def store_of(call: Call, settings: Settings) -> Location:
    """Where the store is, however its path was written."""
    location = settings.store.value
    return Path(call.working, location).resolve() if isinstance(location, Path) else location


def context(asked: events.Question, memory: Callable[[], Nacre], budget_tokens: int) -> str:
    """The memories about a prompt, or the newest for the start of a session. Nothing is said where nothing is known,
    because a hook runs for every prompt."""
    request = ContextRequest(
        query=asked.query,
        budget_tokens=budget_tokens,
        session=asked.session,
        repeat=asked.repeat,
        folder=asked.folder,
    )
    packed = memory().context(request)
    text = packed.text if packed.quoted else ""
    if asked.in_json:
        return json.dumps({"additional_context": text}, ensure_ascii=False) + "\n"
    return f"{text}\n" if text else ""

"""Requests that call no verb: what the server is, who asks, one memory by its path, and how well it answers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, get_args
from urllib.parse import unquote

from nacre import __version__
from nacre.engine.engine import Nacre
from nacre.errors import AccessDenied, InvalidInput
from nacre.evaluation import evaluate, questions
from nacre.http_api import openapi, verbs
from nacre.http_api.answers import Answer, json_answer
from nacre.http_api.callers import Caller
from nacre.http_api.requests import Request
from nacre.serialization import decode
from nacre.serialization import evaluation as written
from nacre.serialization.routes import PREFIX
from nacre.types.memory import Json
from nacre.types.search import Mode, SearchRequest

Place: TypeAlias = Literal["memory", "session", "evaluation"]

OPEN: Final = ("/openapi.json", "/healthz", "/readyz")
_SAMPLE: Final = 100  # judged questions that an evaluation asks at the most, so that it ends in time
_TEMPLATES: Mapping[Place, str] = {
    "session": f"{PREFIX}/session",
    "evaluation": f"{PREFIX}/evaluation",
    "memory": PREFIX + "/memories/{memory_id}",
}


class Found(NamedTuple):
    place: Place
    template: str
    memory_id: str = ""


def matching(method: str, path: str) -> Found | None:
    if method != "GET" or verbs.has_own_route(path):
        return None
    for place, template in _TEMPLATES.items():
        found = re.fullmatch(re.escape(template).replace(r"\{memory_id\}", "([^/]+)"), path)
        if found is not None:
            return Found(place, template, unquote(found[1]) if found.groups() else "")
    return None


def methods(path: str) -> tuple[str, ...]:
    return () if matching("GET", path) is None else ("GET",)


def open_answer(request: Request) -> Answer | None:
    """What says nothing of the store."""
    match request.path:
        case "/openapi.json":
            return Answer(200, _openapi())
        case "/healthz" | "/readyz":
            return json_answer({"status": "ok", "version": __version__})
    return None


@cache
def _openapi() -> bytes:
    return json_answer(openapi.document()).body


def answer(found: Found, memory: Nacre, request: Request, caller: Caller, space: str) -> Answer:
    if found.place == "memory":
        return verbs.one_memory(memory, request, found.memory_id)
    if request.pairs:
        raise InvalidInput(request.pairs[0][0], "is unknown; this path takes no arguments")
    if found.place == "session":
        return json_answer(
            {
                "version": __version__,
                "role": caller.role,
                "space": space,
                "spaces": None if caller.spaces is None else list(caller.spaces),
                "token": caller.token,
                "time_zone": _time_zone(memory),
            }
        )
    return json_answer(_evaluation(memory, space, caller))


def _time_zone(memory: Nacre) -> str | None:
    """The IANA name of the zone in which days are counted, for clients elsewhere; None if it has none."""
    zone = memory._parts.zone
    if zone is not None:
        return getattr(zone, "key", None)
    named = os.environ.get("TZ", "").lstrip(":") or os.path.realpath("/etc/localtime").partition("/zoneinfo/")[2]
    return named or None


def _evaluation(memory: Nacre, space: str, caller: Caller) -> Json:
    """How well searches are answered, by what was opened and used of those in the recall log."""
    asked = questions.load_questions(memory, space, "log", None, sample=_SAMPLE, seed=questions.SEED)
    if not asked.judged:
        return written.report(asked, [])
    limit = SearchRequest(query="").limit
    with memory.within(space, confined=caller.spaces or False, log=False) as unlogged:
        measured = evaluate.evaluate(unlogged, asked, get_args(Mode), limit, questions.SEED, lambda _: None)
    return written.report(asked, measured)


def backup_path(to: object, folder: Path | None) -> Path:
    """Where a backup is written: below the folder that the server was given for it, which is made if it is missing."""
    if folder is None:
        raise AccessDenied("to", "this server writes no backups; start it with --backups FOLDER, or run `nacre backup`")
    try:
        chosen = (folder / decode.text("to", to)).resolve()
    except ValueError as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput("to", "is no path; give a name without NUL and half characters") from None
    if not chosen.is_relative_to(folder.resolve()):
        raise AccessDenied("to", "must be below the server's folder for backups; give a name or a relative path")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return chosen

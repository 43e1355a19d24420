"""Memories as Markdown files, which people read and `importers/nacre_markdown.py` reads back.

Front matter has the fields, each as JSON, which is YAML, too. The text follows as it is. A file of a day has several
memories, each after a comment with its fields.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC

from nacre.importers.nacre_markdown import COMMENT, ESCAPED, MARK, VERSION
from nacre.serialization import encode
from nacre.types.facts import Fact
from nacre.types.memory import Json, Memory

_SAFE = re.compile(r"[^a-z0-9._-]+")
_NAME_CHARS = 80
_RESERVED = frozenset(("con", "prn", "aux", "nul", *(f"{name}{at}" for name in ("com", "lpt") for at in range(10))))


# ---------------------------------------------------------------- names


def safe_name(name: str) -> str:
    """A name for a file or folder that every system takes and that no other name gets."""
    plain = _SAFE.sub("-", name.lower()).strip("-.")[:_NAME_CHARS]
    reserved = plain.split(".")[0] in _RESERVED
    if plain == name and plain and not reserved:
        return plain
    plain = f"x-{plain}" if reserved else plain
    digest = hashlib.sha256(name.encode()).hexdigest()[:10]
    return f"{plain}-{digest}" if plain else digest


def memory_name(memory: Memory) -> str:
    """Of the file of a memory. It never changes."""
    return f"{_day(memory)}-{safe_name(memory.id)}.md"


def day_name(memory: Memory) -> str:
    return f"{_day(memory)}.md"


def _day(memory: Memory) -> str:
    return memory.created.astimezone(UTC).date().isoformat()


# ---------------------------------------------------------------- writing


def memory_file(memory: Memory) -> str:
    """A file for one memory. `memory.facts` are written, too."""
    lines = [f"{name}: {_json(value)}" for name, value in _fields(memory).items() if name != "facts"]
    if memory.facts:
        lines += ["facts:", *(f"  - {_json(fact(each))}" for each in memory.facts)]
    return "\n".join(["---", f"{MARK}: {VERSION}", *lines, "---", "", memory.text]) + "\n"


def day_head(memory: Memory) -> str:
    """The beginning of the file of a day."""
    return f'---\n{MARK}: {VERSION}\nday: "{_day(memory)}"\n---\n'


def day_part(memory: Memory) -> str:
    """One memory in the file of its day."""
    fields = _json(_fields(memory)).replace(">", "\\u003e")
    text = ESCAPED.sub(r"\\\g<0>", memory.text)
    return f"\n{COMMENT}{fields} -->\n\n{text}\n"


def _fields(memory: Memory) -> dict[str, Json]:
    """The fields that say something."""
    known = encode.memory(memory)
    usual: dict[str, Json] = {"importance": 0.5, "pinned": False, "tags": [], "metadata": {}}
    kept: dict[str, Json] = {
        name: value
        for name, value in known.items()
        if name not in ("text", "deleted", "facts", "notes") and value is not None and usual.get(name) != value
    }
    if memory.facts:
        kept["facts"] = [fact(each) for each in memory.facts]
    return kept


def fact(value: Fact) -> dict[str, Json]:
    """A fact as it can be given again."""
    said: dict[str, Json] = {
        "subject": value.subject,
        "predicate": value.predicate,
        "object": value.object,
        "type": value.type,
        "confidence": value.confidence,
        "decay_rate": value.decay_rate,
        "valid_from": encode.moment(value.valid_from),
        "valid_to": None if value.ends is None else encode.moment(value.ends),
        "quote": value.quote,
        "relation": value.relation,
        "single": value.single,
        "origin": None if value.origin == "given" else value.origin,
    }
    return {name: each for name, each in said.items() if each is not None}


def _json(value: Json) -> str:
    return encode.dumps(value, indent=None)

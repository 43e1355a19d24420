"""How much memory and time does the import of a large export take?

    python -m benchmarks.imports [--gigabytes 0.1 1] [--formats chatgpt codex]

Writes exports of each format and imports them with `nacre import`, each in a process of its own, without an embedder.
Nearly all of their bytes are outputs of tools and other fields that are left out, so that what is measured is the
reading. Memory is the peak of the process: it grows with the memories that are stored, whose index grows beside, and
not with what is left out.
"""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TextIO

from benchmarks.common import report

FILLER_CHARS = 100_000
_POOL_WORDS = 200_000
_IMPORT = """
import sys
from nacre.cli import run
code = run(sys.argv[1:])
status = open("/proc/self/status").read()  # ru_maxrss would include the parent's memory
print(status.split("VmHWM:")[1].split()[0])
sys.exit(code)
"""


class Filler:
    """Text that a real archive would pack about as well."""

    def __init__(self) -> None:
        self._random = random.Random(1)
        words = ["".join(self._random.choices("abcdefghijklmnop", k=7)) for _ in range(5_000)]
        self._pool = " ".join(self._random.choices(words, k=_POOL_WORDS))

    def __call__(self) -> str:
        start = self._random.randrange(len(self._pool) - FILLER_CHARS)
        return self._pool[start : start + FILLER_CHARS]


Write = Callable[[Path, int, Filler], Path]


def _lines(path: Path, size: int, entries: Callable[[int], Iterator[Any]]) -> Path:
    with path.open("w") as out:
        number = 0
        while out.tell() < size:
            for each in entries(number):
                out.write(json.dumps(each) + "\n")
            number += 1
    return path


def _array(out: TextIO, size: int, record: Callable[[int], Any]) -> None:
    written = number = 0
    while written < size:
        written += out.write((", " if number else "[") + json.dumps(record(number)))
        number += 1
    out.write("]")


def claude_code(folder: Path, size: int, filler: Filler) -> Path:
    def entries(number: int) -> Iterator[Any]:
        base = {"parentUuid": None, "sessionId": "s", "timestamp": "2026-03-02T09:30:00Z"}
        result = [{"type": "tool_result", "tool_use_id": "t", "content": filler()}]
        said = [{"type": "text", "text": f"Answer {number} of the assistant."}]
        yield {**base, "type": "user", "message": {"content": result}, "uuid": f"u{number}"}
        yield {**base, "type": "assistant", "message": {"content": said}, "uuid": f"a{number}"}

    return _lines(folder / "s.jsonl", size, entries)


def codex(folder: Path, size: int, filler: Filler) -> Path:
    def entries(number: int) -> Iterator[Any]:
        base = {"timestamp": "2026-03-02T09:30:00Z", "type": "response_item"}
        content = [{"type": "output_text", "text": f"Answer {number} of the assistant."}]
        if not number:
            yield {**base, "type": "session_meta", "payload": {"id": "s", "cwd": "/a"}}
        yield {**base, "payload": {"type": "function_call_output", "call_id": "c", "output": filler()}}
        yield {**base, "payload": {"type": "message", "role": "assistant", "content": content}}

    return _lines(folder / "rollout-2026-03-02T09-30-00-s.jsonl", size, entries)


def _chat(number: int, filler: Filler) -> dict[str, Any]:
    def node(name: str, parent: str | None, role: str, text: str) -> dict[str, Any]:
        content = {"content_type": "text", "parts": [text]}
        message = {"id": name, "author": {"role": role}, "content": content, "create_time": 1_772_443_800 + number}
        return {"id": name, "parent": parent, "children": [], "message": message}

    nodes = [node("a", None, "user", f"Question {number}?"), node("c", "a", "assistant", f"Answer {number}.")]
    nodes += [node(f"t{at}", "a", "tool", filler()) for at in range(5)]
    tree = {each["id"]: each for each in nodes}
    return {"title": f"Talk {number}", "conversation_id": f"c{number}", "mapping": tree, "current_node": "c"}


def chatgpt(folder: Path, size: int, filler: Filler) -> Path:
    path = folder / "conversations.json"
    with path.open("w") as out:
        _array(out, size, lambda number: _chat(number, filler))
    return path


def chatgpt_zip(folder: Path, size: int, filler: Filler) -> Path:
    """Of this size when it is unpacked."""
    path = folder / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.write(chatgpt(folder, size, filler), "conversations.json")
    return path


def claude(folder: Path, size: int, filler: Filler) -> Path:
    def talk(number: int) -> Any:
        asked = {"uuid": "a", "sender": "human", "text": f"Question {number}?"}
        results = [{"type": "tool_result", "content": filler()} for _ in range(5)]
        said = {
            "uuid": "b",
            "sender": "assistant",
            "content": [*results, {"type": "text", "text": f"Answer {number}."}],
        }
        return {"uuid": f"c{number}", "name": f"Talk {number}", "chat_messages": [asked, said]}

    path = folder / "conversations.json"
    with path.open("w") as out:
        _array(out, size, talk)
    return path


def mem0(folder: Path, size: int, filler: Filler) -> Path:
    path = folder / "mem0.json"
    with path.open("w") as out:
        _array(out, size, lambda number: {"id": f"m{number}", "memory": f"Likes tea {number}", "hash": filler()})
    return path


def langgraph(folder: Path, size: int, filler: Filler) -> Path:
    def entries(number: int) -> Iterator[Any]:
        yield {"prefix": "a.b", "key": f"k{number}", "value": {"text": f"Likes tea {number}"}, "vectors": filler()}

    return _lines(folder / "store.jsonl", size, entries)


def claude_mem(folder: Path, size: int, filler: Filler) -> Path:
    path = folder / "claude-mem.db"
    columns = "id INTEGER PRIMARY KEY, project, created_at, created_at_epoch, memory_session_id, type, title, other"
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"CREATE TABLE observations ({columns})")
        rows = ((f"Port {number} corrected", filler()) for number in range(size // FILLER_CHARS))
        database.executemany("INSERT INTO observations VALUES (NULL, 'p', NULL, 0, 's', 'bugfix', ?, ?)", rows)
        database.commit()
    return path


FORMATS: dict[str, Write] = {
    "claude-code": claude_code,
    "codex": codex,
    "chatgpt": chatgpt,
    "chatgpt, zipped": chatgpt_zip,
    "claude": claude,
    "claude-mem": claude_mem,
    "langgraph": langgraph,
    "mem0": mem0,
}


def measured(name: str, gigabytes: float, filler: Filler) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="nacre-imports-") as folder:
        path = FORMATS[name](Path(folder), int(gigabytes * 1e9), filler)
        options = ["--json", "--store", str(Path(folder) / "memories.db"), "--embedder", "none"]
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", _IMPORT, "import", str(path), *options], capture_output=True, text=True, check=True
        )
        seconds = time.perf_counter() - started
    *answer, peak_kb = done.stdout.strip().splitlines()
    counts = json.loads("\n".join(answer))
    assert counts["refused"] == 0, counts
    return {
        "format": name,
        "size": f"{gigabytes:g} GB",
        "memories": f"{counts['new']:,}",
        "time": f"{seconds:.1f} s",
        "peak memory": f"{int(peak_kb) / 1000:.0f} MB",
    }


def main() -> None:
    parser = report.parser(__doc__, "imports")
    parser.add_argument("--gigabytes", type=float, nargs="+", default=[0.1, 1.0], help="sizes (default: 0.1 and 1)")
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS), help="default: all")
    options = parser.parse_args()
    filler = Filler()
    rows = [measured(name, size, filler) for name in options.formats for size in options.gigabytes]
    report.write(options.name, {"Imports of large exports": rows})


if __name__ == "__main__":
    main()

"""Reads a synthetic file of any size with an importer, and says how much memory that took.

    python tools/large_import.py csv --megabytes 1000
    python tools/large_import.py mbox --megabytes 1000 --store /tmp/large.db   # imports it, too, without vectors

The default tests do the same with some tens of megabytes (`pytest tests/importers -k memory`).
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import nacre
from nacre.errors import NacreError
from nacre.importers import registry
from nacre.importers.importer import Refused, Source
from nacre.intake.importing import Import, ImportCounts
from nacre.types.memory import NewMemory

TEXT = "The kiln in the cellar burns olive wood and ash, and nobody knows who built it. " * 6


def _csv(number: int) -> str:
    return ("id,text,created\n" if number == 0 else "") + f'{number},"Entry {number}: {TEXT}",2026-03-01T10:00:00Z\n'


def _jsonl(number: int) -> str:
    return json.dumps({"id": number, "text": f"Entry {number}: {TEXT}", "tags": ["large"]}) + "\n"


def _text(number: int) -> str:
    return f"Entry {number}: {TEXT}\n\n"


def _mbox(number: int) -> str:
    head = f"From a@x Mon Mar  2 10:00:00 2026\nMessage-ID: <{number}@x>\nReferences: <{number // 20}@x>\n"
    return (
        f"{head}From: Ada <ada@x>\nSubject: Entry\nDate: Mon, 2 Mar 2026 10:00:00 +0000\n\nEntry {number}: {TEXT}\n\n"
    )


def _chatgpt(number: int) -> str:
    """A conversation of 40 turns, in one long array without an end, as of a download that was cut off."""
    ids = [f"{number}-{turn}" for turn in range(40)]
    mapping = {
        each: {
            "id": each,
            "parent": ids[turn - 1] if turn else None,
            "children": ids[turn + 1 : turn + 2],
            "message": {
                "id": each,
                "author": {"role": "assistant" if turn % 2 else "user"},
                "create_time": 1772380800.0 + turn,
                "content": {"content_type": "text", "parts": [f"Turn {each}: {TEXT}"]},
            },
        }
        for turn, each in enumerate(ids)
    }
    talk = {"conversation_id": str(number), "title": "Kilns", "current_node": ids[-1], "mapping": mapping}
    return ("[" if number == 0 else ",\n") + json.dumps(talk)


RECORDS: dict[str, tuple[str, Callable[[int], str]]] = {
    "csv": ("large.csv", _csv),
    "jsonl": ("large.jsonl", _jsonl),
    "text": ("large.txt", _text),
    "mbox": ("large.mbox", _mbox),
    "chatgpt": ("conversations.json", _chatgpt),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("format", choices=RECORDS)
    parser.add_argument("--megabytes", type=int, default=1_000)
    parser.add_argument("--store", type=Path, help="import into this file, too, without vectors")
    given = parser.parse_args()
    name, record = RECORDS[given.format]
    with tempfile.TemporaryDirectory(prefix="nacre-large-") as folder:
        file = Path(folder, name)
        _write(file, record, given.megabytes * 1_000_000)
        before, started = _most(), time.perf_counter()
        source = Source(file)
        records = registry.named(given.format).read(source)
        said = str(_counted(records) if given.store is None else _imported(records, given.store))
        seconds = time.perf_counter() - started
        print(f"{given.format}: {source.done:,} of {source.total:,} bytes in {seconds:.0f} s; {said}")
        print(f"memory: {_most():.0f} MB at most, {before:.0f} MB before it began")


def _write(file: Path, record: Callable[[int], str], size: int) -> None:
    written = number = 0
    with file.open("w", encoding="utf-8") as out:
        while written < size:
            written += out.write(record(number))
            number += 1


def _counted(records: Iterator[NewMemory | Refused]) -> str:
    kept = refused = 0
    for each in records:
        refused += isinstance(each, Refused)
        kept += not isinstance(each, Refused)
    return f"{kept:,} memories, {refused:,} refused"


def _imported(records: Iterator[NewMemory | Refused], store: Path) -> ImportCounts:
    def refuse(where: str, error: NacreError) -> None:
        print(f"{where}: {error}", file=sys.stderr)

    counts = ImportCounts()
    with nacre.open(store, embedder="none", log=False) as memory:
        for so_far in Import(memory, records, refuse).run():
            counts = so_far
    return counts


def _most() -> float:
    """The most memory that this process has had, in MB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1_000_000 if sys.platform == "darwin" else 1_000)


if __name__ == "__main__":
    main()

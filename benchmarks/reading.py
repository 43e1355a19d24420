"""How much memory and time does an importer take to read a large file of tables, texts or mail?

    python -m benchmarks.reading [--formats csv mbox] [--gigabytes 1]

Every record becomes a memory, which is counted and not stored; `benchmarks.imports` imports large exports of
conversations into a store. Memory is that of the process, which reads nothing else.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.common import report
from nacre.importers import registry
from nacre.importers.importer import Refused, Source

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


RECORDS: dict[str, tuple[str, Callable[[int], str]]] = {
    "csv": ("large.csv", _csv),
    "jsonl": ("large.jsonl", _jsonl),
    "text": ("large.txt", _text),
    "mbox": ("large.mbox", _mbox),
}


def measured(name: str, gigabytes: float) -> dict[str, object]:
    """In a process of its own, so that the memory is that of one format."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.reading", "--only", name, str(gigabytes)],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found


def read(name: str, gigabytes: float) -> dict[str, object]:
    file_name, record = RECORDS[name]
    with tempfile.TemporaryDirectory(prefix="nacre-reading-") as folder:
        file = Path(folder, file_name)
        _write(file, record, int(gigabytes * 1e9))
        before, started = _most(), time.perf_counter()
        kept = refused = 0
        for each in registry.named(name).read(Source(file)):
            refused += isinstance(each, Refused)
            kept += not isinstance(each, Refused)
        seconds = time.perf_counter() - started
    assert refused == 0, refused
    return {
        "format": name,
        "size": f"{gigabytes:g} GB",
        "memories": f"{kept:,}",
        "time": f"{seconds:.0f} s",
        "memory before": f"{before:.0f} MB",
        "peak memory": f"{_most():.0f} MB",
    }


def _write(file: Path, record: Callable[[int], str], size: int) -> None:
    written = number = 0
    with file.open("w", encoding="utf-8") as out:
        while written < size:
            written += out.write(record(number))
            number += 1


def _most() -> float:
    """The most memory that this process has had, in MB."""
    status = Path("/proc/self/status").read_text("utf-8")  # ru_maxrss would include the parent's memory
    return int(status.split("VmHWM:")[1].split()[0]) / 1000


def main() -> None:
    if sys.argv[1:2] == ["--only"]:
        print(json.dumps(read(sys.argv[2], float(sys.argv[3]))))
        return
    parser = report.parser(__doc__, "reading")
    parser.add_argument("--formats", nargs="+", choices=RECORDS, default=list(RECORDS), help="default: all")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="size of each file (default: 1)")
    options = parser.parse_args()
    rows = [measured(name, options.gigabytes) for name in options.formats]
    report.write(options.name, {"Reading large files": rows})


if __name__ == "__main__":
    main()

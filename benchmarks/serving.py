"""What does `nacre serve` add to a call of the library, and how many clients does it answer at once?

python -m benchmarks.serving
python -m benchmarks.serving --seconds 10 --workers 1,2

Overhead: the same calls on the sample memories, ten in turn by the library, over a connection that stays open, and by
`nacre.connect`; no result is cached. Load: clients that each send a request, read the answer and send the next: of ten
requests, eight search (hybrid, half of them not reranked), one reads and one remembers. After it, every memory that was
acknowledged must be there. Server and clients share the machine's cores.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import nacre
from benchmarks.common import report
from benchmarks.common.timing import spread
from nacre.cli.demo import SAMPLES

CALLS = 200
IN_TURN = 10  # by one door, before the next one: whoever was just asked has its model in the processor's caches
CLIENTS = 32
SECONDS = 60.0
WORKERS = (1, 2, 4)
WORDS = re.compile(r"[A-Za-z]{4,}")


@contextmanager
def server(store: Path, *options: str) -> Iterator[int]:
    """`nacre serve` on a free port, until the block ends. It must end by itself."""
    command = [sys.executable, "-m", "nacre", "serve", "--store", str(store), "--space", "default", "--port", "0"]
    process = subprocess.Popen([*command, "--no-access-log", *options], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        found = re.search(r"at http://127\.0\.0\.1:(\d+)", process.stderr.readline())
        assert found is not None, process.stderr.read()
        port = int(found[1])
        for _ in range(20):  # each worker has loaded its models
            ask(port, "GET", f"/v1/search?query={quote_plus('warm up')}")
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def ask(port: int, method: str, path: str, body: bytes | None = None) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        read = answer.read()
        if answer.status >= 400:
            raise RuntimeError(read.decode())
        return json.loads(read)
    finally:
        connection.close()


def main() -> None:
    parser = report.parser(__doc__, "serving")
    parser.add_argument("--calls", type=int, default=CALLS, help="calls of each kind (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=CLIENTS, help="clients at once (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="for each number of workers (default: %(default)s)"
    )
    parser.add_argument(
        "--workers", default=",".join(map(str, WORKERS)), help="numbers of processes (default: %(default)s)"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        overhead = _overhead(Path(folder) / "overhead.db", options.calls)
    rows = []
    for workers in map(int, options.workers.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(_load(Path(folder) / "load.db", workers, options.clients, options.seconds))
            print(rows[-1], file=sys.stderr)
    about = f"{options.clients} clients for {options.seconds:g} s"
    report.write(options.name, {"A call by the library and over HTTP, ms (p50)": overhead, about: rows})


def _filled(store: Path) -> list[str]:
    """Remember the samples. Returns parts of questions: words that stand together in them, each once."""
    memories = [json.loads(line) for line in SAMPLES.read_text("utf-8").splitlines()]
    with nacre.open(store) as memory:
        memory.remember_many(nacre.NewMemory(text=each["text"], tags=each["tags"]) for each in memories)
    found = dict.fromkeys(
        " ".join(words[at : at + 4])
        for words in (WORDS.findall(each["text"]) for each in memories)
        for at in range(0, len(words) - 4, 2)
    )
    shuffled = list(found)
    random.Random(7).shuffle(shuffled)
    return shuffled


# ---------------------------------------------------------------- overhead


def _overhead(store: Path, calls: int) -> list[dict[str, object]]:
    parts, rng = _filled(store), random.Random(7)
    questions = (" ".join(rng.sample(parts, 2)) for _ in count())
    numbers = count()
    with nacre.open(store) as library, server(store) as port, nacre.connect(f"http://127.0.0.1:{port}") as client:
        kept = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        (first,) = library.timeline(limit=1).entries

        def raw(method: str, path: str, body: dict[str, Any] | None = None) -> None:
            kept.request(method, path, None if body is None else json.dumps(body))
            kept.getresponse().read()

        def asked(path: str) -> Callable[[str], None]:
            return lambda question: raw("GET", f"{path}{quote_plus(question)}")

        kinds: dict[str, tuple[Callable[[str], Any], Callable[[str], Any], Callable[[str], Any]]] = {
            "keyword search": (
                lambda text: library.search(text, mode="keyword"),
                asked("/v1/search?mode=keyword&query="),
                lambda text: client.search(text, mode="keyword"),
            ),
            "hybrid search, not reranked": (
                lambda text: library.search(text, rerank=False),
                asked("/v1/search?rerank=false&query="),
                lambda text: client.search(text, rerank=False),
            ),
            "hybrid search": (library.search, asked("/v1/search?query="), client.search),
            "get": (
                lambda _: library.get(first.id),
                lambda _: raw("GET", f"/v1/memories?ids={first.id}"),
                lambda _: client.get(first.id),
            ),
            "timeline of 50": (
                lambda _: library.timeline(limit=50),
                lambda _: raw("GET", "/v1/timeline?limit=50"),
                lambda _: client.timeline(limit=50),
            ),
            "remember": (
                lambda text: library.remember(f"{text} {next(numbers)}"),
                lambda text: raw("POST", "/v1/memories", {"text": f"{text} {next(numbers)}"}),
                lambda text: client.remember(f"{text} {next(numbers)}"),
            ),
        }
        rows: list[dict[str, object]] = []
        for name, doors in kinds.items():
            taken: list[list[float]] = [[], [], []]
            for turn in range(-(-calls // IN_TURN)):
                for each, door in zip(taken, doors, strict=True):
                    for number in range(turn * IN_TURN, (turn + 1) * IN_TURN):
                        question = next(questions) if name.startswith(("keyword", "hybrid")) else f"{name} {number}"
                        start = time.perf_counter()
                        door(question)
                        each.append(time.perf_counter() - start)
            by_library, over_http, by_client = (1000 * statistics.median(each[calls // 10 :]) for each in taken)
            rows.append(
                {
                    "call": name,
                    "library": round(by_library, 2),
                    "HTTP": round(over_http, 2),
                    "HTTP adds": round(over_http - by_library, 2),
                    "nacre.connect": round(by_client, 2),
                }
            )
        return rows


# ---------------------------------------------------------------- load


class Client:
    """A connection that stays open, with as little work as possible for this process."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        answered = await self._reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", answered)
        return int(answered[9:12]), await self._reader.readexactly(int(length[1]) if length else 0)


class Counted:
    """What all clients saw."""

    def __init__(self) -> None:
        self.taken: dict[str, list[float]] = {"search": [], "read": [], "write": []}
        self.errors: list[str] = []
        self.remembered: list[str] = []  # ids that were acknowledged


async def _one_client(port: int, number: int, questions: list[str], until: float, counted: Counted) -> None:
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    rng = random.Random(number)
    at = 0
    while time.perf_counter() < until:
        at += 1
        kind = ("write", "read", *("search",) * 8)[rng.randrange(10)]
        text = quote_plus(f"{rng.choice(questions)} {rng.choice(questions)}")
        start = time.perf_counter()
        if kind == "search":
            status, body = await client.ask("GET", f"/v1/search?query={text}&rerank={rng.choice(('fast', 'false'))}")
        elif kind == "read":
            status, body = await client.ask("GET", "/v1/timeline?limit=20")
        else:
            said = json.dumps({"text": f"client {number} says {at}: {rng.choice(questions)}"}).encode()
            status, body = await client.ask("POST", "/v1/memories", said)
        counted.taken[kind].append(time.perf_counter() - start)
        if status != 200:
            counted.errors.append(f"{status} {body[:200]!r}")
        elif kind == "write":
            counted.remembered.append(json.loads(body)["id"])


def _load(store: Path, workers: int, clients: int, seconds: float) -> dict[str, object]:
    questions = _filled(store)
    counted = Counted()

    async def run(port: int) -> None:
        until = time.perf_counter() + seconds
        await asyncio.gather(*(_one_client(port, each, questions, until, counted) for each in range(clients)))

    with server(store, "--workers", str(workers)) as port:
        asyncio.run(run(port))
    with nacre.open(store) as memory:
        lost = [each for each in counted.remembered if memory.get(each, missing_ok=True).missing]
    for error in counted.errors[:3]:
        print(error, file=sys.stderr)
    requests = sum(map(len, counted.taken.values()))
    row: dict[str, object] = {
        "workers": workers,
        "requests/s": round(requests / seconds),
        "searches/s": round(len(counted.taken["search"]) / seconds),
    }
    for kind, taken in counted.taken.items():
        times = spread(taken)
        row |= {f"{kind} {name}, ms": times[name] for name in ("p50", "p95", "p99")}
    return row | {"remembered": len(counted.remembered), "lost": len(lost), "errors": len(counted.errors)}


if __name__ == "__main__":
    main()

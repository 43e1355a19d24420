"""How long does an agent wait for `nacre mcp`: its start, the first answers, several clients at once, and a hook?

python -m benchmarks.agent
python -m benchmarks.agent --rival node path/to/server-memory/dist/index.js

Times are medians of fresh processes on the bundled sample memories, from the start of the process to its answer. Of a
rival, `initialize` and the list of tools are measured.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.common import report
from nacre.cli.demo import QUESTION, SAMPLES

RUNS = 11
CLIENTS, CALLS = 4, 50
PROMPTS = (
    "Where do we keep secrets?",
    "Who is on call this week?",
    "Why are members charged twice?",
    "How do I deploy the kiosk?",
    "Which houses do we have?",
    "What did we decide about payments?",
    "Fix the failing login test",
    "When does Valencia open?",
    "Which queue do we use for jobs?",
    "Write the release notes",
    "What does Mara dislike about ORMs?",
    "How long do sessions last?",
)
NACRE = [sys.executable, "-m", "nacre"]


class Agent:
    """An MCP client that talks to a server process over stdio."""

    def __init__(self, command: list[str]) -> None:
        self.start = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._number = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self._process.stdout is not None
        while True:
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
            if answer.get("id") == self._number:
                return answer

    def initialize(self) -> None:
        client = {"name": "benchmark", "version": "1"}
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        answer = self.ask("tools/call", name=name, arguments=arguments)
        if "error" in answer or answer["result"].get("isError"):
            raise RuntimeError(str(answer))
        found: dict[str, Any] = answer["result"]
        return found

    def ms(self) -> float:
        return 1000 * (time.perf_counter() - self.start)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


def main() -> None:
    parser = report.parser(__doc__, "agent")
    parser.add_argument("--rival", nargs="+", help="command of another MCP memory server, over stdio")
    parser.add_argument("--runs", type=int, default=RUNS, help="fresh processes per figure (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = ["--store", str(Path(folder) / "agent.db"), "--space", "default"]
        subprocess.run([*NACRE, "remember", "--jsonl", "--file", str(SAMPLES), *store], check=True, capture_output=True)
        server = [*NACRE, "mcp", *store]
        rows = [*_started(server, options.runs), *_sizes(server), _at_once(server)]
        rows += _hooks(store, server, options.runs)
        rows += _remembering(Path(folder), options.runs)
        if options.rival:
            rows += _rival(options.rival, options.runs)
    report.write(options.name, {"From the start of the server process": rows})


FIRST_CALLS: dict[str, tuple[str, dict[str, str]]] = {
    "first keyword search": ("search_memories", {"query": QUESTION, "mode": "keyword"}),
    "first hybrid search": ("search_memories", {"query": QUESTION}),
    "first context": ("context", {"query": QUESTION}),
}


def _started(server: list[str], runs: int) -> list[dict[str, object]]:
    """Each first call in a process of its own, and a second call right after it, which waits for the SDK."""
    steps: dict[str, list[float]] = {}
    for run in range(runs + 1):
        for name, (tool, arguments) in FIRST_CALLS.items():
            agent = Agent(server)
            agent.initialize()
            taken = {"initialize, ms from start": agent.ms()}
            agent.call(tool, **arguments)
            taken[f"{name}, ms from start"] = agent.ms()
            agent.call("timeline")
            taken["a second call right after that, ms from start"] = agent.ms()
            agent.close()
            if run:  # the first run warms the disk cache
                for step, ms in taken.items():
                    steps.setdefault(step, []).append(ms)
    return [_row(name, taken) for name, taken in steps.items()]


def _hooks(store: list[str], server: list[str], runs: int) -> list[dict[str, object]]:
    """A hook for prompts that were not asked before, without a server and with one that runs."""
    alone = [_hook(store, prompt) for prompt in PROMPTS[:runs]]
    agent = Agent(server)
    agent.initialize()
    agent.call("context", query=QUESTION)
    asked = [_hook(store, prompt) for prompt in PROMPTS]
    agent.close()
    return [_row("hook without a server, ms", alone), _row("hook with a server, ms", asked)]


def _remembering(folder: Path, runs: int) -> list[dict[str, object]]:
    """A hook after an answer: until it returns, and until the turn is stored, in a short and in a long transcript."""
    rows = []
    for megabytes in (1, 200):
        transcript, store = folder / f"{megabytes}.jsonl", ["--store", str(folder / f"{megabytes}.db"), "--space", "s"]
        result = json.dumps({"type": "progress", "uuid": "p", "sessionId": "s", "data": "x" * 100_000}) + "\n"
        with transcript.open("w", encoding="utf-8") as file:
            file.write(_turn(0) + result * (10 * megabytes))
        _stop(transcript, store, "--wait")
        returned: list[float] = []
        stored: list[float] = []
        for number in range(1, 2 * runs, 2):
            for times, *options in ((returned,), (stored, "--wait")):
                with transcript.open("a", encoding="utf-8") as file:
                    file.write(_turn(number + len(options)))
                times.append(_stop(transcript, store, *options))
                time.sleep(3 - 3 * len(options))  # what goes on in the background is not measured
        rows.append(_row(f"hook after an answer returns, transcript of {megabytes} MB, ms", returned))
        rows.append(_row(f"hook after an answer has stored it, transcript of {megabytes} MB, ms", stored))
    return rows


def _turn(number: int) -> str:
    message = {"role": "assistant", "content": [{"type": "text", "text": f"{QUESTION} This is answer {number}."}]}
    stamp = f"2026-11-15T22:{number // 60:02}:{number % 60:02}.000Z"
    entry = {"type": "assistant", "uuid": f"u{number}", "sessionId": "s", "timestamp": stamp, "message": message}
    return json.dumps(entry) + "\n"


def _stop(transcript: Path, store: list[str], *options: str) -> float:
    event = {"hook_event_name": "Stop", "session_id": "s", "transcript_path": str(transcript), "cwd": "."}
    start = time.perf_counter()
    subprocess.run(
        [*NACRE, "hook", "remember", *store, *options],
        input=json.dumps(event).encode(),
        check=True,
        capture_output=True,
    )
    return 1000 * (time.perf_counter() - start)


def _hook(store: list[str], prompt: str) -> float:
    event = {"hook_event_name": "UserPromptSubmit", "session_id": prompt, "prompt": prompt, "cwd": "."}
    start = time.perf_counter()
    subprocess.run(
        [*NACRE, "hook", "context", *store], input=json.dumps(event).encode(), check=True, capture_output=True
    )
    return 1000 * (time.perf_counter() - start)


def _row(name: str, taken: list[float]) -> dict[str, object]:
    return {"measured": name, "median": f"{statistics.median(taken):.0f}", "worst": f"{max(taken):.0f}"}


def _sizes(server: list[str]) -> list[dict[str, object]]:
    """Sizes in characters, because tokens depend on the model."""
    agent = Agent(server)
    agent.initialize()
    tools = json.dumps(agent.ask("tools/list")["result"]["tools"], separators=(",", ":"), ensure_ascii=False)
    hits = agent.call("search_memories", query=QUESTION)["content"][0]["text"]
    agent.close()
    return [
        {"measured": "list of tools, characters", "median": len(tools)},
        {"measured": "10 hits of search_memories, characters", "median": len(hits)},
    ]


def _at_once(server: list[str]) -> dict[str, object]:
    """Calls of several clients at once, each with its own server process, on one store."""
    taken: list[float] = []
    failed: list[BaseException] = []

    def client(number: int) -> None:
        try:
            agent = Agent(server)
            agent.initialize()
            for call in range(number, CALLS, CLIENTS):
                start = time.perf_counter()
                if call % 2:
                    agent.call("search_memories", query=QUESTION)
                else:
                    agent.call("remember", text=f"Client {number} was here for the {call}th time.")
                taken.append(1000 * (time.perf_counter() - start))
            agent.close()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return _row(f"one of {CALLS} calls by {CLIENTS} clients at once, ms, including the cold start", taken)


def _rival(command: list[str], runs: int) -> list[dict[str, object]]:
    steps: dict[str, list[float]] = {}
    size = 0
    for _ in range(runs + 1):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["MEMORY_FILE_PATH"] = str(Path(folder) / "memory.jsonl")
            agent = Agent(command)
            agent.initialize()
            steps.setdefault("rival: initialize, ms from start", []).append(agent.ms())
            size = len(json.dumps(agent.ask("tools/list")["result"]["tools"], separators=(",", ":")))
            agent.close()
    rows = [_row(name, taken[1:]) for name, taken in steps.items()]
    return [*rows, {"measured": "rival: list of tools, characters", "median": size}]


if __name__ == "__main__":
    main()

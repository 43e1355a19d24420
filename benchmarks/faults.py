"""What survives kills, damage, full and slow disks, wrong clocks, forks and scarce memory?

    python -m benchmarks.faults [--seed 7] [--only kills,flips] [--kills 1000] [--flips 500] [--seconds 600]

Every fault is met by real processes on real files, many times, each time drawn anew from the seed. Then another process
compares the store with what was acknowledged:

- lost: acknowledged, and not there
- half: a part of an operation is there; tables of the file that disagree
- wrong: an answer that differs from the right one, and nothing says why
- hangs, crashes: processes that do not end, die, or raise something that is no error of Nacre
- said: errors of Nacre that say what is wrong. These are right.

Faults that a platform does not know (memory limits on macOS, forks on Windows) are left out with a line that says so.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import wait
from pathlib import Path
from random import Random
from typing import Any

import nacre
from benchmarks.common import fault_workers, report
from benchmarks.common.fault_workers import HANG_SECONDS, Answers, Conditions, Expected, Operation, Verdict
from nacre.embedders.hashing import Hashing

STORE = "memory.db"
FILLED = 120  # memories of a store that is damaged
ASKED = 8  # of them
OPERATIONS = 40  # of a worker that is not killed
KILL_SECONDS = 0.25  # at most, after the first acknowledgement
DISK_BYTES = 3 << 20
# Processes are forked from one that has imported everything, where the platform can: a start takes a third of a second.
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
CONTEXT: Any = multiprocessing.get_context(METHOD)
if METHOD == "forkserver":
    CONTEXT.set_forkserver_preload(["benchmarks.common.fault_workers"])

Trial = Callable[[Path, Random], Verdict]


def main() -> None:
    parser = report.parser(__doc__, "faults")
    parser.add_argument("--seed", type=int, default=7, help="of everything that is drawn (default: %(default)s)")
    parser.add_argument("--only", default=",".join(FAULTS), help="comma-separated (default: all)")
    parser.add_argument("--kills", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--flips", type=int, default=500, help="of the database and of caches together (%(default)s)")
    parser.add_argument("--others", type=int, default=50, help="trials of each other fault (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=8, help="that write at once (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=600, help="for which they do (default: %(default)s)")
    options = parser.parse_args()
    names = options.only.split(",")
    unknown = [name for name in names if name not in FAULTS]
    if unknown:
        parser.error(f"--only: {unknown[0]!r} is unknown; allowed: {', '.join(FAULTS)}")
    numbers = {
        "kills": options.kills,
        "flips": -(-options.flips * 3 // 5),
        "flipped caches": options.flips * 2 // 5,
        "processes": 1,
    }
    verdicts = campaign(
        {name: numbers.get(name, options.others) for name in names}, options.seed, options.processes, options.seconds
    )
    notes = [f"Seed {options.seed}; {options.processes} processes at once for {options.seconds:g} s."]
    rows = [{"fault": name, **verdict._asdict()} for name, verdict in verdicts.items()]
    total = sum(verdicts.values(), Verdict())
    report.write(options.name, {"Faults": [*rows, {"fault": "all", **total._asdict()}]}, notes)
    sys.exit(1 if total.bad else 0)


def campaign(numbers: Mapping[str, int], seed: int, processes: int, seconds: float) -> dict[str, Verdict]:
    """By fault, what became of so many trials."""
    verdicts = {}
    for name, trials in numbers.items():
        trial = at_once(processes, seconds) if name == "processes" else FAULTS[name]
        if not is_possible(name):
            print(f"{name}: not on this platform", file=sys.stderr, flush=True)
            continue
        began, verdict = time.monotonic(), Verdict()
        for number in range(trials):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                found = trial(Path(folder), Random(f"{seed} {name} {number}"))
            if found.bad:
                print(f"{name}, trial {number}: {found}", file=sys.stderr, flush=True)
            verdict += found._replace(trials=1)
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        verdicts[name] = verdict
    return verdicts


# ---------------------------------------------------------------- processes


class Process:
    """A process of its own, and what it says."""

    def __init__(self, task: Callable[..., None], *arguments: Any) -> None:
        self.said, theirs = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=task, args=(*arguments, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def next(self, seconds: float = HANG_SECONDS) -> Any:
        """The next thing it says, or None if it ended. Raises TimeoutError."""
        if not self.said.poll(seconds):
            raise TimeoutError
        try:
            return self.said.recv()
        except (EOFError, OSError):
            return None

    def rest(self) -> list[Any]:
        """All that it says until its end."""
        return list(iter(self.next, None))

    def kill(self) -> None:
        self._process.kill()

    def abort(self) -> None:
        """Kill it, and let it print where its threads are."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGABRT)

    def end(self) -> None:
        self._process.join(HANG_SECONDS)
        self.said.close()


class Journal:
    """What a worker has said, as far as it is known."""

    def __init__(self) -> None:
        self.expected = Expected()
        self.under_way: Operation | None = None
        self.verdict = Verdict()
        self.ended = False

    def note(self, said: Sequence[tuple[Any, ...]]) -> None:
        for kind, *what in said:
            match kind:
                case "begin":
                    self.under_way = what[0]
                case "done":
                    self.expected.apply(what[0])
                    self.under_way = None
                case "said":
                    self.verdict += Verdict(said=1)
                    self.under_way = None  # an error means that nothing was written
                case "wrong" | "hang" | "crash":
                    print(f"  {kind}: {what}", file=sys.stderr, flush=True)
                    self.verdict += Verdict(**{{"wrong": "wrong", "hang": "hangs", "crash": "crashes"}[kind]: 1})
                    self.ended |= kind == "crash"
                case "end":
                    self.ended = True


def worked(path: Path, conditions: Conditions) -> Journal:
    """Let one worker work until it ends by itself."""
    process, journal = Process(fault_workers.work, str(path), conditions), Journal()
    try:
        for said in iter(process.next, None):
            journal.note([said])
        if not journal.ended:
            journal.verdict += Verdict(crashes=1)
    except TimeoutError:
        journal.verdict += Verdict(hangs=1)
        process.abort()
    process.end()
    return journal


def inspected(path: Path, journals: Sequence[Journal], chance: Random) -> Verdict:
    """Compare the store with all that was acknowledged, in a process of its own."""
    expected = Expected()
    for each in (journal.expected for journal in journals):
        expected.live |= each.live
        expected.forgotten |= each.forgotten
        expected.gone |= each.gone
        expected.acknowledged += each.acknowledged
    under_way = next((journal.under_way for journal in journals if journal.under_way), None)
    verdict = sum((journal.verdict for journal in journals), Verdict())
    process = Process(fault_workers.inspect, str(path), expected, under_way, chance.randrange(1 << 30))
    found: Verdict = _answer_of(process, Verdict)
    return verdict + found


def _answer_of(process: Process, kind: type[Any]) -> Any:
    """What a reading process sends, or a Verdict of its end."""
    try:
        answer = process.next()
    except TimeoutError:
        process.abort()
        answer = Verdict(hangs=1)
    process.end()
    if isinstance(answer, kind | Verdict):
        return answer
    print(f"  crash: {answer}", file=sys.stderr, flush=True)
    return Verdict(crashes=1)


# ---------------------------------------------------------------- faults while something is written


def kill(folder: Path, chance: Random, conditions: Conditions | None = None) -> Verdict:
    """A process is killed at any moment, up to three times on the same store."""
    path, journals = folder / STORE, []
    for turn in range(chance.randint(1, 3)):
        given = replace(conditions or Conditions(0), seed=chance.randrange(1 << 30), name=f"w{turn}")
        process, journal = Process(fault_workers.work, str(path), given), Journal()
        journals.append(journal)
        with suppress(TimeoutError):
            first = process.next()
            journal.note([first] if first else [])
        time.sleep(chance.random() * KILL_SECONDS)
        process.kill()
        journal.note(process.rest())
        process.end()
        if journal.under_way is not None:  # settle whether it happened before the next worker begins
            break
    return inspected(path, journals, chance)


def slow_disk(folder: Path, chance: Random) -> Verdict:
    """Killed while the disk takes its time, so that most kills are between a write and its sync."""
    return kill(folder, chance, Conditions(0, slow=True))


def full_disk(folder: Path, chance: Random) -> Verdict:
    """A disk of three megabytes. When it is full, what was acknowledged is still there, and is found."""
    disk, aside = folder / "disk", folder / "aside"
    disk.mkdir()
    with _mounted(disk, DISK_BYTES):
        journal = worked(disk / STORE, Conditions(chance.randrange(1 << 30), operations=4_000))
        shutil.copytree(disk, aside)  # inspecting writes a line, too
    return inspected(aside / STORE, [journal], chance)


def file_limit(folder: Path, chance: Random) -> Verdict:
    """No file may grow beyond some size."""
    most = chance.randint(200_000, 1_500_000)
    conditions = Conditions(chance.randrange(1 << 30), operations=2_000, file_bytes_max=most)
    return inspected(folder / STORE, [worked(folder / STORE, conditions)], chance)


def little_memory(folder: Path, chance: Random) -> Verdict:
    """A worker with long texts may take 8 to 64 MB more than it has after its start."""
    most = chance.randint(8 << 20, 64 << 20)
    conditions = Conditions(chance.randrange(1 << 30), operations=40, memory_bytes_max=most, words=5_000)
    return inspected(folder / STORE, [worked(folder / STORE, conditions)], chance)


def clock_jumps(folder: Path, chance: Random) -> Verdict:
    conditions = Conditions(chance.randrange(1 << 30), operations=OPERATIONS, jumps=True)
    return inspected(folder / STORE, [worked(folder / STORE, conditions)], chance)


def forks(folder: Path, chance: Random) -> Verdict:
    """Forked children search with the memory that their parent has open, while it goes on writing."""
    conditions = Conditions(chance.randrange(1 << 30), operations=OPERATIONS, forks=True)
    return inspected(folder / STORE, [worked(folder / STORE, conditions)], chance)


def at_once(processes: int, seconds: float) -> Trial:
    def several(folder: Path, chance: Random) -> Verdict:
        """Many processes write, change, delete and search at the same time."""
        path, journals = folder / STORE, [Journal() for _ in range(processes)]
        nacre.open(path, embedder=Hashing()).close()
        running = [
            Process(
                fault_workers.work,
                str(path),
                Conditions(chance.randrange(1 << 30), name=f"p{number}", seconds=seconds, refused_max=1_000),
            )
            for number in range(processes)
        ]
        _listen(dict(zip(running, journals, strict=True)), seconds + HANG_SECONDS)
        for process in running:
            process.end()
        return inspected(path, journals, chance)

    return several


def _listen(running: dict[Process, Journal], seconds: float) -> None:
    """Note what processes say until all have ended. Those that do not end in time hang."""
    end = time.monotonic() + seconds
    while running and time.monotonic() < end:
        ready = wait([process.said for process in running], timeout=1)
        for process in [each for each in running if each.said in ready]:
            said = process.next()
            if said is not None:
                running[process].note([said])
                continue
            journal = running.pop(process)
            if not journal.ended:
                journal.verdict += Verdict(crashes=1)
    for process, journal in running.items():
        journal.verdict += Verdict(hangs=1)
        process.abort()


# ---------------------------------------------------------------- damaged files


class Damaged:
    """Copies of one filled store, whose right answers are known."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._path = Path(self._folder.name) / STORE
        chance = Random(1)
        texts = [
            f"memory{number} {' '.join(chance.choices(fault_workers.WORDS, k=chance.randint(3, 60)))}"
            for number in range(FILLED)
        ]
        with (
            fault_workers.small_caches(),
            nacre.open(self._path, embedder=Hashing(), clock=lambda: fault_workers.READ_AT) as memory,
        ):
            ids = [receipt.id for receipt in memory.remember_many(texts)]
            for number in range(0, FILLED, 7):
                memory.update(ids[number], text=f"changed {texts[number]}")
                memory.state_fact(
                    nacre.NewFact(subject=f"boat {number}", predicate="moors at", object="the harbour"), ids[number]
                )
            memory.forget(ids[3::20])
            memory.search("heron", mode="semantic")
        self.asked = [(texts[number], ids[number]) for number in chance.sample(range(FILLED), ASKED)]
        right = self.copied_answers(lambda _: None)
        assert isinstance(right, Answers)
        assert not right.said, right.said
        self.right = right

    def copied_answers(self, damage: Callable[[Path], None]) -> Answers | Verdict:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            copy = Path(folder) / "copy"
            shutil.copytree(self._path.parent, copy)
            damage(copy)
            answer: Answers | Verdict = _answer_of(Process(fault_workers.read, str(copy / STORE), self.asked), Answers)
        return answer

    def judged(self, damage: Callable[[Path], None]) -> Verdict:
        """Every answer is the right one, or an error that says what is wrong."""
        answer = self.copied_answers(damage)
        if isinstance(answer, Verdict):
            return answer
        differing = [name for name, value in answer.given.items() if value != self.right.given[name]]
        for name in differing[:2]:
            print(f"  wrong: {name}", file=sys.stderr, flush=True)
        return Verdict(wrong=int(bool(differing)), said=int(bool(answer.said)))


_damaged: list[Damaged] = []


def damaged() -> Damaged:
    if not _damaged:
        _damaged.append(Damaged())
    return _damaged[0]


def flip(_folder: Path, chance: Random) -> Verdict:
    """One to eight bits of the database are flipped."""
    return damaged().judged(lambda copy: _flip(copy / STORE, chance))


def flip_cache(_folder: Path, chance: Random) -> Verdict:
    """The same of an index file."""
    return damaged().judged(lambda copy: _flip(chance.choice(_caches(copy)), chance))


def truncate(_folder: Path, chance: Random) -> Verdict:
    """The database, or an index file, ends too early."""

    def cut(copy: Path) -> None:
        path = chance.choice([copy / STORE, *_caches(copy)])
        os.truncate(path, chance.randrange(path.stat().st_size))

    return damaged().judged(cut)


def _caches(copy: Path) -> list[Path]:
    found = sorted(path for path in copy.rglob("*") if path.is_file() and not path.name.startswith(STORE))
    assert found, "the store has no index files"
    return found


def _flip(path: Path, chance: Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(chance.randint(1, 8)):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


# ---------------------------------------------------------------- disks


@contextmanager
def _mounted(folder: Path, size: int) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _can_mount() -> bool:
    """Only root of a Linux machine can make a small disk."""
    if not sys.platform.startswith("linux") or os.geteuid():
        return False
    with tempfile.TemporaryDirectory() as folder, suppress(OSError, subprocess.CalledProcessError):
        command = ["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", folder]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            subprocess.run(["umount", "-l", folder], check=True)
            return True
    return False


def is_possible(name: str) -> bool:
    """Whether this platform, and who runs it, can bring the fault about."""
    match name:
        case "full disk":
            return _can_mount()
        case "file size limit" | "forks":
            return os.name == "posix"
        case "little memory":
            return sys.platform.startswith("linux")
    return True


FAULTS: dict[str, Trial] = {
    "kills": kill,
    "flips": flip,
    "flipped caches": flip_cache,
    "truncations": truncate,
    "full disk": full_disk,
    "file size limit": file_limit,
    "slow disk": slow_disk,
    "clock jumps": clock_jumps,
    "forks": forks,
    "little memory": little_memory,
    "processes": at_once(8, 600),
}


if __name__ == "__main__":
    main()

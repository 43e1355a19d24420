"""`nacre watch`: keep memories in step with a folder of notes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from nacre.analysis.wording import count_memories
from nacre.cli import render
from nacre.cli.group import nacre, print_json
from nacre.cli.import_ import encoding_named
from nacre.cli.options import common, opened, secret_policy, wants_json, without_tokens
from nacre.cli.refusals import LISTED_MAX
from nacre.errors import InvalidInput, StoreBusy
from nacre.importers.importer import Refused
from nacre.intake.watching import GRACE_SECONDS, FolderSync, Step, check_folder
from nacre.types.memory import Json

_QUIET_MS = 300  # without a change, before changes are looked at
_GROUPED_MS = 2_000  # for so long at most, changes are waited for
_TICK_MS = 1_000  # after which it is seen whether the folder is still there
_LOOK_SECONDS = 60.0  # after which the folder is looked at in any case: some file systems tell no changes
_SAID_MAX = 10_000


@nacre.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--once", is_flag=True, help="Bring the memories in step, and end.")
@click.option("--name", metavar="NAME", help="Name in the keys, in place of that of the folder.")
@click.option("--namespace", metavar="NAME", help="Namespace of all memories.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="A tag for all memories. Repeatable.")
@click.option("--encoding", metavar="NAME", help="Encoding of texts that are not UTF-8, such as cp1252.")
@without_tokens
@secret_policy
@common
@click.pass_context
def watch(context: click.Context, /, folder: Path, once: bool, encoding: str | None, **given: Any) -> None:
    """Keep memories in step with the Markdown and text files of FOLDER, until it is stopped.

    What is changed there is updated, what is deleted there is forgotten. FOLDER is not written to.
    """
    known = encoding_named(encoding)
    folder = Path(os.path.realpath(folder))
    check_folder(folder, given["name"])  # before a store is made
    if not once:
        _watchfiles()  # an error now is better than one after minutes
    with opened(context, create=True, log=False) as memory:
        grace = 0.0 if once else GRACE_SECONDS
        sync = FolderSync(memory, folder, encoding=known, grace_seconds=grace, **given)
        said = _Said(context)
        if once:
            said.tell(sync.step(), always=True)
            return
        try:
            _keep(sync, folder, said)
        except KeyboardInterrupt:
            return


def _keep(sync: FolderSync, folder: Path, said: _Said) -> None:
    """Step whenever something has changed, or is due."""
    step = said.tell(sync.step(), always=True)
    stepped, due = time.monotonic(), bool(step.pending)
    for changed in _changes(folder):
        due = due or changed or time.monotonic() - stepped > _LOOK_SECONDS
        if not due:
            continue
        try:
            step = said.tell(sync.step())
        except StoreBusy as busy:
            render.tell(f"note: {busy}; trying again")
            continue
        stepped, due = time.monotonic(), bool(step.pending or step.note)


def _changes(folder: Path) -> Iterator[bool]:
    """Every second, or as soon as something has changed in the folder: whether it has.

    A folder that was removed and made again is another one for the system, which has to be asked about it anew.
    """
    watchfiles = _watchfiles()
    while True:
        identity = _identity(folder)
        if identity is None:
            yield True
            time.sleep(_TICK_MS / 1_000)
            continue
        begun = False
        try:
            for changes in watchfiles.watch(
                folder,
                watch_filter=None,
                debounce=_GROUPED_MS,
                step=_QUIET_MS,
                rust_timeout=_TICK_MS,
                yield_on_timeout=True,
                ignore_permission_denied=True,
            ):
                if _identity(folder) != identity:
                    break
                # At first, something may have changed before it was watched.
                yield not begun or any(_matters(path, folder) for _, path in changes)
                begun = True
        except FileNotFoundError:  # it is gone since
            continue


def _matters(path: str, folder: Path) -> bool:
    """Whether a change may be one of notes: not one of hidden files, which programs write all the time."""
    within = os.path.relpath(path, folder)
    return not any(part.startswith(".") and part != "." for part in Path(within).parts)


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(folder)  # noqa: PTH116
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _watchfiles() -> Any:
    try:
        import watchfiles
    except ImportError:
        hint = "install it with `pip install 'nacre-memory[watch]'`, or use --once"
        raise InvalidInput("folder", f"watching needs a package that is not installed; {hint}") from None
    return watchfiles


class _Said:
    """Tells what steps did, and what they refused only once."""

    def __init__(self, context: click.Context) -> None:
        self._json = wants_json(context)
        self._refused: set[Refused] = set()
        self._note: str | None = None

    def tell(self, step: Step, *, always: bool = False) -> Step:
        refused = [each for each in step.refused if each not in self._refused]
        note = step.note if step.note != self._note else None
        did = bool(step.new or step.changed or step.moved or step.forgotten)
        if self._json and (always or did or refused or note):
            print_json(_encoded(step, refused), indent=None)
        elif not self._json:
            if did or (always and not note):
                render.show([[(_line(step), "")]])
            for each in refused[:LISTED_MAX]:
                render.tell(f"{each.where}: {each.problem}")
            if len(refused) > LISTED_MAX:
                render.tell(f"… and {len(refused) - LISTED_MAX:,} more")
            if note:
                render.tell(f"note: {note}")
        sys.stdout.flush()  # whoever reads it in a pipe is not to wait for the next change
        self._refused = {*step.refused[:_SAID_MAX]}
        self._note = step.note
        return step


def _line(step: Step) -> str:
    parts = [
        f"{said} {count_memories(count)}"
        for said, count in (("added", step.new), ("updated", step.changed), ("moved", step.moved))
        if count
    ]
    if step.forgotten:
        parts.append(f"forgot {count_memories(step.forgotten)}")
    return ", ".join(parts) if parts else "in step"


def _encoded(step: Step, refused: list[Refused]) -> dict[str, Json]:
    return {
        "new": step.new,
        "changed": step.changed,
        "moved": step.moved,
        "forgotten": step.forgotten,
        "refused": [{"file": each.where, "message": each.problem} for each in refused],
        "note": step.note,
    }

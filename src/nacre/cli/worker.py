"""`nacre worker`: embed what was remembered without vectors, beside any number of other workers."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from nacre.analysis.wording import count_memories, counted
from nacre.cli import render
from nacre.cli.group import nacre, print_json
from nacre.cli.options import common, opened, wants_json, without_tokens
from nacre.engine.pending import BATCH, BATCH_MAX
from nacre.errors import NacreError
from nacre.types.memory import Progress


@nacre.command()
@click.option("--once", is_flag=True, help="Embed what is pending, and end.")
@click.option(
    "--batch", type=click.IntRange(1, BATCH_MAX), default=BATCH, show_default=True, help="Memories at a time."
)
@without_tokens
@common
@click.pass_context
def worker(context: click.Context, /, once: bool, batch: int) -> None:
    """Embed memories that were stored without vectors, as they come, until it is stopped.

    Any number of workers share the work. Each memory is embedded once, whatever is killed.
    """
    failed = 0

    def tell(error: NacreError) -> None:
        nonlocal failed
        failed += 1
        render.tell(f"note: {error}; trying again")

    state = Progress(0, 0)
    with opened(context, log=False) as memory, _stopping() as stop, render.progress("embedding") as bar:
        for state in memory.pending.run(batch=batch, once=once, stop=stop, failed=tell):
            bar(state)
            if wants_json(context):
                print_json({"embedded": state.done, "pending": state.total - state.done}, indent=None)
                sys.stdout.flush()  # whoever reads it in a pipe is not to wait for the next batch
    if not wants_json(context):
        again = f" (the store was away {counted(failed, 'time', 'times')})" if failed else ""
        render.show([[(f"embedded {count_memories(state.done)}{again}", "")]])


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """An event that is set by Ctrl+C and by the signal that ends services. A second one ends the process at once."""
    stop = threading.Event()
    signals = [signal.SIGINT, signal.SIGTERM]
    before: dict[signal.Signals, Any] = {}

    def begin(*_: object) -> None:
        stop.set()
        for each, handler in before.items():
            signal.signal(each, handler)

    if threading.current_thread() is threading.main_thread():  # others may set no handlers
        before |= {each: signal.signal(each, begin) for each in signals}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)

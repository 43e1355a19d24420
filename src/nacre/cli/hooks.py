"""`nacre hook`: what clients of agents run for each prompt and each session.

A hook never disturbs its client. Whatever fails is said on stderr, and the exit code is 0.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli import render
from nacre.cli.group import nacre
from nacre.cli.options import PASSED_ON, common
from nacre.config.settings import option
from nacre.errors import NacreError
from nacre.hooks import answer, background, events
from nacre.types.location import is_missing_file

if TYPE_CHECKING:
    from nacre.engine.engine import Nacre
    from nacre.types.memory import NewMemory


@nacre.group()
@common
def hook() -> None:
    """Give an agent what is known, and remember what was said. Clients run these commands."""


@hook.command("context")
@click.option("--budget", type=int, default=answer.BUDGET_TOKENS, show_default=True, help="Maximum size in tokens.")
@common
@click.pass_context
def hook_context(context: click.Context, budget: int) -> None:
    """Print what is known about a prompt. The client's event is read from stdin."""

    def run() -> None:
        call = _call(context, sys.stdin.buffer.read().decode("utf-8", "replace"))
        asked = events.question(call.event, call.environment, call.working)
        settings = answer.settings_for(call, asked.folder)
        if is_missing_file(settings.store.value):
            return
        from nacre.config.factory import open_from_settings

        with open_from_settings(settings, create=False) as memory:
            click.echo(answer.context(asked, lambda: memory, budget), nl=False)

    _without_failing(run)


@hook.command("remember")
@click.argument("event", required=False)
@click.option("--wait", is_flag=True, help="End when the conversation is stored, not before.")
@common
@click.pass_context
def hook_remember(context: click.Context, event: str | None, wait: bool) -> None:
    """Remember what was said in a conversation. EVENT is the client's; without it, it is read from stdin."""

    def run() -> None:
        text = event if event is not None else sys.stdin.buffer.read().decode("utf-8", "replace")
        call = _call(context, text)
        if call.event.get("hook_event_name") == "beforeSubmitPrompt":
            click.echo('{"continue": true}')
        if wait:
            _store(call)
        else:
            _start(context, text)

    _without_failing(run)


def _call(context: click.Context, text: str) -> answer.Call:
    return answer.Call(answer.parse(text), context.ensure_object(dict), os.environ, str(Path.cwd()))


def _without_failing(run: Callable[[], None]) -> None:
    try:
        run()
    except NacreError as error:
        render.complain(str(error))
    except (KeyError, TypeError, AttributeError) as error:  # an event of another shape
        render.complain(f"event: is not one of a known client ({type(error).__name__}: {error})")
    except Exception as error:  # whatever it is, an agent's client must not stop for it
        render.complain(str(error) or type(error).__name__)


def _store(call: answer.Call) -> None:
    from nacre.config.factory import open_from_settings
    from nacre.hooks import transcripts

    settings = answer.settings_for(call, events.folder_of(call.event, call.environment, call.working))
    transcript = transcripts.named(call.event, call.environment)
    if transcript is None:
        what = events.said(call.event, int(time.time() * 1000))
        new: Iterator[NewMemory] = events.memories(what)
    elif not is_missing_file(settings.store.value):
        with open_from_settings(settings) as memory:
            _remember(memory, transcripts.turns(transcript, transcripts.last(transcript, memory)))
        return
    else:
        new = transcripts.turns(transcript, None)
    first = next(new, None)
    if first is not None:  # otherwise no store is made
        with open_from_settings(settings) as memory:
            _remember(memory, chain([first], new))


def _remember(memory: Nacre, new: Iterator[NewMemory]) -> None:
    """A turn that cannot be stored costs no other."""

    def refused(_: int, error: NacreError) -> None:
        render.complain(str(error))

    for receipts in memory.remember_batches(new, refused=refused):
        render.remark([note for each in receipts for note in each.notes])


def _start(context: click.Context, text: str) -> None:
    given = context.ensure_object(dict)
    flags = [part for name in PASSED_ON if name in given for part in (option(name), str(given[name]))]
    background.start(flags, text.encode("utf-8", "replace"))

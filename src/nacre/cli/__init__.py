"""The command line. Each command decodes, calls one verb and encodes.

Exit codes: 0 done; 2 bad input (unknown id, option or value); 3 the store or the embedder failed;
130 interrupted; 1 an unexpected error. The answer goes to stdout, everything else to stderr.
"""

from __future__ import annotations

import logging
import sys

import click

from nacre import wire
from nacre.cli import agents, commands, evaluation, importing, install, knowledge, render, signals
from nacre.cli.group import nacre
from nacre.errors import InvalidInput, NacreError

INTERRUPTED = 130

__all__ = ["agents", "commands", "evaluation", "importing", "install", "knowledge", "main", "nacre", "signals"]


def main() -> None:
    """Entry point of the `nacre` command."""
    for stream in (sys.stdout, sys.stderr, sys.stdin):  # Windows code pages cannot say everything
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s: %(message)s", level=logging.WARNING)
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and give its exit code."""
    flags: dict[str, object] = {}
    try:
        nacre.main(arguments, prog_name="nacre", standalone_mode=False, obj=flags)
    except NacreError as error:
        if flags.get("json"):
            sys.stderr.write(wire.dumps(wire.error(error)) + "\n")
        else:
            render.complain(str(error))
        return wire.exit_code(error)
    except click.ClickException as error:
        if "--json" in arguments:  # flags that were not read when the arguments turned out to be wrong
            sys.stderr.write(wire.dumps(wire.error(InvalidInput("arguments", error.format_message()))) + "\n")
        else:
            error.show()
        return error.exit_code
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt):
        render.complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # `nacre … | head`
        sys.stderr.close()
        return 0
    return 0

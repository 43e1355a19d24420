"""The command line. Each command decodes its arguments, calls one verb of the engine and encodes the result.

Exit codes: 0 success; 2 bad input (unknown id, option or value); 3 the store or the embedder failed;
4 `audit` found secrets; 5 `doctor` found something wrong; 130 interrupted; 1 an unexpected error. The answer goes to
stdout, everything else to stderr.

This module imports only what every command needs. Models load in the background during the other imports.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from nacre.errors import NacreError

STORE_FAILED = 3  # or a model, or what both need
INTERRUPTED = 130


def main() -> None:
    """Entry point of the `nacre` command."""
    for name in ("stdin", "stdout", "stderr"):  # None where the caller has closed it
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+", encoding="utf-8"))  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr, sys.stdin):  # Windows code pages cannot encode every character
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    help_wanted = not {"-h", "--help"}.isdisjoint(sys.argv)  # then there is no event to read, and a terminal would wait
    if sys.argv[1:2] == ["hook"] and not help_wanted and _done_early(sys.argv[2:3], sys.argv[3:]):
        return
    _begin(sys.argv[1:])
    import logging

    logging.basicConfig(stream=sys.stderr, format="%(levelname)s: %(message)s", level=logging.WARNING)
    _leave(run(sys.argv[1:]))


def _leave(code: int) -> NoReturn:
    """End the process without taking the interpreter and the models apart first, which takes 40 ms.

    Stores are closed by now. What is left is what Python itself does at the end: registered functions, and output.
    """
    import atexit

    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # a full disk, a stream that was closed or is missing
        sys.exit(code)  # Python reports it
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    import click

    from nacre.cli.group import nacre
    from nacre.errors import InvalidInput, NacreError

    flags: dict[str, object] = {}
    try:
        code = nacre.main(arguments, prog_name="nacre", standalone_mode=False, obj=flags)
    except NacreError as error:
        return _failed(error, as_json=bool(flags.get("json")), printable=bool(flags.get("printable")))
    except click.ClickException as error:
        if "--json" in arguments:  # on bad arguments, click has not read the flag yet
            _failed(InvalidInput("arguments", error.format_message()), as_json=True)
        else:
            error.show()
        # For clients of agents, exit code 2 of a hook means that the prompt is refused.
        return 0 if arguments[:1] == ["hook"] else error.exit_code
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt):
        from nacre.cli import render

        render.complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # `nacre … | head`
        sys.stderr.close()
        return 0
    except MemoryError:
        advice = "give the process more, or its input in smaller parts: nothing is stored twice"
        return _unable(f"memory: there is too little; {advice}")
    except ImportError as error:  # also where memory is too small for a library
        reason = str(error).strip().rpartition("\n")[2]
        return _unable(
            f"{error.name or 'a package'}: cannot be loaded ({reason}); install Nacre again, or give it memory"
        )
    return code if isinstance(code, int) else 0  # of a command that ended with `context.exit`


def _unable(problem: str) -> int:
    """Print by what is loaded already why this process can do nothing, and return the exit code."""
    sys.stderr.write(f"error: {problem}\n")
    return STORE_FAILED


def _failed(error: NacreError, *, as_json: bool, printable: bool = False) -> int:
    """Print the error and return its exit code."""
    from nacre.cli import render
    from nacre.serialization import encode

    if as_json:
        render.show_json(encode.dumps(encode.error(error)), sys.stderr, printable=printable)
    else:
        render.complain(str(error), printable=printable)
    return encode.exit_code(error)


def _done_early(hook: list[str], arguments: list[str]) -> bool:
    """Whether a hook needs nothing more of this process: a server that runs already has answered, or another process
    was started that stores what was said."""
    with_event = hook == ["remember"] and arguments[:1] and not arguments[0].startswith("-")
    if hook not in (["context"], ["remember"]) or with_event or "--wait" in arguments:
        return False
    import io

    event = sys.stdin.buffer.read()
    try:
        if hook == ["context"]:
            from nacre.hooks import client

            said = client.ask(arguments, event, os.environ)
            done = said is not None
            sys.stdout.write(said or "")
        else:
            from nacre.hooks import background

            done = background.started(arguments, event)
    except OSError:  # a folder is gone
        done = False
    if not done:
        sys.stdin = io.TextIOWrapper(io.BytesIO(event), encoding="utf-8", errors="replace")
    return done


def _begin(arguments: list[str]) -> None:
    """Start to load the models that the command needs, in the background."""
    from nacre.cli import preload

    models = preload.models(arguments, os.environ)
    if models:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would wait for threads that one search never needs
        from nacre.runtime.onnx_models import load_ahead

        load_ahead(models)

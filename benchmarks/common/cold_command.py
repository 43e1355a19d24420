"""One cold `nacre` command with the time of each step, run by `benchmarks.start` as a process of its own.

It does what `nacre.cli.main` does, in the same order, and imports nothing before that would slow the command down.

python benchmarks/common/cold_command.py STARTED RESULT search "a question" --store FILE
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BEGUN = time.monotonic()
USERS = {"semantic search": "embedder", "reranking": "reranker"}  # by the purpose of a model
spent: dict[str, float] = {}


def timed(owner: Any, name: str, step: str | Callable[[Any], str]) -> None:
    """Add up the time of calls of this function in the main thread. `step` may depend on the object."""
    import threading

    real: Callable[..., Any] = getattr(owner, name)

    def counted(*arguments: Any, **options: Any) -> Any:
        start = time.monotonic()
        try:
            return real(*arguments, **options)
        finally:
            if threading.current_thread() is threading.main_thread():
                label = step if isinstance(step, str) else step(arguments[0])
                spent[label] = spent.get(label, 0.0) + time.monotonic() - start

    setattr(owner, name, counted)


def main() -> None:
    started, result, *arguments = sys.argv[1:]
    from nacre import cli

    cli._begin(arguments)
    begun = time.monotonic()
    import nacre.cli.search
    import nacre.config.factory
    from nacre.engine.engine import Nacre
    from nacre.rerankers.nacre_rerank import NacreRerank
    from nacre.runtime.onnx_models import OnnxModel

    imported = time.monotonic()
    timed(nacre.config.factory, "open_store", "open the store")
    timed(OnnxModel, "session", lambda model: f"wait for the {USERS[model._purpose]}")
    timed(OnnxModel, "word_pieces", "read the vocabulary")
    timed(NacreRerank, "scores", "rerank")
    timed(Nacre, "search", "search")
    timed(nacre.cli.search, "answer", "write the answer")
    code = cli.run(arguments)
    ended = time.monotonic()
    steps = {
        "start Python": BEGUN - float(started),
        "import numpy and ONNX Runtime": begun - BEGUN,
        "import the rest": imported - begun,
        "read arguments and settings, close the store": ended
        - imported
        - sum(spent.get(step, 0.0) for step in ("open the store", "search", "write the answer")),
        **spent,
    }
    steps["rerank"] = spent.get("rerank", 0.0) - spent.get("wait for the reranker", 0.0)
    inside = ("wait for the embedder", "read the vocabulary", "wait for the reranker")
    steps["search"] -= steps["rerank"] + sum(spent.get(step, 0.0) for step in inside)
    from pathlib import Path

    from nacre.serialization import encode

    Path(result).write_text(encode.dumps({"steps": {**steps}, "ended": time.monotonic()}), "utf-8")
    sys.exit(code)


if __name__ == "__main__":
    main()

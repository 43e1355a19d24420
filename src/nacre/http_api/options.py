"""What a server is started with, besides its store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

# The variable that names the folder where the workers of one server put their numbers together.
NUMBERS_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    space: str  # of requests that name none
    fixed_space: bool = False  # agents use it, too, whatever project they work on
    hosts: frozenset[str] = frozenset()  # that the server is known by; empty: any
    token_needed: bool = False
    requests_per_minute: int = 0  # of each caller; 0: any number
    backups: Path | None = None  # the folder that backups are written to; None: there are none over HTTP
    tools: str = ""  # groups of tools that agents have besides the usual ones
    workers: int = 1
    access_log: bool = True
    defer_embeddings: bool = False  # workers embed

"""Other ways to find the same documents, one file each: what a user would have without Nacre.

Each is used as its own documents say, with its defaults but for what its file says. Those that take vectors are given
the same ones, of the same passages, as Nacre. A scope has an index of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.rivals import bm25s, chroma, fts5, grep, lancedb, mempalace
from benchmarks.rivals.rival import Rival

RIVALS: Mapping[str, Rival] = {
    rival.name: rival for module in (grep, fts5, bm25s, chroma, lancedb, mempalace) for rival in module.RIVALS
}

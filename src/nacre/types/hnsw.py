"""Parameters of the HNSW graphs that large spaces are searched by meaning with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Hnsw:
    """The first two shape a graph when it is built: with others it is built again. The last one acts on each search."""

    connectivity: int = 16  # neighbours of a passage in the graph: more find better, and take more memory
    expansion_add: int = 128  # candidates looked at for each passage that is added: more build slower and find better
    expansion_search: int = 128  # candidates looked at in a search: more search slower and find better


USUAL_HNSW = Hnsw()

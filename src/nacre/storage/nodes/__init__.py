"""One store on several nodes: each space is on one of them, and a search over several asks several."""

from nacre.storage.nodes.node import Node
from nacre.storage.nodes.store import NodesStore

__all__ = ["Node", "NodesStore"]

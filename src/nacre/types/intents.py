"""The intents of questions, and the namespaces that answer each best."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

IntentName: TypeAlias = Literal["how-to", "location", "explanation", "troubleshoot", "comparison", "general"]


class Intent(NamedTuple):
    """The intent of a question with its confidence, from 0 to 1."""

    name: IntentName
    confidence: float


# Factors on the scores of memories in a namespace, at full confidence. They are small because fused scores lie close
# together: with arbitrary namespaces, factors of 1.2 cost more than a point of nDCG (benchmarks/signals.py).
NAMESPACE_WEIGHTS: Mapping[IntentName, Mapping[str, float]] = MappingProxyType(
    {
        "how-to": {"patterns": 1.015, "learnings": 1.01, "apis": 1.005},
        "location": {"apis": 1.015, "config": 1.01, "context": 1.005},
        "explanation": {"decisions": 1.015, "context": 1.01, "patterns": 1.005},
        "troubleshoot": {"blockers": 1.015, "learnings": 1.01, "testing": 1.005},
        "comparison": {"decisions": 1.015, "patterns": 1.01},
        "general": {},
    }
)

"""Measure how well a store answers questions with known answers, try other weights, and keep the better ones.

`nacre eval` and `nacre tune` do this with confidence intervals and held-out questions.
"""

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import nacre

ANSWERS = {
    "which port does the gateway listen on?": "The gateway listens on port 8080.",
    "who approves holiday requests?": "Holiday requests are approved by the team lead.",
    "where are invoices kept?": "Invoices are kept in the billing archive.",
    "why is the nightly job slow?": "The nightly job is slow because it scans all orders.",
}
RECENT = [
    "The demo gateway listens on port 9090.",
    "Holiday requests were discussed by the team.",
    "Drafts of invoices are kept on the shared drive.",
    "The weekly job is slow, too.",
]
CHANGES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "new first": {"recency_weight": 1.0},
    "words only": {"alpha": 0.0},
    "any age": {"recency_weight": 0.0, "fresh_weight": 0.0},
}


def reciprocal_rank(memory: nacre.Nacre, query: str, answer: str, recipe: nacre.Recipe) -> float:
    texts = [hit.text for hit in memory.search(query, recipe=recipe).hits]
    return 1 / (1 + texts.index(answer)) if answer in texts else 0.0


def main() -> None:
    now = datetime.now(UTC)
    with tempfile.TemporaryDirectory() as folder, nacre.open(Path(folder) / "tune.db", log=False) as memory:
        old = [nacre.NewMemory(text=text, created=now - timedelta(days=60)) for text in ANSWERS.values()]
        memory.remember_many([*old, *RECENT])

        scores = {}
        for name, changes in CHANGES.items():
            recipe = nacre.Recipe(**changes)
            ranks = [reciprocal_rank(memory, query, answer, recipe) for query, answer in ANSWERS.items()]
            scores[name] = sum(ranks) / len(ranks)
            print(f"{name:12} MRR {scores[name]:.2f}")
        best = max(scores, key=lambda name: scores[name])
        print("best:", best)

        # A lens keeps a setting in the store; the pattern "*" selects it for every question.
        memory.save_lens(nacre.Lens(name="tuned", recipe=CHANGES[best], questions=("*",)))
        print("searched through the lens:", memory.search("who approves holiday requests?").lens)


if __name__ == "__main__":
    main()

"""Remember some texts and find them again: by words, by meaning and by both, with a reason for every rank."""

import tempfile
from pathlib import Path

import nacre

NOTES = [
    nacre.NewMemory(text="We chose PostgreSQL because of its JSON support.", namespace="decisions", tags=["database"]),
    nacre.NewMemory(text="Redis caches the sessions of the web shop.", namespace="patterns", tags=["cache"]),
    nacre.NewMemory(text="The nightly backup failed: error E4012, the disk was full.", tags=["ops"]),
    nacre.NewMemory(text="Deployments go to staging on Fridays, to production on Mondays.", tags=["ops"]),
]


def show(title: str, result: nacre.SearchResult) -> None:
    print(f"\n{title}")
    for rank, hit in enumerate(result.hits, 1):
        print(f"  {rank}. {hit.relevance or 0:4.0%}  {hit.text}")
    if not result.hits:
        print("  nothing:", *result.notes)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, nacre.open(Path(folder) / "notes.db") as memory:
        receipts = memory.remember_many(NOTES)
        again = memory.remember(NOTES[0])
        print(f"remembered {len(receipts)} notes; the first one again: duplicate={again.duplicate}")

        show("by words: E4012", memory.search("E4012", mode="keyword"))
        show("by meaning: which DBMS do we use?", memory.search("which DBMS do we use?", mode="semantic", limit=1))
        show("by both: when do we release?", memory.search("when do we release?", limit=1))
        show("with a filter: backup tag:ops -staging", memory.search("backup tag:ops -staging", limit=1))
        show("nothing rather than noise", memory.search("which disk did the chess club buy?", min_score=0.15))

        best = memory.search("which DBMS do we use?").hits[0]
        print(f"\nwhy the first hit has the score {best.score:.4f}:")
        for reason in best.reasons:
            sign = "+" if reason.effect == "add" else "x"
            print(f"  {reason.signal:10} {sign} {reason.value:.4f}")


if __name__ == "__main__":
    main()

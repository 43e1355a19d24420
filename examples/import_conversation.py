"""Import a conversation turn by turn. The answer is often the turn after the one that has the words of the question."""

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nacre

TURNS = [
    ("Mara", "Did anybody hear how the conference in Porto went?"),
    ("Lin", "It was wonderful! I met the people who maintain our tracing library."),
    ("Mara", "And which hotel did you stay at?"),
    ("Lin", "The small one by the river, with the blue door."),
    ("Tomás", "The printer is broken again, by the way."),
    ("Lin", "I will call the technician on Thursday."),
]


def turns() -> Iterator[nacre.NewMemory]:
    """One memory a turn; session and position keep their order."""
    begins = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)
    for position, (speaker, text) in enumerate(TURNS):
        yield nacre.NewMemory(
            text=f"{speaker}: {text}",
            kind="episode",
            session="standup-2026-05-04",
            position=position,
            created=begins + timedelta(minutes=position),
            metadata={"speaker": speaker},
        )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, nacre.open(Path(folder) / "chat.db") as memory:
        stored = sum(len(batch) for batch in memory.remember_batches(turns()))  # constant memory for any size
        print(f"imported {stored} turns")

        for hit in memory.search("which hotel did Lin stay at?", limit=2).hits:
            from_neighbour = any(reason.signal == "echo" for reason in hit.reasons)
            print(f"  {hit.text}{'  (raised by a neighbour)' if from_neighbour else ''}")

        answer = next(hit for hit in memory.search("hotel").hits if "blue door" in hit.text)
        fetched = memory.get(answer.id, neighbours=1)
        print("around the answer:", [entry.summary for entry in fetched.neighbours[answer.id]])

        only_lin = memory.search("technician", where=nacre.Filter(metadata={"speaker": "Lin"}))
        print("said by Lin:", only_lin.hits[0].text)
        print("by month:", dict(memory.facets().months))


if __name__ == "__main__":
    main()

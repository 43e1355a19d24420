"""Facts are extracted from texts. A newer value takes the place of an older one, and the past can be asked for."""

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import nacre

JANUARY, MARCH, JUNE = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 3, 6))


def residence(memory: nacre.Nacre, as_of: datetime | None = None) -> str:
    """Where Ada lives, now or as of another time."""
    ((fact, _),) = memory.facts(subject="Ada", predicate="lives in", as_of=as_of)
    return fact.object


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, nacre.open(Path(folder) / "facts.db") as memory:
        # The order of writing does not matter: what counts is when each text was created.
        moved = memory.remember("Ada lives in Paris.", created=JUNE).id
        memory.remember("Ada lives in London.", created=JANUARY)
        print("now:         ", residence(memory))
        print("as of March: ", residence(memory, MARCH))

        print("\nhistory:")
        for fact, _ in memory.facts(subject="Ada", history=True):
            ends = "now" if fact.valid_to is None else f"{fact.valid_to:%B %Y}"
            print(f"  {fact.subject} {fact.predicate} {fact.object}, from {fact.valid_from:%B %Y} to {ends}")

        memory.forget(moved)
        print("\nafter the newer memory was forgotten:", residence(memory))
        memory.restore(moved)

        # A value that is believed much less supersedes nothing: it is listed as a conflict.
        memory.state_fact(nacre.NewFact(subject="gateway", predicate="port", object="8080", type="config"))
        memory.state_fact(
            nacre.NewFact(subject="gateway", predicate="port", object="9090", type="config", confidence=0.3)
        )
        for conflict in memory.conflicts():
            values = " or ".join(sorted(fact.object for fact, _ in conflict.beliefs))
            print(f"\nconflict: {conflict.subject} {conflict.predicate} is {values}")

        memory.add_entity("Ada", kind="person", aliases=["the countess"])
        hits = memory.search('entity:"the countess"').hits
        print("\nabout the countess:", [hit.text for hit in hits])


if __name__ == "__main__":
    main()

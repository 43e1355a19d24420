"""What an agent is given before it answers: a text within a token budget, and nothing twice in one session."""

import tempfile
from pathlib import Path

import nacre

NOTES = [
    "Release notes are written on Friday, in English and in German.",
    "Without Henrik, Mara and Lin are on call in alternate weeks. Tomás is the backup.",
    "While Henrik is away, Lin hands over on call to Mara on Monday at 09:00.",
    "The coffee machine on the second floor takes tokens only.",
]
QUESTION = "Who is on call while Henrik is away?"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, nacre.open(Path(folder) / "agent.db") as memory:
        memory.remember_many(NOTES)

        first = memory.context(QUESTION, 200, session="chat-1")
        print(first.text)
        print(f"\n{first.tokens} of 200 tokens, {len(first.quoted)} memories")

        # The recall log knows what the session was given, so a second call repeats nothing.
        again = memory.context(QUESTION, 200, session="chat-1")
        delivered = sum(each.why == "delivered" for each in again.left_out)
        print(f"asked again: {len(again.quoted)} memories, {delivered} left out as delivered")
        other = memory.context(QUESTION, 200, session="chat-2")
        print(f"another session: {len(other.quoted)} memories")

        # What the agent sends back unchanged is recognised; what it adds is stored.
        echoed = memory.remember(NOTES[1], session="chat-1")
        learned = memory.remember("Lin swapped week 38 with Mara.", session="chat-1")
        print(f"recalled text: recalled={bool(echoed.recalled)}; new text: duplicate={learned.duplicate}")

        # Tell the log what helped. It moves later rankings a little.
        marked = memory.mark(first.quoted[0].id, "used")
        print(f"marked as used: {len(marked)}")
        *_, receipt = memory.receipts(session="chat-1")  # the newest first
        print(f"the log has {receipt.query!r} with {len(receipt.deliveries)} deliveries")


if __name__ == "__main__":
    main()

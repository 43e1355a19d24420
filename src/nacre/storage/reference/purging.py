"""Deletes a memory of the reference store for good, with all that quotes it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from nacre.analysis import tokenizer
from nacre.analysis.quotations import Quotations, found_in, significant_tokens
from nacre.storage.changes import labels_ever, stated, texts_ever

if TYPE_CHECKING:
    from nacre.storage.reference.store import MemoryStore


def purge(store: MemoryStore, memory_id: str, at: datetime) -> None:
    """The caller logs the event."""
    memory = store._memories[memory_id].memory
    former = [event.before for event in store._events if event.memory_id == memory_id]
    texts = texts_ever(memory, former)
    labels = labels_ever(memory, former)
    labels += [stated(each) for each in store._facts.by_memory([memory_id]).get(memory_id, ())]
    del store._memories[memory_id]
    store._displaced.discard(memory_id)
    store._facts.purge(memory_id)
    store._updates.purge(memory_id)
    store._purge_answers()
    store._recall_log.purge([memory_id], Quotations(texts, _gone(store, texts, labels)), at)
    store._events = [replace(each, before={}) if each.memory_id == memory_id else each for each in store._events]


def _gone(store: MemoryStore, texts: Sequence[str], labels: Sequence[str]) -> set[str]:
    """The words of a purged memory that no memory has any more."""
    of_texts = significant_tokens(texts)
    live = {token for each in store._live() for token in tokenizer.vocabulary(each.tokens)}
    gone = (of_texts | significant_tokens(labels)) - live
    others = [json.dumps(each.memory.metadata, ensure_ascii=False) for each in store._memories.values()]
    others += [stated(each) for several in store._facts.by_memory(list(store._memories)).values() for each in several]
    return gone - found_in(gone - of_texts, others)

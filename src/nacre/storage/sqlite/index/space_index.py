"""The segments of each space, brought up to date from the rows before every search.

A search first reads the events since the last one. Memories that changed are removed from their segments and added to a
new small one. Small segments are merged at once, large ones in the background, so that each is several times the size
of all that follow it, and their number stays low. Segments of some size are saved in files. A process that finds no
files builds them; if it is killed, the files that it has written remain.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import apsw
import numpy as np

from nacre.analysis import tokenizer
from nacre.runtime.background import Worker
from nacre.runtime.lru import LruCache
from nacre.storage.sqlite.connection import Connections, is_database_error
from nacre.storage.sqlite.index import hnsw as graphs
from nacre.storage.sqlite.index.hnsw import Graph
from nacre.storage.sqlite.index.segment import (
    MAIN,
    Allocate,
    Array,
    DamagedCache,
    Files,
    Hashes,
    Mask,
    Segment,
    Stamp,
    digest,
    of_arrays,
    remove,
)
from nacre.storage.sqlite.index.segment_builder import merge, of_rows
from nacre.storage.sqlite.rows import fetch, meta
from nacre.types.hnsw import USUAL_HNSW, Hnsw

SAVED_MEMORIES_MIN = 1_024  # fewer are read from rows as fast as from a file
BITE_EVENTS = 16_384  # that become one segment: bounds the memory that building it needs
GRAPH_PASSAGES_MIN = 65_536  # below, all vectors are compared in two or three milliseconds (see docs/performance.md)
GRAPH_BEHIND_MAX = 16_384  # passages that are compared one by one besides the graph; beyond, the graph grows
SPACES_CACHED_MAX = 64
UNWRITABLE_S = 600.0  # after a file could not be written, no other is tried for this time
MODEL_SWITCHED = "model switched"  # the event after which all vectors are of another model

_RATIO = 4  # a segment that is at most this many times as large as all that follow is merged with them
_SEARCHED_RATIO = 16  # the same in a space that is searched: each search pays for every segment
_log = logging.getLogger("nacre")


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A segment with the mask of its memories that are alive. None: all."""

    stamp: Stamp
    segment: Segment
    alive: Mask | None
    saved: bool
    refused: bool = False  # it could not be saved, and stays in memory until it is merged

    def living(self) -> Mask:
        return np.ones(len(self.segment), np.bool_) if self.alive is None else self.alive

    def without(self, rows: Array) -> Part:
        gone = self.segment.docs_of(rows)
        if not len(gone):
            return self
        alive = self.living().copy()
        alive[gone] = False
        return replace(self, alive=alive)


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """A space as of event `seq`. Immutable, so that threads can share it."""

    name: str
    model: str
    seq: int
    parts: tuple[Part, ...] = ()
    graphs: Mapping[int, Graph] = field(default_factory=dict)  # by number of the model
    purges: int = 0  # that this process has seen
    drops: int = 0  # of files by this process, before it read or made its own

    @property
    def models(self) -> list[int]:
        """The numbers of the models that it has vectors of."""
        return sorted({model for part in self.parts for model in part.segment.models})

    def passages(self, model: int = MAIN) -> int:
        return sum(len(part.segment.vectors(model).keys) for part in self.parts)

    def dimensions(self, model: int) -> int:
        return max(part.segment.vectors(model).dimensions for part in self.parts)


class _Closing(Exception):
    """The store is being closed: background work stops, and the next process does it again."""


class Index:
    """All spaces of one store."""

    def __init__(
        self,
        database: Path,
        store_id: str,
        connections: Connections,
        parameters: Hnsw = USUAL_HNSW,
        *,
        saved: bool = True,
    ) -> None:
        self._parameters = parameters  # of the graphs
        self._saved = saved  # in files; otherwise each process keeps its own index in memory
        self._files = Files(database)
        self._store_id = store_id
        self._connections = connections
        self._hashes = Hashes()
        self._spaces: LruCache[str, Space] = LruCache(SPACES_CACHED_MAX)
        self._lock = threading.RLock()
        self._requested: set[str] = set()  # spaces to bring up to date in the background
        self._searched: set[str] = set()  # spaces that need a graph: an import does not wait for one
        self._tidying = threading.Lock()
        self._worker = Worker(self._tidy)
        self._closing = threading.Event()
        self._drops = 0
        self._unwritable_until = 0.0  # by the clock of time.monotonic

    # ---- for searches

    def caught_up(self, db: apsw.Connection, name: str) -> Space:
        """The space as of the latest event."""
        return self._caught_up(db, name, *_now(db))

    def _caught_up(self, db: apsw.Connection, name: str, seq: int, model: str) -> Space:
        space = self._spaces.get(name)
        if space is not None and space.seq >= seq and space.model == model:
            return space
        with self._lock:
            space = self._spaces.get(name)
            if space is None or space.model != model:
                space = self._from_files(db, name, model, seq)
            space = self._with_changes(db, space, seq)
            self._spaces.put(name, space)
            self._tidy_later(space)
            return space

    def ready(self, db: apsw.Connection, name: str) -> Space | None:
        """The space as of the latest event. If that would take long, it is prepared in the background: then None."""
        seq, model = _now(db)
        space = self._spaces.get(name)
        if space is None or space.model != model:
            if not self._lock.acquire(blocking=False):  # another thread is reading it
                return None
            try:
                space = self._from_files(db, name, model, seq)
                self._spaces.put(name, space)
                self._tidy_later(space)
            finally:
                self._lock.release()
        if seq - space.seq <= BITE_EVENTS:
            return self._caught_up(db, name, seq, model)
        self.catch_up_in_background([name])
        return None

    # ---- maintenance

    def catch_up_in_background(self, names: Iterable[str]) -> None:
        """Bring these spaces up to date in the background."""
        with self._lock:
            self._requested.update(names)
        self._worker.wake()

    def drop(self, names: Iterable[str]) -> None:
        with self._lock:
            for name in names:
                self._drops += 1
                self._spaces.pop(name)
                self._files.drop(name)

    def purge(self, db: apsw.Connection, names: Iterable[str]) -> None:
        """Rewrite files with purged memories, and remove those of other processes. The purge is an event already."""
        for name in names:
            with self._lock:
                if self._files.files(name, ""):
                    try:
                        kept = [part.stamp for part in self.caught_up(db, name).parts]
                    except DamagedCache:
                        self.drop([name])
                    else:
                        self._files.drop_but(name, kept)
                else:
                    self._spaces.pop(name)

    def build(self, db: apsw.Connection, name: str) -> None:
        """Bring a space up to date, merge its segments and build its graph now, not in the background."""
        self.caught_up(db, name)
        self._tidy_space(name, searched=True, alone=True)

    def close(self) -> None:
        self._closing.set()
        self._worker.join()

    def abandon(self) -> None:
        """Stop what runs in the background, and do not wait for it."""
        self._closing.set()

    # ---- catching up

    def _stamp(self, db: apsw.Connection, name: str, model: str, after: int, seq: int) -> Stamp:
        event = db.execute("SELECT at_us || ' ' || memory_id FROM events WHERE seq = ?", (seq,)).get
        return Stamp(self._store_id, model, tokenizer.VERSION, name, after, seq, event or "")

    def _from_files(self, db: apsw.Connection, name: str, model: str, newest: int) -> Space:
        chain = self._files.chain(name, lambda after, seq: self._stamp(db, name, model, after, seq), newest)
        parts: list[Part] = []
        for stamp, segment in chain:
            parts = [part.without(segment.superseded) for part in parts]
            parts.append(Part(stamp, segment, None, saved=True))
        space = Space(name, model, chain[-1][0].seq if chain else 0, tuple(parts), drops=self._drops)
        saved = {model: self._saved_graph(db, space, model, newest) for model in space.models}
        return replace(space, graphs={model: graph for model, graph in saved.items() if graph is not None})

    def _saved_graph(self, db: apsw.Connection, space: Space, model: int, newest: int) -> Graph | None:
        if space.passages(model) < GRAPH_PASSAGES_MIN:
            return None

        def named(seq: int) -> str | None:
            stamp = self._stamp(db, space.name, space.model, 0, seq)
            return _graph_name(stamp, model, self._parameters) if seq <= newest else None

        files = self._files.files(space.name, graphs.suffix(model))
        return graphs.opened(files, named, space.dimensions(model), self._parameters)

    def _with_changes(self, db: apsw.Connection, space: Space, until: int) -> Space:
        """The space as of event `until`."""
        newest, _ = _now(db)
        while space.seq < until:
            sql = "SELECT seq, row, action FROM events WHERE seq > ? AND seq <= ? AND space = ? ORDER BY seq LIMIT ?"
            events = fetch(db, sql, (space.seq, until, space.name, BITE_EVENTS))
            if not events:
                return replace(space, seq=until)
            seq = events[-1][0] if len(events) == BITE_EVENTS else until
            touched = sorted({row for _, row, _ in events})
            after = space.parts[-1].stamp.seq if space.parts else 0
            stamp = self._stamp(db, space.name, space.model, after, seq)
            segment = of_rows(db, space.name, touched, self._hashes)
            parts = [part.without(segment.superseded) for part in space.parts]
            purged = [row for _, row, action in events if action == "purged"]
            if purged:
                parts = [self._rewritten(part, np.array(purged, np.int64), seq) for part in parts]
                for path in self._files.files(space.name, f"{graphs.suffix(MAIN)}*"):
                    remove(path)
                space = replace(space, graphs={}, purges=space.purges + 1)
            parts.append(self._save(Part(stamp, segment, None, saved=False), newest))
            space = replace(space, seq=seq, parts=tuple(_merge_small(parts)))
        return space

    def _save(self, part: Part, seen: int) -> Part:
        """The part, saved if it is large enough."""
        if len(part.segment) < SAVED_MEMORIES_MIN or self._unwritable:
            return part
        arrays = part.segment.arrays()
        written = self._write(part.stamp, lambda _: arrays, seen)
        return replace(part, refused=True) if written is None else replace(part, segment=written, saved=True)

    def _write(self, stamp: Stamp, fill: Callable[[Allocate], Mapping[str, Array]], seen: int) -> Segment | None:
        """Best effort: without the file, the next process reads the rows."""
        try:
            return self._files.write(stamp, fill, lambda: self._fits(stamp.space, seen))
        except OSError:
            self._unwritable_until = time.monotonic() + UNWRITABLE_S
            return None

    @property
    def _unwritable(self) -> bool:
        return not self._saved or time.monotonic() < self._unwritable_until

    def _fits(self, name: str, seen: int) -> bool:
        """Whether nothing was purged since this event. A file from before a purge must not be kept."""
        sql = "SELECT EXISTS (SELECT 1 FROM events WHERE seq > ? AND space = ? AND action = 'purged')"
        with self._connections.reading(latest=True) as db:
            return not db.execute(sql, (seen, name)).get

    def _rewritten(self, part: Part, purged: Array, seen: int) -> Part:
        """The part without purged memories: not even their hashes may stay in a file."""
        if not len(part.segment.docs_of(purged)):
            return part
        self._files.remove(part.stamp)
        alone = [(part.segment, part.alive)]
        segment = of_arrays(merge(alone, part.stamp.after == 0))
        return self._save(replace(part, segment=segment, alive=None, saved=False, refused=False), seen)

    # ---- in the background

    def _tidy_later(self, space: Space) -> None:
        if self._mergeable(space.parts, _SEARCHED_RATIO) is not None or self._model_behind(space) is not None:
            self._searched.add(space.name)
            self._worker.wake()

    def _mergeable(self, parts: Sequence[Part], ratio: int) -> int | None:
        """The part from which on all are merged into one. None: no merge is due."""
        found, following = None, 0
        for at in range(len(parts) - 1, -1, -1):
            size = len(parts[at].segment)
            if following and size <= ratio * following:
                found = at
            following += size
        if found is not None and sum(len(part.segment) for part in parts[found:]) >= SAVED_MEMORIES_MIN:
            return found
        unsaved = [at for at, part in enumerate(parts) if not (part.saved or part.refused)]
        many = sum(len(parts[at].segment) for at in unsaved) >= SAVED_MEMORIES_MIN
        return unsaved[0] if many and not self._unwritable else None

    def _tidy(self) -> None:
        with self._lock:
            names, searched = {*self._spaces.keys(), *self._requested}, set(self._searched)
            self._requested.clear()
            self._searched.clear()
        for name in names:
            try:
                self._go_on()
                self._catch_up_step_by_step(name)
                self._tidy_space(name, searched=name in searched)
            except _Closing:
                return
            except Exception as error:  # searches use FTS5, or do this work themselves
                _log.warning("the index of a space could not be brought up to date (%s)", error)
                if not is_database_error(error):
                    self.drop([name])

    def _go_on(self) -> None:
        if self._closing.is_set():
            raise _Closing

    def _catch_up_step_by_step(self, name: str) -> None:
        """Index a bounded number of events at a time, without the lock, so that no search waits.

        Each step reads its own snapshot, so that the write-ahead log can be reset.
        """
        behind = True
        while behind:
            self._go_on()
            with self._connections.reading() as db:
                newest, model = _now(db)
                known = self._spaces.get(name)
                space = known
                if space is None or space.model != model:
                    space = self._from_files(db, name, model, newest)
                bite = f"SELECT max(seq) FROM (SELECT seq FROM events WHERE seq > ? AND space = ? LIMIT {BITE_EVENTS})"
                last = db.execute(bite, (space.seq, name)).get
                space = self._with_changes(db, space, newest if last is None else last)
            with self._lock:
                if self._spaces.get(name) is known:  # unless a search was faster
                    self._spaces.put(name, space)
            behind = space.seq < newest

    def _tidy_space(self, name: str, *, searched: bool, alone: bool = False) -> None:
        """Merge segments and, if the space is `searched`, grow the graph, until nothing is left to do.

        One thread at a time, or they would undo each other's work. `alone`: a caller waits, so it may use all cores.
        """
        cores = os.cpu_count() or 2
        with self._tidying:
            while (space := self._spaces.get(name)) is not None:
                self._go_on()
                begin = self._mergeable(space.parts, _SEARCHED_RATIO if searched else _RATIO)
                if begin is not None:
                    old = space.parts[begin:]
                    self._replace_parts(space, old, self._merged(old, space.seq))
                elif searched and (model := self._model_behind(space)) is not None:
                    with self._connections.reading() as db:  # a graph must not skip events that are not indexed yet
                        space = self.caught_up(db, name)
                    self._attach(space, model, self._grown(space, model, cores if alone else max(1, cores // 2)))
                else:
                    return

    def _merged(self, several: Sequence[Part], seen: int) -> Part:
        stamp = replace(several[-1].stamp, after=several[0].stamp.after)
        inputs = [(part.segment, part.alive) for part in several]
        base = stamp.after == 0
        if not self._unwritable:
            written = self._write(stamp, lambda allocate: merge(inputs, base, allocate, self._go_on), seen)
            if written is not None:
                return Part(stamp, written, None, saved=True)
        return Part(stamp, of_arrays(merge(inputs, base, pulse=self._go_on)), None, saved=False, refused=True)

    def _replace_parts(self, before: Space, old: Sequence[Part], new: Part) -> None:
        """Replace parts by the one merged from them, without memories that were deleted meanwhile."""
        segments = [part.segment for part in old]
        with self._lock:
            space = self._spaces.get(before.name)
            now = [part for part in space.parts if any(part.segment is each for each in segments)] if space else []
            if space is None or len(now) != len(old):  # purged or rebuilt meanwhile
                if new.saved:
                    self._files.remove(new.stamp)
                return
            died = [
                now_part.segment.rows[old_part.living() & ~now_part.living()]
                for now_part, old_part in zip(now, old, strict=True)
            ]
            new = new.without(np.concatenate(died))
            at = space.parts.index(now[0])
            self._spaces.put(space.name, replace(space, parts=(*space.parts[:at], new, *space.parts[at + len(old) :])))
        if new.saved:
            for part in old:
                if part.saved and part.stamp != new.stamp:
                    self._files.remove(part.stamp)

    # ---- the graph

    def _model_behind(self, space: Space) -> int | None:
        """The first model whose graph is to be built, or to grow."""
        return next((model for model in space.models if self._graph_behind(space, model)), None)

    def _graph_behind(self, space: Space, model: int) -> bool:
        passages = space.passages(model)
        if passages < GRAPH_PASSAGES_MIN:
            return False
        if model not in space.graphs:
            return True
        newest = space.graphs[model].newest
        keys = [part.segment.vectors(model).keys for part in space.parts]
        known = [int(np.searchsorted(each, newest, side="right")) for each in keys]
        return passages - sum(known) > GRAPH_BEHIND_MAX

    def _grown(self, space: Space, model: int, threads: int) -> Graph:
        graph, stamp = space.graphs.get(model), space.parts[-1].stamp
        if graph is not None and (graph.path is None or not graph.path.is_file()):  # another process replaced it
            with self._connections.reading() as db:
                known = graph.newest
                graph = self._saved_graph(db, space, model, _now(db)[0]) or graph
            if graph.newest > known:
                return graph
        parts = [(part.segment.vectors(model), part.alive) for part in space.parts]
        fits = partial(self._fits, space.name, space.seq)
        name = graphs.Name(_graph_name(stamp, model, self._parameters), graphs.suffix(model))
        folder = self._files.folder if self._saved else None
        return graphs.grown(graph, parts, folder, name, self._go_on, fits, threads, self._parameters)

    def _attach(self, before: Space, model: int, grown: Graph) -> None:
        with self._lock:
            space = self._spaces.get(before.name)
            since = space and (space.model, space.purges, space.drops)
            if space is not None and since == (before.model, before.purges, before.drops):
                self._spaces.put(space.name, replace(space, graphs={**space.graphs, model: grown}))
            elif grown.path is not None:  # purged or rebuilt meanwhile
                remove(grown.path)
                if space is not None:  # it may have found the file
                    kept = {key: graph for key, graph in space.graphs.items() if graph.path != grown.path}
                    self._spaces.put(space.name, replace(space, graphs=kept))


def _merge_small(parts: Sequence[Part]) -> list[Part]:
    """The parts, with small ones that are only in memory merged."""
    gathered = list(parts)
    while len(gathered) > 1 and not gathered[-1].saved and not gathered[-2].saved:
        first, second = gathered[-2:]
        if len(first.segment) > _RATIO * len(second.segment):
            break
        stamp = replace(second.stamp, after=first.stamp.after)
        arrays = merge([(first.segment, first.alive), (second.segment, second.alive)], stamp.after == 0)
        gathered[-2:] = [Part(stamp, of_arrays(arrays), None, saved=False)]
    return gathered


def _graph_name(stamp: Stamp, model: int, parameters: Hnsw) -> str:
    """Identifies the store, model and history whose passages a graph has, and the parameters it was built with."""
    of_model = stamp.model if model == MAIN else f"further {model}"
    known = f"{graphs.FORMAT} {stamp.store_id} {of_model} {stamp.event}"
    built = parameters.connectivity, parameters.expansion_add
    if built != (USUAL_HNSW.connectivity, USUAL_HNSW.expansion_add):  # the usual ones were never part of a name
        known += f" {built}"
    return f"{digest(stamp.space)}-{digest(known)}-{stamp.seq}"


def _now(db: apsw.Connection) -> tuple[int, str]:
    """The number of the latest event, and the model of the vectors."""
    seq: int = db.execute("SELECT coalesce(max(seq), 0) FROM events").get
    return seq, meta(db, "model") or ""

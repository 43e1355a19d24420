"""Asks the nodes that have the spaces or memories of a call, several at once, and asks again when a space has moved."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Generic, NamedTuple, NoReturn, TypeVar

from nacre.errors import NotFound, SpaceMoved, StoreBusy, StoreUnavailable
from nacre.runtime import forks
from nacre.runtime.threads import Threads
from nacre.storage.nodes.connected import Connected, View
from nacre.storage.nodes.node import Node
from nacre.storage.nodes.placement import Placement

T = TypeVar("T")

_PAUSE_S = 0.02  # before nodes are asked again where a space is


class _Part(NamedTuple, Generic[T]):
    """What one node is asked, and the spaces that it must have for that."""

    of: Connected
    spaces: Sequence[str]
    work: Callable[[Node], T]


class Router:
    def __init__(self, placement: Placement, busy_timeout_ms: int) -> None:
        self.placement = placement
        self._busy_timeout_ms = busy_timeout_ms
        self._threads = Threads()
        self.after_fork()
        forks.renew_in_child(self)

    def after_fork(self) -> None:
        self._own = threading.local()  # the view of a thread, if any

    def close(self) -> None:
        self._threads.close()

    # ---- reading

    @contextmanager
    def view(self) -> Iterator[None]:
        if self._view is not None:
            yield
            return
        view = self._own.view = View()
        try:
            yield
        finally:
            self._own.view = None
            view.close()

    def of_spaces(self, spaces: Iterable[str], work: Callable[[Node, list[str]], T]) -> list[T]:
        """What the nodes that have these spaces answer. New spaces are on none."""
        named = list(spaces)

        def parts() -> list[_Part[T]]:
            groups = self.placement.of(named)
            return [_Part(each, group, partial(_on, work, group)) for each, group in groups.items()]

        return self._again(parts)

    def of_ids(self, ids: Iterable[str], work: Callable[[Node, list[str]], T]) -> list[T]:
        """What the nodes that have these memories answer. Unknown ids are asked of none."""
        named = list(dict.fromkeys(ids))

        def parts() -> list[_Part[T]]:
            space_of = self.spaces_of(named)
            groups = self.placement.of(space_of.values())
            return [
                _Part(each, spaces, partial(_on, work, _inside(named, space_of, spaces)))
                for each, spaces in groups.items()
            ]

        return self._again(parts)

    def of_every(self, work: Callable[[Node], T]) -> list[T]:
        """What all nodes answer, in their order. Raises StoreUnavailable if one is away."""
        return self._again(lambda: [_Part(each, (), work) for each in self.placement.every()])

    def of_reachable(self, work: Callable[[Node], T]) -> dict[Connected, T]:
        """What the nodes answer that are not away."""
        parts = [_Part(each, (), work) for each in self.placement.reachable()]
        outcomes = self._outcomes(parts)
        return {
            part.of: outcome()
            for part, outcome in zip(parts, outcomes, strict=True)
            if not isinstance(outcome, _Raised) or not isinstance(outcome.error, StoreUnavailable)
        }

    def of_home(self, work: Callable[[Node], T]) -> T:
        return self.placement.home.asked(work)

    def spaces_of(self, ids: Sequence[str]) -> dict[str, str]:
        """By id of a memory, its space. Unknown ids are missing."""
        found, unknown = self.placement.remembered(ids)
        if unknown:
            asked = self._known_of_all(unknown, lambda node: node.spaces_of(unknown))
            self.placement.remember(asked)
            found |= asked
        return found

    def spaces_of_facts(self, ids: Sequence[str]) -> dict[str, str]:
        return self._known_of_all(ids, lambda node: node.spaces_of_facts(ids)) if ids else {}

    def _known_of_all(self, ids: Sequence[str], work: Callable[[Node], Mapping[str, str]]) -> dict[str, str]:
        """What all nodes know of ids. That one is away matters only where the others do not know them."""
        answers = self.of_reachable(work)
        found = {each: known for several in answers.values() for each, known in several.items()}
        if len(answers) < len(self.placement.members) and any(each not in found for each in ids):
            self.placement.every()
        return found

    # ---- writing

    def write(self, spaces: Iterable[str], work: Callable[[Node, list[str]], T], *, place: bool = False) -> list[T]:
        """Write on the nodes that have these spaces, each part in one transaction. `place`: spaces may be new."""
        left = list(dict.fromkeys(spaces))
        done: list[T] = []
        deadline = self._deadline()
        while left:
            groups = self.placement.placing(left) if place else self.placement.of(left)
            left = []
            for each, group in groups.items():
                try:
                    done.append(each.asked(partial(_holding, work, group)))
                except SpaceMoved as moved:
                    self._wait(deadline, moved)
                    left += group
        return done

    def write_ids(self, ids: Iterable[str], work: Callable[[Node, list[str]], T]) -> list[T]:
        """The same by the ids of memories. Raises NotFound before anything is written."""
        named = list(dict.fromkeys(ids))
        space_of = self.found(named)
        return self.write(space_of.values(), lambda node, spaces: work(node, _inside(named, space_of, spaces)))

    def again(self, work: Callable[[], T]) -> T:
        """Carry something out that may be repeated, until no space was found to have moved meanwhile."""
        deadline = self._deadline()
        while True:
            try:
                return work()
            except SpaceMoved as moved:
                self._wait(deadline, moved)

    def found(self, ids: Sequence[str]) -> dict[str, str]:
        """The spaces of memories. Raises NotFound."""
        space_of = self.spaces_of(ids)
        missing = tuple(each for each in dict.fromkeys(ids) if each not in space_of)
        if missing:
            raise NotFound(missing)
        return space_of

    # ---- inside

    @property
    def _view(self) -> View | None:
        return getattr(self._own, "view", None)

    def _again(self, parts: Callable[[], list[_Part[T]]]) -> list[T]:
        """What the nodes answer. They are asked again if a space has moved meanwhile."""
        deadline = self._deadline()
        while True:
            outcomes = self._outcomes(parts())
            errors = [each.error for each in outcomes if isinstance(each, _Raised)]
            moved = [each for each in errors if isinstance(each, SpaceMoved)]
            if len(moved) < len(errors) or not errors:
                return [each() for each in outcomes if not isinstance(each, _Raised) or each.error not in moved]
            for each in moved:
                self._wait(deadline, each)

    def _outcomes(self, parts: Sequence[_Part[T]]) -> list[Callable[[], T]]:
        """What came of asking all of these at once, the first in this thread."""
        view = self._view
        started = [self._threads.start(self._outcome, each, view) for each in parts[1:]]
        first = [self._outcome(each, view) for each in parts[:1]]
        return [*first, *(each.result() for each in started)]

    def _outcome(self, part: _Part[T], view: View | None) -> Callable[[], T]:
        try:
            return _Returned(self._asked(part, view))
        except Exception as error:
            return _Raised(error)

    def _asked(self, part: _Part[T], view: View | None) -> T:
        def work(node: Node) -> T:
            if view is not None:
                with view.reading(part.of, part.spaces) as seen:
                    return part.work(seen)
            if not part.spaces:
                return part.work(node)
            with node.view():
                node.check_here(part.spaces)
                return part.work(node)

        return part.of.asked(work)

    def _deadline(self) -> float:
        return time.monotonic() + self._busy_timeout_ms / 1000

    def _wait(self, deadline: float, moved: SpaceMoved) -> None:
        """Before nodes are asked again. Raises StoreBusy after the deadline."""
        if time.monotonic() > deadline:
            named = ", ".join(map(repr, moved.spaces))
            raise StoreBusy(f"store: space {named} is being moved between nodes; try again") from moved
        self.placement.forget(moved.spaces)
        time.sleep(_PAUSE_S)


class _Returned(Generic[T]):
    def __init__(self, result: T) -> None:
        self._result = result

    def __call__(self) -> T:
        return self._result


class _Raised:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def __call__(self) -> NoReturn:
        raise self.error


def _holding(work: Callable[[Node, list[str]], T], spaces: list[str], node: Node) -> T:
    with node.holding(spaces):
        return work(node, spaces)


def _on(work: Callable[[Node, list[str]], T], named: list[str], node: Node) -> T:
    return work(node, named)


def _inside(ids: Sequence[str], space_of: Mapping[str, str], spaces: Sequence[str]) -> list[str]:
    """The memories of these spaces."""
    inside = set(spaces)
    return [each for each in ids if space_of.get(each) in inside]

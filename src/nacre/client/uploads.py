"""Any number of items to remember, as requests of bounded size. A request is made when the one before it is answered.

One long request would not do: HTTP/1.1 clients read no answer before all of a body is sent, so nobody would know what
is stored already, and the server would have to keep its answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, Final

from nacre import validation
from nacre.client.requests import Refuse, Request, batch_request, json_bytes, lines_request
from nacre.engine import entries
from nacre.errors import InvalidInput, NacreError
from nacre.serialization import arguments
from nacre.types.memory import NewMemory

_ITEMS_MAX: Final = 512  # of a request: what the engine embeds at once
_BYTES_MAX: Final = 4 * 2**20  # a server takes bodies of 16 MiB


@dataclass(frozen=True, slots=True)
class Part:
    """One request, and how many items were in those before it. `unwritten` are items that have no JSON."""

    request: Request
    before: int
    refused: Refuse | None
    unwritten: Mapping[int, NacreError]

    def refuse(self, number: int, error: NacreError) -> None:
        """Report an item of this part."""
        assert self.refused is not None
        self.refused(number + self.before, self.unwritten.get(number, error))

    def numbered(self, error: NacreError) -> NacreError:
        """An error that numbers an item, numbered as in all items."""
        if not self.before or not isinstance(error, InvalidInput):
            return error
        field = re.sub(r"^items\[(\d+)\]", lambda found: f"items[{int(found[1]) + self.before}]", error.field)
        problem, found = re.subn(
            r"\(item (\d+) of the input\)$",
            lambda found: f"(item {int(found[1]) + self.before} of the input)",
            error.problem,
        )
        if not found and field == error.field:  # only the first item has no number
            problem += f" (item {self.before + 1} of the input)"
        return type(error)(field, problem, error.errors)


def parts(verb: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> Iterator[Part]:
    """The requests of `remember_many` and `remember_batches`."""
    bound = signature(verb).bind(None, *args, **named).arguments
    items, refused = bound["items"], bound.get("refused")
    entries.check_several(items)
    if refused is not None:
        validation.function("refused", refused)
    return _parts(items, refused)


def _parts(items: Iterable[str | NewMemory], refused: Refuse | None) -> Iterator[Part]:
    written: list[bytes] = []
    unwritten: dict[int, NacreError] = {}
    before = size = 0
    for item in items:
        try:
            written.append(json_bytes(arguments.plain("item", item)))
        except InvalidInput as error:
            told = InvalidInput(error.field.partition(".")[2] or "text", error.problem)
            number = before + len(written) + 1
            if refused is None:
                where = f" (item {number} of the input)" if number > 1 else ""
                raise InvalidInput(told.field, told.problem + where) from None
            written.append(b"null")  # the server refuses it, too, and the numbers of the others stay right
            unwritten[len(written)] = told
        size += len(written[-1])
        if len(written) >= _ITEMS_MAX or size >= _BYTES_MAX:
            yield _part(written, before, refused, unwritten)
            before += len(written)
            written, unwritten, size = [], {}, 0
    if written:
        yield _part(written, before, refused, unwritten)


def _part(written: list[bytes], before: int, refused: Refuse | None, unwritten: Mapping[int, NacreError]) -> Part:
    if refused is None:
        return Part(batch_request(written), before, None, unwritten)
    body = b"".join(each + b"\n" for each in written)
    return Part(lines_request("remember_batches", body, keep_going=True), before, refused, unwritten)

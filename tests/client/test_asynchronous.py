"""The verbs for async programs, on a server and on an engine of this process: cancelling, time limits, many at once."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nacre
from faulty_servers import answered, faulty, passed_on, refused
from mcp_clients import ANSWER_SECONDS, asynchronous
from nacre import AsyncNacre, NacreError, NewMemory, ServerUnavailable
from nacre.embedders.hashing import Hashing
from nacre.errors import ServerError
from servers import ThreadServer, serving

if TYPE_CHECKING:
    from nacre.types.memory import FloatVector

pytest_plugins = "client_fixtures"
pytestmark = pytest.mark.usefixtures("hurried")

Open = Callable[[], AsyncNacre]


@pytest.fixture(params=["server", "engine"])
def opened(request: pytest.FixtureRequest, server: ThreadServer, space: str, path: Path) -> Open:
    """Opens the memory for async programs that a test is about, either way."""
    if request.param == "server":
        return lambda: nacre.connect_async(server.url, space=space)
    return lambda: AsyncNacre(nacre.open(path, space=space, embedder=Hashing()))


@asynchronous
async def test_verbs_are_those_of_an_engine(opened: Open, space: str) -> None:
    async with opened() as memory:
        done = await memory.remember("tea at four", tags=["daily"])
        assert isinstance(done, nacre.Remembered)
        found = await memory.search("when is tea?", limit=1)
        assert [each.memory.id for each in found.hits] == [done.id]
        assert [each.space async for each in memory.every()] == [space]
        batches = [each async for each in memory.remember_batches(f"text {number}" for number in range(1_025))]
        assert [len(each) for each in batches] == [512, 512, 1]
        assert len(await memory.remember_many(["one", "two"])) == 2
        records = [each async for each in memory.export()]
        assert [counts.unchanged async for counts in memory.load(records)][-1] == 1_028
        with pytest.raises(nacre.NotFound) as raised:
            await memory.get("missing")
        assert raised.value.ids == ("missing",)
        async with memory.within("home") as home:
            await home.remember("elsewhere")
            assert [each.text async for each in home.every()] == ["elsewhere"]
        assert (await memory.get(done.id)).memories[0].tags == ("daily",)  # it is not closed with the other
    await memory.aclose()
    with pytest.raises(NacreError, match=r"is closed; (connect|open it) again"):
        await memory.search("tea")


@asynchronous
async def test_many_calls_at_once(opened: Open) -> None:
    async with opened() as memory:
        done = await asyncio.gather(*(memory.remember(f"number {number}") for number in range(50)))
        assert len({each.id for each in done}) == 50
        texts = await asyncio.gather(*(memory.get(each.id) for each in done))
        assert [each.memories[0].text for each in texts] == [f"number {number}" for number in range(50)]


class Waiting(Hashing):
    """Does not end while a query is to be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = threading.Event(), threading.Event()

    def embed_query(self, text: str) -> FloatVector:
        if text == "wait":
            self.begun.set()
            assert self.go_on.wait(ANSWER_SECONDS)
        return super().embed_query(text)


@pytest.mark.parametrize("where", ["server", "engine"])
@asynchronous
async def test_a_call_that_is_cancelled_leaves_the_memory_as_it_was(path: Path, where: str) -> None:
    waiting = Waiting()
    async with AsyncExitStack() as stack:
        if where == "server":
            served = stack.enter_context(serving(lambda: nacre.open(path, embedder=waiting)))
            opened = nacre.connect_async(served.url)
        else:
            opened = AsyncNacre(nacre.open(path, embedder=waiting))
        memory = await stack.enter_async_context(opened)
        stack.callback(waiting.go_on.set)
        await memory.remember("tea at four")
        task = asyncio.create_task(memory.search("wait"))
        assert await asyncio.to_thread(waiting.begun.wait, ANSWER_SECONDS)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await memory.search("wait")
        found = await asyncio.gather(*(memory.search("tea", limit=number) for number in range(1, 9)))
        assert [[each.text for each in one.hits] for one in found] == [["tea at four"]] * 8


@asynchronous
async def test_iterators_that_are_left_early(opened: Open) -> None:
    async with opened() as memory:
        await memory.remember_many([NewMemory(text=f"{number}", metadata={"x": "x" * 9_000}) for number in range(100)])
        for _ in range(10):  # more than a server streams at once
            async with aclosing(memory.export()) as records:
                async for _ in records:
                    break
        async with asyncio.timeout(ANSWER_SECONDS):
            assert len([each async for each in memory.every()]) == 100


@asynchronous
async def test_an_iterator_that_is_cancelled(opened: Open) -> None:
    """While it waits for the caller's own items."""
    waiting, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def items() -> Iterator[str]:
        try:
            yield from (f"text {number}" for number in range(512))
            waiting.set()
            assert go_on.wait(ANSWER_SECONDS)
            yield "never"
        finally:
            closed.set()

    async def take() -> list[int]:
        return [len(each) async for each in memory.remember_batches(items())]

    async with opened() as memory:
        task = asyncio.create_task(take())
        while not waiting.is_set():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len([each async for each in memory.every()]) in (0, 512)  # an engine takes one more before it writes
        go_on.set()
        assert await asyncio.to_thread(closed.wait, ANSWER_SECONDS)
        assert await memory.remember("usable")


@asynchronous
async def test_errors_of_the_callers_own_items_are_raised_as_they_are(opened: Open) -> None:
    def items() -> Iterator[str]:
        yield "good"
        raise ZeroDivisionError

    def broken_off() -> Iterator[int]:
        yield from (0, 1)
        raise ZeroDivisionError

    async with opened() as memory:
        with pytest.raises(ZeroDivisionError):
            await memory.remember_many(items())
        await memory.remember_many(["one", "two"])
        records = [each async for each in memory.export()]
        with pytest.raises(ZeroDivisionError):
            _ = [each async for each in memory.load(records[number] for number in broken_off())]
        assert await memory.remember("usable")


# ---------------------------------------------------------------- on a server alone


@asynchronous
async def test_cancelling_closes_the_request_at_once(server: ThreadServer) -> None:
    asked, answer = threading.Event(), threading.Event()

    def slow(_: bytes) -> None:
        asked.set()
        answer.wait(ANSWER_SECONDS)

    with faulty(slow) as between:
        async with nacre.connect_async(between.url) as memory:
            task = asyncio.create_task(memory.search("tea"))
            while not asked.is_set():
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert memory._on._connection._http._transport._pool.connections == []  # type: ignore[union-attr]
            between.answers = [passed_on(server.port)]
            assert await memory.count_tokens("tea") > 0  # over a new connection, without the answer to the first
            assert len(between.requests) == 2
        answer.set()


@asynchronous
async def test_attempts_are_those_of_the_other_client(server: ThreadServer) -> None:
    through = passed_on(server.port)
    busy = answered(503, '{"error": {"type": "StoreBusy", "message": "store: is locked"}}')
    with faulty(refused, busy, through) as between:
        async with nacre.connect_async(between.url) as memory:
            assert await memory.count_tokens("tea") > 0
            between.answers = [refused]
            with pytest.raises(ServerUnavailable, match=r"broke off its answer .*; call again"):
                await memory.count_tokens("tea")
            assert len(between.requests) == 6
            with pytest.raises(ServerUnavailable, match="broke off its answer"):
                _ = [each async for each in memory.load([])]
            assert len(between.requests) == 7


@pytest.mark.filterwarnings("ignore:unclosed", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_one_client_in_several_event_loops(server: ThreadServer, space: str) -> None:
    _in_several_event_loops(nacre.connect_async(server.url, space=space))
    gc.collect()  # here, where the warnings are expected


def _in_several_event_loops(memory: AsyncNacre) -> None:
    async def twice() -> None:
        await memory.remember("tea")
        assert len((await memory.search("tea")).hits) == 1

    async def while_another_runs() -> None:
        await memory.search("tea")
        with pytest.raises(ServerError, match="belongs to another event loop; connect in each"):
            await asyncio.to_thread(asyncio.run, twice())

    asyncio.run(twice())  # a loop that ends leaves its connections behind, of which Python warns
    asyncio.run(twice())
    asyncio.run(while_another_runs())
    asyncio.run(memory.aclose())
    with pytest.raises(ServerUnavailable, match="is closed"):
        asyncio.run(twice())

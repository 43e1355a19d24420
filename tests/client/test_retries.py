"""What is sent again when an answer does not come, how often and when, and that nothing is written twice."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import nacre
from faulty_servers import GOOD, answered, cut, faulty, lost, passed_on, refused
from mcp_clients import ANSWER_SECONDS
from nacre import ServerError, ServerUnavailable
from nacre.client.requests import Request
from nacre.client.retries import Attempts, Failure, failure_of
from nacre.client.server import Server
from nacre.errors import Conflict, StoreBusy
from servers import ServeProcess, ThreadServer, serving

pytest_plugins = "client_fixtures"
pytestmark = pytest.mark.usefixtures("hurried")

BUSY = '{"error": {"type": "StoreBusy", "message": "store: is locked"}}'
SLOWED = '{"error": {"type": "TooManyRequests", "message": "too many requests; wait 1 s"}}'
FOUND = '{"hits": [], "notes": [], "total": 0}'
LATER = GOOD + "Retry-After: 0\r\n"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def attempts(clock: Clock, *, repeatable: bool = True, streams: bool = False, timeout_s: float = 60) -> Attempts:
    server = Server("http://127.0.0.1:1", "", timeout_s, 2)
    request = Request("search", "GET", "/v1/search", repeatable=repeatable)
    return Attempts(server, request, streams=streams, timer=clock, jitter=lambda: 1.0)


@pytest.mark.parametrize(
    ("failure", "repeatable", "streams", "pauses"),
    [
        (Failure("unsent"), True, False, 2),
        (Failure("unsent"), False, False, 2),  # the server got nothing
        (Failure("unsent"), False, True, 2),
        (Failure("lost"), True, False, 2),
        (Failure("lost"), False, False, 0),
        (Failure("status", 503), True, False, 2),
        (Failure("status", 503), False, False, 0),
        (Failure("status", 502), True, True, 0),  # what was sent of the body is gone
        (Failure("status", 429, 1), True, False, 1),
        (Failure("status", 429, 1), False, False, 1),  # it was not carried out
        (Failure("status", 429, 1), False, True, 0),
        (Failure("status", 409, 1), False, False, 0),
    ],
)
def test_so_many_attempts_follow_a_failure(failure: Failure, repeatable: bool, streams: bool, pauses: int) -> None:
    tried = attempts(Clock(), repeatable=repeatable, streams=streams)
    assert [tried.pause_s(failure) is not None for _ in range(4)] == [at < pauses for at in range(4)]


def test_pauses_grow_or_are_as_long_as_the_server_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    tried = attempts(Clock())
    assert [tried.pause_s(Failure("lost")) for _ in range(3)] == [0.2, 0.4, None]
    assert attempts(Clock()).pause_s(Failure("status", 503, 7.0)) == 7.0
    assert attempts(Clock()).pause_s(Failure("status", 503, 0.0)) == 0.1
    running = attempts(Clock())  # the first attempt is still being carried out: its answer is worth waiting for
    assert [running.pause_s(Failure("status", 409, 1.0)) for _ in range(20)] == [1.0] * 20


def test_no_attempt_begins_after_the_time_of_the_call() -> None:
    clock = Clock()
    tried = attempts(clock, timeout_s=5)
    assert tried.pause_s(Failure("status", 503, 6.0)) is None
    clock.now = 4.0
    assert tried.left_s() == 1.0
    assert tried.pause_s(Failure("status", 503, 2.0)) is None
    clock.now = 9.0
    assert tried.left_s() > 0


@pytest.mark.parametrize(
    ("status", "headers", "failure"),
    [
        (200, {}, None),
        (500, {}, None),
        (404, {"retry-after": "1"}, None),
        (409, {}, None),  # a conflict
        (409, {"retry-after": "2"}, Failure("status", 409, 2)),
        (429, {}, None),
        (429, {"retry-after": "2"}, Failure("status", 429, 2)),
        (503, {}, Failure("status", 503)),
        (502, {"retry-after": "Thu, 19 Nov 2026 08:00:00 GMT"}, Failure("status", 502)),
        (504, {"retry-after": "-1"}, Failure("status", 504)),
    ],
)
def test_an_answer_is_a_failure_that_may_pass(status: int, headers: dict[str, str], failure: Failure | None) -> None:
    assert failure_of(status, headers) == failure


# ---------------------------------------------------------------- with connections that break


def test_a_search_survives_broken_connections(remote: nacre.RemoteNacre, server: ThreadServer, space: str) -> None:
    remote.remember("tea at four")
    through = passed_on(server.port)
    with faulty(refused, cut(through, 10), through) as between, nacre.connect(between.url, space=space) as memory:
        assert [each.text for each in memory.search("tea").hits] == ["tea at four"]
        assert len(between.requests) == 3


@pytest.mark.parametrize("broken", ["before", "after", "while"])
def test_a_write_whose_answer_is_lost_is_carried_out_once(
    server: ThreadServer, remote: nacre.RemoteNacre, space: str, broken: str
) -> None:
    through = passed_on(server.port)
    fault = {"before": refused, "after": lost(server.port), "while": cut(through, 5)}[broken]
    with faulty(fault, through) as between, nacre.connect(between.url, space=space) as memory:
        done = memory.remember("the only one")
        assert not done.duplicate  # the answer of the first request, which has no other before it
        assert len(between.requests) == 2
        between.answers = [fault, through]
        many = memory.remember_many(["one", "two"])
        assert [each.duplicate for each in many] == [False, False]
        between.answers = [fault, through]
        removed = memory.forget(done.id)
        assert removed.ids == (done.id,)
        assert between.requests[-1] == between.requests[-2]
    assert sorted(each.text for each in remote.every()) == ["one", "two"]
    assert [each.action for each in remote.history(done.id)] == ["remembered", "forgotten"]


def test_a_lost_change_with_a_version_is_no_conflict(server: ThreadServer, space: str) -> None:
    """Without its key, the second request would find a memory that has changed since."""
    with nacre.connect(server.url, space=space) as direct:
        made = direct.get(direct.remember("old").id).memories[0]
    with (
        faulty(lost(server.port), passed_on(server.port)) as between,
        nacre.connect(between.url, space=space) as memory,
    ):
        assert memory.update(made.id, text="new", unchanged_since=made.updated).text == "new"
        with pytest.raises(nacre.Outdated):
            memory.update(made.id, text="newer", unchanged_since=made.updated)
        assert len(between.requests) == 3


def test_a_token_whose_secret_is_lost_is_told(server: ThreadServer) -> None:
    with (
        faulty(lost(server.port), passed_on(server.port)) as between,
        nacre.connect(between.url) as memory,
        pytest.raises(ServerError, match="revoke it, and create another"),
    ):
        memory.create_token(name="lost")


def test_streams_are_not_sent_again(server: ThreadServer, remote: nacre.RemoteNacre, space: str) -> None:
    remote.remember("tea")
    records = list(remote.export())
    with (
        faulty(lost(server.port), passed_on(server.port)) as between,
        nacre.connect(between.url, space=space) as memory,
    ):
        with pytest.raises(ServerUnavailable, match=r"broke off its answer .*; call again"):
            list(memory.load(iter(records)))
        assert len(between.requests) == 1
        between.answers = [answered(429, SLOWED, LATER), passed_on(server.port)]
        with pytest.raises(ServerError, match="too many requests"):  # a second body would be empty
            list(memory.load(iter(records)))
        assert len(between.requests) == 2


def test_a_stream_that_ends_early_is_an_error(server: ThreadServer, remote: nacre.RemoteNacre, space: str) -> None:
    remote.remember_many(["tea", "coffee", "milk"])
    with faulty(cut(passed_on(server.port), 40)) as between, nacre.connect(between.url, space=space) as memory:
        with pytest.raises(ServerUnavailable, match="broke off its answer"):
            list(memory.every())
        assert len(between.requests) == 1


def test_it_waits_as_long_as_a_busy_server_says() -> None:
    with faulty(answered(503, BUSY), answered(503, BUSY, LATER), answered(200, FOUND)) as between:
        with nacre.connect(between.url, timeout_s=5) as memory:
            assert memory.search("x").hits == ()
        assert len(between.requests) == 3
    with faulty(answered(503, BUSY)) as between, nacre.connect(between.url, retries=1) as memory:
        with pytest.raises(StoreBusy, match=r"^store: is locked$"):
            memory.search("x")
        assert len(between.requests) == 2
        between.answers = [answered(503, BUSY, GOOD + "Retry-After: 3600\r\n")]
        with pytest.raises(StoreBusy):  # there is no point in waiting
            memory.search("x")
        assert len(between.requests) == 3


def test_it_slows_down_once_when_it_is_told_to() -> None:
    with faulty(answered(429, SLOWED, LATER), answered(200, FOUND)) as between, nacre.connect(between.url) as memory:
        assert memory.search("x").hits == ()
        between.answers = [answered(429, SLOWED, LATER)]
        with pytest.raises(ServerError, match="too many requests; wait 1 s"):
            memory.search("x")
        assert len(between.requests) == 4


def test_errors_of_the_caller_are_not_sent_again() -> None:
    told = '{"error": {"type": "Conflict", "message": "text: is there already"}}'
    for status in (400, 403, 404, 409, 413, 500, 507):
        with faulty(answered(status, told)) as between, nacre.connect(between.url) as memory:
            with pytest.raises(Conflict, match=r"^text: is there already$"):
                memory.remember("x")
            assert len(between.requests) == 1


def test_no_retries_are_none() -> None:
    with faulty(refused) as between, nacre.connect(between.url, retries=0) as memory:
        with pytest.raises(ServerUnavailable):
            memory.search("x")
        assert len(between.requests) == 1


def test_a_server_that_does_not_answer_in_time() -> None:
    asked_enough = threading.Event()

    def silent(_: bytes) -> None:
        asked_enough.wait(ANSWER_SECONDS)

    with faulty(silent) as between, nacre.connect(between.url, timeout_s=0.2) as memory:
        with pytest.raises(ServerUnavailable, match=r"gave no answer within 0\.2 s; connect with a longer timeout_s"):
            memory.search("x")
        asked_enough.set()


def test_a_server_that_is_away_says_what_to_do(tmp_path: Path) -> None:
    with serving(tmp_path / "memories.db") as gone:
        memory = nacre.connect(gone.url)
        memory.remember("tea")
    with memory, pytest.raises(ServerUnavailable) as raised:
        memory.search("tea")
    assert str(raised.value).startswith(f"server: {gone.url} cannot be reached (")
    assert str(raised.value).endswith("); start it with `nacre serve`, or check the URL")


@pytest.mark.slow
def test_a_client_survives_a_restart(path: Path) -> None:
    with ServeProcess(path) as first, nacre.connect(first.url) as memory:
        done = memory.remember("before")
        first.stop()
        with pytest.raises(ServerUnavailable):
            memory.search("before")
        with ServeProcess(path, "--port", str(first.port)):
            assert [each.id for each in memory.search("before").hits] == [done.id]
            memory.remember("after")
            assert memory.stats().memories == 2

"""What can be a server, a token and a space, and what is said of anything else before a request is sent."""

from __future__ import annotations

from typing import Any

import pytest

import nacre
from nacre import AccessDenied, InvalidInput
from nacre.client.server import Place, place_of, server_of
from nacre.errors import NacreError


def of(url: Any = "http://127.0.0.1:8642", token: Any = None, timeout_s: Any = 60.0, retries: Any = 2) -> Any:
    return server_of(url, token, timeout_s, retries)


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("http://127.0.0.1:8642", "http://127.0.0.1:8642"),
        ("http://127.0.0.1:8642/", "http://127.0.0.1:8642"),
        ("https://example.org/memory//", "https://example.org/memory"),
        ("http://[::1]:8642/", "http://[::1]:8642"),
        ("HTTPS://Example.org", "HTTPS://Example.org"),
        ("http://bücher.example", "http://bücher.example"),
    ],
)
def test_a_url_with_and_without_a_path(url: str, meant: str) -> None:
    assert of(url).url == meant


@pytest.mark.parametrize(
    "url",
    [
        "", "127.0.0.1:8642", "localhost", "ftp://127.0.0.1", "http://", "http://:8642", "http://a:b", "http://a:65536",
        "http://a:0", "http://a b", "http://a\\b", "http://a\n", "http://[::1", "http://a..b", f"http://{'a' * 64}",
        "http://u@a", "http://u:hush@a", "http://a?x=hush", "http://a/#hush", None, 5, b"http://a",
    ],
)  # fmt: skip
def test_what_is_no_url_is_said(url: Any) -> None:
    with pytest.raises(InvalidInput) as raised:
        nacre.connect(url)
    assert raised.value.field == "url"
    if isinstance(url, str) and "u:hush" in url:
        assert "hush" not in str(raised.value)


@pytest.mark.parametrize("url", ["http://xn--/", "http://☃.example", "http://[v1.a]"])
def test_a_name_that_no_server_can_have(url: str) -> None:
    for connect in (nacre.connect, nacre.connect_async):
        with pytest.raises(InvalidInput, match=r"url: .* is no URL of a server"):
            connect(url)


def test_the_token_is_that_of_the_call_or_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NACRE_TOKEN", raising=False)
    assert of().headers() == {}
    monkeypatch.setenv("NACRE_TOKEN", "nacre_1_of-the-environment")
    assert of().headers() == {"Authorization": "Bearer nacre_1_of-the-environment"}
    assert of(token="nacre_2_given").headers() == {"Authorization": "Bearer nacre_2_given"}
    assert of(token="").headers() == {}
    assert "nacre_2" not in repr(of(token="nacre_2_given"))
    for wrong in ("nacre_3 hush", "hush\n", "hush ключ", 5):
        with pytest.raises(InvalidInput, match=r"^token: ") as raised:
            of(token=wrong)
        assert "hush" not in str(raised.value)


@pytest.mark.parametrize("name", ["timeout_s", "retries"])
def test_numbers(name: str) -> None:
    for wrong in (-1, "5", None, True, float("nan"), float("inf"), 2**70):
        if (name, wrong) != ("timeout_s", 2**70):
            with pytest.raises(InvalidInput) as raised:
                of(**{name: wrong})
            assert raised.value.field == name
    with pytest.raises(InvalidInput, match="seconds above 0"):
        of(timeout_s=0)
    assert of(retries=0).retries == 0


@pytest.mark.parametrize("space", ["", " ", "a\x00", "x" * 201, " a", "a ", "a\tb\n", "a\nb", 5])
def test_a_space_that_cannot_be_named(space: Any) -> None:
    for call in (lambda: nacre.connect("http://a", space=space), lambda: Place().within(space, confined=True)):
        with pytest.raises(InvalidInput) as raised:
            call()
        assert raised.value.field == "space"


def test_a_place_can_only_be_narrowed() -> None:
    assert place_of(None).headers() == {}
    assert place_of("ещё").headers() == {"Nacre-Space": "ещё"}
    two = place_of("home").within("home", ("home", "ещё"))
    assert two.headers() == {"Nacre-Space": "home", "Nacre-Spaces": '["home", "\\u0435\\u0449\\u0451"]'}
    assert two.within("ещё", confined=True).spaces == ("ещё",)
    for space, confined in (("home", False), ("work", True), ("home", ("home", "work"))):
        with pytest.raises(AccessDenied):
            two.within(space, confined)
    assert place_of("home").within("work", confined=False) == Place("work")
    silent = place_of("home").within("home", confined=True, log=False)
    assert silent.headers()["Nacre-Log"] == "false"
    assert not silent.within("home", confined=True).log


def test_only_an_engine_observes() -> None:
    with nacre.connect("http://127.0.0.1:1") as memory, pytest.raises(NacreError, match="observe: is a function"):
        memory.within("home", observe=lambda *_: None)

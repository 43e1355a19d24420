"""Access tokens: who may use a server of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import nacre
from engines import NOW, make_engines
from nacre import AccessDenied, AccessToken, InvalidInput, Nacre, NotFound
from nacre.embedders.hashing import Hashing
from stores import ALL_STORES

Make: TypeAlias = Callable[..., Nacre]


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture(params=ALL_STORES)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    with make_engines(request.param, tmp_path) as made:
        yield made


def test_a_secret_stands_for_its_token(make: Make) -> None:
    memory = make(space="home")
    made = memory.create_token("laptop", role="write", spaces=["work", "home", "work"], expires=timedelta(days=90))
    expected = AccessToken(
        id="m0",
        role="write",
        spaces=("work", "home"),
        name="laptop",
        created=NOW,
        expires=NOW + timedelta(days=90),
    )
    assert made.token == expected
    assert made.secret.startswith("nacre_m0_")
    assert memory.authenticate(made.secret) == expected
    assert memory.create_token().token == AccessToken(id="m1", role="read", spaces=None, created=NOW)
    assert memory.create_token(spaces=[]).token.spaces == ("home",)


def test_secrets_are_not_alike(make: Make) -> None:
    memory = make()
    secrets = {memory.create_token().secret.split("_", 2)[2] for _ in range(50)}
    assert len(secrets) == 50
    assert {len(each) for each in secrets} == {43}  # 32 bytes in base64


def test_tokens_are_listed_newest_first(make: Make) -> None:
    clock = Clock()
    memory = make(clock=clock)
    made = []
    for name in ("first", "second", "third"):
        made.append(memory.create_token(name, expires=timedelta(hours=1)).token)
        clock.now += timedelta(minutes=50)
    assert memory.tokens() == made[::-1]  # also the one that has expired


def test_a_token_that_expired_is_not_valid(make: Make) -> None:
    clock = Clock()
    memory = make(clock=clock)
    made = memory.create_token(expires=NOW + timedelta(hours=1))
    clock.now += timedelta(minutes=59, seconds=59)
    assert memory.authenticate(made.secret) == made.token
    clock.now += timedelta(seconds=1)
    assert memory.authenticate(made.secret) is None


def test_a_revoked_token_is_not_valid(make: Make) -> None:
    memory = make()
    made, other = memory.create_token(), memory.create_token()
    memory.revoke_token(made.token.id)
    assert memory.authenticate(made.secret) is None
    assert memory.tokens() == [other.token]
    assert memory.authenticate(other.secret) == other.token
    with pytest.raises(NotFound, match=r"no token 'm0'; see `nacre token list`"):
        memory.revoke_token(made.token.id)


def test_no_other_text_is_a_secret(make: Make) -> None:
    memory = make()
    made, other = memory.create_token().secret, memory.create_token().secret
    changed = made[:-1] + ("A" if made[-1] != "A" else "B")
    swapped = other[: len("nacre_m1_")] + made[len("nacre_m0_") :]
    wrong = (
        *("", "nacre", "nacre_", "nacre__", "nacre_m0_", "m0", "half \ud800", "ü" * 60, "x" * 1_000_000, "nacre_m0_\0"),
        *(changed, swapped, made[:-1], f"{made}A", f"{made}\n", f" {made}", made.upper(), made.replace("m0", "m7")),
        *(made.replace("nacre", "Nacre"), made.replace("_", "-"), made.replace("m0", "m\ud800")),
    )
    assert [memory.authenticate(each) for each in wrong] == [None] * len(wrong)
    assert memory.authenticate(made)


def test_a_secret_of_another_store_is_none(make: Make) -> None:
    one, other = make(), make()
    secret = one.create_token().secret
    assert other.authenticate(secret) is None
    other.create_token()  # of the same id
    assert other.authenticate(secret) is None


def test_a_confined_engine_has_no_tokens(make: Make) -> None:
    memory = make()
    made = memory.create_token()
    confined = memory.within("default")
    calls: tuple[Callable[[], Any], ...] = (
        confined.create_token,
        confined.tokens,
        lambda: confined.revoke_token(made.token.id),
        lambda: confined.authenticate(made.secret),
    )
    for call in calls:
        with pytest.raises(AccessDenied, match=r"all spaces, and this memory is confined to one; open it unconfined"):
            call()
    confined.close()
    assert memory.tokens() == [made.token]


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("name", {"name": "x" * 201}),
        ("name", {"name": "half \ud800"}),
        ("name", {"name": " "}),
        ("name", {"name": None}),
        ("role", {"role": "boss"}),
        ("role", {"role": None}),
        ("spaces", {"spaces": "work"}),
        ("spaces", {"spaces": [""]}),
        ("spaces", {"spaces": [5]}),
        ("expires", {"expires": NOW}),
        ("expires", {"expires": timedelta(0)}),
        ("expires", {"expires": timedelta.max}),
        ("expires", {"expires": datetime(2027, 1, 1)}),  # noqa: DTZ001
        ("expires", {"expires": "90d"}),
    ],
)
def test_wrong_values_name_the_field_and_make_no_token(make: Make, field: str, given: dict[str, Any]) -> None:
    memory = make()
    with pytest.raises(InvalidInput) as caught:
        memory.create_token(**given)
    assert caught.value.field == field
    assert memory.tokens() == []


def test_a_name_with_a_secret_is_refused_where_secrets_are(make: Make) -> None:
    memory = make(secrets="refuse")
    with pytest.raises(InvalidInput, match="name: has a secret"):
        memory.create_token("ghp_" + "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ" + "0mLq17")


def test_no_secret_is_in_the_file(path: Path) -> None:
    with nacre.open(path, embedder=Hashing()) as memory:
        secret = memory.create_token("laptop").secret
    written = b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))
    assert b"laptop" in written
    assert secret.split("_", 2)[2].encode() not in written
    with nacre.open(path, embedder=Hashing()) as memory:
        token = memory.authenticate(secret)
        assert token is not None
        assert token.name == "laptop"


def test_tokens_are_in_backups_and_in_no_export(path: Path) -> None:
    with nacre.open(path, embedder=Hashing()) as memory:
        memory.remember("tea")
        made = memory.create_token("laptop")
        backup = memory.backup(path.with_name("backup.db")).backup
        exported = list(memory.export())
    assert "laptop" not in repr(exported)
    restored = path.with_name("restored.db")
    nacre.restore_backup(backup.path, restored)
    with nacre.open(restored, embedder=Hashing()) as memory:
        assert memory.authenticate(made.secret) == made.token


def test_a_missing_store_has_no_tokens_and_makes_none(path: Path) -> None:
    with nacre.open(path, embedder=Hashing(), create=False) as memory:
        assert memory.tokens() == []
        assert memory.authenticate("nacre_1_x") is None
        assert memory.changes().seq == 0
        with pytest.raises(nacre.StoreUnavailable, match="does not exist"):
            memory.create_token()

"""`nacre token` and `nacre changes`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import nacre
from command_line import Cli


def test_a_token_is_made_listed_and_revoked(cli: Cli, path: Path) -> None:
    made = cli("token", "create", "--space", "work", "--role", "write", "--expires", "90d", "--name", "on the train")
    assert made.code == 0
    secret = made.out.strip()
    assert re.fullmatch(r"nacre_[0-9a-z]{16}_[0-9A-Za-z_-]{43}", secret)
    token_id = secret.split("_")[1]
    assert made.err == f"note: token {token_id}: this is its secret, which is not shown again; keep it safe\n"
    with nacre.open(path, embedder="hashing") as memory:
        token = memory.authenticate(secret)
        assert token is not None
        assert (token.id, token.role, token.spaces, token.name) == (token_id, "write", ("work",), "on the train")
        assert token.expires is not None
    listed = cli("token", "list")
    assert re.fullmatch(rf"{token_id}  \S+ \S+  write: work  until \S+ \S+  on the train\n", listed.out)
    assert secret not in listed.out + cli("token", "list", "--json").out
    assert cli("token", "revoke", token_id).out == f"revoked {token_id}\n"
    assert cli("token", "list").out == "no tokens\n"
    assert "see `nacre token list`" in cli("token", "revoke", token_id).error
    with nacre.open(path, embedder="hashing") as memory:
        assert memory.authenticate(secret) is None


def test_its_spaces_are_those_named_or_the_one_worked_in(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def spaces(*options: str) -> object:
        made = cli("token", "create", "--json", *options)
        assert (made.code, made.err) == (0, "")
        return made.json["token"]["spaces"]

    assert spaces() == ["default"]
    assert spaces("--in-space", "a", "--in-space", "b") == ["a", "b"]
    assert spaces("--all-spaces") is None
    monkeypatch.setenv("NACRE_SPACE", "home")
    assert spaces() == ["home"]
    assert cli("token", "create", "--all-spaces", "--in-space", "a").error == (
        "error: all-spaces: does not go with --in-space; give one of them\n"
    )
    assert cli("token", "create", "--role", "boss").error.startswith("error: role: 'boss' is unknown")
    assert cli("token", "create", "--expires", "2020-01-01").error.startswith("error: expires: ")
    assert len(cli("token", "list", "--json").json) == 4


def test_changes_go_on_from_a_number(cli: Cli) -> None:
    cli("remember", "tea with milk")
    assert cli("changes").out == "to go on: --since 1\n"
    cli("remember", "coffee")
    cli("lens", "save", "ops")
    first = cli("changes", "--since", "1", "--limit", "1").out.splitlines()
    assert re.fullmatch(r"2  \S+ \S+  memory remembered  \S+  default", first[0])
    assert first[1] == "next page: --since 2"
    rest = cli("changes", "--since", "2", "--json").json
    assert [(each["kind"], each["name"]) for each in rest["changes"]] == [("lens", "ops")]
    assert (rest["seq"], rest["more"]) == (3, False)
    assert cli("changes", "--since", "1", "--in-space", "elsewhere").out == "to go on: --since 3\n"
    assert "this is another store" in cli("changes", "--since", "4").error

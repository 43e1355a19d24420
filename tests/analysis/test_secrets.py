"""Secrets: found by shape, checksum or name; not found in ordinary texts; taken out for good."""

from __future__ import annotations

import base64
import json
import random
import string
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nacre
from benchmarks.secret_scan import samples
from nacre.analysis.fact_extraction import extract
from nacre.analysis.secrets import find_secrets, find_value_secrets, names_secret, placeholder, replace_secrets

# The documented example of a token of GitHub, whose last six characters are its checksum. In two parts, so that no
# other scanner takes this file for a leak.
GITHUB = "ghp_" + "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ" + "0mLq17"
SAMPLES = list(samples())


def kinds(text: str) -> list[str]:
    return [each.kind for each in find_secrets(text)]


@pytest.mark.parametrize(("what", "text", "value"), SAMPLES, ids=[f"{at}-{each[0]}" for at, each in enumerate(SAMPLES)])
def test_a_secret_is_found_where_it_is(what: str, text: str, value: str) -> None:
    found = find_secrets(text)
    assert len(found) == 1, what
    secret = value.removeprefix("https://hooks.slack.com/services/")  # the rest is no secret
    assert text[found[0].start : found[0].end] == secret
    assert secret not in replace_secrets(text, found)


def test_the_tokens_of_this_product_are_known(path: Path) -> None:
    with nacre.open(path, embedder="none") as memory:
        secret = memory.create_token().secret
    assert kinds(f"export NACRE_TOKEN={secret}") == ["Nacre token"]
    assert replace_secrets(f"use {secret}.", find_secrets(f"use {secret}.")) == "use [redacted: Nacre token]."
    assert kinds("nacre_1m7s66f9ch9wyn20_too-short") == []


@pytest.mark.parametrize(
    "text",
    [
        # checksums that are wrong by one digit
        GITHUB[:-1] + "8",
        "4111 1111 1111 1112",
        "DE89 3704 0044 0532 0130 01",
        "GB82WEST12345698765433",
        "DE89 3704 0044 0532 0130 0+",
        "GB82WEST123456+8765432/GB82WESTé2345698765432",
        # numbers that only look like it
        "Order 1234567890123456 was shipped on 2026-03-01",
        "version 4.1111.1111.1111 of the schema",
        "0000 0000 0000 0000",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "commit 3f2a9c1d8e7b6a5f4c3d2e1f0a9b8c7d6e5f4a3b",
        "id 123e4567-e89b-12d3-a456-426614174000",
        "call +49 170 1234567 or 0044 20 7946 0958",
        # talk about secrets
        "The password is stored in the vault.",
        "password: required",
        "I forgot my password again",
        "The password for the router is on the sticker.",
        "Passwords are hashed with bcrypt",
        "token: 15 minutes",
        "The token limit is 4096 and the key is in 1Password",
        "the key is: measure twice",
        "secret santa is on 2026-12-20",
        "My secret is that I like pineapple on pizza",
        "pin the dependency to 1.2.3",
        "the account number is on the letter",
        "mot de passe oublié",
        # code and placeholders
        "password = os.environ['DB_PASSWORD']",
        "password = getpass.getpass()",
        "def login(username, password=None, token=None):",
        "password: str",
        'password = "<your password>"',
        "PASSWORD=${DB_PASSWORD}",
        "password: ********",
        "api_key = YOUR_API_KEY_GOES_HERE_12345",
        "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx1",
        "AKIAXXXXXXXXXXXXXXXX",
        "postgres://user:password@localhost/db",
        "-----BEGIN PRIVATE KEY-----",
        "access_token = response.json()['access_token']",
        "key = 'some/path/in/a/bucket/file_2024.csv'",
        "eyJhbGciOi is how it begins",
        "basic arithmetic2026",
    ],
)
def test_an_ordinary_text_has_none(text: str) -> None:
    assert kinds(text) == []


def test_several_secrets_in_one_text_do_not_overlap() -> None:
    text = f"token={GITHUB} and password: hunter2x, card 4111 1111 1111 1111"
    found = find_secrets(text)
    assert [each.kind for each in found] == ["GitHub token", "password", "card number"]
    assert all(first.end <= second.start for first, second in pairwise(found))
    assert replace_secrets(text, found) == (
        "token=[redacted: GitHub token] and password: [redacted: password], card [redacted: card number]"
    )


def test_a_private_key_without_its_last_line_is_taken_out_as_far_as_it_goes() -> None:
    body = "\n".join("MIIEpAIBAAKCAQEA7bq3x9ZkQe5T0mVw2yXc4uLr8sHd6fJg1aNpBiKoWtEvRjMz" for _ in range(4))
    text = f"here: -----BEGIN RSA PRIVATE KEY-----\n{body}"
    (found,) = find_secrets(text)
    assert (found.kind, text[found.end :]) == ("private key", "")
    escaped = json.dumps({"private_key": f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"})
    assert body[:20] not in replace_secrets(escaped, find_secrets(escaped))


def test_a_jwt_is_one_by_its_header() -> None:
    head = base64.urlsafe_b64encode(b'{"typ":"JWT","kid":"x"}').decode().rstrip("=")
    assert kinds(f"{head}.{'QmFzZTY0' * 3}.{'c2ln' * 6}") == []  # no algorithm
    head = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').decode().rstrip("=")
    assert kinds(f"{head}.{'QmFzZTY0' * 3}.{'c2ln' * 6}") == ["JWT"]


@pytest.mark.parametrize("name", ["password", "DB_PASSWORD", "api_key", "Ada's PIN", "db password is", "пароль"])
def test_a_name_says_that_its_value_is_secret(name: str) -> None:
    assert names_secret(name)


@pytest.mark.parametrize("name", ["password policy", "passwordless", "token count", "keyboard", "monkey", "lives in"])
def test_other_names_do_not(name: str) -> None:
    assert not names_secret(name)


def test_a_value_is_judged_by_its_name() -> None:
    assert [tuple(each) for each in find_value_secrets("smtp password", "correcthorse")] == [("password", 0, 12)]
    assert find_value_secrets("smtp password", "required") == []
    assert find_value_secrets("password policy", "hunter2x") == []


PIECES = [
    *(text for _, text, _ in SAMPLES[::7]),
    "password:", "password is", '"', "'", "=", " ", "\n", "token", GITHUB, "[redacted: ", "hunter2x", "4111",
    "İ", "ß", "🙂",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=8).map("".join))
def test_spans_are_in_order_within_the_text_and_end_with_redaction(text: str) -> None:
    found = find_secrets(text)
    ends = [0, *(each.end for each in found)]
    assert all(each.start >= end and each.start < each.end <= len(text) for each, end in zip(found, ends, strict=False))
    for _ in range(10):  # what is left may be a secret anew, but that comes to an end
        text = replace_secrets(text, find_secrets(text))
    assert find_secrets(text) == []


def test_a_long_text_without_secrets_is_scanned_in_linear_time() -> None:
    """Patterns that step back over what they matched would not end here."""
    for unit in ("password ", "password:", "key is ", "-----BEGIN PRIVATE KEY-----", "a://b:", "1111 ", "for of to "):
        assert isinstance(find_secrets(unit * 5_000), list)


@pytest.mark.parametrize(
    "text",
    [
        "password: hunter2x",
        "user: ada\npassword: hunter2x\nhost: db.internal",
        "My password is hunter2x.",
        "The wifi password is hunter2x.",
        "DB_PASSWORD=hunter2x\nDB_HOST=db.internal\n",
        "api_key: 8f14e45fceea167a5a36dedd4bea2543\nregion: eu-west-1",
        "Ada's PIN is 4711.",
        f"deploy token: {GITHUB}\nregion: eu-west-1",
        "| key | value |\n|---|---|\n| password | hunter2x |\n| host | db.internal |",
        "password: [redacted: password]\nhost: db.internal",
    ],
)
def test_a_secret_never_becomes_a_fact(text: str) -> None:
    facts = extract(text)
    said = " ".join(f"{each.subject} {each.predicate} {each.object} {each.quote}" for each in facts)
    assert not any(word in said for word in ("hunter2x", "8f14e45f", "4711", GITHUB, "redacted"))


def test_the_lines_beside_a_secret_still_become_facts() -> None:
    facts = extract("user: ada\npassword: hunter2x\nhost: db.internal")
    assert {"ada", "db.internal"} == {each.object for each in facts}


def test_placeholders_are_not_found_again() -> None:
    seeded = random.Random(1)
    value = "".join(seeded.choices(string.ascii_letters + string.digits, k=40))
    text = f"api_key = {placeholder('secret key')} # was {value}"
    assert kinds(text) == []

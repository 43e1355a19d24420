"""The MCP conformance suite, run against our server with the suite's fixtures added (conformance_server.py).

`make test` installs the suite if there is npm. Where it is missing, this test is skipped.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcp_clients import HttpProcess
from node_clients import COMMANDS, needs_node, node

pytestmark = [pytest.mark.slow, needs_node]

# Checks of the suite that do not succeed, and why.
_SUBSCRIPTIONS = (
    "none are offered, and the capabilities say so: other processes write to the same store, and a server could not "
    "tell of their memories in time"
)
_RESUMING = (
    "recommended, for streams that a client resumes: a call takes seconds at most, and what was remembered twice is "
    "stored once, so a client that lost its connection calls again"
)
EXPECTED = {
    "resources-subscribe": ("FAILURE", _SUBSCRIPTIONS),
    "resources-unsubscribe": ("FAILURE", _SUBSCRIPTIONS),
    "server-sse-priming-event": ("WARNING", _RESUMING),
    "server-sse-retry-field": ("WARNING", _RESUMING),
}
SCENARIOS = 32


def test_the_conformance_suite(path: Path, tmp_path: Path) -> None:
    with HttpProcess(path, str(path), script=Path(__file__).with_name("conformance_server.py")) as server:
        arguments = ("server", "--url", server.url, "--suite", "all", "--output-dir", "results")
        done = node(COMMANDS / "conformance", *arguments, folder=tmp_path, succeeds=False)
        assert "Traceback" not in server.log()
    results = [json.loads(each.read_text("utf-8")) for each in (tmp_path / "results").glob("*/checks.json")]
    assert len(results) == SCENARIOS, done.stderr
    checks = [check for each in results for check in each]
    others = {each["id"]: each["status"] for each in checks if each["status"] not in ("SUCCESS", "INFO")}
    assert others == {name: status for name, (status, _) in EXPECTED.items()}, done.stdout
    assert sum(each["status"] == "SUCCESS" for each in checks) >= 42

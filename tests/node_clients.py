"""Clients for Node.js, which `make test` installs if there is npm. Without them their tests are skipped."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mcp_clients import environment

FOLDER = Path(os.environ.get("NACRE_NODE_CLIENTS", Path(__file__).parents[1] / ".node"))
COMMANDS = FOLDER / "node_modules" / ".bin"
SECONDS = 120

needs_node = pytest.mark.skipif(
    not (COMMANDS / "mcp-inspector").exists(),
    reason="clients for Node.js are missing: install npm, and run `make test` or tools/install_node_clients.py",
)


def node(script: Path, *arguments: str, folder: Path, succeeds: bool = True) -> subprocess.CompletedProcess[str]:
    """A script, run by the installed Node.js in a folder that is also its home."""
    done = subprocess.run(
        [str(COMMANDS / "node"), str(script), *arguments],
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        cwd=folder,
        env=environment(folder / "memories.db", HOME=str(folder)),
        check=False,
    )
    assert not succeeds or done.returncode == 0, done.stderr + done.stdout
    return done

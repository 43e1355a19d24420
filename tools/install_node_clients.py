"""Install what tests need of Node.js: MCP clients (TypeScript SDK, inspector, conformance suite), and axe-core.

    python tools/install_node_clients.py

They are for tests/mcp_server/test_node_clients.py and tests/page, and lie in the folder .node, which git ignores, in
the versions of tools/node_clients/package-lock.json. The suite needs Node.js 22, which is installed there, too, so any
`npm` will do. To change a version, edit package.json beside the lock, and run with --lock.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

LOCKED = Path(__file__).parent / "node_clients"
TARGET = Path(__file__).parents[1] / ".node"


def main(arguments: list[str]) -> int:
    npm = shutil.which("npm")
    if npm is None:
        print("npm is missing: install Node.js first", file=sys.stderr)
        return 1
    # Both limits, because npm refuses a most that is below its usual least.
    hasty = ("--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000")
    quiet = ("--no-audit", "--no-fund", "--loglevel=error", *hasty)
    if arguments == ["--lock"]:  # without the hosts that packages came from: each machine has its own registry
        command = [npm, "install", "--package-lock-only", "--omit-lockfile-registry-resolved", *quiet]
        return subprocess.run(command, cwd=LOCKED, check=False).returncode
    TARGET.mkdir(exist_ok=True)
    for each in ("package.json", "package-lock.json"):
        shutil.copyfile(LOCKED / each, TARGET / each)
    # Not `npm ci`: it refuses a lock without optional packages for other platforms, which some registries do not have.
    return subprocess.run([npm, "install", *quiet], cwd=TARGET, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

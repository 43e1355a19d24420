"""Build the MCP bundle: one file that desktop clients install with a click.

    python tools/build_mcpb.py                       # dist/nacre-VERSION.mcpb
    python tools/build_mcpb.py --wheel dist/X.whl    # with this wheel in it, to try what is not published yet

A bundle is a zip archive with a manifest. Its server is of the type `uv`: the client installs the package and its
dependencies by itself, for any platform, so the bundle holds a few kilobytes. The same sources give the same bytes.
`mcpb validate` checks the manifest, and `mcpb info` shows the bundle (npm: @anthropic-ai/mcpb).
"""

from __future__ import annotations

import argparse
import json
import zipfile
from pathlib import Path
from typing import Any

import nacre
from nacre.mcp_server.tools import DEFAULT

ROOT = Path(__file__).parents[1]
SERVER = "src/server.py"
MOMENT = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip archive can name

_SERVER = '''\
"""Starts Nacre's MCP server. The client runs it in the environment of pyproject.toml."""

import sys

from nacre.cli import main

sys.argv[:1] = ["nacre", "mcp"]
main()
'''
_README = """\
# Nacre

Local, layered memory for agents, in one file on this machine. All chats of a client share one space, which its settings
name; other clients that use the same space and store share its memories.
"""


def manifest() -> dict[str, Any]:
    return {
        "manifest_version": "0.4",
        "name": "nacre",
        "display_name": "Nacre",
        "version": nacre.__version__,
        "description": "Local, layered memory: keyword, semantic and hybrid search in one SQLite file.",
        "author": {"name": "Nacre"},
        "license": "Apache-2.0",
        "keywords": ["memory", "recall", "search", "offline"],
        "server": {
            "type": "uv",
            "entry_point": SERVER,
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", SERVER, "--space", "${user_config.space}"],
            },
        },
        "tools": [{"name": each.name, "description": each.description.split("\n")[0]} for each in DEFAULT],
        "prompts_generated": True,
        "compatibility": {"platforms": ["darwin", "win32", "linux"], "runtimes": {"python": ">=3.11"}},
        "user_config": {
            "space": {
                "type": "string",
                "title": "Space",
                "description": "Which memories it sees and keeps. Spaces are apart from each other.",
                "default": "default",
                "required": False,
            }
        },
    }


def project(wheel: Path | None) -> str:
    """What uv installs."""
    source = "" if wheel is None else f'\n[tool.uv.sources]\nnacre-memory = {{ path = "{wheel.name}" }}\n'
    return f"""\
[project]
name = "nacre-bundle"
version = "{nacre.__version__}"
requires-python = ">=3.11"
dependencies = ["nacre-memory[mcp]=={nacre.__version__}"]
{source}"""


def build(target: Path, wheel: Path | None = None) -> None:
    files = {
        "manifest.json": json.dumps(manifest(), indent=2, ensure_ascii=False).encode() + b"\n",
        "pyproject.toml": project(wheel).encode(),
        SERVER: _SERVER.encode(),
        "README.md": _README.encode(),
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
    }
    if wheel is not None:
        files[wheel.name] = wheel.read_bytes()
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            bundle.writestr(entry, data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--wheel", type=Path, help="a wheel of Nacre to put into the bundle")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder for the bundle (default: dist)")
    options = parser.parse_args()
    target = options.out / f"nacre-{nacre.__version__}.mcpb"
    build(target, options.wheel)
    print(target)


if __name__ == "__main__":
    main()

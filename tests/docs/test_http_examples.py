"""The examples with curl in docs/api.md give the answers shown, in their order.

In an answer, … stands for anything, ID for the id of the first memory, and TIME for its version.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from servers import serving

TEXT = (Path(__file__).parents[2] / "docs" / "api.md").read_text("utf-8")
SECTION = TEXT[TEXT.index("## Over HTTP") :].split("\n## ")[0]
EXAMPLES = re.findall(r"^\$ (.*)\n((?:(?!\$ |```).*\n)*)", SECTION, re.MULTILINE)
ADDRESS = "http://127.0.0.1:8642"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not all(map(shutil.which, ("bash", "curl"))), reason="bash or curl is not installed"),
]


def test_the_examples_with_curl(path: Path) -> None:
    assert len(EXAMPLES) > 12
    known: dict[str, str] = {}
    with serving(path) as server:
        for command, expected in EXAMPLES:
            asked = _filled(command, known).replace(ADDRESS, server.url)
            done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, timeout=60, check=False)
            found = re.fullmatch(_pattern(expected.strip(), known), done.stdout.strip(), re.DOTALL)
            assert found is not None, f"{asked}\n{done.stdout}\n{done.stderr}"
            known |= found.groupdict()


def _filled(text: str, known: dict[str, str]) -> str:
    return re.sub(r"\b(ID|TIME)\b", lambda name: known[name[0]], text)


def _pattern(expected: str, known: dict[str, str]) -> str:
    """What an answer must be like. The first ID or TIME is learned."""
    pattern = re.escape(expected.replace("…", "\0")).replace("\0", ".*?").replace("\\\n", r"\s+")
    for name in ("ID", "TIME"):
        if name in known:
            pattern = re.sub(rf"\b{name}\b", re.escape(known[name]).replace("\\", r"\\"), pattern)
        else:
            pattern = re.sub(rf"\b{name}\b", rf'(?P<{name}>[^"]+)', pattern, count=1)
    return pattern

"""Results as files that say when, where and of which commit they are."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def circumstances() -> dict[str, str]:
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
        check=False,
    )
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}",
        "commit": commit.stdout.strip() or "unknown",
    }


def write(name: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Print a table, and keep it as Markdown and JSON under results/."""
    about = circumstances()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(str(row.get(column, "")) for column in columns) + " |" for row in rows]
    text = "\n".join([", ".join(about.values()), "", *lines, ""])
    print(text)
    keep(name, text, {**about, "rows": list(rows)})


def keep(name: str, text: str, figures: Mapping[str, object]) -> None:
    """A report as Markdown, and its figures as JSON, under results/."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text, "utf-8")
    (RESULTS / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()

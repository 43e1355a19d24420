"""Results: one JSON file each, and a Markdown page that is generated from it.

Every JSON file says when, where and at which commit it was measured. Most hold their tables under "tables"; those of
`benchmarks.quality` and `benchmarks.speed` hold raw figures, from which their tables are made.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.common.paths import BENCHMARKS, RESULTS

Row: TypeAlias = Mapping[str, object]  # a cell by column
Tables: TypeAlias = Mapping[str, Sequence[Row]]  # rows by title
Figures: TypeAlias = Mapping[str, Any]  # what a JSON file holds


def parser(description: str | None, results: str) -> argparse.ArgumentParser:
    """A parser with the option --name, which says under which name the results are kept."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument(
        "--name", default=results, help="name of the files under benchmarks/results/ (default: %(default)s)"
    )
    return made


def circumstances() -> dict[str, str]:
    """Date, machine and commit."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=BENCHMARKS, check=False
    )
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}",
        "commit": commit.stdout.strip() or "unknown",
    }


def write(name: str, tables: Tables, notes: Sequence[str] = ()) -> None:
    """Print tables, and keep them under results/."""
    print(keep(name, {**circumstances(), "notes": list(notes), "tables": tables}))


def keep(name: str, figures: Figures, tables_of: Callable[[Figures], Tables] | None = None) -> str:
    """Write the JSON file and its Markdown page, and return the page."""
    text = page(figures, tables_of)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", "utf-8")
    (RESULTS / f"{name}.md").write_text(text, "utf-8")
    return text


def page(figures: Figures, tables_of: Callable[[Figures], Tables] | None = None) -> str:
    """The figures as Markdown: circumstances, notes, then every table that has rows."""
    tables: Tables = figures["tables"] if tables_of is None else tables_of(figures)
    parts = [", ".join(str(figures[name]) for name in ("date", "machine", "commit")), *figures.get("notes", [])]
    parts += [f"## {title}\n\n{table(rows)}" for title, rows in tables.items() if rows]
    return "\n\n".join(parts) + "\n"


def table(rows: Sequence[Row]) -> str:
    """Rows as a Markdown table whose columns are aligned in plain text, too."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns, *([_cell(row.get(column, "")) for column in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "| " + " | ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) + " |" for line in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _cell(value: object) -> str:
    return str(value).replace("|", r"\|").replace("\n", " ")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()

"""Is an agent told the right thing: what still holds, when it was, and nothing where nothing is known?

    python -m benchmarks.scenarios [--half report] [--classes updates,time] [--failures] [--name scenarios]
    python -m benchmarks.scenarios --recipe rerank_few=8

Each world is a store of its own with a clock: its memories are written when they were created, and its questions are
asked at its `now`, with the defaults of `nacre.open`, `search(ask, limit=10)` and `context(ask, budget_tokens=300)`.
Figures are by class; benchmarks/scenarios/judge.py defines each. Choose parameters with --half choose, and read
failures of that half only.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.common.report import circumstances, keep, page
from benchmarks.scenarios.asking import ask_all
from benchmarks.scenarios.judge import FAILURES, Asked
from benchmarks.scenarios.report import HALVES, failed, figures, in_half, tables
from benchmarks.scenarios.worlds import CLASSES, FOLDER, BadWorld, load
from nacre.errors import InvalidInput
from nacre.types.recipe import recipe_of

PROGRESS = 10  # worlds between two messages
NOISE = "noise"  # most contexts that hold an answer hold more, so it is listed only where it is named


def main() -> None:
    parser = arguments()
    options = parser.parse_args()
    classes = options.classes.split(",")
    kinds = options.failures.split(",") if options.failures else []
    for option, given, known in (("--classes", classes, CLASSES), ("--failures", kinds, FAILURES)):
        unknown = [each for each in given if each not in known]
        if unknown:
            parser.error(f"{option}: {', '.join(unknown)} is unknown; allowed: {', '.join(known)}")
    try:
        worlds = load(options.worlds, classes)
    except BadWorld as error:
        parser.error(str(error))
    worlds = [world for world in worlds if in_half(options.half, world.name)]
    try:
        recipe = recipe_of(dict(pair.split("=", 1) for pair in options.recipe))
    except (ValueError, InvalidInput) as error:
        parser.error(f"--recipe: {error}")
    asked: list[Asked] = []
    for number, found in enumerate(ask_all(worlds, recipe=recipe), 1):
        asked += found
        if number % PROGRESS == 0:
            print(f"{number}/{len(worlds)} worlds", file=sys.stderr, flush=True)
    for paragraph in failed(asked, worlds, kinds):
        print(paragraph, end="\n\n", file=sys.stderr if options.json else sys.stdout)
    named = "All worlds" if options.half == "all" else f"The {options.half} half of the worlds"
    measured = (
        circumstances()
        | {"notes": [f"{named}, with {' '.join(options.recipe) or 'the defaults'}."]}
        | figures(asked, options.half)
    )
    text = keep(options.name, measured, tables) if options.name else page(measured, tables)
    print(json.dumps(measured, indent=1, ensure_ascii=False) if options.json else text)


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.scenarios", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=Path, default=FOLDER, help="the folder of world files (default: %(default)s)")
    parser.add_argument("--classes", default=",".join(CLASSES), help="comma-separated (default: all)")
    parser.add_argument("--half", choices=HALVES, default="report", help="which worlds (default: %(default)s)")
    parser.add_argument(
        "--failures",
        nargs="?",
        const=",".join(each for each in FAILURES if each != NOISE),
        metavar="KINDS",
        help=f"print each failed question; comma-separated kinds: {', '.join(FAILURES)} (default: all but {NOISE})",
    )
    parser.add_argument("--recipe", metavar="FIELD=VALUE", action="append", default=[], help="repeatable")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--name", help="write the results to benchmarks/results/NAME.json and .md")
    return parser

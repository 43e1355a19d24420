"""How often is the language of a sentence recognised, and how long does it take?

    python -m benchmarks.languages FOLDER [--texts 400]

FOLDER has a text file for each language, `de.txt`, with a sentence in each line: `language-testdata/sentences` of
https://github.com/pemistahl/lingua-py (Apache-2.0), or `word-pairs` beside it. The last texts of each file are read.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

from benchmarks.common import report
from nacre.analysis.language import language_of

LANGUAGES = (
    "en", "de", "fr", "es", "pt", "it", "nl", "sv", "da", "no", "fi", "hu", "ro", "tr", "pl", "cs", "id", "vi",
    "ca", "hr", "sk", "sl", "ru", "uk", "bg", "ar", "fa", "ur", "hi", "mr", "zh", "ja", "ko", "th", "he", "el",
    "ta", "te", "bn",
)  # fmt: skip
FILES = {"no": "nb"}  # Bokmål


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--texts", type=int, default=400, help="of each language (default: 400)")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    language_of("the tables are read when they are first needed")
    seconds = 0.0
    for language in LANGUAGES:
        lines = (options.folder / f"{FILES.get(language, language)}.txt").read_text("utf-8").splitlines()
        texts = lines[-options.texts :]
        start = time.process_time()
        found = [language_of(text) for text in texts]
        seconds += time.process_time() - start
        others = Counter(each for each in found if each not in (language, None)).most_common(2)
        rows.append(
            {
                "language": language,
                "right": round(found.count(language) / len(texts), 3),
                "unknown": round(found.count(None) / len(texts), 3),
                "wrong": round(sum(each not in (language, None) for each in found) / len(texts), 3),
                "taken for": " ".join(f"{each} {number}" for each, number in others if each),
            }
        )
    mean = {
        name: round(sum(float(str(row[name])) for row in rows) / len(rows), 3) for name in ("right", "unknown", "wrong")
    }
    rows.append({"language": "mean", **mean, "taken for": ""})
    print(report.table(rows))
    print(f"\n{1e6 * seconds / (len(LANGUAGES) * options.texts):.0f} microseconds of processor time a text")


if __name__ == "__main__":
    main()

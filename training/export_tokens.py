"""Exports trained token vectors: the side network into the sentence model's file, and the encoder of questions.

    python training/export_tokens.py --weights weights/side64 --texts src/nacre/embedders/minilm_l6_v2/model.onnx \\
        --questions src/nacre/embedders/nacre_tokens_v1/model.onnx

The sentence model gets a second output, `tokens`: one L2-normalised vector for each word piece. Its first output and
everything that leads to it stay as they are. A side network that the file already has is replaced. The same weights
always give the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
import build_minilm as minilm
import export_reranker
from export_reranker import Floats

QUESTION_PIECES = 64  # positions of the encoder of questions
HEAD = 32  # the width of an attention head of the side network
STATES = (2, 4, 6)  # the layers whose states the side network reads; see train_tokens.py
SIDE = "side."  # the names of everything that belongs to the side network begin with this


def add_side(model: onnx.ModelProto, trained: dict[str, Floats]) -> None:
    """Add the side network to the sentence model, in place of the one that it may have."""
    graph = model.graph
    for kept, of in (
        ([each for each in graph.node if not each.name.startswith(SIDE)], graph.node),
        ([each for each in graph.initializer if not each.name.startswith(SIDE)], graph.initializer),
        ([each for each in graph.output if each.name != "tokens"], graph.output),
    ):
        of_kept = list(kept)
        del of[:]
        of.extend(of_kept)
    side = SideGraph()
    states = [each.output[0] for each in graph.node if each.op_type == "SkipLayerNormalization"][1::2]
    side.add(trained, [states[number - 1] for number in STATES], states[-1])
    graph.node.extend(side.nodes)
    graph.initializer.extend(side.constants)
    dimensions = len(trained["direct.bias"])
    graph.output.append(helper.make_tensor_value_info("tokens", TensorProto.FLOAT, ["batch", "length", dimensions]))


class SideGraph(minilm.Graph):
    """The nodes of the side network. Its weights are stored as halves and computed in float32."""

    def __init__(self) -> None:
        super().__init__("fp16")

    def node(self, kind: str, *inputs: str, domain: str = "", output: str = "", **attributes: Any) -> str:
        output = output or f"{SIDE}{kind.lower()}_{len(self.nodes)}"
        made = helper.make_node(kind, inputs, [output], name=f"{SIDE}{output}", domain=domain, **attributes)
        self.nodes.append(made)
        return output

    def add(self, trained: dict[str, Floats], read: list[str], last: str) -> None:
        def linear(hidden: str, name: str) -> str:
            product = self.node("MatMul", hidden, self.matrix(f"{SIDE}{name}", trained[f"{name}.weight"].T))
            return self.node("Add", product, self.constant(f"{SIDE}{name}.bias", trained[f"{name}.bias"]))

        def vector(name: str) -> str:
            return self.constant(f"{SIDE}{name}", trained[name])

        hidden = linear(self.node("Concat", *read, axis=-1), "mixed")
        epsilon = minilm.EPSILON
        hidden = self.node(
            "LayerNormalization", hidden, vector("norm.weight"), vector("norm.bias"), axis=-1, epsilon=epsilon
        )
        for number in range(sum(name.endswith(".attention.bias") for name in trained)):
            layer = f"layers.{number}."
            attended = self.node(
                "Attention",
                hidden,
                self.matrix(f"{SIDE}{layer}attention", trained[f"{layer}attention.weight"].T),
                vector(f"{layer}attention.bias"),
                "attention_mask",
                domain="com.microsoft",
                num_heads=len(trained["norm.bias"]) // HEAD,
            )
            for update, norm in (
                (linear(attended, f"{layer}attended"), "attended_norm"),
                (None, "narrowed_norm"),
            ):
                if update is None:
                    wide = self.node(
                        "MatMul", hidden, self.matrix(f"{SIDE}{layer}widened", trained[f"{layer}widened.weight"].T)
                    )
                    wide = self.node("BiasGelu", wide, vector(f"{layer}widened.bias"), domain="com.microsoft")
                    update = linear(wide, f"{layer}narrowed")
                hidden = self.node(
                    "SkipLayerNormalization",
                    update,
                    hidden,
                    vector(f"{layer}{norm}.weight"),
                    vector(f"{layer}{norm}.bias"),
                    domain="com.microsoft",
                    epsilon=epsilon,
                )
        vectors = self.node("Add", linear(hidden, "projected"), linear(last, "direct"))
        self.node("LpNormalization", vectors, axis=2, p=2, output="tokens")


def question_encoder(trained: dict[str, Floats]) -> onnx.ModelProto:
    """The encoder of questions: a vector for each token, and weights that sum to 1."""
    graph = export_reranker.Graph(export_reranker.ROWS)
    encoder = {name.removeprefix("encoder."): array for name, array in trained.items() if name.startswith("encoder.")}
    weights = export_reranker.as_official(encoder)
    weights["embeddings.position_embeddings.weight"] = encoder["positions.weight"][:QUESTION_PIECES]
    hidden = minilm.add_embeddings(graph, weights)
    for number in range(export_reranker.layers_in(encoder)):
        hidden = export_reranker.add_layer(graph, weights, number, hidden, hidden)

    def linear(name: str) -> str:
        product = graph.node("MatMul", hidden, graph.constant(f"{name}.matrix", trained[f"{name}.weight"].T))
        return graph.node("Add", product, graph.constant(f"{name}.bias", trained[f"{name}.bias"]))

    graph.node("LpNormalization", linear("projected"), axis=2, p=2, output="vectors")
    raw = graph.node("Softplus", graph.node("Squeeze", linear("weight"), graph.numbers("last", -1)))
    graph.node("Div", raw, graph.node("ReduceSum", raw, graph.numbers("tokens", 1), keepdims=1), output="weights")
    dimensions = len(trained["projected.bias"])
    proto = helper.make_graph(
        graph.nodes,
        "nacre-tokens",
        [
            helper.make_tensor_value_info("input_ids", TensorProto.INT32, ["batch", "length"]),
            helper.make_tensor_value_info("attention_mask", TensorProto.INT32, ["batch", "length"]),
        ],
        [
            helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["batch", "length", dimensions]),
            helper.make_tensor_value_info("weights", TensorProto.FLOAT, ["batch", "length"]),
        ],
        graph.constants,
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(proto, opset_imports=opsets, ir_version=10, producer_name="nacre")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, required=True, help="common prefix of the files with trained weights")
    parser.add_argument("--texts", type=Path, required=True, help="the sentence model's file, which is changed")
    parser.add_argument("--questions", type=Path, required=True, help="the encoder of questions to write")
    options = parser.parse_args()
    with np.load(options.weights.with_name(f"{options.weights.name}.side.npz")) as arrays:
        side = {name: arrays[name].astype(np.float32) for name in arrays.files}
    model = onnx.load(str(options.texts))
    add_side(model, side)
    questions = question_encoder(export_reranker.read(options.weights))
    for path, made in ((options.texts, model), (options.questions, questions)):
        content = made.SerializeToString(deterministic=True)
        path.write_bytes(content)
        print(f"{hashlib.sha256(content).hexdigest()}  {len(content):>9}  {path}")


if __name__ == "__main__":
    main()

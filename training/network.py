"""The cross-encoder as a PyTorch module, initialised from the sentence model that ships with Nacre.

The input is a question together with a text. There are two outputs: a score, by which texts are ranked, and the
log-odds that the text answers the question. The network is some or all layers of all-MiniLM-L6-v2, with a linear layer
on the first token for each output.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn
from torch.nn import functional

HIDDEN, HEADS, WIDE, POSITIONS = 384, 12, 1536, 256
MARKS = 4
EPSILON = 1e-12


def arrays(path: Path) -> dict[str, Any]:
    """What an ONNX file has stored, by name."""
    return {each.name: numpy_helper.to_array(each) for each in onnx.load(str(path)).graph.initializer}


def decay_groups(parameters: Iterable[nn.Parameter]) -> list[dict[str, Any]]:
    """Parameter groups for an optimizer: matrices decay, biases and norms do not."""
    trained = [each for each in parameters if each.requires_grad]
    return [
        {"params": [each for each in trained if each.ndim > 1], "weight_decay": 0.01},
        {"params": [each for each in trained if each.ndim <= 1], "weight_decay": 0.0},
    ]


def shipped_weights(path: Path) -> dict[str, torch.Tensor]:
    """The weights of the shipped model as float32: int8 blocks times their scales."""
    stored = arrays(path)
    weights = {}
    for name, array in stored.items():
        if name.endswith(".scales") or array.dtype == np.int64:
            continue
        if array.dtype == np.int8:
            scales = stored[f"{name}.scales"]
            if name == "words":
                array = (array.astype(np.float32) * scales).reshape(len(array), HIDDEN)
            else:
                array = array.astype(np.float32) * np.repeat(scales, array.shape[0] // scales.shape[0], axis=0)
        weights[name] = torch.from_numpy(np.array(array, np.float32))
    return weights


class Layer(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.attended = nn.Linear(HIDDEN, HIDDEN)
        self.attended_norm = nn.LayerNorm(HIDDEN, EPSILON)
        self.widened = nn.Linear(HIDDEN, WIDE)
        self.narrowed = nn.Linear(WIDE, HIDDEN)
        self.narrowed_norm = nn.LayerNorm(HIDDEN, EPSILON)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor, dropout: float) -> torch.Tensor:
        batch, length, _ = hidden.shape
        query, key, value = self.attention(hidden).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value, mask)
        attended = self.attended(attended.transpose(1, 2).reshape(batch, length, HIDDEN))
        hidden = self.attended_norm(hidden + functional.dropout(attended, dropout, self.training))
        wide = functional.gelu(self.widened(hidden))
        return self.narrowed_norm(hidden + functional.dropout(self.narrowed(wide), dropout, self.training))


class CrossEncoder(nn.Module):  # type: ignore[misc]
    def __init__(self, words: int, layers: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, HIDDEN)
        self.words.weight.requires_grad_(False)  # words that training never saw keep their relation to the others
        self.marks = nn.Parameter(torch.zeros(MARKS, HIDDEN))  # added to the first, unused words of the table
        self.positions = nn.Embedding(POSITIONS, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN, EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.score = nn.Linear(HIDDEN, 1)
        self.answers = nn.Linear(HIDDEN, 1)
        self.dropout = 0.1

    def hidden(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        places = torch.arange(ids.shape[1], device=ids.device)
        marks = functional.embedding(ids.clamp(max=MARKS), functional.pad(self.marks, (0, 0, 0, 1)))
        hidden = self.norm(self.words(ids) + marks + self.positions(places))
        hidden = functional.dropout(hidden, self.dropout, self.training)
        seen = mask[:, None, None, :].bool()
        for layer in self.layers:
            hidden = layer(hidden, seen, self.dropout)
        return hidden

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.both(ids, mask)[0]

    def both(self, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The score, and the log-odds of an answer."""
        first = self.hidden(ids, mask)[:, 0]
        return self.score(first).squeeze(-1), self.answers(first).squeeze(-1)

    def meaning(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The sentence vector of a text, by the untrained network with all six layers."""
        weights = mask[:, :, None].to(torch.float32)
        return functional.normalize((self.hidden(ids, mask).float() * weights).sum(1), dim=-1)


def initialised(weights: dict[str, torch.Tensor], chosen: list[int]) -> CrossEncoder:
    """The network with the chosen layers of the shipped model."""
    network = CrossEncoder(len(weights["words"]), len(chosen))
    state: dict[str, torch.Tensor] = {
        "words.weight": weights["words"],
        "marks": torch.zeros(MARKS, HIDDEN),
        "positions.weight": weights["positions"],
        "norm.weight": weights["embeddings.gamma"],
        "norm.bias": weights["embeddings.beta"],
        "score.weight": network.score.weight.data * 0.1,
        "score.bias": torch.zeros(1),
        "answers.weight": torch.zeros(1, HIDDEN),
        "answers.bias": torch.zeros(1),
    }
    for place, number in enumerate(chosen):
        for name in ("attention", "attended", "widened", "narrowed"):
            state[f"layers.{place}.{name}.weight"] = weights[f"{number}.{name}"].T.contiguous()
            state[f"layers.{place}.{name}.bias"] = weights[f"{number}.{name}.bias"]
        for name in ("attended", "narrowed"):
            state[f"layers.{place}.{name}_norm.weight"] = weights[f"{number}.{name}.gamma"]
            state[f"layers.{place}.{name}_norm.bias"] = weights[f"{number}.{name}.beta"]
    network.load_state_dict(state)
    return network


def bert_weights(path: Path) -> dict[str, torch.Tensor]:
    """The weights of a BERT of the same width, exported to ONNX with Hugging Face's names, as `initialised` takes them.

    Matrices have no names of their own there; the names of the nodes that multiply by them say which is which.
    """
    graph = onnx.load(str(path)).graph
    stored = {each.name: torch.from_numpy(numpy_helper.to_array(each).astype(np.float32)) for each in graph.initializer}
    factors = {
        each.name.strip("/").replace("/", ".").removesuffix(".MatMul"): stored[each.input[1]]
        for each in graph.node
        if each.op_type == "MatMul" and each.input[1] in stored
    }
    weights = {
        "words": stored["embeddings.word_embeddings.weight"],
        "positions": (
            stored["embeddings.position_embeddings.weight"] + stored["embeddings.token_type_embeddings.weight"][0]
        )[:POSITIONS],
        "embeddings.gamma": stored["embeddings.LayerNorm.weight"],
        "embeddings.beta": stored["embeddings.LayerNorm.bias"],
    }
    layers = 1 + max(int(name.split(".")[2]) for name in factors if name.startswith("encoder.layer."))
    for number in range(layers):
        layer = f"encoder.layer.{number}."
        asked = [f"{layer}attention.self.{part}" for part in ("query", "key", "value")]
        weights[f"{number}.attention"] = torch.cat([factors[name] for name in asked], 1)
        weights[f"{number}.attention.bias"] = torch.cat([stored[f"{name}.bias"] for name in asked])
        for name, place in (
            ("attended", "attention.output"),
            ("widened", "intermediate"),
            ("narrowed", "output"),
        ):
            weights[f"{number}.{name}"] = factors[f"{layer}{place}.dense"]
            weights[f"{number}.{name}.bias"] = stored[f"{layer}{place}.dense.bias"]
            if name != "widened":
                weights[f"{number}.{name}.gamma"] = stored[f"{layer}{place}.LayerNorm.weight"]
                weights[f"{number}.{name}.beta"] = stored[f"{layer}{place}.LayerNorm.bias"]
    return weights


def save(model: CrossEncoder, path: Path) -> None:
    """Everything in half precision, in one file."""
    torch.save({name: value.half() for name, value in model.state_dict().items()}, path)


def read(path: Path) -> CrossEncoder:
    """What `save` wrote."""
    state = torch.load(path, weights_only=True)
    layers = 1 + max(int(name.split(".")[1]) for name in state if name.startswith("layers."))
    network = CrossEncoder(len(state["words.weight"]), layers)
    network.load_state_dict({name: value.float() for name, value in state.items()})
    return network


def ranking_model(path: Path, weights: dict[str, torch.Tensor]) -> CrossEncoder:
    """The network that was exported to this file. `weights` are the sentence model's."""
    stored = arrays(path)
    network = exported(stored, weights)
    for name, output in (("score", network.score), ("answers", network.answers)):
        output.weight.data = torch.from_numpy(stored[f"{name}.weight"].astype(np.float32)).T.contiguous()
        output.bias.data = torch.from_numpy(stored[f"{name}.bias"].astype(np.float32))
    return network


def exported(stored: dict[str, Any], weights: dict[str, torch.Tensor]) -> CrossEncoder:
    """The layers that were exported to a file with these arrays; the outputs are untrained.

    `weights` are the sentence model's. The words are the same but for the first, which marks were added to.
    """

    def matrix(name: str) -> torch.Tensor:
        """As a linear layer has it: outputs by inputs."""
        return torch.from_numpy((stored[name].astype(np.float32) * stored[f"{name}.scales"]).T.copy())

    def vector(name: str) -> torch.Tensor:
        return torch.from_numpy(stored[name].astype(np.float32))

    marked = torch.from_numpy((stored["words"][:MARKS] * stored["words.scales"][:MARKS]).reshape(MARKS, HIDDEN))
    positions = weights["positions"].clone()
    positions[: len(stored["positions"])] = vector("positions")
    layers = 1 + max(int(name.split(".")[0]) for name in stored if name[0].isdigit())
    network = CrossEncoder(len(weights["words"]), layers)
    state: dict[str, torch.Tensor] = {
        "words.weight": weights["words"],
        "marks": marked - weights["words"][:MARKS],
        "positions.weight": positions,
        "norm.weight": vector("embeddings.gamma"),
        "norm.bias": vector("embeddings.beta"),
    }
    for number in range(layers):
        to, source = f"layers.{number}.", f"{number}."
        state[f"{to}attention.weight"] = torch.cat([matrix(source + part) for part in ("query", "key", "value")])
        for name in ("attended", "widened", "narrowed"):
            state[f"{to}{name}.weight"] = matrix(source + name)
        for name in ("attention", "attended", "widened", "narrowed"):
            state[f"{to}{name}.bias"] = vector(f"{source}{name}.bias")
        for name in ("attended", "narrowed"):
            state[f"{to}{name}_norm.weight"] = vector(f"{source}{name}.gamma")
            state[f"{to}{name}_norm.bias"] = vector(f"{source}{name}.beta")
    network.load_state_dict(network.state_dict() | state)
    return network

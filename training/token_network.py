"""The networks of late interaction in PyTorch: token vectors of texts and of questions, and MaxSim.

A text's tokens come from the sentence model as it ships, in the pass that makes its sentence vector: a small side
network reads the states of some of its layers. A question has an encoder of its own, which begins as the sentence
model.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import network
from network import EPSILON, HIDDEN

LEVELS = 16  # of a stored dimension: 4 bits
NEIGHBOUR = 0.9  # what a match in a neighbouring turn counts
MASK = 103  # [MASK]


class Shape(NamedTuple):
    """The side network: which states it reads (0: the embeddings), its width and layers (0: linear), its output; and
    how many mask tokens follow a question."""

    states: tuple[int, ...]
    width: int
    layers: int
    dimensions: int
    masks: int = 0


class SideLayer(nn.Module):  # type: ignore[misc]
    """A transformer layer of the side network."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = nn.Linear(width, 3 * width)
        self.attended = nn.Linear(width, width)
        self.attended_norm = nn.LayerNorm(width, EPSILON)
        self.widened = nn.Linear(width, 2 * width)
        self.narrowed = nn.Linear(2 * width, width)
        self.narrowed_norm = nn.LayerNorm(width, EPSILON)
        self.heads = width // 32

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, length, width = hidden.shape
        query, key, value = self.attention(hidden).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value, mask)
        hidden = self.attended_norm(hidden + self.attended(attended.transpose(1, 2).reshape(batch, length, width)))
        return self.narrowed_norm(hidden + self.narrowed(functional.gelu(self.widened(hidden))))


class Side(nn.Module):  # type: ignore[misc]
    """From the states of the sentence model to token vectors."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.direct = nn.Linear(HIDDEN, shape.dimensions)  # of the last state
        if shape.width:
            self.mixed = nn.Linear(HIDDEN * len(shape.states), shape.width)
            self.norm = nn.LayerNorm(shape.width, EPSILON)
            self.layers = nn.ModuleList(SideLayer(shape.width) for _ in range(shape.layers))
            self.projected = nn.Linear(shape.width, shape.dimensions)

    def forward(self, states: Sequence[torch.Tensor], mask: torch.Tensor) -> torch.Tensor:
        vectors = self.direct(states[-1])
        if self.shape.width:
            hidden = self.norm(self.mixed(torch.cat([states[at] for at in self.shape.states], -1)))
            for layer in self.layers:
                hidden = layer(hidden, mask[:, None, None, :].bool())
            vectors = vectors + self.projected(hidden)
        return functional.normalize(vectors.float(), dim=-1)


class QuestionEncoder(nn.Module):  # type: ignore[misc]
    """Token vectors of a question, and the weight of each. The weights of a question sum to 1.

    Some mask tokens follow a question. Their vectors stand for what the question means and does not say.
    """

    def __init__(self, weights: dict[str, torch.Tensor], dimensions: int, masks: int) -> None:
        super().__init__()
        self.masks = masks
        self.encoder = network.initialised(weights, list(range(6)))
        self.projected = nn.Linear(HIDDEN, dimensions)
        self.weight = nn.Linear(HIDDEN, 1)
        nn.init.zeros_(self.weight.weight)
        self.scale = nn.Parameter(torch.tensor(3.0))  # of the scores in training, as its logarithm
        self.shift = nn.Parameter(torch.tensor(-0.6))  # of the log-odds of an answer in training

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ids, mask = self.followed(ids, mask)
        hidden = self.encoder.hidden(ids, mask)
        vectors = functional.normalize(self.projected(hidden).float(), dim=-1)
        weights = functional.softplus(self.weight(hidden).float().squeeze(-1)) * mask
        return vectors, weights / weights.sum(1, keepdim=True)

    def followed(self, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The questions with mask tokens behind them."""
        if not self.masks:
            return ids, mask
        behind = mask.sum(1, keepdim=True) + torch.arange(self.masks, device=ids.device)
        ids, mask = functional.pad(ids, (0, self.masks)), functional.pad(mask, (0, self.masks))
        return ids.scatter(1, behind, MASK), mask.scatter(1, behind, 1)


def begin_as(side: Side, questions: QuestionEncoder, texts_file: Path, questions_file: Path) -> None:
    """Begin training where the shipped networks ended: the side network of the sentence model's file, and the encoder
    of questions."""

    def vector(array: Any) -> torch.Tensor:
        return torch.from_numpy(array.astype(np.float32))

    stored = network.arrays(texts_file)
    state = {}
    for name, known in side.state_dict().items():
        array = stored[f"side.{name.removesuffix('.weight')}" if known.ndim > 1 else f"side.{name}"]
        state[name] = vector(array).T.contiguous() if known.ndim > 1 else vector(array)
    side.load_state_dict(state)
    stored = network.arrays(questions_file)
    words = questions.encoder.words.weight.data
    trained = network.exported(
        stored, {"words": words.cpu(), "positions": questions.encoder.positions.weight.data.cpu()}
    )
    questions.encoder.load_state_dict(trained.state_dict())
    for name, linear in (("projected", questions.projected), ("weight", questions.weight)):
        linear.weight.data = vector(stored[f"{name}.matrix"]).T.contiguous().to(words.device)
        linear.bias.data = vector(stored[f"{name}.bias"]).to(words.device)


def states(trunk: network.CrossEncoder, ids: torch.Tensor, mask: torch.Tensor) -> list[torch.Tensor]:
    """The states after the embeddings and after each layer."""
    places = torch.arange(ids.shape[1], device=ids.device)
    hidden = trunk.norm(trunk.words(ids) + trunk.positions(places))
    found, seen = [hidden], mask[:, None, None, :].bool()
    for layer in trunk.layers:
        hidden = layer(hidden, seen, trunk.dropout)
        found.append(hidden)
    return found


def stored(vectors: torch.Tensor) -> torch.Tensor:
    """The vectors as they are stored: 4 bits a dimension. Gradients pass as if they were not rounded."""
    bound = 3 / vectors.shape[-1] ** 0.5
    step = 2 * bound / (LEVELS - 1)
    rounded = torch.round((vectors.clamp(-bound, bound) + bound) / step) * step - bound
    return vectors + (rounded - vectors).detach()


def best_matches(question: torch.Tensor, texts: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """For each token of a question, its best match in each of the question's texts; 0 for a text without tokens.

    question: batch × tokens × dimensions; texts: batch × texts × tokens × dimensions; kept: batch × texts × tokens.
    """
    products = torch.einsum("bqd,bntd->bnqt", question, texts)
    return products.masked_fill(~kept[:, :, None, :], -1.0).amax(-1).clamp(min=0.0)


def with_neighbours(own: torch.Tensor, beside: torch.Tensor) -> torch.Tensor:
    """The best match may be in a neighbouring turn. `own` and `beside`: … × question tokens."""
    return torch.maximum(own, NEIGHBOUR * beside)

"""Trains late interaction on a GPU: the side network of texts, and the encoder of questions.

    python training/train_tokens.py --squad squad-train-v1.1.json.gz --qmsum qmsum --friendsqa friendsqa \\
        --code code_pairs.jsonl.gz --teacher src/nacre/rerankers/nacre_rerank_v3/model.onnx --out weights

Several variants are trained side by side on the same lists: the frozen sentence model and the teacher run once for all.
Each is checked on held-out articles. The labelled sets of the benchmarks are never used.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

import network
import token_data
import token_network
from token_data import Batch
from token_network import QuestionEncoder, Shape, Side
from train_reranker import MANY, MODEL

OTHERS = 4  # texts of each list that are negatives for the other lists of the batch
TEMPERATURE = 1.5
LABELS, TAUGHT, AMONG_OTHERS, ABSOLUTE = 0.5, 1.0, 0.3, 0.1  # weights of the losses
VARIANTS = {
    "last64": Shape((6,), 0, 0, 64),
    "side64": Shape((2, 4, 6), 128, 1, 64),
    "side48": Shape((2, 4, 6), 128, 1, 48),
    "side32": Shape((2, 4, 6), 128, 1, 32),
    "deep64": Shape((1, 2, 3, 4, 5, 6), 192, 2, 64),
    "masked64": Shape((2, 4, 6), 128, 1, 64, masks=8),
    "tuned64": Shape((6,), 0, 0, 64),  # with an encoder of its own for texts
}


@dataclass
class Variant:
    name: str
    side: Side
    questions: QuestionEncoder
    texts: network.CrossEncoder | None  # None: the frozen sentence model
    optimizer: torch.optim.Optimizer
    rates: list[float]
    losses: list[torch.Tensor]

    def parameters(self) -> list[nn.Parameter]:
        return [each for group in self.optimizer.param_groups for each in group["params"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    token_data.add_arguments(parser)
    parser.add_argument("--questions", type=int, default=64, help="per step")
    parser.add_argument("--teacher", type=Path, required=True, help="the exported reranker")
    parser.add_argument("--large", type=Path, help="a second teacher, by train_teacher.py")
    parser.add_argument("--begin", type=Path, help="a trained encoder of questions to go on with")
    parser.add_argument("--out", type=Path, required=True, help="folder for the weights")
    parser.add_argument("--variants", default="side64", help=f"comma-separated: {', '.join(VARIANTS)}")
    parser.add_argument("--steps", type=int, default=6_000)
    parser.add_argument("--rate", type=float, default=5e-5, help="of the encoders; side networks learn 10 times faster")
    options = parser.parse_args()
    torch.manual_seed(1)
    pieces, weights, trunk, sources = token_data.read(options, MODEL)
    teachers = [network.ranking_model(options.teacher, weights).to(options.device).eval()]
    if options.large is not None:
        teachers.append(network.read(options.large).to(options.device).eval())
    dropped = torch.from_numpy(token_data.dropped_pieces(pieces)).to(options.device)
    variants = [_variant(name, weights, options) for name in options.variants.split(",")]
    options.out.mkdir(parents=True, exist_ok=True)
    _train(variants, trunk, teachers, dropped, sources, options)
    for each in variants:
        save(each, options.out)


def _variant(name: str, weights: dict[str, torch.Tensor], options: argparse.Namespace) -> Variant:
    shape = VARIANTS[name]
    side = Side(shape).to(options.device)
    questions = QuestionEncoder(weights, shape.dimensions, shape.masks).to(options.device)
    if options.begin is not None:
        token_network.begin_as(side, questions, MODEL / "model.onnx", options.begin)
    texts = network.initialised(weights, list(range(6))).to(options.device) if name.startswith("tuned") else None
    encoders = [questions.encoder, *([texts] if texts is not None else [])]
    slow = [each for model in encoders for each in model.parameters() if each.requires_grad]
    known = {id(each) for each in slow}
    quick = [each for model in (side, questions) for each in model.parameters() if id(each) not in known]
    quick = [each for each in quick if each.requires_grad]
    groups = [
        {"params": [each for each in slow if each.ndim > 1], "lr": options.rate, "weight_decay": 0.01},
        {"params": [each for each in slow if each.ndim <= 1], "lr": options.rate, "weight_decay": 0.0},
        {"params": quick, "lr": 10 * options.rate, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, fused=options.device == "cuda")
    return Variant(name, side, questions, texts, optimizer, [group["lr"] for group in groups], [])


def _train(
    variants: Sequence[Variant],
    trunk: network.CrossEncoder,
    teachers: Sequence[network.CrossEncoder],
    dropped: torch.Tensor,
    sources: token_data.Sources,
    options: argparse.Namespace,
) -> None:
    """Train with a learning rate that rises and then falls to 2 %."""
    trunk.dropout = 0.0
    with token_data.batches(sources, MODEL, MANY, options) as (made, checks):
        start = time.time()
        for step, share in enumerate(token_data.shares(options)):
            learned(variants, trunk, teachers, dropped, next(made), share, options.device)
            if step % 250 == 249:
                means = {each.name: round(torch.stack(each.losses[-250:]).mean().item(), 4) for each in variants}
                print(f"step {step + 1}, {time.time() - start:.0f} s, {json.dumps(means)}", flush=True)
        found = [_first(variants, trunk, dropped, each, options.device) for each in checks()]
        if found:
            means = np.mean(found, axis=0)
            print(json.dumps({each.name: round(float(mean), 4) for each, mean in zip(variants, means, strict=True)}))


class Encoded:
    """The texts of a batch by the frozen sentence model, and which tokens are kept."""

    def __init__(self, trunk: network.CrossEncoder, rows: npt.NDArray[np.uint16], dropped: torch.Tensor, device: str):
        self.ids, self.mask = token_data.on_device(rows, device)
        self.kept = ~dropped[self.ids] & (self.ids > 0)
        with torch.no_grad(), torch.autocast(device, torch.bfloat16):
            self.states = token_network.states(trunk, self.ids, self.mask)

    def tokens(self, variant: Variant) -> torch.Tensor:
        states = self.states
        if variant.texts is not None:
            states = token_network.states(variant.texts, self.ids, self.mask)
        return token_network.stored(variant.side(states, self.mask))


def scores_of(
    variant: Variant, questions: tuple[torch.Tensor, torch.Tensor], texts: Encoded, beside: Encoded
) -> tuple[torch.Tensor, torch.Tensor]:
    """The scores of each question's own texts, and of the first texts of all other questions."""
    asked, weights = variant.questions(*questions)
    many = len(asked)
    own = texts.tokens(variant).view(many, MANY + 1, texts.ids.shape[1], -1)
    kept = texts.kept.view(many, MANY + 1, -1)
    matches = token_network.best_matches(asked, own, kept)
    near = beside.tokens(variant).view(many, (MANY + 1) * 2, beside.ids.shape[1], -1)
    near_matches = token_network.best_matches(asked, near, beside.kept.view(many, (MANY + 1) * 2, -1))
    near_matches = near_matches.view(many, MANY + 1, 2, -1).amax(2)
    own_scores = (token_network.with_neighbours(matches, near_matches) * weights[:, None]).sum(-1)
    first, first_kept = own[:, :OTHERS].flatten(0, 1), kept[:, :OTHERS].flatten(0, 1)
    products = torch.einsum("bqd,ntd->bnqt", asked, first).masked_fill(~first_kept[None, :, None, :], -1.0)
    other_scores = (products.amax(-1).clamp(min=0.0) * weights[:, None]).sum(-1)
    return own_scores, other_scores


def learned(
    variants: Sequence[Variant],
    trunk: network.CrossEncoder,
    teachers: Sequence[network.CrossEncoder],
    dropped: torch.Tensor,
    batch: Batch,
    share: float,
    device: str,
) -> None:
    """One step of all variants."""
    questions = token_data.on_device(batch.questions, device)
    texts, beside = Encoded(trunk, batch.texts, dropped, device), Encoded(trunk, batch.beside, dropped, device)
    with torch.no_grad():
        opinions = [token_data.scored(each, batch.pairs, device).view(-1, MANY + 1) for each in teachers]
    taught = torch.from_numpy(batch.taught).to(device)
    # The last teacher knows every form, the reranker not all.
    wanted = torch.where(taught[:, None] > 0, sum(opinions) / len(opinions), opinions[-1])
    if len(teachers) > 1:
        taught = torch.ones_like(taught)
    groups = torch.from_numpy(batch.groups).to(device)
    same = groups[:, None] == groups.repeat_interleave(OTHERS)[None, :]
    for variant in variants:
        for group, rate in zip(variant.optimizer.param_groups, variant.rates, strict=True):
            group["lr"] = token_data.rate_at(share, rate)
        for model in (variant.side, variant.questions, variant.texts):
            if model is not None:
                model.train()
        with torch.autocast(device, torch.bfloat16):
            own, others = scores_of(variant, questions, texts, beside)
        scale = variant.questions.scale.exp()
        right = torch.zeros(len(own), dtype=torch.long, device=device)
        labels = functional.cross_entropy(scale * own, right, label_smoothing=0.05)
        distance = functional.kl_div(
            functional.log_softmax(scale * own / TEMPERATURE, 1),
            functional.log_softmax(wanted / TEMPERATURE, 1),
            log_target=True,
            reduction="none",
        ).sum(1)
        among = torch.cat([own[:, :1], others.masked_fill(same, -10.0)], 1)
        loss = LABELS * labels + TAUGHT * (distance * taught).mean()
        loss = loss + AMONG_OTHERS * functional.cross_entropy(scale * among, right)
        odds = scale * (own + variant.questions.shift)
        wants = functional.one_hot(right, MANY + 1).float()
        loss = loss + ABSOLUTE * functional.binary_cross_entropy_with_logits(
            odds, wants, pos_weight=torch.tensor(float(MANY), device=device)
        )
        variant.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(variant.parameters(), 1.0)
        variant.optimizer.step()
        variant.losses.append(loss.detach())


def _first(
    variants: Sequence[Variant], trunk: network.CrossEncoder, dropped: torch.Tensor, batch: Batch, device: str
) -> list[float]:
    """How often the answer is ranked first among its list."""
    questions = token_data.on_device(batch.questions, device)
    texts, beside = Encoded(trunk, batch.texts, dropped, device), Encoded(trunk, batch.beside, dropped, device)
    found = []
    for variant in variants:
        for model in (variant.side, variant.questions, variant.texts):
            if model is not None:
                model.eval()
        with torch.no_grad(), torch.autocast(device, torch.bfloat16):
            own, _ = scores_of(variant, questions, texts, beside)
        found.append(float((own.argmax(1) == 0).float().mean()))
    return found


def save(variant: Variant, folder: Path) -> None:
    """Half-precision weights without word tables, which are the sentence model's."""

    def kept(model: nn.Module) -> dict[str, Any]:
        state = {name: value.detach().half().cpu().numpy() for name, value in model.state_dict().items()}
        return {name: value for name, value in state.items() if not name.endswith("words.weight")}

    # Two files: what a machine sends back may have a limit for one.
    questions = kept(variant.questions)
    late = {name for name in questions if ".layers." in name and int(name.split(".")[2]) >= 3}
    np.savez(folder / f"{variant.name}.side.npz", **kept(variant.side))
    np.savez(folder / f"{variant.name}.a.npz", **{name: questions[name] for name in questions if name not in late})
    np.savez(folder / f"{variant.name}.b.npz", **{name: questions[name] for name in late})
    if variant.texts is not None:
        np.savez(folder / f"{variant.name}.texts.npz", **kept(variant.texts))


if __name__ == "__main__":
    main()

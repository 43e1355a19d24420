"""Trains late interaction on a GPU: the side network of texts, and the encoder of questions.

    python training/train_tokens.py --squad squad-train-v1.1.json.gz --qmsum qmsum --friendsqa friendsqa \\
        --code code_pairs.jsonl.gz --teacher src/nacre/rerankers/nacre_rerank_v2/model.onnx --out weights

Several variants are trained side by side on the same lists: the frozen sentence model and the teacher run once for all.
Each is checked on held-out articles. The labelled sets of the benchmarks are never used.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

import near_misses
import network
import token_data
import token_network
import train_reranker
import training_data
from token_data import Batch, TokenLists
from token_network import QuestionEncoder, Shape, Side

HERE = Path(__file__).parent
MODEL = train_reranker.MODEL
MANY = 15  # negatives per positive
OTHERS = 4  # texts of each list that are negatives for the other lists of the batch
TEMPERATURE = 1.5
LABELS, TAUGHT, AMONG_OTHERS, ABSOLUTE = 0.5, 1.0, 0.3, 0.1  # weights of the losses
VARIANTS = {
    "last64": Shape((6,), 0, 0, 64),
    "side64": Shape((2, 4, 6), 128, 1, 64),
    "side48": Shape((2, 4, 6), 128, 1, 48),
    "side32": Shape((2, 4, 6), 128, 1, 32),
    "deep64": Shape((1, 2, 3, 4, 5, 6), 192, 2, 64),
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


_lists: TokenLists | None = None  # of a worker process


def _begin(*made_of: Any) -> None:
    global _lists
    torch.set_num_threads(1)
    corpus, mined, *others = made_of
    _lists = TokenLists(corpus, mined, training_data.tokenizer(MODEL), MANY, *others)


def _made(numbers: Sequence[int], seed: int) -> Batch:
    assert _lists is not None
    return _lists.batch(numbers, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squad", type=Path, required=True, help="squad-train-v1.1.json.gz")
    parser.add_argument("--qmsum", type=Path, required=True, help="folder of QMSum")
    parser.add_argument("--friendsqa", type=Path, required=True, help="folder of FriendsQA")
    parser.add_argument("--code", type=Path, required=True, help="pairs by code_pairs.py")
    parser.add_argument("--teacher", type=Path, required=True, help="the exported reranker")
    parser.add_argument("--out", type=Path, required=True, help="folder for the weights")
    parser.add_argument("--variants", default="side64", help=f"comma-separated: {', '.join(VARIANTS)}")
    parser.add_argument("--steps", type=int, default=6_000)
    parser.add_argument("--questions", type=int, default=64, help="per step")
    parser.add_argument("--rate", type=float, default=5e-5, help="of the encoders; side networks learn 10 times faster")
    parser.add_argument("--seconds", type=float, help="stop early, with the rate fallen as at the end")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--workers", type=int, default=15)
    parser.add_argument("--articles", type=int, help="of SQuAD, for a trial")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = True
    begun = time.time()
    pieces = training_data.tokenizer(MODEL)
    corpus = training_data.load(options.squad, options.qmsum, pieces, options.articles)
    scenes = [each for each in near_misses.read_scenes(options.friendsqa) if not each.held_out]
    notes = near_misses.read_notes(sorted(HERE.glob("notes_*.jsonl")))
    code = token_data.read_code(options.code, pieces)
    print(
        f"{len(corpus.questions)} questions, {len(scenes)} scenes, {len(notes)} notes, {len(code)} functions",
        flush=True,
    )
    weights = network.shipped_weights(MODEL / "model.onnx")
    trunk = network.initialised(weights, list(range(6))).to(options.device).eval()
    mined = train_reranker.mine(corpus, weights, pieces, options.device)
    near_code = token_data.nearest_to(
        trunk, [each.asks for each in code], [each.bare for each in code], 24, options.device
    )
    encoded = [pieces.encode(each.text, add_special_tokens=False).ids for each in notes]
    near_notes = token_data.nearest_to(trunk, encoded, encoded, 24, options.device)
    print(f"mined, {time.time() - begun:.0f} s", flush=True)
    teacher = network.ranking_model(options.teacher, weights).to(options.device).eval()
    dropped = torch.from_numpy(token_data.dropped_pieces(pieces)).to(options.device)
    variants = [_variant(name, weights, options) for name in options.variants.split(",")]
    made_of = (corpus, mined, scenes, notes, code, near_code, near_notes)
    options.out.mkdir(parents=True, exist_ok=True)
    _train(variants, trunk, teacher, dropped, made_of, options)
    for each in variants:
        save(each, options.out)


def _variant(name: str, weights: dict[str, torch.Tensor], options: argparse.Namespace) -> Variant:
    shape = VARIANTS[name]
    side = Side(shape).to(options.device)
    questions = QuestionEncoder(weights, shape.dimensions).to(options.device)
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
    teacher: network.CrossEncoder,
    dropped: torch.Tensor,
    made_of: tuple[Any, ...],
    options: argparse.Namespace,
) -> None:
    """Train with a learning rate that rises and then falls to 2 %."""
    asked = made_of[0].questions
    train = [at for at, each in enumerate(asked) if each.article >= training_data.HELD_OUT_ARTICLES]
    held_out = [at for at, each in enumerate(asked) if each.article < training_data.HELD_OUT_ARTICLES]
    generator = np.random.default_rng(3)
    trunk.dropout = 0.0
    with ProcessPoolExecutor(options.workers, initializer=_begin, initargs=made_of) as workers:
        checks = [
            workers.submit(_made, held_out[start : start + 32], start)
            for start in range(0, 512, 32)
            if held_out[start:]
        ]
        pending: list[Future[Batch]] = []

        def more() -> None:
            numbers = generator.choice(len(train), options.questions, replace=False)
            seed = int(generator.integers(1 << 40))
            pending.append(workers.submit(_made, [train[at] for at in numbers], seed))

        for _ in range(4 * options.workers):
            more()
        pending[0].result()
        start = time.time()
        for step in range(options.steps):
            batch = pending.pop(0).result()
            more()
            share = step / options.steps
            if options.seconds:
                share = max(share, (time.time() - start) / options.seconds)
            if share >= 1:
                break
            learned(variants, trunk, teacher, dropped, batch, share, options.device)
            if step % 250 == 249:
                means = {each.name: round(torch.stack(each.losses[-250:]).mean().item(), 4) for each in variants}
                print(f"step {step + 1}, {time.time() - start:.0f} s, {json.dumps(means)}", flush=True)
        for each in pending:
            each.cancel()
        found = [_first(variants, trunk, dropped, each.result(), options.device) for each in checks]
        if found:
            means = np.mean(found, axis=0)
            print(json.dumps({each.name: round(float(mean), 4) for each, mean in zip(variants, means, strict=True)}))


def on_device(rows: npt.NDArray[np.uint16], device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and attention mask. An empty row attends to its first place, so that nothing is undefined."""
    ids = torch.from_numpy(rows.astype(np.int32)).to(device, non_blocking=True).long()
    mask = (ids > 0).long()
    mask[:, 0] = 1
    return ids, mask


class Encoded:
    """The texts of a batch by the frozen sentence model, and which tokens are kept."""

    def __init__(self, trunk: network.CrossEncoder, rows: npt.NDArray[np.uint16], dropped: torch.Tensor, device: str):
        self.ids, self.mask = on_device(rows, device)
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
    teacher: network.CrossEncoder,
    dropped: torch.Tensor,
    batch: Batch,
    share: float,
    device: str,
) -> None:
    """One step of all variants."""
    questions = on_device(batch.questions, device)
    texts, beside = Encoded(trunk, batch.texts, dropped, device), Encoded(trunk, batch.beside, dropped, device)
    with torch.no_grad(), torch.autocast(device, torch.bfloat16):
        wanted = teacher(*on_device(batch.pairs, device)).float().view(-1, MANY + 1)
    taught = torch.from_numpy(batch.taught).to(device)
    groups = torch.from_numpy(batch.groups).to(device)
    same = groups[:, None] == groups.repeat_interleave(OTHERS)[None, :]
    for variant in variants:
        for group, rate in zip(variant.optimizer.param_groups, variant.rates, strict=True):
            group["lr"] = rate * min(1.0, share / 0.05) * max(0.02, 1 - share)
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
    questions = on_device(batch.questions, device)
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

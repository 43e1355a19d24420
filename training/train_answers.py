"""Trains both outputs of the reranker on a GPU: its score, and the log-odds that a text answers a question.

    python training/train_answers.py --ranker ranker.onnx --large large.pt --squad squad-train-v1.1.json.gz \\
        --qmsum qmsum --friendsqa friendsqa --code code_pairs.jsonl.gz --out weights

The network begins as a trained ranker. Its score learns from the large teacher's scores of every row (the lists of
`token_data.py`, and the cases of `near_misses.py`); without a teacher it is held where it is. The second output learns
from labels: near misses above all. Checked on held-out articles, dialogues and notes. The labelled sets and the
scenarios of the benchmarks are never used.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import BertWordPieceTokenizer
from torch.nn import functional

import near_misses
import network
import token_data
import train_reranker
import training_data
from near_misses import Case, Groups
from token_data import Sources, TokenLists

MODEL = train_reranker.MODEL
MANY = train_reranker.MANY
LISTS = 40  # per step, of MANY + 1 rows each
CASES = 896  # per step
SOURCES = {"squad": 0.35, "notes": 0.45, "scenes": 0.20}  # shares of the cases
JUDGED = ("spoken", "turns", "sentences", "paragraphs")  # forms of lists that have an answer, and not just the topic
NEIGHBOUR_PIECES = 12  # as in the product
RIGHT_SHARE = 0.4  # of the weight of the labels
KEEP, KEEP_ORDER, LISTED = 0.4, 1.0, 0.3  # weights of the squared distance, of the KL divergence, of labels in lists
CHECKED = 300  # held-out groups of each source


class Batch(NamedTuple):
    ids: npt.NDArray[np.int32]  # the lists, then the cases
    labels: npt.NDArray[np.float32]
    weights: npt.NDArray[np.float32]  # 0 where a label is not to be learned


class Maker:
    """Makes batches, in a worker process."""

    def __init__(self, sources: Sources) -> None:
        self._pieces = training_data.tokenizer(MODEL)
        self._lists = TokenLists(sources, self._pieces, MANY)
        self._groups = Groups(sources.corpus, sources.mined, sources.notes, sources.scenes)

    def batch(self, seed: int, sources: Mapping[str, float]) -> Batch:
        self._lists.chance.seed(seed)
        self._groups.chance.seed(seed + 1)
        rows: list[list[int]] = []
        labels: list[float] = []
        weights: list[float] = []
        for number in self._lists.chance.sample(self._groups.numbers, LISTS):
            form, listed = self._lists.drawn(number)
            rows += listed
            labels += [1.0, *[0.0] * MANY]
            weights += [LISTED * (form in JUDGED)] * (MANY + 1)
        for source, share in sources.items():
            cases: list[Case] = []
            while len(cases) < share * CASES:
                cases += self._groups.of(source)
            rows += encoded(cases, self._pieces)
            labels += [float(each.answers) for each in cases]
            weights += [each.weight for each in cases]
        ids, _ = train_reranker.as_rows(rows)
        return Batch(ids, np.array(labels, np.float32), balanced(labels, weights))


def balanced(labels: Sequence[float], weights: Sequence[float]) -> npt.NDArray[np.float32]:
    """Weights that sum to 1. Positives have RIGHT_SHARE of the lists' weight, and of the cases'."""
    right, found = np.array(labels) > 0, np.array(weights, np.float32)
    listed = np.arange(len(found)) < LISTS * (MANY + 1)
    for part, whole in ((listed, LISTED), (~listed, 1.0)):
        for side, share in ((right & part, RIGHT_SHARE), (~right & part, 1 - RIGHT_SHARE)):
            total = found[side].sum()
            found[side] *= whole * share / total if total else 0.0
    return found


def encoded(cases: Sequence[Case], pieces: BertWordPieceTokenizer) -> list[list[int]]:
    """The rows of cases, in the format of the product."""
    texts = [text for each in cases for text in (each.question, *each.shown)]
    ids = [each.ids for each in pieces.encode_batch(texts, add_special_tokens=False)]
    rows = []
    for at in range(0, len(ids), 4):
        question, text, before, after = ids[at : at + 4]
        if before or after:
            text = text[: training_data.TARGET_PIECES]
            mark, mark_end = training_data.TARGET, training_data.TARGET_END
            text = [*before[:NEIGHBOUR_PIECES], mark, *text, mark_end, *after[:NEIGHBOUR_PIECES]]
        rows.append(training_data.paired(question, text))
    return rows


_maker: Maker | None = None  # of a worker process


def _begin(sources: Sources) -> None:
    global _maker
    torch.set_num_threads(1)
    _maker = Maker(sources)


def _made(seed: int, sources: Mapping[str, float]) -> Batch:
    assert _maker is not None
    return _maker.batch(seed, sources)


class Check(NamedTuple):
    """Held-out cases of one source."""

    source: str
    rows: list[list[int]]
    labels: npt.NDArray[np.bool_]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    token_data.add_arguments(parser)
    parser.add_argument("--ranker", type=Path, required=True, help="the exported ranker to begin with")
    parser.add_argument("--large", type=Path, help="a teacher by train_teacher.py (default: the ranker itself)")
    parser.add_argument("--out", type=Path, required=True, help="folder for the weights")
    parser.add_argument(
        "--kept", type=float, default=0.0, help="share of the ranker's own weights in the mean that is saved"
    )
    parser.add_argument("--steps", type=int, default=1_050)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    pieces, weights, _, sources = token_data.read(options, MODEL)
    model = network.ranking_model(options.ranker, weights).to(options.device).eval()
    teacher = copy.deepcopy(model) if options.large is None else network.read(options.large).to(options.device).eval()
    scenes = near_misses.read_scenes(options.friendsqa)
    checks = _checks(Groups(sources.corpus, sources.mined, sources.notes, scenes, held_out=True), pieces)
    options.out.mkdir(parents=True, exist_ok=True)
    begun = copy.deepcopy(model.state_dict())
    _train(model, teacher, sources, options)
    # A mean with where it began keeps what it knew of texts that no training data resembles.
    mean = {name: options.kept * begun[name] + (1 - options.kept) * value for name, value in model.state_dict().items()}
    model.load_state_dict(mean)
    train_reranker.save(model, options.out / "nacre-rerank")
    print(json.dumps(_checked(model, teacher, checks, options.device)), flush=True)


def _checks(groups: Groups, pieces: BertWordPieceTokenizer) -> list[Check]:
    found = []
    for source in SOURCES:
        groups.chance.seed(7)
        cases = [case for _ in range(CHECKED) for case in groups.of(source)]
        found.append(Check(source, encoded(cases, pieces), np.array([each.answers for each in cases])))
    return found


def _train(
    model: network.CrossEncoder,
    teacher: network.CrossEncoder,
    sources: Sources,
    options: argparse.Namespace,
) -> None:
    """Train with a learning rate that rises and then falls to 2 %."""
    optimizer = torch.optim.AdamW(network.decay_groups(model.parameters()), lr=options.rate)
    generator = np.random.default_rng(options.seed)
    start = time.time()
    kept, learned = [], []
    with ProcessPoolExecutor(options.workers, initializer=_begin, initargs=(sources,)) as workers:
        pending: list[Future[Batch]] = []

        def more() -> None:
            pending.append(workers.submit(_made, int(generator.integers(1 << 40)), SOURCES))

        for _ in range(4 * options.workers):
            more()
        for step, share in enumerate(token_data.shares(options)):
            batch = pending.pop(0).result()
            more()
            for group in optimizer.param_groups:
                group["lr"] = token_data.rate_at(share, options.rate)
            distance, loss = _losses(model, teacher, batch, options.device)
            optimizer.zero_grad(set_to_none=True)
            (distance + loss).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            kept.append(distance.detach())
            learned.append(loss.detach())
            if step % 250 == 249:
                means = [torch.stack(each[-250:]).mean().item() for each in (kept, learned)]
                print(f"step {step + 1}, {time.time() - start:.0f} s, losses {means[0]:.4f} {means[1]:.4f}", flush=True)
        for each in pending:
            each.cancel()


def _losses(
    model: network.CrossEncoder, teacher: network.CrossEncoder, batch: Batch, device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """How far the scores are from the teacher's, and the cross-entropy of the labels."""
    labels, weights = (torch.from_numpy(each).to(device) for each in (batch.labels, batch.weights))
    model.train()
    scores, answers = token_data.scored(lambda *rows: torch.stack(model.both(*rows), 1), batch.ids, device).T
    with torch.no_grad():
        wanted = token_data.scored(teacher, batch.ids, device)
    listed = LISTS * (MANY + 1)
    order, wanted_order = (functional.log_softmax(each[:listed].view(LISTS, MANY + 1), 1) for each in (scores, wanted))
    distance = KEEP * functional.mse_loss(scores, wanted) + KEEP_ORDER * functional.kl_div(
        order, wanted_order, log_target=True, reduction="batchmean"
    )
    loss = functional.binary_cross_entropy_with_logits(answers, labels, weights, reduction="sum")
    return distance, loss


def _checked(
    model: network.CrossEncoder, teacher: network.CrossEncoder, checks: Sequence[Check], device: str
) -> dict[str, float]:
    """The AUC of the second output on each source, and the correlation of the scores with the teacher's."""
    model.eval()
    found = {}
    for check in checks:
        answers, scores, wanted = [], [], []
        for start in range(0, len(check.rows), 512):
            ids, mask = train_reranker.on_device(*train_reranker.as_rows(check.rows[start : start + 512]), device)
            with torch.no_grad(), torch.autocast(device, torch.bfloat16):
                score, answer = model.both(ids, mask)
                wanted.append(teacher(ids, mask).float().cpu())
            scores.append(score.float().cpu())
            answers.append(answer.float().cpu())
        found[check.source] = round(auc(torch.cat(answers).numpy(), check.labels), 4)
        both = torch.stack([torch.cat(scores), torch.cat(wanted)])
        found[f"{check.source} score"] = round(float(torch.corrcoef(both)[0, 1]), 4)
    return found


def auc(values: npt.NDArray[np.float32], right: npt.NDArray[np.bool_]) -> float:
    """How often a right one has a higher value than a wrong one."""
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.arange(1, len(values) + 1)
    many = int(right.sum())
    return float((ranks[right].sum() - many * (many + 1) / 2) / (many * (len(values) - many)))


if __name__ == "__main__":
    main()

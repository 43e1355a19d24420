"""Trains the second output of the reranker on a GPU, the log-odds that a text answers, and the score on new forms.

    python training/train_answers.py --ranker ranker.onnx --squad squad-train-v1.1.json.gz --qmsum qmsum \\
        --friendsqa friendsqa --code code_pairs.jsonl.gz --out weights

The network begins as a trained ranker. Its score is held in place by the ranker's own scores on what the ranker was
trained on (the lists of `train_reranker.py`, and the cases from SQuAD), and learns from labels on lists of dialogues,
notes and code, which are new to it. The second output learns from labels: near misses above all. Checked on held-out
articles, dialogues, notes and functions. The labelled sets and the scenarios of the benchmarks are never used.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
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
from near_misses import Case, Groups, Note, Scene
from token_data import Code, TokenLists
from training_data import Corpus, Mined

HERE = Path(__file__).parent
MODEL = train_reranker.MODEL
MANY = train_reranker.MANY
LISTS = 40  # per step, of MANY + 1 rows each
CASES = 896  # per step
SOURCES = {"squad": 0.35, "notes": 0.45, "scenes": 0.20}  # shares of the cases
HELD = ("squad",)  # sources of cases on which the score is held in place
NEW = {"dialogue": 0.18, "note": 0.05, "code": 0.17}  # shares of the lists that the ranker was not trained on
MIX = {form: share * (1 - sum(NEW.values())) for form, share in train_reranker.BOTH.items()} | NEW
# How much the labels of a list count for the second output. Not every form has an answer: some have just the topic.
JUDGED = {"spoken": 1.0, "turns": 1.0, "sentences": 1.0, "paragraphs": 1.0, "dialogue": 0.5, "note": 0.5, "code": 0.3}
NEIGHBOUR_PIECES = 12  # as in the product
RIGHT_SHARE = 0.4  # of the weight of the labels
KEEP, KEEP_ORDER, LISTED = 0.4, 1.0, 0.3  # weights of the squared distance, of the KL divergence, of labels in lists
NEW_ORDER = 0.5  # weight of the labels in lists of new forms, for the score
PARTS = 4  # of a batch, by length: short rows are not padded to the longest
CHECKS = 6
CHECKED = 300  # held-out groups of each source
CHECKED_LISTS = 1_500


class Batch(NamedTuple):
    ids: npt.NDArray[np.int32]  # the lists, then the cases
    lengths: npt.NDArray[np.int32]
    labels: npt.NDArray[np.float32]
    weights: npt.NDArray[np.float32]  # 0 where a label is not to be learned
    held: npt.NDArray[np.bool_]  # whether the score of a row is held in place


@dataclass(frozen=True)
class MadeOf:
    """What batches are made of: what is trained on, or what is held out."""

    corpus: Corpus
    mined: Mined
    scenes: Sequence[Scene]
    notes: Sequence[Note]
    code: Sequence[Code]
    near_code: npt.NDArray[np.int32]
    near_notes: npt.NDArray[np.int32]
    held_out: bool

    def lists(self, pieces: BertWordPieceTokenizer) -> TokenLists:
        others = (self.scenes, self.notes, self.code, self.near_code, self.near_notes)
        return TokenLists(self.corpus, self.mined, pieces, MANY, *others, mix=MIX)

    def groups(self) -> Groups:
        return Groups(self.corpus, self.mined, self.notes, self.scenes, held_out=self.held_out)


class Maker:
    """Makes batches, in a worker process."""

    def __init__(self, made_of: MadeOf) -> None:
        self._pieces = training_data.tokenizer(MODEL)
        self._lists = made_of.lists(self._pieces)
        self._groups = made_of.groups()

    def batch(self, seed: int, sources: Mapping[str, float]) -> Batch:
        self._lists.chance.seed(seed)
        self._groups.chance.seed(seed + 1)
        rows: list[list[int]] = []
        labels: list[float] = []
        weights: list[float] = []
        held: list[bool] = []
        for number in self._lists.chance.sample(self._groups.numbers, LISTS):
            form, listed = self._lists.drawn(number)
            rows += listed
            labels += [1.0, *[0.0] * MANY]
            weights += [JUDGED.get(form, 0.0)] * (MANY + 1)
            held += [form not in NEW] * (MANY + 1)
        for source, share in sources.items():
            cases: list[Case] = []
            while len(cases) < share * CASES:
                cases += self._groups.of(source)
            rows += encoded(cases, self._pieces)
            labels += [float(each.answers) for each in cases]
            weights += [each.weight for each in cases]
            held += [source in HELD] * len(cases)
        ids, lengths = train_reranker.as_rows(rows)
        return Batch(ids, lengths, np.array(labels, np.float32), balanced(labels, weights), np.array(held))


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


def _begin(made_of: MadeOf) -> None:
    global _maker
    _maker = Maker(made_of)


def _made(seed: int, sources: Mapping[str, float]) -> Batch:
    assert _maker is not None
    return _maker.batch(seed, sources)


class Check(NamedTuple):
    """Held-out cases of one source."""

    source: str
    rows: list[list[int]]
    labels: npt.NDArray[np.bool_]


class Listed(NamedTuple):
    """A held-out list to rank: the first row answers."""

    form: str
    rows: list[list[int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranker", type=Path, required=True, help="the exported ranker to begin with")
    parser.add_argument("--squad", type=Path, required=True, help="squad-train-v1.1.json.gz")
    parser.add_argument("--qmsum", type=Path, required=True, help="folder of QMSum")
    parser.add_argument("--friendsqa", type=Path, required=True, help="folder of FriendsQA")
    parser.add_argument("--code", type=Path, required=True, help="pairs by code_pairs.py")
    parser.add_argument("--out", type=Path, required=True, help="folder for the weights")
    parser.add_argument("--steps", type=int, default=1_050)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--seconds", type=float, help="stop early, with the rate fallen as at the end")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--articles", type=int, help="of SQuAD, for a trial")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    begun = time.time()
    pieces = training_data.tokenizer(MODEL)
    corpus = training_data.load(options.squad, options.qmsum, pieces, options.articles)
    notes = near_misses.read_notes(sorted(HERE.glob("notes_*.jsonl")))
    scenes = near_misses.read_scenes(options.friendsqa)
    code = token_data.read_code(options.code, pieces)
    counts = f"{len(corpus.questions)} questions, {len(notes)} notes, {len(scenes)} scenes, {len(code)} functions"
    print(counts, flush=True)
    weights = network.shipped_weights(MODEL / "model.onnx")
    mined = train_reranker.mine(corpus, weights, pieces, options.device)
    trunk = network.initialised(weights, list(range(train_reranker.LAYERS))).to(options.device).eval()

    def part(held_out: bool) -> MadeOf:
        some_notes = [each for each in notes if each.held_out == held_out]
        some_code = [each for each in code if each.held_out == held_out]
        some_scenes = [each for each in scenes if each.held_out == held_out]
        near = token_data.near_each_other(trunk, some_notes, some_code, pieces, options.device)
        return MadeOf(corpus, mined, some_scenes, some_notes, some_code, *near, held_out)

    trained, held_out = part(False), part(True)
    print(f"mined, {time.time() - begun:.0f} s", flush=True)
    ranker = network.ranking_model(options.ranker, weights).to(options.device).eval()
    model = copy.deepcopy(ranker)
    checks = _checks(held_out.groups(), pieces)
    listed = _listed(held_out, pieces)
    options.out.mkdir(parents=True, exist_ok=True)
    before = _ranked(model, listed, options.device)
    print(f"mean reciprocal rank before: {json.dumps(before)}", flush=True)
    print(json.dumps(_checked(model, ranker, checks, options.device)), flush=True)
    _train(model, ranker, checks, trained, options)
    after = _ranked(model, listed, options.device)
    print(f"mean reciprocal rank after: {json.dumps(after)}", flush=True)


def _checks(groups: Groups, pieces: BertWordPieceTokenizer) -> list[Check]:
    found = []
    for source in SOURCES:
        groups.chance.seed(7)
        cases = [case for _ in range(CHECKED) for case in groups.of(source)]
        found.append(Check(source, encoded(cases, pieces), np.array([each.answers for each in cases])))
    return found


def _listed(held_out: MadeOf, pieces: BertWordPieceTokenizer) -> list[Listed]:
    """Lists of all forms. Only those of meetings are not held out: they show what is forgotten, not what is learned."""
    lists = held_out.lists(pieces)
    lists.chance.seed(7)
    numbers = held_out.groups().numbers
    return [Listed(*lists.drawn(number)) for number in lists.chance.sample(numbers, min(CHECKED_LISTS, len(numbers)))]


def _ranked(model: network.CrossEncoder, listed: Sequence[Listed], device: str) -> dict[str, float]:
    """The mean reciprocal rank in lists of each form, and in those of all forms that the score is held on."""
    scores, _ = _outputs(model, [row for each in listed for row in each.rows], device)
    own = scores.view(len(listed), MANY + 1)
    values = (1 / (1 + (own[:, 1:] > own[:, :1]).sum(1))).numpy()
    forms = np.array([each.form for each in listed])
    found = {form: values[forms == form] for form in MIX} | {"old forms": values[~np.isin(forms, list(NEW))]}
    return {name: round(float(each.mean()), 4) for name, each in found.items() if len(each)}


def _outputs(model: network.CrossEncoder, rows: Sequence[list[int]], device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Both outputs for rows, in their order."""
    model.eval()
    order = sorted(range(len(rows)), key=lambda at: len(rows[at]))
    found = torch.empty(2, len(rows))
    for start in range(0, len(order), 512):
        part = order[start : start + 512]
        ids, mask = train_reranker.on_device(*train_reranker.as_rows([rows[at] for at in part]), device)
        with torch.no_grad(), torch.autocast(device, torch.bfloat16):
            found[:, part] = torch.stack(model.both(ids, mask)).float().cpu()
    return found[0], found[1]


def _train(
    model: network.CrossEncoder,
    ranker: network.CrossEncoder,
    checks: Sequence[Check],
    made_of: MadeOf,
    options: argparse.Namespace,
) -> None:
    """Train with a learning rate that rises and then falls to 2 %. The weights are saved at every check."""
    trained = [each for each in model.parameters() if each.requires_grad]
    groups = [
        {"params": [each for each in trained if each.ndim > 1], "weight_decay": 0.01},
        {"params": [each for each in trained if each.ndim <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=options.rate)
    generator = np.random.default_rng(options.seed)
    losses: list[tuple[torch.Tensor, ...]] = []
    checked = 0

    def check(step: int) -> None:
        means = [round(torch.stack(each).mean().item(), 4) for each in zip(*losses[-200:], strict=True)]
        print(f"step {step}, {time.time() - start:.0f} s, losses {means}", flush=True)
        print(json.dumps(_checked(model, ranker, checks, options.device)), flush=True)
        train_reranker.save(model, options.out / "nacre-rerank")

    with ProcessPoolExecutor(options.workers, initializer=_begin, initargs=(made_of,)) as workers:
        pending: list[Future[Batch]] = []

        def more() -> None:
            pending.append(workers.submit(_made, int(generator.integers(1 << 40)), SOURCES))

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
            if int(share * CHECKS) > checked:
                checked = int(share * CHECKS)
                check(step)
            for group in optimizer.param_groups:
                group["lr"] = options.rate * min(1.0, share / 0.05) * max(0.02, 1 - share)
            found = _losses(model, ranker, batch, options.device)
            optimizer.zero_grad(set_to_none=True)
            torch.stack(found).sum().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(tuple(each.detach() for each in found))
        for each in pending:
            each.cancel()
        check(len(losses))


def _in_parts(
    model: network.CrossEncoder, batch: Batch, order: Sequence[npt.NDArray[np.int64]], device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Both outputs of a batch, which is run in parts of similar length."""
    found = []
    for part in order:
        lengths = batch.lengths[part]
        ids, mask = train_reranker.on_device(batch.ids[part, : -(-lengths.max() // 16) * 16], lengths, device)
        found.append(torch.stack(model.both(ids, mask)))
    back = torch.from_numpy(np.argsort(np.concatenate(order))).to(device)
    scores, answers = torch.cat(found, 1).float()[:, back]
    return scores, answers


def _losses(
    model: network.CrossEncoder, ranker: network.CrossEncoder, batch: Batch, device: str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """How far the scores are from the ranker's, and the cross-entropies of the labels: in new lists, and of answers."""
    order = np.array_split(np.argsort(batch.lengths, kind="stable"), PARTS)
    labels, weights, held = (torch.from_numpy(each).to(device) for each in (batch.labels, batch.weights, batch.held))
    model.train()
    with torch.autocast(device, torch.bfloat16):
        scores, answers = _in_parts(model, batch, order, device)
        with torch.no_grad():
            wanted, _ = _in_parts(ranker, batch, order, device)
    listed = LISTS * (MANY + 1)
    lists, wanted_lists = (each[:listed].view(LISTS, MANY + 1) for each in (scores, wanted))
    old = held[: listed : MANY + 1].float()
    right = torch.zeros(LISTS, dtype=torch.long, device=device)
    divergence = functional.kl_div(
        functional.log_softmax(lists, 1), functional.log_softmax(wanted_lists, 1), log_target=True, reduction="none"
    ).sum(1)
    entropy = functional.cross_entropy(lists, right, label_smoothing=train_reranker.SMOOTHING, reduction="none")
    distance = KEEP * _mean((scores - wanted) ** 2, held.float()) + KEEP_ORDER * _mean(divergence, old)
    loss = functional.binary_cross_entropy_with_logits(answers, labels, weights, reduction="sum")
    return distance, NEW_ORDER * _mean(entropy, 1 - old), loss


def _mean(values: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The mean by weight. A batch may have nothing of a kind."""
    return (values * weights).sum() / weights.sum().clamp(min=1.0)


def _checked(
    model: network.CrossEncoder, ranker: network.CrossEncoder, checks: Sequence[Check], device: str
) -> dict[str, float]:
    """The AUC of the second output on each source, and the correlation of the scores with the ranker's."""
    found = {}
    for check in checks:
        scores, answers = _outputs(model, check.rows, device)
        wanted, _ = _outputs(ranker, check.rows, device)
        found[check.source] = round(auc(answers.numpy(), check.labels), 4)
        found[f"{check.source} score"] = round(float(torch.corrcoef(torch.stack([scores, wanted]))[0, 1]), 4)
    return found


def auc(values: npt.NDArray[np.float32], right: npt.NDArray[np.bool_]) -> float:
    """How often a right one has a higher value than a wrong one."""
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.arange(1, len(values) + 1)
    many = int(right.sum())
    return float((ranks[right].sum() - many * (many + 1) / 2) / (many * (len(values) - many)))


if __name__ == "__main__":
    main()

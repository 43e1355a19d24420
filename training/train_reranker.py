"""Trains the reranker on a GPU: two teachers, and a student that learns from both.

    python training/train_reranker.py --squad squad-train-v1.1.json.gz --qmsum qmsum --out weights

One teacher learns from written texts, the other also from texts in the first person. The student starts with the
weights of the first and learns from the labels and from the mean of the teachers' scores. A model that `--out` already
has is not trained again. Each model is checked on held-out articles. The labelled sets of the benchmarks are
never used.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import BertWordPieceTokenizer
from torch.nn import functional

import network
import training_data
from training_data import Corpus, Lists, Mined, Unit

MODEL = Path(__file__).parent.parent / "src" / "nacre" / "embedders" / "minilm_l6_v2"
DEVICE = "cuda"
MANY = 15  # negatives per positive
QUESTIONS = 64  # per step
SMOOTHING = 0.05
LAYERS = 6
# The share of each form of list; see training_data.py.
WRITTEN = {"turns": 0.45, "sentences": 0.15, "paragraphs": 0.20, "quoted": 0.10, "meeting": 0.10}
SPOKEN = {"spoken": 0.30, "turns": 0.18, "sentences": 0.12, "paragraphs": 0.18, "quoted": 0.10, "meeting": 0.12}
BOTH = {name: (WRITTEN.get(name, 0.0) + SPOKEN[name]) / 2 for name in SPOKEN}

Rows: TypeAlias = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]  # padded ids, and the length of each row
Weights: TypeAlias = dict[str, torch.Tensor]

_lists: Lists | None = None  # of a worker process


def _begin(corpus: Corpus, mined: Mined, mix: Mapping[str, float]) -> None:
    global _lists
    _lists = Lists(corpus, mined, training_data.tokenizer(MODEL), MANY, mix)


def _made(numbers: Sequence[int], seed: int) -> Rows:
    """The lists of some questions as padded rows."""
    assert _lists is not None
    _lists.chance.seed(seed)
    rows = [row for number in numbers for row in _lists.of(number)]
    return as_rows(rows)


def as_rows(rows: Sequence[Sequence[int]]) -> Rows:
    length = -(-max(map(len, rows)) // 16) * 16
    ids = np.zeros((len(rows), length), np.int32)
    lengths = np.array([len(row) for row in rows], np.int32)
    for at, row in enumerate(rows):
        ids[at, : len(row)] = row
    return ids, lengths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squad", type=Path, required=True, help="squad-train-v1.1.json.gz")
    parser.add_argument("--qmsum", type=Path, required=True, help="folder of QMSum")
    parser.add_argument("--out", type=Path, required=True, help="folder for the weights")
    parser.add_argument("--teacher-steps", type=int, default=1_800)
    parser.add_argument("--student-steps", type=int, default=1_600)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--only-teachers", action="store_true", help="stop before the student")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = True
    begun = time.time()
    pieces = training_data.tokenizer(MODEL)
    corpus = training_data.load(options.squad, options.qmsum, pieces)
    weights = network.shipped_weights(MODEL / "model.onnx")
    print(f"{len(corpus.questions)} questions on {len(corpus.sentences)} sentences", flush=True)
    mined = mine(corpus, weights, pieces, DEVICE)
    print(f"mined, {time.time() - begun:.0f} s", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    held_out = [at for at, each in enumerate(corpus.questions) if each.article < training_data.HELD_OUT_ARTICLES]
    train = [at for at, each in enumerate(corpus.questions) if each.article >= training_data.HELD_OUT_ARTICLES]
    _begin(corpus, mined, BOTH)
    checks = [_made([at], at) for at in held_out[::5][:512]]
    found: dict[str, dict[str, float]] = {}

    def model(
        name: str,
        mix: Mapping[str, float],
        begin: network.CrossEncoder | None,
        teachers: Sequence[network.CrossEncoder],
        steps: int,
    ) -> network.CrossEncoder:
        made: network.CrossEncoder = network.initialised(weights, list(range(LAYERS))).to(DEVICE)
        path = options.out / f"{name}.pt"
        if path.exists():
            made.load_state_dict(torch.load(path, weights_only=True))
            return made
        if begin is not None:
            made.load_state_dict(begin.state_dict())
        found[name] = _trained(made, teachers, train, checks, (corpus, mined, mix), options.rate, steps)
        torch.save(made.state_dict(), path)
        return made

    written = model("written", WRITTEN, None, [], options.teacher_steps)
    spoken = model("spoken", SPOKEN, None, [], options.teacher_steps)
    if not options.only_teachers:
        student = model("student", BOTH, written, [written, spoken], options.student_steps)
        save(student, options.out / "nacre-rerank")
    print(json.dumps(found, indent=1))


def mine(corpus: Corpus, weights: Weights, pieces: BertWordPieceTokenizer, device: str) -> Mined:
    base = network.initialised(weights, list(range(LAYERS))).to(device).eval()
    base.dropout = 0.0
    asked = [each.pieces for each in corpus.questions]
    questions = training_data.vectors(base, asked, device)

    def nearest(units: Sequence[Unit]) -> npt.NDArray[np.int32]:
        texts = [each.pieces for each in units]
        near = training_data.vectors(base, texts, device, 192)
        lexical = training_data.bm25_weights(texts, len(weights["words"]), device)
        return training_data.nearest(questions, near, asked, lexical, len(weights["words"]), 30)

    common = training_data.common_pieces(pieces)
    return Mined(nearest(corpus.sentences), nearest(corpus.paragraphs), common)


def _trained(
    model: network.CrossEncoder,
    teachers: Sequence[network.CrossEncoder],
    train: Sequence[int],
    checks: Sequence[Rows],
    made_of: tuple[Corpus, Mined, Mapping[str, float]],
    rate: float,
    steps: int,
) -> dict[str, float]:
    """Train with a learning rate that rises and then falls to 2 %, and return the checks on held-out articles."""
    optimizer = torch.optim.AdamW(network.decay_groups(model.parameters()), lr=rate, fused=True)
    generator = np.random.default_rng(3)
    start, losses = time.time(), []
    with ProcessPoolExecutor(14, initializer=_begin, initargs=made_of) as workers:
        pending: list[Future[Rows]] = []

        def more() -> None:
            numbers = generator.choice(len(train), QUESTIONS, replace=False)
            seed = int(generator.integers(1 << 40))
            pending.append(workers.submit(_made, [train[at] for at in numbers], seed))

        for _ in range(56):
            more()
        for step in range(steps):
            ids, lengths = pending.pop(0).result()
            more()
            share = step / steps
            for group in optimizer.param_groups:
                group["lr"] = rate * min(1.0, share / 0.05) * max(0.02, 1 - share)
            ids_on, mask = on_device(ids, lengths, DEVICE)
            model.train()
            with torch.autocast(DEVICE, torch.bfloat16):
                scores = model(ids_on, mask).float().view(-1, MANY + 1)
            right = torch.zeros(len(scores), dtype=torch.long, device=DEVICE)
            loss = functional.cross_entropy(scores, right, label_smoothing=SMOOTHING)
            if teachers:
                loss = 0.3 * loss + 0.7 * _distance(scores, teachers, ids_on, mask)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.detach())
            if step % 400 == 399:
                mean = torch.stack(losses[-400:]).mean().item()
                print(f"step {step + 1}, {time.time() - start:.0f} s, loss {mean:.3f}", flush=True)
        for each in pending:
            each.cancel()
    return _checked(model, checks) | {"steps": steps}


def _distance(
    scores: torch.Tensor, teachers: Sequence[network.CrossEncoder], ids: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """The KL divergence of the scores from the mean of the teachers' scores."""
    for each in teachers:
        each.eval()
    with torch.no_grad(), torch.autocast(DEVICE, torch.bfloat16):
        wanted = sum(each(ids, mask).float() for each in teachers).view(-1, MANY + 1) / len(teachers)
    return functional.kl_div(
        functional.log_softmax(scores, 1), functional.log_softmax(wanted, 1), log_target=True, reduction="batchmean"
    )


def on_device(
    ids: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32], device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and attention mask."""
    ids_on = torch.from_numpy(ids).to(device, non_blocking=True).long()
    places = torch.arange(ids_on.shape[1], device=device)
    return ids_on, (places[None, :] < torch.from_numpy(lengths).to(device)[:, None]).long()


def _checked(model: network.CrossEncoder, checks: Sequence[Rows]) -> dict[str, float]:
    """How often the answer is ranked first, and the mean reciprocal rank."""
    model.eval()
    ranks = []
    for ids, lengths in checks:
        ids_on, mask = on_device(ids, lengths, DEVICE)
        with torch.no_grad(), torch.autocast(DEVICE, torch.bfloat16):
            scores = model(ids_on, mask).float()
        ranks.append(1 + int((scores[1:] > scores[0]).sum()))
    ranked = np.array(ranks)
    return {"first": float((ranked == 1).mean()), "mrr": float((1 / ranked).mean())}


def save(model: network.CrossEncoder, path: Path) -> None:
    """Half-precision weights in two files, without the word table, which is the sentence model's."""
    state = {name: value.detach().half().cpu().numpy() for name, value in model.state_dict().items()}
    del state["words.weight"]
    late = {name for name in state if name.startswith("layers.") and int(name.split(".")[1]) >= 3}
    np.savez(path.with_suffix(".a.npz"), **{name: state[name] for name in state if name not in late})
    if late:
        np.savez(path.with_suffix(".b.npz"), **{name: state[name] for name in late})


if __name__ == "__main__":
    main()

"""Trains the reranker on a GPU: two teachers, and a student that learns what both agree on.

    python training/train_reranker.py --squad squad-train-v1.1.json.gz --qmsum qmsum --out weights

One teacher learns from texts as they are written, the other also from texts as people would say them. The student
begins as the first and learns from the labels and from the mean of their scores. What is in `--out` already is not
trained again. How well each ranks is checked on articles that are held out. The labelled sets are never seen.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import examples
import network
import numpy as np
import torch
from torch.nn import functional

MODEL = Path(__file__).parent.parent / "src" / "nacre" / "embedders" / "minilm_l6_v2"
DEVICE = "cuda"
MANY = 15  # texts that do not answer, to one that does
QUESTIONS = 64  # in a step
SMOOTHING = 0.05
LAYERS = 6
# How often a list is made in which way; see examples.py.
WRITTEN = {"turns": 0.45, "sentences": 0.15, "paragraphs": 0.20, "quoted": 0.10, "meeting": 0.10}
SPOKEN = {"spoken": 0.30, "turns": 0.18, "sentences": 0.12, "paragraphs": 0.18, "quoted": 0.10, "meeting": 0.12}
BOTH = {name: (WRITTEN.get(name, 0.0) + SPOKEN[name]) / 2 for name in SPOKEN}

_lists: examples.Lists | None = None


def _begin(corpus: Any, mined: Any, mix: Any) -> None:
    global _lists
    _lists = examples.Lists(corpus, mined, examples.tokenizer(MODEL), MANY, mix)


def _made(numbers: list[int], seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The lists of some questions as padded rows."""
    assert _lists is not None
    _lists.chance.seed(seed)
    rows = [row for number in numbers for row in _lists.of(number)]
    length = -(-max(map(len, rows)) // 16) * 16
    ids = np.zeros((len(rows), length), np.int32)
    lengths = np.array([len(row) for row in rows], np.int32)
    for at, row in enumerate(rows):
        ids[at, : len(row)] = row
    return ids, lengths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squad", type=Path, required=True)
    parser.add_argument("--qmsum", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--teacher-steps", type=int, default=1_800)
    parser.add_argument("--student-steps", type=int, default=1_600)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--only-teachers", action="store_true", help="stop before the student")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = True
    begun = time.time()
    pieces = examples.tokenizer(MODEL)
    corpus = examples.load(options.squad, options.qmsum, pieces)
    weights = network.shipped_weights(MODEL / "model.onnx")
    print(f"{len(corpus.questions)} questions on {len(corpus.sentences)} sentences", flush=True)
    mined = _mined(corpus, weights, pieces)
    print(f"mined, {time.time() - begun:.0f} s", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    held_out = [at for at, each in enumerate(corpus.questions) if each.article < examples.HELD_OUT_ARTICLES]
    train = [at for at, each in enumerate(corpus.questions) if each.article >= examples.HELD_OUT_ARTICLES]
    _begin(corpus, mined, BOTH)
    checks = [_made([at], at) for at in held_out[::5][:512]]
    found: dict[str, Any] = {}

    def model(name: str, mix: Any, begin: Any, teachers: Any, steps: int) -> Any:
        made = network.begun(weights, list(range(LAYERS))).to(DEVICE)
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
        _save(student, options.out / "nacre-rerank")
    print(json.dumps(found, indent=1))


def _mined(corpus: examples.Corpus, weights: Any, pieces: Any) -> dict[str, Any]:
    base = network.begun(weights, list(range(LAYERS))).to(DEVICE).eval()
    base.dropout = 0.0
    asked = [each.pieces for each in corpus.questions]
    questions = examples.vectors(base, asked, DEVICE)
    found: dict[str, Any] = {"common": examples.common_pieces(pieces)}
    for name, units in (("sentences", corpus.sentences), ("paragraphs", corpus.paragraphs)):
        texts = [each.pieces for each in units]
        near = examples.vectors(base, texts, DEVICE, 192)
        lexical = examples.bm25_weights(texts, len(weights["words"]), DEVICE)
        found[name] = examples.nearest(questions, near, asked, lexical, len(weights["words"]), 30)
    return found


def _trained(
    model: Any, teachers: Any, train: list[int], checks: Any, made_of: Any, rate: float, steps: int
) -> dict[str, float]:
    """Train with a rate that rises and then falls to nothing."""
    trained = [each for each in model.parameters() if each.requires_grad]
    decayed = [each for each in trained if each.ndim > 1]
    others = [each for each in trained if each.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}], lr=rate, fused=True
    )
    generator = np.random.default_rng(3)
    start, losses = time.time(), []
    with ProcessPoolExecutor(14, initializer=_begin, initargs=made_of) as workers:
        pending: list[Any] = []

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
            ids_on, mask = _sent(ids, lengths)
            model.train()
            with torch.autocast(DEVICE, torch.bfloat16):
                scores = model(ids_on, mask).float().view(-1, MANY + 1)
            right = torch.zeros(len(scores), dtype=torch.long, device=DEVICE)
            loss = functional.cross_entropy(scores, right, label_smoothing=SMOOTHING)
            if teachers:
                for each in teachers:
                    each.eval()
                with torch.no_grad(), torch.autocast(DEVICE, torch.bfloat16):
                    wanted = sum(each(ids_on, mask).float() for each in teachers).view(-1, MANY + 1) / len(teachers)
                learned = functional.kl_div(
                    functional.log_softmax(scores, 1),
                    functional.log_softmax(wanted, 1),
                    log_target=True,
                    reduction="batchmean",
                )
                loss = 0.3 * loss + 0.7 * learned
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


def _sent(ids: Any, lengths: Any) -> tuple[Any, Any]:
    ids_on = torch.from_numpy(ids).to(DEVICE, non_blocking=True).long()
    places = torch.arange(ids_on.shape[1], device=DEVICE)
    return ids_on, (places[None, :] < torch.from_numpy(lengths).to(DEVICE)[:, None]).long()


@torch.no_grad()
def _checked(model: Any, checks: Any) -> dict[str, float]:
    model.eval()
    ranks = []
    for ids, lengths in checks:
        ids_on, mask = _sent(ids, lengths)
        with torch.autocast(DEVICE, torch.bfloat16):
            scores = model(ids_on, mask).float()
        ranks.append(1 + int((scores[1:] > scores[0]).sum()))
    ranked = np.array(ranks)
    return {"first": float((ranked == 1).mean()), "mrr": float((1 / ranked).mean())}


def _save(model: Any, path: Path) -> None:
    """Half-precision weights without the words, which are those of the sentence model; in two files, by layer."""
    state = {name: value.detach().half().cpu().numpy() for name, value in model.state_dict().items()}
    del state["words.weight"]
    late = {name for name in state if name.startswith("layers.") and int(name.split(".")[1]) >= 3}
    np.savez(path.with_suffix(".a.npz"), **{name: state[name] for name in state if name not in late})
    if late:
        np.savez(path.with_suffix(".b.npz"), **{name: state[name] for name in late})


if __name__ == "__main__":
    main()

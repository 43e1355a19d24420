"""Trains a large teacher on a GPU: a cross-encoder with the twelve layers of gte-small.

    python training/train_teacher.py --base gte-small/model.onnx --squad squad-train-v1.1.json.gz --qmsum qmsum \\
        --friendsqa friendsqa --code code_pairs.jsonl.gz --out large.pt

It learns from the labels of the lists that late interaction learns from, code among them. It is never shipped.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

import network
import token_data
from train_reranker import MANY, MODEL, SMOOTHING

LAYERS = 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    token_data.add_arguments(parser)
    parser.add_argument("--questions", type=int, default=64, help="per step")
    parser.add_argument("--base", type=Path, required=True, help="gte-small in ONNX, in 32-bit floats")
    parser.add_argument("--out", type=Path, required=True, help="file for the weights")
    parser.add_argument("--steps", type=int, default=2_400)
    parser.add_argument("--rate", type=float, default=6e-5)
    options = parser.parse_args()
    torch.manual_seed(1)
    sources = token_data.read(options, MODEL).sources
    base = network.bert_weights(options.base)
    model = network.initialised(base, list(range(LAYERS))).to(options.device)
    _train(model, sources, options)
    network.save(model, options.out)


def _train(model: network.CrossEncoder, sources: token_data.Sources, options: argparse.Namespace) -> None:
    optimizer = torch.optim.AdamW(
        network.decay_groups(model.parameters()), lr=options.rate, fused=options.device == "cuda"
    )
    losses: list[torch.Tensor] = []
    start = time.time()
    with token_data.batches(sources, MODEL, MANY, options) as (made, checks):
        for step, share in enumerate(token_data.shares(options)):
            for group in optimizer.param_groups:
                group["lr"] = token_data.rate_at(share, options.rate)
            model.train()
            scores = token_data.scored(model, next(made).pairs, options.device).view(-1, MANY + 1)
            right = torch.zeros(len(scores), dtype=torch.long, device=options.device)
            loss = functional.cross_entropy(scores, right, label_smoothing=SMOOTHING)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.detach())
            if step % 250 == 249:
                mean = torch.stack(losses[-250:]).mean().item()
                print(f"step {step + 1}, {time.time() - start:.0f} s, loss {mean:.4f}", flush=True)
        model.eval()
        first = []
        for batch in checks():
            with torch.no_grad():
                scores = token_data.scored(model, batch.pairs, options.device).view(-1, MANY + 1)
            first.append(float((scores.argmax(1) == 0).float().mean()))
        print(f"first in {np.mean(first):.4f} of the held-out lists")


if __name__ == "__main__":
    main()

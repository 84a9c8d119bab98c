"""Stop a training when its law has settled, and say what that saved and what it cost, over several seeds.

    python examples/stop_by_the_law.py --epochs 100 --seeds 3 --out FOLDER

A network of eight layers is trained on the Fashion-MNIST that the package holds (10 × 10 pixels, 6,000 samples), for all its
epochs. A Tracker reads it after each: the epoch at which `tracker.settled` first says so is where the training would have
stopped. Since a tracked training is bit for bit the training without, one training shows both ends: test accuracy on all
2,000 test samples there, and after the last epoch.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import equisep
from equisep.data import prepare_split
from equisep.tracking import Settled, Stopping

DEPTH, WIDTH, BATCH, RATE = 8, 100, 100, 0.03


class Ends(NamedTuple):
    """Both ends of one training: where it would have stopped, and where it did."""

    seed: int
    stopped: int | None
    reason: str
    accuracy_stopped: float | None
    accuracy_last: float
    best: float
    reading_share: float


def main(words: Sequence[str] | None = None) -> list[Ends]:
    """Train each seed, and print a line for each and one for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--window", type=int, default=Stopping().window, help="readings without anything better")
    parser.add_argument("--out", type=Path, help="a folder for the histories and their drawings")
    asked = parser.parse_args(words)
    found = [trained(seed, asked.epochs, Stopping(window=asked.window), asked.out) for seed in range(asked.seeds)]
    for ends in found:
        last = f"{100 * ends.accuracy_last:.2f} % after {asked.epochs} epochs, {100 * ends.best:.2f} % at best"
        if ends.stopped is None or ends.accuracy_stopped is None:
            print(f"seed {ends.seed}: did not settle in {asked.epochs} epochs ({ends.reason}); test accuracy {last}")
            continue
        print(
            f"seed {ends.seed}: settled at epoch {ends.stopped}, {asked.epochs - ends.stopped} epochs saved; test accuracy "
            f"{100 * ends.accuracy_stopped:.2f} %, {last}; readings took {100 * ends.reading_share:.1f} % of the time"
        )
        print(f"  {ends.reason}")
    settled = [ends for ends in found if ends.stopped is not None and ends.accuracy_stopped is not None]
    if settled:
        saved = sum(1 - (ends.stopped or 0) / asked.epochs for ends in settled) / len(settled)
        lost = [100 * (ends.accuracy_last - (ends.accuracy_stopped or 0)) for ends in settled]
        print(
            f"{len(settled)} of {len(found)} seeds settled: {100 * saved:.0f} % of the epochs saved on average; training on "
            f"gained {sum(lost) / len(lost):+.2f} points of test accuracy on average ({min(lost):+.2f} to {max(lost):+.2f})"
        )
    return found


def trained(seed: int, epochs: int, stopping: Stopping, out: Path | None) -> Ends:
    """One training to its last epoch, and where it would have stopped."""
    data = equisep.load_data("embedded-10x10")
    x, y = prepare_split(data, "he2023-10x10")
    x_test, y_test = prepare_split(data, "he2023-10x10", split="test")
    torch.manual_seed(seed)
    model = equisep.Fnn(DEPTH, width=WIDTH, inputs=100, classes=10)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
    loader = DataLoader(TensorDataset(x, y), batch_size=BATCH, shuffle=True)
    history = None if out is None else out / f"seed-{seed}.jsonl"
    if history is not None:
        history.unlink(missing_ok=True)
    tracker = equisep.Tracker(model, loader, test=(x_test, y_test), stopping=stopping, history=history)
    settled: Settled | None = None
    stopped, accuracies, reading = None, [], 0.0
    begun = time.perf_counter()
    for epoch in range(1, epochs + 1):
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        before = time.perf_counter()
        tracker.epoch(epoch)
        reading += time.perf_counter() - before
        accuracies.append(accuracy(model, x_test, y_test))
        if settled is None and tracker.settled:
            settled, stopped = tracker.settled, epoch  # a training that is to stop here would `break`
    if out is not None:
        tracker.history.plot(out / f"seed-{seed}.png")
    return Ends(
        seed=seed,
        stopped=stopped,
        reason=(settled or tracker.settled).reason,
        accuracy_stopped=None if stopped is None else accuracies[stopped - 1],
        accuracy_last=accuracies[-1],
        best=max(accuracies),
        reading_share=reading / (time.perf_counter() - begun),
    )


@torch.no_grad()
def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Of the network itself, on all samples."""
    model.eval()
    right = float((model(x).argmax(dim=1) == y).float().mean())
    model.train()
    return right


if __name__ == "__main__":
    main()

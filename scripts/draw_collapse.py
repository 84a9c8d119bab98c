"""Train a small network on four classes and draw its neural collapse in three dimensions: docs/images/neural-collapse.*.

    python scripts/draw_collapse.py
    python scripts/draw_collapse.py --epochs 50 --out folder

The centered means of four classes span three dimensions, and a simplex ETF of four vectors is a regular tetrahedron: what
is drawn is all there is of the class means, and of the samples their part in that space.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch

import equisep
from equisep.data import load_data, prepare_split
from equisep.models import Fnn
from equisep.report.peeled.vector_plots import (
    CLASSES,
    CollapseFrame,
    collapse_frame,
    plot_collapse,
    save_collapse_film,
)
from equisep.training import Recipe

REPO = Path(__file__).resolve().parents[1]
PER_CLASS = 100
STILLS = 4


def main() -> None:
    """Train, draw, and say what was written."""
    asked = arguments()
    names, frames = trained_frames(asked.epochs)
    asked.out.mkdir(parents=True, exist_ok=True)
    still, film = asked.out / "neural-collapse.png", asked.out / "neural-collapse.gif"
    chosen = [frames[round(at * (len(frames) - 1) / (STILLS - 1))] for at in range(STILLS)]
    plot_collapse(chosen, names).savefig(still, dpi=130)
    save_collapse_film(frames, names, film)
    for path in (still, film):
        print(f"equisep: wrote {path}, {path.stat().st_size / 1024:.0f} KiB")


def trained_frames(epochs: int) -> tuple[list[str], list[CollapseFrame]]:
    """The names of the classes, and the last layer of an 8-layer network at epochs that lie ever farther apart."""
    data = load_data("embedded-10x10")
    x, y = prepare_split(data, "he2023-10x10")
    rows = torch.cat([torch.nonzero(y == label)[:PER_CLASS, 0] for label in range(CLASSES)])
    x, y = x[rows], y[rows]
    torch.manual_seed(0)
    model = Fnn(depth=8, width=100, inputs=x[0].numel(), classes=CLASSES)
    wanted = {0, *(round(epochs ** (step / 36)) for step in range(37))}
    frames: list[CollapseFrame] = []

    def read(epoch: int) -> None:
        if epoch in wanted:
            frames.append(_frame(model, x, y, epoch))

    equisep.train(model, x, y, recipe=Recipe(optimizer="adam", rate=1e-3, epochs=epochs, seed=0), after_epoch=read)
    return list(data.class_names[:CLASSES]), frames


def _frame(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor, epoch: int) -> CollapseFrame:
    """What the classifier reads, in eval mode."""
    head = [module for module in model.modules() if isinstance(module, torch.nn.Linear)][-1]
    kept: list[torch.Tensor] = []
    watch = head.register_forward_pre_hook(lambda _, inputs: kept.append(inputs[0]))
    model.eval()
    with torch.no_grad():
        scores = model(x)
    watch.remove()
    features = kept[0].double()
    return collapse_frame(
        epoch, features.numpy(), y.numpy(), head.weight.detach().double().numpy(),
        fuzziness=float(equisep.fuzziness(features, y)), accuracy=float((scores.argmax(1) == y).double().mean()),
    )  # fmt: skip


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=300, help="how long to train (300)")
    parser.add_argument("--out", type=Path, default=REPO / "docs" / "images", help="the folder written to")
    return parser.parse_args(given)


if __name__ == "__main__":
    main()

"""Train a small network on four classes and draw its neural collapse in three dimensions: docs/images/neural-collapse.*.

    python scripts/draw_collapse.py
    python scripts/draw_collapse.py --epochs 50 --out folder

The centered means of four classes span three dimensions, and a simplex ETF of four vectors is a regular tetrahedron: what
is drawn is all there is of the class means, and of the samples their part in that space.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.animation import PillowWriter
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import equisep
from equisep.data import load_data, prepare_split
from equisep.errors import InputError
from equisep.models import Fnn
from equisep.peeled.vectors import simplex
from equisep.report.plots import LINE_COLORS
from equisep.shapes import Float64, Int
from equisep.training import Recipe

REPO = Path(__file__).resolve().parents[1]
CLASSES = 4  # whose centered means span three dimensions
_ZOOM = 1.6  # at which a ball that reaches the limits fills its axes, from whatever side
_PANEL, _HEAD, _FOOT = 2.9, 0.5, 0.4  # inches: a still, its title above it, the key below all
_ACROSS = 4  # stills in a row
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
    parser.add_argument("--epochs", type=int, default=600, help="how long to train (600)")
    parser.add_argument("--out", type=Path, default=REPO / "docs" / "images", help="the folder written to")
    return parser.parse_args(given)


@dataclass(frozen=True, slots=True, eq=False)
class CollapseFrame:
    """The last layer at one epoch, in the space that the class means span: samples, class means and classifiers.

    Everything is centered, turned as near to a regular tetrahedron as it goes, and scaled to class means of mean norm 1;
    classifiers are scaled to their own. `fuzziness` is D of these features, `accuracy` that of the network, on the samples.
    """

    epoch: int
    samples: Float64[np.ndarray, "n 3"]
    labels: Int[np.ndarray, " n"]
    means: Float64[np.ndarray, "4 3"]
    classifiers: Float64[np.ndarray, "4 3"]
    fuzziness: float
    accuracy: float


def collapse_frame(
    epoch: int,
    features: Float64[np.ndarray, "n d"],
    labels: Int[np.ndarray, " n"],
    classifiers: Float64[np.ndarray, "4 d"],
    *,
    fuzziness: float,
    accuracy: float,
) -> CollapseFrame:
    """Project features and classifiers onto the three dimensions of the centered class means of this epoch."""
    if sorted(set(labels.tolist())) != list(range(CLASSES)):
        raise InputError(
            f"Neural collapse is drawn of the classes 0, 1, 2 and 3; found {len(set(labels.tolist()))} classes. Choose four."
        )
    by_class = np.stack([features[labels == label].mean(axis=0) for label in range(CLASSES)])
    middle = by_class.mean(axis=0)
    _, _, axes = np.linalg.svd(by_class - middle, full_matrices=False)
    axes = axes[: CLASSES - 1].T
    means = (by_class - middle) @ axes
    left, _, right = np.linalg.svd(means.T @ simplex(CLASSES))
    turn = axes @ left @ right
    scale = float(np.linalg.norm(means, axis=1).mean())
    weights = (classifiers - classifiers.mean(axis=0)) @ turn
    return CollapseFrame(
        epoch=epoch,
        samples=(features - middle) @ turn / scale,
        labels=labels,
        means=(by_class - middle) @ turn / scale,
        classifiers=weights / float(np.linalg.norm(weights, axis=1).mean()),
        fuzziness=fuzziness,
        accuracy=accuracy,
    )


def plot_collapse(frames: Sequence[CollapseFrame], names: Sequence[str]) -> Figure:
    """Stills of some epochs, four in a row: samples as points, class means as arrows, classifiers dashed, the simplex pale."""
    if not frames:
        raise InputError("`plot_collapse` needs at least one epoch; found none. Pass what `collapse_frame` returns.")
    rows = math.ceil(len(frames) / _ACROSS)
    columns = min(_ACROSS, len(frames))
    wide, high = _PANEL * columns, (_PANEL + _HEAD) * rows + _FOOT
    figure = Figure(figsize=(wide, high))
    figure.subplots_adjust(0, _FOOT / high, 1, 1 - _HEAD / high, wspace=0, hspace=_HEAD / _PANEL)
    for index, frame in enumerate(frames):
        axes: Any = figure.add_subplot(rows, columns, index + 1, projection="3d")
        _draw_frame(axes, frame, azimuth=-62.0, reach=_reach([frame]))
    figure.legend(handles=_keys(names), loc="lower center", ncols=6, frameon=False, fontsize=8)
    return figure


def save_collapse_film(
    frames: Sequence[CollapseFrame], names: Sequence[str], path: str | Path, *, dpi: int = 90
) -> Path:
    """The same as an animated GIF, turning slowly; the last epoch stays for a while."""
    target = Path(path)
    if target.suffix.lower() != ".gif":
        raise InputError(f"An animation cannot be saved as `{target.name}`. Let its name end in .gif.")
    figure = Figure(figsize=(4.4, 4.9))
    FigureCanvasAgg(figure)
    axes: Any = figure.add_axes((0.0, 0.1, 1.0, 0.82), projection="3d")
    figure.legend(handles=_keys(names), loc="lower center", ncols=3, frameon=False, fontsize=8)
    writer = PillowWriter(fps=6)
    shown = [*frames, *[frames[-1]] * 8]
    with writer.saving(figure, str(target), dpi):
        for index, frame in enumerate(shown):
            axes.clear()
            # what is still to come fits too, so that the scale only grows
            _draw_frame(axes, frame, azimuth=-80.0 + 40.0 * index / len(shown), reach=_reach(shown[index:]))
            writer.grab_frame()
    return target


def _reach(frames: Sequence[CollapseFrame]) -> float:
    """How far from the middle anything of these epochs lies, so that no sample is cut off or runs through a title."""
    drawn = (vectors for frame in frames for vectors in (frame.samples, frame.means, frame.classifiers))
    return max(1.0, *(float(np.linalg.norm(vectors, axis=1).max()) for vectors in drawn))


def _draw_frame(axes: Any, frame: CollapseFrame, *, azimuth: float, reach: float) -> None:
    ideal = simplex(CLASSES)
    for k in range(CLASSES):
        for other in range(k):
            axes.plot(*np.stack([ideal[k], ideal[other]]).T, color="0.85", linewidth=0.7)
    for k in range(CLASSES):
        color = LINE_COLORS[k]
        own = frame.samples[frame.labels == k]
        axes.scatter(*own.T, s=5, color=color, alpha=0.55, linewidths=0, depthshade=False)
        axes.quiver(0, 0, 0, *frame.means[k], color=color, linewidth=1.8, arrow_length_ratio=0.1)
        axes.plot(*np.stack([np.zeros(3), frame.classifiers[k]]).T, color="0.25", linewidth=1.1, linestyle=(0, (3, 2)))
    for limits in (axes.set_xlim, axes.set_ylim, axes.set_zlim):
        limits(-reach, reach)
    axes.set_box_aspect((1, 1, 1), zoom=_ZOOM)
    axes.view_init(elev=14, azim=azimuth)
    axes.set_axis_off()
    title = f"epoch {frame.epoch}\nD = {frame.fuzziness:.3g}, training accuracy {100 * frame.accuracy:.1f} %"
    axes.set_title(title, fontsize=8.5, y=1.0).set_y(1.0)  # axes in three dimensions put theirs into the drawing


def _keys(names: Sequence[str]) -> list[Line2D]:
    dot: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4}
    keys = [Line2D([], [], color=LINE_COLORS[k], label=name, **dot) for k, name in enumerate(names)]
    keys.append(Line2D([], [], color="0.4", linewidth=1.8, label="class means"))
    return [*keys, Line2D([], [], color="0.25", linestyle=(0, (3, 2)), label="classifiers")]


if __name__ == "__main__":
    main()

"""What a figure will cost: arithmetic of its trainings, and from it time and memory on a kind of device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch.utils.flop_counter import FlopCounterMode

from equisep.data import named_preparation
from equisep.data.official.sources import SOURCES
from equisep.errors import InputError
from equisep.figures.cell import Cell, Training
from equisep.figures.course import course_epochs
from equisep.figures.figure import Figure
from equisep.runs.plan import RunOptions, cells_to_run, groups_of, runner_of
from equisep.runs.runners.architecture import network_of
from equisep.runs.runners.cells import shape_of
from equisep.runs.runners.encoders import CLASSES as TEXT_CLASSES

MOMENTS = {"adam": 2, "adamw": 2, "momentum": 1, "sgd": 0}
CLASSES, PER_CLASS = 10, 500  # of a data set that is nobody's official one
SET_UP = 0.5  # seconds that any group takes: its data, its networks, what is stored


@dataclass(frozen=True, slots=True)
class Speed:
    """What a device does: operations a second, and seconds that any layer of any step takes at the least.

    Measured on two cores and on one H200 with the records in `benchmarks/results`; another device differs. A single network
    on the H200 is one of `convolutions-nvidia-h200-*`, by itself, in TF32 and from graphs. Encoders train in float32, as
    ensembles do, and go by their rate.
    """

    name: str
    ensemble: float
    single: float
    step: float


SPEEDS = {
    "cpu": Speed("two CPU cores", ensemble=6e10, single=4e10, step=2e-5),
    "cuda": Speed("one H200", ensemble=1.5e13, single=1.5e14, step=8e-5),
}


@dataclass(frozen=True, slots=True)
class Prediction:
    """Cells, groups, seconds on the device, and the bytes of the largest group."""

    cells: int
    groups: int
    seconds: float
    bytes: int
    device: str


def predict(figure: Figure, *, scale: str = "paper", device: str | None = None) -> Prediction:
    """The cost of a whole figure; nothing is loaded or trained."""
    return predict_cells([plan.cell for plan in cells_to_run(figure, RunOptions(scale=scale))], device=device)


def predict_cells(cells: Sequence[Cell], *, device: str | None = None) -> Prediction:
    """The cost of some cells."""
    speed = SPEEDS["cuda" if (device or "cpu").startswith("cuda") else "cpu"]
    groups = groups_of(cells)
    costs = [_cost(group, speed) for group in groups]
    return Prediction(
        cells=sum(len(group) for group in groups),
        groups=len(groups),
        seconds=sum(seconds for seconds, _ in costs),
        bytes=max((size for _, size in costs), default=0),
        device=speed.name,
    )


def _cost(group: Sequence[Cell], speed: Speed) -> tuple[float, int]:
    """Seconds and bytes of one group; a step is three times the arithmetic of a forward pass."""
    cell = group[0]
    if not isinstance(cell, Training):
        return 0.2 * len(group), 2**20
    forward, parameters, activations, layers = _network(cell)
    n = samples_of(cell)
    epochs = cell.epochs + (cell.stages.first_epochs + cell.stages.last_epochs if cell.stages else 0)
    steps = epochs * -(-n // cell.batch_size)
    watched = {*cell.read_epochs, *course_epochs(cell), cell.epochs}
    reads = len(watched) * len(cell.readings) * len(cell.grains) * len(cell.reductions)
    reads += len(cell.noise) * cell.noise_draws
    work = len(group) * forward * n * (3 * epochs + 4 * reads)
    rate = speed.single if runner_of(cell) == "networks" else speed.ensemble
    size = 4 * ((2 + MOMENTS.get(cell.optimizer, 2)) * parameters + 3 * activations * cell.batch_size)
    return SET_UP + work / rate + steps * layers * speed.step, len(group) * size


def samples_of(cell: Training) -> int:
    """How many samples an epoch has."""
    if cell.sizes is not None:
        often = cell.copies or (1,) * len(cell.sizes)
        drawn = sum(size * times for size, times in zip(cell.sizes, often, strict=True))
        return drawn + (0 if cell.second_read else cell.second * len(cell.sizes))
    source = SOURCES.get(cell.data)
    known = TEXT_CLASSES if runner_of(cell) == "encoders" else CLASSES if source is None else source.classes
    classes = known if cell.classes is None else len(cell.classes)
    whole = PER_CLASS * classes if source is None else source.samples[0] * classes // known
    drawn = whole if cell.per_class is None else cell.per_class * classes
    drawn = drawn if cell.copies is None else drawn * sum(cell.copies) // len(cell.copies)
    return drawn + (0 if cell.second_read else cell.second * classes)


@lru_cache(maxsize=256)
def _shape_cost(cell: Training) -> tuple[float, int, int, int]:
    side, colors = _image(cell)
    if runner_of(cell) == "ensembles":
        shape = shape_of(cell, inputs=colors * side * side, classes=CLASSES)
        layers = sum(a * b for a, b in shape.layers)
        return 2.0 * layers, shape.parameters, shape.inputs + 3 * sum(shape.widths), shape.depth
    if runner_of(cell) == "encoders":
        width, tokens, layers = 768 * cell.width_multiplier, 30, 12
        parameters = int(layers * 12 * width**2)
        return 2.0 * parameters * tokens, parameters, int(layers * tokens * 20 * width), 16 * layers
    try:
        return _meta_cost(cell, side, colors)
    except Exception as error:  # of code that is not ours: it may want other images, or numbers
        if ":" not in cell.network:
            raise
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise InputError(
            f"What `{cell.network}` costs cannot be told without running it, on images of {colors} × {side} × {side} that hold "
            f"no numbers ({type(error).__name__}: {reason}). Run it without `--plan`."
        ) from error


def _meta_cost(cell: Training, side: int, colors: int) -> tuple[float, int, int, int]:
    """What one forward pass of a network costs, counted without computing it."""
    with torch.device("meta"):
        images = torch.zeros(2, colors, side, side)
        network = network_of(cell, images, classes=CLASSES).to("meta").eval()
        sizes: list[int] = []
        leaves = [module for module in network.modules() if not list(module.children())]
        handles = [module.register_forward_hook(lambda _, __, out: sizes.append(out.numel() // 2)) for module in leaves]
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            network(images)
        for handle in handles:
            handle.remove()
    parameters = sum(parameter.numel() for parameter in network.parameters())
    return counter.get_total_flops() / 2, parameters, sum(sizes), len(leaves)


def _network(cell: Training) -> tuple[float, int, int, int]:
    """Operations of a forward pass of one sample, parameters, numbers kept for the backward pass, and layers."""
    kept = (
        "network",
        "depth",
        "width",
        "widths",
        "channels",
        "kernel",
        "pooling",
        "width_multiplier",
        "preparation",
        "norm",
    )
    return _shape_cost(Training(augment=cell.augment, **{name: getattr(cell, name) for name in kept}))


def _image(cell: Training) -> tuple[int, int]:
    """Side and colors of a cell's images."""
    preparation = named_preparation(cell.preparation)
    side = 28 if preparation.size is None else preparation.size[0]
    mean = () if preparation.normalize is None else preparation.normalize[0]
    return side, max(1, len(mean)) if isinstance(mean, tuple) else 1

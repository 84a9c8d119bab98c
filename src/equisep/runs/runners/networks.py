"""Cells of convolutional networks: built by name, trained one by one, read at the epochs, grains and reductions asked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from equisep.data import Batches
from equisep.devices import precision, provenance, usable_device
from equisep.errors import DivergenceError, InputError
from equisep.figures.cell import Cell
from equisep.figures.outcome import Curve, Curves, Outcome
from equisep.measuring import measure
from equisep.models import build
from equisep.progress import Progress, silent
from equisep.results import Profile, reading_named
from equisep.runs.cell_data import material_of
from equisep.runs.plan import FEED_FORWARD
from equisep.runs.runners.classifiers import classifier_numbers
from equisep.runs.runners.ensembles import coordinates_of, dtype_of, recipe_of, shape_of, weighed
from equisep.taps import Mode, reading_mode
from equisep.training import train
from equisep.training.augment import augment

METRICS = ("fuzziness", "cdnv", "ncc")
# networks that take no depth, width or channels of their own: the cell's defaults are the feed-forward network's
PLAIN = ("alexnet", "vgg", "resnet", "densenet")
DIVERGED = "Training diverged at epoch {}."


def run_single(
    cells: Sequence[Cell], *, device: str | None = None, data_dir: str | None = None, progress: Progress = silent
) -> tuple[list[Outcome], dict[str, Any]]:
    """The outcomes of cells, one network after the other."""
    place = usable_device(device, asked="equisep figures run")
    outcomes = []
    checksum = ""
    for cell in cells:
        _refuse_side_by_side_only(cell)
        material = material_of([cell], data_dir=data_dir)
        x, y = (part.to(place) for part in material.of(0))
        x_test, y_test = (part.to(place) for part in material.test)
        dtype = dtype_of(cell)
        network = network_of(cell, x, classes=material.classes).to(place, dtype)
        reader = _Reader(cell, network, (x.to(dtype), y), (x_test.to(dtype), y_test))
        with precision(tf32=cell.tf32):
            loss, diverged = _trained(cell, network, x.to(dtype), y, reader, progress)
            if diverged is None:
                reader.read(cell.epochs)
                reader.curves += weighed(cell, network, x.to(dtype), y)
            outcomes.append(_outcome(cell, reader, loss, diverged, classes=material.classes))
        checksum = material.checksum
    made = {**provenance(place, dtype_of(cells[0])), "data": checksum, "engine": "single", "tf32": cells[0].tf32}
    return outcomes, made


def _refuse_side_by_side_only(cell: Cell) -> None:
    """What only feed-forward networks on plain images can do, as they train side by side."""
    asked = {"stages": cell.kind == "staged", "noise on weights": bool(cell.noise), "`second_read`": cell.second_read}
    found = [name for name, wanted in asked.items() if wanted]
    if found:
        what = f"`{cell.network}`{' on augmented images' if cell.augment else ''}"
        raise InputError(
            f"{what} trains by itself, where {' and '.join(found)} cannot be had. Use `fnn` without augmentation."
        )


def network_of(cell: Cell, x: Tensor, *, classes: int) -> nn.Module:
    """The cell's network with the weights of its seed, for images like `x`."""
    if cell.network in FEED_FORWARD:
        return shape_of(cell, inputs=x[0].numel(), classes=classes).build(cell.seed)
    options: dict[str, Any] = {"colors": x.shape[1], "classes": classes}
    if not cell.network.startswith(PLAIN):
        options |= {
            name: value for name in ("depth", "width", "channels") if (value := getattr(cell, name)) is not None
        }
    if cell.network == "pure-cnn":
        options.pop("width", None)
    if not cell.network.startswith(("resnet18", "resnet20", "densenet")):
        options["size"] = x.shape[2]
    if cell.kernel is not None:
        options["kernel"] = cell.kernel
    if cell.pooling is not None:
        options["pool"] = cell.pooling
    if cell.widths is not None:
        options["hidden"] = cell.widths
    return build(cell.network, seed=cell.seed, width_multiplier=cell.width_multiplier, **options)


def _trained(
    cell: Cell, network: nn.Module, x: Tensor, y: Tensor, reader: _Reader, progress: Progress
) -> tuple[float | None, int | None]:
    """Train the cell's network in place: its last loss, and the epoch at which it diverged."""

    def after(epoch: int) -> None:
        if epoch in cell.read_epochs and epoch < cell.epochs:
            reader.read(epoch)

    try:
        history = train(
            network, x, y, recipe=recipe_of(cell), class_weights=cell.class_weights,
            augment=augment if cell.augment else None, after_epoch=after, progress=progress,
        )  # fmt: skip
    except DivergenceError as error:
        return None, error.epoch
    return (history.loss[-1] if history.loss else None), None


class _Reader:
    """Reads one network at chosen epochs, in every mode, grain and reduction of its cell, and keeps the curves."""

    def __init__(
        self, cell: Cell, network: nn.Module, data: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]
    ) -> None:
        self.cell, self.network, self.data, self.test = cell, network, data, test
        self.curves: list[Curves] = []

    def read(self, epoch: int) -> None:
        """All readings at one epoch."""
        cell = self.cell
        for mode in cast("tuple[Mode, ...]", cell.modes):
            accuracy_test = accuracy_of(self.network, *self.test, mode=mode)
            for grain in cell.grains:
                for reduction in cell.reductions:
                    profile = measure(
                        self.network, Batches(*self.data), Batches(*self.test) if cell.test_sites else None, sites=grain,
                        reduction=reduction, mode=mode, metrics=_metrics(cell), intervals="none", coordinates=0,
                    )  # fmt: skip
                    self.curves.append(curves_of(profile, cell, epoch, mode, grain, reduction, accuracy_test))


def _metrics(cell: Cell) -> list[str]:
    return [*METRICS, *(["class_fuzziness"] if cell.class_wise else [])]


def curves_of(
    profile: Profile, cell: Cell, epoch: int, mode: str, grain: str, reduction: str, accuracy_test: float | None
) -> Curves:
    """A profile as the curves of one reading."""

    def row(name: str) -> Curve:
        values = tuple(getattr(site, name) for site in profile.sites)
        return () if all(value is None for value in values) else values

    by_class: tuple[Curve, ...] = ()
    if cell.class_wise:
        table = [site.class_fuzziness for site in profile.sites]
        by_class = tuple(tuple(own[k] if own else None for own in table) for k in range(profile.classes))
    return Curves(
        epoch=epoch, mode=mode, grain=grain, reduction=reduction, sites=tuple(site.name for site in profile.sites),
        fuzziness=row("fuzziness"), cdnv=row("cdnv"), ncc=row("ncc_train"), fuzziness_test=row("fuzziness_test"),
        cdnv_test=row("cdnv_test"), ncc_test=row("ncc_test"), class_fuzziness=by_class,
        accuracy=profile.accuracy_train, accuracy_test=accuracy_test,
    )  # fmt: skip


@torch.no_grad()
def accuracy_of(network: nn.Module, x: Tensor, y: Tensor, *, mode: Mode) -> float:
    """The share of samples that the network names rightly, read in the batches of `measure`."""
    with reading_mode(network, reading_named("eval", mode=mode)):
        hits = sum(int((network(part).argmax(dim=1) == labels).sum()) for part, labels in Batches(x, y))
    return hits / len(y)


def _outcome(cell: Cell, reader: _Reader, loss: float | None, diverged: int | None, *, classes: int) -> Outcome:
    numbers: dict[str, float | None] = {"final_loss": loss if loss is not None and math.isfinite(loss) else None}
    arrays: dict[str, Curve] = {}
    points: dict[str, tuple[tuple[float, ...], ...]] = {}
    if diverged is None and cell.classifier:
        own, arrays = classifier_numbers(
            reader.network, head_of(reader.network), reader.data, reader.test, classes=classes
        )
        numbers |= own
    if diverged is None and cell.coordinates:
        points = coordinates_of(cell, reader.network, *reader.data)
    notes = () if diverged is None else (DIVERGED.format(diverged),)
    return Outcome(
        readings=tuple(reader.curves), numbers=numbers, arrays=arrays, points=points, diverged=diverged, notes=notes
    )


def head_of(network: nn.Module) -> nn.Linear:
    """The classifier of the papers' networks, under the name its family gives it."""
    head = getattr(network, "head", None) or network.get_submodule("linear")
    assert isinstance(head, nn.Linear)
    return head

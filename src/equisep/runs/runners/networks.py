"""Cells of convolutional networks: built by name, trained one by one, read at the epochs, grains and reductions asked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from equisep.data import Batches
from equisep.data.sampling import ORDER, permutation
from equisep.devices import precision, provenance, usable_device
from equisep.errors import DivergenceError, InputError
from equisep.figures.cell import Training
from equisep.figures.outcome import Curve, Curves, Outcome
from equisep.files import json_text, parse_json
from equisep.measuring import measure
from equisep.progress import Progress, silent
from equisep.results import Profile, Reading
from equisep.runs.cell_data import cell_data_of
from equisep.runs.cell_files import checkpoint_path
from equisep.runs.runners.architecture import code_of, network_of
from equisep.runs.runners.cells import coordinates_of, dtype_of, loss_terms, recipe_of, weighed
from equisep.runs.runners.classifiers import classifier_numbers
from equisep.taps import reading_mode
from equisep.training import train
from equisep.training.augment import CROP_FLIP_ROTATE
from equisep.training.checkpoint import Checkpoint

METRICS = ("fuzziness", "cdnv", "ncc")
DIVERGED = "Training diverged at epoch {}."


def run_cells(
    cells: Sequence[Training],
    *,
    device: str | None = None,
    data_dir: str | None = None,
    progress: Progress = silent,
    checkpoints: Path | None = None,
) -> tuple[list[Outcome], dict[str, Any]]:
    """The outcomes of cells, one network after the other; a training that is cut off goes on from its checkpoint."""
    torch_device = usable_device(device, asked="equisep figures run")
    outcomes = []
    checksum, layout = "", torch.preserve_format
    for cell in cells:
        _refuse_side_by_side_only(cell)
        cell_data = cell_data_of([cell], data_dir=data_dir)
        x, y = (part.to(torch_device) for part in cell_data.of(0))
        x_test, y_test = (part.to(torch_device) for part in cell_data.test)
        dtype = dtype_of(cell)
        layout = _layout(cell, x)
        network = network_of(cell, x, classes=cell_data.classes).to(torch_device, dtype)
        network.to(memory_format=layout)  # type: ignore[call-overload]  # which torch's own types leave out
        x, x_test = (part.to(dtype, memory_format=layout) for part in (x, x_test))
        reader = _Reader(cell, network, (x, y), (x_test, y_test), cell_data.drawn[0])
        with precision(tf32=cell.tf32), _own_chance(cell, torch_device):
            kept = _checkpoint(cell, reader, checkpoints, torch_device)
            loss, diverged = _trained(cell, network, x, y, reader, progress, kept, classes=cell_data.classes)
            if diverged is None:
                reader.read(cell.epochs)
                reader.curves += weighed(cell, network, x, y, cell_data.drawn[0])
            outcomes.append(_outcome(cell, reader, loss, diverged, classes=cell_data.classes))
        checksum = cell_data.checksum
    made = {**provenance(torch_device, dtype_of(cells[0])), "data": checksum, "engine": "single", "tf32": cells[0].tf32}
    made |= {"layout": "channels last"} if layout == torch.channels_last else {}
    return outcomes, made | code_of(cells[0])


def _layout(cell: Training, x: Tensor) -> torch.memory_format:
    """How images and weights lie in memory: on a GPU all colors of a pixel together, as tensor cores take them.

    Whether steps are shorter so, `benchmarks/convolutions.py` measures network by network. The sums are the same in another
    order: last digits differ, and provenance names the layout. Code that is not ours may want its images as they come (`view`).
    """
    ours = ":" not in cell.network
    return torch.channels_last if ours and x.ndim == 4 and x.device.type == "cuda" else torch.preserve_format


@contextmanager
def _own_chance(cell: Training, device: torch.device) -> Iterator[None]:
    """What a network draws from torch while it trains, as for dropout, comes from the cell's seed."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(cell.seed)
        yield


def _refuse_side_by_side_only(cell: Training) -> None:
    """What only feed-forward networks on plain images can do, as they train side by side."""
    asked = {"stages": cell.stages is not None, "noise on weights": bool(cell.noise), "`second_read`": cell.second_read,
             "`fixed_etf`": cell.fixed_etf, "`validation`": bool(cell.validation), "`course`": bool(cell.course)}  # fmt: skip
    refused = [name for name, wanted in asked.items() if wanted]
    if refused:
        what = f"`{cell.network}`{' on augmented images' if cell.augment else ''}"
        raise InputError(
            f"{what} trains by itself, where {' and '.join(refused)} cannot be had. Use `fnn` with its own activation and "
            "sgd, momentum or adam, without augmentation."
        )


def _trained(
    cell: Training,
    network: nn.Module,
    x: Tensor,
    y: Tensor,
    reader: _Reader,
    progress: Progress,
    kept: Checkpoint | None,
    *,
    classes: int,
) -> tuple[float | None, int | None]:
    """Train the cell's network in place: its last loss, and the epoch at which it diverged."""

    def after(epoch: int) -> None:
        if epoch in cell.read_epochs and epoch < cell.epochs:
            reader.read(epoch)

    terms = loss_terms(cell, torch.bincount(y, minlength=classes).tolist())
    try:
        history = train(
            network, x, y, recipe=recipe_of(cell), class_weights=cell.class_weights if terms is None else terms.weights,
            weighted_mean=terms is not None, logit_adjustment=None if terms is None else terms.added,
            augment=CROP_FLIP_ROTATE if cell.augment else None, after_epoch=after, checkpoint=kept, progress=progress,
        )  # fmt: skip
    except DivergenceError as error:
        return None, error.epoch
    return (history.loss[-1] if history.loss else None), None


def _checkpoint(cell: Training, reader: _Reader, folder: Path | None, device: torch.device) -> Checkpoint | None:
    """Where the training of a cell is kept, with what was read of it so far."""
    if folder is None:
        return None

    def kept() -> str:
        return json_text(Outcome(readings=tuple(reader.curves)).to_dict())

    def taken(text: str) -> None:
        reader.curves = list(Outcome.from_dict(parse_json(text.encode(), name="checkpoint")).readings)

    return Checkpoint(checkpoint_path(folder, cell), name=f"{cell.key} {device.type}", kept=kept, taken=taken)


class _Reader:
    """Reads one network at chosen epochs, in every reading, grain and reduction of its cell, and keeps the curves."""

    def __init__(
        self,
        cell: Training,
        network: nn.Module,
        data: tuple[Tensor, Tensor],
        test: tuple[Tensor, Tensor],
        drawn: Tensor | None,
    ) -> None:
        self.cell, self.network, self.data, self.test, self.drawn = cell, network, data, test, drawn
        self.curves: list[Curves] = []

    def read(self, epoch: int) -> None:
        """All readings at one epoch."""
        cell = self.cell
        for reading in cast("tuple[Reading, ...]", cell.readings):
            accuracy_test = accuracy_of(self.network, *self.test, reading=reading)
            for grain in cell.grains:
                for reduction in cell.reductions:
                    profile = measure(
                        self.network, Batches(*self.data, drawn=self.drawn),
                        _test_batches(*self.test) if cell.test_sites else None, sites=grain,
                        reduction=reduction, reading=reading, metrics=_metrics(cell, last=epoch == cell.epochs),
                        intervals="none", coordinates=0,
                    )  # fmt: skip
                    self.curves.append(curves_of(profile, cell, epoch, reading, grain, reduction, accuracy_test))


def _test_batches(x: Tensor, y: Tensor) -> Batches:
    """Test data, which are taken whole: class-mixed in `drawn` too, as a shuffled walk through all of them is."""
    return Batches(x, y, drawn=torch.from_numpy(permutation(len(y), seed=0, use=ORDER)))


def _metrics(cell: Training, *, last: bool) -> list[str]:
    return [*METRICS, *(["null"] if last else []), *(["class_fuzziness"] if cell.class_wise else [])]


def curves_of(
    profile: Profile, cell: Training, epoch: int, reading: str, grain: str, reduction: str, accuracy_test: float | None
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
        epoch=epoch, reading=reading, grain=grain, reduction=reduction, sites=tuple(site.name for site in profile.sites),
        fuzziness=row("fuzziness"), chance=row("null"), cdnv=row("cdnv"), ncc=row("ncc_train"),
        fuzziness_test=row("fuzziness_test"), cdnv_test=row("cdnv_test"), ncc_test=row("ncc_test"), class_fuzziness=by_class,
        accuracy=profile.accuracy_train, accuracy_test=accuracy_test,
    )  # fmt: skip


@torch.no_grad()
def accuracy_of(network: nn.Module, x: Tensor, y: Tensor, *, reading: Reading) -> float:
    """The share of samples that the network names rightly, read in the batches of `measure`."""
    with reading_mode(network, reading):
        hits = sum(int((network(part).argmax(dim=1) == labels).sum()) for part, labels in Batches(x, y))
    return hits / len(y)


def _outcome(cell: Training, reader: _Reader, loss: float | None, diverged: int | None, *, classes: int) -> Outcome:
    numbers: dict[str, float | None] = {"final_loss": loss if loss is not None and math.isfinite(loss) else None}
    arrays: dict[str, Curve] = {}
    points: dict[str, tuple[tuple[float, ...], ...]] = {}
    if diverged is None and cell.classifier:
        own, arrays = classifier_numbers(
            reader.network,
            head_of(reader.network),
            reader.data,
            reader.test,
            classes=classes,
            minority=cell.rare_classes,
        )
        numbers |= own
    if diverged is None and cell.coordinates:
        points = coordinates_of(cell, reader.network, *reader.data, reader.drawn)
    notes = () if diverged is None else (DIVERGED.format(diverged),)
    return Outcome(
        readings=tuple(reader.curves), numbers=numbers, arrays=arrays, points=points, diverged=diverged, notes=notes
    )


def head_of(network: nn.Module) -> nn.Linear:
    """The classifier of the papers' networks, under the name its family gives it."""
    parts = dict(network.named_children())
    head = parts.get("head", parts.get("linear"))
    if not isinstance(head, nn.Linear):
        raise InputError(
            f"`classifier` reads the last layer of a network, an `nn.Linear` called `head` or `linear`; "
            f"`{type(network).__name__}` has none. Give it that name, or leave `classifier` out."
        )
    return head

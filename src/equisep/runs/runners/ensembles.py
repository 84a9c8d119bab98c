"""Cells of feed-forward networks, trained side by side and read: one ensemble for cells that share a shape."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from equisep.errors import InputError
from equisep.figures.cell import Stages, Training
from equisep.figures.course import Reached, course_arrays, course_epochs
from equisep.figures.outcome import Curve, Curves, Outcome
from equisep.progress import Progress, silent
from equisep.results import Reading
from equisep.runs.cell_data import CellData, cell_data_of
from equisep.runs.cell_files import group_folder
from equisep.runs.runners.cells import coordinates_of, dtype_of, last_epoch, loss_terms, recipe_of, shape_of, weighed
from equisep.runs.runners.classifiers import classifier_numbers, minority_of
from equisep.runs.runners.second_sample import relabeled_numbers, second_numbers
from equisep.training import Ensemble, Member, Shape, Stage, Watch, train_ensemble
from equisep.training.initialization import he_start, simplex_etf

Start = dict[str, Tensor]


def run_cells(
    cells: Sequence[Training],
    *,
    device: str | None = None,
    data_dir: str | None = None,
    progress: Progress = silent,
    checkpoints: Path | None = None,
) -> tuple[list[Outcome], dict[str, Any]]:
    """The outcomes of cells that differ in optimizer, rate, schedule, seeds, labels and class weights alone.

    A training that is cut off goes on from what was kept of it in a folder of `checkpoints`.
    """
    cell = cells[0]
    _check_reading(cell)
    cell_data = cell_data_of(cells, data_dir=data_dir)
    how = {"device": device, "store": None if checkpoints is None else group_folder(checkpoints, cells)}
    ensemble = _trained(cells, cell_data, data_dir=data_dir, how={**how, "progress": progress})
    outcomes = [_outcome(each, ensemble, index, cell_data) for index, each in enumerate(cells)]
    if cell.noise:
        under_noise = _under_noise(cells, ensemble, cell_data, device=device)
        outcomes = [
            replace(outcome, arrays={**outcome.arrays, **arrays}, numbers={**outcome.numbers, **numbers})
            for outcome, (arrays, numbers) in zip(outcomes, under_noise, strict=True)
        ]
    made = {**ensemble.provenance, "data": cell_data.checksum, "engine": ensemble.settings["engine"], "tf32": cell.tf32}
    return outcomes, made


def _check_reading(cell: Training) -> None:
    """Layers of a feed-forward network are its blocks, and vectors already: there is one way to read them."""
    if cell.reductions != ("flatten",) or len(cell.grains) != 1 or cell.grains[0] not in ("layers", "blocks"):
        raise InputError(
            f"A feed-forward network is read by layers, as it is; the cell asks for grains={list(cell.grains)} and "
            f"reductions={list(cell.reductions)}. Leave both out."
        )


def _trained(
    cells: Sequence[Training], cell_data: CellData, *, data_dir: str | None, how: Mapping[str, Any]
) -> Ensemble:
    """All networks after their training; `how` says on what device they train, where they are kept, who is told."""
    cell = cells[0]
    shape = shape_of(cell, inputs=cell_data.pool[0].numel(), classes=cell_data.classes)
    stages, starts = _stages(cells, shape, data_dir=data_dir, how=how)
    samples = [_seen(each, rows, labels, first) for each, rows, labels, first in _zipped(cells, cell_data)]
    return train_ensemble(
        [_member(each, shape, labels) for each, (_, labels) in zip(cells, samples, strict=True)],
        cell_data.pool, cell_data.pool_labels, samples=samples, drawn=_orders(cells, cell_data), test=cell_data.test,
        stages=stages, starts=starts, validation=cell_data.held,
        watch=Watch(
            epochs=(*cell.read_epochs, *course_epochs(cell)), readings=cast("tuple[Reading, ...]", cell.readings),
            test="sites" if cell.test_sites else "accuracy", chance=True,
            collapse=bool(cell.course) and cell.classifier,
        ),
        dtype=dtype_of(cell), tf32=cell.tf32, **how,
    )  # fmt: skip


def _member(cell: Training, shape: Shape, labels: Tensor) -> Member:
    terms = loss_terms(cell, torch.bincount(labels, minlength=shape.classes).tolist())
    if terms is None:
        return Member(recipe_of(cell), shape, cell.data_seed, class_weights=cell.class_weights)
    return Member(
        recipe_of(cell),
        shape,
        cell.data_seed,
        class_weights=terms.weights,
        weighted_mean=True,
        logit_adjustment=terms.added,
    )


def _zipped(cells: Sequence[Training], cell_data: CellData) -> list[tuple[Training, Tensor, Tensor, int]]:
    return list(zip(cells, cell_data.rows, cell_data.labels, cell_data.firsts, strict=True))


def _seen(cell: Training, rows: Tensor, labels: Tensor, first: int) -> tuple[Tensor, Tensor]:
    """What the cell trains on: with `second_read` the first sample alone."""
    return (rows[:first], labels[:first]) if cell.second_read else (rows, labels)


def _orders(cells: Sequence[Training], cell_data: CellData) -> list[Tensor] | None:
    """The order in which every cell's samples were drawn, where it is asked for."""
    orders = [
        order[order < first] if cell.second_read else order
        for cell, order, first in zip(cells, cell_data.drawn, cell_data.firsts, strict=True)
        if order is not None
    ]
    return orders if len(orders) == len(cells) else None


def _stages(
    cells: Sequence[Training], shape: Shape, *, data_dir: str | None, how: Mapping[str, Any]
) -> tuple[list[Stage], list[Start] | None]:
    """The stages of the last training, and where its members start from; see `Training`.

    A first stage on the same network and data is a stage of one training; one on another depth or other classes is a
    training of its own, whose lower layers become the start.
    """
    cell, staged = cells[0], cells[0].stages
    if cell.fixed_etf:
        return _fixed(cells, shape)
    own = _own_starts(cells, shape)
    if staged is None:
        return [], own
    trains = tuple(range(1, staged.first_trains + 1)) if staged.first_trains else None
    first_stage = Stage(staged.first_epochs, trains, _first_milestones(staged, cell.milestones))
    top = tuple(range(staged.keep + 1, shape.depth + 1)) if staged.keep else None
    second = Stage(cell.epochs, top, leaky=staged.leaky)
    last = [Stage(staged.last_epochs)] if staged.last_epochs else []
    if not staged.renew:
        return [first_stage, second, *last], own
    earlier = cell_data_of(cells, data_dir=data_dir, classes=staged.first_classes or cell.classes)
    before = shape_of(cell, inputs=shape.inputs, classes=earlier.classes, depth=staged.first_depth or shape.depth)
    first = train_ensemble(
        [Member(recipe_of(each), before, each.data_seed) for each in cells],
        earlier.pool, earlier.pool_labels, samples=list(zip(earlier.rows, earlier.labels, strict=True)),
        stages=[first_stage], starts=_own_starts(cells, before), watch=Watch(sites=False),
        dtype=dtype_of(cell), tf32=cell.tf32, **how,
    )  # fmt: skip
    starts = [_grafted(_start(each, shape), first.weights(index), keep=staged.keep) for index, each in enumerate(cells)]
    return [second, *last], starts


def _start(cell: Training, shape: Shape) -> Start:
    """The weights that a cell's seed draws."""
    network = shape.build(cell.seed)
    return he_start(network, seed=cell.seed) if cell.init else network.state_dict()


def _own_starts(cells: Sequence[Training], shape: Shape) -> list[Start] | None:
    """The first weights of every cell; None where they are those that an ensemble draws by itself."""
    return [_start(cell, shape) for cell in cells] if any(cell.init for cell in cells) else None


def _fixed(cells: Sequence[Training], shape: Shape) -> tuple[list[Stage], list[Start]]:
    """One stage in which all layers but the classifier learn, and starts whose classifier is a simplex ETF."""
    if cells[0].stages is not None or shape.depth < 2:
        raise InputError(
            "A fixed classifier needs a training in one stage of a network of 2 layers or more. Leave out `kind`, or `fixed_etf`."
        )
    starts = []
    for cell in cells:
        start = _start(cell, shape)
        rows = simplex_etf(shape.classes, shape.layers[-1][0], seed=cell.seed)
        starts.append(
            {**start, "head.weight": rows.to(start["head.weight"].dtype), "head.bias": 0 * start["head.bias"]}
        )
    return [Stage(cells[0].epochs, tuple(range(1, shape.depth)))], starts


def _first_milestones(staged: Stages, milestones: tuple[float, ...]) -> tuple[float, ...]:
    """The schedule of `first_schedule` epochs, cut after `first_epochs`, as shares of the latter; 0 is a constant rate."""
    if not staged.first_schedule or not staged.first_epochs:
        return ()
    whole = (share * staged.first_schedule for share in milestones)
    return tuple(epoch / staged.first_epochs for epoch in whole if epoch < staged.first_epochs)


def _grafted(fresh: Mapping[str, Tensor], trained: Mapping[str, Tensor], *, keep: int) -> Start:
    """Fresh weights with the first `keep` layers of a trained network in their place."""
    kept = tuple(f"blocks.{layer}." for layer in range(keep))
    return {name: trained[name] if name.startswith(kept) else value for name, value in fresh.items()}


def _outcome(cell: Training, ensemble: Ensemble, index: int, cell_data: CellData) -> Outcome:
    diverged = ensemble.diverged[index]
    readings = tuple(
        _curves(cell, reading, index)
        for reading in sorted(ensemble.readings, key=lambda each: (each.epoch, cell.readings.index(each.reading)))
        if reading.epoch in (*cell.read_epochs, last_epoch(cell))
    )
    history = ensemble.loss[index]
    numbers: dict[str, float | None] = {"final_loss": _plain(history[-1]) if len(history) else None}
    arrays: dict[str, Curve] = _course(cell, ensemble, index, cell_data)
    points: dict[str, tuple[tuple[float, ...], ...]] = {}
    if diverged is None:
        network = ensemble.network(index)
        x, y = cell_data.of(index)
        x = x.to(ensemble.stack.theta.dtype).flatten(1)
        readings += weighed(cell, network, x, y, cell_data.drawn[index])
        if cell.classifier:
            own, more = classifier_numbers(
                network,
                network.head,
                (x, y),
                (cell_data.test[0].to(x.dtype), cell_data.test[1]),
                classes=cell_data.classes,
                minority=cell.rare_classes,
            )
            numbers |= own
            arrays |= more
            weights = ensemble.members[index].class_weights
            numbers["rarest_weight"] = None if weights is None else max(weights)
        first = cell_data.firsts[index]
        if cell.second_read:
            numbers |= second_numbers(
                network, (x[:first], y[:first]), (x[first:], y[first:]), classes=cell_data.classes
            )
        elif cell.second:
            truth = cell_data.pool_labels[cell_data.rows[index][first:]]
            numbers |= relabeled_numbers(y[first:], truth, classes=cell_data.classes)
        if cell.coordinates:
            points = coordinates_of(cell, network, x, y, cell_data.drawn[index])
    return Outcome(readings=readings, numbers=numbers, arrays=arrays, points=points, diverged=diverged)


def _course(cell: Training, ensemble: Ensemble, index: int, cell_data: CellData) -> dict[str, Curve]:
    """What was read every so many epochs in the cell's first reading, as arrays over epochs."""
    classes = ensemble.members[index].shape.classes
    counts = torch.bincount(cell_data.labels[index], minlength=classes).tolist()
    small = list(cell.rare_classes) if cell.rare_classes is not None else minority_of(counts)
    wanted = set(course_epochs(cell))
    rows = [each for each in ensemble.readings if each.epoch in wanted and each.reading == cell.readings[0]]
    return course_arrays([
        Reached(_curves(cell, each, index), **{
            name: None if (values := getattr(each, name)) is None else _plain(values[index].reshape(-1)[-1])
            for name in ("loss_validation", "accuracy_validation", "ncc_validation", "nc1")
        }, minority_cosine=_minority_cosine(each.classifier_cosines, index, small))
        for each in sorted(rows, key=lambda each: each.epoch)
    ], classes=classes)  # fmt: skip


def _minority_cosine(cosines: Any, index: int, small: Sequence[int]) -> float | None:
    """The mean over two different rows of the minority; None without two, or where they were not read."""
    if cosines is None or len(small) < 2:
        return None
    own = cosines[index][np.ix_(small, small)]
    return _plain((own.sum() - np.trace(own)) / (len(small) * (len(small) - 1)))


def _curves(cell: Training, reading: Any, index: int) -> Curves:
    def row(name: str) -> Curve:
        values = getattr(reading, name)
        return () if values is None else tuple(_plain(value) for value in values[index])

    def one(name: str) -> float | None:
        values = getattr(reading, name)
        return None if values is None else _plain(values[index])

    by_class: tuple[Curve, ...] = ()
    if cell.class_wise and reading.class_fuzziness is not None:
        table = reading.class_fuzziness[index].T  # k s
        by_class = tuple(tuple(_plain(value) for value in own) for own in table)
    depth = 0 if reading.fuzziness is None else reading.fuzziness.shape[1]
    return Curves(
        epoch=reading.epoch, reading=reading.reading,
        sites=("input", *(f"blocks.{layer}" for layer in range(depth - 1))),
        fuzziness=row("fuzziness"), chance=row("chance"), cdnv=row("cdnv"), ncc=row("ncc"), fuzziness_test=row("fuzziness_test"),
        cdnv_test=row("cdnv_test"), ncc_test=row("ncc_test"), class_fuzziness=by_class,
        loss=one("loss"), accuracy=one("accuracy"), accuracy_test=one("accuracy_test"),
    )  # fmt: skip


def _plain(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def _under_noise(
    cells: Sequence[Training], ensemble: Ensemble, cell_data: CellData, *, device: str | None
) -> list[tuple[dict[str, Curve], dict[str, float | None]]]:
    """R = D_{L−1}/D_0 of every network with Gaussian noise on its weight matrices (He & Su 2023, Proposition 1).

    The noise on a layer's matrix W has the norm ε‖W‖_F in expectation. All noisy networks are read at once, as members
    that train for no epoch. |R_ε − R|/R is the mean over the draws, one number for each ε. `change` is that of the middle ε,
    `change_matched` the same over (L−1) R^{−1/(L−1)}, the least that Proposition 1 allows at this R: so networks that
    separate more and less can be compared.
    """
    cell = cells[0]
    sound = [index for index, diverged in enumerate(ensemble.diverged) if diverged is None]
    starts, owners = [], []
    for index in sound:
        chance = torch.Generator("cpu").manual_seed(cells[index].seed)
        for level in cell.noise:
            for _ in range(cell.noise_draws):
                starts.append(_noisy(ensemble.weights(index), level, chance))
                owners.append(index)
    under_noise: list[tuple[dict[str, Curve], dict[str, float | None]]] = [({}, {}) for _ in cells]
    if not starts:
        return under_noise
    shape = ensemble.members[0].shape
    recipe = replace(recipe_of(cell), epochs=0)
    pairs = [_seen(each, rows, labels, first) for each, rows, labels, first in _zipped(cells, cell_data)]
    orders = _orders(cells, cell_data)
    read = train_ensemble(
        [Member(recipe, shape, cells[owner].data_seed) for owner in owners], cell_data.pool, cell_data.pool_labels,
        samples=[pairs[owner] for owner in owners], starts=starts,
        drawn=None if orders is None else [orders[owner] for owner in owners],
        watch=Watch(readings=cast("tuple[Reading, ...]", cell.readings[:1])), device=device, dtype=dtype_of(cell),
        tf32=cell.tf32,
    )  # fmt: skip
    curves = read.reading().fuzziness
    clean = ensemble.reading(reading=cell.readings[0]).fuzziness
    assert curves is not None and clean is not None
    noisy = (curves[:, -1] / curves[:, 0]).reshape(len(sound), len(cell.noise), cell.noise_draws)
    for row, index in enumerate(sound):
        ratio = clean[index, -1] / clean[index, 0]
        change = np.abs(noisy[row] / ratio - 1).mean(axis=1)
        least = (clean.shape[1] - 1) * ratio ** (-1 / (clean.shape[1] - 1))
        middle = change[len(cell.noise) // 2]
        under_noise[index] = (
            {"noise": cell.noise, "noise_change": tuple(_plain(value) for value in change)},
            {"change": _plain(middle), "change_matched": _plain(middle / least)},
        )
    return under_noise


def _noisy(weights: Mapping[str, Tensor], level: float, chance: torch.Generator) -> Start:
    """The weights with noise of relative norm `level` on every matrix of a hidden layer."""
    noisy = {}
    for name, value in weights.items():
        if name.endswith("linear.weight"):
            noise = torch.randn(value.shape, generator=chance, dtype=torch.float64)
            scale = level * float(value.double().norm()) / math.sqrt(value.numel())
            noisy[name] = (value.double() + scale * noise).to(value.dtype)
        else:
            noisy[name] = value
    return noisy

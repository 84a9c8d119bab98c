"""Reading all members and sites of an ensemble at chosen epochs, on the device they train on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, fields
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from equisep.data.batches import batch_starts
from equisep.data.sampling import ORDER, permutation
from equisep.display import brief
from equisep.errors import InputError, did_you_mean
from equisep.results import Reading, reading_named
from equisep.results.readings import BY_BATCH, readings_named
from equisep.separation.assignments import RELABELINGS, Assignments
from equisep.separation.batched import StackedCenters, read_stacked, stacked_hits
from equisep.separation.convention import PHD20
from equisep.shapes import Float, Int
from equisep.training.ensemble.passes import Vectors, linear, normalize, vectors_of
from equisep.training.ensemble.samples import Samples
from equisep.training.ensemble.stack import Stack

# features and their float64 copies held at once while reading: on a CPU what its cache is not too small for
READ_BYTES = {"cpu": 2**28, "cuda": 2**32}
TestReading = Literal["accuracy", "sites"]
Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Watch:
    """When and how an ensemble is read while it trains; after the last epoch it always is.

    epochs       counted over all stages; 0 is before the first step.
    readings     `mixed`, `eval`, `drawn`, or several of them, all of one training: see `equisep.measure`. `reading`, for
                 one, and `modes`, the former name, are taken too.
    sites        whether every site is read (D, D_k, CDNV, nearest centers), or loss and accuracy alone.
    test         what is read of test data: `accuracy`, or `sites` as well.
    collapse     whether NC1 of the last layer and the cosines between the classifier's rows are read too.
    chance       whether D of random labels, dealt out equally as `measure` does it, is read too after the last epoch.
    batch_size, seed      the batches of the reading `mixed`: one fixed class-mixed order, as `equisep.data.Batches`. In
                 `drawn` the training samples come in the order drawn, see `train_ensemble`; test data, which are taken
                 whole, as in `mixed`.
    """

    epochs: tuple[int, ...] = ()
    readings: Reading | Sequence[Reading] = "mixed"
    sites: bool = True
    test: TestReading = "accuracy"
    batch_size: int = 100
    seed: int = 0
    chance: bool = False
    collapse: bool = False
    modes: InitVar[Sequence[str] | None] = None
    reading: InitVar[Reading | Sequence[Reading] | None] = None

    def __post_init__(self, modes: Sequence[str] | None, reading: Reading | Sequence[Reading] | None) -> None:
        if modes is not None:
            named = tuple(reading_named(None, mode=mode) for mode in modes)
            if not named:
                raise InputError("An ensemble is read in one way at least; `modes` is empty. Name `mixed` or `eval`.")
        else:
            named = readings_named(self.readings if reading is None else reading)
        object.__setattr__(self, "readings", named)
        if self.test not in get_args(TestReading):
            hint = did_you_mean(str(self.test), get_args(TestReading))
            raise InputError(f"Test data are read for `accuracy` or `sites`; found `{self.test}`.{hint}")
        if self.test == "sites" and not self.sites:
            raise InputError("Test sites are read against those of training data. Leave `sites` on.")
        if (self.chance or self.collapse) and not self.sites:
            raise InputError("A chance level, and collapse, are of sites, which are not read. Leave `sites` on.")
        if self.batch_size < 2:
            raise InputError(f"BatchNorm cannot normalize batches of {self.batch_size}. Read batches of 2 or more.")
        if any(epoch < 0 for epoch in self.epochs):
            raise InputError(f"Epochs are counted from 0; found {min(self.epochs)}.")

    @property
    def names(self) -> tuple[Reading, ...]:
        """All of `readings`, by name."""
        return tuple(self.readings)  # type: ignore[arg-type]  # a tuple of names once it is made


@brief
@dataclass(frozen=True, slots=True)
class EnsembleReading:
    """Every member at one epoch in one reading; NaN (a rank of 0) where a number does not exist, as for one that diverged.

    Arrays begin with the member; those of sites go on with the site, 0 being the input. What was not asked for is None.
    """

    epoch: int
    reading: Reading
    loss: Array
    accuracy: Array
    fuzziness: Array | None = None
    class_fuzziness: Array | None = None
    cdnv: Array | None = None
    ncc: Array | None = None
    rank: Array | None = None
    chance: Array | None = None
    nc1: Array | None = None
    classifier_cosines: Array | None = None
    accuracy_test: Array | None = None
    fuzziness_test: Array | None = None
    cdnv_test: Array | None = None
    ncc_test: Array | None = None
    loss_validation: Array | None = None
    accuracy_validation: Array | None = None
    ncc_validation: Array | None = None

    def taken(self, members: Sequence[int]) -> EnsembleReading:
        """The numbers of some members."""
        arrays = {name: value[list(members)] for name, value in self.arrays().items()}
        return EnsembleReading(self.epoch, self.reading, **arrays)

    def joined(self, *others: EnsembleReading) -> EnsembleReading:
        """The numbers of these members and others'."""
        parts = [one.arrays() for one in (self, *others)]
        arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return EnsembleReading(self.epoch, self.reading, **arrays)

    def arrays(self) -> dict[str, Array]:
        """What was read, by name."""
        return {name: value for name in ARRAYS if (value := getattr(self, name)) is not None}


ARRAYS = tuple(entry.name for entry in fields(EnsembleReading) if entry.name not in ("epoch", "reading"))


@torch.no_grad()
def read_ensemble(
    stack: Stack,
    samples: Samples,
    test: tuple[Tensor, Tensor] | None,
    watch: Watch,
    *,
    epoch: int,
    reading: Reading,
    last: bool,
) -> EnsembleReading:
    """Loss, accuracy and all sites of every member in one reading; members in as large groups as memory allows."""
    n = max(samples.n, 0 if test is None else len(test[1]), 0 if samples.held is None else samples.held.rows.shape[1])
    numbers = n * (stack.shape.inputs + sum(stack.shape.widths) + stack.shape.classes)
    group = max(
        1, READ_BYTES.get(stack.theta.device.type, 2**28) // (numbers * (2 * stack.theta.element_size() + 4 * 8))
    )
    parts = [
        _read_group(stack, samples, test, watch, members=slice(start, start + group), reading=reading, last=last)
        for start in range(0, stack.members, group)
    ]
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return EnsembleReading(epoch=epoch, reading=reading, **arrays)


def _read_group(
    stack: Stack,
    samples: Samples,
    test: tuple[Tensor, Tensor] | None,
    watch: Watch,
    *,
    members: slice,
    reading: Reading,
    last: bool,
) -> dict[str, Array]:
    rows, labels = samples.rows[members], samples.labels[members]  # m n
    if reading == "drawn" and samples.drawn is not None:
        order = samples.drawn[members]  # m n
    else:
        order = _order(samples.n, watch, rows.device).expand(rows.shape[0], -1)
    inputs = samples.pool[rows.gather(1, order).t()]  # n m i
    features, scores = _held(_sites(stack, inputs, members, reading, watch), watch.sites)
    y = labels.gather(1, order)  # m n
    numbers = dict(zip(("loss", "accuracy"), _scored(scores, y), strict=True))
    centers: dict[int, StackedCenters] = {}
    if watch.sites:
        of_sites, centers = _statistics(features, y, classes=stack.shape.classes)
        numbers |= of_sites
        if watch.chance and last:
            numbers["chance"] = _chance(features, y, classes=stack.shape.classes)
        if watch.collapse:
            numbers |= _collapse(stack, features[-1], y, members=members)
    if test is not None:
        numbers |= _read_test(stack, test, watch, centers, members=members, reading=reading)
    if samples.held is not None:
        numbers |= _read_held(stack, samples, watch, centers, members=members, reading=reading)
    return {name: value.cpu().numpy() for name, value in numbers.items()}


def _read_test(
    stack: Stack,
    test: tuple[Tensor, Tensor],
    watch: Watch,
    centers: Mapping[int, StackedCenters],
    *,
    members: slice,
    reading: Reading,
) -> dict[str, Tensor]:
    """The test data: accuracy; and, where asked, D and CDNV of their own means, nearest centers of the training's."""
    width = len(stack.theta[members])
    order = _order(len(test[1]), watch, test[1].device)
    y = test[1][order].expand(width, -1)  # m n
    inputs = test[0][order].unsqueeze(1).expand(-1, width, -1)  # n m i
    wanted = watch.sites and watch.test == "sites"
    features, scores = _held(_sites(stack, inputs, members, reading, watch), wanted)
    numbers = {"accuracy_test": _scored(scores, y)[1]}
    if wanted:
        of_sites, _ = _statistics(features, y, classes=stack.shape.classes, centers=centers)
        numbers |= {f"{name}_test": of_sites[name] for name in ("fuzziness", "cdnv", "ncc")}
    return numbers


def _read_held(
    stack: Stack,
    samples: Samples,
    watch: Watch,
    centers: Mapping[int, StackedCenters],
    *,
    members: slice,
    reading: Reading,
) -> dict[str, Tensor]:
    """The samples that each member holds out: loss, accuracy, and nearest centers of its training means at every site."""
    assert samples.held is not None
    rows = samples.held.rows[members]
    order = _order(rows.shape[1], watch, rows.device)
    y = samples.held.labels[members][:, order]  # m v
    features, scores = _held(_sites(stack, samples.pool[rows[:, order].t()], members, reading, watch), watch.sites)
    numbers = dict(zip(("loss_validation", "accuracy_validation"), _scored(scores, y), strict=True))
    if not watch.sites:
        return numbers
    shares: dict[int, Tensor] = {}
    for width, sites, across in _by_width(features):
        labels = y.repeat(len(sites), 1)
        own = centers[width]
        share = _share(stacked_hits(across, labels, centers=own), across, sound=own.sound)
        shares.update(zip(sites, share.unflatten(0, (len(sites), -1)), strict=True))
    return {**numbers, "ncc_validation": torch.stack([shares[site] for site in sorted(shares)], dim=1)}


def _by_width(features: Sequence[Float[Tensor, "n m _"]]) -> Iterator[tuple[int, list[int], Float[Tensor, "_ n d"]]]:
    """The sites of each width, and their features at once, as if they were sites of more members (s·m n d)."""
    for width in dict.fromkeys(part.shape[2] for part in features):
        sites = [site for site, part in enumerate(features) if part.shape[2] == width]
        yield width, sites, torch.stack([features[site].transpose(0, 1) for site in sites]).flatten(0, 1)


def _statistics(
    features: Sequence[Float[Tensor, "n m _"]],
    y: Int[Tensor, "m n"],
    *,
    classes: int,
    centers: Mapping[int, StackedCenters] | None = None,
) -> tuple[dict[str, Tensor], dict[int, StackedCenters]]:
    """The metrics of all sites; those of one width at once, as if they were sites of more members.

    Nearest centers are those of `centers` (by width) where given, otherwise the features' own.
    """
    own: dict[int, StackedCenters] = {}
    columns: dict[str, dict[int, Tensor]] = {}
    for width, sites, across in _by_width(features):
        labels = y.repeat(len(sites), 1)  # s·m n
        numbers, own[width] = read_stacked(across, labels, classes=classes)
        nearest = own[width] if centers is None else centers[width]
        values = {
            "fuzziness": numbers.fuzziness,
            "class_fuzziness": numbers.class_fuzziness,
            "cdnv": numbers.cdnv,
            "ncc": _share(stacked_hits(across, labels, centers=nearest), across, sound=nearest.sound),
            "rank": numbers.rank,
        }
        for name, value in values.items():
            columns.setdefault(name, {}).update(zip(sites, value.unflatten(0, (len(sites), -1)), strict=True))
    metrics = {name: torch.stack([column[site] for site in sorted(column)], dim=1) for name, column in columns.items()}
    return metrics, own


def _collapse(
    stack: Stack, features: Float[Tensor, "n m _"], y: Int[Tensor, "m n"], *, members: slice
) -> dict[str, Tensor]:
    """NC1 = Tr(SSw SSb⁺)/K of the last layer (PHD20's convention, K classes with samples), and cosines between rows."""
    read, centers = read_stacked(features.transpose(0, 1), y, classes=stack.shape.classes, convention=PHD20)
    present = (centers.counts > 0).sum(dim=1)
    rows = stack.weight(stack.shape.depth - 1)[members].to(torch.float64)  # m k p
    unit = rows / torch.linalg.vector_norm(rows, dim=2, keepdim=True)  # of a row that vanished there is none
    return {"nc1": read.fuzziness / present, "classifier_cosines": unit @ unit.mT}


def _chance(features: Sequence[Float[Tensor, "n m _"]], y: Int[Tensor, "m n"], *, classes: int) -> Float[Tensor, "m s"]:
    """The median D under random labels of every member and site, as many as its classes with samples, by place in the reading."""
    present = torch.nn.functional.one_hot(y, classes).amax(dim=1).sum(dim=1, keepdim=True)  # m 1
    dealt = Assignments.of(y[0], first=0, classes=classes, folds=0, relabelings=RELABELINGS, seed=0).relabeled  # p n
    assert dealt is not None
    columns: dict[int, Tensor] = {}
    for _, sites, across in _by_width(features):
        levels = [
            read_stacked(across, (labels % present).repeat(len(sites), 1), classes=classes)[0].fuzziness
            for labels in dealt
        ]
        middle = torch.stack(levels).quantile(0.5, dim=0)  # s·m; NaN of a member that is not sound stays
        columns.update(zip(sites, middle.unflatten(0, (len(sites), -1)), strict=True))
    return torch.stack([columns[site] for site in sorted(columns)], dim=1)


def _held(parts: Iterator[Tensor], wanted: bool) -> tuple[list[Tensor], Tensor]:
    """The features of all sites, where they are wanted, and the scores that come after them."""
    *features, scores = deque(parts, maxlen=None if wanted else 1)
    return features, scores


def _sites(
    stack: Stack, x: Float[Tensor, "n m i"], members: slice, reading: Reading, watch: Watch
) -> Iterator[Float[Tensor, "n m _"]]:
    """Features of site 0 (the input), 1, …, and at last the class scores."""
    vectors = vectors_of(stack)
    starts = batch_starts(len(x), watch.batch_size)
    edges = list(zip(starts, [*starts[1:], len(x)], strict=True))
    h = x
    yield h
    for layer in range(stack.shape.depth):
        h = linear(stack, layer, h, vectors[layer].bias[members], members=members)
        if layer < stack.shape.depth - 1:
            h = _normalized(stack, layer, h, vectors[layer], members, edges if reading in BY_BATCH else None)
            if stack.shape.activation:
                h = h.relu_()
        yield h


def _normalized(
    stack: Stack, layer: int, z: Tensor, vectors: Vectors, members: slice, edges: list[tuple[int, int]] | None
) -> Tensor:
    """BatchNorm by each batch between `edges`, or by running statistics where there are none."""
    if not stack.shape.norm:
        return z

    def own(channels: Tensor) -> Tensor:
        return channels.view(stack.members, -1)[members].reshape(-1)

    assert vectors.scale is not None and vectors.shift is not None
    mine = Vectors(vectors.bias, own(vectors.scale), own(vectors.shift))
    if edges is None:
        running = (own(stack.running_mean[layer]), own(stack.running_var[layer]))
        return normalize(z, mine, running, by_batch=False)[0]
    return _by_batch(z, mine, edges)


def _by_batch(z: Float[Tensor, "n m o"], vectors: Vectors, edges: list[tuple[int, int]]) -> Float[Tensor, "n m o"]:
    """BatchNorm of every batch by itself; those of equal size at once, as more channels of one batch."""
    assert vectors.scale is not None and vectors.shift is not None
    size = edges[0][1] - edges[0][0]
    equal = sum(stop - start == size for start, stop in edges)  # all but the last at most
    whole = z[: equal * size].view(equal, size, *z.shape[1:]).transpose(0, 1)  # size batches m o
    wider = Vectors(vectors.bias, vectors.scale.repeat(equal), vectors.shift.repeat(equal))
    normalized = normalize(whole.contiguous(), wider, None, by_batch=True)[0]
    parts = [normalized.transpose(0, 1).flatten(0, 1)]
    if equal < len(edges):
        start, stop = edges[-1]
        parts.append(normalize(z[start:stop], vectors, None, by_batch=True)[0])
    return torch.cat(parts)


def _scored(scores: Float[Tensor, "n m k"], labels: Int[Tensor, "m n"]) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy and accuracy of each member."""
    y = labels.t().unsqueeze(2)  # n m 1
    loss = -scores.to(torch.float64).log_softmax(dim=2).gather(2, y).squeeze(2).mean(dim=0)
    hits = (scores.argmax(dim=2) == labels.t()).sum(dim=0)
    return loss, _share(hits, scores.transpose(0, 1))


def _share(hits: Int[Tensor, " m"], features: Float[Tensor, "m n d"], *, sound: Tensor | None = None) -> Tensor:
    """Hits as a share of the samples; NaN for a member whose features (or centers) are not finite."""
    finite = features.isfinite().flatten(1).all(dim=1).to(hits.device)
    known = finite if sound is None else finite & sound
    return torch.where(known, hits.to(torch.float64) / features.shape[1], torch.nan)


def _order(n: int, watch: Watch, device: torch.device) -> Int[Tensor, " n"]:
    return torch.from_numpy(permutation(n, seed=watch.seed, use=ORDER)).to(device)

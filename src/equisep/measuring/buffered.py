"""Measuring from kept features: the data are read once, every site is worked off from memory."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from equisep.data.feed import Feed
from equisep.errors import DataError
from equisep.law.intervals import ResampleKind
from equisep.measuring.options import BOOTSTRAP_WORK, FOLDS, PERMUTATIONS, Options
from equisep.measuring.probe import Probe
from equisep.measuring.reading import Read, Stop, read
from equisep.measuring.states import HeldOut, SiteStates, Spread, center_counts, same_for_collapse
from equisep.metrics.arrays import moments_of, projections_of
from equisep.metrics.fuzziness import fuzziness_of
from equisep.progress import Progress
from equisep.results import Coordinates, Note
from equisep.shapes import Float64, Int, Shaped
from equisep.stats import PHD20, ClassMoments, ClassSubspace, Convention, FeatureBuffer, in_chunks, project
from equisep.stats.resample import bootstrap_weights, fold_weights, resampling_cost, reweighted_fuzziness


@dataclass(frozen=True, slots=True)
class Kept:
    """All features of one data set, and their labels."""

    features: FeatureBuffer
    labels: Int[Tensor, " n"]
    read: Read


def keep(model: nn.Module, feed: Feed, probe: Probe, options: Options, *, progress: Progress) -> Kept | None:
    """Read the data once and keep all features; None where they outgrow the budget (and can be read again)."""
    if feed.again and _foreseen(feed, probe) > options.memory:
        return None
    buffer = FeatureBuffer(options.memory)
    labels: list[Tensor] = []

    def take(index: int, features: Tensor, _: Tensor) -> None:
        buffer.add(probe.sites[index], features)
        if buffer.overflowed:
            raise Stop

    try:
        done = read(
            model, feed, probe, options, take=take, start=lambda _, y: labels.append(y), progress=progress,
            what=f"reading the {feed.what} data",
        )  # fmt: skip
    except Stop:
        if feed.again:
            return None
        raise DataError(
            f"The {feed.what} data can be read only once (they are an iterator), and the features of "
            f"{len(probe.sites)} sites need more than `memory={options.memory}` bytes. "
            "Pass a loader that can be read twice, fewer sites, or more memory."
        ) from None
    return Kept(features=buffer, labels=torch.cat(labels), read=done)


def _foreseen(feed: Feed, probe: Probe) -> float:
    """Bytes that the features will need, as far as the loader tells its size (4 bytes a number)."""
    size = max(feed.batch_sizes, default=1)  # of the first batch, which the probe has seen
    return 4.0 * (feed.batches or 0) * size * sum(probe.dims)


@dataclass(frozen=True, slots=True)
class Replicates:
    """The samples' weights of every bootstrap resample or jackknife fold, the same for all sites."""

    kind: ResampleKind
    weights: Float64[Tensor, "m n"]


def plan_replicates(kept: Kept, probe: Probe, options: Options) -> tuple[Replicates | None, list[Note]]:
    """Bootstrap where it is affordable, jackknife otherwise, or as asked."""
    if options.intervals == "none" or not options.wants("fuzziness"):
        return None, []
    n = kept.labels.numel()
    cost = resampling_cost(n=n, dims=list(probe.dims), classes=probe.classes, replicates=options.resamples)
    fits = 3 * 8 * options.resamples * n <= options.memory  # the weights of all resamples are held at once
    if options.intervals == "bootstrap" or (options.intervals == "auto" and fits and cost <= BOOTSTRAP_WORK):
        weights = bootstrap_weights(kept.labels, resamples=options.resamples, seed=options.seed)
        return Replicates("bootstrap", weights), []
    if n < 2 * FOLDS:
        return None, [Note("no-intervals", f"Intervals were left out: {FOLDS} folds of {n} samples are too small.")]
    return Replicates("jackknife", fold_weights(kept.labels, folds=FOLDS, seed=options.seed)), []


def train_states(
    index: int, *, kept: Kept, probe: Probe, options: Options, replicates: Replicates | None, layer: nn.Linear | None
) -> SiteStates:
    """All statistics of one site from its kept training features, which are let go of."""
    x, y = kept.features.take(probe.sites[index]), kept.labels
    moments = moments_of(x, y, classes=probe.classes)
    spread = _spread(x, y, moments, options.convention)
    collapse = spread
    if options.wants("collapse") and not same_for_collapse(moments.counts, options.convention):
        collapse = _spread(x, y, moments, PHD20)
    hits, disagreements = _centers(x, y, spread.subspace, layer)
    return SiteStates(
        train=spread,
        collapse=collapse if options.wants("collapse") else None,
        null=_null(x, y, probe.classes, options) if options.wants("null") else None,
        hits=hits,
        disagreements=disagreements,
        replicates=_replicates(x, y, spread.subspace, replicates, probe.classes, options),
        coordinates=principal_components(x, y, most=options.coordinates, seed=options.seed),
    )


def held_out_states(
    index: int, *, kept: Kept, train: ClassSubspace, probe: Probe, options: Options, layer: nn.Linear | None
) -> HeldOut:
    """The test data at one site: D by their own means, nearest centers by the training means."""
    x, y = kept.features.take(probe.sites[index]), kept.labels
    spread = _spread(x, y, moments_of(x, y, classes=probe.classes), options.convention)
    hits, disagreements = _centers(x, y, train, layer)
    return HeldOut(spread=spread, hits=hits, disagreements=disagreements)


def _spread(x: Shaped[Tensor, "n d"], y: Int[Tensor, " n"], moments: ClassMoments, convention: Convention) -> Spread:
    subspace = ClassSubspace.of(moments, convention)
    return Spread(moments, subspace, projections_of(x, y, subspace=subspace))


def _centers(
    x: Shaped[Tensor, "n d"], y: Int[Tensor, " n"], subspace: ClassSubspace, layer: nn.Linear | None
) -> tuple[int, int | None]:
    """Samples whose nearest training center is their label; samples where the classifier disagrees with it (NC4)."""
    hits = disagreements = 0
    for part, labels in in_chunks(x, y):
        residuals = project(part, labels, subspace=subspace)
        found = center_counts(residuals, part, labels, subspace, layer)
        hits, disagreements = hits + found[0], disagreements + found[1]
    return hits, disagreements if layer is not None else None


def _null(x: Shaped[Tensor, "n d"], y: Int[Tensor, " n"], classes: int, options: Options) -> float | None:
    """D under permuted labels, the mean of several permutations: what chance alone separates, given n and d."""
    generator = torch.Generator("cpu").manual_seed(options.seed)
    values = []
    for _ in range(PERMUTATIONS):
        shuffled = y[torch.randperm(y.numel(), generator=generator, device="cpu").to(y.device)]
        spread = _spread(x, shuffled, moments_of(x, shuffled, classes=classes), options.convention)
        values.append(fuzziness_of(spread.subspace, spread.projections, options.convention))
    found = [value for value in values if value is not None]
    return sum(found) / len(found) if len(found) == len(values) else None


def _replicates(
    x: Shaped[Tensor, "n d"],
    y: Int[Tensor, " n"],
    subspace: ClassSubspace,
    replicates: Replicates | None,
    classes: int,
    options: Options,
) -> Float64[Tensor, " m"] | None:
    if replicates is None or subspace.rank == 0:
        return None
    return reweighted_fuzziness(
        x, y, weights=replicates.weights, classes=classes, rank=subspace.rank, convention=options.convention
    ).cpu()


def principal_components(x: Shaped[Tensor, "n d"], y: Int[Tensor, " n"], *, most: int, seed: int) -> Coordinates | None:
    """At most `most` samples on their first two principal components, for plots only."""
    if most < 3 or x.shape[0] < 3:
        return None
    chosen = (
        torch.randperm(x.shape[0], generator=torch.Generator("cpu").manual_seed(seed), device="cpu")[:most]
        .sort()
        .values
    )
    points = x[chosen.to(x.device)].cpu().to(torch.float64)  # m d
    points = points - points.mean(dim=0)
    # the m×m Gram matrix costs half the digits and saves the d×d one: enough for a picture
    values, vectors = torch.linalg.eigh(points @ points.T)
    values, vectors = values.flip(0)[:2].clamp(min=0), vectors.flip(1)[:, :2]
    signs = vectors.gather(0, vectors.abs().argmax(dim=0, keepdim=True)).sign()
    plane = (vectors * signs * values.sqrt()).tolist()
    total = float(points.square().sum()) or 1.0
    return Coordinates(
        points=tuple((float(f"{a:.5g}"), float(f"{b:.5g}")) for a, b in plane),
        labels=tuple(y[chosen.to(y.device)].tolist()),
        explained=(float(values[0]) / total, float(values[1]) / total),
    )

"""Statistics of sites whose features were kept: every site is worked off from memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from equisep.law.intervals import ResampleKind
from equisep.measuring.keeping import Kept
from equisep.measuring.options import BOOTSTRAP_WORK, FEW_NUMBERS, FOLDS, PERMUTATIONS, Options
from equisep.measuring.reading import Subject
from equisep.results import Note
from equisep.separation import ClassSubspace, Marks
from equisep.separation.bootstrap import bootstrap_weights, draw_folds, resampling_cost, reweighted_fuzziness
from equisep.separation.plane import plane_of
from equisep.separation.site import HeldOutSite, TrainSite
from equisep.separation.states import HeldOut, SiteStates
from equisep.shapes import Float64, Int, Shaped


@dataclass(frozen=True, slots=True)
class Replicates:
    """How D is resampled, the same for all sites: weights of every bootstrap resample, or the fold of every sample."""

    kind: ResampleKind
    weights: Float64[Tensor, "m n"] | None = None
    folds: Int[Tensor, " n"] | None = None


def plan_replicates(kept: Kept, subject: Subject) -> tuple[Replicates | None, list[Note]]:
    """Bootstrap where it is affordable, jackknife otherwise, or as asked."""
    options, probe = subject.options, subject.probe
    if options.intervals == "none" or not options.wants("fuzziness"):
        return None, []
    n, y, seed = kept.labels.numel(), kept.labels, options.seed
    kept_width = subject.reduction.components or max(probe.dims)
    cost = sum(
        resampling_cost(
            n=round(n * numbers / d), dims=[min(d, kept_width)], classes=probe.classes, replicates=options.resamples
        )
        for numbers, d in zip(probe.numbers, probe.dims, strict=True)
    )
    most = max(numbers / d for numbers, d in zip(probe.numbers, probe.dims, strict=True))  # rows a sample
    fits = 3 * 8 * options.resamples * n * most <= options.memory  # the weights of all resamples are held at once
    if options.intervals == "bootstrap" or (options.intervals == "auto" and fits and cost <= BOOTSTRAP_WORK):
        return Replicates("bootstrap", weights=bootstrap_weights(y, resamples=options.resamples, seed=seed)), []
    if n < 2 * FOLDS:
        return None, [few_samples(n)]
    return Replicates("jackknife", folds=draw_folds(y, folds=FOLDS, seed=seed)), []


def few_samples(n: int) -> Note:
    """Why there are no intervals where samples are few."""
    return Note("no-intervals", f"Intervals were left out: {FOLDS} folds of {n} samples are too small.")


def states_of(
    parts: list[Shaped[Tensor, "b d"]], index: int, *, kept: Kept, subject: Subject, replicates: Replicates | None
) -> SiteStates:
    """All statistics of one site from features in pieces, where all sites were kept."""
    options = subject.options
    permutations = _permutations(sum(part.numel() for part in parts)) if options.wants("null") else 0
    folds = replicates.folds if replicates is not None else None
    marks = Marks(
        kept.labels,
        None if folds is None else folds.to(kept.labels.device),
        _permuted(kept.labels, permutations, seed=options.seed) if permutations else None,
    )
    folds_left = 0 if folds is None else FOLDS
    found = marked_states(
        parts, index, kept=kept, subject=subject, marks=marks, folds=folds_left, permutations=permutations
    )
    owners = kept.rows_of(index)
    again = _bootstrap(parts, marks.of_rows(owners).labels, owners, found.train.subspace, replicates, options)
    return found if again is None else replace(found, replicates=again)


def marked_states(
    parts: list[Shaped[Tensor, "b d"]],
    index: int,
    *,
    kept: Kept,
    subject: Subject,
    marks: Marks,
    folds: int,
    permutations: int,
) -> SiteStates:
    """All statistics of one site from features in pieces and the marks of all samples, the bootstrap apart."""
    options = subject.options
    rows = marks.of_rows(kept.rows_of(index))
    site = TrainSite(
        classes=subject.probe.classes,
        folds=folds,
        permutations=permutations,
        options=options,
        layer=subject.layer_at(index),
        offset=subject.offset_at(index),
    )
    site.first(parts, rows)
    site.turn()
    site.second(parts, rows)
    plane = plane_of(parts, rows.labels, most=options.coordinates, seed=options.seed)
    return replace(site.states(), coordinates=plane)


def _permutations(numbers: int) -> int:
    """In many numbers one permutation averages over enough of them."""
    return PERMUTATIONS if numbers <= FEW_NUMBERS else 1


def _permuted(labels: Int[Tensor, " n"], count: int, *, seed: int) -> Int[Tensor, "p n"]:
    generator = torch.Generator("cpu").manual_seed(seed)
    orders = [torch.randperm(labels.numel(), generator=generator, device="cpu") for _ in range(count)]
    return torch.stack([labels[order.to(labels.device)] for order in orders])


def _bootstrap(
    parts: list[Shaped[Tensor, "b d"]],
    labels: Int[Tensor, " r"],
    owners: Int[Tensor, " r"] | None,
    subspace: ClassSubspace,
    replicates: Replicates | None,
    options: Options,
) -> Float64[Tensor, " m"] | None:
    if replicates is None or replicates.weights is None or subspace.rank == 0:
        return None
    weights = replicates.weights if owners is None else replicates.weights[:, owners.cpu()]
    return reweighted_fuzziness(
        torch.cat(parts),
        labels,
        weights=weights,
        classes=len(subspace.counts),
        rank=subspace.rank,
        convention=options.convention,
    ).cpu()


def held_out_states(index: int, *, kept: Kept, train: ClassSubspace, subject: Subject) -> HeldOut:
    """The test data at one site: D by their own means, nearest centers by the training means."""
    parts = kept.features.parts(index)
    marks = Marks(kept.labels).of_rows(kept.rows_of(index))
    offset = subject.offset_at(index)
    site = HeldOutSite(train, options=subject.options, layer=subject.layer_at(index), offset=offset)
    site.first(parts, marks)
    site.turn()
    site.second(parts, marks)
    return site.states()

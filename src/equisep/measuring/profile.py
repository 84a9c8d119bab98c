"""From statistics to the records of a profile: site readings, laws at every grain, the classifier, effective depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from torch import nn

from equisep.files import encode
from equisep.findings.rare import predicted_cosines
from equisep.law import curve_intervals, fit_law, judged_by_folds, law_intervals, steadied
from equisep.law.effective_depth import effective_depth
from equisep.law.intervals import ResampleKind
from equisep.law.population import corrected_law
from equisep.measuring.notes import (
    Notes,
    note_batches,
    note_class_mix,
    note_class_names,
    note_classes,
    note_classifier,
    note_depth,
    note_directional,
    note_many_classes,
    note_no_corrected,
    note_same_data,
    note_sample_size,
    note_sites,
)
from equisep.measuring.passes import Passes
from equisep.measuring.plan import MANY_CLASSES, Plan
from equisep.measuring.reading import Read
from equisep.measuring.request import Options
from equisep.measuring.site_readings import site_readings
from equisep.results import ClassifierReading, GrainChoice, LawFit, Note, Profile, SiteReading
from equisep.separation import SiteStatistics, TestStatistics, geometry_of
from equisep.separation.collapse import nc3_of
from equisep.separation.group_sums import as_float64
from equisep.shapes import Float64

SETS = ("training", "test")


@dataclass(frozen=True, slots=True)
class GrainLaws:
    """One grain: its readings in order, the law of D on the training data, and the other laws."""

    readings: tuple[SiteReading, ...]
    law: LawFit
    others: Mapping[str, LawFit]


def profile_of(
    plan: Plan,
    train: Passes[SiteStatistics],
    test: Passes[TestStatistics] | None,
    *,
    name: str,
    class_names: tuple[str, ...] | None,
    notes: Notes,
) -> Profile:
    """Everything that the statistics say; what needs care is added to the notes."""
    probe, options = plan.probe, plan.options
    tested = test.sites if test is not None else (None,) * len(train.sites)
    distinct = site_readings(probe.sites, train.sites, tested, options)
    kind = _interval_kind(train.sites, options)
    grains = {
        grain: _grain_laws([distinct[i] for i in indices], [train.sites[i] for i in indices], names, plan, kind)
        for grain, names in probe.grains.items()
        for indices in [[probe.index_of(site) for site in names]]
    }
    chosen = grains[probe.grain]
    reads = [train.read, *([test.read] if test is not None else [])]
    known = any(site.fuzziness_interval is not None for site in chosen.readings)
    depth = _note_all(plan, chosen, train, reads, notes)
    note_class_names(notes, class_names)
    notes.extend(probe.unscored)
    balanced = [_mean(site.ncc_class_train) for site in chosen.readings]
    profile = Profile(
        model=name,
        reading=options.reading,
        classes=probe.classes,
        class_names=class_names,
        counts=tuple(reads[0].counts.tolist()),
        counts_test=tuple(reads[1].counts.tolist()) if test is not None else None,
        sites=chosen.readings,
        law=chosen.law,
        laws={**chosen.others, **({grain: each.law for grain, each in grains.items()} if len(grains) > 1 else {})},
        effective_depth=depth,
        effective_depth_balanced=effective_depth([None] * probe.begins + balanced, epsilon=options.epsilon),
        network_depth=_network_depth(chosen.readings, reads[-1].accuracy, options),
        classifier=_classifier_reading(plan, chosen.readings[-1].name, train, test, notes),
        grains=_grain_choice(plan, grains) if len(grains) > 1 else None,
        accuracy_train=reads[0].accuracy,
        accuracy_test=reads[1].accuracy if test is not None else None,
        accuracy_class_train=reads[0].class_accuracy,
        accuracy_class_test=reads[1].class_accuracy if test is not None else None,
        confused_train=reads[0].confused,
        confused_test=reads[1].confused if test is not None else None,
        whole=options.whole,
        samples=reads[0].order.saved(n=reads[0].n, folds=plan.folds, seed=options.seed)
        if kind == "jackknife"
        else None,
        settings=encode({**asdict(options), "grain": probe.grain or None, "intervals_by": kind if known else None}),
    )
    return replace(profile, peeled_cosines=predicted_cosines(profile))


def _interval_kind(sites: Sequence[SiteStatistics], options: Options) -> ResampleKind | None:
    """What the replicates of D are, where every site that has a D has them."""
    needed = [site for site in sites if site.spread.subspace.rank]
    if not needed or any(site.replicates is None for site in needed):
        return None
    return "bootstrap" if options.intervals == "bootstrap" else "jackknife"


def _grain_laws(
    distinct: Sequence[SiteReading],
    statistics: Sequence[SiteStatistics],
    names: Sequence[str],
    plan: Plan,
    kind: ResampleKind | None,
) -> GrainLaws:
    """The readings of one grain in order, two names of one tensor sharing its numbers, with their laws and intervals."""
    readings = [
        replace(reading, name=name, index=plan.probe.begins + place)
        for place, (name, reading) in enumerate(zip(names, distinct, strict=True))
    ]
    law, begin = _law([reading.fuzziness for reading in readings])
    if kind is not None and law.curve:
        raw = np.array([site.replicates for site in statistics[begin:]]).T
        curves = raw if kind == "bootstrap" else _steadied(raw, statistics[begin:])
        law = law_intervals(curves, law, kind=kind, level=plan.options.level)
        law = judged_by_folds(law, raw) if kind == "jackknife" else law
        intervals = (None,) * begin + curve_intervals(curves, law.curve, kind=kind, level=plan.options.level)
        readings = [replace(each, fuzziness_interval=span) for each, span in zip(readings, intervals, strict=True)]
    return GrainLaws(tuple(readings), law, _other_laws(readings, plan.options.level))


def _steadied(curves: Float64[np.ndarray, "m l"], sites: Sequence[SiteStatistics]) -> Float64[np.ndarray, "m l"]:
    """D without each fold at every site as the intervals by jackknife need it."""
    excess = [0.0 if site.population is None else site.population.excess for site in sites]
    return np.array([steadied(column, share) for column, share in zip(curves.T, excess, strict=True)]).T


def _other_laws(readings: Sequence[SiteReading], level: float) -> dict[str, LawFit]:
    """Laws beside that of D: of D of the population, of D on the test data, of both CDNV, of D_k of every class that has one.

    CDNV along the lines between class means is what few-shot nearest centers go by (Luthra, Salunkhe & Galanti 2026): whether it
    falls by equal factors too is a question of its own.
    """
    others: dict[str, LawFit] = {}
    for name, records in (
        ("corrected", [reading.corrected for reading in readings]),
        ("corrected test", [reading.corrected_test for reading in readings]),
    ):
        law = corrected_law(records, level=level)
        if law is not None:
            others[name] = law
    if any(reading.fuzziness_test is not None for reading in readings):
        others["test"] = _law([reading.fuzziness_test for reading in readings])[0]
    if any(reading.cdnv_directional is not None for reading in readings):  # a light reading has neither
        for name in ("cdnv", "cdnv_directional"):
            others[name] = _law([getattr(reading, name) for reading in readings], what="CDNV")[0]
    by_class = [reading.class_fuzziness for reading in readings if reading.class_fuzziness is not None]
    if len(by_class) == len(readings):
        columns = zip(*by_class, strict=True) if len(by_class[0] or ()) <= MANY_CLASSES else ()
        for k, values in enumerate(columns):
            if all(value is not None for value in values):
                others[f"class {k}"] = _law(values)[0]
    return others


def _law(curve: Sequence[float | None], *, what: str = "D") -> tuple[LawFit, int]:
    """The law of a curve, and where it begins: first sites without D (the same for every sample, say) are left out."""
    begin = next((index for index, value in enumerate(curve) if value is not None), len(curve))
    values = [value for value in curve[begin:] if value is not None]
    if not values or len(values) < len(curve) - begin:
        text = f"No law: {what} exists at {len(values)} of {len(curve)} sites."
        return LawFit(curve=(), notes=(Note("no-curve", text),)), begin
    law = fit_law(values)
    if begin:
        text = f"{what} does not exist at the first {begin} of {len(curve)} sites: the law is that of the sites after them."
        law = replace(law, notes=(*law.notes, Note("late-curve", text)))
    return law, begin


def _grain_choice(plan: Plan, grains: Mapping[str, GrainLaws]) -> GrainChoice:
    """Which grain is reported, with the readings that it does not have; a picture of one tensor is kept once."""
    probe, chosen = plan.probe, plan.probe.grain
    mine = {reading.name for reading in grains[chosen].readings}
    known = {probe.index_of(name) for name in mine}
    others = [
        replace(reading, coordinates=None) if probe.index_of(reading.name) in known else reading
        for grain, laws in grains.items()
        if grain != chosen
        for reading in laws.readings
        if reading.name not in mine
    ]
    return GrainChoice(chosen=chosen, sites=dict(probe.grains), others=tuple(others), reason=probe.reason)


def _classifier_reading(
    plan: Plan, last: str, train: Passes[SiteStatistics], test: Passes[TestStatistics] | None, notes: Notes
) -> ClassifierReading | None:
    """NC2 of the classifier's rows, NC3 and NC4 with the class means it reads, and margins; None for a zero row."""
    index = plan.probe.index_of(last)
    layer, name = plan.layer_at(index), plan.probe.classifier
    if layer is None or name is None:
        note_classifier(notes, plan.probe.classes, last, plan.reduction, head=plan.probe.head, stored=plan.stored)
        return None
    if not plan.options.wants("collapse", "margins"):
        return None
    rows = as_float64(layer.weight)
    geometry = geometry_of(rows - rows.mean(dim=0))
    if geometry is None:
        text = f"A row of the classifier `{name}` is zero once centered, so its NC2 to NC4 do not exist."
        notes.add("zero-classifier", text)
        return None
    return ClassifierReading(
        name=name,
        **asdict(geometry),
        nc3=_nc3(layer, train.sites[index]),
        nc4=_disagreement(train.sites[index]),
        nc4_test=None if test is None else _disagreement(test.sites[index]),
        margins=train.read.margins,
        margins_test=None if test is None else test.read.margins,
    )


def _nc3(layer: nn.Linear, site: SiteStatistics) -> float | None:
    centers = site.spread.centers
    return nc3_of(layer.weight, centers.about) if bool((centers.counts > 0).all()) else None


def _disagreement(site: SiteStatistics | TestStatistics) -> float | None:
    """NC4: the share of samples where the classifier and the nearest class mean disagree."""
    if site.nearest is None or site.nearest.disagreements is None:
        return None
    return site.nearest.disagreements / site.spread.centers.n


def _network_depth(readings: Sequence[SiteReading], accuracy: float | None, options: Options) -> int | None:
    """The first layer whose nearest centers come within ε of the network itself, on the data that the accuracy is of."""
    if accuracy is None:
        return None
    tested = any(reading.ncc_test is not None for reading in readings)
    for reading in readings:
        value = reading.ncc_test if tested else reading.ncc_train
        if reading.index >= 1 and value is not None and value + options.epsilon >= accuracy:
            return reading.index
    return None


def _mean(values: Sequence[float | None] | None) -> float | None:
    known = [value for value in values or () if value is not None]
    return sum(known) / len(known) if known else None


def _note_all(
    plan: Plan, chosen: GrainLaws, train: Passes[SiteStatistics], reads: Sequence[Read], notes: Notes
) -> int | None:
    """Everything that needs care about the numbers, noted; the effective depth, which some of it is about."""
    probe, options, readings = plan.probe, plan.options, chosen.readings
    for read, what in zip(reads, SETS, strict=False):
        note_classes(notes, read.counts, what=what)
        note_batches(notes, read.mixing, what=what)
    if len(reads) > 1 and reads[0].n == reads[1].n and reads[0].order == reads[1].order:
        note_same_data(notes)
    note_class_mix(notes, reads[0].counts, reads[-1].counts, options)
    if not options.whole:
        note_sample_size(notes, readings, chosen.law, chosen.others.get("corrected"))
        note_no_corrected(notes, readings, reads[0].counts, options, spreads=plan.reduction.spreads)
    note_sites(notes, readings, [train.sites[probe.index_of(reading.name)] for reading in readings])
    note_directional(notes, probe.classes, options)
    if plan.many:
        note_many_classes(notes, probe.classes, MANY_CLASSES, options)
    notes.extend(chosen.law.notes)
    depth = effective_depth([None] * probe.begins + [each.ncc_train for each in readings], epsilon=options.epsilon)
    note_depth(notes, depth, readings, options)
    return depth

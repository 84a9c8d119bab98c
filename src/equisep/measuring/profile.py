"""From statistics to the records of a profile: site readings, the classifier's reading, laws and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from equisep.law import choose_grain, curve_intervals, fit_law, grain_bic, law_intervals
from equisep.law.intervals import ResampleKind
from equisep.measuring.options import Options
from equisep.measuring.probe import Probe
from equisep.results import ClassifierReading, GrainChoice, Interval, LawFit, Note, SiteReading
from equisep.separation import PHD20
from equisep.separation.centers import cdnv_of
from equisep.separation.collapse import centered_means, geometry_of, nc3_of
from equisep.separation.fuzziness import class_fuzziness_of, fuzziness_of
from equisep.separation.moments import as_float64
from equisep.separation.states import SiteStates
from equisep.shapes import Float64, Int


def site_reading(name: str, states: SiteStates, options: Options) -> SiteReading:
    """One site's numbers; its index is given where it takes its place in a grain."""
    train, convention = states.train, options.convention
    test = states.test.spread if states.test else None
    space, moments = train.subspace, train.moments
    geometry = geometry_of(centered_means(space)) if options.wants("collapse") else None
    n, n_test = moments.n, test.moments.n if test else 0
    shares = moments.traces / moments.counts.clamp(min=1)
    return SiteReading(
        index=0,
        name=name,
        dim=moments.dim,
        fuzziness=fuzziness_of(space, train.projections, convention) if options.wants("fuzziness") else None,
        fuzziness_test=fuzziness_of(test.subspace, test.projections, convention)
        if test and options.wants("fuzziness")
        else None,
        null=states.null,
        class_fuzziness=_class_values(states) if options.wants("class_fuzziness") else None,
        rank=space.rank if options.wants("fuzziness", "spectrum") else None,
        cut=space.cut if options.wants("fuzziness", "spectrum") else None,
        singular_values=tuple(space.singular_values.tolist()) if options.wants("spectrum") else None,
        nc1=_nc1(states),
        norm_spread=geometry.norm_spread if geometry else None,
        angle_spread=geometry.angle_spread if geometry else None,
        angle_gap=geometry.angle_gap if geometry else None,
        etf_distance=geometry.etf_distance if geometry else None,
        trace_within=float(space.within_weights @ shares) if options.wants("traces") else None,
        trace_between=space.trace_between if options.wants("traces") else None,
        cdnv=cdnv_of(moments, space) if options.wants("cdnv") else None,
        cdnv_test=cdnv_of(test.moments, test.subspace)
        if test and test.moments.present.numel() > 1 and options.wants("cdnv")
        else None,
        ncc_train=states.hits / n if states.hits is not None and options.wants("ncc") else None,
        ncc_test=states.test.hits / n_test if states.test and options.wants("ncc") else None,
        coordinates=states.coordinates,
    )


def _nc1(states: SiteStates) -> float | None:
    """NC1 = Tr(SSw SSb⁺)/K in PHD20's convention, K the classes that have samples."""
    if states.collapse is None:
        return None
    value = fuzziness_of(states.collapse.subspace, states.collapse.projections, PHD20)
    return None if value is None else value / int((states.collapse.moments.counts > 0).sum())


def _class_values(states: SiteStates) -> tuple[float | None, ...] | None:
    if states.train.subspace.rank == 0:
        return None
    values = class_fuzziness_of(states.train.subspace, states.train.projections).tolist()
    counts = states.train.moments.counts.tolist()
    return tuple(value if count else None for value, count in zip(values, counts, strict=True))


def classifier_reading(
    name: str | None, layer: nn.Linear | None, last: SiteStates, options: Options
) -> tuple[ClassifierReading | None, list[Note]]:
    """NC2 of the classifier's rows, and NC3 and NC4 with the class means it reads; None for a zero row."""
    if name is None or layer is None or not options.wants("collapse"):
        return None, []
    rows = as_float64(layer.weight)
    geometry = geometry_of(rows - rows.mean(dim=0))
    if geometry is None:
        text = f"A row of the classifier `{name}` is zero once centered, so its NC2 to NC4 do not exist."
        return None, [Note("zero-classifier", text)]
    moments, test = last.train.moments, last.test
    whole = bool((moments.counts > 0).all())
    nc4 = last.disagreements / moments.n if last.disagreements is not None else None
    nc4_test = test.disagreements / test.spread.moments.n if test and test.disagreements is not None else None
    reading = ClassifierReading(
        name=name,
        norm_spread=geometry.norm_spread,
        angle_spread=geometry.angle_spread,
        angle_gap=geometry.angle_gap,
        etf_distance=geometry.etf_distance,
        nc3=nc3_of(layer.weight, moments.means) if whole else None,
        nc4=nc4,
        nc4_test=nc4_test,
    )
    return reading, []


def grain_readings(sites: Sequence[str], probe: Probe, distinct: Sequence[SiteReading]) -> list[SiteReading]:
    """The readings of one grain in order; two names of one tensor share its numbers."""
    return [
        replace(distinct[probe.index_of(site)], name=site, index=probe.begins + place)
        for place, site in enumerate(sites)
    ]


def laws_of(
    readings: Sequence[SiteReading],
    replicates: Float64[Tensor, "l m"] | None,
    *,
    kind: ResampleKind | None,
    options: Options,
) -> tuple[LawFit, dict[str, LawFit], list[SiteReading]]:
    """The law of D on the training data, the other laws, and the readings with an interval of D each."""
    law = _law([reading.fuzziness for reading in readings])
    intervals: tuple[Interval | None, ...] = (None,) * len(readings)
    if replicates is not None and kind is not None and law.curve:
        curves = replicates.T.numpy()
        law = law_intervals(curves, law, kind=kind, level=options.level)
        intervals = curve_intervals(curves, law.curve, kind=kind, level=options.level)
    others: dict[str, LawFit] = {}
    if any(reading.fuzziness_test is not None for reading in readings):
        others["test"] = _law([reading.fuzziness_test for reading in readings])
    by_class = [reading.class_fuzziness for reading in readings if reading.class_fuzziness is not None]
    if len(by_class) == len(readings):
        for k, curve in enumerate(zip(*by_class, strict=True)):
            if all(value is not None for value in curve):
                others[f"class {k}"] = _law(curve)
    spans = [replace(reading, fuzziness_interval=span) for reading, span in zip(readings, intervals, strict=True)]
    return law, others, spans


def grain_laws(
    distinct: Sequence[SiteReading],
    states: Sequence[SiteStates],
    probe: Probe,
    *,
    kind: ResampleKind | None,
    options: Options,
) -> tuple[str, list[SiteReading], LawFit, dict[str, LawFit], GrainChoice | None, list[Note]]:
    """The law at every grain, and the grain that is chosen: the one asked for, or of two the one that follows it better."""
    stacked = [state.replicates for state in states if state.replicates is not None]
    replicates = torch.stack(stacked) if len(stacked) == len(states) else None
    found: dict[str, tuple[LawFit, dict[str, LawFit], list[SiteReading]]] = {}
    for grain, sites in probe.grains.items():
        places = [probe.index_of(site) for site in sites]
        part = None if replicates is None else replicates[places]
        found[grain] = laws_of(grain_readings(sites, probe, distinct), part, kind=kind, options=options)
    if len(found) == 1:
        ((grain, (law, laws, readings)),) = found.items()
        return grain, readings, law, laws, None, []
    curve = [reading.fuzziness for reading in distinct]
    chosen = {grain: sorted({probe.index_of(site) for site in sites}) for grain, sites in probe.grains.items()}
    bics = {grain: grain_bic(curve, mine) for grain, mine in chosen.items()}  # two names of one tensor are one site
    both = {grain: law for grain, (law, _, _) in found.items()}
    choice, note = choose_grain(both, bics, probe.grains)
    law, laws, readings = found[choice.chosen]
    return choice.chosen, readings, law, {**laws, **both}, _with_others(choice, found, probe), [note]


def _with_others(
    choice: GrainChoice,
    found: Mapping[str, tuple[LawFit, dict[str, LawFit], list[SiteReading]]],
    probe: Probe,
) -> GrainChoice:
    """The choice with the readings that the chosen grain does not have; a picture of one tensor is kept once."""
    mine = choice.sites[choice.chosen]
    known = {probe.index_of(site) for site in mine}
    rest = [reading for grain, (_, _, readings) in found.items() if grain != choice.chosen for reading in readings]
    others = [
        replace(reading, coordinates=None) if probe.index_of(reading.name) in known else reading
        for reading in rest
        if reading.name not in mine
    ]
    return replace(choice, others=tuple(others))


def _law(curve: Sequence[float | None]) -> LawFit:
    values = [value for value in curve if value is not None]
    if not values or len(values) < len(curve):
        text = f"No law: D exists at {len(values)} of {len(curve)} sites."
        return LawFit(curve=(), notes=(Note("no-curve", text),))
    return fit_law(values)


def class_notes(counts: Int[Tensor, " k"], *, what: str) -> list[Note]:
    """Classes that are absent or have a single sample."""
    notes = []
    for size, code, words in ((0, "absent", "no sample"), (1, "single", "one sample")):
        found = (counts == size).nonzero().flatten().tolist()
        if found:
            names = ", ".join(map(str, found[:5])) + (", …" if len(found) > 5 else "")
            effect = "left out of all means over classes" if size == 0 else "without within-class spread of their own"
            text = f"{len(found)} of {counts.numel()} classes ({names}) have {words} in the {what} data; they are {effect}."
            notes.append(Note(f"{code}-{what}", text))
    return notes


def site_notes(readings: Sequence[SiteReading], states: Sequence[SiteStates]) -> list[Note]:
    """What needs care about single sites, gathered so that one cause makes one note."""
    notes: list[Note] = []
    sizes = [int(state.train.moments.counts[state.train.moments.counts > 0].min()) for state in states]
    wide = [(size, reading.dim) for size, reading in zip(sizes, readings, strict=True) if reading.dim > size]
    if wide:
        smallest, widest = min(size for size, _ in wide), max(dim for _, dim in wide)
        text = (
            f"The smallest class has {smallest} samples against up to {widest} features at {len(wide)} of "
            f"{len(readings)} sites: D depends on n against d there; compare it with its value under permuted labels (null)."
        )
        notes.append(Note("small-classes", text))
    coarse = [r.name for r, s in zip(readings, states, strict=True) if s.train.moments.eps > 1e-5]
    if coarse:
        text = f"{len(coarse)} sites came in half precision: differences below its rounding are cut off."
        notes.append(Note("half-precision", text))
    for reading, state in zip(readings, states, strict=True):
        space = state.train.subspace
        if space.rank == 0:
            text = "All class means coincide to rounding: nothing separates the classes, D does not exist."
            notes.append(Note("no-separation", text, site=reading.name))
        elif space.rank < space.full_rank:
            text = (
                f"The class means span {space.rank} of {space.full_rank} directions (cut at {space.cut:.2g}): they have "
                "become dependent, and D depends on the cut."
            )
            notes.append(Note("rank", text, site=reading.name))
    return notes

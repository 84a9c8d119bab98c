"""From the statistics of sites to their readings: D, CDNV, nearest centers and neural collapse of each, as far as asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from equisep.law.population import corrected
from equisep.measuring.reading import shares
from equisep.measuring.request import Options
from equisep.results import Corrected, SiteReading
from equisep.separation import PHD20, Geometry, Sampled, SiteStatistics, TestStatistics
from equisep.separation.alike import cdnv_of_sites, geometry_of_sites
from equisep.separation.fuzziness import class_fuzziness_of, fuzziness_of
from equisep.separation.pairs.means import cosines_of, nearest_pairs


def site_readings(
    names: Sequence[str],
    train: Sequence[SiteStatistics],
    test: Sequence[TestStatistics | None],
    options: Options,
) -> list[SiteReading]:
    """The numbers of every site; its index is given where it takes its place in a grain."""
    shared = _shared(train, [each for each in test if each is not None], options)
    return [
        _site_reading(name, one, two, {key: values[at] for key, values in shared.items()}, options)
        for at, (name, one, two) in enumerate(zip(names, train, test, strict=True))
    ]


def _shared(
    train: Sequence[SiteStatistics], test: Sequence[TestStatistics], options: Options
) -> dict[str, Sequence[Any]]:
    """What is found of all sites together, by name: D, CDNV and NC2; nothing where it was not asked for."""
    mine, others, found = [each.spread for each in train], [each.spread for each in test], dict[str, Sequence[Any]]()
    if options.wants("fuzziness"):
        found["fuzziness"] = [fuzziness_of(each, options.convention) for each in mine]
        if others:
            found["fuzziness_test"] = [fuzziness_of(each, options.convention) for each in others]
    if options.wants("cdnv"):
        found["cdnv"] = cdnv_of_sites(mine)
        if others and others[0].centers.present.numel() > 1:
            found["cdnv_test"] = cdnv_of_sites(others)
    if options.wants("collapse"):
        present = int((mine[0].centers.counts > 0).sum())  # every site has seen all classes that have samples
        fuzzy = found.get("fuzziness", [None] * len(train))
        found["nc1"] = [_nc1(*each, present=present) for each in zip(train, fuzzy, strict=True)]
        found["geometry"] = geometry_of_sites(mine)
    return found


def _site_reading(
    name: str,
    train: SiteStatistics,
    test: TestStatistics | None,
    shared: dict[str, Any],
    options: Options,
) -> SiteReading:
    """One site's numbers."""
    geometry: Geometry | None = shared.pop("geometry", None)
    angles: dict[str, Any] = {} if geometry is None else {**geometry.numbers}
    return SiteReading(  # made once: a Tracker makes one per site and epoch
        index=0,
        name=name,
        dim=train.spread.centers.dim,
        null=train.chance,
        coordinates=train.coordinates,
        **shared,
        **_fuzziness(train, options),
        **_corrected(train, test, shared, options),
        **_centers(train, test, options),
        **_traces(train, options),
        **angles,
    )


def _fuzziness(train: SiteStatistics, options: Options) -> dict[str, Any]:
    """D of every class and without every fold, and the directions that it is of."""
    space, ranked = train.spread.subspace, options.wants("fuzziness", "spectrum")
    return {
        "class_fuzziness": _class_values(train) if options.wants("class_fuzziness") else None,
        "fuzziness_folds": _folds(train, options),
        "rank": space.rank if ranked else None,
        "cut": space.cut if ranked else None,
        "singular_values": tuple(space.singular_values.tolist()) if options.wants("spectrum") else None,
    }


def _corrected(
    train: SiteStatistics, test: TestStatistics | None, fuzzy: Mapping[str, Any], options: Options
) -> dict[str, Any]:
    """D of the population behind the samples, where the folds were read."""

    def of(data: Sampled | None, plain: float | None) -> Corrected | None:
        if data is None or data.population is None:
            return None
        return corrected(
            data.population,
            plain=plain,
            chance=data.chance,
            counts=data.spread.centers.counts.tolist(),
            level=options.level,
        )

    if not options.wants("fuzziness"):
        return {}
    return {"corrected": of(train, fuzzy["fuzziness"]), "corrected_test": of(test, fuzzy.get("fuzziness_test"))}


def _centers(train: SiteStatistics, test: TestStatistics | None, options: Options) -> dict[str, Any]:
    """What the class means say beside: nearest centers, pairs of classes."""
    known: dict[str, Any] = {}
    if options.wants("ncc") and train.nearest is not None:
        by_class = shares(train.nearest.hits, train.spread.centers.counts)
        known |= {"ncc_train": by_class.whole, "ncc_class_train": by_class.each}
    if options.wants("ncc") and test is not None:
        by_class = shares(test.nearest.hits, test.spread.centers.counts)
        known |= {"ncc_test": by_class.whole, "ncc_class_test": by_class.each}
    if train.nearest is not None and train.nearest.confusion is not None:
        known["confused"] = train.nearest.confusion.most_confused()
    if test is not None and test.nearest.confusion is not None:
        known["confused_test"] = test.nearest.confusion.most_confused()
    if train.axes is not None:
        known["cdnv_directional"] = train.axes.mean_cdnv(train.spread.projections, train.spread.centers)
    if options.wants("pairs"):
        space = train.spread.subspace
        known |= {"nearest": nearest_pairs(space), "cosines": cosines_of(space)}
    return known


def _traces(train: SiteStatistics, options: Options) -> dict[str, Any]:
    if not options.wants("traces"):
        return {}
    spread = train.spread
    within = float(spread.subspace.within_weights @ spread.projections.variances)
    return {"trace_within": within, "trace_between": spread.subspace.trace_between}


def _nc1(train: SiteStatistics, fuzziness: float | None, *, present: int) -> float | None:
    """NC1 = Tr(SSw SSb⁺)/K in PHD20's convention, K the classes that have samples; where D is of that convention, D/K."""
    if train.collapse is None:
        return None
    value = fuzziness if train.collapse is train.spread else None
    value = fuzziness_of(train.collapse, PHD20) if value is None else value
    return None if value is None else value / present


def _folds(train: SiteStatistics, options: Options) -> tuple[float, ...] | None:
    """D without each fold, where that is what the replicates are; what is beyond all numbers cannot be saved."""
    known = train.replicates if options.intervals != "bootstrap" else None
    return known if known is not None and np.isfinite(known).all() else None


def _class_values(train: SiteStatistics) -> tuple[float | None, ...] | None:
    if train.spread.subspace.rank == 0:
        return None
    counts = train.spread.centers.counts.tolist()
    values = class_fuzziness_of(train.spread).tolist()
    return tuple(value if count else None for value, count in zip(values, counts, strict=True))

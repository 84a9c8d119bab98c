"""The numbers of a training that the page's script draws: the law over the epochs, D by layer, samples where they were kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equisep.report.history_tables import EMERGED, law_rows
from equisep.report.page.class_numbers import MOST_POINTS, evenly, mirrored, on_grid, points_drawn, short
from equisep.report.page.numbers import curve_indices, law_line
from equisep.report.page.subject import finite_profile
from equisep.results import Profile
from equisep.results.wording import class_labels
from equisep.tracking.history import History

MOST_READINGS = 200  # drawn; of more an even choice
_CURVES = (
    "rho",
    "r",
    "verdict",
    "accuracy_train",
    "accuracy_test",
    "ncc_train",
    "ncc_test",
    "effective_depth",
    "nc1",
    "cdnv",
)


def history_numbers(history: History) -> dict[str, Any] | None:
    """All of it; None where no reading has a profile."""
    profiles = drawn_profiles(history)
    if not profiles:
        return None
    rows = {row[history.unit]: row for row in law_rows(history)}
    last = list(profiles.values())[-1]
    curves = [profile.curve() for profile in profiles.values()]
    tests = [profile.curve("fuzziness_test") for profile in profiles.values()]
    settled = history.settled()
    return {
        "unit": history.unit,
        "numbers": list(profiles),
        **{name: [rows[number][name] for number in profiles] for name in _CURVES},
        "index": [site.index for site in last.sites],
        "name": [site.name for site in last.sites],
        "fuzziness": [[short(value, 6) for value in curve] for curve in curves],
        "fuzziness_test": [[short(value, 6) for value in curve] for curve in tests]
        if any(value is not None for curve in tests for value in curve)
        else None,
        "line": [law_line(profile.law, curve_indices(profile, profile.law)) for profile in profiles.values()],
        "emerged": [{"what": EMERGED[what], "at": each.first} for what, each in history.emergence().items()],
        "settled": settled.since if settled.settled else None,
        "maps": _maps(profiles),
    }


def drawn_profiles(history: History) -> dict[int, Profile]:
    """The readings that are drawn, by number: all, or of many an even choice."""
    profiles = history.profiles()
    return {number: finite_profile(profiles[number]) for number in evenly(list(profiles), MOST_READINGS)}


def _maps(profiles: dict[int, Profile]) -> dict[str, Any] | None:
    """Samples on two components, reading by reading and layer by layer, where every layer of a reading kept the same ones."""
    kept = {number: profile for number, profile in profiles.items() if _kept_labels(profile) is not None}
    if not kept:
        return None
    last = list(kept.values())[-1]
    labels = _kept_labels(last)
    kept = {number: profile for number, profile in kept.items() if _kept_labels(profile) == labels}
    first = last.sites[0].coordinates
    assert labels is not None and first is not None
    chosen = points_drawn(first, MOST_POINTS // (len(kept) * len(last.sites)))
    kinds = sorted({labels[number] for number in chosen})
    names = class_labels(last)
    return {
        "numbers": list(kept),
        "labels": [labels[number] for number in chosen],
        "classes": kinds,
        "names": [names[kind] for kind in kinds],
        "layers": list(range(len(last.sites))),
        "points": _mirrored(
            [
                [on_grid(site.coordinates, chosen) for site in profile.sites if site.coordinates is not None]
                for profile in kept.values()
            ]
        ),
        "explained": [
            [
                [round(share, 4) for share in site.coordinates.explained]
                for site in profile.sites
                if site.coordinates is not None
            ]
            for profile in kept.values()
        ],
        "left_out": len(labels) - len(chosen),
    }


def _mirrored(points: list[list[list[int]]]) -> list[list[list[int]]]:
    """Every layer's frames near to each other over the readings, those of the last reading over the layers."""
    layers = [mirrored([*(reading[layer] for reading in points)]) for layer in range(len(points[0]))]
    last = mirrored([frames[-1] for frames in layers])
    turned = [mirrored([*frames[:-1], end]) for frames, end in zip(layers, last, strict=True)]
    return [list(reading) for reading in zip(*turned, strict=True)]


def _kept_labels(profile: Profile) -> Sequence[int] | None:
    """The labels of the samples that every layer kept; None where a layer kept none, or others."""
    labels = {None if site.coordinates is None else site.coordinates.labels for site in profile.sites}
    return labels.pop() if len(labels) == 1 else None

"""The page on a training: its section (the law over the epochs, what emerged when, whether it has settled), and its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equisep.report.formatting import correlation, number, percent
from equisep.report.history_tables import EMERGED, damaged_words, emergence_words, law_rows
from equisep.report.page.class_numbers import MOST_POINTS, evenly, mirrored, on_grid, points_drawn, short
from equisep.report.page.markup import Cell, Head, Section, absent, definitions, figure, folded, paragraph, table
from equisep.report.page.numbers import curve_indices, law_line
from equisep.report.page.subject import finite_profile
from equisep.results import Profile
from equisep.results.records import LAW_R
from equisep.results.wording import class_labels
from equisep.tracking.history import History

_PERCENT = ("ncc_train", "ncc_test", "accuracy_train", "accuracy_test")
_HEADS = {
    "rho": Head("rho", "ρ", "what each layer leaves of D"),
    "half_life": Head("half_life", "half-life", "layers until D has halved"),
    "r": Head("r", "r", "correlation of ln D with depth"),
    "verdict": Head("verdict", "verdict", "", "text"),
    "fuzziness_last": Head("fuzziness_last", "D, last layer"),
    "nc1": Head("nc1", "NC1, last layer"),
    "cdnv": Head("cdnv", "CDNV, last layer"),
    "ncc_train": Head("ncc_train", "NCC train %"),
    "ncc_test": Head("ncc_test", "NCC test %"),
    "effective_depth": Head("effective_depth", "effective depth"),
    "accuracy_train": Head("accuracy_train", "train %"),
    "accuracy_test": Head("accuracy_test", "test %"),
    "minority_cosine": Head("minority_cosine", "minority cosine", "between classifier rows of rare classes"),
}
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


def training_section(history: History, numbers: dict[str, Any] | None) -> Section:
    """The law over the epochs; `numbers` are those that are drawn."""
    unit, title = history.unit, "Over the training"
    if numbers is None:
        return Section("training", title, absent("No reading of this history has a profile: there is nothing to draw."))
    body = []
    left = len(history.read) - len(numbers["numbers"])
    if left:
        body.append(
            paragraph(
                f"Of {len(history.read):,} readings {len(numbers['numbers'])} are drawn, evenly spread.", "left-out"
            )
        )
    body.append(
        figure(
            "law-epochs",
            f"D against the layer, one line per {unit}, the latest darkest: move through the training to see how it changes.",
            label=f"D against the layer, {unit} by {unit}",
        )
    )
    body.append(
        figure(
            "epochs",
            f"The factor ρ per layer, the straightness r and accuracies over the training. r at or below −{-LAW_R:g} is a law.",
            label=f"ρ, r and accuracy against the {unit}",
        )
    )
    rows = [
        (EMERGED[what], f"{emergence_words(history, each)}. {each.rule}.") for what, each in history.emergence().items()
    ]
    settled = history.settled()
    rows.append(("Settled", settled.reason))
    body.append(definitions(rows, "facts"))
    failed = [entry for entry in history.entries if entry.failure is not None]
    if failed:
        body.append(
            absent(
                f"{len(failed)} of {len(history)} readings failed; the last ({unit} {failed[-1].number}): {failed[-1].failure}"
            )
        )
    if history.damaged:
        body.append(absent(damaged_words(history)))
    body.append(folded(_table(history)))
    return Section("training", title, "".join(body), "Training")


def _table(history: History) -> str:
    rows = law_rows(history)
    names = [name for name in _HEADS if any(row[name] is not None for row in rows)]
    heads = [Head(history.unit, history.unit), *(_HEADS[name] for name in names)]
    cells = [
        [Cell(row[history.unit], str(row[history.unit])), *(Cell(row[name], _text(name, row[name])) for name in names)]
        for row in rows
    ]
    return table(heads, cells, label=f"The law over the {history.unit}s", sortable=True, csv="training.csv")


def _text(name: str, value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if name == "r":
        return correlation(value)
    if name in _PERCENT:
        return percent(value)
    return str(value) if isinstance(value, int) else number(value, 3)


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

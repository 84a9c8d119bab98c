"""The page's sections on the class means: where they point against the simplex, and what becomes of rare classes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from equisep.findings.rare import ENERGIES, rare
from equisep.findings.rare import MOST_CLASSES as MOST_SOLVED
from equisep.report.formatting import classifier_rows, number, samples_words
from equisep.report.page.class_numbers import cosine_numbers
from equisep.report.page.class_sections import pair_rows, per_subject
from equisep.report.page.markup import Cell, Head, Section, absent, definitions, figure, folded, paragraph, table
from equisep.report.page.subject import Subject

_SIMPLEX = "In the simplex of neural collapse every two classes stand at the cosine −1/(K − 1), here {etf}."


def geometry_section(subjects: Sequence[Subject]) -> Section:
    """The class means against the simplex, in a heat map and in three dimensions."""
    return Section("geometry", "Where the class means point", "".join(per_subject(subjects, _geometry)), "Class means")


def rare_section(subjects: Sequence[Subject]) -> Section | None:
    """Rare classes beside the Layer-Peeled Model; None where no profile has any."""
    if not any(subject.rare for subject in subjects):
        return None
    return Section("rare", "Rare classes", "".join(per_subject(subjects, _rare)))


def _geometry(subject: Subject) -> Iterable[str]:
    profile, last = subject.profile, subject.last
    etf = number(-1 / (profile.classes - 1), 3) if profile.classes > 1 else "–"
    cosines = cosine_numbers(subject)
    if cosines is not None:
        words = _SIMPLEX.format(etf=etf)
        caption = f"Cosines between the class means, centered on their mean. {words} Red: nearer to each other; blue: farther."
        yield figure("cosines", caption, label="Cosines between class means", profile=subject.number)
        yield folded(_cosine_table(subject))
        caption = (
            "The directions of the class means on the three dimensions that show most of them, beside a simplex (faint). Drag, "
            "or use the arrow keys, to turn it; move through the layers to see the classes spread."
        )
        yield figure("space", caption, label="Class means in three dimensions", profile=subject.number)
        if cosines["left_out"]:
            drawn = len(cosines["layers"])
            yield paragraph(
                f"Of {drawn + cosines['left_out']} {subject.each}s with cosines {drawn} are drawn, evenly spread, the first and "
                "the last among them; all are in the profile.",
                "left-out",
            )
    elif last is not None and last.cosines is not None:
        yield from _extremes(subject)
    else:
        yield absent("Cosines between class means were not measured.")
    rows: list[tuple[str, str]] = []
    if last is not None:
        shown = {
            "NC1, spread within classes": last.nc1,
            "NC2, spread of the norms of class means": last.norm_spread,
            "NC2, spread of their angles": last.angle_spread,
            "NC2, distance from a simplex": last.etf_distance,
        }
        rows += [(name, number(value, 3)) for name, value in shown.items() if value is not None]
    if profile.classifier is not None:
        rows += [
            (f"Classifier `{profile.classifier.name}`, {name}", words)
            for name, words in classifier_rows(profile.classifier)
        ]
    if rows:
        yield paragraph("Neural collapse at the last layer: 0 is full collapse.", "aside")
        yield definitions(rows, "facts")
    else:
        yield absent("Neural collapse (NC1 to NC4) was not measured.")


def _cosine_table(subject: Subject) -> str:
    """The cosines of the last layer that has them, of the classes that are drawn."""
    site = next(
        site for site in reversed(subject.profile.sites) if site.cosines is not None and site.cosines.rows is not None
    )
    assert site.cosines is not None
    kinds = sorted(subject.shown_classes)
    names = [subject.class_names[kind] for kind in kinds]
    heads = [Head("class", "class", "", "text"), *(Head(name, name) for name in names)]
    rows = []
    for kind, name in zip(kinds, names, strict=True):
        values = [1.0 if kind == other else site.cosines.between(kind, other) for other in kinds]
        rows.append([Cell(name, name), *(Cell(value, number(value, 3)) for value in values)])
    return table(heads, rows, label=f"Cosines between class means at {subject.site_words(site)}, {subject.label}")


def _extremes(subject: Subject) -> Iterable[str]:
    """Of more than 100 classes the profile keeps the extremes."""
    last = subject.last
    assert last is not None and last.cosines is not None
    cosines = last.cosines
    yield paragraph(
        f"Of {subject.profile.classes:,} classes the profile keeps the mean cosine between class means, "
        f"{number(cosines.mean, 3)} (a simplex has {number(-1 / (subject.profile.classes - 1), 3)}), and the extremes: a heat "
        "map of all is not drawn.",
        "left-out",
    )
    heads = [Head("class", "class", "", "text"), Head("other", "and", "", "text"), Head("cosine", "cosine")]
    for title, pairs in (("Nearest directions", cosines.greatest), ("Farthest directions", cosines.least)):
        if pairs:
            rows = pair_rows(subject, pairs, "cosine")
            yield f"<h3>{title}</h3>{table(heads, rows, label=f'{title}, {subject.label}')}"


def _rare(subject: Subject) -> Iterable[str]:
    profile = subject.profile
    if not subject.rare:
        yield paragraph("All classes are larger than half of the largest: none is rare.")
        return
    lost = f" {len(subject.lost)} of them {'is' if len(subject.lost) == 1 else 'are'} lost." if subject.lost else ""
    yield paragraph(
        f"{len(subject.rare)} of {profile.classes} classes have at most half the samples of the largest "
        f"({samples_words(profile.counts)})."
        f"{lost} In minority collapse (Fang, He, Long & Su 2021) the class means of rare classes become one direction: cosine 1."
    )
    said = next(iter(rare(subject.facts)), None)
    if said is None:
        yield absent(
            "How near rare classes stand to each other is not known: cosines between class means were not kept."
        )
        return
    bars = _rare_bars(subject, said.numbers)
    attribute = f' data-bars="{escape(json.dumps(bars), quote=True)}"'
    caption = (
        "Mean cosine between the class means of rare classes, beside that of the others and what the Layer-Peeled Model predicts "
        "from the class sizes alone. It has no depth and no data, and a network's energies are not known: read it as a range."
    )
    yield figure(
        "rare",
        caption,
        label="Cosines between rare classes, measured and predicted",
        profile=subject.number,
        more=attribute,
    )
    heads = [Head("what", "mean cosine", "", "text"), Head("cosine", "value"), Head("kind", "", "", "text")]
    rows = [
        [Cell(bar["label"], bar["label"]), Cell(bar["value"], number(bar["value"], 3)), Cell(bar["kind"], bar["kind"])]
        for bar in bars
    ]
    yield folded(table(heads, rows, label=f"Rare classes, {subject.label}"))
    if not any(bar["kind"] == "predicted" for bar in bars):
        yield absent(
            f"The Layer-Peeled Model is not solved here: that is done for up to {MOST_SOLVED} classes, all with samples."
        )


def _rare_bars(subject: Subject, numbers: Mapping[str, float | None]) -> list[dict[str, Any]]:
    named = {
        "among rare classes": (numbers.get("cosine"), "measured"),
        "among the other classes": (numbers.get("cosine_others"), "measured"),
        **{
            f"predicted among rare classes, energies {energy:g}": (numbers.get(f"predicted at {energy:g}"), "predicted")
            for energy in ENERGIES
        },
        "a simplex": (-1 / (subject.profile.classes - 1), "reference"),
    }
    return [
        {"label": label, "value": float(value), "kind": kind}
        for label, (value, kind) in named.items()
        if value is not None
    ]

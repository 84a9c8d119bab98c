"""The page's sections on classes: each by itself, and their samples on two components."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from equisep.report.formatting import correlation, number, percent
from equisep.report.page.class_numbers import map_numbers
from equisep.report.page.markup import (
    Cell,
    Head,
    Section,
    absent,
    figure,
    folded,
    paragraph,
    plain,
    table,
)
from equisep.report.page.subject import Subject
from equisep.results import ClassPair

MOST_PAIRS = 10
_three = partial(number, digits=3)
_SHOWN: dict[str, Callable[[float | None], str]] = {
    "class_fuzziness": _three, "margin": _three, "rho": _three, "r": correlation,
}  # fmt: skip


def classes_section(subjects: Sequence[Subject]) -> Section:
    """Who is hard, who is lost, and who is taken for whom."""
    return Section("classes", "Class by class", "".join(per_subject(subjects, _classes)), "Classes")


def maps_section(subjects: Sequence[Subject], *, epochs: bool = False) -> Section:
    """Samples on two principal components."""
    body = "".join(per_subject(subjects, lambda each: _maps(each, epochs)))
    return Section("maps", "See it: samples on two components", body, "See it")


def per_subject(subjects: Sequence[Subject], blocks: Callable[[Subject], Iterable[str]]) -> Iterable[str]:
    """The blocks of every profile; of several each under its name, and the script lets the reader choose one."""
    if len(subjects) == 1:
        yield from blocks(subjects[0])
        return
    for subject in subjects:
        label = plain(subject.label)
        yield f'<div class="of-profile" data-label="{label}"><h3>{label}</h3>'
        yield from blocks(subject)
        yield "</div>"


def _classes(subject: Subject) -> Iterable[str]:
    profile = subject.profile
    if subject.classes_left_out:
        yield paragraph(
            f"The profile has {profile.classes:,} classes. Drawn and listed are the {len(subject.shown_classes)} hardest; "
            f"{subject.classes_left_out:,} are left out here, and are all in the profile.", "left-out",
        )  # fmt: skip
    if any(site.class_fuzziness is not None for site in profile.sites):
        caption = (
            "D of each class, layer by layer; the class with the largest D at the last layer on top. A row that keeps its color "
            "longer than the others is a class that the network separates late."
        )
        yield figure("class-d", caption, label="D of each class against the layer", profile=subject.number)
        yield folded(_class_layers(subject))
    else:
        yield absent("D per class was not measured: metric `class_fuzziness`.")
    yield table(*_class_table(subject), label=f"Classes of {subject.label}", sortable=True, csv="classes.csv")
    yield '<div class="beside">'
    yield from _confused(subject)
    yield from _nearest(subject)
    yield "</div>"


def _class_layers(subject: Subject) -> str:
    profile = subject.profile
    heads = [Head("class", "class", "", "text")]
    heads += [Head(f"{subject.each} {site.index}", f"{subject.each} {site.index}") for site in profile.sites]
    rows = []
    for kind in subject.shown_classes:
        values = [None if site.class_fuzziness is None else site.class_fuzziness[kind] for site in profile.sites]
        name = subject.class_names[kind]
        rows.append([Cell(name, name), *(Cell(value, number(value, 3)) for value in values)])
    return table(heads, rows, label=f"D per class and layer, {subject.label}")


def _class_table(subject: Subject) -> tuple[list[Head], list[list[Cell]]]:
    """One row per class that is shown: its size, D at the last layer, accuracies, and whether it is lost."""
    profile, last = subject.profile, subject.last
    columns = {
        Head("class_fuzziness", "D, last", "D of the class at the last layer"): None if last is None else last.class_fuzziness,
        Head("accuracy_test", "test %", "test samples that the network has right"): profile.accuracy_class_test,
        Head("accuracy_train", "train %", "training samples that the network has right"): profile.accuracy_class_train,
        Head("ncc_test", "NCC test %", "test samples nearest to their own class mean, last layer"):
            None if last is None else last.ncc_class_test,
        Head("ncc_train", "NCC train %", "training samples nearest to their own class mean, last layer"):
            None if last is None else last.ncc_class_train,
        Head("margin", "margin", "mean of the own score less the largest other"):
            None if profile.classifier is None else profile.classifier.margins,
        Head("rho", "ρ", f"what each {subject.each} leaves of D of the class"): _class_laws(subject, "rho"),
        Head("r", "r", "correlation of ln D of the class with depth: −1 is a straight line"): _class_laws(subject, "r"),
    }  # fmt: skip
    known = {head: values for head, values in columns.items() if values is not None}
    heads = [Head("class", "class", "", "text"), Head("samples", "samples", "training samples"), *known]
    rows = []
    for kind in subject.shown_classes:
        name, count = subject.class_names[kind], profile.counts[kind]
        mark = " (lost)" if kind in subject.lost else " (rare)" if kind in subject.rare else ""
        cells = [Cell(name, name + mark), Cell(count, f"{count:,}")]
        for head, values in known.items():
            value = values[kind]
            shown = _SHOWN.get(head.name, percent)(value)
            cells.append(Cell(value, shown))
        rows.append(cells)
    return heads, rows


def _class_laws(subject: Subject, name: str) -> list[float | None] | None:
    """One number of the law of every class, where there are such laws."""
    laws = [subject.profile.laws.get(f"class {kind}") for kind in range(subject.profile.classes)]
    return [None if law is None else getattr(law, name) for law in laws] if any(laws) else None


def _confused(subject: Subject) -> Iterable[str]:
    profile, last = subject.profile, subject.last
    tested = profile.confused_test is not None
    pairs = profile.confused_test if tested else profile.confused_train
    what, who = ("test" if tested else "training"), "the network"
    if pairs is None and last is not None:
        tested = last.confused_test is not None
        pairs, who = (last.confused_test if tested else last.confused), "nearest class means at the last layer"
        what = "test" if tested else "training"
    if pairs is None:
        yield absent("Who is taken for whom was not measured.")
        return
    yield f"<div><h3>Most often confused</h3>{paragraph(f'By {who}, on {what} data.', 'aside')}"
    if pairs:
        heads = [
            Head("class", "class", "", "text"),
            Head("taken_for", "taken for", "", "text"),
            Head("samples", "samples"),
        ]
        yield table(heads, pair_rows(subject, pairs, "samples"), label=f"Most often confused classes, {subject.label}")
    else:
        yield paragraph("No sample is taken for another class.")
    yield "</div>"


def _nearest(subject: Subject) -> Iterable[str]:
    last = subject.last
    if last is None or not last.nearest:
        return
    heads = [Head("class", "class", "", "text"), Head("other", "and", "", "text"), Head("distance", "distance")]
    yield f"<div><h3>Nearest class means</h3>{paragraph('At the last layer.', 'aside')}"
    yield table(heads, pair_rows(subject, last.nearest, "distance"), label=f"Nearest class means, {subject.label}")
    yield "</div>"


def pair_rows(subject: Subject, pairs: Sequence[ClassPair], kind: str) -> Iterable[list[Cell]]:
    """The first pairs of classes, by name, with their number: samples as a count."""
    for pair in pairs[:MOST_PAIRS]:
        first, second = subject.class_names[pair.first], subject.class_names[pair.second]
        value = int(pair.value) if kind == "samples" else pair.value
        shown = f"{value:,}" if kind == "samples" else number(pair.value, 3)
        yield [Cell(first, first), Cell(second, second), Cell(value, shown)]


def _maps(subject: Subject, epochs: bool) -> Iterable[str]:
    numbers = map_numbers(subject)
    if numbers is None and not epochs:
        yield absent(
            "The profile holds no samples on principal components. Measure with `coordinates=300` (or `--coordinates 300`) to "
            "see them."
        )
        return
    caption = (
        "Samples on the two directions of greatest variance of each layer, colored by class. Move through the layers: classes "
        "that mix at the input come apart. Directions are those of each layer, so positions do not compare between layers."
    )
    more = ' data-history=""' if epochs else ""
    yield figure("map", caption, label="Samples on two principal components", profile=subject.number, more=more)
    if numbers is None:
        return
    if numbers["left_out"]:
        yield paragraph(f"Of the samples kept in the profile {numbers['left_out']:,} are not drawn.", "left-out")
    heads = [
        Head("site", subject.each), Head("name", "name", "", "text"),
        Head("first", "first component %", "share of the variance"),
        Head("second", "second component %", "share of the variance"),
    ]  # fmt: skip
    rows = [
        [
            Cell(site.index, str(site.index)),
            Cell(site.name, site.name),
            *(Cell(share, f"{100 * share:.1f}") for share in site.coordinates.explained),
        ]
        for site in subject.profile.sites
        if site.coordinates is not None
    ]
    yield folded(
        table(heads, rows, label=f"Variance on two components, {subject.label}"), "Shares of the variance as a table"
    )

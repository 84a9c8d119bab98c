"""The end of the page: every number in one table, how it was made and how to make it again, the words, and whom to cite."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from equisep._version import __version__
from equisep.report.columns import COLUMNS, READING_COLUMNS
from equisep.report.formatting import one_line
from equisep.report.page.law_sections import column_head, layer_rows
from equisep.report.page.markup import (
    Section,
    absent,
    bullets,
    command,
    definitions,
    folded,
    marked,
    paragraph,
    plain,
    table,
)
from equisep.report.page.subject import Subject
from equisep.results.records import LAW_R, NO_LAW_R

_OPTIONS = (
    "reading",
    "weighting",
    "epsilon",
    "reduction",
    "seed",
    "intervals",
    "whole",
    "classes",
    "classifier",
    "coordinates",
)
_TRACKED = ("per_class", "sites", "reduction", "reading", "metrics", "epsilon", "coordinates", "seed")
_LONGEST = 400  # characters of one setting
WORDS = {
    "Layer": "Where features are read: after which module, counted from the raw input, 0. Of a network made of blocks, a block.",
    "D, separation fuzziness": (
        "The spread within classes over the distance between their means, Tr(SSw SSb⁺). Small is well separated."
    ),
    "Law of equi-separation": (
        "Every layer multiplies D by the same factor ρ, so that log D falls along a straight line. An observation of He & Su "
        "(2023), not a theorem: many networks do not follow it."
    ),
    "Factor ρ, half-life": "What each layer leaves of D; in how many layers D halves.",
    "Straightness r": (
        f"The correlation of log D with depth: −1 is a straight line. At or below −{-LAW_R:g} it is called a law, above "
        f"−{-NO_LAW_R:g} none."
    ),
    "Share of the work": "Of the whole fall of log D, the part that one layer takes. Evenness is 1 where all take the same.",
    "Chance level": "D with shuffled labels: what this many samples and features give where classes mean nothing.",
    "Corrected D": "D of the population behind the samples. Plain D of few samples lies too low.",
    "Nearest class mean (NCC)": (
        "A sample is given to the class whose training mean is nearest. The effective depth is the first layer from which on "
        "this is right for all training samples, or as many as the settings ask."
    ),
    "CDNV": "The variance within classes over the squared distance between their means, averaged over pairs of classes.",
    "Neural collapse (NC1 to NC4)": (
        "Late in training the samples of a class become one point (NC1), the class means a simplex (NC2), the classifier points "
        "along them (NC3) and decides as nearest class means do (NC4)."
    ),
    "Simplex (ETF)": "K directions at the same, widest possible angle to each other: every cosine is −1/(K − 1).",
    "Minority collapse": "Where classes are very unequal, the rare ones come to share one direction, and are lost.",
    "Reading": (
        "Which statistics BatchNorm used: `eval` its running ones, `mixed` those of class-mixed batches, `drawn` those of "
        "batches in the order in which samples were drawn."
    ),
}
CITATIONS = (
    "H. He, W. J. Su: A law of data separation in deep learning. PNAS 120 (36), 2023. doi:10.1073/pnas.2221704120",
    "C. Fang, H. He, Q. Long, W. J. Su: Exploring deep neural networks via layer-peeled model: Minority collapse in imbalanced "
    "training. PNAS 118 (43), 2021. doi:10.1073/pnas.2103091118",
    "T. Galanti, L. Galanti: On the implicit bias towards depth minimization in deep neural networks. arXiv 2202.09028, 2022",
    "V. Papyan, X. Y. Han, D. L. Donoho: Prevalence of neural collapse during the terminal phase of deep learning training. "
    "PNAS 117 (40), 2020. doi:10.1073/pnas.2015509117",
)


def numbers_section(subjects: Sequence[Subject]) -> Section:
    """Every number of every layer."""
    body = [paragraph("Click a head to sort. The copy has every number in full.", "aside scripted")]
    for subject in subjects:
        columns = [
            column
            for column in (*COLUMNS, *READING_COLUMNS)
            if any(value is not None for value in column.of(subject.profile))
        ]
        if len(subjects) > 1:
            body.append(f"<h3>{plain(subject.label)}</h3>")
        if not subject.profile.sites:
            body.append(absent("The profile holds no layer."))
            continue
        heads = [column_head(column, subject) for column in columns]
        body.append(
            table(
                heads,
                layer_rows(subject, columns),
                label=f"All numbers of {subject.label}",
                sortable=True,
                csv="layers.csv",
            )
        )
        body.append(
            folded(definitions((head.title.replace("\n", " "), head.words) for head in heads), "What the columns mean")
        )
    return Section("numbers", "All numbers", "".join(body), "Numbers")


def made_section(subjects: Sequence[Subject], sources: Sequence[str] = (), *, call: str | None = None) -> Section:
    """Settings, versions, and the command that makes it again: `call` where it is not a measurement that made it."""
    body = []
    for subject in subjects:
        profile = subject.profile
        if len(subjects) > 1:
            body.append(f"<h3>{plain(subject.label)}</h3>")
        body.append("<h3>Make it again</h3>" + command(call or rerun_command(subject)))
        versions = [(name, _shown(value)) for name, value in profile.provenance.items() if name != "command"]
        body.append(
            "<h3>Made with</h3>" + definitions(versions, "facts", exact=True)
            if versions
            else absent("What made it was not recorded.")
        )
        settings = list(_flat(profile.settings))
        if settings:
            body.append(folded(definitions(settings, "facts", exact=True), "Every setting that can change a number"))
    shown = f"This page was made by equisep {__version__}"
    files = f" from {', '.join(f'`{one_line(name)}`' for name in sources)}" if sources else ""
    body.append(paragraph(f"{shown}{files}. It holds everything it shows and asks nothing of any server.", "aside"))
    return Section("made", "How it was made", "".join(body), "Made")


def rerun_command(subject: Subject) -> str:
    """The command or call that measures this again: as recorded, else as the settings tell."""
    profile = subject.profile
    recorded = profile.provenance.get("command")
    if isinstance(recorded, str):
        return one_line(recorded)
    given = {name: profile.settings[name] for name in _OPTIONS if profile.settings.get(name) is not None}
    if profile.reading is not None:
        given["reading"] = ",".join(profile.readings)
    asked = [name for name in ("reading", "weighting", "epsilon", "seed") if name in given]
    flags = [f"--{name} {shlex.quote(one_line(str(given[name])))}" for name in asked]
    known = subject.facts.command("measure", " ".join(flags))
    if known is not None:
        return known
    test = ", test" if profile.counts_test is not None else ""
    options = "".join(f", {name}={value!r}" for name, value in given.items() if isinstance(value, str | int | float))
    return one_line(f"equisep.measure(model, train{test}{options})")


def tracked_again(options: Mapping[str, Any], *, test: bool) -> str:
    """The call that tracks a training in the same way, by the options that its history records."""
    given = [f"{name}={options[name]!r}" for name in _TRACKED if options.get(name) is not None]
    return one_line(f"equisep.Tracker({', '.join(['model', 'train', *(['test=test'] if test else []), *given])})")


def _flat(settings: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, str]]:
    """Settings within settings by dotted names."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", _shown(value)


def _shown(value: Any) -> str:
    text = one_line(str(value)) if value not in (None, [], ()) else "–"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def glossary_section() -> Section:
    """The words, and whom to cite."""
    cited = f"<h3>Please cite</h3>{bullets(map(marked, CITATIONS), 'citations')}"
    return Section("glossary", "The words", definitions(WORDS.items(), "glossary") + cited, "Words")

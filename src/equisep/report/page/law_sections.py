"""The page's sections over layers: the law, the share of the work, nearest class means, and how far to trust them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from equisep.report.columns import BY_NAME, Column
from equisep.report.formatting import (
    correlation,
    depth_words,
    interval_words,
    kink_words,
    limits,
    number,
    passed_words,
    percent,
    samples_words,
    verdict_words,
)
from equisep.report.page.markup import (
    Cell,
    Head,
    Section,
    absent,
    bullets,
    definitions,
    figure,
    folded,
    marked,
    paragraph,
    plain,
    table,
)
from equisep.report.page.numbers import curve_indices, share_limit
from equisep.report.page.subject import Subject
from equisep.results import LawFit, Profile
from equisep.results.wording import OTHER_SAMPLES, begin_words, span_words

GRAINS = ("layers", "blocks")  # where both were measured, the law of each
_LAW_NAMES = {
    "train": "training data",
    "test": "test data",
    "corrected": "population, by training data",
    "corrected_test": "population, by test data",
}
_POPULATION = (_LAW_NAMES["corrected"], _LAW_NAMES["corrected_test"])
_LAW_COLUMNS = (
    *("fuzziness", "fuzziness_low", "fuzziness_high", "corrected", "corrected_low", "corrected_high"),
    *("fuzziness_test", "corrected_test", "null"),
)
_CENTER_COLUMNS = ("ncc_train", "ncc_test", "cdnv", "cdnv_test", "cdnv_directional", "nc1")


def law_section(subjects: Sequence[Subject]) -> Section:
    """Log D against the layer, with everything that stands beside it."""
    if not any(value is not None for subject in subjects for value in subject.profile.curve()):
        return Section(
            "law",
            "The law",
            absent("D was not measured, so there is no law to show: measure with the metric `fuzziness`."),
            "Law",
        )
    caption = (
        "D against depth. On the logarithmic axis the law is a straight line: dots are measured, with intervals in other "
        "samples of this size; the line is the fit; beside it test data, the chance level (D with shuffled labels) and D of the "
        "population behind the samples."
    )
    body = [figure("law", caption, label="Separation fuzziness D against the layer, with the fitted law")]
    for subject in subjects:
        body.append(_named(subject, subjects))
        body.append(_law_table(subject))
        body.extend(absent(text) for text in _law_absent(subject))
        body.append(folded(layer_table(subject, _LAW_COLUMNS, "D layer by layer")))
    return Section("law", "The law", "".join(body), "Law")


def work_section(subjects: Sequence[Subject]) -> Section:
    """Which share of the fall of ln D each layer takes."""
    if not any(subject.facts.shares for subject in subjects):
        text = "There are no shares of the work: D is known at too few layers, or rises again by more than a third of its falls."
        return Section("work", "Share of the work", absent(text), "Work")
    caption = (
        "Of the whole fall of log D, what each layer takes. Under the law all shares are equal (dashed). A bar below zero is a "
        "layer after which D is larger."
    )
    if any(subject.facts.share_errors for subject in subjects):
        caption += " Whiskers are intervals at 95 %, by leaving out folds of the samples."
    body = [figure("work", caption, label="Share of the work per layer, in percent")]
    for subject in subjects:
        body.append(_named(subject, subjects))
        if subject.facts.shares:
            body.append(folded(_share_table(subject)))
        else:
            body.append(
                absent("No shares of the work: D does not fall from layer to layer, or was measured at too few.")
            )
    return Section("work", "Share of the work", "".join(body), "Work")


def centers_section(subjects: Sequence[Subject]) -> Section:
    """Nearest class means, CDNV and the effective depth."""
    title = "Nearest class means and effective depth"
    body = []
    if _any(subjects, ("ncc_train", "ncc_test")):
        caption = (
            "How many samples are nearest to the training mean of their own class, layer by layer; level lines are the network's "
            "own accuracy. Upright lines mark the effective depth, and where nearest class means do as well as the network."
        )
        body.append(figure("centers", caption, label="Accuracy by nearest class mean against the layer, in percent"))
    else:
        body.append(absent("Accuracy by nearest class means was not measured: metric `ncc`."))
    if _any(subjects, ("cdnv", "cdnv_test")):
        caption = "CDNV: variance within classes over the squared distance between their means, averaged over pairs of classes."
        body.append(figure("cdnv", caption, label="Class-distance normalized variance against the layer"))
    for subject in subjects:
        body.append(_named(subject, subjects))
        rows = [*depth_words(subject.profile), *_accuracies(subject)]
        body.append(definitions(rows, "facts"))
        if subject.profile.counts_test is None:
            body.append(absent("No test data were given: whether these layers help on new samples cannot be said."))
        if _any([subject], _CENTER_COLUMNS):
            body.append(folded(layer_table(subject, _CENTER_COLUMNS, "Nearest class means and CDNV layer by layer")))
    return Section("centers", title, "".join(body), "Nearest means")


def trust_section(subjects: Sequence[Subject]) -> Section:
    """How many samples, which reading, how far the line is left, and every note."""
    body = []
    if any(law.residuals for subject in subjects for law in subject.laws.values()):
        caption = "How far ln D lies from the fitted line at each layer. A bend shows as a run on one side of zero."
        body.append(figure("residuals", caption, label="Residuals of ln D around the fitted line against the layer"))
    for subject in subjects:
        body.append(_named(subject, subjects))
        body.append(definitions(_trust_rows(subject), "facts"))
        notes = dict.fromkeys((*subject.profile.notes, *subject.profile.law.notes))
        body.append(paragraph("Notes, the one that changes most first:") if notes else "")
        body.append(bullets((marked(str(note)) for note in notes), "notes"))
        missing = [finding.text for finding in subject.findings if finding.rule == "missing"]
        body.extend(absent(text) for text in missing)
        if subject.profile.law.residuals:
            body.append(folded(_residual_table(subject)))
    return Section("trust", "How far to trust it", "".join(body), "Trust")


def layer_table(subject: Subject, names: Iterable[str], label: str) -> str:
    """Columns of the table of sites that hold something, layer by layer."""
    columns = [BY_NAME[name] for name in ("site", "name", *names)]
    columns = [column for column in columns if any(value is not None for value in column.of(subject.profile))]
    heads = [column_head(column, subject) for column in columns]
    return table(heads, layer_rows(subject, columns), label=f"{label}, {subject.label}")


def column_head(column: Column, subject: Subject) -> Head:
    """The head of a column of the table of sites."""
    title = subject.each if column.name == "site" else column.title
    return Head(column.name, title, column.words, "text" if column.name == "name" else "number")


def layer_rows(subject: Subject, columns: Sequence[Column]) -> Iterable[list[Cell]]:
    """One row per layer: values in full, texts as everywhere."""
    values = [column.of(subject.profile) for column in columns]
    texts = [column.cells(subject.profile) for column in columns]
    for row_values, row_texts in zip(zip(*values, strict=True), zip(*texts, strict=True), strict=True):
        yield [Cell(value, text) for value, text in zip(row_values, row_texts, strict=True)]


def _named(subject: Subject, subjects: Sequence[Subject]) -> str:
    return f"<h3>{plain(subject.label)}</h3>" if len(subjects) > 1 else ""


def _any(subjects: Iterable[Subject], names: Iterable[str]) -> bool:
    return any(
        value is not None for subject in subjects for name in names for value in BY_NAME[name].of(subject.profile)
    )


def _law_table(subject: Subject) -> str:
    """The laws of this profile side by side: training, test, population, other readings."""
    laws = {_LAW_NAMES[name]: law for name, law in subject.laws.items()}
    laws |= {f"reading {name}": other.law for name, other in subject.profile.other_readings.items()}
    laws |= {f"training data, by {name}": subject.profile.laws[name] for name in GRAINS if name in subject.profile.laws}
    if not laws:
        return ""
    heads = [
        Head("law", "D of", "which data the law is of", "text"),
        Head("verdict", "verdict", "law: r at most −0.996; no law: r above −0.971", "text"),
        Head("rho", f"factor ρ per {subject.each}", f"what each {subject.each} leaves of D"),
        Head("rho_interval", "interval", "", "text"),
        Head("half_life", "half-life", f"{subject.each}s until D has halved"),
        Head("r", "r", "correlation of ln D with depth: −1 is a straight line"),
        Head("imbalance", "evenness", "1: every layer lowers D by the same factor"),
    ]
    rows = [
        [
            Cell(name, name),
            Cell(law.verdict, verdict_words(law)[0]),
            Cell(law.rho, number(law.rho)),
            Cell(None, _span_words(subject.profile, name, law)),
            Cell(law.half_life, number(law.half_life, 3)),
            Cell(law.r, correlation(law.r)),
            Cell(law.imbalance, number(law.imbalance)),
        ]
        for name, law in laws.items()
    ]
    why = verdict_words(subject.profile.law)[1]
    return table(heads, rows, label=f"Laws of {subject.label}") + paragraph(
        f"The verdict on training data: {why}.", "aside"
    )


def _span_words(profile: Profile, name: str, law: LawFit) -> str:
    """The interval of ρ, and what it is of: other samples, or the population and from which layer on."""
    span = law.intervals.get("rho")
    return f"{limits(span)} {begin_words(profile, law)}".strip() if name in _POPULATION else span_words(span).strip()


def _law_absent(subject: Subject) -> Iterable[str]:
    profile = subject.profile
    if not any(value is not None for value in profile.curve()):
        yield "D was not measured, so there is no law to show: measure with the metric `fuzziness`."
        return
    if len(profile.law.curve) < 3:
        count = len(profile.law.curve)
        many = f"{count} {subject.each}{'' if count == 1 else 's'}"
        yield f"D is known at {many}: a law needs three or more, as two points always lie on a line."
    elif profile.law.rho is None:
        yield "No line could be fitted: the notes under “How far to trust it” say why."
    if profile.counts_test is None:
        yield "No test data were given: D on new samples is not known."
    if all(site.fuzziness_interval is None for site in profile.sites):
        yield "Intervals were not computed."
    if all(site.null is None for site in profile.sites):
        yield "The chance level was not measured: metric `null`."
    refused = [site for site in profile.sites if site.corrected is not None and site.corrected.value is None]
    if refused:
        words = refused[0].corrected
        yield (
            f"D of the population cannot be told at {len(refused)} of {len(profile.sites)} {subject.each}s; "
            f"{subject.facts.at(refused[0])}: {words}."
        )


def _share_table(subject: Subject) -> str:
    columns = [BY_NAME[name] for name in ("site", "name", "share", "load")]
    heads = [column_head(column, subject) for column in columns]
    heads += [Head("share_low", "from %", "lower limit at 95 %"), Head("share_high", "to %", "upper limit at 95 %")]
    rows = []
    for row, site in zip(layer_rows(subject, columns), subject.profile.sites, strict=True):
        bounds = [share_limit(subject, site.index, sign) for sign in (-1, 1)]
        rows.append([*row, *(Cell(bound, "" if bound is None else f"{100 * bound:.1f}") for bound in bounds)])
    return table(heads, rows, label=f"Share of the work per layer, {subject.label}")


def _accuracies(subject: Subject) -> Iterable[tuple[str, str]]:
    for name, share in (("training", subject.profile.accuracy_train), ("test", subject.profile.accuracy_test)):
        if share is not None:
            yield f"Accuracy of the network on {name} data", f"{percent(share)} %"


def _trust_rows(subject: Subject) -> Iterable[tuple[str, str]]:
    profile, law = subject.profile, subject.profile.law
    yield "Training samples", samples_words(profile.counts)
    if profile.whole is not None:
        yield (
            "They are",
            "all there are, so that D is theirs exactly" if profile.whole
            else "a sample of more: D of few samples lies too low; corrected D stands beside it",
        )  # fmt: skip
    yield "Test samples", "none" if profile.counts_test is None else samples_words(profile.counts_test)
    if profile.sites:
        widest = max(profile.sites, key=lambda site: site.dim)
        yield "Features", f"{widest.dim} at the widest {subject.each} ({subject.facts.at(widest)})"
    yield "Reading", _READINGS.get(profile.reading or "", "not recorded")
    if law.rho is not None:
        yield (
            "Kink",
            kink_words(law, first=curve_indices(profile, law)[0], each=passed_words(profile).removesuffix("s")),
        )
        yield "Farthest from the line", f"{number(law.max_residual, 2)} in ln D"
        yield "Evenness", f"{number(law.imbalance)} (1: every {subject.each} lowers D by the same factor)"
    interval = law.intervals.get("rho")
    yield "Intervals", "none were computed" if interval is None else f"{interval_words(interval)}, {OTHER_SAMPLES}"
    for name, other in profile.other_readings.items():
        yield f"In the reading {name}", _reading_words(other.law)


_READINGS = {
    "eval": "`eval`: BatchNorm uses its running statistics, as in use",
    "mixed": "`mixed`: BatchNorm uses the statistics of class-mixed batches",
    "drawn": "`drawn`: BatchNorm uses the statistics of batches in the order drawn, as in the program of He & Su 2023",
}


def _reading_words(law: LawFit) -> str:
    return f"ρ {number(law.rho)}, r {correlation(law.r)}: {verdict_words(law)[0]}"


def _residual_table(subject: Subject) -> str:
    law, profile = subject.profile.law, subject.profile
    heads = [Head("site", subject.each), Head("residual", "residual", "ln D less the fitted line")]
    rows = [
        [Cell(index, str(index)), Cell(value, number(value, 3))]
        for index, value in zip(curve_indices(profile, law), law.residuals, strict=False)
    ]
    return table(heads, rows, label=f"Residuals of ln D, {subject.label}")

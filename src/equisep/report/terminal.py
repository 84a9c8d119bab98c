"""A profile and its laws in the terminal (rich), from 80 columns up, in ASCII where UTF-8 is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from equisep.findings.wording import explained, wrapped
from equisep.report.columns import READING_COLUMNS, columns_named
from equisep.report.formatting import (
    ASCII,
    UNICODE,
    Glyphs,
    accuracy_words,
    ascii_signs,
    ascii_text,
    class_labels,
    classifier_rows,
    correlation,
    data_words,
    depth_words,
    interval_words,
    kink_words,
    law_sentence,
    limits,
    number,
    one_line,
    passed_words,
    reading_words,
    shortened_names,
    verdict_words,
)
from equisep.report.tables import grid_of, plain_table, room_beside
from equisep.report.terminal_plot import render_curve
from equisep.results import ClassifierReading, Finding, LawFit, Note, Profile
from equisep.results.wording import begin_words, population_law, span_words

__all__ = ["render_curve", "render_law", "render_laws", "render_profile"]

VERDICT_STYLES = {"law": "bold green", "between": "bold yellow", "no law": "bold red", "undetermined": "dim"}
_LEAST_NAME, _GOOD_NAME = 8, 14
_SHOWN = (
    *("site", "name", "fuzziness", "corrected", "corrected_low", "corrected_high"),
    *(*(column.name for column in READING_COLUMNS), "share", "fuzziness_test", "corrected_test"),
    *("ncc_train", "ncc_test", "cdnv", "nc1", "null", "dim"),
)
_KEY = {  # the first column of each kind, and what stands below the table where it is shown
    "fuzziness": "D: spread within classes over the distance between them.",
    "corrected": "corr.: D of the population behind the samples, and its interval.",
    "corrected_test": "corr. test: D of the population behind the test data.",
    "share": "work: share of the whole fall of ln D.",
    "ncc_train": "NCC: samples nearest to the mean of their class.",
    "cdnv": "CDNV: spread of two classes over the distance of their means, over all pairs.",
    "nc1": "NC1: spread within classes as neural collapse measures it.",
    "null": "chance: D under random labels.",
    "dim": "dim: features per sample.",
}
_INTERVAL = ("corrected_low", "corrected_high")  # go together: half an interval says nothing
_FIRST_TO_GO = (
    *("dim", "nc1", "null", "corrected_high", "corrected_low", "cdnv", "corrected_test", "ncc_test", "share"),
    "fuzziness_test",
)
_LAW_NAMES = {
    "test": "test data",
    "corrected": "population (corrected D)",
    "corrected test": "population, by test data",
    "cdnv": "CDNV",
    "cdnv_directional": "CDNV between means",
    "layers": "layer by layer",
    "blocks": "block by block",
}
_POPULATION = {"corrected": "", "corrected test": "by test data"}  # laws of D of the population, and by which samples
MOST_COLUMNS = 100  # longer lines are hard to read


@dataclass(frozen=True, slots=True)
class View:
    """Something to print that is laid out only once the width and the encoding of the terminal are known."""

    build: Callable[[Glyphs, int], RenderableType]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[RenderableType | Segment]:
        """Lay out and print; where the encoding is not UTF, character for character in ASCII."""
        if not options.ascii_only:
            yield self.build(UNICODE, options.max_width)
            return
        for segment in console.render(self.build(ASCII, options.max_width), options):
            yield Segment(ascii_signs(segment.text), segment.style, segment.control)


@dataclass(frozen=True, slots=True)
class Prose:
    """Sentences in the width of the terminal, broken between words and never between a number and its percent sign.

    The first `marked` characters are shown as a mark.
    """

    text: str
    style: str = ""
    marked: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[RenderableType]:
        """Break the lines, and print them."""
        text = Text(wrapped(self.text, width=options.max_width), style=self.style)
        text.stylize("yellow", 0, self.marked)
        yield text


def prose(text: str, glyphs: Glyphs, *, style: str = "") -> Prose:
    """Sentences for people, in the signs that the terminal has."""
    return Prose(ascii_text(text, glyphs), style)


def noted(text: str, glyphs: Glyphs) -> Prose:
    """A Note, marked as one."""
    return Prose(ascii_text(f"Note  {one_line(text)}", glyphs), marked=len("Note"))


def render_profile(profile: Profile) -> RenderableType:
    """Everything a profile says, top to bottom: sites, law, curve, depth, accuracy, classifier, notes."""
    return View(lambda glyphs, width: Group(*_profile_blocks(profile, glyphs, width)))


def render_law(law: LawFit, *, passed: str = "layers", first: int = 0) -> RenderableType:
    """One law: ρ, half-life (in layers, or what else is passed), r, and beside them what r alone hides."""
    return View(
        lambda glyphs, width: Group(
            _law_block(law, glyphs, passed=passed, first=first), *notes_block(law.notes, glyphs)
        )
    )


def render_laws(profile: Profile) -> RenderableType:
    """The other laws of a profile, one row each: of the population, on test data, by grain, and class by class."""
    names = class_labels(profile)

    def build(glyphs: Glyphs, width: int) -> RenderableType:
        missing = glyphs.missing
        beyond = [row for name in _POPULATION for row in _population_row(profile, name, glyphs)]
        rows: list[list[str | Text]] = []
        for name, law in profile.laws.items():
            if name in _POPULATION and population_law(profile, name) is not None:
                continue
            numbers = [number(law.rho, 3, missing=missing), number(law.half_life, 3, missing=missing)]
            verdict = Text(verdict_words(law)[0], style=VERDICT_STYLES[law.verdict])
            rows.append([_law_name(name, names), *numbers, correlation(law.r, missing=missing), verdict])
        table = plain_table(
            ("other laws", glyphs.rho, "half-life", "r", "verdict"), rows, glyphs, left=("other laws", "verdict")
        )
        return Group(grid_of(beyond), *([table] if rows else []))

    return View(build)


def _law_name(key: str, classes: Sequence[str]) -> str:
    """`test data`, or a class by its name."""
    kind = key.removeprefix("class ")
    if kind == key or not kind.isdigit() or int(kind) >= len(classes):
        return _LAW_NAMES.get(key, one_line(key))
    label = classes[int(kind)]
    return f"class {kind}" if label == kind else f"class {kind}, {label}"


def _profile_blocks(profile: Profile, glyphs: Glyphs, width: int) -> Iterable[RenderableType]:
    yield Text(one_line(profile.model), style="bold")
    for words in (data_words(profile), reading_words(profile)):
        yield Text(words, style="dim")
    yield _law_heading(profile.law)
    yield from _site_table(profile, glyphs, width)
    begin = profile.begin()
    first = profile.sites[begin].index if profile.sites else 0
    law_rows = _law_rows(profile.law, glyphs, passed=passed_words(profile), first=first)
    rows = [*_population_row(profile, "corrected", glyphs), *law_rows, *_other_laws(profile, glyphs)]
    if rows:
        yield Padding(Group(Text("The law in numbers", style="bold"), grid_of(rows)), (1, 0, 0, 0))
    curve = profile.curve("fuzziness")[begin:]
    if any(value for value in curve):
        drawing = render_curve(curve, profile.law, min(width, 100) - 2, 14, ascii=glyphs is ASCII, first=first)
        title = f"D by {passed_words(profile).removesuffix('s')}, on a logarithmic axis"
        yield Padding(Group(Text(title, style="dim"), Text(drawing, no_wrap=True)), (1, 0, 1, 2))
    yield from _depth_and_accuracy(profile, glyphs)
    if profile.classifier is not None:
        yield from _classifier_block(profile.classifier, glyphs)
    yield from notes_block((*profile.notes, *profile.law.notes), glyphs)


def _site_table(profile: Profile, glyphs: Glyphs, width: int) -> Iterable[RenderableType]:
    """One row per site. Columns that no site fills are left out; what a narrow terminal has no room for is named below."""
    moot = () if profile.whole is False else ("corrected", *_INTERVAL)  # of training data that are all there are
    shown = [name for name in _SHOWN if name not in moot]
    columns = {column.title: column.cells(profile, missing=glyphs.missing) for column in columns_named(shown)}
    columns = {title: cells for title, cells in columns.items() if any(cell != glyphs.missing for cell in cells)}
    names = columns.pop("name", [])
    good = min(_GOOD_NAME, max(map(len, names), default=0))
    whole = width + good - room_beside(columns, width)
    hidden = [
        column.title.replace("\n", " ")
        for column in columns_named(_FIRST_TO_GO)
        if (room_beside(columns, width) < good or (column.name in _INTERVAL and _half(columns)))
        and columns.pop(column.title, [])
    ]
    columns["name"] = shortened_names(names, max(_LEAST_NAME, room_beside(columns, width)), glyphs.ellipsis)
    head = passed_words(profile).removesuffix("s")
    titles = ["layer", "name", *(title for title in columns if title not in ("layer", "name"))]
    rows = zip(*(columns.get(title, ()) for title in titles), strict=True)
    yield plain_table([head, *titles[1:]], rows, glyphs, left=("name",))
    if key := " ".join(_KEY[column.name] for column in columns_named(tuple(_KEY)) if column.title in columns):
        yield Text(key, style="dim")
    if hidden:
        words = f"No room for {', '.join(hidden[::-1])}: {whole} columns show all, as do --json and to_frame()."
        yield Text(words, style="dim")


def _half(columns: Mapping[str, object]) -> bool:
    """Whether one end of the interval is shown without the other."""
    return sum(column.title in columns for column in columns_named(_INTERVAL)) == 1


def _law_block(law: LawFit, glyphs: Glyphs, *, passed: str = "layers", first: int = 0) -> Group:
    """The law as labels and values."""
    rows = [*_law_rows(law, glyphs, passed=passed, first=first)]
    return Group(_law_heading(law), grid_of(rows)) if rows else Group(_law_heading(law))


def _law_heading(law: LawFit) -> Text:
    """Whether there is a law, and by which r."""
    why = "" if law.rho is None else verdict_words(law)[1]
    style = "dim" if law.rho is None else VERDICT_STYLES[law.verdict]
    return Text.assemble((law_sentence(law), style), f" ({why})" if why else "")


def _law_rows(law: LawFit, glyphs: Glyphs, *, passed: str, first: int) -> Iterable[tuple[str, str]]:
    if law.rho is None:
        return
    missing, known = glyphs.missing, law.intervals
    unit = "" if law.half_life is None else f" {passed}"
    each = passed.removesuffix("s")
    yield glyphs.rho, f"{number(law.rho)}{span_words(known.get('rho'))}: what each {each} leaves of D"
    yield "half-life", number(law.half_life, 3, missing=missing) + unit + span_words(known.get("half_life"))
    yield "r", correlation(law.r, missing=missing)
    yield f"R{glyphs.squared}", number(law.r2, missing=missing)
    if law.max_residual is not None:
        yield "greatest residual", f"{number(law.max_residual, 2)} in ln D"
    if law.imbalance is not None:
        yield "evenness", f"{number(law.imbalance)} (1: every {each} lowers D by the same factor)"
    yield "kink", kink_words(law, first=first, each=each)
    if "rho" in known:
        yield "intervals", interval_words(known["rho"])


def _other_laws(profile: Profile, glyphs: Glyphs) -> Iterable[tuple[str, str]]:
    """The law in other readings and on the test data, and the spread of r over the laws of single classes."""
    for name, other in profile.other_readings.items():
        if other.law.rho is not None:
            words = f"{glyphs.rho} {number(other.law.rho)}, r {correlation(other.law.r, missing=glyphs.missing)}"
            yield f"reading {one_line(name)}", f"{words}: {verdict_words(other.law)[0]}"
    test = profile.laws.get("test")
    if test is not None and test.rho is not None:
        words = f"{glyphs.rho} {number(test.rho)}, r {correlation(test.r, missing=glyphs.missing)}"
        yield "on test data", f"{words}: {verdict_words(test)[0]}"
    yield from _population_row(profile, "corrected test", glyphs)
    each = [law.r for name, law in profile.laws.items() if name.startswith("class ") and law.r is not None]
    if each:
        yield "class by class", f"r {correlation(min(each))} to {correlation(max(each))} over {len(each)} classes"


def _population_row(profile: Profile, name: str, glyphs: Glyphs) -> Iterable[tuple[str, str]]:
    """ρ, half-life and r of D of the population with their intervals, and the verdict on it, where it can be told."""
    law = population_law(profile, name)
    if law is None:
        return
    parts = [f"{glyphs.rho} {number(law.rho)}{limits(law.intervals.get('rho'))}"]
    if law.half_life is not None:
        span = limits(law.intervals.get("half_life"))
        parts.append(f"half-life {number(law.half_life, 3)} {passed_words(profile)}{span}")
    parts.append(f"r {correlation(law.r, missing=glyphs.missing)}")
    head = ", ".join(filter(None, (_POPULATION[name], begin_words(profile, law))))
    yield "of the population", f"{head}{': ' if head else ''}{', '.join(parts)}: {verdict_words(law)[0]}"


def _depth_and_accuracy(profile: Profile, glyphs: Glyphs) -> Iterable[Text]:
    for label, words in depth_words(profile):
        yield Text.assemble((f"{label}  ", "bold"), words)
    if parts := accuracy_words(profile):
        yield Text.assemble(("Accuracy  ", "bold"), f" {glyphs.dot} ".join(parts))


def _classifier_block(reading: ClassifierReading, glyphs: Glyphs) -> Iterable[RenderableType]:
    heading = Text.assemble(("Classifier  ", "bold"), one_line(reading.name), (" (all 0 under neural collapse)", "dim"))
    yield heading
    yield grid_of(classifier_rows(reading, missing=glyphs.missing))


def notes_block(notes: Iterable[Note], glyphs: Glyphs) -> Iterable[RenderableType]:
    for count, note in enumerate(dict.fromkeys(notes)):
        yield Padding(noted(str(note), glyphs), (1 if count == 0 else 0, 0, 0, 0))


def render_findings(findings: Sequence[Finding]) -> RenderableType:
    """Numbered sentences, and what to do next."""

    def build(glyphs: Glyphs, width: int) -> RenderableType:
        columns = min(width, MOST_COLUMNS)
        first, *rest = explained(findings, width=columns).split("\n2. ", maxsplit=1)
        text = Text.assemble((_shown(first, glyphs), "bold"), *(f"\n2. {_shown(more, glyphs)}" for more in rest))
        text.no_wrap = True
        return text

    return View(build)


def _shown(text: str, glyphs: Glyphs) -> str:
    return ascii_text("\n".join(one_line(line) for line in text.split("\n")), glyphs)

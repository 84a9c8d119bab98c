"""A profile, a law and their comparison in the terminal (rich), from 80 columns up, in ASCII where UTF-8 is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from equisep.compare import LawDifference, ProfileDifference
from equisep.report.comparison import law_comparison, profile_comparison
from equisep.report.formatting import (
    ASCII,
    UNICODE,
    Glyphs,
    correlation,
    data_words,
    interval_words,
    limits,
    number,
    one_line,
    passed_words,
    percent,
    reading_words,
    shortened_names,
    slopes_words,
)
from equisep.report.tables import plain_table, room_beside
from equisep.report.terminal_plot import render_curve
from equisep.results import ClassifierReading, LawFit, Note, Profile

__all__ = ["render_comparison", "render_curve", "render_law", "render_profile"]

VERDICT_STYLES = {"law": "bold green", "between": "bold yellow", "no law": "bold red", "undetermined": "dim"}
_LEAST_NAME, _GOOD_NAME = 8, 14
_FIRST_TO_GO = ("null", "NC1", "dim", "CDNV", "NCC %\ntest", "load")


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
            text = segment.text.replace(UNICODE.ellipsis, ASCII.ellipsis).replace(UNICODE.missing, ASCII.missing)
            yield Segment(text.encode("ascii", "replace").decode(), segment.style, segment.control)


def render_profile(profile: Profile) -> RenderableType:
    """Everything a profile says, top to bottom: sites, law, curve, depth, accuracy, classifier, notes."""
    return View(lambda glyphs, width: Group(*_profile_blocks(profile, glyphs, width)))


def render_law(law: LawFit, *, passed: str = "layers") -> RenderableType:
    """One law: ρ, half-life (in layers, or what else is passed), r, and beside them what r alone hides."""
    return View(lambda glyphs, width: Group(_law_block(law, glyphs, passed=passed), *_notes(law.notes)))


def render_comparison(difference: ProfileDifference | LawDifference) -> RenderableType:
    """What differs between two profiles or laws, with intervals."""
    if isinstance(difference, LawDifference):
        return View(lambda glyphs, width: Group(law_comparison(difference, glyphs), *_notes(difference.notes)))
    notes = (*difference.notes, *difference.law.notes)
    return View(lambda glyphs, width: Group(*profile_comparison(difference, glyphs, width), *_notes(notes)))


def _profile_blocks(profile: Profile, glyphs: Glyphs, width: int) -> Iterable[RenderableType]:
    yield Text(one_line(profile.model), style="bold")
    for words in (data_words(profile), reading_words(profile)):
        yield Text(words, style="dim")
    yield _site_table(profile, glyphs, width)
    yield _law_block(profile.law, glyphs, [*_other_laws(profile, glyphs)], passed=passed_words(profile))
    curve = profile.curve("fuzziness")
    if any(value for value in curve):
        first = profile.sites[0].index
        drawing = render_curve(curve, profile.law, min(width, 100) - 2, 14, ascii=glyphs is ASCII, first=first)
        yield Padding(Group(Text("D over depth", style="dim"), Text(drawing, no_wrap=True)), (1, 0, 1, 2))
    yield from _depth_and_accuracy(profile, glyphs)
    if profile.classifier is not None:
        yield _classifier_line(profile.classifier, glyphs)
    yield from _notes((*profile.notes, *profile.law.notes))


def _site_table(profile: Profile, glyphs: Glyphs, width: int) -> Table:
    """One row a site. Columns that no site fills are left out; on narrow terminals names give way, then columns."""
    columns = {title: cells for title, cells in _columns(profile, glyphs).items() if _stands(title, cells, glyphs)}
    names = [one_line(site.name) for site in profile.sites]
    if room_beside(columns, width) < min(_GOOD_NAME, max(map(len, names), default=0)):
        columns.pop("D test", None)
    for title in _FIRST_TO_GO:
        if room_beside(columns, width) < _LEAST_NAME:
            columns.pop(title, None)
    room = max(_LEAST_NAME, room_beside(columns, width))
    columns["name"] = shortened_names(names, room, glyphs.ellipsis)
    titles = ["site", "name", *(title for title in columns if title not in ("site", "name"))]
    rows = zip(*(columns[title] for title in titles), strict=True)
    return plain_table(titles, rows, glyphs, left=("name",))


def _columns(profile: Profile, glyphs: Glyphs) -> dict[str, list[str]]:
    """The cells of each column but the names."""
    sites, missing = profile.sites, glyphs.missing
    loads = (None, *profile.law.loads) if len(profile.law.loads) == len(sites) - 1 else (None,) * len(sites)
    return {
        "site": [str(site.index) for site in sites],
        "dim": [str(site.dim) for site in sites],
        "D": [number(site.fuzziness, missing=missing) for site in sites],
        "load": [missing if load is None else f"{load:.2f}" for load in loads],
        "NCC %\ntrain": [percent(site.ncc_train, missing=missing) for site in sites],
        "NCC %\ntest": [percent(site.ncc_test, missing=missing) for site in sites],
        "CDNV": [number(site.cdnv, 3, missing=missing) for site in sites],
        "NC1": [number(site.nc1, 3, missing=missing) for site in sites],
        "D test": [number(site.fuzziness_test, 3, missing=missing) for site in sites],
        "null": [number(site.null, 3, missing=missing) for site in sites],
    }


def _stands(title: str, cells: list[str], glyphs: Glyphs) -> bool:
    return title in ("site", "dim", "D") or any(cell != glyphs.missing for cell in cells)


def _law_block(law: LawFit, glyphs: Glyphs, more: Sequence[tuple[str, str]] = (), *, passed: str = "layers") -> Group:
    """The law as labels and values, with `more` rows below."""
    verdict = ("not fitted", "dim") if law.rho is None else (law.verdict, VERDICT_STYLES[law.verdict])
    heading = Text.assemble(("Law of equi-separation: ", "bold"), verdict)
    rows = [*_law_rows(law, glyphs, passed=passed), *more]
    grid = Table.grid(padding=(0, 2))
    for label, value in rows:
        grid.add_row(Text(f"  {label}", style="dim"), Text(value))
    return Group(heading, grid) if rows else Group(heading)


def _law_rows(law: LawFit, glyphs: Glyphs, *, passed: str) -> Iterable[tuple[str, str]]:
    if law.rho is None:
        return
    missing, known = glyphs.missing, law.intervals
    unit = "" if law.half_life is None else f" {passed}"
    yield glyphs.rho, number(law.rho) + limits(known.get("rho"))
    yield "half-life", number(law.half_life, 3, missing=missing) + unit + limits(known.get("half_life"))
    yield "r", correlation(law.r, missing=missing) + limits(known.get("r"), 4)
    yield f"R{glyphs.squared}", number(law.r2, missing=missing)
    if law.max_residual is not None:
        yield "greatest residual", f"{number(law.max_residual, 2)} in ln D"
    if law.imbalance is not None:
        yield "imbalance", f"{number(law.imbalance)} (1: equal loads)"
    yield "two slopes", slopes_words(law, glyphs.rho)
    if "rho" in known:
        yield "intervals", interval_words(known["rho"])


def _other_laws(profile: Profile, glyphs: Glyphs) -> Iterable[tuple[str, str]]:
    """The law on the test data, and the spread of r over the laws of single classes."""
    test = profile.laws.get("test")
    if test is not None and test.rho is not None:
        words = f"{glyphs.rho} {number(test.rho)}, r {correlation(test.r, missing=glyphs.missing)}"
        yield "on test data", f"{words}: {test.verdict}"
    each = [law.r for name, law in profile.laws.items() if name.startswith("class ") and law.r is not None]
    if each:
        yield "class by class", f"r {correlation(min(each))} to {correlation(max(each))} over {len(each)} classes"


def _depth_and_accuracy(profile: Profile, glyphs: Glyphs) -> Iterable[Text]:
    depth = profile.effective_depth
    last = profile.sites[-1].index if profile.sites else 0
    reached = (
        "none: no site after the input is separable by nearest class centers"
        if depth is None
        else f"site {depth} of {last}"
    )
    if any(site.ncc_train is not None for site in profile.sites):
        yield Text.assemble(("Effective depth  ", "bold"), reached)
    shares = {"train": profile.accuracy_train, "test": profile.accuracy_test}
    parts = [f"{percent(share)} % {name}" for name, share in shares.items() if share is not None]
    if parts:
        yield Text.assemble(("Accuracy  ", "bold"), f" {glyphs.dot} ".join(parts))


def _classifier_line(reading: ClassifierReading, glyphs: Glyphs) -> Text:
    missing = glyphs.missing
    parts = [
        f"NC2 norms {number(reading.norm_spread, 2)}, angles {number(reading.angle_spread, 2)}",
        f"simplex {number(reading.etf_distance, 2)}",
        f"NC3 {number(reading.nc3, 2, missing=missing)}",
        f"NC4 {number(reading.nc4, 2, missing=missing)}",
    ]
    if reading.nc4_test is not None:
        parts.append(f"test {number(reading.nc4_test, 2)}")
    return Text.assemble(("Classifier  ", "bold"), f"{one_line(reading.name)}: ", f" {glyphs.dot} ".join(parts))


def _notes(notes: Iterable[Note]) -> Iterable[RenderableType]:
    for place, note in enumerate(dict.fromkeys(notes)):
        text = Text.assemble(("Note  ", "yellow"), one_line(str(note)))
        yield Padding(text, (1 if place == 0 else 0, 0, 0, 0))

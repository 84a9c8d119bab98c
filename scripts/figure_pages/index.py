"""The index of all figures: what was confirmed, contradicted and left open, what the readings show, a gallery."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from equisep.figures.cell import Cell
from equisep.figures.changes import Change
from equisep.figures.figure import Figure
from equisep.figures.judge import FEW, STANDINGS, ClaimVerdicts
from equisep.figures.papers import FIT_OR_NOT, PAPERS
from equisep.figures.rules import ALIKE, NO_LESS, series_of
from equisep.report.figures.cells import version_words
from equisep.report.figures.markdown import escaped, markdown_table
from equisep.report.figures.summary import LIBRARIES, Summary
from equisep.report.formatting import duration, size
from equisep.results.records import FUZZY_R, LAW_R, NO_LAW_R
from equisep.results.wording import plural
from figure_pages.recorded import STANDING_WORDS, Recorded, by_paper, standing_counts, summary_table
from figure_pages.words import behind_words, joined, law_statement, marked, merged, reading_statement

ACROSS = 3  # thumbnails in a row
_HEADS = {
    "confirmed": "Confirmed",
    "contradicted": "Contradicted",
    "reading": "Properties of the reading: held in one, contradicted in another",
    "undecided": "Undecided: too little evidence, another network or other data than the paper's, or an interval that reaches "
    "the rule",
}
_LEADS = {
    "confirmed": "Held in the reading that the paper is compared in (He & Su: *drawn*; of convolutional networks, of which that "
    "was not recorded, *mixed*), and contradicted in no other."
}
_OPEN = ("confirmed", "contradicted", "reading")  # lists that are not folded


class Cost(Protocol):
    """What a run is predicted to take; see `equisep.runs.cost.Prediction`."""

    @property
    def cells(self) -> int:
        """How many networks are trained, or problems solved."""

    @property
    def seconds(self) -> float:
        """On the device."""

    @property
    def bytes(self) -> int:
        """At most at once."""

    @property
    def device(self) -> str:
        """In words."""


Predict = Callable[
    [Figure, Sequence[Cell]], Cost
]  # what cells of a figure would cost, or all of it where none are named


def index_page(found: Sequence[Recorded], *, thumbnails: Path, predict: Predict) -> str:
    """The whole index; `thumbnails` is the folder of small pictures, `predict` tells what is left of a figure would cost."""
    theirs = [(each, claim) for each in found for claim in each.theirs]
    parts = [
        "# Do the papers' figures reproduce?",
        reading_statement(theirs),
        law_statement(theirs),
        _counted_words([claim for _, claim in theirs]),
        summary_table(found),
        *_lists(theirs),
        *_galleries(found, thumbnails),
        _not_run(found, predict),
        *_how_judged(found),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _counted_words(claims: Sequence[ClaimVerdicts]) -> str:
    """All papers together, in a sentence."""
    counts = [f"{n} {STANDING_WORDS[word]}" for word, n in zip(STANDINGS, standing_counts(claims), strict=True)]
    return f"Of {plural(len(claims), 'claim')} quoted from the papers: {', '.join(counts)}." if claims else ""


def _lists(theirs: Sequence[tuple[Recorded, ClaimVerdicts]]) -> Iterator[str]:
    """The claims of each standing, figure by figure."""
    for standing, head in _HEADS.items():
        own = [(each, claim) for each, claim in theirs if claim.standing == standing]
        if not own:
            continue
        parts = [_LEADS[standing]] if standing in _LEADS else []
        by_authors: dict[str, dict[str, list[tuple[ClaimVerdicts, str]]]] = {}
        for each, claim in own:
            authors, place = _short(each)
            by_authors.setdefault(authors, {}).setdefault(f"[{place}]({each.page})", []).append(
                (claim, behind_words(each.figure, claim))
            )
        for authors, by_figure in by_authors.items():
            parts.append(f"**{authors}**")
            parts.append("\n".join(f"- {name}: {'; '.join(merged(claims))}." for name, claims in by_figure.items()))
        if standing in _OPEN:
            yield "\n\n".join([f"## {head}", *parts])
        else:
            yield f"<details markdown><summary>{head} ({plural(len(own), 'claim')})</summary>"
            yield "\n\n".join(parts)
            yield "</details>"


def _short(each: Recorded) -> tuple[str, str]:
    """Whose figure it is, and where it stands in their paper; its title where no place is named."""
    authors, year, place = each.figure.source.partition("), ")
    where = place or each.figure.title
    return escaped(f"{authors})" if year else authors), escaped(f"{where[:1].upper()}{where[1:]}")


def _galleries(found: Sequence[Recorded], thumbnails: Path) -> Iterator[str]:
    """Thumbnails in rows, paper by paper, each with its verdicts and a link to its page."""
    for paper, own in by_paper(found).items():
        shown = [each for each in own if each.summary is not None]
        if not shown:
            continue
        name = PAPERS.get(paper, paper)
        yield f"## {escaped(name[:1].upper() + name[1:])}"
        cells = [_thumbnail(each, thumbnails) for each in shown]
        cells += [""] * (-len(cells) % ACROSS)
        rows = [cells[first : first + ACROSS] for first in range(0, len(cells), ACROSS)]
        yield markdown_table([" "] * ACROSS, rows, left=[" "], raw=True)


def _thumbnail(each: Recorded, thumbnails: Path) -> str:
    name = each.figure.id.replace("/", "-")
    title = escaped(each.figure.title)
    picture = (
        f"[![{title}]({thumbnails.name}/{name}.png)]({each.page})<br>" if (thumbnails / f"{name}.png").is_file() else ""
    )
    return f"{picture}[{escaped(each.figure.source)}: {title}]({each.page})<br>{marked(each.counts)}"


def _not_run(found: Sequence[Recorded], predict: Predict) -> str:
    """What has no record, or one in part, and rates that were not trained to the end, with what they would take, and why."""
    rows = [
        [
            f"`{each.figure.id}`",
            f"{each.figure.title}{rest.of}",
            str(rest.claims),
            _cost_words(predict(each.figure, rest.cells)),
            rest.why,
        ]
        for each in found
        for rest in _rests(each)
    ]
    if not rows:
        return ""
    titles = ("figure", "shows", "claims", "would take", "why not yet")
    return f"## Not run\n\n{markdown_table(titles, rows, left=[title for title in titles if title != 'claims'])}"


class _Rest(NamedTuple):
    """Something of a figure that was not run: what, how many claims wait for it, its cells (none: all), and why it was not."""

    of: str
    claims: int
    cells: Sequence[Cell]
    why: str


def _rests(each: Recorded) -> Iterator[_Rest]:
    """What was not run of a figure: all of it or some series, other rates, and the paper's own data or network."""
    verdicts = [claim.main.verdict for claim in each.claims]
    if each.summary is None or each.is_part:
        part = " (the rest)" if each.is_part else ""
        yield _Rest(part, verdicts.count("not run"), each.missing, "".join(each.remarks[-1:]))
    elif each.untried:
        few = sum(word in ("supported", "against") for word in verdicts)
        yield _Rest(" (other rates, to the end)", few, each.untried, "Short runs chose the rate.")
    if each.stood_for:
        others = [
            {found.series.name for found in each.series if found.on_other_data or found.of_other_network}
            & set(series_of(each.figure, claim.claim))
            for claim in each.claims
        ]
        yield _Rest(" (the paper's own data or network)", sum(map(bool, others)), each.stood_for, "Others stood in.")


def _cost_words(cost: Cost) -> str:
    return f"{plural(cost.cells, 'run')}, about {duration(cost.seconds)} on {cost.device}, {size(cost.bytes)}"


def _how_judged(found: Sequence[Recorded]) -> Iterator[str]:
    own_words = sum(claim.claim.in_our_words for each in found for claim in each.claims)
    yield "## How claims are judged"
    yield (
        "By rule, never by eye, from the record in `results/` ([running figures](../running-figures.md)). *Held*: three seeds or "
        "more, and the whole interval over seeds meets the rule; *contradicted*: all of it lies beyond; *undecided*: it reaches "
        "the bound, or a test does not show a difference or a bend, which is not to show that there is none. "
        f"With fewer than {FEW} seeds, or on other data or another network than the paper's, *supported* or "
        "*against*. *Not testable*: there is no number, or no "
        "network that fits its training data where the paper speaks of such. A claim about several networks holds only if "
        "all of them pass; the number shown is that of the weakest. "
        f"By He & Su's own numbers a *law* has r ≤ {LAW_R:g}, *no law* is r > {NO_LAW_R:g} or ρ ≥ 1, and between the two "
        f"nothing is decided (their own panel without a law prints {NO_LAW_R:g}, which to its rounding lies on that bound); a "
        f"*fuzzy law* (ours) has r ≤ {FUZZY_R:g}. *Alike* and *near*: within a factor of {ALIKE:g}, by two one-sided tests. "
        f"*About the same or better* and *at least {NO_LESS:g} times* (the bound is ours): the whole interval of the ratio is "
        f"{NO_LESS:g} or more, and it may lie below 1. "
        "One learning rate is chosen for all seeds, by the mean r at the last epoch among rates at which networks fit. Claims of "
        "the papers, slides of their authors among them, are those whose sentence or number is quoted; *in our words* are "
        f"{own_words} claims after a paper of which none is at hand, and they count with ours. Counts under pictures are of all "
        "claims, ours among them. Claims that were restated, and why: [changes](changes.md)."
    ).replace(" -", " −")
    yield _fit_words(found)
    yield _made_words([each.summary for each in found if each.summary is not None])
    yield "Written by `scripts/make_figures_page.py`; a test holds that these pages are what the record gives."


def _fit_words(found: Sequence[Recorded]) -> str:
    """Which verdicts rest on networks that do not fit, too."""
    own = [f"`{each.figure.id}` ({FIT_OR_NOT[each.figure.id]})" for each in found if each.figure.id in FIT_OR_NOT]
    if not own:
        return ""
    return (
        "Networks that hold or contradict a claim have 99.9 % of their training samples right for He & Su, 99 % for the others, "
        f"but for those of {joined(own)}, which ask of networks that do not fit, too."
    )


def _made_words(run: Sequence[Summary]) -> str:
    """Devices, versions and TF32 of the whole record in a sentence."""
    if not run:
        return ""

    def every(words: Sequence[Sequence[str]]) -> list[str]:
        return sorted({word for each in words for word in each})

    made = [summary.made for summary in run]
    versions = version_words({name: every([each.versions[name] for each in made]) for name in LIBRARIES})
    tf32 = [f"`{summary.figure.id}`" for summary in run if summary.made.tf32]
    rest = f"TF32 was allowed in {', '.join(tf32)}." if tf32 else "TF32 was not allowed anywhere."
    hours = duration(sum(each.wall_s for each in made))
    where = " and ".join(every([each.device for each in made])) or "an unnamed device"
    return escaped(f"Everything recorded was made on {where}, with {versions}, in {hours} of computing. {rest}")


def changes_page(changes: Sequence[Change]) -> str:
    """A table of all changes, the latest first."""
    rows = [
        (one.date, one.figure, one.was, one.now or "dropped", one.why)
        for one in sorted(changes, key=lambda one: one.date, reverse=True)
    ]
    titles = ("date", "figure", "was", "now", "why")
    table = markdown_table(titles, rows, left=titles) if rows else "None."
    intro = "A rule that changes after numbers have been seen is a finding too. Each change is dated, with its reason."
    return f"# Claims that were restated\n\n{intro} [All figures](index.md)\n\n{table}\n"

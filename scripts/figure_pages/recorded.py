"""What the committed record has of each figure: numbers, verdicts in every reading, remarks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from equisep.errors import InputError
from equisep.figures.cell import Cell, Training
from equisep.figures.evidence import SeriesEvidence, gather
from equisep.figures.figure import Figure
from equisep.figures.judge import STANDINGS, WORDS, ClaimVerdicts, judge_readings
from equisep.figures.papers import PAPERS
from equisep.report.figures.cells import counts_as_ours
from equisep.report.figures.list import ListRow, list_row
from equisep.report.figures.markdown import markdown_table
from equisep.report.figures.summary import Summary, summarize
from equisep.runs.record import REMARKS, record_content, recorded_evidence, remarks_in

STANDING_WORDS = {
    "confirmed": "confirmed",
    "contradicted": "contradicted",
    "reading": "properties of the reading",
    "undecided": "undecided",
    "untested": "not run or not testable",
}
_OURS = "our own, or in our words, on these figures and others"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A figure, how its claims fare in every reading, what the record has of it (None without one), and remarks on it.

    `beside` are the figures whose records hold cells that this one has as well.
    """

    figure: Figure
    claims: tuple[ClaimVerdicts, ...]
    summary: Summary | None = None
    remarks: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()

    @property
    def paper(self) -> str:
        """The part of its id before the stroke."""
        return self.figure.id.partition("/")[0]

    @property
    def page(self) -> str:
        """The file of its page."""
        return f"{self.figure.id.replace('/', '-')}.md"

    @property
    def is_part(self) -> bool:
        """Whether some of it was run, and some was not."""
        return self.summary is not None and self.summary.evidence.done < self.summary.evidence.planned

    @property
    def is_judged(self) -> bool:
        """Whether any of its claims was run."""
        return any(claim.main.verdict != "not run" for claim in self.claims)

    @property
    def series(self) -> tuple[SeriesEvidence, ...]:
        """What was run of each series; none without a record."""
        return () if self.summary is None else tuple(self.summary.evidence.series.values())

    @property
    def missing(self) -> tuple[Cell, ...]:
        """What was asked for and not run."""
        return tuple(cell for found in self.series for cell in found.missing)

    @property
    def untried(self) -> tuple[Training, ...]:
        """What would try the rates that only short runs tried."""
        return tuple(cell for found in self.series for cell in found.untried(self.figure))

    @property
    def stood_for(self) -> tuple[Training, ...]:
        """The paper's trainings for which others were run: on a part of its data, or of another network.

        Those that were asked for themselves are missing, and told as such.
        """
        others = [cell for found in self.series for cell in (*found.on_other_data, *found.of_other_network)]
        return tuple(dict.fromkeys(cell.of_paper for cell in others if cell.of_paper not in self.missing))

    @property
    def theirs(self) -> tuple[ClaimVerdicts, ...]:
        """The claims that the paper makes, in a sentence or number that is quoted."""
        return tuple(each for each in self.claims if not counts_as_ours(self.figure, each.claim))

    @property
    def ours(self) -> tuple[ClaimVerdicts, ...]:
        """The claims that no paper makes, or none in words that are quoted."""
        return tuple(each for each in self.claims if counts_as_ours(self.figure, each.claim))

    @property
    def row(self) -> ListRow:
        """How it fared, in the list of all figures."""
        if self.summary is None:
            return ListRow(self.figure, "not run", None, self.counts)
        return list_row(self.summary.evidence, self.summary.verdicts, recorded=True)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many claims have each verdict."""
        return {word: sum(each.main.verdict == word for each in self.claims) for word in WORDS}


def recorded_figures(figures: Sequence[Figure], results: Path) -> list[Recorded]:
    """What `results`, which holds `<paper>/<figure>.json`, has of each figure.

    `remarks.json` beside them is written by hand: {figure: [what a reader should know of its numbers, …]}.
    """
    remarks = remarks_in(results)
    if strange := sorted(set(remarks) - {figure.id for figure in figures}):
        raise InputError(f"`{REMARKS}` remarks on `{strange[0]}`, which is no figure. Correct its name.")
    return [_recorded(figure, results, tuple(remarks.get(figure.id, ()))) for figure in figures]


def by_paper(found: Iterable[Recorded]) -> dict[str, list[Recorded]]:
    """The figures of each paper, in their order."""
    papers: dict[str, list[Recorded]] = {}
    for each in found:
        papers.setdefault(each.paper, []).append(each)
    return papers


def summary_table(found: Sequence[Recorded]) -> str:
    """A row per paper: how many of its figures have a claim that was run, and how its claims stand; last, claims of our own."""
    rows = [
        _summary_row(PAPERS.get(paper, paper), own, [claim for each in own for claim in each.theirs])
        for paper, own in by_paper(found).items()
        if any(each.theirs for each in own)
    ]
    asking = [each for each in found if each.ours]
    if asking:
        rows.append(_summary_row(_OURS, asking, [claim for each in asking for claim in each.ours]))
    titles = ("claims of", "figures run", *(STANDING_WORDS[word] for word in STANDINGS))
    return markdown_table(titles, rows, left=("claims of",))


def _summary_row(name: str, own: Sequence[Recorded], claims: Sequence[ClaimVerdicts]) -> list[str]:
    ran = sum(each.is_judged for each in own)
    parts = sum(each.is_part for each in own)
    return [name, f"{ran} of {len(own)}{f', {parts} in part' if parts else ''}", *standing_counts(claims)]


def standing_counts(claims: Sequence[ClaimVerdicts]) -> list[str]:
    """How many claims have each standing, in their order."""
    return [str(sum(claim.standing == word for claim in claims)) for word in STANDINGS]


def _recorded(figure: Figure, results: Path, remarks: tuple[str, ...]) -> Recorded:
    path = results / f"{figure.id}.json"
    if not path.is_file():
        return Recorded(figure, judge_readings(gather(figure, (), scale="paper")), remarks=remarks)
    evidence = recorded_evidence(figure, path)
    claims = judge_readings(evidence)
    summary = summarize(evidence, [each.main for each in claims], recorded=True, claims=claims)
    beside = dict.fromkeys(line["in"] for line in record_content(path)["entries"] if "in" in line)
    return Recorded(figure, claims, summary, remarks, tuple(beside))

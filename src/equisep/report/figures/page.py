"""The page of all figures as Markdown: what the papers claim and what the committed record found, paper by paper."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import mode
from typing import Protocol

from equisep.errors import InputError
from equisep.figures.cell import trainings
from equisep.figures.figure import Figure
from equisep.figures.judge import FEW, WORDS, Verdict, judge
from equisep.figures.papers import PAPERS, STAND_INS
from equisep.figures.quantities import FITTED
from equisep.figures.rules import ALIKE
from equisep.report.figures.cells import provenance_line, stand_in_lines, version_words
from equisep.report.figures.markdown import (
    claims_markdown,
    escaped,
    estimates_markdown,
    markdown_table,
    printed_markdown,
    seeds_markdown,
    series_markdown,
)
from equisep.report.figures.missing_laws import law_parts, rate_parts
from equisep.report.figures.summary import LIBRARIES, SeriesSummary, Summary, summarize
from equisep.report.formatting import duration, percent, size
from equisep.results.records import FUZZY_R, LAW_R, NO_LAW_R
from equisep.runs.record import recorded_evidence

_MOST = 4  # series named in a sentence


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


@dataclass(frozen=True, slots=True)
class Recorded:
    """A figure, and what the record has of it: all that is told of it, the tables of laws that were not found, and remarks."""

    figure: Figure
    summary: Summary | None = None
    beside: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def counts(self) -> Mapping[str, int]:
        """How its claims fared; not run where there is no record."""
        if self.summary is not None:
            return self.summary.counts
        return {word: len(self.figure.claims) if word == "not run" else 0 for word in WORDS}


def recorded_figures(figures: Sequence[Figure], results: Path) -> list[Recorded]:
    """What `results`, which holds `<paper>/<figure>.json`, has of each figure.

    `remarks.json` beside them is written by hand: {figure: [what a reader should know of its numbers, …]}.
    """
    written = results / "remarks.json"
    remarks: Mapping[str, Sequence[str]] = json.loads(written.read_text(encoding="utf-8")) if written.is_file() else {}
    if strange := sorted(set(remarks) - {figure.id for figure in figures}):
        raise InputError(f"`{written.name}` remarks on `{strange[0]}`, which is no figure. Correct its name.")
    found = [_recorded(figure, results / f"{figure.id}.json") for figure in figures]
    return [replace(each, remarks=tuple(remarks.get(each.figure.id, ()))) for each in found]


def figures_page(figures: Sequence[Figure], results: Path, *, predict: Callable[[Figure], Cost]) -> str:
    """The whole page: `results` holds `<paper>/<figure>.json` and `.png`; `predict` tells what a figure without one costs."""
    found = recorded_figures(figures, results)
    parts = [*_head(found), *_findings(found)]
    for paper, own in _by_paper(found).items():
        parts.append(f"## {paper}: {PAPERS[paper]}" if paper in PAPERS else f"## {paper}")
        parts.append(_overview(own, predict))
        parts += [part for each in own if each.summary for part in _section(each, each.summary, results)]
    return "\n\n".join(part for part in parts if part) + "\n"


def summary_table(found: Sequence[Recorded]) -> str:
    """A row a paper: how many figures are recorded, and how their claims fared."""
    rows = []
    for paper, own in _by_paper(found).items():
        known = sum(each.summary is not None for each in own)
        rows.append([PAPERS.get(paper, paper), f"{known} of {len(own)}", *_sums(own)])
    known = sum(each.summary is not None for each in found)
    rows.append(["all", f"{known} of {len(found)}", *_sums(found)])
    titles = ("paper", "figures recorded", *(f"claims {WORDS[0]}", *WORDS[1:]))
    return markdown_table(titles, rows, left=("paper",))


def _sums(found: Iterable[Recorded]) -> list[str]:
    own = list(found)
    return [str(sum(each.counts[word] for each in own)) for word in WORDS]


def _by_paper(found: Sequence[Recorded]) -> dict[str, list[Recorded]]:
    papers: dict[str, list[Recorded]] = {}
    for each in found:
        papers.setdefault(each.figure.id.partition("/")[0], []).append(each)
    return papers


def _recorded(figure: Figure, path: Path) -> Recorded:
    if not path.is_file():
        return Recorded(figure)
    evidence = recorded_evidence(figure, path)
    verdicts = judge(evidence)
    beside = (*law_parts(evidence, verdicts), *rate_parts(evidence))
    return Recorded(figure, summarize(evidence, verdicts, recorded=True), beside)


def _head(found: Sequence[Recorded]) -> Iterator[str]:
    run = [each.summary for each in found if each.summary is not None]
    sums = ", ".join(f"{sum(summary.counts[word] for summary in run)} {word}" for word in WORDS)
    yield "# The papers' figures, run again"
    yield (
        "Made from the record in `results/` by `scripts/make_figures_page.py`. `equisep figures show ID` prints any of these "
        "figures with all its numbers, `equisep figures run ID` runs it again: [running-figures.md](running-figures.md)."
    )
    yield f"{len(run)} of {len(found)} figures are recorded; of their claims: {sums}."
    yield summary_table(found)
    yield _made_words(run)
    yield (
        "**How claims are judged.** By rule, never by eye. A claim is *held* where the whole 95 % interval over seeds meets its "
        "rule, *contradicted* where all of it is beyond, *undecided* where it reaches the rule's bounds. With fewer than "
        f"{FEW} seeds it is *supported* or *against*; *not testable* where there is no number, or no network fits its "
        "training data. By He & Su's own numbers a *law* has r of "
        f"{LAW_R:g} or less, *no law* is r above {NO_LAW_R:g} or ρ ≥ 1, and what is between decides nothing; a *fuzzy law* has "
        f"r of {FUZZY_R:g} or less (ours). *Alike* and *near* ask for a factor of at most {ALIKE:g} by two one-sided tests. "
        "Every part of a claim has to meet the rule: *ours* is the part that does so the least. Where several learning "
        "rates were tried, one is chosen for all seeds, by the mean r among rates at which networks fit; *r optimistic* lets "
        "each seed choose for itself. "
        "*Bend* is how far two slopes fit better than one, over what one curve in twenty of one slope exceeds by chance "
        "([intervals.md](intervals.md)): above 1 the curve is bent, however large |r| is. "
        f"The reading of sites is {_reading_words(found)}; *r eval* is r in eval reading, and loss and accuracies are "
        "those of the network in eval reading."
    )


def _reading_words(found: Sequence[Recorded]) -> str:
    """How sites are read: `mixed, that of paper/fig eval`; papers whose figures all are go by their name."""
    others: list[str] = []
    for paper, own in _by_paper(found).items():
        ids = [each.figure.id for each in own if _first_readings(each.figure) == {"eval"}]
        others += [paper] if len(ids) == len(own) else ids
    return f"*mixed*, that of {', '.join(f'`{name}`' for name in others)} *eval*" if others else "*mixed*"


def _first_readings(figure: Figure) -> set[str]:
    return {cell.readings[0] for cell in trainings(figure.cell(series) for series in figure.series)}


def _made_words(run: Sequence[Summary]) -> str:
    """Devices, versions and TF32 of the whole record in a sentence."""
    if not run:
        return ""

    def joined(words: Iterable[Sequence[str]]) -> list[str]:
        return sorted({word for each in words for word in each})

    made = [summary.made for summary in run]
    versions = version_words({name: joined(each.versions[name] for each in made) for name in LIBRARIES})
    tf32 = [f"`{summary.figure.id}`" for summary in run if summary.made.tf32]
    rest = f"TF32 was allowed in {', '.join(tf32)}." if tf32 else "TF32 was not allowed anywhere."
    hours = duration(sum(each.wall_s for each in made))
    where = " and ".join(joined(each.device for each in made)) or "an unnamed device"
    commits = joined(each.commit for each in made)
    trees = f" Commits: {', '.join(commits)}; `-dirty` trees held changes beyond it." if commits else ""
    return escaped(f"Everything recorded was made on {where}, with {versions}, in {hours} of computing. {rest}{trees}")


def _findings(found: Sequence[Recorded]) -> Iterator[str]:
    """Every claim that is contradicted, in a line."""
    yield "## Findings"
    lines = []
    for each in found:
        series = each.summary.series if each.summary else ()
        failed = [one for one in each.summary.verdicts if one.verdict == "contradicted"] if each.summary else []
        if failed:
            lines.append(f"- [`{each.figure.id}`](#{anchor(each.figure.id)}) {escaped(each.figure.title)}")
        lines += [f"  - **{escaped(one.claim.text)}.** {escaped(one.reason)}{_unfit(one, series)}" for one in failed]
    if not lines:
        yield "No recorded claim is contradicted."
        return
    yield (
        "What the papers claim and these runs contradict. Each is a result, with its numbers. Where a claim, its rule or "
        "how it is read was set after numbers had been seen, the remarks below say so."
    )
    yield "\n".join(lines)


def _unfit(verdict: Verdict, series: Sequence[SeriesSummary]) -> str:
    """Which series of the parts that failed do not fit their training data at the rate that r chose; a fact, no cause."""
    words = {word.strip(",") for part in verdict.parts if part.verdict == "contradicted" for word in part.name.split()}
    named = [
        f"{row.name} {percent(fit)} % at the rate {row.rate:g}"
        for row in series
        if any(fnmatchcase(row.name, word) for word in words)
        and (fit := row.number("accuracy")) is not None
        and fit < FITTED
        and len(row.rates_tried) > 1
    ]
    if not named or verdict.claim.quantity == "accuracy":
        return ""
    more = f", and {len(named) - _MOST} more series below {percent(FITTED)} %" if len(named) > _MOST else ""
    return escaped(f" Training accuracy at the rate that r chose: {', '.join(named[:_MOST])}{more}.")


def _overview(own: Sequence[Recorded], predict: Callable[[Figure], Cost]) -> str:
    rows = []
    for each in own:
        figure, summary = each.figure, each.summary
        if summary is None:
            cost = predict(figure)
            state = f"not run; {cost.cells} cells, about {duration(cost.seconds)} on {cost.device}, {size(cost.bytes)}"
            name = f"`{figure.id}`"
        else:
            evidence = summary.evidence
            whole = evidence.done >= evidence.planned
            state = f"{summary.state}, {evidence.done} cells" if whole else summary.state
            name = f"[`{figure.id}`](#{anchor(figure.id)})"
        rows.append([name, figure.title, state, *(str(each.counts[word]) for word in WORDS)])
    return markdown_table(("figure", "shows", "state", *WORDS), rows, left=("figure", "shows", "state"))


def _section(each: Recorded, summary: Summary, results: Path) -> list[str]:
    """One recorded figure: what it shows, its picture, claims, numbers beside the paper's, what was not found."""
    id, title = each.figure.id, escaped(each.figure.title)
    beside = [series_markdown(summary), seeds_markdown(summary)]
    return [
        f'<a id="{anchor(id)}"></a>',
        f"### {id}: {title}",
        f"{escaped(each.figure.source)}; {escaped(_state_words(summary))}.",
        " ".join(_stand_in_words(summary)),
        f"![{title}](../results/{id}.png)" if (results / f"{id}.png").is_file() else "",
        claims_markdown(summary),
        "The paper's numbers beside ours:" if summary.printed else "",
        printed_markdown(summary),
        estimates_markdown(summary),
        "\n".join(("Remarks:", "", *(f"- {escaped(remark)}" for remark in each.remarks))) if each.remarks else "",
        *each.beside,
        "\n".join(
            (
                "<details><summary>All series, and every seed</summary>",
                "",
                *(f"{part}\n" for part in beside if part),
                "</details>",
            )
        )
        if any(beside)
        else "",
        " ".join(map(escaped, summary.notes)),
        escaped(provenance_line(summary)),
    ]


def _state_words(summary: Summary) -> str:
    """Seeds and cells in a few words."""
    seeds = [row.n for row in summary.series if row.n and row.rates_tried]
    usual = mode(seeds) if seeds else 0
    over = f"{usual} {'seed' if usual == 1 else 'seeds'}, " if seeds else ""
    evidence = summary.evidence
    cells = f"{evidence.done} cells" if evidence.done >= evidence.planned else summary.state
    return f"{evidence.scale} scale, {over}{cells}"


def _stand_in_words(summary: Summary) -> Iterator[str]:
    for line, used in zip(stand_in_lines(summary), summary.evidence.stand_ins.values(), strict=True):
        yield f"**{escaped(line)}**" + (f" It is {STAND_INS[used]}." if used in STAND_INS else "")


def anchor(id: str) -> str:
    """Where a figure's section begins."""
    return id.replace("/", "-").lower()

"""The page of all figures as Markdown: what the papers claim and what the committed record found, paper by paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from equisep.figures.evidence import gather
from equisep.figures.figure import Figure
from equisep.figures.judge import FEW, WORDS, judge
from equisep.figures.rules import ALIKE
from equisep.report.figure_plans import duration, size
from equisep.report.figure_rows import figure_json
from equisep.report.figure_tables import (
    claims_markdown,
    escaped,
    estimates_markdown,
    markdown_table,
    printed_markdown,
    provenance_line,
    seeds_markdown,
    series_markdown,
    stand_in_lines,
    state_line,
)
from equisep.results.records import FUZZY_R, LAW_R
from equisep.runs.record import read_record

PAPERS = {
    "he2023": "He & Su, A Law of Data Separation in Deep Learning",
    "fang2021": "Fang, He, Long & Su, Layer-Peeled Model",
    "galanti2022": "Galanti & Galanti, On the Implicit Bias Towards Depth Minimization",
}


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


def figures_page(figures: Sequence[Figure], results: Path, *, predict: Callable[[Figure], Cost]) -> str:
    """The whole page: `results` holds `<paper>/<figure>.json` and `.png`; `predict` tells what a figure without one costs."""
    contents = {figure.id: _content(figure, results) for figure in figures}
    parts = [_head(contents.values())]
    for paper in dict.fromkeys(figure.id.partition("/")[0] for figure in figures):
        own = [figure for figure in figures if figure.id.startswith(f"{paper}/")]
        parts.append(f"## {paper}: {PAPERS[paper]}" if paper in PAPERS else f"## {paper}")
        parts.append(_overview(own, contents, predict))
        parts += [part for figure in own if (found := contents[figure.id]) for part in _section(found, results)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _content(figure: Figure, results: Path) -> dict[str, Any] | None:
    """What the record has of a figure; None where there is none."""
    path = results / f"{figure.id}.json"
    if not path.is_file():
        return None
    record = read_record(path)
    evidence = gather(figure, record.entries, scale=record.scale, planned=record.planned)
    return figure_json(evidence, judge(evidence), recorded=True)


def _head(contents: Iterable[Mapping[str, Any] | None]) -> str:
    known = list(contents)
    run = [content for content in known if content is not None]
    sums = ", ".join(f"{sum(content['counts'][word] for content in run)} {word}" for word in WORDS)
    return "\n\n".join(
        (
            "# The papers' figures, run again",
            "Made from the record in `results/` by `scripts/make_figures_page.py`; `equisep figures show ID` prints any of them "
            "with all its numbers, and `equisep figures run ID` runs it again.",
            f"{len(run)} of {len(known)} figures are recorded; of their claims: {sums}.",
            f"Claims are judged by rule. A *law* is a mean r over seeds of {LAW_R:g} or less, a *fuzzy law* of {FUZZY_R:g} or "
            "less, with ρ < 1. A comparison holds where the paired 95 % interval over seeds excludes zero, *alike* and *near* "
            f"where it lies within ±{100 * ALIKE:g} %. With fewer than {FEW} seeds a claim is *indicated* at best. Where it was "
            "tried, the learning rate is chosen once for all seeds, by the mean r; *r optimistic* lets each seed choose for "
            "itself. *Bend* is the gain in BIC of two slopes over one: above 6 the curve is bent, however large |r| is.",
        )
    )


def _overview(
    figures: Sequence[Figure], contents: Mapping[str, Mapping[str, Any] | None], predict: Callable[[Figure], Cost]
) -> str:
    rows = []
    for figure in figures:
        found = contents[figure.id]
        if found is None:
            cost = predict(figure)
            state = f"not run; {cost.cells} cells, about {duration(cost.seconds)} on {cost.device}, {size(cost.bytes)}"
            counts = dict.fromkeys(WORDS, 0) | {"not run": len(figure.claims)}
            name = f"`{figure.id}`"
        else:
            state, counts = f"{found['state']}, {found['cells']['run']} cells", found["counts"]
            name = f"[`{figure.id}`](#{anchor(figure.id)})"
        rows.append([name, figure.title, state, *(str(counts[word]) for word in WORDS)])
    return markdown_table(("figure", "shows", "state", *WORDS), rows, left=("figure", "shows", "state"))


def _section(content: Mapping[str, Any], results: Path) -> list[str]:
    """One recorded figure: what it shows, its picture, claims, numbers beside the paper's."""
    picture = results / f"{content['id']}.png"
    beside = [series_markdown(content), seeds_markdown(content)]
    return [
        f'<a id="{anchor(content["id"])}"></a>',
        f"### {content['id']}: {escaped(content['title'])}",
        f"{escaped(content['source'])}. {escaped(state_line(content))}.",
        " ".join(f"**{escaped(line)}**" for line in stand_in_lines(content)),
        f"![{content['id']}](../results/{content['id']}.png)" if picture.is_file() else "",
        claims_markdown(content["claims"]),
        printed_markdown(content["printed"]),
        estimates_markdown(content),
        "\n".join(("<details><summary>Series</summary>", "", *(f"{part}\n" for part in beside if part), "</details>"))
        if any(beside)
        else "",
        " ".join(escaped(note) for note in content["notes"]),
        escaped(provenance_line(content)),
    ]


def anchor(id: str) -> str:
    """Where a figure's section begins."""
    return id.replace("/", "-").lower()

"""The tables of docs/tracking.md on what rules that stop a training save and cost, from the record of equisep2026/stopping."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean

from equisep.figures.catalogue import figure_of
from equisep.figures.evidence import Evidence, SeriesEvidence
from equisep.figures.judge import Verdict, judge
from equisep.figures.papers.equisep2026_stopping import EPOCHS, MOST_LOST, SCHEDULES, SETTINGS
from equisep.figures.stopping import RULES
from equisep.law import seed_interval
from equisep.runs.record import recorded_evidence

REPO = Path(__file__).resolve().parents[1]
PAGE, FIGURE = REPO / "docs" / "tracking.md", "equisep2026/stopping"
RECORD = REPO / "results" / f"{FIGURE}.json"
BEGIN, END = "<!-- {}, by scripts/stopping_page.py -->", "<!-- end of {} -->"
LEVEL = 0.95
ABOUT = ("lost_law", "lost_law10", "behind_law")  # what law settled costs
PARTS = {
    "Fashion-MNIST": ("fm8", "fm20", "few8"),
    "CIFAR-10": ("cifar8",),
    "Fashion-MNIST with random labels": ("noise8",),
}


def rows_of(evidence: Evidence) -> list[tuple[str, SeriesEvidence]]:
    """Every setting and schedule by its name on the page."""
    return [
        (f"{title}, {schedule}", evidence.series[f"{setting}-{schedule}"])
        for setting, (title, *_) in SETTINGS.items()
        for schedule in SCHEDULES
    ]


def interval(values: Sequence[float], *, digits: int = 2, signed: bool = True) -> str:
    """Mean with its 95 % interval over seeds (Student's t)."""
    plus = "+" if signed else ""
    span = seed_interval(values, LEVEL)
    texts = (f"{value:{plus}.{digits}f}".replace("-", "−") for value in (mean(values), span.low, span.high))
    middle, low, high = (text.replace("−0.00", "0.00").replace("+0.00", "0.00") for text in texts)
    return f"{middle} [{low}, {high}]"


def epochs(found: SeriesEvidence, quantity: str) -> str:
    """The mean epoch of the seeds in which something happened, and how many they are where not all."""
    values = list(found.values(quantity).values())
    some = "" if len(values) == len(found.chosen) else f" ({len(values)} of {len(found.chosen)} seeds)"
    return "never" if not values else f"{mean(values):.0f}{some}"


def emergence(evidence: Evidence) -> str:
    """When things happen in a training."""
    titles = (
        "training",
        "law",
        "neural collapse",
        "99 % of training data",
        "test accuracy within 0.5 points",
        "at the end",
    )
    names = ("law_emerged", "collapse_emerged", "fitted_epoch", "test_settled")
    return table(
        titles,
        (
            [
                name,
                *(epochs(found, each) for each in names),
                f"{100 * mean(found.values('accuracy_test').values()):.1f} %",
            ]
            for name, found in rows_of(evidence)
        ),
    )


def costs(evidence: Evidence, rules: Sequence[str]) -> str:
    """What each rule saves and costs: epochs saved, and points of test accuracy against the last epoch, paired over seeds."""
    titles = ("training", *(RULES[rule][0] for rule in rules))
    lines = []
    for name, found in rows_of(evidence):
        cells = []
        for rule in rules:
            saved, lost = (list(found.values(f"{what}_{rule}").values()) for what in ("saved", "lost"))
            cells.append(f"{100 * mean(saved):.0f} %; {interval([-value for value in lost])}")
        lines.append([name, *cells])
    return table(titles, lines)


def behind(evidence: Evidence, rules: Sequence[str]) -> str:
    """Which rule (or the whole schedule) has the highest mean test accuracy, and how far law settled is from it, paired."""
    lines = []
    for name, found in rows_of(evidence):
        lost = {"the whole schedule": dict.fromkeys(found.chosen, 0.0)}
        lost |= {RULES[rule][0]: found.values(f"lost_{rule}") for rule in rules}
        best = min(lost, key=lambda rule: mean(lost[rule].values()))
        own = found.values("lost_law")
        away = "it is the best" if best == RULES["law"][0] else interval([lost[best][seed] - own[seed] for seed in own])
        lines.append([name, best, away, interval([-value for value in found.values("behind_law").values()])])
    return table(("training", "best rule", "law settled against it", "against validation loss"), lines)


def ranged(values: Sequence[float], *, digits: int) -> str:
    """From the least to the greatest."""
    low, high = (f"{value:.{digits}f}".replace("-", "−") for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def means(evidence: Evidence, settings: Sequence[str], quantity: str) -> list[float]:
    """The mean over seeds in each of some settings, at both schedules."""
    names = [f"{setting}-{schedule}" for setting in settings for schedule in SCHEDULES]
    return [mean(evidence.series[name].values(quantity).values()) for name in names]


def verdict(evidence: Evidence) -> str:
    """What came of the claims on law settled, in words."""
    trainings = len(evidence.series)
    counts = {name: _counts([each for each in judge(evidence) if each.claim.quantity == name]) for name in ABOUT}
    word = "Supported" if counts["lost_law"][0] == trainings else "Not supported here"
    told = "; ".join(
        f"{title} {points(evidence, settings, 'lost_law')} (validation loss {points(evidence, settings, 'lost_loss')})"
        for title, settings in PARTS.items()
    )
    saved = ranged([100 * value for value in means(evidence, tuple(SETTINGS), "saved_law")], digits=0)
    stops = [stop for setting in SETTINGS for stop in evidence.series[f"{setting}-steps"].values("stop_law").values()]
    first = SCHEDULES["steps"][1][0] * EPOCHS
    held, above, open_ = counts["lost_law"]
    lines = (
        f"**{word}: that law settled costs at most {MOST_LOST:g} points of test accuracy against the whole schedule.**",
        f"Of {trainings} trainings that held in {held}; in {above} it cost more, the whole interval says so; in {open_} ten "
        "seeds do not tell.",
        f"With 10 readings instead of 5: {_listed(counts['lost_law10'])}. That it costs at most {MOST_LOST:g} points more "
        "than early",
        f"stopping on validation loss: {_listed(counts['behind_law'])}. It saved {saved} % of the epochs; with the rate in steps "
        "it stopped",
        f"before the rate fell for the first time in {sum(stop <= first for stop in stops)} of {len(stops)} networks. Mean "
        "points of test accuracy",
        f"against the last epoch: {told}.",
    )
    return "\n".join(lines)


def _counts(judged: Sequence[Verdict]) -> tuple[int, int, int]:
    """How many claims held, of how many the whole interval lies beyond the limit, and how many are neither."""
    held = sum(each.verdict == "held" for each in judged)
    limits = [(each.interval, each.claim.value) for each in judged]
    above = sum(span is not None and limit is not None and span.low > limit for span, limit in limits)
    return held, above, len(judged) - held - above


def _listed(counts: tuple[int, int, int]) -> str:
    held, above, open_ = counts
    return f"held in {held}, failed in {above}, not to be told in {open_}"


def points(evidence: Evidence, settings: Sequence[str], quantity: str) -> str:
    """What was gained (lost, below 0) against the last epoch, over some settings."""
    return ranged([-value for value in means(evidence, settings, quantity)], digits=1)


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, all but its first column to the right."""
    lines = [titles, [":--", *["--:"] * (len(titles) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def blocks(evidence: Evidence) -> Mapping[str, str]:
    """What stands between the marks of the page, by name."""
    usual, patient = ("law", "loss", "accuracy", "r"), ("law10", "loss10", "accuracy10")
    assert all(len(found.chosen) >= 2 for found in evidence.series.values())
    return {
        "the verdict": verdict(evidence),
        "when things happen": emergence(evidence),
        "what rules save and cost": costs(evidence, usual),
        "what more patience saves and costs": costs(evidence, patient),
        "the best rule": behind(evidence, (*usual, *patient)),
    }


def page_text(text: str, evidence: Evidence) -> str:
    """The page with its tables as they should be."""
    for name, block in blocks(evidence).items():
        begin, end = BEGIN.format(name), END.format(name)
        before, mark, rest = text.partition(begin)
        _, closing, after = rest.partition(end)
        if not mark or not closing:
            raise SystemExit(f"{PAGE.name} has lost `{begin}` or `{end}`. Put both back where the table should stand.")
        text = f"{before}{begin}\n\n{block}\n\n{end}{after}"
    return text


def recorded() -> Evidence:
    """What the committed record holds."""
    return recorded_evidence(figure_of(FIGURE), RECORD)


if __name__ == "__main__":
    PAGE.write_text(page_text(PAGE.read_text(encoding="utf-8"), recorded()), encoding="utf-8")
    print(f"equisep: wrote {PAGE}, of {EPOCHS} epochs")

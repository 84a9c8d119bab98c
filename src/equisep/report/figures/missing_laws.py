"""Where a law that a paper claims was not found: seed by seed, in both readings, at other rates, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from equisep.figures.claim_parts import Operand, comparisons_of
from equisep.figures.evidence import Entry, Evidence, SeriesEvidence, gather
from equisep.figures.figure import Claim
from equisep.figures.judge import Verdict, judge
from equisep.figures.quantities import FITTED, Query, curve, law_of, quantity_words
from equisep.figures.rules import LAWS, side
from equisep.report.figures.markdown import escaped, markdown_table
from equisep.report.formatting import correlation, number, percent
from equisep.results import law_verdict

_RULES = (*LAWS, "at least", "at most")  # that ask for an r of each series by itself
_MISSING = ("contradicted", "against", "undecided", "not testable")
_NONE = "–"
_VERDICTS = {"law": "a law", "between": "between a law and none", "no law": "no law", "undetermined": "undetermined"}


def law_parts(evidence: Evidence, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Markdown for each claim of a law that did not hold: its series seed by seed, and a sentence on what differs."""
    for verdict in verdicts:
        claim = verdict.claim
        if verdict.verdict not in _MISSING or claim.rule not in _RULES or Query.of(claim.quantity).name != "r":
            continue
        yield f"**{verdict.verdict.capitalize()}: {escaped(claim.text)}.** What differs, seed by seed at the chosen rate:"
        for comparison, part in zip(comparisons_of(evidence, claim, verdict.reading), verdict.parts, strict=True):
            if part.verdict in _MISSING:
                (operand,) = comparison.of
                yield f"{_heading(operand)} {' '.join(_differences(operand, claim))}"
                if operand.values:
                    yield _seeds_table(operand)
        yield _weightings(evidence)


def rate_parts(evidence: Evidence) -> Iterator[str]:
    """The same figure at the rates that the authors' code names, where it does: numbers, and the claims judged again."""
    named = evidence.figure.code_rates
    theirs = _at_rates(evidence, named)
    if not theirs.done:
        return
    yield (
        "**At the authors' rates.** The paper chooses each panel's rate by the most negative r; its public code names the rates "
        "below. Means over seeds, at our rate (the most negative mean r over seeds) and at theirs:"
    )
    rows = []
    for name in named:
        ours, other = evidence.series[name], theirs.series[name]
        rows.append([name, *_law_cells(ours), *_law_cells(other)])
    numbers = ("r", "ρ", "final D", "train %")
    yield markdown_table(
        ("series", "our rate", *numbers, "their rate", *(f"{word} there" for word in numbers)), rows, left=("series",)
    )
    judged = [verdict for verdict in judge(theirs) if verdict.verdict != "not run"]
    before = {verdict.claim.text: verdict.verdict for verdict in judge(evidence)}
    cells = [[one.claim.text, before[one.claim.text], one.verdict, one.reason] for one in judged]
    yield markdown_table(
        ("claim", "at our rates", "at theirs", "found at theirs"), cells, left=("claim", "found at theirs")
    )


def _at_rates(evidence: Evidence, rates: Mapping[str, float]) -> Evidence:
    """The evidence of those series alone, at one rate each."""
    entries = [
        entry
        for name, found in evidence.series.items()
        for entry in found.entries
        if name in rates and entry.training.rate == rates[name]
    ]
    return gather(evidence.figure, entries, scale=evidence.scale)


def _law_cells(found: SeriesEvidence) -> list[str]:
    means = {name: _mean(found.values(name)) for name in ("r", "rho", "last", "accuracy")}
    rate = _NONE if found.rate is None else f"{found.rate:g}"
    return [
        rate,
        correlation(means["r"]),
        number(means["rho"], 3),
        number(means["last"], 3),
        percent(means["accuracy"]),
    ]


def _heading(operand: Operand) -> str:
    rate = "" if operand.series.rate is None else f" at the rate {operand.series.rate:g}"
    what = "" if operand.quantity == "r" else f", {quantity_words(operand.quantity)}"
    return f"`{operand.series.series.name}`{rate}{what}:"


def _differences(operand: Operand, claim: Claim) -> Iterator[str]:
    """Sentences on how the curves of one series depart from what the rule asks for, and what does not explain it."""
    found, asked = operand.series, Query.of(operand.quantity)
    own = operand.values
    if not own:
        yield _absent(found, asked)
        return
    rho = found.values(asked.renamed("rho"))
    if claim.rule in LAWS:
        meeting = sum(side(claim, r, r) == "in" and rho.get(seed, 0.0) < 1 for seed, r in own.items())
        if len(own) > 1:
            yield f"{meeting} of {len(own)} seeds by themselves meet the rule."
        yield from _other_readings(found, asked, own)
    bend = _mean(found.values(asked.renamed("bend")))
    if bend is not None:
        better = "fit better than one" if bend > 1 else "cannot be told from one"
        yield f"Two slopes {better} (bend {number(bend, 3)} of its 5 % limit)."
    yield from _farthest(found, asked)
    fit = _mean(found.values("accuracy"))
    if fit is not None and fit < FITTED:
        yield f"The network does not fit its training data at this rate: accuracy {percent(fit)} %."


def _other_readings(found: SeriesEvidence, asked: Query, own: Mapping[int, float]) -> Iterator[str]:
    """The same in eval reading, and with each seed at the rate that suits it best."""
    sites = min(len(_curve(entry, asked)) for entry in found.chosen.values())

    def words(r: Mapping[int, float], rho: Mapping[int, float]) -> str:
        mean = _mean(r)
        verdict = law_verdict(mean, _mean(rho), sites=sites)
        return f"the mean r is {correlation(mean)}: {_VERDICTS[verdict]}."

    first = next(iter(found.chosen.values())).outcome.readings[0].reading
    eval_r, eval_rho = (found.values(asked.renamed(name, reading="eval")) for name in ("r", "rho"))
    if eval_r and first != "eval":
        yield f"In eval reading instead of {first}, {words(eval_r, eval_rho)}"
    best_r, best_rho = (found.optimistic(asked.renamed(name)) for name in ("r", "rho"))
    longest = max(entry.training.epochs for entry in found.entries)
    if len({entry.training.rate for entry in found.entries if entry.training.epochs == longest}) == 1:
        return
    if best_r == own:
        yield "No seed does better at another rate."
    elif best_r:
        yield f"With each seed at its own best rate (optimistic), {words(best_r, best_rho)}"


def _farthest(found: SeriesEvidence, asked: Query) -> Iterator[str]:
    """Where the mean curve is farthest from its line."""
    laws = [law_of(_curve(entry, asked)) for entry in found.chosen.values()]
    known = [law.residuals for law in laws if law is not None and law.residuals]
    if known and len({len(row) for row in known}) == 1:
        mean = np.mean(known, axis=0)
        site = int(np.argmax(np.abs(mean)))
        side = "above" if mean[site] > 0 else "below"
        at = site + int(asked.ways.get("from", "0"))
        yield f"ln D lies farthest from its line at site {at}: {number(abs(float(mean[site])), 3)} {side} it."


def _absent(found: SeriesEvidence, asked: Query) -> str:
    """Why there is no r."""
    curves = [_curve(entry, asked) for entry in found.chosen.values()]
    missing = [[site for site, value in enumerate(values) if value is None] for values in curves]
    first = min((sites[0] for sites in missing if sites), default=None)
    if first is None:
        return "there is no r in any seed."
    rates = sorted({entry.training.rate for entry in found.entries})
    tried = f" at any of the {len(rates)} rates tried" if len(rates) > 1 else ""
    return (
        f"there is no r in any seed{tried}, since from site {first} on D does not exist: class means are the same there. "
        f"Training accuracy is {percent(_mean(found.values('accuracy')))} %. So there is no law, but no number either that "
        "the rule could judge."
    )


def _seeds_table(operand: Operand) -> str:
    """A row per seed, and their means."""
    found, asked = operand.series, Query.of(operand.quantity)
    texts = {
        "r": asked.renamed("r"),
        "r, eval reading": asked.renamed("r", reading="eval"),
        "ρ": asked.renamed("rho"),
        "final D": asked.renamed("last"),
        "train %": "accuracy",
        "greatest residual": asked.renamed("max_residual"),
        "bend": asked.renamed("bend"),
        "imbalance": asked.renamed("imbalance"),
    }
    values = {title: found.values(text) for title, text in texts.items()}
    best = found.optimistic(asked.renamed("r"))
    rows = [
        [
            str(seed),
            *(_cell(title, own.get(seed)) for title, own in values.items()),
            correlation(best.get(seed)),
            f"{found.best[seed].training.rate:g}" if seed in best else _NONE,
        ]
        for seed in found.chosen
    ]
    if len(rows) > 1:
        means = [_cell(title, _mean(own)) for title, own in values.items()]
        rows.append(["mean", *means, correlation(_mean(best)), ""])
    return markdown_table(("seed", *texts, "best r of any rate", "rate of that"), rows)


def _cell(title: str, value: float | None) -> str:
    if title.startswith("r"):
        return correlation(value)
    return percent(value) if title == "train %" else number(value, 4 if title == "imbalance" else 3)


def _weightings(evidence: Evidence) -> str:
    cells = [entry.training for found in evidence.series.values() for entry in found.chosen.values()]
    if any(cell.sizes is not None and len(set(cell.sizes)) > 1 for cell in cells):
        return (
            "The weightings of D (by samples, as here, or by classes) agree for series whose classes have as many samples "
            "each; they differ for those with unequal classes."
        )
    return "The weightings of D agree: all classes have as many samples, so that weighting by samples or by classes is one."


def _curve(entry: Entry, asked: Query) -> tuple[float | None, ...]:
    return curve(entry.outcome, asked.renamed(asked.ways.get("of", "fuzziness")))


def _mean(values: Mapping[int, float]) -> float | None:
    return float(np.mean(list(values.values()))) if values else None

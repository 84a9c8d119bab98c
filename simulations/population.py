"""Does D of the population come out right, and do intervals cover? Gaussian classes whose D is known, drawn and measured.

*Values.* K classes in d dimensions, n samples in all; the spectrum within classes is flat (`flat`) or λ_j ∝ j^−½ (`decaying`) or
j^−1 (`steep`), the directions of the class means are random, their squared lengths spread over a random part of a decade. The
means are scaled so that D is a given multiple of the chance level (K−1) n Tr Σ²/(Tr Σ)². Of `corrected_fuzziness`: how often it
gives no value, the median of value over truth (of what is told, and of all draws, a refusal standing for the largest), how
often the interval covers the truth. Of plain `fuzziness`: the median over
truth, and how often the interval by jackknife covers the mean of ln D over other samples of the same size, and the truth. Beside
them what lost: 1/D = 1/plain − 1/chance.

*Limits.* The same where it is hard: one or two directions within classes that vary 20 or 10 times as much as all others
(`1 × 20`, `2 × 10`); few even directions for the number of classes; and classes of 150, 80, 40, 20 and 10 samples of which the
rare ones spread more, variances 0.25 to 4 (`rare wide`; `even means`: means that are all as far from each other, so that what the
rare ones add to SSb is short as well).

*Laws.* Eight sites of the same samples, x_l = μ + ρ^{l/2} ε with ρ = 0.5, so that D falls by half from site to site. How often
the intervals of ρ and of the half-life cover, of the corrected law and of the plain one. `apart`: half of the variance of ε is
drawn anew at every site.

*Widths.* How far up intervals reach at the chance level: deciles of their upper end over the value, a refusal standing for the
largest. Whether a rule by the width of intervals could refuse what is told badly elsewhere depends on them.

*Bootstrap.* The intervals that `measure(…, intervals="bootstrap")` and profiles of earlier versions have.

    PYTHONPATH=src OMP_NUM_THREADS=1 python simulations/population.py --save [--draws 1000] [--jobs 16] [--minutes 8 --out FOLDER]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from _table import Job, Rows, finish_jobs, rate
from equisep.law import fit_law, law_intervals, steadied
from equisep.law.population import corrected, corrected_law
from equisep.law.quantiles import normal_quantile, student_quantile
from equisep.separation import PAPER, Assignments, SiteTask, TrainSite
from equisep.separation.fuzziness import fuzziness_of
from equisep.separation.noise.bootstrap import bootstrap_weights, reweighted_fuzziness
from equisep.separation.site import estimated
from equisep.separation.subspace import AS_GIVEN

DRAWS, FEWER = 1_000, 300  # of the latter where n·d exceeds a million, and of the laws added last
EACH = 50  # samples of one population
MORE = 3  # times the draws where every population has covariances of its own, by which coverage differs
FOLDS, LABELINGS, RESAMPLES = 10, 5, 200
SPIKES = {"1 × 20": (1, 20.0), "2 × 10": (2, 10.0)}  # how many directions, and times the variance of all others
RARE, WIDE = (150, 80, 40, 20, 10), (0.25, 0.5, 1.0, 2.0, 4.0)  # samples and variances
POWERS = {"flat": 0.0, "decaying": 0.5, "steep": 1.0}
SHARES = (0.1, 0.3, 1.0, 2.0, 3.0, 10.0)  # D over its chance level
SITES, RHO = 8, 0.5


@dataclass(frozen=True, slots=True)
class Case:
    """One population and the samples drawn of it; `odds` is how much larger the first half of the classes is."""

    classes: int
    dim: int
    n: int
    spectrum: str = "flat"
    odds: float = 1.0
    kind: str = ""  # `heavy` tails, a covariance of its own for every class: `unlike`, … as named above

    @property
    def sizes(self) -> list[int]:
        """Samples per class."""
        if self.kind.startswith("rare wide"):
            return list(RARE)
        weights = [self.odds if k < self.classes // 2 else 1.0 for k in range(self.classes)]
        return [max(2, round(self.n * weight / sum(weights))) for weight in weights]


# d ≥ 5 K, then what lies beyond
ASKED = (
    *(Case(2, 100, 200, name) for name in ("flat", "decaying")),
    *(Case(2, 1000, 200, name) for name in ("flat", "decaying")),
    *(Case(5, 50, 500, name) for name in ("flat", "decaying")),
    *(Case(10, 50, 1000, name) for name in ("flat", "decaying")),
    *(Case(10, 100, 1000, name) for name in ("flat", "decaying")),
    *(Case(10, 1000, 1000, name) for name in ("flat", "decaying")),
    Case(10, 500, 200, "flat"),
    Case(10, 100, 1000, "flat", odds=5.0),
    Case(30, 200, 1500, "flat"),
)
BEYOND = (
    Case(2, 10, 60),
    Case(10, 10, 1000),
    Case(10, 20, 1000),
    Case(10, 100, 60),
    Case(10, 100, 1000, "steep"),
    Case(10, 100, 1000, "decaying", kind="heavy"),
    Case(10, 100, 1000, "decaying", kind="unlike"),
    Case(10, 8192, 150, "decaying"),
    Case(100, 500, 5000),
)
# a few directions that hold most of the variance, few directions at all, rare classes that spread more
LIMITS = (
    *((case, (0.03, 0.1, 0.3)) for case in (Case(10, 100, 1000, "1 × 20"), Case(5, 60, 500, "1 × 20"))),
    (Case(10, 100, 1000, "2 × 10"), (0.03, 0.1, 0.3)),
    *((Case(k, d, 100 * k), (0.1, 0.3, 1.0)) for k, d in ((2, 10), (2, 30), (3, 15), (3, 30), (5, 25))),
    *((Case(5, 40, 300, kind=kind), (0.03, 0.1, 0.3, 1.0)) for kind in ("rare wide", "rare wide, even means")),
)


@dataclass(frozen=True, slots=True)
class Population:
    """Class means and the spread around them."""

    means: Tensor  # k d
    deviations: Tensor  # k d or 1 d
    truth: float
    labels: Tensor


def population(case: Case, share: float, make: torch.Generator) -> Population:
    """One population with D = share × chance level."""
    k, d = case.classes, case.dim
    spread = torch.arange(1, d + 1, dtype=torch.float64) ** -POWERS.get(case.spectrum, 0.0)
    spikes, variance = SPIKES.get(case.spectrum, (0, 1.0))
    spread[:spikes] = variance
    sizes = torch.tensor(case.sizes, dtype=torch.float64)
    weights = sizes / sizes.sum()
    variances = spread.expand(k, d)
    if case.kind == "unlike":
        factors = torch.exp(torch.randn(k, d, generator=make, dtype=torch.float64))
        variances = spread * factors / (weights @ factors)
    if case.kind.startswith("rare wide"):
        factors = torch.tensor(WIDE, dtype=torch.float64).unsqueeze(1)
        variances = spread * factors / (weights @ factors)
    chance = (k - 1) * float(sizes.sum()) * float((spread**2).sum()) / float(spread.sum()) ** 2
    v, _ = torch.linalg.qr(torch.randn(d, k - 1, generator=make, dtype=torch.float64))
    root = weights.sqrt().unsqueeze(1)
    u, _ = torch.linalg.qr(torch.cat([root, torch.randn(k, k - 1, generator=make, dtype=torch.float64)], dim=1))
    u = u[:, 1:]
    widest = float(torch.rand((), generator=make))  # of a decade
    s = 10 ** (-widest * torch.linspace(0, 1, k - 1, dtype=torch.float64) / 2)
    if case.kind.endswith("even means"):  # B of the means e_k: its singular vectors and values
        u, s, _ = torch.linalg.svd(root * (torch.eye(k, dtype=torch.float64) - weights))
        u, s = u[:, :-1], s[:-1]
    truth = share * chance
    now = float(((v.T @ (spread.unsqueeze(1) * v)).diagonal() / s**2).sum())
    s = s * math.sqrt(now / truth)
    means = (u * s) @ v.T / root
    labels = torch.repeat_interleave(torch.arange(k), torch.tensor(case.sizes))
    return Population(means, variances.sqrt(), truth, labels)


def samples(case: Case, who: Population, make: torch.Generator) -> tuple[Tensor, Tensor]:
    """Noise and labels of one sample, in random order."""
    y = who.labels[torch.randperm(len(who.labels), generator=make)]
    noise = torch.randn(len(y), case.dim, generator=make, dtype=torch.float64) * who.deviations[y % len(who.deviations)]
    if case.kind == "heavy":  # Student's t with 5 degrees of freedom, one scale for all numbers of a sample
        chi = torch.randn(len(y), 5, generator=make, dtype=torch.float64).square().sum(dim=1, keepdim=True)
        noise = noise * (3 / chi).sqrt()
    return noise, y


def measured(x: Tensor, y: Tensor, classes: int) -> dict[str, Any]:
    """Both D with their intervals, as `measure` makes them."""
    task = SiteTask(classes, folds=FOLDS, relabelings=LABELINGS, centers=False, steps=AS_GIVEN)
    rows = Assignments.of(y, first=0, classes=classes, folds=FOLDS, relabelings=LABELINGS, seed=0)
    site = TrainSite(task)
    site.first([x], rows)
    site.turn()
    site.second([x], rows)
    (found,) = estimated([site.statistics()])
    assert found.population is not None and found.replicates is not None
    plain = fuzziness_of(found.spread, task.convention)
    assert plain is not None
    record = corrected(
        found.population,
        plain=plain,
        chance=found.chance,
        counts=torch.bincount(y, minlength=classes).tolist(),
    )
    folds = steadied(found.replicates, found.population.excess)
    return {"plain": plain, "folds": folds, "record": record, "chance": found.chance or math.inf}


def one_case(case: Case, share: float, draws: int, seed: int) -> Rows:
    """All draws of one case at one share of the chance level."""
    return [summary(case, share, *_drawn(case, share, draws, seed))]


def _drawn(case: Case, share: float, draws: int, seed: int) -> tuple[float, list[list[dict[str, Any]]]]:
    """The truth, and what was measured of every draw, those of one population together."""
    make = torch.Generator().manual_seed(seed)
    parts: list[list[dict[str, Any]]] = []
    for begin in range(0, draws, EACH):
        who = population(case, share, make)
        parts.append([])
        for _ in range(min(EACH, draws - begin)):
            noise, y = samples(case, who, make)
            parts[-1].append(measured(who.means[y] + noise, y, case.classes))
    return who.truth, parts


def one_width(case: Case, share: float, draws: int, seed: int) -> Rows:
    """How far up intervals reach: deciles of their upper end over the value, None where that many draws have none."""
    records = [each["record"] for part in _drawn(case, share, draws, seed)[1] for each in part]
    ends = [math.inf if each.value is None else each.high / each.value for each in records]
    deciles = np.quantile(ends, np.arange(1, 10) / 10, method="higher")
    row = {
        "classes": case.classes, "dim": case.dim, "n": case.n, "spectrum": case.spectrum, "odds": case.odds, "kind": case.kind,
        "share": share, "draws": draws, "upper": [round(float(end), 3) if math.isfinite(end) else None for end in deciles],
    }  # fmt: skip
    return [row]


def summary(case: Case, share: float, truth: float, parts: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """The rates of one case; draws of one population stand together, since D of that size is a number of each."""
    found = [each for part in parts for each in part]
    given = [each["record"] for each in found if each["record"].value is not None]
    plain = np.array([each["plain"] for each in found])
    chance = np.array([each["chance"] for each in found])
    errors = np.array([jackknife_error(each["folds"]) for each in found])
    reach = student_quantile(0.975, FOLDS - 1) * errors
    middle = np.concatenate([np.full(len(part), np.log([each["plain"] for each in part]).mean()) for part in parts])
    with np.errstate(divide="ignore"):
        simple = np.where(plain < chance, 1 / (1 / plain - 1 / chance), np.inf)
    row: dict[str, Any] = {
        "classes": case.classes, "dim": case.dim, "n": case.n, "spectrum": case.spectrum, "odds": case.odds,
        "kind": case.kind, "share": share, "draws": len(found), "truth": round(truth, 4),
        "no_value": rate([each["record"].value is None for each in found]),
        "plain": round(float(np.median(plain)) / truth, 4),
        "simple": round(float(np.median(simple)) / truth, 4) if np.isfinite(np.median(simple)) else None,
        "plain_covers_this_size": rate(abs(np.log(plain) - middle) <= reach),
        "plain_covers_truth": rate(abs(np.log(plain / truth)) <= reach),
    }  # fmt: skip
    if given:
        values = np.array([each.value for each in given]) / truth
        row["corrected"] = round(float(np.median(values)), 4)
        row["quartiles"] = [round(float(each), 4) for each in np.quantile(values, (0.25, 0.75))]
        row["covers"] = rate([each.low <= truth <= each.high for each in given])
        # of all draws, those without a value taken for the largest
        middle_value = float(np.median([*values, *[math.inf] * (len(found) - len(given))]))
        row["median_of_all"] = round(middle_value, 4) if math.isfinite(middle_value) else None
    return row


def jackknife_error(folds: Sequence[float]) -> float:
    """The standard error of ln D."""
    logs = np.log(np.asarray(folds))
    return math.sqrt(float(((logs - logs.mean()) ** 2).sum()) * (FOLDS - 1) / FOLDS)


def one_law(case: Case, share: float, draws: int, seed: int) -> Rows:
    """Laws of eight sites, D of the first at a share of its chance level."""
    make = torch.Generator().manual_seed(seed)
    tries = []
    who = population(case, share, make)
    for _ in range(draws):
        noise, y = samples(case, who, make)
        each = [noise] * SITES
        if case.kind == "apart":
            each = [(noise + samples(case, who, make)[0]) / math.sqrt(2) for _ in range(SITES)]
        found = [measured(who.means[y] + RHO ** (site / 2) * each[site], y, case.classes) for site in range(SITES)]
        plain = fit_law([each["plain"] for each in found])
        plain = law_intervals(np.array([each["folds"] for each in found]).T, plain, kind="jackknife")
        tries.append((plain, corrected_law([each["record"] for each in found])))
    known = [law for _, law in tries if law is not None and "rho" in law.intervals]
    half = math.log(2) / math.log(1 / RHO)
    halves = [law.intervals["half_life"] for law in known if "half_life" in law.intervals]  # none where ρ may be 1
    ratios = np.array([plain.rho for plain, _ in tries])
    middle = float(np.exp(np.log(ratios).mean()))
    row = {
        "classes": case.classes, "dim": case.dim, "n": case.n, "spectrum": case.spectrum, "odds": case.odds, "kind": case.kind,
        "share": share, "draws": draws,
        "no_law": rate([law is None or "rho" not in law.intervals for _, law in tries]),
        "all_sites": rate([law is not None and len(law.curve) == SITES for _, law in tries]),
        "rho": round(float(np.median([law.rho for law in known])), 5) if known else None,
        "rho_covers": rate([_inside(law.intervals["rho"], RHO) for law in known]) if known else None,
        "half_life_covers": rate([_inside(each, half) for each in halves]) if halves else None,
        "plain_rho": round(float(np.median(ratios)), 5),
        "plain_rho_covers_truth": rate([_inside(plain.intervals["rho"], RHO) for plain, _ in tries]),
        "plain_rho_covers_this_size": rate([_inside(plain.intervals["rho"], middle) for plain, _ in tries]),
    }  # fmt: skip
    return [row]


def one_bootstrap(case: Case, share: float, draws: int, seed: int) -> Rows:
    """Intervals of plain D by bootstrap of 200 resamples: do they cover the mean of ln D over samples of this size, and D?"""
    make = torch.Generator().manual_seed(seed)
    hits: list[tuple[bool, bool]] = []
    for begin in range(0, draws, EACH):
        who = population(case, share, make)
        logs, errors = [], []
        for draw in range(min(EACH, draws - begin)):
            noise, y = samples(case, who, make)
            x, rank = who.means[y] + noise, min(case.classes - 1, case.dim)
            weights = bootstrap_weights(y, resamples=RESAMPLES, seed=draw)
            weights = torch.cat([torch.ones_like(weights[:1]), weights])  # the samples as they are, then resamples
            values = reweighted_fuzziness(
                x, y, weights=weights, classes=case.classes, rank=rank, convention=PAPER
            ).log()
            logs.append(float(values[0]))
            errors.append(float(values[1:].std()))
        reach = normal_quantile(0.975) * np.array(errors)
        off = [abs(np.array(logs) - truth) for truth in (np.mean(logs), math.log(who.truth))]
        hits += zip(off[0] <= reach, off[1] <= reach, strict=True)
    own, true = np.array(hits).T
    row = {
        "classes": case.classes, "dim": case.dim, "n": case.n, "spectrum": case.spectrum, "odds": case.odds, "kind": case.kind,
        "share": share, "draws": len(hits), "covers_this_size": rate(own), "covers_truth": rate(true),
    }  # fmt: skip
    return [row]


def _inside(interval: Any, value: float) -> bool:
    return bool(interval.low <= value <= interval.high)


RESAMPLED = (Case(2, 100, 200), Case(5, 50, 500), Case(5, 50, 500, "decaying"), Case(10, 20, 1000))
LAWS = (Case(10, 100, 1000), Case(10, 100, 1000, "decaying"), Case(10, 10, 2000), Case(2, 100, 400))
MORE_LAWS = (Case(10, 100, 1000, odds=5.0), Case(10, 100, 1000, kind="apart"), Case(10, 1000, 500), Case(50, 250, 500))


def jobs(draws: int) -> list[Job]:
    """Every entry of the tables."""
    asked = [
        (table, case, share)
        for table, cases in (("values", ASKED), ("beyond", BEYOND))
        for case in cases
        for share in SHARES
    ]
    asked += [("laws", case, share) for case in LAWS for share in (0.1, 0.3, 1.0)]
    asked += [("bootstrap", case, share) for case in RESAMPLED for share in (0.1, 0.3, 1.0)]
    asked += [("widths", case, 1.0) for case in ASKED]  # after all others, whose seeds are counted from the first
    asked += [("limits", case, share) for case, shares in LIMITS for share in shares]
    asked += [("more laws", case, 0.3) for case in MORE_LAWS]
    makes = {"more laws": one_law, "laws": one_law, "bootstrap": one_bootstrap, "widths": one_width}
    works = {"more laws": SITES, "laws": SITES, "bootstrap": 10}  # draws that one of them costs
    listed = []
    for seed, (table, case, share) in enumerate(asked, start=1):
        large = case.n * case.dim > 10**6 or table == "more laws"
        count = max(1, draws * FEWER // DRAWS if large else draws * (MORE if case.kind == "unlike" else 1))
        # microseconds of a draw: of its numbers, and of its small matrices
        cost = count * (0.1 * case.n * case.dim + 10_000 + 40 * case.classes**2) * works.get(table, 1)
        listed.append(Job(table, makes.get(table, one_case), (case, share, count, seed), cost=cost))
    return listed


if __name__ == "__main__":
    finish_jobs("population", jobs, draws=DRAWS)

"""How often are two slopes called where there is one, or two? How often is a curve that is no law called a law?

Curves of ln D over L sites are drawn and judged by `equisep.law.two_slopes` and `fit_law` as they are used in `measure`.

*False alarms.* One slope, with wiggle (independent normal noise of every site), with noise of sampling (ten folds, whose noise
is shared between sites as named), or with both. `white`: independent sites; `ar 0.5`, `ar 0.9`, `ar 0.98`: correlation
φ^|i−j|; `smooth`: exp(−(i−j)²/8); `early` and `late`: independent, e² times the deviation at one end. The size of the noise
does not matter where there is one kind; where both are present, wiggle has the named multiple of the deviation of sampling.
The rule of earlier versions, a BIC gain above 6, stands beside.

*Power.* The slope halves from −0.6 to −0.3 at the middle, with noise of the named deviation.

*Laws.* How often `verdict` is `law` (r ≤ −0.996): of lines with noise; of a kink (slope ratio 2, at the middle or at a random
site); of curves that saturate, D = f + (1 − f) 0.5^l with the floor f at a share of the first D; and of random falling curves,
whose loads are independent draws: normal (mean 1, σ 0.3), exponential, uniform (0, 1) or log-normal (σ 0.5), or normal ones of
which neighbors are alike, with correlation 0.3^|i−j| or 0.5^|i−j|. Two slopes called of the latter are false alarms too.

*Recorded curves.* Which noise do trained networks have? The correlation of neighboring residuals around the line, over all curves
of the committed record with r ≤ −0.97, beside that of independent wiggle and of independent loads.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from _table import Job, Rows, finish_jobs, rate
from equisep.figures.catalogue import all_figures
from equisep.law import fit_law, two_slopes
from equisep.runs.record import recorded_evidence

SITES = (5, 6, 8, 12, 20, 40)
FOLDS = 10
DRAWS = 1_000
RECORD = Path(__file__).parents[1] / "results"
SLOPE = -0.6
BIC_GAIN = 6.0
CORRELATIONS = (0.3, 0.5)  # of the loads of neighboring layers
Array = np.ndarray[Any, np.dtype[np.floating[Any]]]


def covariances(sites: int) -> Mapping[str, Array]:
    """How noise of sampling is shared between sites, of mean variance 1."""
    i = np.arange(sites, dtype=np.float64)
    apart = np.abs(i[:, None] - i)
    given = {f"ar {phi}": phi**apart for phi in (0.5, 0.9, 0.98)}
    given |= {"white": np.eye(sites), "smooth": np.exp(-(apart**2) / 8) + 1e-6 * np.eye(sites)}
    given |= {"early": np.diag(np.exp(-4 * i / (sites - 1))), "late": np.diag(np.exp(4 * i / (sites - 1)))}
    return {name: matrix * sites / np.trace(matrix) for name, matrix in given.items()}


def sampled(root: Array, size: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Noise of an estimate from ten folds, and that of the estimate without each of them; `root` is of the covariance."""
    each = size * np.sqrt(FOLDS) * rng.standard_normal((FOLDS, len(root))) @ root.T
    whole = each.mean(axis=0)
    return whole, (FOLDS * whole - each) / (FOLDS - 1)


def called(line: Array, draws: int, rng: np.random.Generator, *, kind: str | None, size: float, wiggle: float) -> Any:
    """Whether two slopes are called, by today's rule and by a BIC gain above 6, of `draws` curves around `line`."""
    hits = np.zeros((draws, 2), dtype=bool)
    root = None if kind is None else np.linalg.cholesky(covariances(len(line))[kind])
    for draw in range(draws):
        logs, folds = line + wiggle * rng.standard_normal(len(line)), None
        if root is not None:
            noise, left = sampled(root, size, rng)
            folds, logs = logs + left, logs + noise
        found = two_slopes(logs, folds)
        assert found is not None
        hits[draw] = bool(found.clear), found.gain > BIC_GAIN
    return hits


def false_alarms(sites: int, draws: int) -> Rows:
    """Two slopes called of curves that have one."""
    rows: list[dict[str, Any]] = []
    line = SLOPE * np.arange(sites)
    cases: list[tuple[str | None, float]] = [(None, 1.0)]
    cases += [(kind, share) for kind in covariances(sites) for share in (0.0, 0.3, 1.0)]
    for kind, share in cases:
        rng = np.random.default_rng([sites, len(rows)])
        hits = called(line, draws, rng, kind=kind, size=0.1, wiggle=0.1 * share)
        now, bic = hits.T
        rows.append(
            {"sites": sites, "sampling": kind, "wiggle": share, "two_slopes": rate(now), "bic_above_6": rate(bic)}
        )
    return rows


def power(sites: int, draws: int) -> Rows:
    """Two slopes called of curves whose slope halves at the middle."""
    rows: list[dict[str, Any]] = []
    depth = np.arange(sites)
    line = SLOPE * depth + 0.3 * np.maximum(0, depth - sites // 2)
    for size in (0.05, 0.1, 0.2):
        for kind in (None, "white", "ar 0.9"):
            rng = np.random.default_rng([sites, len(rows)])
            wiggle = size if kind is None else 0.0
            hits = called(line, draws, rng, kind=kind, size=size, wiggle=wiggle)
            rows.append({"sites": sites, "sampling": kind, "deviation": size, "two_slopes": rate(hits[:, 0])})
    return rows


def curves(sites: int, draws: int, rng: np.random.Generator) -> Mapping[str, Array]:
    """Ln D of curves whose making is known, one a row."""
    depth = np.arange(sites, dtype=np.float64)
    noise = rng.standard_normal((draws, sites))
    breaks = rng.integers(1, sites - 1, size=(draws, 1))
    middle = SLOPE * depth + 0.3 * np.maximum(0, depth - sites // 2)
    given = {
        "line, noise 0.05": SLOPE * depth + 0.05 * noise,
        "line, noise 0.1": SLOPE * depth + 0.1 * noise,
        "line, noise 0.2": SLOPE * depth + 0.2 * noise,
        "kink 2:1 at the middle": middle[None],
        "kink 2:1 at a random site": SLOPE * depth + 0.3 * np.maximum(0, depth - breaks),
        "kink 2:1 at the middle, noise 0.05": middle + 0.05 * noise,
        "kink 1:2 at the middle": (2 * SLOPE * depth - middle)[None],
    }
    for floor in (0.001, 0.01, 0.1):
        given[f"saturating at {floor:g}"] = np.log(floor + (1 - floor) * 0.5**depth)[None]
    loads = {
        "normal": 1 + 0.3 * rng.standard_normal((draws, sites - 1)),
        "exponential": rng.exponential(size=(draws, sites - 1)),
        "uniform": rng.uniform(size=(draws, sites - 1)),
        "log-normal": rng.lognormal(sigma=0.5, size=(draws, sites - 1)),
    }
    for phi in CORRELATIONS:
        root = np.linalg.cholesky(phi ** np.abs(depth[1:, None] - depth[1:]))
        loads[f"normal, correlation {phi:g}"] = 1 + 0.3 * rng.standard_normal((draws, sites - 1)) @ root.T
    for name, each in loads.items():
        given[f"random falls, {name}"] = np.concatenate([np.zeros((draws, 1)), -np.cumsum(each, axis=1)], axis=1)
    return given


def laws(sites: int, draws: int) -> Rows:
    """The verdict `law`, and beside it how often two slopes are called of the same curves without folds."""
    rows: list[dict[str, Any]] = []
    for name, logs in curves(sites, draws, np.random.default_rng(sites)).items():
        fits = [fit_law(np.exp(row)) for row in logs]
        passed = [fit.verdict == "law" for fit in fits]
        bent = [bool(fit.two_slopes and fit.two_slopes.clear) for fit in fits]
        unbent = [law and not two for law, two in zip(passed, bent, strict=True)]
        rates = {"law": rate(passed), "two_slopes": rate(bent), "law_unbent": rate(unbent)}
        rows.append({"sites": sites, "curve": name, **rates})
    return rows


def recorded(draws: int) -> Rows:
    """The mean correlation of neighboring residuals by number of sites, of recorded curves and of both kinds of noise."""
    curves_by_sites: dict[int, list[Array]] = {}
    for figure in all_figures():
        path = RECORD / f"{figure.id}.json"
        series = recorded_evidence(figure, path).series.values() if path.is_file() else ()
        for outcome in (entry.outcome for each in series for entry in each.chosen.values()):
            values = outcome.readings[-1].fuzziness if outcome.readings else ()
            if len(values) < 5 or not all(value is not None and value > 0 for value in values):
                continue
            fit = fit_law(values)
            if fit.r is not None and fit.r <= -0.97:
                curves_by_sites.setdefault(len(values), []).append(np.array(fit.residuals))
    rows: list[dict[str, Any]] = []
    for sites, each in sorted(curves_by_sites.items()):
        rng = np.random.default_rng(sites)
        wiggle = [fit_law(np.exp(0.01 * row)).residuals for row in rng.standard_normal((draws, sites))]
        walk = [fit_law(np.exp(0.01 * row)).residuals for row in rng.standard_normal((draws, sites)).cumsum(axis=1)]
        kinds = {"recorded": each, "wiggle": wiggle, "loads": walk}
        rows.append({"sites": sites, "curves": len(each), **{name: neighbors(kind) for name, kind in kinds.items()}})
    return rows


def neighbors(rows: Any) -> float:
    """The mean over curves of Σ r_l r_{l+1} / Σ r_l²."""
    r = np.array(rows)
    return round(float(((r[:, 1:] * r[:, :-1]).sum(axis=1) / (r**2).sum(axis=1)).mean()), 3)


def jobs(draws: int) -> list[Job]:
    """Everything, by number of sites."""
    listed = [
        Job(name, make, (sites, draws), cost=cost * sites)
        for name, make, every, cost in (
            ("false_alarms", false_alarms, SITES, 3.0),
            ("power", power, SITES, 1.0),
            ("laws", laws, (4, *SITES), 2.0),
        )
        for sites in every
    ]
    return [*listed, Job("recorded", recorded, (draws,), cost=50.0)]


if __name__ == "__main__":
    finish_jobs("law_shape", jobs, draws=DRAWS)

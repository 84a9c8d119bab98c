"""Do the paired intervals of `equisep compare` cover, where two networks read the same samples?

A sample is its class and independent normal numbers; networks a and b are two known linear maps of it at each of five sites:
features = class mean + s_l·noise, where the noise of a site follows that of the site before it (correlation 0.8) and the two
networks share the named part of its variance. So D of the population is known exactly, D_l = s_l² Tr(C SSb⁺): it falls by
0.5 per layer in a and by 0.6 in b, from a first D given as a share of (K−1)n/d, the chance level of noise that is alike in all
directions, with fixed deviations from the line. D of the samples and D without each fold are those of `measure` (`TrainSite`; of
few features by the plain formula, which the tests hold against it), and the intervals are read off `compare_profiles`, as they
are printed.

`covers`: how often the 95 % interval holds the difference of the population, of those that are printed. `printed`: how often
there is one; where the bias of plug-in D is too large for the folds to tell, there is none. `always`: the coverage if it were
printed all the same. `same_n`: how often that holds the mean difference of sets of this size instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from _table import Job, Rows, finish_jobs, rate
from equisep.compare import compare_profiles, paired
from equisep.law import fit_law, judged_by_folds
from equisep.results import Profile, SampleOrder, SiteReading
from equisep.separation import PAPER, Assignments, TrainSite
from equisep.separation.fuzziness import fuzziness_of
from equisep.separation.site import SiteTask

SITES, FOLDS, DRAWS = 5, 10, 1_000
RHOS = (0.5, 0.6)
DEVIATIONS = np.array([[0.1, -0.15, 0.05, 0.1, -0.1], [-0.1, 0.1, 0.1, -0.15, 0.05]])
ALONG = 0.8  # correlation of the noise from site to site
FEW = 30  # features up to which the plain formula is quicker
Labels = np.ndarray[Any, np.dtype[np.int64]]
Array = np.ndarray[Any, np.dtype[np.floating[Any]]]


@dataclass(frozen=True, slots=True)
class Setup:
    """Classes and samples, features, and how the first D and the networks are."""

    counts: tuple[int, ...]
    dim: int
    first: float  # D of the first site over its chance level
    shared: float = 0.8  # part of the noise's variance that both networks have
    decay: float = 0.0  # the noise's standard deviations fall by this power of the number of the feature
    apart: bool = False  # the networks read two samples, drawn apart

    @property
    def n(self) -> int:
        """Samples."""
        return sum(self.counts)


SETUPS = (
    Setup((30, 30), 10, 0.03),
    Setup((30, 30), 10, 0.3),
    Setup((20,) * 10, 10, 0.03),
    Setup((20,) * 10, 50, 0.1),
    Setup((100,) * 10, 10, 0.1),
    Setup((100,) * 10, 10, 0.1, shared=0.0),
    Setup((500,) * 3, 20, 0.05),
    Setup((200, 100, 50, 25, 25), 20, 0.1),
    Setup((100,) * 10, 100, 0.003),
    Setup((100,) * 10, 100, 0.03),
    Setup((100,) * 10, 100, 0.3),
    Setup((100,) * 10, 100, 0.01, decay=0.5),
    Setup((20,) * 10, 1000, 0.03),
)


APART = (
    Setup((30, 30), 10, 0.03, apart=True),
    Setup((20,) * 10, 50, 0.1, apart=True),
    Setup((100,) * 10, 10, 0.1, apart=True),
    Setup((200, 100, 50, 25, 25), 20, 0.1, apart=True),
)


@dataclass(frozen=True, slots=True)
class World:
    """What is fixed in a setup: class means, the noise's deviations, its size by network and site, and the true D."""

    setup: Setup
    means: Array  # k d
    spread: Array  # d
    sizes: Array  # networks sites
    truth: Array  # networks sites

    @staticmethod
    def of(setup: Setup) -> World:
        """Means along random directions whose lengths lie within a factor of three, a decade of SSb."""
        rng = np.random.default_rng(7)
        classes, counts = len(setup.counts), np.array(setup.counts)
        lengths = np.geomspace(1, 3, classes - 1)
        basis = np.linalg.qr(rng.standard_normal((setup.dim, classes - 1)))[0]
        means = rng.standard_normal((classes, classes - 1)) * lengths @ basis.T
        spread = np.arange(1, setup.dim + 1) ** -setup.decay
        middle = counts @ means / setup.n
        between = (means - middle).T * counts @ (means - middle) / setup.n
        unit = float(np.trace(np.diag(spread**2) @ np.linalg.pinv(between, rcond=1e-10)))
        chance = (classes - 1) * setup.n / setup.dim
        logs = np.log(setup.first * chance) + np.outer(np.log(RHOS), np.arange(SITES)) + DEVIATIONS
        return World(setup, means, spread, np.sqrt(np.exp(logs) / unit), np.exp(logs))

    def draw(self, rng: np.random.Generator) -> tuple[Profile, Profile]:
        """Both networks' profiles of one sample, or where they read two, each of its own."""
        if not self.setup.apart:
            return self._draw(rng)
        one, two = self._draw(rng)[0], self._draw(rng)[1]
        return one, replace(two, samples=None if two.samples is None else replace(two.samples, labels="other"))

    def _draw(self, rng: np.random.Generator) -> tuple[Profile, Profile]:
        setup = self.setup
        y = rng.permutation(np.repeat(np.arange(len(setup.counts)), setup.counts))
        both, *own = (self._noise(rng) for _ in range(3))
        curves = []
        for each, sizes in zip(own, self.sizes, strict=True):
            noise = np.sqrt(setup.shared) * both + np.sqrt(1 - setup.shared) * each
            features = self.means[y] + sizes[:, None, None] * noise * self.spread
            curves.append([self._site(x, y, index) for index, x in enumerate(features)])
        one, two = (self._profile(sites) for sites in curves)
        return one, two

    def _site(self, x: Array, y: Labels, index: int) -> SiteReading:
        values = (by_formula if self.setup.dim <= FEW else by_library)(x, y, len(self.setup.counts)).tolist()
        return SiteReading(index, str(index), self.setup.dim, fuzziness=values[0], fuzziness_folds=tuple(values[1:]))

    def _noise(self, rng: np.random.Generator) -> Array:
        """By site, sample and feature."""
        noise = rng.standard_normal((SITES, self.setup.n, self.setup.dim))
        for site in range(1, SITES):
            noise[site] = ALONG * noise[site - 1] + np.sqrt(1 - ALONG**2) * noise[site]
        return noise

    def _profile(self, sites: list[SiteReading]) -> Profile:
        law = fit_law([site.fuzziness for site in sites])
        law = judged_by_folds(law, np.array([site.fuzziness_folds for site in sites]).T)
        order = SampleOrder(n=self.setup.n, labels="same", inputs="same", folds=FOLDS, seed=0)
        counts = self.setup.counts
        return Profile("m", classes=len(counts), counts=counts, sites=tuple(sites), law=law, samples=order)

    def true_differences(self) -> dict[str, float]:
        """Of ρ and half-life, and ln of the ratio of D at each site."""
        one, two = (Profile("m", 0, (), (), fit_law(curve)) for curve in self.truth)
        return differences(one, two)


def by_library(x: Array, y: Labels, classes: int) -> Array:
    """D and D without each fold, by the passes of `measure`."""
    labels = torch.from_numpy(y)
    rows = Assignments.of(labels, first=0, classes=classes, folds=FOLDS, relabelings=0, seed=0)
    site, features = TrainSite(SiteTask(classes=classes, folds=FOLDS, centers=False)), [torch.from_numpy(x)]
    site.first(features, rows)
    site.turn()
    site.second(features, rows)
    found = site.statistics()
    return np.array([fuzziness_of(found.spread, PAPER), *(found.replicates or ())])


def by_formula(x: Array, y: Labels, classes: int) -> Array:
    """The same by the plain formula, Tr(SSw SSb⁺) from sums and products of every fold: quicker where features are few."""
    fold = Assignments.of(torch.from_numpy(y), first=0, classes=classes, folds=FOLDS, relabelings=0, seed=0).folds
    assert fold is not None
    group = fold.numpy() * classes + y
    members = (group == np.arange(FOLDS * classes)[:, None]).astype(np.float64)  # g·k n
    sums, counts = (members @ x).reshape(FOLDS, classes, -1), members.sum(axis=1).reshape(FOLDS, classes)
    parts = [[x[(fold.numpy() == g) & (y == k)] for k in range(classes)] for g in range(FOLDS)]
    products = np.stack([np.stack([part.T @ part for part in row]) for row in parts])  # g k d d

    def kept(each: Array) -> Array:
        """Of all samples, and of those outside each fold."""
        whole = each.sum(axis=0)
        return np.concatenate([whole[None], whole - each])

    sums, counts, products = kept(sums), kept(counts), kept(products)
    shares = counts[0] / counts[0].sum()  # classes keep their shares of the whole where a fold is left out
    means = sums / counts[..., None]
    centered = products - np.einsum("lkd,lke->lkde", means * counts[..., None], means)
    within = np.einsum("lk,lkde->lde", shares / counts, centered)
    rows = np.sqrt(shares)[:, None] * (means - np.einsum("k,lkd->ld", shares, means)[:, None])
    values, vectors = np.linalg.eigh(rows @ rows.transpose(0, 2, 1))
    values, vectors = values[:, 1:], vectors[:, :, 1:]  # the least is 0: rows are centered
    along = rows.transpose(0, 2, 1) @ vectors / values[:, None, :]  # v_j/s_j
    found: Array = np.einsum("ldr,lde,ler->l", along, within, along, optimize=True)
    return found


def differences(a: Profile, b: Profile) -> dict[str, float]:
    """What is compared, of any two profiles."""
    values = {name: getattr(b.law, name) - getattr(a.law, name) for name in ("rho", "half_life")}
    return values | {f"D {site}": float(np.log(b.law.curve[site] / a.law.curve[site])) for site in range(SITES)}


def coverage(setup: Setup, draws: int) -> Rows:
    """One row per number compared."""
    world, rng = World.of(setup), np.random.default_rng(11)
    truth = world.true_differences()
    names = tuple(truth)
    limits, printed = np.zeros((draws, len(names), 2)), np.zeros((draws, len(names)), dtype=bool)
    centers, slopes = np.zeros((draws, len(names))), []
    most = paired.MOST_BIAS
    for draw in range(draws):
        a, b = world.draw(rng)
        given = differences(a, b)
        centers[draw] = [given[name] for name in names]
        slopes += [bool(profile.law.two_slopes and profile.law.two_slopes.clear) for profile in (a, b)]
        shown = _intervals(a, b)
        printed[draw] = [span is not None for span in shown]
        paired.MOST_BIAS = float("inf")  # as if all were printed
        limits[draw] = [(span.low, span.high) if span else (np.nan, np.nan) for span in _intervals(a, b)]
        paired.MOST_BIAS = most
    rows: list[dict[str, Any]] = []
    for index, name in enumerate(names):
        low, high = limits[:, index].T
        truly, at_n = ((low <= value) & (value <= high) for value in (truth[name], float(np.mean(centers[:, index]))))
        shown_here = printed[:, index]
        rows.append(
            {
                "counts": counts_words(setup.counts), "dim": setup.dim, "first": setup.first, "shared": setup.shared,
                "decay": setup.decay, "number": name, "printed": rate(shown_here),
                "covers": rate(truly[shown_here]) if shown_here.any() else None,
                "always": rate(truly), "same_n": rate(at_n),
                "bias": round(float((centers[:, index].mean() - truth[name]) / centers[:, index].std()), 3),
            }
        )  # fmt: skip
    rows.append({**{key: rows[0][key] for key in ("counts", "dim", "first", "shared", "decay")}, "number": "two slopes called",
                 "printed": rate(slopes)})  # fmt: skip
    return rows


def _intervals(a: Profile, b: Profile) -> list[Any]:
    """Of ρ and ln of the ratios as they are printed, and of the half-life as it would be."""
    made, pairing = compare_profiles(a, b), paired.pairing_of(a, b)
    life = paired.paired_laws((a.law, a.sites), (b.law, b.sites), pairing)["half_life"].interval
    spans = [made.law.rho.interval, life]
    for site in made.sites:
        span = site.fuzziness.interval
        spans.append(None if span is None else replace(span, low=np.log(span.low), high=np.log(span.high)))
    return spans


def counts_words(counts: tuple[int, ...]) -> str:
    """`10 × 100`, or the sizes one by one."""
    return f"{len(counts)} × {counts[0]}" if len(set(counts)) == 1 else ", ".join(map(str, counts))


def jobs(draws: int) -> list[Job]:
    """All setups."""
    setups = {"coverage": SETUPS, "apart": APART}
    return [
        Job(name, coverage, (setup, draws), cost=setup.n * min(setup.dim, FEW))
        for name, each in setups.items()
        for setup in each
    ]


if __name__ == "__main__":
    finish_jobs("paired", jobs, draws=DRAWS)

"""How many layers to keep fixed: what every choice gave, which is recommended, and where the loads balance. No torch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from equisep.advice.depth.records import Summary, summary_of
from equisep.advice.depth.words import points
from equisep.advice.standings import Enough, Standing
from equisep.display import brief
from equisep.results import Note

Start = Literal["pretrained", "new"]
STARTS = {"pretrained": "trained on from their weights", "new": "trained from new weights"}


@brief
@dataclass(frozen=True, slots=True)
class TransferTrial:
    """The first `kept` layers fixed, up to `site`, and all behind them trained on the new data: one number per seed.

    bottom   the mean load of the kept layers on the new training data, ln D_{l−1} − ln D_l; None where no layer is kept
    top      that of the layers behind them; None where none is left
    diverged how many trainings diverged; such a choice does not count
    """

    kept: int
    site: str | None
    parameters: int
    accuracy: tuple[float, ...]
    accuracy_test: tuple[float, ...]
    bottom: tuple[float | None, ...]
    top: tuple[float | None, ...]
    diverged: int = 0

    @property
    def gaps(self) -> tuple[float | None, ...]:
        """Bottom less top, by seed."""
        pairs = zip(self.bottom, self.top, strict=True)
        return tuple(None if one is None or two is None else one - two for one, two in pairs)

    def summary(self, name: Literal["accuracy", "accuracy_test", "bottom", "top", "gaps"], level: float) -> Summary:
        """The mean over seeds and its interval, of all seeds or of none."""
        values: Sequence[float | None] = getattr(self, name)
        return summary_of(values, level) if None not in values else Summary(None, None, 0)


def balanced_between(trials: Sequence[TransferTrial]) -> tuple[int, int] | None:
    """The first two neighboring choices, by their numbers of kept layers, between which bottom and top loads change order."""
    known = [(trial.kept, gap) for trial in trials if (gap := trial.summary("gaps", 0.95).mean) is not None]
    for (one, before), (two, after) in pairwise(known):
        if before == 0 or before * after < 0:
            return (one, one) if before == 0 else (one, two)
    return (known[-1][0], known[-1][0]) if known and known[-1][1] == 0 else None


@brief
@dataclass(frozen=True, slots=True)
class TransferAnswer:
    """What became of a model on new data for each number of layers kept fixed.

    recommended   the trial that keeps the most layers and is shown to lie within `margin` of every other; None: not told
    balanced      the numbers of kept layers between which the mean loads of bottom and top are equal; None: they never are
    """

    model: str
    layers: int
    start: Start
    seeds: int
    samples: int
    test_samples: int
    epochs: int
    rate: float
    level: float
    trials: tuple[TransferTrial, ...]
    margin: float = 0.0
    recommended: int | None = None
    best: int | None = None
    standings: tuple[Standing, ...] = ()
    enough: Enough = field(default_factory=Enough)
    balanced: tuple[int, int] | None = None
    notes: tuple[Note, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """The answer in words, the recommendation first."""
        return (self._answer(), *self._loads(), *self._left_out(), self._scope())

    def __str__(self) -> str:
        return self.sentences[0]

    def _answer(self) -> str:
        if self.best is None:
            return (
                "The evidence does not tell: trainings diverged for every number of kept layers. Pass a lower `rate`."
            )
        if self.recommended is None:
            return self._undecided(self.best)
        own = next(each for each in self.standings if each.trial == self.recommended)
        trial, best = self.trials[self.recommended], self.trials[self.best]
        words = f"Keep {self._kept(trial)}: test accuracy {_percent(_mean(trial.accuracy_test))} %, "
        if self.recommended == self.best:
            words += "the highest of all tried"
        else:
            words += (
                f"{points(own.shortfall)} below the best, {_layers(best.kept)} kept "
                f"({_percent(_mean(best.accuracy_test))} %)"
            )
        return (
            f"{words}, and at most {points(own.at_most)} below the best of all at {100 * self.level:g} % "
            f"(asked: {points(self.margin)})."
        )

    def _undecided(self, best: int) -> str:
        trial = self.trials[best]
        words = (
            f"The evidence does not tell: test accuracy is highest with {_layers(trial.kept)} kept "
            f"({_percent(_mean(trial.accuracy_test))} %), but no choice is shown to lie within {points(self.margin)} of the "
            f"best at {100 * self.level:g} %"
        )
        worse = [str(self.trials[each.trial].kept) for each in self.standings if each.below]
        words += f"; worse: {', '.join(worse)} kept" if worse else ""
        if len(self.standings) < 2:
            return f"{words}: there is nothing to compare it with."
        if self.enough.seeds is not None:
            return f"{words}. If means and spreads stay, about {self.enough.seeds} seeds would tell: `seeds={self.enough.seeds}`."
        if self.enough.samples is not None:
            return (
                f"{words}. More seeds alone would not tell; about {self.enough.samples} test samples instead of "
                f"{self.test_samples} would."
            )
        return f"{words}. Neither more seeds nor more test samples would tell soon; a larger `margin` asks for less."

    def _loads(self) -> Iterator[str]:
        """He & Su's suggestion, a balance of bottom and top, beside what was measured."""
        known = [trial for trial in self.trials if trial.summary("gaps", self.level).mean is not None]
        if len(known) < 2 or self.best is None:
            return
        if self.balanced is None:
            more = "more" if (known[0].summary("gaps", self.level).mean or 0.0) > 0 else "less"
            yield (
                f"Wherever the network is parted, a kept layer does {more} of the separation than a trained one (mean loads): "
                "bottom and top never balance, so that He & Su's suggestion to balance them names no choice here."
            )
            return
        one, two = self.balanced
        where = f"with {_layers(one)} kept" if one == two else f"between {one} and {_layers(two)} kept"
        near = [trial for trial in self.trials if trial.kept in (one, two)]
        shares = " and ".join(f"{_percent(_mean(trial.accuracy_test))} %" for trial in near)
        top = _percent(_mean(self.trials[self.best].accuracy_test))
        yield (
            f"Kept and trained layers share the separation evenly (mean loads) {where}, where He & Su suggest to part a "
            f"network; test accuracy is {shares} there, and {top} % at the best."
        )

    def _left_out(self) -> Iterator[str]:
        for trial in self.trials:
            if trial.diverged:
                yield f"With {_layers(trial.kept)} kept {trial.diverged} of {self.seeds} trainings diverged: left out."

    def _scope(self) -> str:
        return (
            f"This holds for {self.epochs} epochs with Adam at rate {self.rate:g} on {self.samples:,} samples, over "
            f"{self.seeds} seeds and {self.test_samples:,} test samples; the layers behind the kept ones were "
            f"{STARTS[self.start]}. Another training set, rate or number of epochs may shift more."
        )

    def _kept(self, trial: TransferTrial) -> str:
        if trial.kept == 0:
            return f"none of the {self.layers} layers fixed"
        which = f"all {self.layers}" if trial.kept == self.layers else f"the first {trial.kept} of {self.layers}"
        return f"{which} layers fixed, up to `{trial.site}`"


def _layers(count: int) -> str:
    return {0: "no layer", 1: "1 layer"}.get(count, f"{count} layers")


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _percent(share: float) -> str:
    return f"{100 * share:.3g}"

"""What `equisep layer` and `equisep rank` found, as frozen records, and the sentences that answer with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from equisep.advice.paired_hits import PairedHits
from equisep.display import brief
from equisep.results import Note

MOST_NAMED = 4  # layers that a sentence names one by one
SURE = 4.0  # deviations beyond which training samples are called fitted


@brief
@dataclass(frozen=True, slots=True)
class FewShot:
    """Nearest centers of `m` training samples per class: mean error over draws, its standard deviation, the certificate.

    All errors are means over classes. The certificate bounds the mean over all draws, not each draw.
    """

    m: int
    error: float
    spread: float
    certificate: float


@brief
@dataclass(frozen=True, slots=True)
class LayerReading:
    """The features of one layer under the labels asked for.

    `loo` is the leave-one-out accuracy of the ridge probe on the training data, by which a layer is chosen; `accuracy` that
    on held-out data, with its 95 % `interval`; `ncc` the held-out accuracy of the nearest training means. `against` compares
    the chosen layer with this one on the same held-out samples; `apart` says whether that tells a difference.
    """

    index: int
    site: str
    dim: int
    loo: float
    accuracy: float
    interval: tuple[float, float]
    ncc: float
    penalty: float
    few_shot: tuple[FewShot, ...]
    against: PairedHits | None = None
    apart: bool = False

    def shots(self, m: int) -> FewShot | None:
        """What was found for m samples per class."""
        return next((each for each in self.few_shot if each.m == m), None)


@brief
@dataclass(frozen=True, slots=True)
class LayerAdvice:
    """Which layer's features serve the labels best: `layers` in order, `best` the position of the one chosen.

    `held_out` says which samples the accuracies are of; `guess` is the share of them that the largest training class has.
    """

    model: str
    layers: tuple[LayerReading, ...]
    best: int
    classes: int
    n: int
    n_test: int
    held_out: str
    guess: float
    draws: int
    notes: tuple[Note, ...] = ()

    @property
    def chosen(self) -> LayerReading:
        """The layer that the training data chose."""
        return self.layers[self.best]

    @property
    def chance(self) -> float:
        """The error of guessing, as a mean over classes: 1 − 1/K."""
        return 1 - 1 / self.classes

    @property
    def alike(self) -> tuple[LayerReading, ...]:
        """Other layers that the held-out data do not tell apart from the chosen one."""
        return tuple(each for each in self.layers if each is not self.chosen and not each.apart)

    @property
    def better(self) -> tuple[LayerReading, ...]:
        """Layers that held-out data show to be better than the one that the training data chose, the best first."""
        found = [each for each in self.layers if each.apart and each.accuracy > self.chosen.accuracy]
        return tuple(sorted(found, key=lambda each: -each.accuracy))

    @property
    def fitted(self) -> bool:
        """Whether the probe names training samples, left out, far more often than held-out ones.

        Leaving a sample out of the probe does not leave it out of the model: where that was trained on it, its features tell
        its label, and those of other samples need not.
        """
        loo, held = self.chosen.loo, self.chosen.accuracy
        share = (loo * self.n + held * self.n_test) / (self.n + self.n_test)
        noise = math.sqrt(share * (1 - share) * (1 / self.n + 1 / self.n_test))
        return loo - held > SURE * noise

    @property
    def top(self) -> LayerReading:
        """The layer of the greatest held-out accuracy, the first of several."""
        return max(self.layers, key=lambda each: each.accuracy)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The answer with its evidence, what few samples do, and what the certificate promises."""
        return (self.sentence, *few_shot_words(self))

    @property
    def sentence(self) -> str:
        """Which layer, in one sentence."""
        one = self.chosen
        evidence = (
            f"ridge probe {share_words(one.accuracy, one.interval)} of {self.n_test} {self.held_out}, chosen by leave-one-out on "
            f"the {self.n} training samples ({percent(one.loo)} %)"
        )
        text = f"{layer_words(one, self, first=True)}: {evidence}"
        if self.fitted:
            return self._fitted_words()
        if one.interval[0] <= self.guess:
            return (
                f"No layer can be recommended: {layer_words(one, self)}, the best by leave-one-out on the {self.n} training "
                f"samples, scores {share_words(one.accuracy, one.interval)} of {self.n_test} {self.held_out} by a ridge probe, "
                f"which is not told from naming the largest class throughout ({percent(self.guess)} %)."
            )
        if self.better:
            top = self.better[0]
            return (
                f"{text}; but {layer_words(top, self)} scores {percent(top.accuracy)} % there, more than chance explains: the "
                "training data misled the choice, as data do that the model was trained on. Choose on data it has not seen."
            )
        if len(self.layers) == 1:
            return f"{text}; no other layer was read."
        if not self.alike:
            return f"{text}; every other layer scores less, more than chance explains."
        if len(self.alike) == len(self.layers) - 1:
            return f"{text}; no layer can be told apart from it on these data."
        return f"{text}; not told apart from {name_list(self.alike)}."

    def _fitted_words(self) -> str:
        one, top = self.chosen, self.top
        return (
            f"These training samples cannot say which layer is best: at {layer_words(one, self)} a ridge probe names "
            f"{percent(one.loo)} % of them, left out one by one, but {percent(one.accuracy)} % of {self.n_test} {self.held_out}, "
            f"as where a model was trained on the former. {layer_words(top, self, first=True)} scores highest on the latter, "
            f"{share_words(top.accuracy, top.interval)}. Choose on samples it was not trained on: the test data alone "
            "(`--split test`), say, of which every fifth is then held out."
        )


def few_shot_words(advice: LayerAdvice) -> tuple[str, ...]:
    """What few samples per class do at the chosen layer, and what is promised of it."""
    shots = advice.chosen.few_shot
    if not shots:
        return ("Few shots were left out: a class has no training sample to spare.",)
    sizes, errors = (", ".join(words) for words in zip(*((str(s.m), percent(s.error)) for s in shots), strict=True))
    first = (
        f"Nearest centers of m = {sizes} samples per class err at {layer_words(advice.chosen, advice)} on {errors} % of the "
        f"{advice.held_out}, classes counted alike, in the mean of {advice.draws} draws."
    )
    kept = [each for each in shots if each.certificate < advice.chance]
    if not kept:
        second = (
            f"The few-shot certificate promises nothing here: up to m = {shots[-1].m} it is not below chance, "
            f"{percent(advice.chance)} %."
        )
    else:
        promised = ", ".join(f"{percent(each.certificate)} % (m = {each.m})" for each in kept)
        second = (
            f"Certified for the mean over all draws: at most {promised}; chance errs on {percent(advice.chance)} %."
        )
    return first, second


def layer_words(layer: LayerReading, advice: LayerAdvice, *, first: bool = False) -> str:
    """`layer 7 of 9 (blocks.6)`; with a capital where it stands first."""
    return f"{'Layer' if first else 'layer'} {layer.index} of {advice.layers[-1].index} ({layer.site})"


def name_list(layers: Sequence[LayerReading]) -> str:
    """`layer 3`, `layers 3, 5 and 6`, `layers 3, 4, 5 and 7 others`."""
    numbers = [str(each.index) for each in layers]
    if len(numbers) == 1:
        return f"layer {numbers[0]}"
    if len(numbers) > MOST_NAMED:
        return f"layers {', '.join(numbers[:3])} and {len(numbers) - 3} others"
    return f"layers {', '.join(numbers[:-1])} and {numbers[-1]}"


def percent(share: float) -> str:
    """A share in percent with one digit, rounded to 0 or 100 only where it is that."""
    held = share if share in (0.0, 1.0) else min(max(share, 0.0005), 0.9994)
    return f"{100 * held:.1f}"


def share_words(share: float, interval: tuple[float, float]) -> str:
    """`91.2 % [89.3, 92.8]`."""
    return f"{percent(share)} % [{percent(interval[0])}, {percent(interval[1])}]"


@brief
@dataclass(frozen=True, slots=True)
class ModelPair:
    """Two models, each at its own chosen layer, on the same test samples."""

    first: str
    second: str
    hits: PairedHits
    apart: bool


@brief
@dataclass(frozen=True, slots=True)
class RankAdvice:
    """Several models on one data set, the one with the best held-out accuracy at its own chosen layer first.

    `pairs` compare every two of them on the same samples.
    """

    models: tuple[LayerAdvice, ...]
    pairs: tuple[ModelPair, ...]
    notes: tuple[Note, ...] = ()

    def pair(self, first: str, second: str) -> ModelPair:
        """The comparison of two models, in this order or the other."""
        return next(each for each in self.pairs if {each.first, each.second} == {first, second})

    @property
    def sentence(self) -> str:
        """Which model, in one sentence."""
        top, *others = self.models
        one, second = top.chosen, others[0]
        if one.interval[0] <= top.guess:
            return (
                f"No model can be recommended: `{top.model}`, layer {one.index} ({one.site}), scores highest, "
                f"{share_words(one.accuracy, one.interval)} of {top.n_test} {top.held_out}, which is not told from naming the "
                f"largest class throughout ({percent(top.guess)} %)."
            )
        hits = self.pair(top.model, second.model).hits  # the better one stands first
        low, high = hits.interval
        lead = "leads" if hits.wins > hits.losses else "is level with"
        text = (
            f"`{top.model}`, layer {one.index} ({one.site}): {share_words(one.accuracy, one.interval)} of {top.n_test} "
            f"{top.held_out}; it {lead} `{second.model}`, layer {second.chosen.index}, by {100 * hits.difference:.1f} points "
            f"[{100 * low:.1f}, {100 * high:.1f}]"
        )
        alike = [each.model for each in others if not self.pair(top.model, each.model).apart]
        if not alike:
            return f"{text}. It is told apart from every other model."
        names = " and ".join([", ".join(f"`{name}`" for name in alike[:-1])] * (len(alike) > 1) + [f"`{alike[-1]}`"])
        return f"{text}. It cannot be told apart from {names} on these data."

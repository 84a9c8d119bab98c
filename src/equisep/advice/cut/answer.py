"""The answer of a cut: what each shorter network keeps and saves, which of them is recommended, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from equisep.advice.paired_hits import PairedLoss
from equisep.display import brief
from equisep.results import Note

Head = Literal["centers", "linear"]
Verdict = Literal["cut", "not shown", "no redundancy"]

LEAST_REMOVED = 0.1  # share of the layers: a cut that removes less is no redundancy worth a shorter network
NAMED = 3  # layers that a refusal names
HEADS = {"centers": "nearest class means", "linear": "a ridge regression"}


@brief
@dataclass(frozen=True, slots=True)
class Whole:
    """The network itself: test accuracy, parameters, and milliseconds a batch."""

    accuracy: float
    parameters: int
    milliseconds: float


@brief
@dataclass(frozen=True, slots=True)
class CutOption:
    """The network ended after one layer, number `index` of those read.

    `loss` is against the whole network on the same test samples; `time_share` the median over rounds of its time over the
    whole network's in the same round. `parameters` include the head's, and are None where the model could not be exported.
    """

    site: str
    index: int | None
    accuracy: float
    ncc_train: float
    loss: PairedLoss
    parameters: int | None = None
    milliseconds: float | None = None
    time_share: float | None = None


@brief
@dataclass(frozen=True, slots=True)
class Judgment:
    """The verdict, the cut that is recommended, and `perhaps` an earlier one, whose loss is small enough on these samples."""

    verdict: Verdict
    site: str | None = None
    perhaps: str | None = None


def judged(options: Sequence[CutOption], *, layers: int, within: float, asked: bool) -> Judgment:
    """The earliest layer from which on every cut is shown to lose at most `within` (a share), where it removes a tenth.

    Cuts are tested from the last layer to the first and the first failure ends it, a fixed sequence of one-sided tests: so the
    chance that the recommended cut loses more is at most that of one test, however many layers there are (Maurer, Hothorn &
    Lehmacher 1995). A cut beyond, whose loss on these samples is small enough but which is not so tested, is for other samples
    to show. Where a layer was asked for, it alone is judged.
    """
    worth = [option.site for option in options if asked or _removed(option, layers) >= LEAST_REMOVED]
    run: list[str] = []
    for option in reversed(options):
        if option.loss.most > within:
            break
        run.append(option.site)
    shown = next((site for site in reversed(run) if site in worth), None)
    seen = next((o.site for o in options if o.site in worth and o.loss.loss <= within), None)
    perhaps = None if seen == shown else seen
    if shown is not None:
        return Judgment("cut", shown, perhaps)
    return Judgment("no redundancy" if perhaps is None else "not shown", None, perhaps)


def _removed(option: CutOption, layers: int) -> float:
    return 0.0 if option.index is None else (layers - option.index) / layers


@brief
@dataclass(frozen=True, slots=True)
class CutAnswer:
    """Every cut that was looked at, in the order of the layers, and what follows.

    within      points of test accuracy that a shorter network may lose     layers   read at the reported `grain`
    level       of the one-sided bounds                                     batch    samples that were timed together
    first       layer that was tried: wide ones get no linear head
    baseline    what the loss is against: the network, or, where it gives no class scores, the head at its last layer
    mode        what was timed: `graph`, as exported, or `eager`, where the model cannot be exported (`stopped` says why)
    """

    model: str
    head: Head
    reduction: str
    layers: int
    grain: str
    asked: str | None
    within: float
    level: float
    whole: Whole
    options: tuple[CutOption, ...]
    verdict: Verdict
    chosen: str | None
    perhaps: str | None
    effective_depth: int | None
    baseline: Literal["network", "last layer"]
    mode: Literal["graph", "eager"]
    batch: int
    rounds: int
    device: str
    threads: int
    first: int = 1
    stopped: str | None = None
    notes: tuple[Note, ...] = ()

    def option(self, site: str | None) -> CutOption | None:
        """The cut after a layer."""
        return next((option for option in self.options if option.site == site), None)

    @property
    def n(self) -> int:
        """Test samples."""
        return self.options[0].loss.n

    @property
    def sentence(self) -> str:
        """The answer in words."""
        if self.asked is not None:
            return self._about_the_one(self.options[0])
        chosen, perhaps = self.option(self.chosen), self.option(self.perhaps)
        words = (
            "" if chosen is None else f"Cut after {self._where(chosen)}: {self._kept(chosen)}; {self._saved(chosen)}."
        )
        if perhaps is None:
            return words or self._no_redundancy()
        if chosen is None:
            return f"Perhaps cut after {self._where(perhaps)}: {self._kept(perhaps)}.{self._to_show(perhaps)}"
        return f"{words} Perhaps earlier, after {self._where(perhaps)}, which {_change(perhaps.loss)}.{self._to_show(perhaps)}"

    def _to_show(self, option: CutOption) -> str:
        """What would show that a cut is small enough that these samples do not show to be."""
        call, most = f"`after='{option.site}'`", 100 * option.loss.most
        if most <= self.within:
            return (
                f" Its own bound, {most:.2f}, allows it, but a later cut failed and it was picked among many: test it alone on "
                f"other test samples ({call})."
            )
        needed = option.loss.samples_to_show(self.within / 100)
        many = "" if needed is None else f", of which about {needed:,} would show it if that loss is the true one"
        return (
            f" That is not shown to stay within {self._allowed} ({most:.2f} is possible): test it alone on other test "
            f"samples{many} ({call})."
        )

    def _about_the_one(self, option: CutOption) -> str:
        words = f"Cut after {self._where(option)}: {self._kept(option)}; {self._saved(option)}."
        if self.verdict == "cut":
            return f"{words} That is within {self._allowed}."
        if self.verdict == "not shown":
            needed = option.loss.samples_to_show(self.within / 100)
            more = (
                "" if needed is None else f"; about {needed:,} test samples would show it if that loss is the true one"
            )
            return f"{words} That it stays within {self._allowed} is not shown{more}."
        return f"{words} That is more than {self._allowed}."

    def _no_redundancy(self) -> str:
        shorter = [option for option in self.options if option.index != self.layers]
        if self.layers == 1:
            return "Nothing to cut: the network has one layer that can be read, and no cut leaves it shorter."
        few = "; ".join(f"after {self._where(o)} {self._percent(o.accuracy)}" for o in reversed(shorter[-NAMED:]))
        tried = "" if self.first == 1 else f" from layer {self.first} on"
        words = (
            f"No redundancy: no cut{tried} that removes a tenth of the {self.layers} layers or more stays within {self._allowed} "
            f"of the {self._baseline_words}'s {self._percent(self.whole.accuracy)} test accuracy"
        )
        words += f" ({few})." if few else "."
        last = self.options[-1]
        if last.index == self.layers and last.loss.loss > self.within / 100:
            other = "linear" if self.head == "centers" else "centers"
            words += (
                f" The head is what costs: with {HEADS[self.head]} the last layer itself scores {self._percent(last.accuracy)}. "
                f"Try `head='{other}'`."
            )
        return words

    @property
    def _allowed(self) -> str:
        return f"{self.within:g} point{'' if self.within == 1 else 's'}"

    @property
    def _baseline_words(self) -> str:
        return "network" if self.baseline == "network" else "last layer"

    def _where(self, option: CutOption) -> str:
        return (
            f"`{option.site}`" if option.index is None else f"`{option.site}` (layer {option.index} of {self.layers})"
        )

    def _percent(self, share: float) -> str:
        return f"{100 * share:.{2 if self.n >= 1000 else 1}f} %"

    def _kept(self, option: CutOption) -> str:
        loss = option.loss
        return (
            f"with {HEADS[self.head]} it scores {self._percent(option.accuracy)} on {loss.n:,} test samples, the "
            f"{self._baseline_words} {self._percent(self.whole.accuracy)}: it {_change(loss)}, and "
            f"{_at_most(loss)} with {100 * loss.level:g} % confidence"
        )

    def _saved(self, option: CutOption) -> str:
        words = []
        if option.parameters is not None:
            more = option.parameters > self.whole.parameters  # class means of a wide layer may be
            left = "parameters instead of" if more else "of"
            words.append(
                f"{option.parameters:,} {left} {self.whole.parameters:,}{'' if more else ' parameters are left'}"
            )
        if option.time_share is not None and option.milliseconds is not None:
            times = f"{option.milliseconds:.3g} of {self.whole.milliseconds:.3g} ms"
            words.append(f"a batch of {self.batch} takes {100 * option.time_share:.0f} % of the time ({times})")
        return " and ".join(words)


def _at_most(loss: PairedLoss) -> str:
    return f"loses at most {100 * loss.most:.2f}" if loss.most >= 0 else f"gains at least {-100 * loss.most:.2f}"


def _change(loss: PairedLoss) -> str:
    return f"{'loses' if loss.loss >= 0 else 'gains'} {100 * abs(loss.loss):.2f} points"

"""When a training has settled: the law, D of the last layer and nearest centers, which no longer get better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from equisep.display import brief
from equisep.errors import InputError
from equisep.results import Profile


@dataclass(frozen=True, slots=True)
class Watched:
    """The three numbers of one reading: ρ, D of the last layer, and accuracy by nearest class mean at the last layer."""

    number: int
    rho: float | None
    fuzziness: float | None
    ncc: float | None
    tested: bool = False  # whether nearest centers were asked of test data

    @staticmethod
    def of(number: int, profile: Profile) -> Watched:
        """Of the training data; nearest centers of the test data, where there are any."""
        last = profile.sites[-1]
        ncc = last.ncc_train if last.ncc_test is None else last.ncc_test
        return Watched(number, profile.law.rho, last.fuzziness, ncc, last.ncc_test is not None)


@brief
@dataclass(frozen=True, slots=True)
class Settled:
    """Whether a training has settled, since which reading, and why or why not, in words."""

    settled: bool
    since: int | None
    reason: str

    def __bool__(self) -> bool:
        return self.settled


@dataclass(frozen=True, slots=True)
class Stopping:
    """A training has settled where none of three numbers got better in the last `window` readings than ever before them.

    rho         better is lower by more than this
    fuzziness   of D at the last layer: better is lower by more than this share
    ncc         of nearest-center accuracy at the last layer (test data where there are any): better is higher by more
    least       readings without which nothing is said; by default window + 1

    All three together: D of the last layer alone falls for as long as one trains, and ρ alone can stand still by chance.

    Not a rule to be recommended for stopping. In our experiment (`equisep2026/stopping`, docs/tracking.md) that the defaults cost
    at most half a point of test accuracy against the whole schedule was not supported: on Fashion-MNIST with clean labels they
    cost one to four points, much as early stopping on validation loss with the same patience did. Where the rate falls later by
    schedule, they mostly stop before it does.

    >>> from equisep.tracking import Stopping
    >>> rule = Stopping(window=3)
    >>> rule.window, rule.rho, rule.fuzziness, rule.ncc
    (3, 0.005, 0.05, 0.002)
    """

    window: int = 5
    rho: float = 0.005
    fuzziness: float = 0.05
    ncc: float = 0.002
    least: int | None = None

    def __post_init__(self) -> None:
        for name in ("window", "least"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise InputError(f"`{name}` of `Stopping` is a number of readings, 1 or more; found {value!r}.")
        for name in ("rho", "fuzziness", "ncc"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1:
                raise InputError(f"`{name}` of `Stopping` is a tolerance, 0 ≤ tolerance < 1; found {value!r}.")

    def first_settled(self, readings: Sequence[Watched]) -> int | None:
        """The place of the reading at which a training that asks after every one would have stopped; None where it would not."""
        stops = (at for at in range(len(readings)) if self.settled(readings[: at + 1]))
        return next(stops, None)

    def settled(self, readings: Sequence[Watched], *, unit: str = "epoch") -> Settled:
        """What the readings so far say."""
        least = max(self.window + 1, self.least or 0)
        if len(readings) < least:
            return Settled(False, None, f"{len(readings)} of the {least} readings that it takes.")
        before, late = readings[: -self.window], readings[-self.window :]
        better = []
        centers = f"nearest-center accuracy{' on test data' if late[-1].tested else ''}"
        for name, words in (("rho", "ρ"), ("fuzziness", "D of the last layer"), ("ncc", centers)):
            sign = -1.0 if name == "ncc" else 1.0
            old, new = (
                [sign * value for each in part if (value := getattr(each, name)) is not None] for part in (before, late)
            )
            if not old or len(new) < len(late):
                return Settled(False, None, f"{words} does not exist in all of the last {self.window} readings.")
            if min(new) < self._bar(name, min(old)):
                unit_of, scale = (" %", 100.0) if name == "ncc" else ("", 1.0)
                better.append(f"{words} from {scale * abs(min(old)):.4g} to {scale * abs(min(new)):.4g}{unit_of}")
        if better:
            return Settled(False, None, f"Still better in the last {self.window} readings: {'; '.join(better)}.")
        now = late[-1]
        reason = (
            f"Since {unit} {before[-1].number} neither ρ ({now.rho:.4g}) got lower by more than {self.rho:g}, nor D of the "
            f"last layer ({now.fuzziness:.4g}) by more than {100 * self.fuzziness:g} %, nor {centers} "
            f"({100 * (now.ncc or 0):.4g} %) higher by more than {100 * self.ncc:g} points, in {self.window} readings."
        )
        return Settled(True, before[-1].number, reason)

    def _bar(self, name: str, best: float) -> float:
        """What a reading must come below to be better than the best before."""
        tolerance = float(getattr(self, name))
        return best * (1 - tolerance) if name == "fuzziness" else best - tolerance

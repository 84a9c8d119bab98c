"""When the law, neural collapse and minority collapse are there while a network trains: one rule each, with hysteresis.

Every reading says of each of them that it is `there`, `not there`, or `between`, by two thresholds. It has *emerged* at the
first reading that says `there` and whose next `confirm` readings (2) do not say `not there`: `between` neither makes it
emerge nor loses it. It is *lost* at the first reading after that which says `not there` and whose next `confirm` readings
do not say `there`. A reading that failed, or that cannot say, is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from equisep.display import brief
from equisep.errors import InputError
from equisep.results import LawFit, Verdict
from equisep.results.records import COLLAPSED, LAW_R, NO_LAW_R, NOT_COLLAPSED

Standing = Literal["there", "between", "not there"]

CONFIRM = 2  # readings after it that must not contradict
ONE_VECTOR, SEVERAL_VECTORS = 0.95, 0.9  # ours, of the mean cosine; Fang et al. 2021 have minority collapse at 1

RULES = {
    "law": f"Rule: there at r ≤ {LAW_R:g} and ρ < 1, gone at r > {NO_LAW_R:g} (He & Su 2023)",
    "collapse": f"Rule: there at NC1 of the last layer ≤ {COLLAPSED:g}, gone above {NOT_COLLAPSED:g}",
    "minority": (
        f"Rule: there at a mean cosine between the minority's classifier rows ≥ {ONE_VECTOR:g}, gone below "
        f"{SEVERAL_VECTORS:g}"
    ),
}


@brief
@dataclass(frozen=True, slots=True)
class Emergence:
    """When one thing emerged: `what` by which `rule`.

    first     the reading (epoch or step) at which it emerged, None where it did not
    since     from which reading on it has been there up to the last one; None where it is not there now
    lost      the readings at which it was lost again
    pending   a reading that says `there`, with too few readings after it to confirm it
    judged    how many readings could say
    """

    what: str
    rule: str
    first: int | None = None
    since: int | None = None
    lost: tuple[int, ...] = ()
    pending: int | None = None
    judged: int = 0

    def sentence(self, unit: str = "epoch") -> str:
        """When it emerged, in words."""
        if not self.judged:
            return "cannot be said from these readings"
        if self.first is None:
            words = f"not there in {self.judged} reading{'s' if self.judged > 1 else ''}"
            return (
                words if self.pending is None else f"{words} for sure; seen at {unit} {self.pending}, to be confirmed"
            )
        words = f"emerged at {unit} {self.first}"
        if not self.lost:
            return words
        words += f", lost at {unit} {', '.join(map(str, self.lost))}"
        return words if self.since is None else f"{words}, there again since {self.since}"


def emerged(
    numbers: Sequence[int], standings: Sequence[Standing | None], *, what: str, confirm: int = CONFIRM
) -> Emergence:
    """When something emerged, from what each reading says of it (None: it cannot say); `numbers` are epochs or steps."""
    if len(numbers) != len(standings):
        raise InputError(f"`emerged` needs one standing per reading; found {len(standings)} for {len(numbers)}.")
    if confirm < 0:
        raise InputError(f"`confirm` is a number of readings, 0 or more; found {confirm}.")
    known = [(number, standing) for number, standing in zip(numbers, standings, strict=True) if standing is not None]
    first: int | None = None
    since: int | None = None
    pending: int | None = None
    lost: list[int] = []
    for index, (number, standing) in enumerate(known):
        after = [each for _, each in known[index + 1 : index + 1 + confirm]]
        if since is None and standing == "there" and "not there" not in after:
            if len(after) == confirm:
                since = number
                first = number if first is None else first
            elif pending is None:
                pending = number
        elif since is not None and standing == "not there" and "there" not in after and len(after) == confirm:
            since = None
            lost.append(number)
    return Emergence(what, RULES[what], first, since, tuple(lost), pending, len(known))


def law_standing(law: LawFit | None) -> Standing | None:
    """By the verdict of the law: He & Su's two correlations; None where the curve has no r."""
    return None if law is None else verdict_standing(law.verdict)


def verdict_standing(verdict: Verdict) -> Standing | None:
    """What one word for a curve says of the law (`equisep.results.law_verdict`)."""
    words: dict[str, Standing | None] = {"law": "there", "between": "between", "no law": "not there"}
    return words.get(verdict)


def collapse_standing(nc1: float | None) -> Standing | None:
    """By NC1 = Tr(SSw SSb⁺)/K of the last layer (Papyan, Han & Donoho 2020)."""
    if nc1 is None:
        return None
    return "there" if nc1 <= COLLAPSED else "between" if nc1 <= NOT_COLLAPSED else "not there"


def minority_standing(cosine: float | None) -> Standing | None:
    """By the mean cosine between the classifier rows of the minority (Fang, He, Long & Su 2021)."""
    if cosine is None:
        return None
    return "there" if cosine >= ONE_VECTOR else "between" if cosine >= SEVERAL_VECTORS else "not there"


def emergences(
    numbers: Sequence[int],
    *,
    laws: Sequence[LawFit | None],
    nc1: Sequence[float | None],
    minority: Sequence[float | None],
    confirm: int = CONFIRM,
) -> dict[str, Emergence]:
    """`law`, `collapse` and `minority` of one training: its laws, NC1 of its last layer, and its minority cosines."""
    standings: dict[str, list[Standing | None]] = {
        "law": [law_standing(law) for law in laws],
        "collapse": [collapse_standing(value) for value in nc1],
        "minority": [minority_standing(value) for value in minority],
    }
    return {what: emerged(numbers, each, what=what, confirm=confirm) for what, each in standings.items()}

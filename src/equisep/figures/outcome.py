"""Outcome: what one cell gave, as plain numbers that can be stored, judged and drawn without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from equisep.errors import InputError
from equisep.files import encode
from equisep.results.codec import decode
from equisep.results.readings import former_reading

Curve = tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """All sites at one epoch, read one way; a number that does not exist is None, a metric not read is an empty curve.

    `sites` are the names of the sites, the input first. Test D and CDNV are of the test means, nearest centers of the
    training means. `chance` is D under random labels, read after the last epoch. `class_fuzziness` has a curve over
    sites for each class. Loss and accuracies are of the whole network.
    """

    epoch: int
    reading: str
    grain: str = "layers"
    reduction: str = "flatten"
    weighting: str = "sample"
    sites: tuple[str, ...] = ()
    fuzziness: Curve = ()
    chance: Curve = ()
    cdnv: Curve = ()
    ncc: Curve = ()
    fuzziness_test: Curve = ()
    cdnv_test: Curve = ()
    ncc_test: Curve = ()
    class_fuzziness: tuple[Curve, ...] = ()
    loss: float | None = None
    accuracy: float | None = None
    accuracy_test: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Everything kept of one cell.

    readings    one for each epoch, reading, grain, reduction and weighting, in that order.
    numbers     single numbers by name, as `final_loss`, `minority_cosine`.
    arrays      lists of numbers by name, as `class_accuracy_test`, or `ratios` and `classifier_cosines` of a solved curve.
    points      for each site (its name) the samples as (x, y, label) in its first two principal components.
    diverged    the first epoch whose loss is not finite, or None.
    notes       sentences that belong to the numbers.
    """

    readings: tuple[Curves, ...] = ()
    numbers: Mapping[str, float | None] = field(default_factory=dict)
    arrays: Mapping[str, Curve] = field(default_factory=dict)
    points: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)
    diverged: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def last_epoch(self) -> int | None:
        """The last epoch that was read; None without one, or where training diverged after it: that was not its end."""
        last = max((reading.epoch for reading in self.readings), default=None)
        return None if last is not None and self.diverged is not None and last < self.diverged else last

    def reading(
        self,
        *,
        epoch: int | None = None,
        reading: str | None = None,
        grain: str | None = None,
        reduction: str | None = None,
        weighting: str | None = None,
    ) -> Curves | None:
        """The curves at an epoch (the last), of a reading, grain, reduction and weighting (the first each); None if not there."""
        at = self.last_epoch if epoch is None else epoch
        if not self.readings or at is None:
            return None
        first = self.readings[0]
        wanted = (
            at,
            reading or first.reading,
            grain or first.grain,
            reduction or first.reduction,
            weighting or first.weighting,
        )
        for curves in self.readings:
            if (curves.epoch, curves.reading, curves.grain, curves.reduction, curves.weighting) == wanted:
                return curves
        return None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return dict(encode(self))

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Outcome:
        """The outcome that `to_dict` wrote; version 0.1 called a reading its `mode`, and `mixed` its mode `batch`."""
        if not isinstance(content, Mapping):
            raise InputError(f"`outcome` should be an object; found {type(content).__name__}.")
        read = content.get("readings")
        own = {**content, "readings": [_renamed(each) for each in read]} if isinstance(read, list) else dict(content)
        outcome = decode(Outcome, own, where="outcome")
        assert isinstance(outcome, Outcome)
        return outcome


def _renamed(curves: Any) -> Any:
    if not isinstance(curves, dict) or not isinstance(curves.get("mode"), str):
        return curves
    return {
        **{name: value for name, value in curves.items() if name != "mode"},
        "reading": former_reading(curves["mode"]),
    }

"""What a history holds: its header, what it is of, and its entries, one per reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from equisep._version import __version__
from equisep.display import brief
from equisep.results import Profile

Unit = Literal["epoch", "step"]


@brief
@dataclass(frozen=True, slots=True)
class Header:
    """What a history is of: the model, the samples that are read, and how. A history goes on only where these are the same.

    `module` is the class of the model, `weights` a fingerprint of the names and shapes of all parameters, of which there are
    `parameters` numbers; `subset` one of the samples and their labels. `class_sizes` are those of the training data where they
    are known, `minority` the classes of at most half the largest size.
    """

    model: str
    module: str
    parameters: int
    weights: str
    sites: tuple[str, ...]
    classes: int
    subset: str
    samples: int
    samples_test: int = 0
    class_sizes: tuple[int, ...] | None = None
    minority: tuple[int, ...] | None = None
    class_names: tuple[str, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    version: str = __version__

    def why_other(self, other: Header) -> str | None:
        """In a clause, why the readings of `other` do not belong here; None where they do."""
        if (self.module, self.weights) != (other.module, other.weights):
            return (
                f"it is of `{self.module}` with {self.parameters:,} parameters, and the model is `{other.module}` with "
                f"{other.parameters:,}" + (" of other names or shapes" if self.parameters == other.parameters else "")
            )
        if self.sites != other.sites:
            return f"it was read at {len(self.sites)} sites, and the model is read at {len(other.sites)} others"
        both = self.options.keys() & other.options.keys()  # a later version may have more
        changed = sorted(name for name in both if self.options[name] != other.options[name])
        if self.subset != other.subset and "reading" not in changed:  # which orders the samples
            return self._why_other_samples(other)
        if changed:
            name = "reading" if "reading" in changed else changed[0]
            return f"it was read with {name}={self.options[name]!r}, now {other.options[name]!r}"
        return None

    def _why_other_samples(self, other: Header) -> str:
        """Which samples differ: those of the training data, or of test data, which may be missing."""
        (own, _, own_test), (theirs, _, their_test) = self.subset.partition("+"), other.subset.partition("+")
        if own != theirs:
            return f"its {self.samples} samples are others than the {other.samples} drawn now"
        if own_test and their_test:
            return f"its {self.samples_test} test samples are others than the {other.samples_test} drawn now"
        if their_test:
            return f"it was read without test data, and now there are {other.samples_test} test samples"
        return f"it was read with {self.samples_test} test samples, and now there are no test data"


@brief
@dataclass(frozen=True, slots=True)
class Entry:
    """One reading: the light profile of an epoch (or step), or the sentence that says why there is none.

    `epoch` counts the epochs so far where steps are what is numbered; `seconds` is what the reading took.
    """

    number: int
    unit: Unit = "epoch"
    profile: Profile | None = None
    failure: str | None = None
    minority_cosine: float | None = None
    epoch: int | None = None
    seconds: float = 0.0

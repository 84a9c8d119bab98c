"""Separation: D, neural collapse and CDNV of features that come in batches, a `torchmetrics.Metric` where that is installed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from torch import Tensor

from equisep.errors import FeatureError, InputError
from equisep.labels import MOST_CLASSES, check_range
from equisep.separation import Assignments, Center, Convention, Normalization, Projections, Weighting, nearest_centers
from equisep.separation.arrays import SQUARED, checked_arrays
from equisep.separation.fuzziness import class_fuzziness_of, fuzziness_of
from equisep.separation.site import SecondPass
from equisep.separation.stream import (
    ClassScatter,
    lost_share,
    scattered_class_fuzziness,
    scattered_numbers,
)
from equisep.separation.subspace import AS_GIVEN

if TYPE_CHECKING:
    from equisep.tracking.metric import Metric
else:
    try:
        from torchmetrics import Metric
    except ImportError:
        from equisep.tracking.metric import Metric

ASKED = "`Separation`"
BUDGET = 2**31  # bytes of scatter matrices: 16,384 features pooled, or 1,000 classes of 512 apart
FIRST = tuple(field.name for field in fields(ClassScatter))
SECOND = tuple(field.name for field in fields(Projections))
SUMS = (*FIRST, *(f"second_{name}" for name in (*SECOND, "hits")))  # the states that samples make
LOST = 1e-9  # share of D that the rounding of one pass may reach before it says so
MOVED = 1e-6  # how far class means may move between two passes, in units of their spread


class Separation(Metric):
    """The separation of classes by features that come in batches: exact, mergeable, and without a memory of samples.

    One pass keeps K class means and the scatter within classes, d × d numbers in float64: `fuzziness` D, `nc1`, `cdnv`, and
    NC2 (`norm_spread`, `angle_spread`, `angle_gap`, `etf_distance`), equal to those of all samples at once however they were
    divided over batches and processes. A number that does not exist (one class, or means that coincide) is NaN.

    per_class  keeps a scatter matrix per class, K·d² numbers (up to 2 GiB): `class_fuzziness` D_k in one pass, and D with
               `weighting="class"`.
    passes     2: after all batches, `next_pass()` and all batches again give `class_fuzziness` and `ncc`, the share of samples
               nearest to the mean of their class. Whether a sample is nearest to a mean is not known before the mean is.
    The other options are those of `equisep.fuzziness` and of `torchmetrics.Metric`.

    >>> import torch, equisep
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> metric = equisep.Separation(classes=3)
    >>> for features, labels in zip(x.split(30), y.split(30)):
    ...     metric.update(features, labels)
    >>> abs(float(metric.compute()["fuzziness"]) - equisep.fuzziness(x, y)) < 1e-9  # as of all samples at once
    True
    """

    is_differentiable: ClassVar[bool] = False
    higher_is_better: ClassVar[bool] = False
    full_state_update: ClassVar[bool] = True  # the value of a batch is not a summand of the whole

    if TYPE_CHECKING:  # scripting would take them for its own
        counts: Tensor
        means: Tensor
        traces: Tensor
        second_counts: Tensor
        second_hits: Tensor
        second_convention: Tensor

    def __init__(
        self,
        classes: int,
        dim: int | None = None,
        *,
        passes: int = 1,
        per_class: bool = False,
        weighting: Weighting = "sample",
        center: Center | None = None,
        normalization: Normalization = "none",
        tol: float | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.classes = _whole(classes, "classes", least=2, most=MOST_CLASSES)
        self.passes = _whole(passes, "passes", least=1, most=2)
        self.dim = None if dim is None else _whole(dim, "dim", least=1, most=2**31)
        self.per_class = per_class
        self.convention = Convention(weighting=weighting, center=center, normalization=normalization, tol=tol)
        if weighting == "class" and not per_class and passes == 1:
            raise InputError(
                '`weighting="class"` weighs the spread of every class by 1/K, which one pooled pass does not keep apart. '
                "Pass `per_class=True` or `passes=2`."
            )
        if self.dim is not None:
            self._check_budget(self.dim)
        first = ClassScatter.empty(classes=self.classes, dim=self.dim or 0, per_class=per_class)
        for name in FIRST:
            self.add_state(name, default=getattr(first, name), dist_reduce_fx=None)
        for name in (*SECOND, "hits"):  # empty until `next_pass`
            kind = torch.int64 if name in ("counts", "hits") else torch.float64
            self.add_state(f"second_{name}", default=torch.zeros(0, dtype=kind), dist_reduce_fx=None)
        # a collection takes metrics of equal states for one: those of a second pass depend on the convention too
        convention = repr(self.convention).encode() if self.passes == 2 else b""
        self.add_state(
            "second_convention", default=torch.tensor(list(convention), dtype=torch.uint8), dist_reduce_fx=None
        )
        self._second: SecondPass | None = None

    def update(self, features: Any, labels: Any) -> None:
        """Add a batch: features n × d (or n × …, flattened) and n class labels 0 … K − 1, tensors or arrays."""
        if _no_rows(features) and _no_rows(labels):
            return  # the last share of a process
        given = checked_arrays(features, labels, asked=ASKED)
        check_range(given.labels, self.classes, owner=f"`{type(self).__name__}(classes={self.classes})`")
        x, y = given.features.to(self.counts.device), given.labels.to(self.counts.device)
        self._check(x)
        with torch.inference_mode(False), torch.no_grad():  # a state that validation makes serves training too
            self._restore_states(
                {name: each.clone() for name, each in self.metric_state.items() if each.is_inference()}
            )
            self._add(x, y)

    def _add(self, x: Tensor, y: Tensor) -> None:
        if self._in_second_pass():
            self._look(x, y)
            return
        if self.means.shape[1] == 0:
            self._check_budget(x.shape[1])
            self._set(
                ClassScatter.empty(
                    classes=self.classes, dim=x.shape[1], per_class=self.per_class, device=self.counts.device
                )
            )
        self._scatter().add(x, y)

    def compute(self) -> dict[str, Tensor]:
        """The numbers of all batches on all processes, by name."""
        scatter = self._scatter()
        if int(scatter.counts.sum()) == 0:
            raise InputError(f"{ASKED} has seen no samples. Call `update(features, labels)` before `compute()`.")
        numbers, space = scattered_numbers(scatter, self.convention)
        value = numbers["fuzziness"]
        if value is not None and not self._whole_second_pass() and lost_share(scatter, space, value) > LOST:
            warnings.warn(
                f"D = {value:.4g} may have fewer than nine digits after one pass: classes are much tighter along their "
                "means than elsewhere. `Separation(…, passes=2)` keeps more.",
                stacklevel=3,
            )
        result = {name: self._number(number) for name, number in numbers.items()}
        if self.per_class and value is not None:
            result["class_fuzziness"] = self._of_classes(scattered_class_fuzziness(scatter, space))
        elif self.per_class or self.passes == 2:
            result["class_fuzziness"] = self._of_classes(None)
        if self.passes == 2:
            result["ncc"] = self._number(None)
            if self._whole_second_pass():
                result.update(self._second_numbers())
        return result

    def next_pass(self) -> None:
        """All samples have been seen once, on all processes; they are going to be seen a second time."""
        if self.passes == 1:
            raise InputError(f"{ASKED} was made for one pass. Pass `passes=2`.")
        if self._in_second_pass():
            raise InputError(f"{ASKED} is in its second pass already. Call `reset()` to begin again.")
        with self.sync_context():
            scatter = self._scatter()
        if int(scatter.counts.sum()) == 0:
            raise InputError(f"{ASKED} has seen no samples. Call `update(features, labels)` before `next_pass()`.")
        self._set(scatter)  # from here on every process has the means of all of them
        rank = self._second_pass().subspace.directions.shape[1]
        self.second_counts = torch.zeros_like(self.counts)
        self.second_means, self.second_squares = self.traces.new_zeros(2, self.classes, rank)
        self.second_traces = torch.zeros_like(self.traces)
        self.second_hits = torch.zeros_like(self.counts)
        self._computed = None

    def merge_state(self, incoming_state: Mapping[str, Tensor] | Self) -> None:
        """Add what another metric of the same kind has seen."""
        if isinstance(incoming_state, Separation):
            incoming_state = incoming_state.metric_state
        if not isinstance(incoming_state, Mapping) or not set(SUMS) <= set(incoming_state):
            raise InputError(
                f"{ASKED} merges with another of its kind or its `metric_state`; found {type(incoming_state).__name__}."
            )
        other = {name: incoming_state[name].to(self.counts.device, copy=True) for name in SUMS}
        self._restore_states(_merged([self._sums(), other]))
        self._update_count = max(self._update_count, 1)
        self._computed = None

    def set_dtype(self, dst_type: str | torch.dtype) -> Self:
        """The states stay float64, whatever the features are: sums in half precision would be noise."""
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **options: Any) -> Self:
        """`to` moves the states and leaves them float64, also inside a module that becomes half precision."""

        def moved(state: Tensor) -> Tensor:
            there = fn(state)
            return there if there.dtype == state.dtype else state.to(there.device)

        self._second = None
        super()._apply(moved, *args, **options)  # type: ignore[no-untyped-call]
        return self

    def _sync_dist(self, dist_sync_fn: Callable[..., list[Tensor]], process_group: Any = None) -> None:
        """All processes' states merged into one; summing them would not do, since their origins differ."""
        gathered = {name: dist_sync_fn(state, group=process_group) for name, state in self._sums().items()}
        processes = len(gathered["counts"])
        self._restore_states(_merged([{name: gathered[name][i] for name in gathered} for i in range(processes)]))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Samples are loaded; the convention stays that of this metric."""
        if prefix + "counts" in state_dict:
            state_dict[prefix + "second_convention"] = self.second_convention
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _sums(self) -> dict[str, Tensor]:
        return {name: getattr(self, name) for name in SUMS}

    def _scatter(self) -> ClassScatter:
        return ClassScatter(*(getattr(self, name) for name in FIRST))

    def _set(self, scatter: ClassScatter) -> None:
        self._restore_states({name: getattr(scatter, name) for name in FIRST})

    def _restore_states(self, states: Mapping[str, Tensor]) -> None:
        for name, state in states.items():
            setattr(self, name, state)

    def _in_second_pass(self) -> bool:
        return self.second_counts.numel() > 0

    def _whole_second_pass(self) -> bool:
        return self._in_second_pass() and bool((self.second_counts == self.counts).all())

    def _second_pass(self) -> SecondPass:
        """Class means and their subspace, found again only where the state is another."""
        centers, known = self._scatter().centers, self._second
        if known is None or not (
            torch.equal(known.centers.counts, centers.counts) and torch.equal(known.centers.about, centers.about)
        ):
            known = self._second = SecondPass(centers, self.convention)
        return known

    def _look(self, x: Tensor, y: Tensor) -> None:
        """Add a batch of the second pass."""
        counts = self.second_counts + torch.bincount(y, minlength=self.classes)
        if bool((counts > self.counts).any()):
            k = int((counts > self.counts).nonzero()[0])
            raise InputError(
                f"The second pass brings {int(counts[k])} samples of class {k}, the first {int(self.counts[k])}. "
                "Pass the same samples twice, or call `reset()` before new ones."
            )
        second = self._second_pass()
        second.projections = self._projections()
        for seen in second.look([x], Assignments(y)):
            own = nearest_centers(seen.along, seen.rows.labels, subspace=second.subspace) == seen.rows.labels
            self.second_hits.index_add_(0, seen.rows.labels, own.to(torch.int64))
        self._restore_states({f"second_{name}": getattr(second.projections, name) for name in SECOND})

    def _projections(self) -> Projections:
        return Projections(*(getattr(self, f"second_{name}") for name in SECOND))

    def _second_numbers(self) -> dict[str, Tensor]:
        second = self._second_pass()
        second.projections = self._projections()
        spread = second.spread(steps=AS_GIVEN)
        if spread.drift() > MOVED:
            warnings.warn(
                f"The class means moved by {spread.drift():.2g} of their spread between the passes: the features were not "
                "the same. Read the model in `eval` mode and without random augmentation.",
                stacklevel=4,
            )
        value = fuzziness_of(spread, self.convention)
        return {
            "fuzziness": self._number(value),
            "class_fuzziness": self._of_classes(None if value is None else class_fuzziness_of(spread)),
            "ncc": self._number(int(self.second_hits.sum()) / int(self.counts.sum())),
        }

    def _number(self, value: float | None) -> Tensor:
        return self.traces.new_tensor(torch.nan if value is None else value)

    def _of_classes(self, values: Tensor | None) -> Tensor:
        absent = torch.full_like(self.traces, torch.nan)
        return absent if values is None else torch.where(self.counts > 0, values, absent)

    def _check(self, x: Tensor) -> None:
        known = self.means.shape[1] or self.dim or x.shape[1]
        if x.shape[1] != known:
            raise InputError(
                f"{ASKED} has seen features of {known} numbers; found {x.shape[1]}. Use one metric per layer."
            )
        size = float(x.abs().max()) if x.dtype == torch.float64 else 0.0
        if size and not SQUARED[1] < size < SQUARED[0]:
            raise FeatureError(
                f"{ASKED} squares its features in float64; the largest of a batch is {size:.2g}. Scale all of them alike."
            )

    def _check_budget(self, dim: int) -> None:
        matrices = self.classes if self.per_class else 1
        if matrices * dim**2 * 8 <= BUDGET:
            return
        found = f"{matrices:,} × {dim:,}² numbers are {matrices * dim**2 * 8 / 2**30:.3g} GiB"
        advice = (
            "Pass `passes=2` instead" if self.per_class else "Average or pool the features, or use `equisep.measure`"
        )
        raise InputError(f"{ASKED} keeps up to {BUDGET / 2**30:g} GiB of scatter; {found}. {advice}.")


def _merged(states: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The states of several processes or metrics as one; those without a sample know no dimension and say nothing."""
    given = list(states)
    seen = [state for state in given if int(state["counts"].sum())]
    if not seen:
        return dict(given[0])
    second = [state["second_counts"].numel() > 0 for state in seen]
    if any(second):
        return _second_merged(seen, second)
    first = [ClassScatter(*(state[name] for name in FIRST)) for state in seen]
    whole = first[0]
    for part in first[1:]:
        whole = whole.merge(part)
    return {**seen[0], **{name: getattr(whole, name) for name in FIRST}}


def _second_merged(seen: list[Mapping[str, Tensor]], second: list[bool]) -> dict[str, Tensor]:
    """Of a second pass the first one is everybody's: only what came after is added."""
    one = seen[0]
    alike = all(second) and all(torch.equal(one[name], state[name]) for state in seen for name in ("counts", "means"))
    if not alike:
        raise InputError(
            "Second passes merge where the first pass was one: call `next_pass()` on all processes together, or on a metric "
            "that was merged before and then copied."
        )
    parts = [Projections(*(state[f"second_{name}"] for name in SECOND)) for state in seen]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.merge(part)
    hits = torch.stack([state["second_hits"] for state in seen]).sum(dim=0)
    return {**one, **{f"second_{name}": getattr(whole, name) for name in SECOND}, "second_hits": hits}


def _whole(value: Any, name: str, *, least: int, most: int) -> int:
    if not isinstance(value, Integral) or value is True or not least <= int(value) <= most:
        raise InputError(f"`{name}` is a whole number from {least} to {most}; found {value!r}.")
    return int(value)


def _no_rows(batch: Any) -> bool:
    try:
        return len(batch) == 0
    except TypeError:
        return False

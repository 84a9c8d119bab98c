"""What every member of an ensemble learns from: its own subset, labels and terms of the loss by class, on one pool of samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from equisep.data import draw, randomize_labels
from equisep.data.sampling import order_among
from equisep.errors import FeatureError, InputError, LabelError
from equisep.labels import check_range
from equisep.shapes import Float, Int
from equisep.training.ensemble.member import Member, Shape


@dataclass(frozen=True, slots=True)
class Held:
    """For each member positions in the pool and labels of samples that are held out of its training."""

    rows: Int[Tensor, "m v"]
    labels: Int[Tensor, "m v"]


@dataclass(frozen=True, slots=True)
class Samples:
    """The pool (N × inputs), and each member's positions in it, its labels, its weights of classes and what is added to scores.

    `drawn` is for each member the order of its samples in the reading `drawn`, `held` positions and labels of samples that
    it does not learn from (validation data); None where nobody asks for them.
    """

    pool: Float[Tensor, "N i"]
    rows: Int[Tensor, "m n"]
    labels: Int[Tensor, "m n"]
    class_weights: Float[Tensor, "m k"] | None
    weighted_mean: bool
    drawn: Int[Tensor, "m n"] | None = None
    logit_adjustment: Float[Tensor, "m k"] | None = None
    held: Held | None = None

    @property
    def n(self) -> int:
        """How many samples each member sees in an epoch."""
        return self.rows.shape[1]

    def on(self, device: torch.device, dtype: torch.dtype) -> Samples:
        """The same samples on a device; labels and positions stay whole numbers."""
        weights, added = self.class_weights, self.logit_adjustment
        return replace(
            self,
            pool=self.pool.to(device, dtype),
            rows=self.rows.to(device),
            labels=self.labels.to(device),
            class_weights=None if weights is None else weights.to(device, dtype),
            drawn=None if self.drawn is None else self.drawn.to(device),
            logit_adjustment=None if added is None else added.to(device, dtype),
            held=None if self.held is None else Held(self.held.rows.to(device), self.held.labels.to(device)),
        )

    def of(self, members: Sequence[int]) -> Samples:
        """The samples of some members."""
        chosen, weights, added = list(members), self.class_weights, self.logit_adjustment
        return replace(
            self,
            rows=self.rows[chosen],
            labels=self.labels[chosen],
            class_weights=None if weights is None else weights[chosen],
            drawn=None if self.drawn is None else self.drawn[chosen],
            logit_adjustment=None if added is None else added[chosen],
            held=None if self.held is None else Held(self.held.rows[chosen], self.held.labels[chosen]),
        )


def draw_samples(
    members: Sequence[Member],
    x: Tensor,
    y: Tensor,
    *,
    per_class: int | None,
    sizes: Sequence[int] | None,
    given: Sequence[tuple[Tensor, Tensor]] | None = None,
    held: Sequence[tuple[Tensor, Tensor]] | None = None,
    orders: DrawnOrders | None = None,
) -> Samples:
    """Each member's draw from the pool by its `data_seed`, and its labels with their noise.

    With neither `per_class` nor `sizes` every member sees the whole pool. `given` are positions and labels for each member
    instead of a draw. Class weights are per member, but how they are averaged is one choice for all. `orders` says in what
    order `drawn` reads the samples; training does not depend on it. `held` are positions and labels that are read beside.
    """
    shape = members[0].shape
    pool = flat_pool(x, y, shape)
    kept = None if held is None else Held(*_stacked(members, pool, held, what="validation"))
    if given is not None:
        samples = _given_samples(members, pool, given, drawn=per_class is not None or sizes is not None)
        samples = replace(samples, held=kept)
        return samples if orders is None else replace(samples, drawn=orders.of(members, samples.n))
    names = y.cpu()
    drawn: dict[int, Tensor] = {}
    labeled: dict[tuple[int, float], Tensor] = {}
    for member in members:
        key = (member.data_seed, member.label_noise)
        if member.data_seed not in drawn:
            drawn[member.data_seed] = _positions(names, member, per_class=per_class, sizes=sizes)
        if key not in labeled:
            own = names[drawn[member.data_seed]]
            labeled[key] = randomize_labels(own, share=member.label_noise, classes=shape.classes, seed=member.data_seed)
    labels = torch.stack([labeled[member.data_seed, member.label_noise] for member in members])
    weights, mean = _class_weights(members, labels)
    return Samples(
        pool=pool,
        rows=torch.stack([drawn[member.data_seed] for member in members]),
        labels=labels,
        class_weights=weights,
        weighted_mean=mean,
        drawn=None if orders is None else orders.of(members, labels.shape[1], y, per_class=per_class, sizes=sizes),
        logit_adjustment=_adjustments(members),
        held=kept,
    )


@dataclass(frozen=True, slots=True)
class DrawnOrders:
    """In what order `drawn` reads the samples of each member: `given` for each, else a walk where they are drawn.

    given            for each member the positions among its samples; None: as they stand, or the walk of its draw.
    pool_per_class   the full pool that a walk goes through, where the pool at hand is a part of it.
    """

    given: Sequence[Tensor] | None = None
    pool_per_class: int | Sequence[int] | None = None

    def of(
        self,
        members: Sequence[Member],
        n: int,
        y: Tensor | None = None,
        *,
        per_class: int | None = None,
        sizes: Sequence[int] | None = None,
    ) -> Int[Tensor, "m n"]:
        """The order of every member, with the labels of the pool where each draws its own samples."""
        if self.given is not None:
            return self._checked(members, n)
        if y is None or (per_class is None and sizes is None):
            return torch.arange(n, device="cpu").repeat(len(members), 1)
        walks: dict[int, Tensor] = {}
        for seed in dict.fromkeys(member.data_seed for member in members):
            walk = draw(
                y, per_class=per_class, sizes=sizes, seed=seed, classes=members[0].shape.classes, order="walk",
                pool_per_class=self.pool_per_class,
            )  # fmt: skip
            walks[seed] = torch.from_numpy(order_among(walk))
        return torch.stack([walks[member.data_seed] for member in members])

    def _checked(self, members: Sequence[Member], n: int) -> Int[Tensor, "m n"]:
        given = self.given or ()
        if len(given) != len(members):
            raise InputError(f"`drawn` has {len(given)} orders for {len(members)} members. Give one for each.")
        for index, order in enumerate(given):
            if len(order) != n or not torch.equal(order.cpu().sort().values, torch.arange(n, device="cpu")):
                raise InputError(
                    f"`drawn` of member {index} is no order of its {n} samples. Give each of 0 to {n - 1} once, in the order "
                    "in which they were drawn."
                )
        return torch.stack([order.cpu().to(torch.int64) for order in given])


def _given_samples(
    members: Sequence[Member], pool: Tensor, given: Sequence[tuple[Tensor, Tensor]], *, drawn: bool
) -> Samples:
    """Positions and labels as they were given, once it is sure that they fit."""
    if drawn or any(member.label_noise for member in members):
        raise InputError("`samples` are given, so nothing is drawn. Leave out `per_class`, `sizes` and label noise.")
    rows, labels = _stacked(members, pool, given, what="samples")
    weights, mean = _class_weights(members, labels)
    return Samples(
        pool=pool,
        rows=rows,
        labels=labels,
        class_weights=weights,
        weighted_mean=mean,
        logit_adjustment=_adjustments(members),
    )


def _stacked(
    members: Sequence[Member], pool: Tensor, given: Sequence[tuple[Tensor, Tensor]], *, what: str
) -> tuple[Int[Tensor, "m n"], Int[Tensor, "m n"]]:
    """Positions and labels of each member side by side, once it is sure that they fit the pool and the classes."""
    if len(given) != len(members):
        raise InputError(f"`{what}` has {len(given)} entries for {len(members)} members. Give one for each.")
    lengths = max((sorted({len(pair[part]) for pair in given}) for part in (0, 1)), key=len)
    if len(lengths) > 1:
        raise InputError(
            f"Members of one ensemble see as many samples each; `{what}` holds {lengths[0]} to {lengths[-1]}. "
            "Give equally many, with a label each."
        )
    rows, labels = (torch.stack([pair[part].cpu().to(torch.int64) for pair in given]) for part in (0, 1))
    if rows.shape != labels.shape or rows.ndim != 2 or rows.shape[1] == 0:
        raise InputError(
            f"`{what}` needs one label per position and at least one; found {tuple(rows.shape)} and {tuple(labels.shape)}."
        )
    if not 0 <= int(rows.min()) <= int(rows.max()) < len(pool):
        raise InputError(f"`{what}` holds positions {int(rows.min())} to {int(rows.max())} of a pool of {len(pool)}.")
    check_range(
        labels.flatten(), members[0].shape.classes, owner=f"the members have {members[0].shape.classes} classes"
    )
    return rows, labels


def _positions(names: Tensor, member: Member, *, per_class: int | None, sizes: Sequence[int] | None) -> Tensor:
    if per_class is None and sizes is None:
        return torch.arange(len(names), device="cpu")
    chosen = draw(names, per_class=per_class, sizes=sizes, seed=member.data_seed, classes=member.shape.classes)
    if len(chosen) == 0:
        raise InputError("`per_class` or `sizes` asks for no sample at all. Ask for at least one.")
    return torch.from_numpy(chosen)


def _class_weights(members: Sequence[Member], labels: Tensor) -> tuple[Tensor | None, bool]:
    if all(member.class_weights is None for member in members):
        return None, False
    weighted = [member for member in members if member.class_weights is not None]
    if len({member.weighted_mean for member in weighted}) > 1:
        raise InputError("Members of one ensemble share `weighted_mean`; found both. Train one ensemble for each.")
    ones = (1.0,) * members[0].shape.classes
    for member, own in zip(members, labels, strict=True):
        present = set() if member.class_weights is None else set(own.unique().tolist())
        for name, weight in enumerate(member.class_weights or ()):
            if name not in present and weight not in (0.0, 1.0):
                raise InputError(
                    f"`class_weights` gives class {name} the weight {weight:g}, but no sample has that label. "
                    "Leave it at 1."
                )
    table = torch.tensor([member.class_weights or ones for member in members], dtype=torch.float64, device="cpu")
    return table, weighted[0].weighted_mean


def _adjustments(members: Sequence[Member]) -> Tensor | None:
    """What is added to the scores of each member in its loss; nothing where nobody asks for it."""
    if all(member.logit_adjustment is None for member in members):
        return None
    nothing = (0.0,) * members[0].shape.classes
    return torch.tensor([member.logit_adjustment or nothing for member in members], dtype=torch.float64, device="cpu")


def flat_pool(x: Tensor, y: Tensor, shape: Shape, *, what: str = "samples") -> Float[Tensor, "N i"]:
    """Samples as rows on the CPU, once it is sure that networks of this shape can take them."""
    if not isinstance(x, Tensor) or not isinstance(y, Tensor):
        raise InputError(
            f"An ensemble trains on tensors; found {type(x).__name__} and {type(y).__name__}. Use `torch.as_tensor`."
        )
    if y.ndim != 1 or y.is_floating_point():
        raise LabelError(f"An ensemble takes one integer label per sample; found {y.dtype} of shape {tuple(y.shape)}.")
    if len(x) != len(y) or len(y) == 0:
        raise InputError(
            f"An ensemble needs one label per sample and at least one sample; found {len(x)} and {len(y)}."
        )
    width = x[0].numel()
    if width != shape.inputs:
        raise InputError(
            f"The members take {shape.inputs} inputs; the {what} have {width}. Set `inputs` of their shape."
        )
    check_range(y.to(torch.int64), shape.classes, owner=f"the members have {shape.classes} classes")
    bad = int((~torch.isfinite(x)).sum())
    if bad:
        raise FeatureError(f"The {what} hold {bad} numbers that are NaN or infinite. Clean them before training.")
    return x.detach().reshape(len(x), -1).cpu()

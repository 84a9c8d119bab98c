"""GroupSums: the mergeable state of a first pass, sums of rows by class and fold and by randomly drawn class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from equisep.errors import InputError
from equisep.separation.assignments import Assignments
from equisep.separation.blocks import Block, Room, blocks_of, column_pieces
from equisep.separation.gpu import LEAST_ROWS, SUMMED_ROWS, GroupRuns, add_rows, installed, kernels_fit
from equisep.shapes import Bool, Float64, Int, Shaped

MATMUL_GROUPS = 256  # up to here a one-hot product is faster than scattered adds, and bit-reproducible on a GPU
FEW_ROWS = 8  # of a class on average: with fewer, nearly all of a one-hot product are zeros
SERIAL_THREADS = 2  # up to here one thread that adds rows keeps up with a product
GPU_GROUPS = 4096  # … and up to here a GPU adds in a fixed order, by a product
KEPT_NUMBERS = 2**20  # sums of labelings that are kept while they are in use: 8 MiB
NARROW = 4  # bytes of a number that float64 sums as it is


@dataclass(frozen=True, slots=True)
class ClassCenters:
    """The class means, kept about a shift (the first row that came) so that no common offset costs digits.

    `about` are the means less the shift, `means` the means themselves, rounded; both are the shift's for a class without
    rows. `eps` is the rounding unit of the features as they came. Of `narrow` features (24 bits, int32: 31) float64 sums are
    exact, so that residuals from the rounded means keep every digit the features have. Of float64 features a row less the
    origin of its class (its first row) is exact, and `inside`, the mean about that origin, as small as the spread.
    `squares` are ‖m_k‖² and ‖m_k − shift‖², where they are known already.
    """

    counts: Int[Tensor, " k"]
    shift: Float64[Tensor, " d"]
    about: Float64[Tensor, "k d"]
    means: Float64[Tensor, "k d"]
    eps: float
    narrow: bool
    origins: Float64[Tensor, "k d"] | None = None
    inside: Float64[Tensor, "k d"] | None = None
    squares: Float64[Tensor, "2 k"] | None = None

    @property
    def sizes(self) -> Float64[Tensor, " k"]:
        """‖m_k‖²."""
        return self.means.square().sum(dim=1) if self.squares is None else self.squares[0]

    @property
    def distances(self) -> Float64[Tensor, " k"]:
        """‖m_k − shift‖²."""
        return self.about.square().sum(dim=1) if self.squares is None else self.squares[1]

    @property
    def classes(self) -> int:
        """K, absent classes included."""
        return self.counts.shape[0]

    @property
    def dim(self) -> int:
        """The number of features."""
        return self.about.shape[1]

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.counts.sum())

    @property
    def present(self) -> Int[Tensor, " p"]:
        """The classes that have rows."""
        return self.counts.nonzero().flatten()

    def residuals(
        self,
        x: Shaped[Tensor, "n c"],
        y: Int[Tensor, " n"],
        columns: slice = slice(None),
        room: Room | None = None,
    ) -> Float64[Tensor, "n c"]:
        """x_i − m_{y_i} in float64: subtracted before anything else is done, so that tight classes keep their digits.

        They lie in the `room`, where there is one, until it is used again.
        """
        room = room or Room()
        made, chosen = room.like(x, "residuals"), room.like(x, "chosen")
        if self.origins is not None and self.inside is not None:
            torch.index_select(self.origins[:, columns], 0, y, out=made)
            torch.sub(x.to(torch.float64), made, out=made)
            return made.sub_(torch.index_select(self.inside[:, columns], 0, y, out=chosen))
        made.copy_(x)
        if self.narrow:
            return made.sub_(torch.index_select(self.means[:, columns], 0, y, out=chosen))
        return made.sub_(self.shift[columns]).sub_(torch.index_select(self.about[:, columns], 0, y, out=chosen))


@dataclass(frozen=True, slots=True)
class SumFrame:
    """What sums are about: the shift, of float64 features the origin of every `known` class, and how the features came."""

    shift: Float64[Tensor, " d"]
    origins: Float64[Tensor, "k d"] | None
    known: Bool[Tensor, " k"]
    narrow: bool
    eps: float

    @property
    def dim(self) -> int:
        """The number of features."""
        return self.shift.shape[0]


class GroupSums:
    """Σ (x_i − o_k) of every class k in every fold, and Σ (x_i − shift) of every class under random labels, in float64.

    The shift is the first row that came. Of float64 features the origin o_k is the first row of class k: the numbers summed
    are as small as the spread of the class, so plain sums keep what centered merging (Chan, Golub & LeVeque 1979) would, and
    a class that has collapsed to a point sums to exact zeros. Narrower features have 24 bits (int32: 31) or fewer: float64
    sums of millions of them are exact, so o_k is 0 and nothing is subtracted. Without folds there is one, which holds all rows.
    """

    def __init__(self, *, classes: int, folds: int = 0, relabelings: int = 0) -> None:
        self.classes, self.folds, self.relabelings = classes, max(folds, 1), relabelings
        self.eps = 0.0
        self._shift: Float64[Tensor, " d"] | None = None
        self._relabeled: tuple[int, list[tuple[slice, Tensor]]] | None = None

    def add(self, features: Sequence[Shaped[Tensor, "_ d"]], rows: Assignments) -> None:
        """Add rows, which may come in several tensors."""
        on_gpu = all(map(kernels_fit, features)) and len(rows) >= LEAST_ROWS * self.folds * self.classes
        room = Room()
        for span, block in blocks_of(features, as_given=on_gpu):
            if block.rows:
                part = rows.part(span).to(block.parts[0].device)
                if self._shift is None:
                    self._begin(block.parts[0])
                if not self._narrow:
                    self._see(block, part.labels)
                self._add(block, part, room, on_gpu=on_gpu)
        self.eps = max([self.eps, *(rounding_unit(part.dtype) for part in features)])

    def _begin(self, x: Shaped[Tensor, "n d"]) -> None:
        g, k, d, p = self.folds, self.classes, x.shape[1], self.relabelings
        new = torch.zeros(0, dtype=torch.float64, device=x.device)
        # columns apart: rows of one piece are neighbors in memory, and a cache holds them
        self._pieces = [(columns, new.new_zeros((g + p) * k, x[:1, columns].shape[1])) for columns in column_pieces(x)]
        self._counts = torch.zeros(g, k, dtype=torch.int64, device=x.device)
        self._relabeled_counts = torch.zeros(p, k, dtype=torch.int64, device=x.device)
        self._narrow = x.dtype.itemsize <= NARROW
        self._origin = None if self._narrow else new.new_zeros(k, d)
        self._known = torch.zeros(k, dtype=torch.bool, device=x.device)
        self._shift = x[0].to(torch.float64, copy=True)  # the memory of the rows may be used again

    @property
    def frame(self) -> SumFrame | None:
        """What the sums are about; None where there are no rows yet."""
        if self._shift is None:
            return None
        return SumFrame(self._shift, self._origin, self._known, self._narrow, self.eps)

    def about(self, frame: SumFrame) -> GroupSums:
        """The same sums about another frame, in which they add up number by number; zeros where there are no rows."""
        empty = GroupSums(classes=self.classes, folds=self.folds, relabelings=self.relabelings)
        empty._begin(frame.shift.unsqueeze(0))
        empty._narrow, empty._origin, empty._known, empty.eps = frame.narrow, frame.origins, frame.known, frame.eps
        return empty if self._shift is None else empty.merge(self)

    @property
    def tables(self) -> dict[str, Tensor]:
        """The numbers that add up over states about one frame, by name; adding into them adds to the state."""
        pieces = {f"sums {number}": sums for number, (_, sums) in enumerate(self._pieces)}
        return {"counts": self._counts, "relabeled counts": self._relabeled_counts, **pieces}

    def _see(self, block: Block, y: Int[Tensor, " n"]) -> None:
        """The first rows of classes that had none before become their origins."""
        assert self._origin is not None
        n = len(y)
        first = torch.full((self.classes,), n, dtype=torch.int64, device=y.device)
        first.scatter_reduce_(0, y, torch.arange(n, device=y.device), "amin")
        new = (first < n) & ~self._known
        if bool(new.any()):
            for columns, x in block.columns():
                self._origin[new, columns] = x[first[new]].to(torch.float64)
            self._known |= new

    def _add(self, block: Block, rows: Assignments, room: Room, *, on_gpu: bool) -> None:
        assert self._shift is not None
        k, y, groups = self.classes, rows.labels, self.folds * self.classes
        keys = y if self.folds == 1 or rows.folds is None else rows.folds * k + y
        self._counts += torch.bincount(keys, minlength=groups).view_as(self._counts)
        relabeled = [] if rows.relabeled is None else list(rows.relabeled[: self.relabelings])
        for number, each in enumerate(relabeled):
            self._relabeled_counts[number] += torch.bincount(each, minlength=k)
        adder = gpu_adder if on_gpu else row_adder
        add_own, adders = adder(keys, groups), [adder(each, k) for each in relabeled]
        for columns, sums in self._pieces:
            x = block.at(columns)
            x = x if on_gpu or x.dtype == torch.float64 else room.like(x, "rows").copy_(x)
            own = x
            if self._origin is not None:
                own = torch.index_select(self._origin[:, columns], 0, y, out=room.like(x, "own"))
                torch.sub(x, own, out=own)
            add_own(sums[:groups], own)
            around = x - self._shift[columns] if adders and not self._narrow else x
            for add, target in zip(adders, sums[groups:].split(k), strict=False):
                add(target, around)

    def merge(self, other: GroupSums) -> GroupSums:
        """The sums of both data sets together: exact up to one rounding, in any order of merging."""
        if self._shift is None or other._shift is None:
            return other if self._shift is None else self
        mine, theirs = ((s.classes, s.folds, s.relabelings, len(s._shift)) for s in (self, other))  # type: ignore[arg-type]
        if mine != theirs or self._narrow != other._narrow:
            raise InputError(
                "Only sums of one kind merge; found (classes, folds, relabelings, features) "
                f"{mine} and {theirs}{'' if mine != theirs else ', of numbers of different precision'}. Measure both alike."
            )
        joined = GroupSums(classes=self.classes, folds=self.folds, relabelings=self.relabelings)
        joined.eps = max(self.eps, other.eps)
        joined._shift, joined._narrow = self._shift, self._narrow
        joined._counts = self._counts + other._counts
        joined._relabeled_counts = self._relabeled_counts + other._relabeled_counts
        joined._known = self._known | other._known
        joined._origin = None
        if self._origin is not None and other._origin is not None:
            joined._origin = torch.where(self._known.unsqueeze(1), self._origin, other._origin)
        joined._pieces = [
            (columns, sums + self._moved(other, other_sums, columns))
            for (columns, sums), (_, other_sums) in zip(self._pieces, other._pieces, strict=True)
        ]
        return joined

    def _moved(self, other: GroupSums, sums: Float64[Tensor, "g c"], columns: slice) -> Float64[Tensor, "g c"]:
        """The sums of another state about the origins and the shift of this one."""
        if self._origin is None or other._origin is None:
            return sums
        assert self._shift is not None and other._shift is not None
        step = torch.where((self._known & other._known).unsqueeze(1), other._origin - self._origin, 0)[:, columns]
        own, groups = (other._counts.unsqueeze(2) * step).flatten(0, 1), self.folds * self.classes
        shifted = other._relabeled_counts.flatten().unsqueeze(1) * (other._shift - self._shift)[columns]
        return sums + torch.cat([own, shifted]) if self.relabelings else sums[:groups] + own

    @property
    def fold_counts(self) -> Int[Tensor, "g k"]:
        """Rows of every class in every fold."""
        return self._counts

    @cached_property
    def counts(self) -> Int[Tensor, " k"]:
        """Rows of every class."""
        return self._counts.sum(dim=0)

    @cached_property
    def centers(self) -> ClassCenters:
        """The class means, once all rows are there."""
        assert self._shift is not None
        n, absent, whole = self.counts.clamp(min=1).unsqueeze(1), self.counts == 0, self._whole()
        present = ~absent.unsqueeze(1)
        if self._origin is None:  # the sums are exact, and so are these differences
            # in place, since classes may be a million: beside the sums there are two matrices of K × d, and never more
            about = torch.addcmul(whole, n.to(torch.float64), self._shift, value=-1).div_(n)
            means = whole / n
            if bool(absent.any()):
                about[absent], means[absent] = 0, self._shift
            return ClassCenters(self.counts, self._shift, about, means, self.eps, narrow=True)
        inside = whole / n
        about = torch.where(present, inside + (self._origin - self._shift), 0)
        means, origins = about + self._shift, torch.where(present, self._origin, self._shift)
        return ClassCenters(
            self.counts, self._shift, about, means, self.eps, narrow=False, origins=origins, inside=inside
        )

    def _whole(self) -> Float64[Tensor, "k d"]:
        """The sums of every class over all folds; no copy where one piece holds them."""
        own = self.folds * self.classes
        parts = [sums[:own].view(self.folds, self.classes, sums.shape[1]) for _, sums in self._pieces]
        joined = [part[0] if self.folds == 1 else part.sum(dim=0) for part in parts]
        return joined[0] if len(joined) == 1 else torch.cat(joined, dim=1)

    @cached_property
    def middle(self) -> Float64[Tensor, " d"]:
        """The mean of the class means, about the shift."""
        return self.centers.about[self.counts > 0].mean(dim=0)

    @cached_property
    def relabeled_counts(self) -> Int[Tensor, "p k"]:
        """Rows of every random class: as many classes as are present, the first ones."""
        return _few_groups(self._relabeled_counts, len(self.centers.present), dim=1)

    def relabeled_sums(self, folds: int) -> Iterable[tuple[slice, Float64[Tensor, "l k c"]]]:
        """Σ (x_i − middle) of every class without each of the first `folds` folds, then under each relabeling; by columns.

        They are asked for three times: where they are few, they are made once, else anew, piece by piece.
        """
        numbers = (folds + self.relabelings) * self.classes * self.centers.dim
        if len(self._pieces) > 1 or numbers > KEPT_NUMBERS:
            return self._left_and_drawn(folds)
        if self._relabeled is None or self._relabeled[0] != folds:
            self._relabeled = folds, list(self._left_and_drawn(folds))
        return self._relabeled[1]

    def _left_and_drawn(self, folds: int) -> Iterator[tuple[slice, Float64[Tensor, "l k c"]]]:
        assert self._shift is not None
        own, counts, present = self.folds * self.classes, self.counts.unsqueeze(1), len(self.centers.present)
        sizes, drawn_sizes = self._counts[:folds].unsqueeze(2), self._relabeled_counts.unsqueeze(2)
        for columns, sums in self._pieces:
            about, middle = self.centers.about[:, columns], self.middle[columns]
            origin = -self._shift[columns] if self._origin is None else (self._origin - self._shift)[:, columns]
            folded = sums[:own].view(self.folds, self.classes, sums.shape[1])[:folds]
            every = sums.new_empty(folds + self.relabelings, self.classes, sums.shape[1])
            left = torch.sub(counts * (about - middle), folded, out=every[:folds])
            left.addcmul_(sizes.to(sums.dtype), origin - middle, value=-1)
            drawn = sums[own:].view(self.relabelings, self.classes, sums.shape[1])
            if self._origin is None:
                drawn = drawn - drawn_sizes * self._shift[columns]
            every[folds:] = _few_groups(drawn - drawn_sizes * middle, present, dim=1)
            yield columns, every


def _few_groups(values: Tensor, groups: int, *, dim: int) -> Tensor:
    """Groups beyond the first ones joined to these, in turn: as many random classes as there are classes."""
    index = torch.arange(values.shape[dim], device=values.device) % max(groups, 1)
    return torch.zeros_like(values).index_add_(dim, index, values)


def gpu_adder(keys: Int[Tensor, " n"], groups: int) -> Callable[[Tensor, Tensor], None]:
    """A function that adds rows as they came to the sums of their groups, by kernels of our own."""
    runs = GroupRuns.of(keys, groups, rows=SUMMED_ROWS)
    return lambda sums, rows: add_rows(sums, rows, runs)


def row_adder(keys: Int[Tensor, " n"], groups: int) -> Callable[[Tensor, Tensor], Tensor]:
    """A function that adds rows to the sums of their groups.

    Row by row on few threads, where the sums stay in cache, and where groups are many; as a product with one-hot rows on
    many threads or a GPU.
    """
    on_cpu = keys.device.type == "cpu"
    if (on_cpu and torch.get_num_threads() <= SERIAL_THREADS) or groups > (MATMUL_GROUPS if on_cpu else GPU_GROUPS):
        return lambda sums, rows: sums.index_add_(0, keys, rows)
    chosen = one_hot(keys, groups).T.to(torch.float64)
    return lambda sums, rows: sums.addmm_(chosen, rows)


def class_adder(y: Int[Tensor, " n"], classes: int) -> Callable[[Float64[Tensor, "n d"]], Float64[Tensor, "k d"]]:
    """A function that gives Σ_{i: y_i = k} x_i for every class k; of many rows on a GPU by kernels, always in one order."""
    if not (installed(y) and len(y) >= LEAST_ROWS * min(classes, MATMUL_GROUPS)):
        return lambda x: class_sums(x, y, classes=classes)
    runs = GroupRuns.of(y, classes, rows=SUMMED_ROWS)

    def summed(x: Float64[Tensor, "n d"]) -> Float64[Tensor, "k d"]:
        sums = x.new_zeros(classes, x.shape[1])
        add_rows(sums, x if x.stride(1) == 1 else x.contiguous(), runs)
        return sums

    return summed


def class_sums(x: Float64[Tensor, "n d"], y: Int[Tensor, " n"], *, classes: int) -> Float64[Tensor, "k d"]:
    """Σ_{i: y_i = k} x_i for every class k."""
    many_rows = FEW_ROWS * classes <= len(x) and torch.get_num_threads() > SERIAL_THREADS
    if classes <= MATMUL_GROUPS and (x.device.type != "cpu" or many_rows):
        return one_hot(y, classes).to(x.dtype).T @ x
    return x.new_zeros(classes, x.shape[1]).index_add_(0, y, x)


def as_float64(features: Shaped[Tensor, "*m n d"]) -> Float64[Tensor, "*m n d"]:
    """Features in float64, on the CPU where the device has no float64."""
    if features.device.type == "mps":
        features = features.cpu()
    return features.detach().to(torch.float64)


def rounding_unit(dtype: torch.dtype) -> float:
    """The relative rounding step of the numbers as they came; integers came exact."""
    return torch.finfo(dtype).eps if dtype.is_floating_point else torch.finfo(torch.float64).eps

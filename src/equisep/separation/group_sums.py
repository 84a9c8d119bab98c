"""GroupSums: first-pass state of one site under many labelings at once, by fold and class and by permuted class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from equisep.separation.assignments import Marks
from equisep.separation.blocks import Block, blocks_of, column_pieces, residuals_from
from equisep.separation.moments import MATMUL_CLASSES, rounding_unit
from equisep.shapes import Float64, Int, Shaped

SERIAL_THREADS = 2  # up to here one thread that adds rows keeps up with a product
GPU_GROUPS = 4096  # … and up to here a GPU adds in a fixed order, by a product
NARROW = 4  # bytes of a number that float64 sums as it is
FEW_CLASSES = 1024  # up to which a K × K table a permutation is cheaper than residuals from another point


class GroupSums:
    """Σ (x_i − c_k) of every class k in every fold, and of every class under permuted labels, in float64.

    Of float64 features c_k is the first row of class k that came. The numbers summed are as small as the spread of the
    class, so plain float64 sums keep what centered merging would, and a class that has collapsed to a point sums to exact
    zeros. Narrower features have 24 bits (int32: 31) or fewer: float64 sums of millions of equal ones are exact, and those
    of others lose less than the features themselves have lost, so c_k is 0. Without folds there is one, which holds all rows.
    """

    def __init__(self, *, classes: int, folds: int, permutations: int) -> None:
        self.classes, self.folds, self.permutations = classes, max(folds, 1), permutations
        self.eps = 0.0
        self._origin: Float64[Tensor, "k d"] | None = None

    def add(self, features: Sequence[Shaped[Tensor, "b d"]], marks: Marks) -> None:
        """Add rows, which may come in several tensors."""
        for rows, block in blocks_of(features):
            part = marks.part(rows).to(block.parts[0].device)
            if self._origin is None:
                self._begin(block.parts[0])
            if self._centered:
                self._see(block, part.labels)
            self._add(block, part)
        self.eps = max(self.eps, *(rounding_unit(part.dtype) for part in features))

    def _begin(self, x: Shaped[Tensor, "n d"]) -> None:
        g, k, d, p = self.folds, self.classes, x.shape[1], self.permutations
        new = torch.zeros(0, dtype=torch.float64, device=x.device)
        # columns apart: rows of one piece are neighbors in memory, and a cache holds them
        self._pieces = [(columns, new.new_zeros((g + p) * k, x[:1, columns].shape[1])) for columns in column_pieces(x)]
        self._counts = torch.zeros(g, k, dtype=torch.int64, device=x.device)
        self._centered = x.dtype.itemsize > NARROW
        self._anchor = 0  # the class whose origin sums of permuted classes are around, without a table of shares
        # rows of class j that a permutation calls k
        self._shares = new.new_zeros(p, k, k) if k <= FEW_CLASSES and self._centered else None
        self._origin = new.new_zeros(k, d) if self._centered else new.new_zeros(1, 1).expand(k, d)
        self._known = torch.zeros(k, dtype=torch.bool, device=x.device)

    def _see(self, block: Block, y: Int[Tensor, " n"]) -> None:
        """The first rows of classes that had none before become their origins."""
        assert self._origin is not None
        n = len(y)
        first = torch.full((self.classes,), n, dtype=torch.int64, device=y.device)
        first.scatter_reduce_(0, y, torch.arange(n, device=y.device), "amin")
        new = (first < n) & ~self._known
        if bool(new.any()):
            if self._shares is None and not bool(self._known.any()):
                self._anchor = int(first.argmin())  # the class of the very first row
            for columns, x in block.columns():
                self._origin[new, columns] = x[first[new]].to(torch.float64)
            self._known |= new

    def _add(self, block: Block, marks: Marks) -> None:
        assert self._origin is not None
        k, y, groups = self.classes, marks.labels, self.folds * self.classes
        keys = y if self.folds == 1 or marks.folds is None else marks.folds * k + y
        self._counts += torch.bincount(keys, minlength=groups).view_as(self._counts)
        permuted = [] if marks.permuted is None else list(marks.permuted[: self.permutations])
        if self._shares is not None:
            for number, each in enumerate(permuted):
                self._shares[number] += torch.bincount(each * k + y, minlength=k * k).view(k, k)
        adders = [adder(keys, groups), *(adder(each, k) for each in permuted)]
        places = [slice(0, groups), *(slice(groups + p * k, groups + (p + 1) * k) for p in range(len(permuted)))]
        for columns, sums in self._pieces:
            x = block.at(columns)
            r = around = residuals_from(x, self._origin[:, columns], y) if self._centered else x.to(torch.float64)
            if permuted and self._centered and self._shares is None:  # around one point, without a K × K table
                around = x.to(torch.float64, copy=True).sub_(self._origin[self._anchor, columns])
            for number, (add, place) in enumerate(zip(adders, places, strict=True)):
                add(sums[place], around if number else r)

    @property
    def dim(self) -> int:
        """The number of features."""
        return self.means.shape[1]

    @property
    def fold_counts(self) -> Int[Tensor, "g k"]:
        """Rows of every class in every fold."""
        return self._counts

    @cached_property
    def counts(self) -> Int[Tensor, " k"]:
        """Rows of every class."""
        return self._counts.sum(dim=0)

    @cached_property
    def means(self) -> Float64[Tensor, "k d"]:
        """The mean of every class; 0 where it has no rows."""
        assert self._origin is not None
        own = self.folds * self.classes
        whole = torch.cat([sums[:own].view(self.folds, self.classes, -1).sum(dim=0) for _, sums in self._pieces], dim=1)
        return whole.div_(self.counts.clamp(min=1).unsqueeze(1)).add_(self._origin)

    @cached_property
    def center(self) -> Float64[Tensor, " d"]:
        """c, the mean of the class means."""
        return self.means[self.counts > 0].mean(dim=0)

    @cached_property
    def centered_means(self) -> Float64[Tensor, "k d"]:
        """m_k − c of every class; 0 where it has no rows."""
        return (self.means - self.center).mul_((self.counts > 0).unsqueeze(1))

    def lenses(self, folds: int) -> Iterator[tuple[slice, Float64[Tensor, "l k c"]]]:
        """Σ (x_i − c) of every class without each of the first `folds` folds, then under each permutation; by columns."""
        own, counts = folds * self.classes, self.counts.unsqueeze(1)
        for columns, sums in self._pieces:
            each = sums.new_empty(folds + self.permutations, self.classes, sums.shape[1])
            left = each[:folds]
            torch.sub((self.centered_means[:, columns] * counts), sums[:own].view_as(left), out=left)
            # the sums of folds are around c_k, not around c
            left.addcmul_(self._counts[:folds].to(torch.float64).unsqueeze(2), self._shift(columns), value=-1)
            each[folds:] = self._permuted(sums[self.folds * self.classes :].view_as(each[folds:]), columns)
            yield columns, each

    def _shift(self, columns: slice) -> Float64[Tensor, "k c"]:
        """c_k − c of every class."""
        assert self._origin is not None
        return self._origin[:, columns] - self.center[columns]

    def _permuted(self, sums: Float64[Tensor, "p k c"], columns: slice) -> Float64[Tensor, "p k c"]:
        """Sums by permuted class around c; a permutation leaves the counts of classes as they are."""
        if self._shares is not None:
            return sums + self._shares @ self._shift(columns)
        around = self._shift(columns)[self._anchor]  # what they are around
        return torch.addcmul(sums, self.counts.to(torch.float64).unsqueeze(1), around)

    @cached_property
    def permuted_sizes(self) -> Float64[Tensor, "p k"]:
        """‖m_k‖² of every class under every permutation."""
        n, own = self.counts.clamp(min=1).to(torch.float64).unsqueeze(1), self.folds * self.classes
        found = n.new_zeros(self.permutations, self.classes)
        for columns, sums in self._pieces if self.permutations else ():
            each = self._permuted(sums[own:].view(-1, self.classes, sums.shape[1]), columns)
            found += torch.addcdiv(self.center[columns], each, n).square_().sum(dim=2)
        return found


def adder(keys: Int[Tensor, " n"], groups: int) -> Callable[[Tensor, Tensor], Tensor]:
    """A function that adds rows to the sums of their groups.

    Row by row on few threads, where the sums stay in cache, and where groups are many; as a product with one-hot rows on
    many threads or a GPU.
    """
    on_cpu = keys.device.type == "cpu"
    if (on_cpu and torch.get_num_threads() <= SERIAL_THREADS) or groups > (MATMUL_CLASSES if on_cpu else GPU_GROUPS):
        return lambda sums, rows: sums.index_add_(0, keys, rows)
    chosen = one_hot(keys, groups).T.to(torch.float64)
    return lambda sums, rows: sums.addmm_(chosen, rows)

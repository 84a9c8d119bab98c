"""GroupSums: first-pass state of one site under many labelings at once, by fold and class and by permuted class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, one_hot

from equisep.shapes import Float64, Int, Shaped
from equisep.stats.blocks import Block, blocks_of, residuals_from
from equisep.stats.marks import Marks
from equisep.stats.moments import MATMUL_CLASSES, rounding_unit

SERIAL_THREADS = 2  # up to here one thread that adds rows keeps up with a product
NARROW = 4  # bytes of a number that float64 sums as it is
FEW_CLASSES = 1024  # up to which a K × K table a permutation is cheaper than residuals from another point


class GroupSums:
    """Σ (x_i − c_k) of every class k in every fold, and of every class under permuted labels, in float64.

    Of float64 features c_k is the first row of class k that came. The numbers summed are as small as the spread of the
    class, so plain float64 sums keep what centered merging would, and a class that has collapsed to a point sums to exact
    zeros. Narrower features have 24 bits or fewer: float64 sums of 2²⁹ equal ones are exact, and those of others lose less
    than the features themselves have lost, so c_k is 0. Without folds there is one, which holds all rows.
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
        self._sums = torch.zeros((g + p) * k, d, dtype=torch.float64, device=x.device)
        self._counts = torch.zeros(g, k, dtype=torch.int64, device=x.device)
        self._centered = x.dtype.itemsize > NARROW
        # rows of class j that a permutation calls k
        self._shares = self._sums.new_zeros(p, k, k) if k <= FEW_CLASSES and self._centered else None
        self._origin = self._sums.new_zeros(k, d) if self._centered else self._sums.new_zeros(1, 1).expand(k, d)
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
        for columns, x in block.columns():
            r = around = residuals_from(x, self._origin[:, columns], y) if self._centered else x.to(torch.float64)
            if (
                permuted and self._shares is None and self._centered
            ):  # many classes: around one point, without a K × K table
                around = x.to(torch.float64, copy=True).sub_(self._origin[self._anchor, columns])
            for number, (add, place) in enumerate(zip(adders, places, strict=True)):
                add(self._sums[place, columns], around if number else r)

    @cached_property
    def counts(self) -> Int[Tensor, " k"]:
        """Rows of every class."""
        return self._counts.sum(dim=0)

    @cached_property
    def center(self) -> Float64[Tensor, " d"]:
        """c, a point among the data."""
        assert self._origin is not None
        return self._origin[self._known].mean(dim=0) if self._centered else self.means[self.counts > 0].mean(dim=0)

    @cached_property
    def origins(self) -> Float64[Tensor, "k d"]:
        """c_k − c of every class."""
        assert self._origin is not None
        known = self._known if self._centered else self.counts > 0
        return (self._origin - self.center).mul_(known.unsqueeze(1))

    @property
    def means(self) -> Float64[Tensor, "k d"]:
        """The mean of every class; 0 where it has no rows."""
        assert self._origin is not None
        whole = self._sums[: self.folds * self.classes].view(self.folds, self.classes, -1).sum(dim=0)
        return whole.div_(self.counts.clamp(min=1).unsqueeze(1)).add_(self._origin)

    def subtract_fold(
        self, fold: int, total: Float64[Tensor, "k d"], *, out: Float64[Tensor, "k d"]
    ) -> Int[Tensor, " k"]:
        """`total`, Σ (x_i − c) of every class, less one fold, into `out`; the counts of the fold come back."""
        counts = self._counts[fold]
        torch.sub(total, self._sums[fold * self.classes : (fold + 1) * self.classes], out=out)
        out.addcmul_(counts.to(torch.float64).unsqueeze(1), self.origins, value=-1)
        return counts

    def permuted(self, place: int, *, out: Float64[Tensor, "k d"]) -> None:
        """Σ (x_i − c) of every class under one permutation, which leaves the counts as they are, into `out`."""
        begin = (self.folds + place) * self.classes
        sums = self._sums[begin : begin + self.classes]
        counts = self.counts.to(torch.float64).unsqueeze(1)
        if not self._centered:
            torch.addcmul(sums, counts, self.center, value=-1, out=out)
        elif self._shares is not None:
            torch.addmm(sums, self._shares[place], self.origins, out=out)
        else:
            torch.addcmul(sums, counts, self.origins[self._anchor], out=out)


def adder(keys: Int[Tensor, " n"], groups: int) -> Callable[[Tensor, Tensor], Tensor]:
    """A function that adds rows to the sums of their groups.

    Row by row on few threads, where the sums stay in cache; as a product with one-hot rows on many threads or a GPU, or
    by scattered adds where groups are many.
    """
    if keys.device.type == "cpu" and torch.get_num_threads() <= SERIAL_THREADS:
        order = keys.argsort(stable=True)
        counts = torch.bincount(keys, minlength=groups)
        begins = counts.cumsum(0) - counts
        return lambda sums, rows: sums.add_(embedding_bag(order, rows, begins, mode="sum"))
    if groups <= MATMUL_CLASSES:
        chosen = one_hot(keys, groups).T.to(torch.float64)
        return lambda sums, rows: sums.addmm_(chosen, rows)
    return lambda sums, rows: sums.index_add_(0, keys, rows)

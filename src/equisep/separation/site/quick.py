"""QuickProducts: the products of a second pass in float32, as long as it is proven that they leave D its six digits."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from equisep.separation.blocks import Block, Room, exact_products, squared_norms
from equisep.separation.convention import Convention
from equisep.separation.group_sums import ClassCenters
from equisep.separation.site.products import ALIGNED, Projected
from equisep.separation.site.rounding_bound import COMBINATIONS, FAILURE, Combinations, RoundingBound
from equisep.separation.subspace import COMPUTED, ClassSubspace, rounding_cut
from equisep.shapes import Float, Float64, Int, Shaped

PRECISIONS = ("float64", "float32")
WORTH = 5  # times as many products as the proof has, from which on float32 saves more than it costs
QUICK_ERROR = 1e-6  # of D that may be lost
ABOVE = 4.0  # times the cut of rounding, as the rows so far have it, that every direction must stand above


class QuickProducts:
    """‖r_i‖² in float64 and Vᵀr_i of residuals r_i = x_i − m_{y_i} with V and r_i in float32, in float64 where these fail.

    Beside them every row is multiplied by a few random combinations of V in float64, which proves a bound on the relative
    error of D (`RoundingBound`). As long as it is below 10⁻⁶ over all rows so far, float32 is taken; from the block on where
    it is not, float64. The bound is about D along all of V: where the rounding of the features may cut some of it (a direction
    less than four times above the cut that the rows so far allow at most: rows that come later may spread four times as far),
    and where directions are so few that float64 costs no more, float64 is taken at once.
    """

    def __init__(
        self,
        centers: ClassCenters,
        directions: Float64[Tensor, "d q"],
        subspace: ClassSubspace,
        convention: Convention,
        *,
        offset: float = 0.0,
    ) -> None:
        self.centers, self.subspace, self.convention, self.offset = centers, subspace, convention, offset
        self.width, self.rows, self.spread = directions.shape[1], 0, 0.0
        self.bound: RoundingBound | None = None
        self.trusted = pays(*subspace.directions.shape)
        if self.trusted:
            self.between, self.sizes = convention.weights(centers.counts).between, centers.sizes
            self.combinations = Combinations(subspace)
            self.bound = RoundingBound.none(self.combinations)
            # rows of odd widths are a fifth slower
            self.short: Float[Tensor, "d w"] = pad(directions.float(), (0, -self.width % ALIGNED))

    @staticmethod
    def fit(centers: ClassCenters, directions: Float64[Tensor, "d q"]) -> bool:
        """Whether float32 is worth asking: on a CPU, where its products are left whole."""
        return centers.about.device.type == "cpu" and directions.shape[1] > 0 and exact_products()

    def projected(
        self, block: Block, y: Int[Tensor, " n"], others: Shaped[Tensor, "m d"] | None, room: Room
    ) -> Projected | None:
        """The rows of a block; None where float64 has to be asked."""
        if not self.trusted or self.bound is None or not block.rows:
            return None
        found, right = self._products(block, y, others, room)
        failure = FAILURE * block.rows / max(self.centers.n, block.rows)
        own = found.along[:, : self.subspace.directions.shape[1]]
        bound = self.bound.after(self.combinations, own, right, y, failure=failure)
        rows, spread = self.rows + block.rows, self.spread + float(found.norms.sum())
        self.trusted = self._uncut(spread / rows) and bound.relative(self.combinations) <= QUICK_ERROR
        if not self.trusted:
            return None
        self.bound, self.rows, self.spread = bound, rows, spread
        return found

    def _uncut(self, variance: float) -> bool:
        """Whether all directions will count, with the spread of the rows so far in every class and no rounding averaged out."""
        centers = self.centers
        cut = rounding_cut(
            centers.counts,
            self.between,
            sizes=self.sizes + (variance + self.offset),
            variances=torch.zeros_like(
                self.sizes
            ),  # a class may yet turn out to be a point, all of whose rows round alike
            eps=centers.eps,
            dim=centers.dim,
            steps=COMPUTED,
        )
        judged = self.subspace.judged(self.convention, rounding=ABOVE * float(cut))
        return judged.rank == len(judged.singular_values)

    def _products(
        self, block: Block, y: Int[Tensor, " n"], others: Shaped[Tensor, "m d"] | None, room: Room
    ) -> tuple[Projected, Float64[Tensor, "n h"]]:
        """‖r_i‖², Vᵀr_i by float32 and W r_i; and r_i on the combinations."""
        mixed = self.combinations.directions
        norms, right = mixed.new_zeros(block.rows), mixed.new_zeros(block.rows, mixed.shape[1])
        along = mixed.new_zeros(block.rows, self.short.shape[1])
        other = None if others is None else others.new_zeros(others.shape[0], block.rows)
        for columns, x in block.columns():
            r = self.centers.residuals(x, y, columns, room)
            norms += squared_norms(r)
            right.addmm_(r, mixed[columns])
            short = room.like(x, "chosen", torch.float32).copy_(r)
            along += short @ self.short[columns]
            if other is not None and others is not None:
                other.addmm_(others[:, columns], (short if others.dtype == torch.float32 else r).T)
        return Projected(norms, along[:, : self.width], None if other is None else other.T), right


def pays(d: int, r: int) -> bool:
    """Whether float32 saves more in r directions of d features than the proof costs, whose products are thin."""
    return r * d >= WORTH * COMBINATIONS * (d + 2 * r)

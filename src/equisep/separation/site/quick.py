"""QuickProducts: the products of a second pass in float32, as long as float64 is seen to agree on D."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from equisep.separation.blocks import QUICK_NUMBERS, Block, Room, exact_products, squared_norms
from equisep.separation.group_sums import ClassCenters
from equisep.separation.site.products import ALIGNED, WIDE, Projected, projected
from equisep.shapes import Float, Float64, Int, Shaped

PRECISIONS = ("float64", "float32")
CHECKED = 16  # rows of which one is computed in float64 as well
FIRST = 128  # rows of the first block that are, at least
STEP = 7  # by which the place among so many rows moves on, so that classes that come in turns all have theirs
QUICK_ERROR = 1e-7  # of D that may be lost in those rows


class QuickProducts:
    """‖r_i‖² and Vᵀr_i of residuals r_i = x_i − m_{y_i} with V and r_i in float32; what is summed of them is float64.

    A class mean m_k rounds to m̃_k; x_i − m̃_{y_i} of float32 features is then as exact as they are, and g_k = m_k − m̃_k, known in
    float64, is taken off the results, so that tight classes far from zero keep their digits. What is left is the rounding of V,
    of r_i and of sums. It has no bound that would be of use (d·2⁻²⁴ of ‖r_i‖); so one of every sixteen rows, of the first block
    128 at least, is computed both ways. As long as neither Σ_i Σ_j (v_jᵀr_i)²/s_j², which D is the mean of,
    nor Σ_i ‖r_i‖² differs by more than 10⁻⁷ over all of these rows, float32 is taken; from the block on where one does, float64.
    """

    def __init__(
        self, centers: ClassCenters, directions: Float64[Tensor, "d q"], singular_values: Float64[Tensor, " r"]
    ) -> None:
        self.centers, self.directions = centers, directions
        self.wide = directions.shape[1] >= WIDE
        self.short: Float[Tensor, "d w"] = directions.float()
        if self.wide:  # rows of odd widths are a fifth slower
            self.short = pad(self.short, (0, -directions.shape[1] % ALIGNED))
        # smaller ones are cut as rounding, and must not outshout those that D is made of
        least = singular_values.max() * centers.eps if singular_values.numel() else 0.0
        self.weights = singular_values.clamp(min=least).square().reciprocal()  # r
        self.gaps: tuple[Float[Tensor, "k d"], Float64[Tensor, "k q"], Float64[Tensor, " k"]] | None = None
        if centers.narrow:
            means = centers.means.float()
            gap = centers.means - means  # k d
            self.gaps = means, gap @ directions, gap.square().sum(dim=1)
        self.quick = self.exact = self.weights.new_zeros(2)
        self.rows, self.trusted = 0, True

    @staticmethod
    def fit(centers: ClassCenters, directions: Float64[Tensor, "d q"]) -> bool:
        """Whether float32 is worth asking: on a CPU, where its products are left whole."""
        return centers.about.device.type == "cpu" and directions.shape[1] > 0 and exact_products()

    def projected(
        self, block: Block, y: Int[Tensor, " n"], others: Shaped[Tensor, "m d"] | None, room: Room
    ) -> Projected | None:
        """The rows of a block; None where float64 has to be asked."""
        if not self.trusted or not block.rows:
            return None
        norms, along, other = self._products(block, y, others, room)
        chosen = _some(block.rows, CHECKED if self.rows else max(1, min(CHECKED, block.rows // FIRST)))
        rows, labels = block.only(chosen), y[chosen]
        right_norms, right, _ = projected(
            rows, labels, self.centers, self.directions[:, : len(self.weights)], room=room
        )
        quick = self.quick + self._sums(norms[chosen], along[chosen, : len(self.weights)])
        exact = self.exact + self._sums(right_norms, right)
        if not bool(((quick - exact).abs() <= QUICK_ERROR * exact).all() and norms.isfinite().all()):
            self.trusted = False
            return None
        self.quick, self.exact, self.rows = quick, exact, self.rows + block.rows
        return norms, along, other

    def _sums(self, norms: Float64[Tensor, " n"], along: Float64[Tensor, "n r"]) -> Float64[Tensor, " two"]:
        return torch.stack([norms.sum(), along.square().sum(dim=0) @ self.weights])

    def _products(
        self, block: Block, y: Int[Tensor, " n"], others: Shaped[Tensor, "m d"] | None, room: Room
    ) -> Projected:
        norms, q = self.weights.new_zeros(block.rows), self.directions.shape[1]
        along = norms.new_zeros((block.rows, q) if self.wide else (q, block.rows))
        other = None if others is None else others.new_zeros(others.shape[0], block.rows)
        exact = all(part.dtype == torch.float32 or part.dtype.itemsize <= 2 for part in block.parts)
        quickly = self.gaps if exact and others is None else None  # others have no gaps to be taken off
        for columns, x in block.columns(0 if quickly is None else QUICK_NUMBERS):
            if quickly is not None:
                r = room.like(x, "residuals", torch.float32)
                torch.sub(x.float(), torch.index_select(quickly[0][:, columns], 0, y, out=r), out=r)
                norms += squared_norms(r)
            else:
                whole = self.centers.residuals(x, y, columns, room)
                norms += squared_norms(whole)
                r = room.like(x, "chosen", torch.float32).copy_(whole)
                if other is not None and others is not None:
                    other.addmm_(others[:, columns], whole.to(others.dtype).T)
            along += (r @ self.short[columns])[:, :q] if self.wide else self.short[columns].T @ r.T
        along = along if self.wide else along.T
        if quickly is not None:
            _, shifts, squares = quickly
            along -= shifts.index_select(0, y)
            norms -= squares.index_select(0, y)  # Σ_i r_i = 0 in a class: what is mixed of both adds up to nothing
        return norms, along, None if other is None else other.T


def _some(rows: int, step: int) -> Int[Tensor, " m"]:
    """One place of every so many, each time another one."""
    turn = torch.arange(-(-rows // step), device="cpu")
    return (step * turn + (STEP * turn) % step).clamp_(max=rows - 1)

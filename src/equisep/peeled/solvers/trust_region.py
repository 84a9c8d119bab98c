"""The step of Newton's method inside a ball by truncated conjugate gradients, for many problems at once (Steihaug 1983)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.shapes import Bool, Float64, Int

LONGEST = 400  # conjugate gradients; a step cut short here is still a descent step
LOOSE = 0.1  # how exactly the Newton equation is solved far from the optimum; near it, superlinearly better

Hessian = Callable[[Float64[Tensor, "r m p"]], Float64[Tensor, "r m p"]]
"""The Hessian of every problem times one direction each."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Where to move, how much the quadratic model falls there, and whether the ball stopped it."""

    move: Float64[Tensor, "b m p"]
    decrease: Float64[Tensor, " b"]
    at_edge: Bool[Tensor, " b"]


def newton_step(
    gradient: Float64[Tensor, "b m p"],
    *,
    hessian_of: Callable[[Int[Tensor, " r"]], Hessian],
    radius: Float64[Tensor, " b"],
) -> Step:
    """Minimize ⟨g, d⟩ + ½⟨d, A d⟩ over ‖d‖ ≤ radius as far as conjugate gradients take it.

    `hessian_of` gives A for the problems of the batch with these places. Each problem stops where its residual is small,
    at the edge of its ball, or where the model curves downwards (it then goes to the edge). Whenever half of the problems
    have stopped, the others go on without them.
    """
    move, bent_move = torch.zeros_like(gradient), torch.zeros_like(gradient)
    at_edge = torch.zeros(len(gradient), dtype=torch.bool, device=gradient.device)
    size = inner(gradient, gradient).sqrt()
    rows = torch.arange(len(gradient), device=gradient.device)
    goal = size * torch.minimum(torch.full_like(size, LOOSE), size.sqrt())
    part, bent_part, residual, direction = move.clone(), move.clone(), gradient, -gradient
    square, running, hessian = size.square(), size > 0, hessian_of(rows)
    for _ in range(LONGEST):
        bent = hessian(direction)
        curvature = inner(direction, bent)
        length = square / curvature
        edge = (curvature <= 0) | (norm(part + spread(length) * direction) >= radius[rows])
        length = torch.where(edge, _length_to_edge(part, direction, radius[rows]), length)
        length = spread(torch.where(running, length, torch.zeros_like(length)))
        part, bent_part, residual = part + length * direction, bent_part + length * bent, residual + length * bent
        at_edge[rows[running & edge]] = True
        new_square = inner(residual, residual)
        running = running & ~edge & (new_square.sqrt() > goal[rows])
        left = int(running.sum())
        if 2 * left <= len(rows):
            move[rows], bent_move[rows] = part, bent_part
            if left == 0:
                break
            rows, part, bent_part, residual, direction, square, new_square, running = (
                each[running] for each in (rows, part, bent_part, residual, direction, square, new_square, running)
            )
            hessian = hessian_of(rows)
        direction = spread(new_square / square) * direction - residual
        square = new_square
    else:
        move[rows], bent_move[rows] = part, bent_part
    return Step(move, -inner(gradient, move) - 0.5 * inner(move, bent_move), at_edge)


def inner(a: Float64[Tensor, "b m p"], b: Float64[Tensor, "b m p"]) -> Float64[Tensor, " b"]:
    """⟨a, b⟩ of each problem."""
    return (a * b).sum(dim=(-2, -1))


def norm(a: Float64[Tensor, "b m p"]) -> Float64[Tensor, " b"]:
    """‖a‖_F of each problem."""
    return inner(a, a).sqrt()


def spread(numbers: Float64[Tensor, " b"]) -> Float64[Tensor, "b 1 1"]:
    """One number a problem, to multiply matrices with."""
    return numbers[:, None, None]


def _length_to_edge(
    start: Float64[Tensor, "b m p"], direction: Float64[Tensor, "b m p"], radius: Float64[Tensor, " b"]
) -> Float64[Tensor, " b"]:
    """The t ≥ 0 with ‖start + t·direction‖ = radius."""
    a, b, c = inner(direction, direction), inner(start, direction), inner(start, start) - radius.square()
    return (-b + (b.square() - a * c).clamp(min=0).sqrt()) / a

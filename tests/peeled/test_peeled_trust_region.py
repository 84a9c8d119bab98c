"""The Newton step in a ball: the exact step inside, the exact length at the edge, downhill where the model curves down."""

from __future__ import annotations

import torch

from closeness import close
from equisep.peeled.solvers.trust_region import newton_step, norm


def quadratics(batch: int, m: int, p: int, *, lowest: float, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random symmetric matrices with eigenvalues from `lowest` to 3, and gradients."""
    generator = torch.Generator().manual_seed(seed)
    basis = torch.linalg.qr(torch.randn(batch, m * p, m * p, generator=generator, dtype=torch.float64)).Q
    spectrum = torch.linspace(lowest, 3.0, m * p, dtype=torch.float64)
    return basis @ torch.diag(spectrum) @ basis.mT, torch.randn(batch, m, p, generator=generator, dtype=torch.float64)


def step_of(matrices, gradient, radius):
    def hessian_of(rows):
        return lambda move: (matrices[rows] @ move.flatten(1).unsqueeze(-1)).view_as(move)

    return newton_step(gradient, hessian_of=hessian_of, radius=radius)


def test_inside_the_ball_it_solves_the_newton_equation() -> None:
    matrices, gradient = quadratics(5, 3, 2, lowest=1.0, seed=0)
    gradient = 1e-9 * gradient  # near the optimum the equation is solved to √‖g‖ of itself
    step = step_of(matrices, gradient, torch.full((5,), 10.0, dtype=torch.float64))
    exact = -torch.linalg.solve(matrices, gradient.flatten(1).unsqueeze(-1)).view_as(gradient)
    assert float((norm(step.move - exact) / norm(exact)).max()) < 1e-4
    close(step.decrease, -0.5 * (gradient * step.move).sum(dim=(1, 2)), rtol=1e-4)
    assert not step.at_edge.any()


def test_problems_of_one_batch_do_not_mix() -> None:
    matrices, gradient = quadratics(6, 2, 3, lowest=-1.0, seed=1)
    radius = torch.logspace(-3, 1, 6, dtype=torch.float64)
    together = step_of(matrices, gradient, radius)
    for row in range(6):
        alone = step_of(matrices[row : row + 1], gradient[row : row + 1], radius[row : row + 1])
        close(together.move[row], alone.move[0], rtol=1e-9)
        close(together.decrease[row], alone.decrease[0], rtol=1e-9)
        assert bool(together.at_edge[row]) == bool(alone.at_edge[0])


def test_at_the_edge_it_stays_in_the_ball_and_descends() -> None:
    for lowest in (1.0, -2.0):
        matrices, gradient = quadratics(8, 2, 2, lowest=lowest, seed=2)
        radius = torch.full((8,), 0.1, dtype=torch.float64)
        step = step_of(matrices, gradient, radius)
        assert step.at_edge.all()
        close(norm(step.move), radius)
        # at least the decrease of steepest descent to the edge
        g = norm(gradient)
        straight = -gradient * (radius / g)[:, None, None]
        bent = (matrices @ straight.flatten(1).unsqueeze(-1)).view_as(straight)
        model = -(gradient * straight).sum(dim=(1, 2)) - 0.5 * (straight * bent).sum(dim=(1, 2))
        assert (step.decrease >= model * (1 - 1e-12)).all()


def test_a_problem_at_its_optimum_stays_there() -> None:
    matrices, gradient = quadratics(2, 2, 2, lowest=1.0, seed=3)
    gradient[0] = 0
    step = step_of(matrices, gradient, torch.ones(2, dtype=torch.float64))
    assert not step.move[0].any()
    assert float(step.decrease[0]) == 0
    assert step.move[1].any()

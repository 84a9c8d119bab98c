"""Probes: ridge against a plain solver and honest refits, the certificate against every draw there is."""

from __future__ import annotations

from itertools import combinations, product

import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from closeness import close
from equisep.errors import InputError
from equisep.separation.probes import (
    ProbeRows,
    center_moments,
    few_shot_certificate,
    few_shot_errors,
    left_out_scores,
    probe_rows,
    ridge_probe,
    scattered_ridge,
)
from equisep.separation.probes import axes as axes_file
from equisep.separation.stream import ClassScatter


def drawn(counts: tuple[int, ...], d: int, *, seed: int, apart: float = 1.0) -> tuple[Tensor, Tensor]:
    """Skewed, uneven classes: third and fourth moments matter."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    means = apart * torch.randn(len(counts), d, generator=generator, dtype=torch.float64)
    noise = torch.rand(len(y), d, generator=generator, dtype=torch.float64) ** 3 * (1 + y.double().unsqueeze(1))
    return means[y] + noise + 5, y


def near(actual: Tensor, expected: Tensor, *, share: float = 1e-9, scale: float | None = None) -> None:
    """Numbers that may be near 0 beside others: as a share of the largest, or of what they are differences of."""
    close(
        float((actual - expected).abs().max()) + 1,
        1.0,
        rtol=share * (float(expected.abs().max()) if scale is None else scale),
    )


def rows_of(counts: tuple[int, ...], d: int, *, tests: tuple[int, ...], seed: int = 0, apart: float = 1.0) -> ProbeRows:
    x, y = drawn(tuple(a + b for a, b in zip(counts, tests, strict=True)), d, seed=seed, apart=apart)
    held = torch.cat([torch.arange(a + b) >= a for a, b in zip(counts, tests, strict=True)])
    return probe_rows([x[~held]], y[~held], [x[held]], y[held], classes=len(counts))


@pytest.mark.parametrize(("counts", "d"), [((9, 14, 7), 4), ((5, 6, 4), 40)])
def test_the_axes_keep_distances_and_both_sides_agree(counts: tuple[int, ...], d: int) -> None:
    x, y = drawn(counts, d, seed=1)
    fresh, labels = drawn((3, 3, 3), d, seed=2)
    rows = probe_rows([x[:6], x[6:]], y, [fresh], labels, classes=3)
    assert rows.train.shape[1] <= min(len(x) - 1, d)
    about = x - x.mean(dim=0)
    near(rows.train @ rows.train.T, about @ about.T)
    near(rows.train.T @ rows.train, rows.eigenvalues.diag())
    means = torch.stack([x[y == k].mean(dim=0) for k in range(3)])
    theirs, ours = torch.cdist(fresh, means).square(), torch.cdist(rows.test, rows.centers).square()
    near(ours - ours[:, :1], theirs - theirs[:, :1], scale=float(theirs.max()))  # what tells classes apart


@pytest.mark.parametrize(("counts", "d"), [((9, 14, 7), 4), ((5, 6, 4), 40)])
def test_ridge_solves_its_normal_equations_and_leaves_one_out_exactly(counts: tuple[int, ...], d: int) -> None:
    x, y = drawn(counts, d, seed=3)
    rows = probe_rows([x], y, [x], y, classes=3)
    probe = ridge_probe(rows.eigenvalues, rows.centers, rows.counts)

    def fitted(x: Tensor, y: Tensor, at: Tensor) -> Tensor:
        hot = one_hot(y, 3).double()
        middle, shares = x.mean(dim=0), hot.mean(dim=0)
        inner = (x - middle).T @ (x - middle) + probe.penalty * torch.eye(d, dtype=torch.float64)
        return (at - middle) @ torch.linalg.solve(inner, (x - middle).T @ (hot - shares)) + shares

    near(probe.scores(rows.train), fitted(x, y, x))
    others = [torch.arange(len(x)) != i for i in range(len(x))]
    refits = torch.cat([fitted(x[o], y[o], x[~o]) for o in others])
    near(left_out_scores(rows, probe), refits)
    hot = one_hot(y, 3).double()
    rest = float((probe.scores(rows.train) - hot).square().sum())
    assert probe.gcv == pytest.approx(len(x) * rest / (len(x) - probe.degrees) ** 2, rel=1e-6)


def test_the_probe_of_merged_states_is_that_of_all_rows() -> None:
    x, y = drawn((9, 14, 7), 4, seed=3)
    rows = probe_rows([x], y, [x], y, classes=3)
    states = [ClassScatter.empty(classes=3, dim=4) for _ in range(2)]
    states[0].add(x[:13], y[:13])
    states[1].add(x[13:], y[13:])
    probe, middle = scattered_ridge(states[0].merge(states[1]))
    whole = ridge_probe(rows.eigenvalues, rows.centers, rows.counts)
    assert probe.penalty == pytest.approx(whole.penalty, rel=1e-9)
    near(probe.scores(x - middle), whole.scores(rows.train))


def test_rows_that_are_all_alike_have_the_largest_class_for_an_answer() -> None:
    x, y = torch.ones(5, 3, dtype=torch.float64), torch.tensor([0, 0, 0, 1, 1])
    rows = probe_rows([x], y, [x], y, classes=2)
    assert ridge_probe(rows.eigenvalues, rows.centers, rows.counts).scores(rows.test).argmax(dim=1).tolist() == [0] * 5


def test_a_matrix_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(axes_file, "MOST_AXES", 3)
    x, y = drawn((4, 4), 5, seed=0)
    with pytest.raises(InputError, match="at most 3; found 8 samples of 5 features"):
        probe_rows([x], y, [x], y, classes=2)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 6])
def test_mean_and_variance_of_the_distance_are_those_of_all_draws(m: int) -> None:
    rows = rows_of((6, 7), 3, tests=(2, 2))
    mean, variance = center_moments(rows).at(m)
    for k in range(2):
        own = rows.train[rows.labels == k]
        centers = torch.stack([own[list(chosen)].mean(dim=0) for chosen in combinations(range(len(own)), m)])
        distances = torch.cdist(rows.test, centers).square()
        close(mean[:, k], distances.mean(dim=1))
        near(variance[:, k], distances.var(dim=1, correction=0), scale=float(distances.max()) ** 2)


@pytest.mark.parametrize("counts", [(1, 1), (2, 2), (2, 3), (3, 3)])
def test_classes_of_very_few_samples_have_moments_too(counts: tuple[int, int]) -> None:
    rows = rows_of(counts, 3, tests=(2, 2))
    for m in range(1, min(counts) + 1):
        _, variance = center_moments(rows).at(m)
        own = rows.train[rows.labels == 0]
        centers = torch.stack([own[list(chosen)].mean(dim=0) for chosen in combinations(range(len(own)), m)])
        distances = torch.cdist(rows.test, centers).square()
        near(variance[:, 0], distances.var(dim=1, correction=0), scale=float(distances.max()) ** 2)


@pytest.mark.parametrize("apart", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_certificate_is_above_the_error_over_all_draws(apart: float, seed: int) -> None:
    rows = rows_of((4, 5, 4), 3, tests=(5, 3, 4), seed=seed, apart=apart)
    promised = few_shot_certificate(rows, (1, 2, 4, 5))
    assert set(promised) == {1, 2, 4}  # the smallest class has 4 samples
    for m, bound in promised.items():
        errors = []
        own = [rows.train[rows.labels == k] for k in range(3)]
        choices = [list(combinations(range(len(part)), m)) for part in own]
        for chosen in product(*choices):
            centers = torch.stack([part[list(which)].mean(dim=0) for part, which in zip(own, chosen, strict=True)])
            wrong = (torch.cdist(rows.test, centers).argmin(dim=1) != rows.labels_test).double()
            errors.append(torch.stack([wrong[rows.labels_test == k].mean() for k in range(3)]).mean())
        assert float(torch.stack(errors).mean()) <= bound + 1e-12


def test_with_all_samples_of_equal_classes_the_certificate_is_the_error_of_nearest_means() -> None:
    rows = rows_of((6, 6, 6), 3, tests=(20, 20, 20), apart=0.5)
    error = float(few_shot_errors(rows, (6,), draws=1, seed=0)[6])
    assert 0 < error < 0.6
    assert few_shot_certificate(rows, (6,))[6] == pytest.approx(error, abs=1e-12)


def test_few_shot_errors_are_of_the_draws_asked_for_and_fall_with_m() -> None:
    rows = rows_of((30, 40, 30), 6, tests=(20, 10, 20), apart=0.6)
    errors = few_shot_errors(rows, (1, 5, 30, 31), draws=40, seed=4)
    assert set(errors) == {1, 5, 30}
    assert all(len(each) == 40 for each in errors.values())
    assert float(errors[1].mean()) > float(errors[5].mean()) > float(errors[30].mean())
    again = few_shot_errors(rows, (5,), draws=40, seed=4)
    close(again[5], errors[5])

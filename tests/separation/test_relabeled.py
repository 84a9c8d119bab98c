"""D without each fold and under relabeled labels, from sums of groups: against D of the very rows, one by one."""

from __future__ import annotations

import statistics

import pytest
import torch
from torch import Tensor

import equisep
from equisep.separation import PAPER, Assignments, GroupSums, Relabelings
from equisep.separation import relabeled as relabeled_module
from equisep.separation.subspace import AS_GIVEN
from reference.shares import fuzziness_at_shares

FOLDS = 5


def scene(name: str) -> tuple[Tensor, Tensor]:
    """Features and labels."""
    generator = torch.Generator().manual_seed(7)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    sizes = {"imbalanced": [60, 30, 12, 11], "many classes": [6] * 40, "two classes": [40, 40]}.get(name, [30] * 4)
    y = torch.cat([torch.full((size,), k) for k, size in enumerate(sizes)])
    y = y[torch.randperm(len(y), generator=generator)]
    d = {"wide": 3000, "K above d": 3, "n below d": 400}.get(name, 12)
    means = draw(len(sizes), d)
    x = means[y] + draw(len(y), d)
    if name == "far and tight":
        x = means[y] + 1e-5 * draw(len(y), d) + 1e3
    if name == "dependent":  # one direction of the means is 10⁻⁵ of the others: B Bᵀ alone would lose it
        means = draw(len(sizes), d)
        means[:, 0] *= 1e-5
        means[3, 1:] = means[:3, 1:].mean(dim=0)
        x = means[y] + draw(len(y), d) * torch.tensor([1e-5] + [1.0] * (d - 1), dtype=torch.float64) * 1e-3
    if name == "tiny":  # float64 holds a direction of 10⁻⁷ of the others, and D sees it
        x = x[:, :3] * torch.tensor([1.0, 1.0, 2e-7], dtype=torch.float64)
    return x, y


SCENES = [
    "plain",
    "imbalanced",
    "many classes",
    "two classes",
    "wide",
    "K above d",
    "n below d",
    "far and tight",
    "dependent",
    "tiny",
]


def looked(
    x: Tensor, y: Tensor, *, relabelings: int = 2, kind: torch.dtype = torch.float64
) -> tuple[Relabelings, Assignments, Tensor]:
    """All rows seen in three uneven batches, both times."""
    classes = int(y.max()) + 1
    generator = torch.Generator().manual_seed(1)
    folds = torch.arange(len(y)) % FOLDS
    relabeled = torch.stack([y[torch.randperm(len(y), generator=generator)] for _ in range(relabelings)])
    rows_of = Assignments(y, folds, relabeled)
    sums = GroupSums(classes=classes, folds=FOLDS, relabelings=relabelings)
    cuts = [slice(0, 7), slice(7, len(y) // 2), slice(len(y) // 2, len(y))]
    for rows in cuts:
        sums.add([x[rows]], rows_of.part(rows))
    found = Relabelings(sums, convention=PAPER, folds=FOLDS, kind=kind)
    for rows in cuts:
        residuals = x[rows].to(torch.float64) - sums.centers.means[y[rows]]
        found.look(residuals.to(kind) @ found.directions.T, rows_of.part(rows))
    return found, rows_of, sums.centers.means


def chance(labelings: Relabelings, x: Tensor) -> float | None:
    wide = x.to(torch.float64)
    variance = float(wide.var(dim=0, unbiased=False).sum())
    size = float(wide.square().sum(dim=1).mean())
    return labelings.chance(size=size, variance=variance, eps=torch.finfo(x.dtype).eps, steps=AS_GIVEN)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", SCENES)
def test_each_fold_left_out(name: str, dtype: torch.dtype) -> None:
    if name in ("dependent", "tiny") and dtype == torch.float32:
        pytest.skip("float32 does not hold what is asked here")
    x, y = scene(name)
    x = x.to(dtype)
    labelings, rows_of, _ = looked(x, y)
    assert rows_of.folds is not None
    rank = min(int(y.max()), x.shape[1])
    for fold, value in enumerate(labelings.left_out(rank=rank)):
        kept = rows_of.folds != fold
        reference = fuzziness_at_shares(x[kept], y[kept], torch.bincount(y))
        assert value == pytest.approx(reference, rel=1e-7)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", [name for name in SCENES if name != "dependent"])
def test_random_labels(name: str, dtype: torch.dtype) -> None:
    if name == "tiny" and dtype == torch.float32:
        pytest.skip("float32 does not hold what is asked here")
    x, y = scene(name)
    x = x.to(dtype)
    labelings, rows_of, _ = looked(x, y)
    assert rows_of.relabeled is not None
    values = [equisep.fuzziness(x.to(torch.float64), each) for each in rows_of.relabeled]
    assert chance(labelings, x) == pytest.approx(statistics.median(values), rel=1e-7)


def test_directions_of_single_precision_keep_six_digits() -> None:
    x, y = scene("wide")
    labelings, rows_of, _ = looked(x.float(), y, kind=torch.float32)
    assert rows_of.folds is not None
    for fold, value in enumerate(labelings.left_out(rank=3)):
        kept = rows_of.folds != fold
        assert value == pytest.approx(fuzziness_at_shares(x.float()[kept], y[kept], torch.bincount(y)), rel=3e-6)


def test_means_in_one_decade_need_no_decomposition(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick way is the one taken, and the slow one where B Bᵀ would lose digits."""
    places: list[int] = []
    slow = Relabelings._decompose
    monkeypatch.setattr(
        Relabelings, "_decompose", lambda self, place, *rest: (places.append(place), slow(self, place, *rest))[1]
    )
    looked(*scene("plain"))
    assert places == []
    looked(*scene("dependent"))
    assert places


@pytest.mark.parametrize("name", ["plain", "imbalanced", "n below d"])
def test_decomposed_and_quick_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = looked(*scene(name))[0].left_out(rank=3)
    monkeypatch.setattr(relabeled_module, "CLEAR", 2.0)  # nothing is clear then
    assert looked(*scene(name))[0].left_out(rank=3) == pytest.approx(quick, rel=1e-10)


def test_a_class_that_only_one_fold_holds() -> None:
    """Without that fold the class is absent: the others decide."""
    x, y = scene("plain")
    folds = torch.where(y == 3, 0, torch.arange(len(y)) % FOLDS)
    sums = GroupSums(classes=4, folds=FOLDS, relabelings=0)
    rows_of = Assignments(y, folds)
    sums.add([x], rows_of)
    labelings = Relabelings(sums, convention=PAPER, folds=FOLDS, kind=torch.float64)
    labelings.look((x - sums.centers.means[y]) @ labelings.directions.T, rows_of)
    for fold, value in enumerate(labelings.left_out(rank=3)):
        kept = folds != fold
        shares = (
            torch.bincount(y) if fold else torch.bincount(y[kept])
        )  # without class 3 the others share what they have
        assert value == pytest.approx(fuzziness_at_shares(x[kept], y[kept], shares), rel=1e-9)

"""D of reweighted samples against D of the samples themselves, left out or repeated; standard errors against the truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from closeness import close
from equisep import fuzziness
from equisep.law.intervals import standard_error
from equisep.separation import PAPER, Assignments, Convention
from equisep.separation.noise.bootstrap import bootstrap_weights, reweighted_fuzziness
from reference.scenes import Scene, blobs, labels_of

SCENES = {
    "n above d": blobs(1, [30, 20, 15, 10, 8], 9),
    "n below d": blobs(2, [8, 7, 6, 5], 60),
    "K above d": blobs(3, [12, 9, 8, 7, 10, 11], 3),
    "far from the origin": blobs(4, [20] * 4, 10, offset=100.0),
}
CONVENTIONS = [
    Convention(weighting=weighting, center=center, normalization=normalization)
    for weighting in ("sample", "class", "mixed")
    for center in (None, "samples", "classes")
    for normalization in ("none", "classes")
]
scenes = pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES.keys())
conventions = pytest.mark.parametrize(
    "convention", CONVENTIONS, ids=lambda c: f"{c.weighting}-{c.center}-{c.normalization}"
)


def fold_weights(labels: torch.Tensor, *, folds: int, seed: int) -> torch.Tensor:
    """Row g is 0 on fold g and 1 elsewhere."""
    drawn = Assignments.of(labels, first=0, classes=1, folds=folds, relabelings=0, seed=seed).folds
    assert drawn is not None
    return (drawn != torch.arange(folds).unsqueeze(1)).to(torch.float64)


def reweighted(scene: Scene, weights: np.ndarray, convention: Convention = PAPER, *, classes: int = 0) -> Tensor:
    classes = classes or int(scene.y.max()) + 1
    return reweighted_fuzziness(
        torch.tensor(scene.x),
        torch.tensor(scene.y),
        weights=torch.tensor(weights, dtype=torch.float64),
        classes=classes,
        rank=min(len(np.unique(scene.y)) - 1, scene.x.shape[1]),
        convention=convention,
    )


def direct(scene: Scene, convention: Convention = PAPER) -> float:
    return fuzziness(
        *scene, weighting=convention.weighting, center=convention.center, normalization=convention.normalization
    )


@conventions
@scenes
def test_weights_of_one_give_the_fuzziness_of_the_data(scene: Scene, convention: Convention) -> None:
    close(reweighted(scene, np.ones((1, len(scene.y))), convention), [direct(scene, convention)])


@conventions
@scenes
def test_weights_of_zero_leave_samples_out(scene: Scene, convention: Convention) -> None:
    weights = np.random.default_rng(5).integers(0, 2, size=(4, len(scene.y)))
    expected = [direct(Scene(scene.x[row > 0], scene.y[row > 0]), convention) for row in weights]
    close(reweighted(scene, weights, convention), expected)


@conventions
@scenes
def test_whole_weights_repeat_samples(scene: Scene, convention: Convention) -> None:
    weights = np.random.default_rng(6).integers(0, 4, size=(4, len(scene.y)))
    expected = [direct(Scene(np.repeat(scene.x, row, axis=0), np.repeat(scene.y, row)), convention) for row in weights]
    close(reweighted(scene, weights, convention), expected)


@conventions
def test_a_common_factor_of_the_weights_changes_nothing(convention: Convention) -> None:
    scene = SCENES["n above d"]
    weights = np.random.default_rng(7).random((2, len(scene.y)))
    close(reweighted(scene, weights * 1e-4, convention), reweighted(scene, weights, convention))


@conventions
@pytest.mark.parametrize("name", ["n above d", "n below d", "K above d"])
def test_a_replicate_that_loses_a_class_is_the_fuzziness_of_the_others(name: str, convention: Convention) -> None:
    scene = SCENES[name]
    stays = scene.y != 1
    expected = direct(Scene(scene.x[stays], scene.y[stays]), convention)
    close(reweighted(scene, stays[None].astype(float), convention), [expected])


@conventions
def test_classes_that_never_had_samples_change_nothing(convention: Convention) -> None:
    scene = SCENES["n above d"]
    close(reweighted(scene, np.ones((1, len(scene.y))), convention, classes=9), [direct(scene, convention)])


def test_a_lower_rank_cuts_every_replicate() -> None:
    scene = SCENES["n above d"]
    weights = torch.ones(2, len(scene.y), dtype=torch.float64)
    x, y = torch.tensor(scene.x), torch.tensor(scene.y)
    found = reweighted_fuzziness(x, y, weights=weights, classes=5, rank=2, convention=PAPER)
    values = [fuzziness(*scene, tol=tol) for tol in np.linspace(0, 0.99, 100)]
    assert any(abs(float(found[0]) / value - 1) < 1e-9 for value in values)
    assert float(found[0]) < fuzziness(*scene)


def test_replicates_come_out_the_same_in_many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = SCENES["n above d"]
    weights = np.random.default_rng(8).integers(1, 4, size=(7, len(scene.y)))
    whole = reweighted(scene, weights)
    monkeypatch.setattr("equisep.separation.noise.bootstrap.CHUNK_BYTES", 1)
    close(reweighted(scene, weights), whole)


def test_bootstrap_draws_as_many_samples_of_each_class_as_it_has() -> None:
    y = torch.tensor(SCENES["n above d"].y)
    weights = bootstrap_weights(y, resamples=50, seed=0)
    for k in range(5):
        assert torch.equal(weights[:, y == k].sum(dim=1), torch.full((50,), float((y == k).sum()), dtype=torch.float64))
    assert torch.equal(weights, weights.round())
    assert 0.3 < float((weights == 0).double().mean()) < 0.42  # a sample is left out with probability about 1/e


def test_the_seed_decides_the_draws() -> None:
    y = torch.tensor(SCENES["n above d"].y)
    for draw in (lambda seed: bootstrap_weights(y, resamples=5, seed=seed), lambda s: fold_weights(y, folds=5, seed=s)):
        assert torch.equal(draw(1), draw(1))
        assert not torch.equal(draw(1), draw(2))


@pytest.mark.parametrize("kind", ["bootstrap", "jackknife"])
@pytest.mark.parametrize(
    ("sizes", "d", "spread"),
    [([60] * 5, 10, 1.0), ([60] * 5, 10, 0.2), ([30] * 5, 40, 1.0), ([100, 60, 30, 15, 10], 10, 1.0)],
    ids=["usual", "well separated", "n_k below d", "imbalanced"],
)
def test_standard_errors_of_ln_d_are_within_a_factor_of_fresh_data_sets(kind, sizes, d, spread) -> None:
    rng = np.random.default_rng(9)
    means, y = rng.normal(size=(5, d)), labels_of(sizes)

    def fresh() -> Scene:
        return Scene(means[y] + spread * rng.normal(size=(len(y), d)), y)

    truth = np.std([np.log(fuzziness(*fresh())) for _ in range(120)], ddof=1)
    estimates = []
    for seed in range(6):
        labels = torch.tensor(y)
        weights = (
            bootstrap_weights(labels, resamples=100, seed=seed)
            if kind == "bootstrap"
            else fold_weights(labels, folds=20, seed=seed)
        )
        estimates.append(standard_error(reweighted(fresh(), weights.numpy()).log().numpy(), kind))
    assert 1 / 1.5 < np.mean(estimates) / truth < 1.5


def test_many_replicates_in_fewer_dimensions_agree_with_each_alone() -> None:
    """Wide features: many replicates are worked out after a QR, one by one directly; the numbers are the same."""
    generator = torch.Generator().manual_seed(3)
    y = torch.arange(30) % 3
    x = torch.randn(30, 80, generator=generator, dtype=torch.float64) + 2 * torch.eye(3, 80, dtype=torch.float64)[y]
    weights = bootstrap_weights(y, resamples=50, seed=0)
    options = {"classes": 3, "rank": 2, "convention": PAPER}
    together = reweighted_fuzziness(x, y, weights=weights, **options)
    alone = torch.cat([reweighted_fuzziness(x, y, weights=row.unsqueeze(0), **options) for row in weights])
    close(together, alone)

"""Minority collapse under weight decay: the closed forms against a plain minimization over W and H."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, special

from closeness import close
from equisep.errors import InputError
from equisep.peeled import weight_decay_rescue, weight_decay_threshold


def minority_spread(
    sizes: list[int], decays: tuple[float, float], weights: list[float], mean: str = "samples"
) -> float:
    """Minimize (1/N) Σ w CE + (λ_W/2)‖W‖² + (λ_H/2) Σ n_k‖h_k‖² from a random start; how far the last two classifiers differ."""
    n, w, K = np.array(sizes, float), np.array(weights), len(sizes)
    shares = w * n / (n.sum() if mean == "samples" else (w * n).sum())

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        W, H = flat.reshape(2, K, K)
        Z = H @ W.T
        value = shares @ (special.logsumexp(Z, axis=1) - np.diag(Z))
        pull = shares[:, None] * (special.softmax(Z, axis=1) - np.eye(K))
        value += decays[0] / 2 * (W**2).sum() + decays[1] / 2 * (n @ (H**2).sum(axis=1))
        return value, np.stack([pull.T @ H + decays[0] * W, pull @ W + decays[1] * n[:, None] * H]).ravel()

    start = np.random.default_rng(0).normal(size=2 * K * K)
    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 0, "gtol": 1e-10}
    W = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x.reshape(2, K, K)[0]
    return float(np.linalg.norm(W[-1] - W[-2]) / np.linalg.norm(W))


def decays_of(strength: float) -> dict[str, float]:
    """λ_W and λ_H with √(λ_W λ_H) = strength."""
    return {"classifier_decay": 4 * strength, "feature_decay": strength / 4}


def pair(strength: float) -> tuple[float, float]:
    return 4 * strength, strength / 4


def test_the_threshold_is_its_formula_and_collapse_begins_there() -> None:
    strength = 0.01
    ratio = weight_decay_threshold(2, 2, 16, **decays_of(strength))
    close(ratio, (1 / (strength * 4) - 2) / 2)  # 11.5
    sizes = [16 * math.floor(ratio), 16 * math.floor(ratio), 16, 16]
    assert minority_spread(sizes, pair(strength), [1] * 4) > 0.02
    sizes = [16 * math.ceil(ratio), 16 * math.ceil(ratio), 16, 16]
    assert minority_spread(sizes, pair(strength), [1] * 4) < 1e-3


@pytest.mark.parametrize("mean", ["samples", "weights"])
def test_the_least_loss_weight_saves_the_minority(mean: str) -> None:
    sizes, strength = [90, 90, 10, 10], 0.02
    found = weight_decay_rescue(sizes, **decays_of(strength), mean=mean)
    assert [fate.collapsed for fate in found] == [False, False, True, True]
    least = found[2].least_loss_weight
    if mean == "samples":
        close(least, 200 * strength / math.sqrt(10))
    else:
        close(least * math.sqrt(10), strength * (180 + 20 * least))
    for side, collapsed in ((0.93, True), (1.07, False)):
        weights = [1, 1, least * side, least * side]
        again = weight_decay_rescue(sizes, **decays_of(strength), loss_weights=weights, mean=mean)
        assert again[2].collapsed is collapsed
        assert (minority_spread(sizes, pair(strength), weights, mean) < 1e-3) is collapsed


def test_oversampling_counts_in_the_number_of_samples_too() -> None:
    sizes, strength = [9000, 9000, 1000, 1000], 0.0016
    fate = weight_decay_rescue(sizes, **decays_of(strength))[2]
    assert fate.collapsed and fate.oversampling > 1
    close(math.sqrt(1000 * fate.oversampling), strength * (18000 + 2000 * fate.oversampling))
    for side, collapsed in ((0.99, True), (1.01, False)):
        copies = round(1000 * fate.oversampling * side)
        again = weight_decay_rescue([9000, 9000, copies, copies], **decays_of(strength))
        assert again[2].collapsed is collapsed


def test_where_nothing_saves_there_is_no_number() -> None:
    fate = weight_decay_rescue([100, 100, 10, 10], **decays_of(0.5), mean="weights")[2]
    assert fate.collapsed and fate.least_loss_weight is None and fate.oversampling is None
    assert weight_decay_threshold(5, 5, 100, **decays_of(1)) is None


def test_one_class_of_its_size_has_nothing_to_coincide_with() -> None:
    found = weight_decay_rescue([100, 10, 10], **decays_of(0.5))
    assert not found[0].collapsed and found[0].least_loss_weight is None and found[0].alike == 1
    assert found[1].collapsed and found[1].alike == 2


def test_only_the_product_of_the_decays_counts() -> None:
    one = weight_decay_threshold(3, 4, 50, classifier_decay=1e-4, feature_decay=1e-2)
    close(one, weight_decay_threshold(3, 4, 50, classifier_decay=1e-3, feature_decay=1e-3))


@pytest.mark.parametrize("bad", [0, -1e-4, math.nan, math.inf, "small"])
def test_bad_decays_are_told(bad: object) -> None:
    with pytest.raises(InputError, match="`classifier_decay` must be a finite number above 0"):
        weight_decay_threshold(5, 5, 50, classifier_decay=bad, feature_decay=1)
    with pytest.raises(InputError, match="`feature_decay` must be a finite number above 0"):
        weight_decay_rescue([5, 5], classifier_decay=1, feature_decay=bad)


def test_other_bad_input_is_told() -> None:
    with pytest.raises(InputError, match="needs at least 2 minority classes; found 1"):
        weight_decay_threshold(5, 1, 50, **decays_of(1))
    with pytest.raises(InputError, match="The size of a minority class must be a whole number"):
        weight_decay_threshold(5, 5, 0, **decays_of(1))
    with pytest.raises(InputError, match="divided by `samples` or by `weights`; found `classes`"):
        weight_decay_rescue([5, 5], **decays_of(1), mean="classes")
    with pytest.raises(InputError, match="needs at least 2 classes"):
        weight_decay_rescue([5], **decays_of(1))
    with pytest.raises(InputError, match="Loss weights must be 2 numbers"):
        weight_decay_rescue([5, 5], **decays_of(1), loss_weights=[1])

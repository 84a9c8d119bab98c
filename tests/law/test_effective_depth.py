"""Effective depth, by both rules, and what counts as perfect."""

from __future__ import annotations

import numpy as np
import pytest

from equisep.errors import InputError
from equisep.law.effective_depth import effective_depth, least_separable
from reference import plain


def test_effective_depth_is_the_first_layer_from_which_on_all_stay_separated() -> None:
    assert effective_depth([1.0, 0.5, 0.99, 1.0, 1.0]) == 2
    assert effective_depth([1.0, 0.5, 0.99, 1.0, 1.0], epsilon=0.0) == 3
    assert effective_depth([1.0, 1.0, 0.98, 1.0, 1.0]) == 3
    assert effective_depth([1.0, 1.0, 1.0, 0.98]) is None
    assert effective_depth([1.0, None, 1.0]) == 2
    assert effective_depth([0.0, 1.0, 1.0]) == 1
    assert effective_depth([1.0]) is effective_depth([]) is None


def test_the_least_separable_layer_is_the_first_after_the_input() -> None:
    """Galanti & Galanti's own depth, for their figures."""
    assert least_separable([1.0, 0.5, 0.99, 1.0, 0.5]) == 3
    assert least_separable([1.0, 0.5, 0.99, 1.0, 1.0], epsilon=0.01) == 2
    assert least_separable([1.0, 0.5, 0.9]) is None
    assert least_separable([1.0, 0.99, 0.991], epsilon=0.01, above=True) == 2
    assert least_separable([1.0, float(np.float32(0.99)), 1.0], epsilon=0.01, above=True) == 2


@pytest.mark.parametrize("samples", [100, 600, 60000])
def test_effective_depth_counts_an_error_of_exactly_epsilon(samples: int) -> None:
    for wrong in range(0, samples, samples // 100):
        accuracies, epsilon = [0.0, (samples - wrong - 1) / samples, (samples - wrong) / samples], wrong / samples
        assert effective_depth(accuracies, epsilon=epsilon) == 2
        errors = np.array([samples, wrong + 1, wrong]) / samples
        assert plain.effective_depth(errors.tolist(), epsilon) == 2


@pytest.mark.parametrize("epsilon", [-0.1, 1.0, float("nan")])
def test_effective_depth_refuses_an_epsilon_that_is_no_share(epsilon: float) -> None:
    with pytest.raises(InputError, match="`epsilon` is a share of samples, 0 ≤ ε < 1; found"):
        effective_depth([1.0], epsilon=epsilon)

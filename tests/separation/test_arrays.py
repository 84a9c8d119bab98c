"""Every sentence that arrays and labels can be refused with."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from equisep import cdnv, class_fuzziness, fuzziness, ncc_accuracy
from equisep.errors import FeatureError, InputError, LabelError, NumericalError
from equisep.labels import ONE_HOT, check_range, check_two_classes, class_indices

X = np.arange(12.0).reshape(6, 2) ** 2
Y = [0, 0, 1, 1, 2, 2]


def refuses(error: type[Exception], sentence: str, action: Callable[..., Any], *args: Any, **options: Any) -> None:
    with pytest.raises(error, match="^" + re.escape(sentence)):
        action(*args, **options)


@pytest.mark.parametrize("metric", [fuzziness, class_fuzziness, cdnv, ncc_accuracy])
def test_one_class_is_refused_by_the_name_of_the_function_and_of_the_class(metric) -> None:
    sentence = f"`{metric.__name__}` needs at least 2 classes; all 6 labels are 3. Check the labels."
    refuses(LabelError, sentence, metric, X, [3] * 6)


def test_counts_of_one_class_are_refused() -> None:
    counts = torch.tensor([0, 9, 0])
    sentence = "`measure` needs at least 2 classes; all 9 labels are 1. Check the labels."
    refuses(LabelError, sentence, check_two_classes, counts, asked="`measure`")


def test_counts_of_no_class_are_refused() -> None:
    sentence = "`measure` needs at least 2 classes; there are no samples. Check the labels."
    refuses(LabelError, sentence, check_two_classes, torch.zeros(3, dtype=torch.int64), asked="`measure`")


def test_float_labels_are_refused() -> None:
    sentence = "Class labels are integers; found float32 values such as 0.5. Convert class numbers with `y.long()`;"
    refuses(LabelError, sentence, fuzziness, X, torch.full((6,), 0.5))


def test_whole_numbers_in_float_are_refused_too() -> None:
    refuses(LabelError, "Class labels are integers; found float64 values such as 0.0.", fuzziness, X, np.array(Y) * 1.0)


def test_labels_of_higher_rank_are_refused() -> None:
    sentence = "Class labels are one integer a sample; found targets of shape (6, 1, 2)."
    refuses(LabelError, sentence, fuzziness, X, np.zeros((6, 1, 2), dtype=int))


def test_multi_label_targets_are_refused() -> None:
    rows = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    sentence = (
        "Targets of shape (6, 3) are neither class indices nor one-hot rows: 2 of 6 rows do not hold exactly one 1. "
        "Multi-label and soft targets are no classes; pass one class index per sample."
    )
    refuses(LabelError, sentence, fuzziness, X, rows)


def test_soft_targets_are_refused() -> None:
    sentence = "Targets of shape (6, 2) are neither class indices nor one-hot rows: 6 of 6 rows"
    refuses(LabelError, sentence, fuzziness, X, np.full((6, 2), 0.5))


def test_labels_that_are_no_numbers_are_refused() -> None:
    refuses(LabelError, "Class labels are integers; found words such as 'a'. Number", fuzziness, X, list("aabbcc"))


def test_features_that_are_no_numbers_are_refused() -> None:
    refuses(InputError, "The features should be a tensor or an array; found dict (", fuzziness, {"x": X}, Y)


def test_ragged_features_are_refused() -> None:
    refuses(InputError, "The features should be a tensor or an array; found list (", fuzziness, [[1.0], [1.0, 2.0]], Y)


def test_a_label_above_the_range_is_refused_with_the_number_of_classes_to_ask_for() -> None:
    sentence = (
        "Labels must lie in 0 … 9 (10 outputs of the classifier); found 0 … 12, 2 of 4 outside. "
        "Pass `classes=13`, or check the labels."
    )
    labels = torch.tensor([0, 3, 11, 12])
    refuses(LabelError, sentence, check_range, labels, 10, owner="10 outputs of the classifier")


def test_a_label_below_the_range_is_refused() -> None:
    sentence = "Labels must lie in 0 … 9 (`classes=10`); found -1 … 3, 1 of 3 outside. Check the labels."
    refuses(LabelError, sentence, check_range, torch.tensor([0, 3, -1]), 10, owner="`classes=10`")


def test_labels_inside_the_range_or_none_at_all_pass() -> None:
    check_range(torch.tensor([0, 9]), 10, owner="`classes=10`")
    check_range(torch.zeros(0, dtype=torch.int64), 10, owner="`classes=10`")


def test_features_without_a_feature_axis_are_refused() -> None:
    refuses(InputError, "`fuzziness` needs features of shape n × d; found shape (6,).", fuzziness, X[:, 0], Y)


def test_complex_features_are_refused() -> None:
    refuses(InputError, "`fuzziness` needs real features; found torch.complex128.", fuzziness, X + 1j, Y)


def test_a_different_number_of_labels_is_refused() -> None:
    sentence = "`cdnv` needs one label per sample; found 6 samples and 5 labels."
    refuses(InputError, sentence, cdnv, X, Y[:5])


@pytest.mark.parametrize("shape", [(0, 3), (6, 0)])
def test_features_without_samples_or_without_features_are_refused(shape: tuple[int, int]) -> None:
    sentence = f"`fuzziness` needs at least one sample and one feature; found shape {shape}."
    labels = np.array(Y[: shape[0]], dtype=int)
    refuses(InputError, sentence, fuzziness, np.zeros(shape), labels)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_nan_and_inf_are_counted(dtype: torch.dtype) -> None:
    x = torch.tensor(X).to(dtype)
    x[1, 1], x[3, 0] = float("nan"), float("-inf")
    sentence = "`fuzziness` needs finite features; 2 of 12 numbers are NaN or Inf."
    refuses(FeatureError, sentence, fuzziness, x, Y)


@pytest.mark.parametrize("metric", [fuzziness, class_fuzziness])
def test_class_means_that_coincide_are_refused(metric) -> None:
    sentence = f"`{metric.__name__}` needs class means that differ; all 3 coincide to rounding (below "
    refuses(NumericalError, sentence, metric, np.ones((6, 2)), Y)


def test_class_means_that_coincide_beside_a_spread_are_refused() -> None:
    x = np.tile([[1.0, 0.1], [-1.0, -0.3]], (3, 1)) + 0.7
    refuses(NumericalError, "`fuzziness` needs class means that differ; all 3 coincide", fuzziness, x, Y)


@pytest.mark.usefixtures("as_users_run_it")
def test_an_unknown_weighting_is_refused_with_the_nearest_known() -> None:
    sentence = "No weighting `samples`. Did you mean `sample`? Known: sample, class, mixed."
    refuses(InputError, sentence, fuzziness, X, Y, weighting="samples")


@pytest.mark.usefixtures("as_users_run_it")
def test_an_unknown_center_is_refused() -> None:
    sentence = "No center `origin`. Known: samples, classes."
    refuses(InputError, sentence, fuzziness, X, Y, center="origin")


@pytest.mark.usefixtures("as_users_run_it")
def test_an_unknown_normalization_is_refused() -> None:
    sentence = "No normalization `k`. Known: none, classes."
    refuses(InputError, sentence, fuzziness, X, Y, normalization="k")


@pytest.mark.parametrize("tol", [-1e-3, 1.0, float("nan")])
def test_a_tolerance_that_is_no_share_is_refused(tol: float) -> None:
    sentence = f"`tol` is relative to the largest singular value: 0 ≤ tol < 1; found {tol}."
    refuses(InputError, sentence, fuzziness, X, Y, tol=tol)


def test_one_hot_rows_are_classes_with_a_note() -> None:
    for rows in (np.eye(3, dtype=int)[Y], np.eye(3)[Y], np.eye(3, dtype=bool)[Y]):
        labels, note = class_indices(rows)
        assert labels.tolist() == Y
        assert note == ONE_HOT


def test_a_column_of_labels_is_a_vector_without_a_note() -> None:
    labels, note = class_indices(np.array(Y)[:, None])
    assert labels.tolist() == Y
    assert note is None


def test_bool_labels_are_two_classes() -> None:
    assert class_indices([True, False])[0].tolist() == [1, 0]

"""The tests' own checks: types and shapes of what functions and records of the house are given, unless a test asks for none."""

from __future__ import annotations

import pytest
import torch

from equisep.separation.assignments import Assignments
from equisep.separation.convention import Convention
from equisep.separation.subspace import ClassSubspace

beartype = pytest.importorskip("beartype", reason="beartype, which checks types here, is not installed")
jaxtyping = pytest.importorskip("jaxtyping", reason="jaxtyping, which checks shapes here, is not installed")
REFUSED = (jaxtyping.TypeCheckError, beartype.roar.BeartypeCallHintViolation)
LABELS = torch.tensor([0, 1, 2])


def test_shapes_of_functions_and_records_are_checked() -> None:
    means = torch.eye(3, dtype=torch.float64)
    assert ClassSubspace.spanned(LABELS + 1, means, Convention()).rank == 2
    with pytest.raises(jaxtyping.TypeCheckError):
        ClassSubspace.spanned(LABELS[:2], means, Convention())
    assert len(Assignments(LABELS, folds=LABELS).labels) == 3
    with pytest.raises(jaxtyping.TypeCheckError):
        Assignments(LABELS, folds=LABELS[:2])


def test_types_without_a_shape_are_checked() -> None:
    with pytest.raises(REFUSED):
        Convention(weighting=3)  # type: ignore[arg-type]


@pytest.mark.usefixtures("as_users_run_it")
def test_a_test_may_do_without() -> None:
    assert len(Assignments(LABELS, folds=LABELS[:2]).labels) == 3

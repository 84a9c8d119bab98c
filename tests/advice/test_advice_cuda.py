"""`cut` and `noise` on a GPU give what they give on the CPU."""

from __future__ import annotations

import pytest
import torch

from advice.on_cuda import KINDS, check_cut, check_noise
from equisep.advice.cut import shorten

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.fixture(autouse=True)
def whole_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products in float32, which a GPU may shorten; and times are no part of these tests."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    monkeypatch.setattr(shorten, "MOST_ROUNDS", 2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_is_that_of_the_cpu(kind: str) -> None:
    check_cut(kind)


def test_a_linear_head_is_that_of_the_cpu() -> None:
    check_cut("resnet", head="linear")


def test_noise_on_weights_does_what_it_does_on_the_cpu() -> None:
    check_noise()

"""Augmentation: exact where no interpolation is needed, the right way round, and the same on every device."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from closeness import close
from equisep.errors import InputError
from equisep.training.augment import CROP_FLIP_ROTATE, PADDING, TURNS, Moves, apply, draw_moves


def images(
    count: int = 6, *, channels: int = 3, height: int = 32, width: int = 32, dtype: torch.dtype = torch.float32
) -> Tensor:
    return torch.randn(count, channels, height, width, generator=torch.Generator().manual_seed(3)).to(dtype)


def moves(count: int, *, down: int = 0, right: int = 0, flip: bool = False, turns: int = 0) -> Moves:
    return Moves(*(torch.full((count,), value) for value in (down, right, flip, turns)))


def test_no_move_is_the_identity() -> None:
    x = images()
    assert torch.equal(apply(x, moves(6)), x)


def test_a_flip_is_exact() -> None:
    x = images(height=5, width=8)
    assert torch.equal(apply(x, moves(6, flip=True)), x.flip(-1))


@pytest.mark.parametrize(("down", "right"), [(4, 0), (-4, 3), (0, -1), (2, 2)])
def test_a_crop_is_a_window_of_the_padded_image(down: int, right: int) -> None:
    x = images(height=9, width=7)
    padded = torch.nn.functional.pad(x, (PADDING,) * 4)
    top, left = PADDING + down, PADDING + right
    window = padded[:, :, top : top + 9, left : left + 7]
    assert torch.equal(apply(x, moves(6, down=down, right=right)), window)
    assert torch.equal(apply(x, moves(6, down=down, right=right, flip=True)), window.flip(-1))


@pytest.mark.parametrize(("turns", "quarters"), [(6, 1), (12, 2), (18, 3)])
def test_six_turns_of_15_degrees_are_a_quarter_counterclockwise(turns: int, quarters: int) -> None:
    x = images()
    assert (apply(x, moves(6, turns=turns)) - torch.rot90(x, quarters, (2, 3))).abs().max() < 1e-5
    double = images(dtype=torch.float64)
    assert (apply(double, moves(6, turns=turns)) - torch.rot90(double, quarters, (2, 3))).abs().max() < 1e-12


def test_half_a_turn_of_an_oblong_image() -> None:
    x = images(height=6, width=11, dtype=torch.float64)
    close(apply(x, moves(6, turns=12)), x.flip((-1, -2)))


@pytest.mark.parametrize("turns", [1, 2, 5, 7, 23])
def test_a_straight_slope_turns_with_the_image(turns: int) -> None:
    """Bilinear interpolation is exact for x ↦ a·x, whose rotation is known; read where nothing comes from outside."""
    side, center = 33, 16.0
    y, x = torch.meshgrid(torch.arange(side).double() - center, torch.arange(side).double() - center, indexing="ij")
    angle = math.radians(15 * turns)
    turned = apply(x[None, None], moves(1, turns=turns))[0, 0]
    inside = x**2 + y**2 < 15**2
    expected = x * math.cos(angle) - y * math.sin(angle)
    assert (turned - expected)[inside].abs().max() < 1e-12


def test_each_image_has_moves_of_its_own_and_order_is_crop_flip_turn() -> None:
    x = images(3)
    mixed = Moves(
        down=torch.tensor([0, 2, 0]),
        right=torch.tensor([0, 0, -3]),
        flip=torch.tensor([True, False, True]),
        turns=torch.tensor([0, 0, 6]),
    )
    out = apply(x, mixed)
    assert torch.equal(out[:1], x[:1].flip(-1))
    assert torch.equal(out[1:2], apply(x[1:2], moves(1, down=2)))
    third = torch.rot90(apply(x[2:], moves(1, right=-3, flip=True)), 1, (2, 3))
    assert (out[2:] - third).abs().max() < 1e-5


def test_the_generator_alone_decides() -> None:
    x = images(40)
    first, second, other = (CROP_FLIP_ROTATE(x, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, second) and not torch.equal(first, other)
    assert first.shape == x.shape and first.dtype == x.dtype
    double = CROP_FLIP_ROTATE(x.double(), torch.Generator().manual_seed(0))
    assert double.dtype == torch.float64 and (double - first).abs().max() < 1e-4
    assert torch.equal(x, images(40)), "the images themselves stay"


def test_every_move_is_drawn_about_as_often() -> None:
    count = 24_000
    drawn = draw_moves(count, torch.Generator().manual_seed(0))
    shifts = 2 * PADDING + 1
    for values, kinds, lowest in (
        (drawn.down, shifts, -PADDING), (drawn.right, shifts, -PADDING), (drawn.flip.long(), 2, 0), (drawn.turns, TURNS, 0),
    ):  # fmt: skip
        often = torch.bincount(values - lowest, minlength=kinds).double()
        assert len(often) == kinds
        spread = math.sqrt(count / kinds * (1 - 1 / kinds))
        assert (often - count / kinds).abs().max() < 5 * spread
    together = torch.stack([drawn.down, drawn.right, drawn.flip.long(), drawn.turns]).double().corrcoef()
    assert (together - torch.eye(4, dtype=torch.float64)).abs().max() < 5 / math.sqrt(count)


def test_no_images() -> None:
    assert CROP_FLIP_ROTATE(images(0), torch.Generator()).shape == (0, 3, 32, 32)


@pytest.mark.usefixtures("as_users_run_it")
def test_samples_that_are_no_images_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"are of images, .*; found shape \(3, 8\)\. Pass images that are not flattened"
    ):
        CROP_FLIP_ROTATE(torch.zeros(3, 8), torch.Generator())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_same_on_a_gpu() -> None:
    x = images(64)
    here = CROP_FLIP_ROTATE(x, torch.Generator().manual_seed(5))
    there = CROP_FLIP_ROTATE(x.cuda(), torch.Generator().manual_seed(5))
    assert there.is_cuda and (there.cpu() - here).abs().max() < 1e-4
    with pytest.raises(InputError, match="generator on the CPU"):
        CROP_FLIP_ROTATE(x, torch.Generator("cuda"))

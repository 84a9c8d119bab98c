"""Random crop, flip and rotation of a batch of images, where the images are (Galanti & Galanti 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from equisep.errors import InputError
from equisep.shapes import Bool, Float, Int

PADDING = 4  # zeros on every side before the crop: shifts of up to four pixels either way
STEP = 15  # degrees
TURNS = 24  # rotations by STEP · k degrees, k = 0 … 23


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """What is done to each image of a batch, in this order.

    down, right     how many pixels the crop's window moves over the padded image, from −4 to 4
    flip            whether left and right change places
    turns           k: the image is rotated by 15k degrees, counterclockwise
    """

    down: Int[Tensor, " b"]
    right: Int[Tensor, " b"]
    flip: Bool[Tensor, " b"]
    turns: Int[Tensor, " b"]


def augment(images: Float[Tensor, "b c h w"], generator: torch.Generator) -> Float[Tensor, "b c h w"]:
    """Each image cropped at random after padding by 4, flipped half the time, and rotated by 15k degrees, k in 0 … 23.

    What is drawn depends on the state of `generator`, a CPU one, and the number of images alone, whatever their device.
    Zeros come in from outside: the mean color, where images are standardized.
    """
    return apply(images, draw_moves(len(images), generator))


def draw_moves(count: int, generator: torch.Generator) -> Moves:
    """Uniform and independent moves of `count` images."""
    if generator.device.type != "cpu":
        raise InputError(
            f"Augmentation draws from a generator on the CPU, so that every device sees the same images; found one on "
            f"{generator.device}. Pass torch.Generator()."
        )

    def draw(low: int, high: int) -> Int[Tensor, " b"]:
        return torch.randint(low, high + 1, (count,), generator=generator, device="cpu")

    return Moves(
        down=draw(-PADDING, PADDING), right=draw(-PADDING, PADDING), flip=draw(0, 1).bool(), turns=draw(0, TURNS - 1)
    )


def apply(images: Float[Tensor, "b c h w"], moves: Moves) -> Float[Tensor, "b c h w"]:
    """The images after the moves; those that are not rotated are moved by whole pixels, exactly."""
    moved = _shift_and_flip(images, moves)
    turned = moves.turns % TURNS != 0
    if not bool(turned.any()):
        return moved
    chosen = turned.nonzero().flatten()
    rows = chosen.to(images.device)
    return moved.index_copy(0, rows, _rotate(moved[rows], moves.turns[chosen]))


def _shift_and_flip(images: Float[Tensor, "b c h w"], moves: Moves) -> Float[Tensor, "b c h w"]:
    """Pixel (i, j) from (i + down, j + right), and for flipped images from (i + down, w − 1 − j + right); zero if outside."""
    count, _, height, width = images.shape
    device = images.device
    down, right, flip = (tensor.to(device)[:, None] for tensor in (moves.down, moves.right, moves.flip))
    i = torch.arange(height, device=device)[None, :] + down  # (b, h)
    j = torch.arange(width, device=device)[None, :].expand(count, -1)
    j = torch.where(flip, width - 1 - j, j) + right  # (b, w)
    inside = ((i >= 0) & (i < height))[:, :, None] & ((j >= 0) & (j < width))[:, None, :]  # (b, h, w)
    batch = torch.arange(count, device=device)[:, None, None]
    taken = images.permute(0, 2, 3, 1)[batch, i.clamp(0, height - 1)[:, :, None], j.clamp(0, width - 1)[:, None, :]]
    return (taken * inside[..., None].to(images.dtype)).permute(0, 3, 1, 2).contiguous()


def _rotate(images: Float[Tensor, "b c h w"], turns: Int[Tensor, " b"]) -> Float[Tensor, "b c h w"]:
    """Rotated by 15k degrees about the center, counterclockwise, bilinear; corners that come from outside are zero.

    A pixel at (x, y) from the center, x to the right and y down, comes from (x cos − y sin, x sin + y cos). `affine_grid`
    counts in halves of width and height, so that the mixed terms carry their ratio.
    """
    _, _, height, width = images.shape
    angle = turns.double() * (math.pi * STEP / 180)
    cos, sin, none = angle.cos(), angle.sin(), torch.zeros_like(angle)
    matrix = torch.stack(
        [
            torch.stack([cos, -sin * (height / width), none], dim=1),
            torch.stack([sin * (width / height), cos, none], dim=1),
        ],
        dim=1,
    )
    grid = affine_grid(matrix.to(images), list(images.shape), align_corners=False)
    return grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)

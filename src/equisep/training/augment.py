"""Random crop, flip and rotation of a batch of images, where the images are (Galanti & Galanti 2022)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from equisep.errors import InputError
from equisep.shapes import Bool, Float, Int

PADDING = 4  # zeros on every side before the crop: shifts of up to four pixels either way
STEP = 15  # degrees
TURNS = 24  # rotations by STEP · k degrees, k = 0 … 23


@dataclass(frozen=True, slots=True)
class Augmentation:
    """A change of batches in two halves, so that its second can be a part of a CUDA graph.

    draw        chance for so many samples, from a generator on the CPU: a tensor with one row per sample.
    apply       the samples changed by it, on their device, without waiting for it. A graph repeats what it did once: all
                that differs from batch to batch has to be in what was drawn.
    """

    draw: Callable[[int, torch.Generator], Tensor]
    apply: Callable[[Tensor, Tensor], Tensor]

    def __call__(self, samples: Tensor, generator: torch.Generator) -> Tensor:
        """Both halves."""
        return self.apply(samples, self.drawn(len(samples), generator).to(samples.device))

    def drawn(self, count: int, generator: torch.Generator) -> Tensor:
        """What is drawn for so many samples; refused where it is not one row for each."""
        return one_row_each(self.draw(count, generator), count, of="`draw` of an `Augmentation`")


def one_row_each(found: object, count: int, *, of: str) -> Tensor:
    """What a function of the user's gave for a batch, refused where it is no tensor with one row per sample."""
    if isinstance(found, Tensor) and found.ndim and len(found) == count:
        return found
    shown = f"a tensor of shape {tuple(found.shape)}" if isinstance(found, Tensor) else f"`{type(found).__name__}`"
    raise InputError(f"{of} gave {shown} for a batch of {count} samples. Return a tensor with one row per sample.")


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
    """The images after the moves; those that are not rotated are moved by whole pixels, exactly.

    All are rotated, and what was not to be is put back: a choice by their number would wait for the device.
    """
    if images.ndim != 4:
        raise InputError(
            f"Crops and rotations are of images, (batch, colors, height, width); found shape {tuple(images.shape)}. Pass "
            "images that are not flattened."
        )
    moved = _shift_and_flip(images, moves)
    if not len(images):
        return moved
    turns = moves.turns.to(images.device)
    turned = (turns % TURNS != 0)[:, None, None, None]
    return torch.where(turned, _rotate(moved, turns), moved)


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

    A pixel at (x, y) from the center, x to the right and y down, comes from (x cos − y sin, x sin + y cos). `grid_sample`
    counts in halves of width and height, so that the mixed terms carry their ratio. The grid is summed term by term: of a
    product of matrices, as `affine_grid` takes it, TF32 would keep three digits.
    """
    _, _, height, width = images.shape
    angle = turns.double() * (math.pi * STEP / 180)
    cos, sin = (each.to(images.dtype)[:, None, None] for each in (angle.cos(), angle.sin()))  # (b, 1, 1)
    y, x = (
        (2 * torch.arange(many, dtype=images.dtype, device=images.device) + 1) / many - 1 for many in (height, width)
    )
    y = y[:, None]
    grid = torch.stack([x * cos - y * sin * (height / width), x * sin * (width / height) + y * cos], dim=3)
    return grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def _drawn(count: int, generator: torch.Generator) -> Int[Tensor, "b 4"]:
    moves = draw_moves(count, generator)
    return torch.stack([moves.down, moves.right, moves.flip.long(), moves.turns], dim=1)


def _applied(images: Float[Tensor, "b c h w"], drawn: Int[Tensor, "b 4"]) -> Float[Tensor, "b c h w"]:
    down, right, flip, turns = drawn.unbind(dim=1)
    return apply(images, Moves(down, right, flip.bool(), turns))


CROP_FLIP_ROTATE = Augmentation(_drawn, _applied)
"""Each image cropped at random after padding by 4, flipped half the time, and rotated by 15k degrees, k in 0 … 23.

What is drawn depends on the state of the generator and the number of images alone, whatever their device. Zeros come in
from outside: the mean color, where images are standardized.
"""

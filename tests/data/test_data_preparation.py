"""Preparation: channels, resize, normalization, and the sentences for what cannot be prepared."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from official_files import images

from equisep.data import PREPARATIONS, Preparation, named_preparation, prepare, resize_images
from equisep.errors import InputError


def test_by_default_bytes_are_divided_by_255_and_channels_come_first() -> None:
    gray, color = images(5, 6, 7), images(5, 6, 7, 3)
    assert torch.equal(prepare(gray), torch.from_numpy(gray).float()[:, None] / 255)
    assert torch.equal(prepare(color), torch.from_numpy(color).permute(0, 3, 1, 2).float() / 255)
    assert torch.equal(prepare(color.transpose(0, 3, 1, 2)), prepare(color))
    assert torch.equal(prepare(torch.from_numpy(color)), prepare(color))
    assert prepare(gray).dtype == torch.float32


def test_floats_keep_their_values() -> None:
    x = np.random.default_rng(0).normal(size=(5, 6, 7, 1)).astype(np.float64) * 300
    assert torch.equal(prepare(x)[:, 0], torch.from_numpy(x[..., 0]).float())


@pytest.mark.parametrize("shape", [(5, 9), (5,), (5, 2, 3, 4, 5)])
def test_other_shapes_are_kept_and_can_be_normalized(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=shape)
    assert torch.equal(prepare(x), torch.from_numpy(x).float())
    torch.testing.assert_close(prepare(x, Preparation(normalize=(1.0, 2.0))), (torch.from_numpy(x).float() - 1) / 2)
    assert prepare(np.full(shape, 255, dtype=np.uint8)).unique().tolist() == [1.0]


@pytest.mark.parametrize("how", [Preparation(resize=3), Preparation(channels="green")])
def test_vectors_cannot_be_resized(how: Preparation) -> None:
    with pytest.raises(InputError, match=r"Only images can be resized .* shape \(9,\)"):
        prepare(np.zeros((5, 9)), how)
    with pytest.raises(InputError, match="`normalize` has 3 channels; samples of shape"):
        prepare(np.zeros((5, 9)), Preparation(normalize=((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))))


@pytest.mark.parametrize(("channel", "at"), [("red", 0), ("green", 1), ("blue", 2)])
def test_one_channel(channel: str, at: int) -> None:
    x = images(5, 6, 7, 3)
    assert torch.equal(prepare(x, Preparation(channels=channel)), prepare(x[..., at]))
    with pytest.raises(InputError, match="the images have 1 channel"):
        prepare(x[..., 0], Preparation(channels=channel))


def test_gray_and_rgb() -> None:
    x = images(5, 6, 7, 3)
    luma = np.floor(x @ np.array([0.299, 0.587, 0.114]) + 0.5 + 1e-9)
    torch.testing.assert_close(prepare(x, Preparation(channels="gray"))[:, 0], torch.from_numpy(luma / 255).float())
    gray = prepare(x[..., 0], Preparation(channels="rgb"))
    assert gray.shape == (5, 3, 6, 7)
    assert torch.equal(gray[:, 0], gray[:, 2])
    assert torch.equal(prepare(x[..., 0], Preparation(channels="gray")), prepare(x[..., 0]))
    assert torch.equal(prepare(x, Preparation(channels="rgb")), prepare(x))
    flat = np.full((1, 2, 2, 3), 200, dtype=np.uint8)
    assert prepare(flat, Preparation(channels="gray")).unique().tolist() == [torch.tensor(200 / 255).item()]


def triangle(length: int, size: int) -> np.ndarray:
    """The weights of an antialiased bilinear resize along one side, written out."""
    scale = length / size
    reach = max(scale, 1.0)
    centers = (np.arange(size) + 0.5) * scale
    weights = np.maximum(0, 1 - np.abs(np.arange(length) + 0.5 - centers[:, None]) / reach)
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("side", "size"), [(28, (10, 10)), (28, (32, 32)), (32, (10, 10)), (9, (5, 12))])
def test_resize_against_written_out_weights(side: int, size: tuple[int, int]) -> None:
    x = images(20, side, side)
    exact = np.einsum("ih,jw,nhw->nij", triangle(side, size[0]), triangle(side, size[1]), x.astype(float))
    rounded = np.floor(exact + 0.5 + 1e-9).astype(np.uint8)
    np.testing.assert_array_equal(resize_images(torch.from_numpy(x)[:, None], size)[:, 0].numpy(), rounded)
    out = prepare(x, Preparation(resize=size))
    assert torch.equal(out[:, 0], torch.from_numpy(rounded).float() / 255)
    floats = prepare(x.astype(np.float32), Preparation(resize=size))
    np.testing.assert_allclose(floats[:, 0].numpy(), exact, rtol=1e-5, atol=1e-4)


def test_resize_to_the_same_size_changes_nothing() -> None:
    x = images(5, 10, 10)
    assert torch.equal(prepare(x, Preparation(resize=10)), prepare(x))


def test_chunks_do_not_show() -> None:
    x = images(2100, 5, 5, 3)
    how = Preparation(resize=4, normalize=((0.1, 0.2, 0.3), (0.4, 0.5, 0.6)))
    whole = prepare(x, how)
    assert torch.equal(whole[1020:1030], prepare(x[1020:1030], how))
    assert torch.equal(whole[-1:], prepare(x[-1:], how))
    assert prepare(x[:0], how).shape == (0, 3, 4, 4)


def test_normalization_by_channel() -> None:
    x = images(5, 6, 7, 3)
    mean, std = (0.4914, 0.4822, 0.4465), (0.247, 0.243, 0.261)
    expected = (prepare(x) - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
    assert torch.equal(prepare(x, Preparation(normalize=(mean, std))), expected)
    with pytest.raises(InputError, match="`normalize` has 3 channels, the images have 1"):
        prepare(x[..., 0], Preparation(normalize=(mean, std)))


def test_the_samples_are_not_written_to() -> None:
    x = images(5, 6, 7)
    x.flags.writeable = False
    with torch.no_grad():
        prepare(x).fill_(0)
    assert np.array_equal(x, images(5, 6, 7))


def test_the_papers_preparations() -> None:
    papers = ["he2023-10x10", "he2023-10x10-cifar", "he2023-32x32", "he2023-32x32-cifar"]
    assert sorted(PREPARATIONS) == [*papers, "none"]
    color = images(4, 32, 32, 3)
    green = prepare(color, "he2023-10x10-cifar")
    assert green.shape == (4, 1, 10, 10)
    by_hand = (prepare(color[..., 1], Preparation(resize=10)) - 0.4822) / 0.243
    torch.testing.assert_close(green, by_hand)
    assert prepare(images(4, 28, 28), "he2023-32x32").shape == (4, 1, 32, 32)
    assert prepare(color, "he2023-32x32-cifar").shape == (4, 3, 32, 32)
    assert prepare(np.zeros((1, 28, 28), np.uint8), "he2023-10x10").unique().tolist() == [-1.0]


def test_names_and_words() -> None:
    assert named_preparation(None) == Preparation()
    assert str(Preparation()) == "not normalized"
    assert str(PREPARATIONS["he2023-10x10-cifar"]) == "channels green, resized to 10×10, (x − 0.4822)/0.243"
    assert Preparation(resize=10) == Preparation(resize=(10, 10))
    assert hash(Preparation(normalize=(0.5, 0.5))) == hash(Preparation(normalize=((0.5,), (0.5,))))
    with pytest.raises(InputError, match=r"no preparation `he2023-10x1`\. Did you mean `he2023-10x10`"):
        named_preparation("he2023-10x1")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"resize": 0}, "`resize` was 0"),
        ({"resize": (3, 4, 5)}, "`resize` was"),
        ({"channels": "grene"}, "`channels` was 'grene'.* Did you mean `green`"),
        ({"normalize": (0.5, 0.0)}, "std above 0"),
        ({"normalize": (float("nan"), 1.0)}, "numbers, and std above 0"),
        ({"normalize": ((0.1, 0.2, 0.3), (0.1, 0.2))}, "3 means and 2 deviations"),
        ({"normalize": (0.1, 0.2, 0.3)}, "`normalize` has 3 entries"),
    ],
)
def test_preparations_that_cannot_be(fields: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Preparation(**fields)


def test_channels_that_cannot_be_found() -> None:
    with pytest.raises(InputError, match="1, 3 or 4 channels in the last or the second dimension"):
        prepare(np.zeros((5, 8, 9, 7)))

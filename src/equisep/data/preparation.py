"""From stored images to a network's input: channel choice, antialiased resize, normalization, as a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import interpolate

from equisep.data.dataset import Dataset
from equisep.data.sampling import draw, order_among
from equisep.errors import DataError, InputError, did_you_mean
from equisep.shapes import Float, Int, Shaped

CHANNELS = ("all", "blue", "gray", "green", "red", "rgb")
Moments = tuple[float, ...]

_RGB = {"red": 0, "green": 1, "blue": 2}
_LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601, the weights image libraries use for gray
_CHUNK = 1024  # images in float64 at a time


def _moments(value: float | Moments) -> Moments:
    return (float(value),) if isinstance(value, int | float) else tuple(float(v) for v in value)


@dataclass(frozen=True)
class Preparation:
    """How stored samples become a network's input; the steps run in the order of the fields.

    `channels`: `all` as stored; `red`, `green`, `blue` one of three; `gray` their luma; `rgb` three, gray repeated.
    `resize`: to (height, width), or one number for both; bilinear, antialiased; rounded to whole numbers for uint8.
    `normalize`: (mean, std), each one number or one for each channel: (x − mean)/std, after uint8 became x/255.
    """

    channels: str = "all"
    resize: int | tuple[int, ...] | None = None
    normalize: tuple[float | Moments, ...] | None = None

    def __post_init__(self) -> None:
        if self.channels not in CHANNELS:
            known = ", ".join(CHANNELS)
            raise InputError(
                f"`channels` was {self.channels!r}; known are {known}.{did_you_mean(self.channels, CHANNELS)}"
            )
        if self.resize is not None:
            size = (self.resize, self.resize) if isinstance(self.resize, int) else tuple(self.resize)
            if len(size) != 2 or min(size) < 1:
                raise InputError(f"`resize` was {self.resize}; give a size or (height, width) of at least 1 pixel.")
            object.__setattr__(self, "resize", size)
        if self.normalize is not None:
            if len(self.normalize) != 2:
                raise InputError(f"`normalize` has {len(self.normalize)} entries; give (mean, std).")
            mean, std = (_moments(value) for value in self.normalize)
            if not mean or len({len(mean), len(std)} - {1}) > 1:
                raise InputError(
                    f"`normalize` has {len(mean)} means and {len(std)} deviations; give one for each channel."
                )
            if not all(np.isfinite((*mean, *std))) or min(std, default=0.0) <= 0:
                raise InputError(f"`normalize` was mean {mean}, std {std}; numbers, and std above 0, are needed.")
            object.__setattr__(self, "normalize", (mean, std))

    @property
    def size(self) -> tuple[int, int] | None:
        """(height, width) to resize to, or `None`."""
        if self.resize is None:
            return None
        return (self.resize, self.resize) if isinstance(self.resize, int) else (self.resize[0], self.resize[1])

    def __str__(self) -> str:
        steps = [] if self.channels == "all" else [f"channels {self.channels}"]
        if self.size is not None:
            steps.append(f"resized to {self.size[0]}×{self.size[1]}")
        if self.normalize is None:
            return ", ".join([*steps, "not normalized"])
        mean, std = (" ".join(f"{v:g}" for v in _moments(value)) for value in self.normalize)
        return ", ".join([*steps, f"(x − {mean})/{std}"])


# He & Su 2023, with the numbers its authors' code uses; `none`: samples as they are stored
PREPARATIONS: Mapping[str, Preparation] = MappingProxyType(
    {
        "he2023-10x10": Preparation(resize=10, normalize=(0.5, 0.5)),
        "he2023-10x10-cifar": Preparation(channels="green", resize=10, normalize=(0.4822, 0.243)),
        "he2023-32x32": Preparation(resize=32, normalize=(0.2860, 0.3530)),
        "he2023-32x32-cifar": Preparation(resize=32, normalize=((0.4914, 0.4822, 0.4465), (0.247, 0.243, 0.261))),
        "none": Preparation(),
    }
)


def named_preparation(preparation: Preparation | str | None) -> Preparation:
    """The preparation itself, the one of that name in `PREPARATIONS`, or for `None` the default."""
    if isinstance(preparation, Preparation):
        return preparation
    if preparation is None:
        return Preparation()
    if preparation not in PREPARATIONS:
        raise InputError(
            f"There is no preparation `{preparation}`.{did_you_mean(preparation, PREPARATIONS)} "
            f"Known: {', '.join(PREPARATIONS)}."
        )
    return PREPARATIONS[preparation]


def prepare(
    images: npt.NDArray[Any] | torch.Tensor, preparation: Preparation | str | None = None
) -> Float[torch.Tensor, "n ..."]:
    """Samples as a float32 tensor: (n, channels, height, width) for images, (n, d) for vectors.

    uint8 becomes x/255, everything else keeps its values. Three dimensions are gray images; four are images with
    1, 3 or 4 channels last, or else first. Other shapes, such as vectors, are kept and can be normalized only.
    """
    how = named_preparation(preparation)
    stored = images.detach().cpu().numpy() if isinstance(images, torch.Tensor) else np.asarray(images)
    if stored.ndim not in (3, 4):
        return _prepare_plain(stored, how)
    channels_last = stored.ndim == 4 and _channels_last(stored.shape)
    empty = _prepare_chunk(stored[:0], how, channels_last=channels_last)
    out = torch.empty((len(stored), *empty.shape[1:]), dtype=torch.float32)
    for start in range(0, len(stored), _CHUNK):
        stop = start + _CHUNK
        out[start:stop] = _prepare_chunk(stored[start:stop], how, channels_last=channels_last)
    return out


def prepare_split(
    dataset: Dataset,
    preparation: Preparation | str | None = None,
    *,
    per_class: int | None = None,
    sizes: Sequence[int] | None = None,
    seed: int = 0,
    split: str = "train",
    classes: int | Sequence[int] | None = None,
) -> tuple[Float[torch.Tensor, "n ..."], Int[torch.Tensor, " n"]]:
    """Samples (float32) and labels (int64) of a split, drawn as `draw` does and prepared as `prepare` does.

    >>> import equisep
    >>> from equisep.data import prepare_split
    >>> x, y = prepare_split(equisep.load_data("embedded-10x10"), "he2023-10x10", per_class=20)
    >>> tuple(x.shape), y.bincount().tolist()
    ((200, 1, 10, 10), [20, 20, 20, 20, 20, 20, 20, 20, 20, 20])
    """
    x, y = dataset.split(split)
    if len(x) == 0:
        raise DataError(f"The {split} split of `{dataset.name}` holds no samples. Use another split or data set.")
    if per_class is None and sizes is None and classes is None:
        return prepare(x, preparation), torch.from_numpy(y.copy())
    chosen = draw(
        y, per_class=per_class, sizes=sizes, seed=seed, classes=dataset.classes if classes is None else classes
    )
    return prepare(x[chosen], preparation), torch.from_numpy(y[chosen])


def drawn_order(
    dataset: Dataset,
    *,
    per_class: int | None = None,
    sizes: Sequence[int] | None = None,
    seed: int = 0,
    split: str = "train",
    classes: int | Sequence[int] | None = None,
    pool_per_class: int | Sequence[int] | None = None,
) -> Int[torch.Tensor, " n"]:
    """The order in which the samples that `prepare_split` gives were drawn, as positions among them, for the reading `drawn`.

    It is that of a walk, see `draw`; `full_per_class(dataset)` is the `pool_per_class` of parts of official sets.
    """
    _, y = dataset.split(split)
    walk = draw(
        y,
        per_class=per_class,
        sizes=sizes,
        seed=seed,
        classes=dataset.classes if classes is None else classes,
        order="walk",
        pool_per_class=pool_per_class,
    )
    return torch.from_numpy(order_among(walk))


def resize_images(
    images: Shaped[torch.Tensor, "n c h w"], size: tuple[int, int]
) -> Shaped[torch.Tensor, "n c height width"]:
    """Bilinear, antialiased resize of images to (height, width); uint8 images come back as rounded uint8."""
    if tuple(images.shape[-2:]) == tuple(size):
        return images
    if len(images) == 0:
        return images.new_empty((0, images.shape[1], *size))
    fine = interpolate(images.double(), size=size, mode="bilinear", antialias=True, align_corners=False)
    if images.dtype != torch.uint8:
        return fine.to(images.dtype)
    # halves go up, with room for float64's own error, so that every machine rounds the same way
    return (fine + (0.5 + 1e-9)).floor().clamp(0, 255).to(torch.uint8)


def _channels_last(shape: tuple[int, ...]) -> bool:
    if shape[3] in (1, 3, 4):
        return True
    if shape[1] in (1, 3, 4):
        return False
    raise InputError(
        f"Images need 1, 3 or 4 channels in the last or the second dimension; the shape is {shape}. "
        "Transpose them, or flatten them to vectors."
    )


def _prepare_plain(stored: npt.NDArray[Any], how: Preparation) -> torch.Tensor:
    if how.resize is not None or how.channels != "all":
        raise InputError(
            f"Only images can be resized or have a channel chosen; the samples have shape {stored.shape[1:]}. "
            "Give images of n × height × width (× channels), or leave `resize` and `channels` out."
        )
    x = torch.from_numpy(stored.astype(np.float32))
    x = x / 255 if stored.dtype == np.uint8 else x
    if how.normalize is None:
        return x
    mean, std = (_moments(value) for value in how.normalize)
    if max(len(mean), len(std)) > 1:
        raise InputError(
            f"`normalize` has {max(len(mean), len(std))} channels; samples of shape {stored.shape[1:]} have none. "
            "Give one mean and one std."
        )
    return (x - mean[0]) / std[0]


def _prepare_chunk(stored: npt.NDArray[Any], how: Preparation, *, channels_last: bool) -> torch.Tensor:
    values = stored if stored.dtype == np.uint8 else stored.astype(np.float32)
    x = torch.from_numpy(np.array(values))  # a copy: the stored samples are never written to
    x = x.unsqueeze(1) if x.ndim == 3 else x.permute(0, 3, 1, 2) if channels_last else x  # (n, c, h, w)
    x = _choose_channels(x, how.channels)
    if how.size is not None:
        x = resize_images(x, how.size)
    x = x.float() / 255 if x.dtype == torch.uint8 else x
    if how.normalize is None:
        return x
    mean, std = (torch.tensor(_moments(value)) for value in how.normalize)
    if max(len(mean), len(std)) not in (1, x.shape[1]):
        raise InputError(
            f"`normalize` has {max(len(mean), len(std))} channels, the images have {x.shape[1]}. "
            "Give one mean and std, or one for each channel."
        )
    return (x - mean[:, None, None]) / std[:, None, None]


def _choose_channels(x: torch.Tensor, channels: str) -> torch.Tensor:
    count = x.shape[1]
    if channels == "all" or (channels == "gray" and count == 1):
        return x
    if channels == "rgb":
        return x.expand(-1, 3, -1, -1) if count == 1 else x[:, :3]
    if count < 3:
        raise InputError(f"`channels` was {channels!r}; the images have {count} channel. Use `all`.")
    if channels in _RGB:
        return x[:, _RGB[channels] : _RGB[channels] + 1]
    weights = torch.tensor(_LUMA, dtype=torch.float64)[:, None, None]
    luma = (x[:, :3].double() * weights).sum(1, keepdim=True)
    return (luma + (0.5 + 1e-9)).floor().to(torch.uint8) if x.dtype == torch.uint8 else luma.to(x.dtype)

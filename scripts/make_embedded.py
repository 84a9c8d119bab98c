"""Makes the embedded data sets from the official Fashion-MNIST files.

    python scripts/make_embedded.py FOLDER [--out DIR]

FOLDER holds the four idx files, compressed or not (Debian's package dataset-fashion-mnist puts them into
/usr/share/datasets/fashion-mnist); their contents are checked against the published MD5 sums. Two runs write the same
bytes; another version of zlib may compress differently, never to other arrays.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from equisep.data import Dataset, draw, load_data, resize_images
from equisep.data.official.sources import SOURCES

SEED = 0
SETS = {
    # file → (pixels a side, training samples a class, test samples a class)
    "fashion_mnist_10x10.npz": (10, 600, 200),
    "fashion_mnist_28x28.npz": (28, 150, 50),
}
HOME = Path(__file__).resolve().parent.parent / "src" / "equisep" / "data" / "embedded"


def check_official(full: Dataset) -> None:
    """Stop unless the arrays, written as idx files, have the published MD5 sums."""
    published = {file.parts[0]: file.plain_md5 for file in SOURCES["fashion-mnist"].files}
    for part, values in (
        ("train-images-idx3-ubyte", full.x_train),
        ("train-labels-idx1-ubyte", full.y_train),
        ("t10k-images-idx3-ubyte", full.x_test),
        ("t10k-labels-idx1-ubyte", full.y_test),
    ):
        header = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, dtype=">u4").tobytes()
        found = hashlib.md5(header + values.astype(np.uint8).tobytes(), usedforsecurity=False).hexdigest()
        if found != published[part]:
            raise SystemExit(f"{part} should have the MD5 {published[part]}; it has {found}. Use the official files.")


def embedded_arrays(full: Dataset, *, side: int, train: int, test: int) -> dict[str, npt.NDArray[Any]]:
    """The arrays of one embedded set; `idx_*` are positions in the full set."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for split, x, y, per_class in (
        ("train", full.x_train, full.y_train, train),
        ("test", full.x_test, full.y_test, test),
    ):
        chosen = draw(y, per_class=per_class, seed=SEED)
        images = resize_images(torch.from_numpy(x[chosen]).unsqueeze(1), (side, side))
        arrays[f"x_{split}"] = images.squeeze(1).numpy()
        arrays[f"y_{split}"] = y[chosen].astype(np.uint8)
        arrays[f"idx_{split}"] = chosen.astype(np.uint16)
    return arrays


def write_npz(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
    """A compressed .npz without dates, so that the same arrays give the same bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, values in arrays.items():
            stream = io.BytesIO()
            np.lib.format.write_array(stream, np.ascontiguousarray(values), version=(1, 0), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, stream.getvalue(), compress_type=zipfile.ZIP_DEFLATED, compresslevel=9)


def main() -> None:
    """Write both files and say how large they are."""
    parser = argparse.ArgumentParser(description="Make the embedded data sets from the official Fashion-MNIST files.")
    parser.add_argument("folder", type=Path, help="folder with the four official idx files, .gz or not")
    parser.add_argument("--out", type=Path, default=HOME, help="where the .npz files go (default: the package)")
    options = parser.parse_args()
    full = load_data("fashion-mnist", data_dir=options.folder, download=False)
    check_official(full)
    options.out.mkdir(parents=True, exist_ok=True)
    for name, (side, train, test) in SETS.items():
        write_npz(options.out / name, embedded_arrays(full, side=side, train=train, test=test))
        print(f"{options.out / name}: {(options.out / name).stat().st_size} bytes")


if __name__ == "__main__":
    main()

"""The official data sets: which files they are made of, their addresses and MD5 sums, how their bytes become arrays."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from equisep.data.dataset import Array
from equisep.errors import DataError, MissingExtraError
from equisep.labels import Labels

Images = npt.NDArray[np.uint8]

_IDX_UNSIGNED_BYTE = 0x08
_AGAIN = "Download it again, or remove it to have it looked for elsewhere."


def read_idx(content: bytes, *, dims: int, where: str) -> Images:
    """The array of an idx file (MNIST's format) of unsigned bytes with `dims` dimensions.

    Header: two zero bytes, the type, the number of dimensions; then each size as a big-endian 32-bit number.
    """
    magic = bytes([0, 0, _IDX_UNSIGNED_BYTE, dims])
    if content[:4] != magic:
        raise DataError(
            f"`{where}` should be an idx file that begins with the bytes {magic.hex(' ')}; it begins with "
            f"{content[:4].hex(' ') or 'nothing'}. It is another file or damaged. {_AGAIN}"
        )
    header = 4 + 4 * dims
    if len(content) < header:
        raise DataError(f"`{where}` is truncated: {len(content)} bytes do not hold its {header}-byte header. {_AGAIN}")
    sizes = struct.unpack(f">{dims}I", content[4:header])
    if math.prod(sizes) != len(content) - header:
        raise DataError(
            f"`{where}` is truncated or damaged: its header announces {' × '.join(map(str, sizes))} = "
            f"{math.prod(sizes)} bytes, {len(content) - header} follow. {_AGAIN}"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(sizes).copy()


def read_cifar(content: bytes, *, label_bytes: int, where: str) -> tuple[Images, Labels]:
    """Images (n, 32, 32, 3) and labels of a CIFAR binary file.

    A record is `label_bytes` labels (CIFAR-10: the class; CIFAR-100: the coarse, then the fine class, which is used)
    and the red, green and blue planes, row by row.
    """
    size = label_bytes + 3 * 32 * 32
    count, rest = divmod(len(content), size)
    if rest or not count:
        raise DataError(
            f"`{where}` is truncated or damaged: a CIFAR file is made of records of {size} bytes, and its "
            f"{len(content)} bytes are {count} records and {rest} bytes over. {_AGAIN}"
        )
    records = np.frombuffer(content, dtype=np.uint8).reshape(count, size)
    planes = records[:, label_bytes:].reshape(count, 3, 32, 32)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), records[:, label_bytes - 1].astype(np.int64)


def read_stl10_images(content: bytes, *, where: str) -> Images:
    """Images (n, 96, 96, 3) of an STL-10 binary file, which stores three planes, each column by column."""
    size = 3 * 96 * 96
    count, rest = divmod(len(content), size)
    if rest or not count:
        raise DataError(
            f"`{where}` is truncated or damaged: an STL-10 image has {size} bytes, and its {len(content)} bytes are "
            f"{count} images and {rest} bytes over. {_AGAIN}"
        )
    planes = np.frombuffer(content, dtype=np.uint8).reshape(count, 3, 96, 96)
    return np.ascontiguousarray(planes.transpose(0, 3, 2, 1))


def read_stl10_labels(content: bytes, *, where: str) -> Labels:
    """Labels of an STL-10 binary file: 1 … 10 there, 0 … 9 here."""
    labels = np.frombuffer(content, dtype=np.uint8).astype(np.int64)
    if not labels.size or labels.min() < 1 or labels.max() > 10:
        seen = f"{labels.min()} to {labels.max()}" if labels.size else "none"
        raise DataError(f"`{where}` should hold STL-10 labels from 1 to 10; found {seen}. {_AGAIN}")
    return labels - 1


def read_svhn(content: bytes, *, where: str) -> tuple[Images, Labels]:
    """Images (n, 32, 32, 3) and labels of an SVHN `.mat` file; the digit 0, stored as 10 there, is 0 here."""
    try:
        from scipy.io import loadmat
    except ImportError as error:
        raise MissingExtraError(needed_for="Reading SVHN's .mat files", package="scipy", extra="svhn") from error
    try:
        held: dict[str, Any] = loadmat(io.BytesIO(content), variable_names=["X", "y"])
    except Exception as error:  # scipy raises whatever the damaged bytes lead to
        raise DataError(f"`{where}` cannot be read as a Matlab file ({error}). {_AGAIN}") from error
    images, labels = held.get("X"), held.get("y")
    if not isinstance(images, np.ndarray) or images.ndim != 4 or images.shape[:3] != (32, 32, 3):
        raise DataError(f"`{where}` should hold `X` of shape 32 × 32 × 3 × n; it does not. {_AGAIN}")
    if not isinstance(labels, np.ndarray) or labels.size != images.shape[3] or images.dtype != np.uint8:
        raise DataError(f"`{where}` should hold uint8 images `X` and one label in `y` for each; it does not. {_AGAIN}")
    digits = labels.reshape(-1).astype(np.int64)
    return np.ascontiguousarray(images.transpose(3, 0, 1, 2)), np.where(digits == 10, 0, digits)


@dataclass(frozen=True)
class Part:
    """The bytes of one part of a data set and the place they came from, for messages."""

    content: bytes
    where: str


Parts = Mapping[str, Part]


@dataclass(frozen=True)
class OfficialFile:
    """One published file: `parts` are what it holds once unpacked, `plain_md5` the sum of its unpacked content."""

    name: str
    url: str
    md5: str
    parts: tuple[str, ...]
    plain_md5: str | None = None


@dataclass(frozen=True)
class Source:
    """One official data set; `samples` counts (train, test), `folders` are subfolders where its files may lie.

    `fragile`: damaged bytes can crash the reader (scipy's), so it sees only bytes whose checksum fits.
    """

    name: str
    files: tuple[OfficialFile, ...]
    read: Callable[[Parts], dict[str, Array]]
    samples: tuple[int, int]
    classes: int
    class_names: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    fragile: bool = False


def _read_idx_set(parts: Parts) -> dict[str, Array]:
    def array(name: str, dims: int) -> Array:
        return read_idx(parts[name].content, dims=dims, where=parts[name].where)

    return {
        "x_train": array("train-images-idx3-ubyte", 3),
        "y_train": array("train-labels-idx1-ubyte", 1),
        "x_test": array("t10k-images-idx3-ubyte", 3),
        "y_test": array("t10k-labels-idx1-ubyte", 1),
    }


def _cifar_reader(*, label_bytes: int, train: tuple[str, ...], test: str) -> Callable[[Parts], dict[str, Array]]:
    def read(parts: Parts) -> dict[str, Array]:
        batches = [read_cifar(parts[n].content, label_bytes=label_bytes, where=parts[n].where) for n in train]
        x_test, y_test = read_cifar(parts[test].content, label_bytes=label_bytes, where=parts[test].where)
        x_train = np.concatenate([x for x, _ in batches])
        y_train = np.concatenate([y for _, y in batches])
        return {"x_train": x_train, "y_train": y_train, "x_test": x_test, "y_test": y_test}

    return read


def _read_stl10(parts: Parts) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for split in ("train", "test"):
        images, labels = parts[f"stl10_binary/{split}_X.bin"], parts[f"stl10_binary/{split}_y.bin"]
        arrays[f"x_{split}"] = read_stl10_images(images.content, where=images.where)
        arrays[f"y_{split}"] = read_stl10_labels(labels.content, where=labels.where)
    return arrays


def _read_svhn(parts: Parts) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for split in ("train", "test"):
        part = parts[f"{split}_32x32.mat"]
        arrays[f"x_{split}"], arrays[f"y_{split}"] = read_svhn(part.content, where=part.where)
    return arrays


def _idx_files(address: str, sums: Mapping[str, tuple[str, str]]) -> tuple[OfficialFile, ...]:
    """The four files of an idx data set; `sums` holds the MD5 of the .gz and of its content."""
    return tuple(
        OfficialFile(f"{part}.gz", f"{address}{part}.gz", md5, (part,), plain_md5=plain)
        for part, (md5, plain) in sums.items()
    )


_FASHION = _idx_files(
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    {
        "train-images-idx3-ubyte": ("8d4fb7e6c68d591d4c3dfef9ec88bf0d", "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
        "train-labels-idx1-ubyte": ("25c81989df183df01b3e8a0aad5dffbe", "9018921c3c673c538a1fc5bad174d6f9"),
        "t10k-images-idx3-ubyte": ("bef4ecab320f06d8554ea6380940ec79", "8181f5470baa50b63fa0f6fddb340f0a"),
        "t10k-labels-idx1-ubyte": ("bb300cfdad3c16e7a12a480ee83cd310", "15d484375f8d13e6eb1aabb0c3f46965"),
    },
)
_MNIST = _idx_files(
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    {
        "train-images-idx3-ubyte": ("f68b3c2dcbeaaa9fbdd348bbdeb94873", "6bbc9ace898e44ae57da46a324031adb"),
        "train-labels-idx1-ubyte": ("d53e105ee54ea40749a09fcbcd1e9432", "a25bea736e30d166cdddb491f175f624"),
        "t10k-images-idx3-ubyte": ("9fb629c4189551a2d022fa330f9573f3", "2646ac647ad5339dbf082846283269ea"),
        "t10k-labels-idx1-ubyte": ("ec29112dd5afa0611ce80d1b7f02629c", "27ae3e4e09519cfbb04c329615203637"),
    },
)
_CIFAR10_TRAIN = tuple(f"cifar-10-batches-bin/data_batch_{i}.bin" for i in range(1, 6))
_CIFAR10_TEST = "cifar-10-batches-bin/test_batch.bin"
_CIFAR10 = OfficialFile(
    "cifar-10-binary.tar.gz",
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "c32a1d4ab5d03f1284b67883e8d87530",
    (*_CIFAR10_TRAIN, _CIFAR10_TEST),
)
_CIFAR100_PARTS = ("cifar-100-binary/train.bin", "cifar-100-binary/test.bin")
_CIFAR100 = OfficialFile(
    "cifar-100-binary.tar.gz",
    "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
    "03b5dce01913d631647c71ecec9e9cb8",
    _CIFAR100_PARTS,
)
_SVHN = tuple(
    OfficialFile(name, f"http://ufldl.stanford.edu/housenumbers/{name}", md5, (name,), plain_md5=md5)
    for name, md5 in (
        ("train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373"),
        ("test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3"),
    )
)
_STL10 = OfficialFile(
    "stl10_binary.tar.gz",
    "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
    "91f7769df0f17e558f3565bffb0c7dfb",
    tuple(f"stl10_binary/{split}_{kind}.bin" for split in ("train", "test") for kind in "Xy"),
)

_DIGITS = tuple("0123456789")
# fmt: off
FASHION_NAMES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)
_CIFAR10_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_STL10_NAMES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
_CIFAR100_NAMES = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle", "bowl", "boy",
    "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle", "chair", "chimpanzee", "clock",
    "cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish", "forest",
    "fox", "girl", "hamster", "house", "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion", "lizard", "lobster",
    "man", "maple_tree", "motorcycle", "mountain", "mouse", "mushroom", "oak_tree", "orange", "orchid", "otter",
    "palm_tree", "pear", "pickup_truck", "pine_tree", "plain", "plate", "poppy", "porcupine", "possum", "rabbit", "raccoon",
    "ray", "road", "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper", "snail", "snake", "spider",
    "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank", "telephone", "television", "tiger", "tractor",
    "train", "trout", "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf", "woman", "worm",
)
# fmt: on

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Source(
            "fashion-mnist", _FASHION, _read_idx_set, (60000, 10000), 10, FASHION_NAMES, folders=("FashionMNIST/raw",)
        ),
        Source("mnist", _MNIST, _read_idx_set, (60000, 10000), 10, _DIGITS, folders=("MNIST/raw",)),
        Source(
            "cifar10",
            (_CIFAR10,),
            _cifar_reader(label_bytes=1, train=_CIFAR10_TRAIN, test=_CIFAR10_TEST),
            (50000, 10000),
            10,
            _CIFAR10_NAMES,
        ),
        Source(
            "cifar100",
            (_CIFAR100,),
            _cifar_reader(label_bytes=2, train=_CIFAR100_PARTS[:1], test=_CIFAR100_PARTS[1]),
            (50000, 10000),
            100,
            _CIFAR100_NAMES,
        ),
        Source("svhn", _SVHN, _read_svhn, (73257, 26032), 10, _DIGITS, fragile=True),
        Source("stl10", (_STL10,), _read_stl10, (5000, 8000), 10, _STL10_NAMES),
    )
}

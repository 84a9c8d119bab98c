"""The official data sets: which files they are made of, their published addresses and MD5 sums, how they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from equisep.data.dataset import Array
from equisep.data.official.formats import read_cifar, read_idx, read_stl10_images, read_stl10_labels, read_svhn


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

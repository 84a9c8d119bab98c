"""The papers as data: one file or folder per paper; what data sets and their classes are called."""

from dataclasses import dataclass

PAPERS = {
    "he2023": "He & Su, A law of data separation in deep learning",
    "fang2021": "Fang, He, Long & Su, Layer-Peeled Model",
    "galanti2022": "Galanti & Galanti, On the implicit bias towards depth minimization",
    "equisep2026": "experiments of our own, which advice rests on",
}
DATA_NAMES = {
    "fashion-mnist": "Fashion-MNIST",
    "embedded-10x10": "Fashion-MNIST at 10×10",
    "embedded-28x28": "Fashion-MNIST",
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "cifar10_7k": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "stl10": "STL-10",
    "svhn": "SVHN",
    "sst2": "SST-2",
}
_FASHION = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
_CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
# the classes of data sets whose samples are drawn class by class, as the data sets themselves name them
CLASS_NAMES = {
    "fashion-mnist": _FASHION,
    "embedded-10x10": _FASHION,
    "embedded-28x28": _FASHION,
    "cifar10": _CIFAR10,
    "cifar10_7k": _CIFAR10,
}


@dataclass(frozen=True, slots=True)
class StandIn:
    """A part of a data set: how many images it has for training and for tests, and of how many."""

    name: str
    train: int
    test: int
    of_train: int
    of_test: int

    def __str__(self) -> str:
        """In words."""
        return (
            f"a part of {self.name} with {self.train:,} of {self.of_train:,} training and {self.test:,} of {self.of_test:,} "
            "test images"
        )


# figures that ask of networks whether or not these fit their training data, and why
FIT_OR_NOT = {
    "he2023/linear": "networks without ReLU, which cannot fit",
    "he2023/prop1": "noise on networks after few epochs",
    "equisep2026/rare": "loss weights, of which large ones keep networks from fitting",
    "equisep2026/stopping": "trainings that are stopped, and networks with random labels",
}
# data sets of sentences; the others are of images
SENTENCES = ("sst2", "seeded-tokens")
# what stands in for a data set of a paper in the record, and what for a network
STAND_INS = {"cifar10_7k": StandIn("CIFAR-10", 5_000, 2_000, 50_000, 10_000)}


def is_part(used: str, wanted: str) -> bool:
    """Whether one data set is a known part of another: draws from it are draws from the whole."""
    return used in STAND_INS and STAND_INS[used].name == DATA_NAMES.get(wanted)


NETWORK_STAND_INS = {
    "hf:sentence-transformers/all-MiniLM-L6-v2": (
        "a BERT of 6 layers for lower case, trained contrastively to tell sentence pairs apart, and not as a masked "
        "language model"
    ),
    "hf:sentence-transformers/all-mpnet-base-v2": (
        "an encoder of 12 layers for lower case, trained contrastively to tell sentence pairs apart"
    ),
}

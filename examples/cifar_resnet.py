"""The published ResNet-20 or ResNet-56 of CIFAR-10: its accuracy first, then the law by layer and by block.

    python examples/cifar_resnet.py resnet20 --data-dir FOLDER --per-class 100

FOLDER (or EQUISEP_DATA) holds `cifar10_7k.npz` (or CIFAR-10 in any form that `equisep.load_data` knows) and
`resnet_cifar10/resnet20-12fca82f.th`, `resnet_cifar10/resnet56-4bfd9763.th`, the files of akamaster/pytorch_resnet_cifar10.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import equisep
from equisep.data import Batches, Preparation, prepare_split
from equisep.errors import DataError
from equisep.models import load_model

# file, and the error on the 10,000 test images as its author prints it
PUBLISHED = {"resnet20": ("resnet20-12fca82f.th", 0.0827), "resnet56": ("resnet56-4bfd9763.th", 0.0661)}
IMAGENET = Preparation(normalize=((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))  # what these weights were trained with


def main(words: Sequence[str] | None = None) -> equisep.Profile:
    """Measure at both grains in one reading, and print."""
    asked = arguments(words)
    folder = asked.data_dir or os.environ.get("EQUISEP_DATA")
    if folder is None:
        raise DataError("The example needs a folder of data files. Give it as --data-dir, or name it in EQUISEP_DATA.")
    file, published = PUBLISHED[asked.network]
    model = load_model(asked.network, checkpoint=Path(folder) / "resnet_cifar10" / file)
    data = equisep.load_data(asked.data, data_dir=folder)
    train = Batches(*prepare_split(data, IMAGENET, per_class=asked.per_class, seed=asked.seed))
    test = Batches(*prepare_split(data, IMAGENET, per_class=asked.test_per_class, seed=asked.seed, split="test"))
    profile = equisep.measure(
        model,
        train,
        test,
        sites="auto",
        reading=asked.reading,
        reduction=asked.reduction,
        device=asked.device,
        coordinates=0,
    )
    wrong = 1 - (profile.accuracy_test or 0)
    print(
        f"{asked.network}: {100 * wrong:.2f} % of {len(test.y)} test images wrong in the reading `{asked.reading}`; "
        f"published: {100 * published:.2f} % of 10,000 (read in `eval`)."
    )
    for grain in ("layers", "blocks"):
        law = profile.laws[grain]
        print(f"{grain}: {summary(law)}")
        # the mean of a raw picture is its color: what a network begins with, but no layer of it
        print(f"  without the raw input: {summary(equisep.fit_law(law.curve[1:]))}")
        print("  D: " + " ".join(f"{value:.3g}" for value in law.curve))
    if profile.grains is not None:
        print(f"Reported are the {profile.grains.chosen}: {profile.grains.reason}.")
    if asked.out is not None:
        profile.save(asked.out)
    return profile


def summary(law: equisep.LawFit) -> str:
    """A law in one line."""
    if law.rho is None or law.r is None:
        return "no law can be fitted"
    life = "none" if law.half_life is None else f"{law.half_life:.2f}"
    kink = law.two_slopes
    gain = f", two slopes (p {kink.p:.3f})" if kink is not None and kink.clear else ""
    return f"{len(law.curve)} sites, rho {law.rho:.4f}, half-life {life}, r {law.r:.4f}: {law.verdict}{gain}"


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """What the user asks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("network", choices=PUBLISHED)
    parser.add_argument("--data", default="cifar10_7k", help="name or path of the images")
    parser.add_argument("--data-dir", help="folder with data files and weights (or EQUISEP_DATA)")
    parser.add_argument("--per-class", type=int, help="training images a class; all by default")
    parser.add_argument("--test-per-class", type=int, help="test images a class; all by default")
    parser.add_argument("--reading", default="eval", choices=("eval", "mixed", "drawn"))
    parser.add_argument("--reduction", default="flatten", help="flatten, mean, positions, pca=m")
    parser.add_argument("--device", help="cpu, cuda, …")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="save the profile as JSON here")
    return parser.parse_args(words)


if __name__ == "__main__":
    main()

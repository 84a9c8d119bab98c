"""Published weights of ResNet-20 and ResNet-56 load by name and classify as published (through EQUISEP_DATA)."""

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Binomial

from equisep.data import Preparation, load_data, prepare_split
from equisep.models import build, load_model, load_weights
from real_data import real_file

IMAGENET = Preparation(normalize=((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
# network → file, and error on the 10,000 test images of CIFAR-10 as its author prints it (pytorch_resnet_cifar10)
PUBLISHED = {"resnet20": ("resnet20-12fca82f.th", 0.0827), "resnet56": ("resnet56-4bfd9763.th", 0.0661)}
LEVEL = 0.99  # of the interval for each of two networks: 2 % of all draws of 2,000 images fall outside one of them


def held_out_images() -> tuple[Tensor, Tensor]:
    data = load_data("cifar10_7k", data_dir=real_file("cifar10_7k.npz").parent)
    return prepare_split(data, IMAGENET, split="test")


def errors(model: nn.Module, x: Tensor, y: Tensor) -> int:
    model.eval()
    with torch.inference_mode():
        return sum(int((model(a).argmax(dim=1) != b).sum()) for a, b in zip(x.split(50), y.split(50), strict=True))


def likely_errors(n: int, rate: float) -> tuple[int, int]:
    """The central interval of the binomial distribution at LEVEL."""
    below = Binomial(n, torch.tensor(rate, dtype=torch.float64)).log_prob(torch.arange(n + 1)).exp().cumsum(0)
    return int((below <= (1 - LEVEL) / 2).sum()), int((below < (1 + LEVEL) / 2).sum())


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_weights_reach_the_published_accuracy(name: str) -> None:
    file, rate = PUBLISHED[name]
    path = real_file(f"resnet_cifar10/{file}")
    x, y = held_out_images()
    assert len(y) == 2000
    model = build(name, seed=0)
    load_weights(model, path)
    least, most = likely_errors(len(y), rate)
    assert least <= errors(model, x, y) <= most


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_weights_are_all_used(name: str) -> None:
    path = real_file(f"resnet_cifar10/{PUBLISHED[name][0]}")
    stored = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
    model = load_model(f"equisep.models:{name}", checkpoint=path)
    found = model.state_dict()
    counts = {key for key in found if key.endswith("num_batches_tracked")}  # not counted when these were published
    assert {f"module.{key}" for key in found.keys() - counts} == {
        key for key in stored if not key.endswith("num_batches_tracked")
    }
    assert all(torch.equal(found[key], stored[f"module.{key}"]) for key in found.keys() - counts)


def test_the_interval_is_the_binomial_one() -> None:
    """n = 4, p = 1/2: P(0) = P(4) = 1/16 is more than half of 1 %, so that nothing is unlikely."""
    assert likely_errors(4, 0.5) == (0, 4)
    least, most = likely_errors(2000, 0.0827)
    spread = 2.5758 * (2000 * 0.0827 * (1 - 0.0827)) ** 0.5  # the normal approximation
    assert abs(least - (165.4 - spread)) < 2 and abs(most - (165.4 + spread)) < 2

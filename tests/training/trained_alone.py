"""What an ensemble is held against: every member trained alone, by `train` or by a loop written out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from equisep.data import PREPARATIONS, load_data, prepare_split, randomize_labels
from equisep.models import Fnn
from equisep.training import Member, Recipe, Shape, Stage, train

NOTHING = 1e-6  # a norm below which relative errors are not asked for
SMALL = Shape((8, 7), inputs=6, classes=3)


def clouds(n: int = 70, *, inputs: int = 6, classes: int = 3, seed: int = 4) -> tuple[Tensor, Tensor]:
    """Gaussian classes in float64, small enough for a training in milliseconds."""
    generator = torch.Generator("cpu").manual_seed(seed)
    y = torch.arange(n) % classes
    centers = torch.randn(classes, inputs, generator=generator, dtype=torch.float64)
    return 2 * centers[y] + torch.randn(n, inputs, generator=generator, dtype=torch.float64), y


def fashion(per_class: int = 100) -> tuple[Tensor, Tensor]:
    """The embedded 10×10 pictures in float64, prepared as the paper does."""
    data = load_data("embedded-10x10")
    x, y = prepare_split(data, PREPARATIONS["he2023-10x10"], per_class=per_class, seed=0, split="train")
    return x.to(torch.float64), y


def member(
    optimizer: str = "adam", rate: float = 3e-3, *, shape: Shape = SMALL, epochs: int = 3, seed: int = 0, **options: Any
) -> Member:
    """A member with the recipe's options and its own told apart; batches of 32, of which clouds of 70 leave one of 6."""
    own = {name: options.pop(name) for name in list(options) if name in Member.__dataclass_fields__}
    recipe = Recipe(
        optimizer=optimizer, rate=rate, epochs=epochs, seed=seed, **{"batch_size": 32, **options}  # type: ignore[arg-type]
    )  # fmt: skip
    return Member(recipe, shape=shape, **own)


def mixed(shape: Shape = SMALL, *, epochs: int = 3, **options: Any) -> list[Member]:
    """All three optimizers with different seeds, rates, decays and momenta, not sorted by any of them."""
    return [
        member("momentum", 0.03, shape=shape, epochs=epochs, seed=2, weight_decay=1e-3, **options),
        member("adam", 3e-3, shape=shape, epochs=epochs, seed=1, **options),
        member("sgd", 0.1, shape=shape, epochs=epochs, seed=1, weight_decay=0.0, **options),
        member("adam", 1e-3, shape=shape, epochs=epochs, seed=3, weight_decay=1e-2, **options),
        member("momentum", 0.01, shape=shape, epochs=epochs, seed=0, momentum=0.5, **options),
    ]


def start(one: Member) -> Fnn:
    """The network a member begins as, in float64."""
    return one.shape.build(one.recipe.seed).to(torch.float64)


def alone(one: Member, x: Tensor, y: Tensor, *, stages: Sequence[Stage] = (), network: Fnn | None = None) -> Fnn:
    """A member trained by `train`, one call a stage, on labels with its noise."""
    network = start(one) if network is None else network
    y = randomize_labels(y, share=one.label_noise, classes=one.shape.classes, seed=one.data_seed)
    for stage in stages or (Stage(epochs=one.recipe.epochs),):
        freeze(network, stage)
        train(network, x, y, recipe=stage.recipe(one.recipe))
    return network


def layers_of(network: Fnn) -> list[nn.Module]:
    """The layers as a stage numbers them, the first being layer 1."""
    return [*network.blocks, network.head]


def freeze(network: Fnn, stage: Stage) -> None:
    """Frozen layers ask for no gradient; with `hold` their norms are in evaluation mode and stay in it."""
    for number, layer in enumerate(layers_of(network), start=1):
        learns = stage.trains is None or number in stage.trains
        layer.requires_grad_(learns)
        for norm in (part for part in layer.modules() if isinstance(part, nn.BatchNorm1d)):
            norm.__dict__.pop("train", None)
            if not learns and stage.frozen_norm == "hold":
                norm.eval()
                norm.train = lambda mode=True, norm=norm: norm  # type: ignore[method-assign,misc,assignment]


def gaps(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> dict[str, float]:
    """‖Δθ‖/‖θ‖ of every tensor; whole numbers have to be equal.

    A tensor that is rounding itself has no relative error: shifts before another BatchNorm, without a ReLU in between,
    start at 0 and get gradients that only rounding keeps from being 0.
    """
    assert set(found) == set(expected)
    values = {}
    for name, wanted in expected.items():
        if not wanted.is_floating_point():
            assert torch.equal(found[name], wanted), name
            continue
        size, gap = float(wanted.norm()), float((found[name] - wanted).norm())
        values[name] = 0.0 if gap == 0 or max(size, gap) < NOTHING else gap / size if size else torch.inf
    return values


def worst(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> float:
    """The largest ‖Δθ‖/‖θ‖ of a state dict; infinite where one is NaN."""
    values = torch.tensor(list(gaps(found, expected).values()), dtype=torch.float64)
    return float(values.nan_to_num(nan=torch.inf).max())


def same(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> bool:
    """Whether two state dicts agree to the bit."""
    return set(found) == set(expected) and all(torch.equal(found[name], value) for name, value in expected.items())

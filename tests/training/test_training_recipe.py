"""The recipe: schedule, optimizers, and what it refuses."""

import pytest
import torch

from equisep.errors import InputError
from equisep.training import Recipe


def test_the_defaults_are_the_papers() -> None:
    recipe = Recipe()
    assert (recipe.optimizer, recipe.epochs, recipe.batch_size, recipe.weight_decay) == ("adam", 600, 128, 5e-4)
    assert recipe.momentum == 0.9


@pytest.mark.parametrize("epochs", [3, 9, 30, 99, 300, 600])
def test_the_rate_falls_tenfold_after_a_third_and_after_two_thirds(epochs: int) -> None:
    recipe = Recipe(rate=0.5, epochs=epochs)
    third = epochs // 3
    rates = [recipe.rate_at(epoch) for epoch in range(epochs)]
    assert rates[:third] == [0.5] * third
    assert rates[third : 2 * third] == pytest.approx([0.05] * third)
    assert rates[2 * third :] == pytest.approx([0.005] * third)


def test_milestones_and_factor_can_be_chosen() -> None:
    recipe = Recipe(rate=1.0, epochs=10, milestones=(0.5,), factor=0.25)
    assert [recipe.rate_at(epoch) for epoch in (4, 5, 9)] == [1.0, 0.25, 0.25]
    assert Recipe(rate=1.0, milestones=()).rate_at(599) == 1.0


@pytest.mark.parametrize(
    ("name", "kind", "momentum"),
    [("sgd", torch.optim.SGD, 0.0), ("momentum", torch.optim.SGD, 0.9), ("adam", torch.optim.Adam, None)],
)
def test_the_three_optimizers_are_torchs_with_coupled_weight_decay(
    name: str, kind: type[torch.optim.Optimizer], momentum: float | None
) -> None:
    optimizer = Recipe(optimizer=name, rate=0.1).make_optimizer([torch.nn.Parameter(torch.zeros(3))])  # type: ignore[arg-type]
    (group,) = optimizer.param_groups
    assert isinstance(
        optimizer, kind
    )  # in `training/eager.py` without torch's guards: test_eager.py compares the steps
    assert (group["lr"], group["weight_decay"], group.get("momentum")) == (0.1, 5e-4, momentum)
    assert not group.get("decoupled_weight_decay", False)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rate": 0.0}, "`rate` must be a positive number; found 0.0."),
        ({"rate": float("nan")}, "`rate` must be a positive number; found nan."),
        ({"rate": float("inf")}, "`rate` must be a positive number; found inf."),
        ({"factor": -0.1}, "`factor` must be a positive number; found -0.1."),
        ({"weight_decay": -1e-4}, "`weight_decay` must be a number from 0 on; found -0.0001."),
        ({"momentum": float("nan")}, "`momentum` must be a number from 0 on; found nan."),
        ({"epochs": -1}, "Training needs epochs ≥ 0 and batch_size ≥ 1; found epochs=-1, batch_size=128."),
        ({"batch_size": 0}, "Training needs epochs ≥ 0 and batch_size ≥ 1; found epochs=600, batch_size=0."),
    ],
)
def test_a_bad_recipe_is_refused_with_one_sentence(options: dict[str, float], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        Recipe(**options)  # type: ignore[arg-type]
    assert str(caught.value) == sentence


def test_an_unknown_optimizer_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError) as caught:
        Recipe(optimizer="adm")
    assert str(caught.value).startswith("No optimizer `adm`. Did you mean `adam`")
    assert " Known: sgd, momentum, adam, " in str(caught.value) and ", rmsprop, " in str(caught.value)

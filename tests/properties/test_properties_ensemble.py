"""Whatever its shape, data and company, a member is the network it would be alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from equisep.data import randomize_labels
from equisep.training import Member, Recipe, Shape, Stage, Watch, train, train_ensemble

UNITS = st.integers(1, 9)
SHAPES = st.fixed_dictionaries(
    {"widths": st.lists(UNITS, max_size=4), "inputs": UNITS, "classes": st.integers(2, 6), "norm": st.booleans()}
)
RECIPES = st.fixed_dictionaries(
    {
        "optimizer": st.sampled_from(["sgd", "momentum", "adam"]),
        "rate": st.sampled_from([1e-3, 1e-2]),
        "weight_decay": st.sampled_from([0.0, 1e-2]),
        "momentum": st.sampled_from([0.0, 0.5, 0.9]),
        "milestones": st.sampled_from([(), (0.5,)]),
        "seed": st.integers(0, 5),
    }
)
DATA = st.fixed_dictionaries({"data_seed": st.integers(0, 2), "label_noise": st.sampled_from([0.0, 0.3])})


@settings(max_examples=40)
@given(
    size=SHAPES,
    options=st.lists(st.tuples(RECIPES, DATA), min_size=1, max_size=5),
    n=st.integers(3, 70).filter(lambda n: n % 20 != 1),
    chunk=st.sampled_from([None, 2]),
    data=st.data(),
)
def test_a_member_is_the_network_it_would_be_alone(
    size: dict[str, Any],
    options: list[tuple[dict[str, Any], dict[str, Any]]],
    n: int,
    chunk: int | None,
    data: st.DataObject,
) -> None:
    shape = Shape(**{**size, "widths": tuple(size["widths"])})
    members = [Member(Recipe(**recipe, epochs=2, batch_size=20), shape, **own) for recipe, own in options]
    layers = range(1, shape.depth + 1)
    trains = data.draw(st.one_of(st.none(), st.sets(st.sampled_from(layers), min_size=1).map(tuple)))
    generator = torch.Generator("cpu").manual_seed(n)
    x = torch.randn(n, shape.inputs, generator=generator, dtype=torch.float64)
    y = torch.arange(n) % shape.classes
    stages = [Stage(epochs=2, trains=trains)]
    found = train_ensemble(members, x, y, stages=stages, chunk=chunk, dtype=torch.float64, watch=Watch(sites=False))
    for index, member in enumerate(members):
        network = shape.build(member.recipe.seed).to(torch.float64)
        for number, layer in zip(layers, [*network.blocks, network.head], strict=True):
            layer.requires_grad_(trains is None or number in trains)
        labels = randomize_labels(y, share=member.label_noise, classes=shape.classes, seed=member.data_seed)
        history = train(network, x, labels, recipe=member.recipe)
        for name, wanted in network.state_dict().items():
            # batches of a few samples amplify rounding: a unit that is nearly constant in one is divided by nearly nothing
            assert torch.allclose(found.weights(index)[name], wanted, rtol=1e-6, atol=1e-8), name
        assert found.loss[index].tolist() == pytest.approx(history.loss, rel=1e-4)

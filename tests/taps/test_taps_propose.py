"""Layers and blocks that are proposed for models which declare none: functional, residual, transformers, mixed."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from equisep.taps import Grains, grains_of, recorded_calls, resolve_sites


def grains(model: nn.Module, x: Tensor) -> Grains:
    """What is proposed once a forward pass has been seen."""
    with recorded_calls(model) as calls, torch.no_grad():
        model.eval()(x)
    return grains_of(model, calls)


def codes(found: Grains) -> list[str]:
    return [note.code for note in found.notes]


class Functional(nn.Module):
    """ReLU and pooling as functions; BatchNorm after every convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.conv2, self.bn2 = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.hidden = nn.Linear(4, 5)
        self.head = nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = functional.relu(self.bn1(self.conv1(x)))
        h = functional.relu(self.bn2(self.conv2(h))).mean(dim=(2, 3))
        return self.head(torch.relu(self.hidden(h)))


def test_a_functional_model_is_read_after_normalization_with_a_note() -> None:
    found = grains(Functional(), torch.randn(2, 1, 6, 6))
    assert found.layers == found.blocks == ("bn1", "bn2", "hidden")
    assert found.notes[0].text.startswith("`Functional` has no activation modules after most of its layers")
    assert resolve_sites(Functional()) == ("input", "conv1", "bn1", "conv2", "bn2", "hidden")  # without a forward pass


class Basic(nn.Module):
    """A residual block with functional activations, as much published code has it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(x + self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x))))))


class Stages(nn.Module):
    """Two stages of two blocks, a stem and a head with an activation of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3, padding=1)
        self.layer1 = nn.Sequential(Basic(4), Basic(4))
        self.layer2 = nn.Sequential(Basic(4), Basic(4))
        self.head = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer2(self.layer1(self.stem(x))).mean(dim=(2, 3)))


def test_residual_blocks_are_found_inside_their_stages() -> None:
    found = grains(Stages(), torch.randn(2, 1, 6, 6))
    assert found.blocks == ("layer1.0", "layer1.1", "layer2.0", "layer2.1")
    assert "layer1.0.bn1" in found.layers and "layer1.0.conv1" not in found.layers  # one ReLU in the head is not enough
    assert codes(found) == ["functional"]


def test_blocks_that_are_attributes_are_found() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block1, self.block2, self.block3 = Basic(1), Basic(1), Basic(1)

        def forward(self, x: Tensor) -> Tensor:
            return self.block3(self.block2(self.block1(x)))

    assert resolve_sites(Named(), "blocks") == ("input", "block1", "block2", "block3")


def test_of_several_repeated_classes_the_one_with_most_parameters_is_the_block() -> None:
    class Transition(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.pool = nn.Conv2d(4, 4, 1), nn.AvgPool2d(2)

        def forward(self, x: Tensor) -> Tensor:
            return self.pool(self.conv(x))

    features = nn.Sequential(nn.Conv2d(1, 4, 3), Basic(4), Transition(), Basic(4), Transition(), Basic(4))
    assert resolve_sites(nn.Sequential(features, nn.Flatten(), nn.Linear(4, 2)), "blocks") == (
        "input", "0.1", "0.3", "0.5",
    )  # fmt: skip


def test_plain_stacks_of_layers_are_blocks_when_they_stand_in_a_row() -> None:
    layer = lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())  # noqa: E731
    model = nn.Sequential(nn.Sequential(layer(), layer(), layer()), nn.Linear(4, 2))
    found = grains(model, torch.randn(5, 4))
    assert found.blocks == ("0.0", "0.1", "0.2")
    assert found.layers == ("0.0.2", "0.1.2", "0.2.2")


def test_features_and_classifier_are_no_blocks() -> None:
    class Vgg(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.ReLU())
            self.classifier = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 2))

        def forward(self, x: Tensor) -> Tensor:
            return self.classifier(self.features(x).flatten(1))

    found = grains(Vgg(), torch.randn(2, 1, 6, 6))
    assert found.blocks == found.layers == ("features.1", "features.3", "classifier.1")


class GELUActivation(nn.Module):
    """An activation of somebody's own, known by its name."""

    def forward(self, x: Tensor) -> Tensor:
        return functional.gelu(x)


class Encoder(nn.Module):
    """A transformer as Hugging Face builds them: embeddings, a list of layers, a pooler."""

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
            self.up, self.act, self.down = nn.Linear(4, 8), GELUActivation(), nn.Linear(8, 4)
            self.norm = nn.LayerNorm(4)

        def forward(self, x: Tensor) -> Tensor:
            x = x + self.attention(x, x, x)[0]
            return self.norm(x + self.down(self.act(self.up(x))))

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(11, 4)
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList(Encoder.Layer() for _ in range(3))
        self.pooler = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.classifier = nn.Linear(4, 2)

    def forward(self, input_ids: Tensor) -> Tensor:
        x = self.embeddings(input_ids)
        for layer in self.encoder.layer:
            x = layer(x)
        return self.classifier(self.pooler(x[:, 0]))


def test_a_transformer_is_read_after_its_layers_or_its_activations() -> None:
    found = grains(Encoder(), torch.randint(11, (2, 5)))
    assert found.blocks == ("encoder.layer.0", "encoder.layer.1", "encoder.layer.2")
    assert found.layers == ("encoder.layer.0.act", "encoder.layer.1.act", "encoder.layer.2.act", "pooler.1")
    assert codes(found) == []


def test_gates_are_no_activations_beside_others() -> None:
    class Squeeze(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act, self.gate = nn.SiLU(), nn.Sigmoid()

        def forward(self, x: Tensor) -> Tensor:
            h = self.act(x)
            return h * self.gate(h)

    assert resolve_sites(nn.Sequential(Squeeze(), nn.Linear(4, 2)), "layers") == ("input", "0.act")
    assert resolve_sites(nn.Sequential(nn.Linear(4, 4), nn.Sigmoid(), nn.Linear(4, 2)), "layers") == ("input", "1")


def test_one_activation_called_after_every_layer_is_no_functional_model() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(5))
            self.act = nn.ReLU()

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                x = self.act(layer(x))
            return x

    found = grains(Shared(), torch.randn(3, 4))
    assert found.layers == ("act",)
    assert codes(found) == []


@pytest.mark.parametrize("grain", ["layers", "blocks", "auto"])
def test_both_grains_together_are_auto(grain: str) -> None:
    both = grains_of(Stages())
    wanted = {"layers": both.layers, "blocks": both.blocks, "auto": (*both.layers, *both.blocks)}[grain]
    assert resolve_sites(Stages(), grain) == ("input", *wanted)


def test_a_model_may_declare_one_grain() -> None:
    model = Stages()
    model.sites = {"blocks": ("layer1", "layer2")}
    found = grains_of(model)
    assert found.blocks == ("layer1", "layer2")
    assert "layer1.0.bn1" in found.layers


def test_blocks_are_of_one_class_whether_or_not_fully_shard_was_called_on_them() -> None:
    """It puts a class of its own over theirs."""

    class FSDPModule:
        pass

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return x + self.two(self.one(x).relu())

    class FSDPBlock(FSDPModule, Block):
        pass

    plain = nn.Sequential(Block(), Block(), Block(), nn.Linear(4, 2))
    some = nn.Sequential(Block(), FSDPBlock(), Block(), nn.Linear(4, 2))
    assert grains(some, torch.randn(3, 4)) == grains(plain, torch.randn(3, 4))
    assert grains(some, torch.randn(3, 4)).blocks == ("0", "1", "2")

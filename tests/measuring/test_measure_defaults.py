"""What `measure` chooses by itself: the grain, the reduction, the classifier's input, the names of classes, and what it notes."""

from __future__ import annotations

import pytest
import torch
from measured_by_hand import batches, codes, network, note, samples
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import equisep
from equisep.errors import FeatureError, InputError
from equisep.measuring import measure
from equisep.models import build

X, Y = samples([30] * 4)
CHEAP = {"intervals": "none", "coordinates": 0, "metrics": ["fuzziness", "ncc", "collapse"]}


class Functional(nn.Module):
    """Activations as functions: no module gives what the classifier reads."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(8, 9), nn.Linear(9, 7), nn.Linear(7, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = functional.relu(self.fc1(x))
        return self.fc3(functional.relu(self.fc2(h)))


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear, self.act = nn.Linear(width, width), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return x + self.act(self.linear(x))


def residual(blocks: int) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 6), nn.ReLU(), *(Residual(6) for _ in range(blocks)), nn.Linear(6, 4))


def test_the_input_of_the_classifier_is_the_last_site_where_activations_are_functions() -> None:
    torch.manual_seed(0)
    model = Functional()
    profile = measure(model, (X, Y), **CHEAP)
    assert [site.name for site in profile.sites] == ["input", "fc1", "fc2", "fc3:in"]
    assert profile.classifier is not None and profile.classifier.name == "fc3"
    with torch.no_grad():
        last = functional.relu(model.fc2(functional.relu(model.fc1(X))))
    assert profile.sites[-1].fuzziness == pytest.approx(
        equisep.fuzziness(last, Y), rel=1e-6
    )  # float32 passes in other batches


@pytest.mark.parametrize(("blocks", "grain"), [(2, "layers"), (3, "blocks"), (5, "blocks")])
def test_the_grain_follows_the_structure_of_the_model(blocks: int, grain: str) -> None:
    profile = measure(residual(blocks), (X, Y), **CHEAP)
    assert profile.settings["grain"] == grain
    assert profile.grains is not None and profile.grains.chosen == grain
    assert profile.laws.keys() >= {"layers", "blocks"}
    assert profile.law == profile.laws[grain]
    assert note(profile, "grain").startswith(f"Layers and blocks were both measured; the {grain} are reported, since")


@pytest.mark.parametrize("seed", range(4))
def test_the_grain_does_not_follow_the_weights_or_the_data(seed: int) -> None:
    """It went by the fit before: two trainings of one architecture could share no site."""
    torch.manual_seed(seed)
    model = residual(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter))
    kept = 4 - seed % 2 > Y
    assert measure(model, (X[kept], Y[kept]), classes=4, **CHEAP).settings["grain"] == "blocks"


class Tokens(nn.Module):
    """A tiny encoder of padded token sequences, by name as Hugging Face's are called."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.layer, self.act, self.head = nn.Embedding(20, 6), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        return self.head(self.act(self.layer(self.embed(input_ids))).mean(dim=1))


def test_token_sequences_are_averaged_over_their_real_tokens() -> None:
    torch.manual_seed(0)
    ids, y = torch.randint(1, 20, (60, 7)), torch.arange(60) % 2
    mask = (torch.arange(7) < torch.randint(2, 7, (60, 1))).long()
    data = ({"input_ids": ids, "attention_mask": mask}, y)
    model = Tokens()
    plain = measure(model, data, **CHEAP)
    asked = measure(model, data, reduction="mean", **CHEAP)
    assert plain.settings["reduction"] == "mean"
    assert plain.curve() == asked.curve()
    assert "real tokens" in note(plain, "reduction") and "reduction" not in codes(asked)
    assert measure(model, data, reduction="flatten", **CHEAP).curve() != plain.curve()


def test_image_transformers_are_averaged_over_patches_and_images_flattened() -> None:
    class Patches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patch = nn.Conv2d(1, 8, 4, stride=4)
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            self.head = nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.layer(self.patch(x).flatten(2).transpose(1, 2)).mean(dim=1))

    torch.manual_seed(0)
    images, y = torch.randn(40, 1, 8, 8), torch.arange(40) % 4
    profile = measure(Patches(), (images, y), **CHEAP)
    assert profile.settings["reduction"] == "mean"
    assert "average of an image is 1 number" in note(profile, "reduction")
    # D of one number per image stood below that of every layer, and made the curve rise
    assert "input" not in [site.name for site in profile.sites]
    asked = measure(Patches(), (images, y), reduction="mean", **CHEAP)
    assert [site.name for site in asked.sites] == ["input", *(site.name for site in profile.sites)]
    plain = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 4))
    profile = measure(plain, (images, y), **CHEAP)
    assert profile.settings["reduction"] == "flatten" and "reduction" not in codes(profile)


def test_class_names_come_from_the_data_or_the_caller() -> None:
    class Named(TensorDataset):
        classes = ("cat", "dog", "eel", "fox")

    loader = DataLoader(Named(X, Y), batch_size=30)
    assert measure(network(), loader, **CHEAP).class_names == Named.classes
    assert measure(network(), loader, class_names=list("wxyz"), **CHEAP).class_names == tuple("wxyz")
    assert measure(network(), batches((X, Y)), **CHEAP).class_names is None


def test_an_unpacking_function_reads_any_batch() -> None:
    odd = [{"deep": (x, {"target": y})} for x, y in batches((X, Y))]
    profile = measure(network(), odd, unpack=lambda batch: (batch["deep"][0], batch["deep"][1]["target"]), **CHEAP)
    assert profile.curve() == measure(network(), batches((X, Y)), **CHEAP).curve()


def test_a_different_class_mix_of_training_and_test_data_is_noted() -> None:
    few = torch.cat([(k == Y).nonzero().flatten()[: 30 if k else 4] for k in range(4)])
    mixed = measure(network(), (X[few], Y[few]), (X, Y), **CHEAP)
    assert "the two curves of D do not compare" in note(mixed, "class-mix")
    assert "class-mix" not in codes(measure(network(), (X[few], Y[few]), (X, Y), weighting="class", **CHEAP))
    assert "class-mix" not in codes(measure(network(), (X, Y), (X, Y), **CHEAP))


class Late(nn.Module):
    """The first token is the same in every sentence: its embedding has no D, what attends to the others has."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.mix, self.act = nn.Embedding(20, 6), Mix(), nn.ReLU()
        self.layer, self.head = nn.Linear(6, 6), nn.Linear(6, 2)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.act(self.layer(self.mix(self.embed(ids)))).mean(dim=1))


class Mix(nn.Module):
    def forward(self, h: Tensor) -> Tensor:
        return h + h.mean(dim=1, keepdim=True)


def test_a_first_site_without_d_is_left_out_of_the_law_with_a_note() -> None:
    """The law was refused whole; now its line, its loads and its curve stand at the sites that have D."""
    torch.manual_seed(0)
    ids, y = torch.randint(1, 20, (60, 5)), torch.arange(60) % 2
    ids[:, 0] = 1
    profile = measure(Late(), (ids, y), sites=["embed", "mix", "layer", "act"], reduction="first")
    assert profile.sites[0].fuzziness is None
    assert profile.law.curve == profile.curve()[1:] and profile.law.rho is not None
    assert "the law is that of the sites after them" in note(profile, "late-curve")
    assert profile.to_frame()["load"].tolist()[2:] == pytest.approx(list(profile.law.loads))
    lines = [line.get_xdata() for line in profile.plot().lines if line.get_linewidth() == 1.4]
    assert [list(ends) for ends in lines] == [[2, 4]]


def test_a_site_without_d_after_others_leaves_no_law() -> None:
    class Zero(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.zeros_like(x)

    class Gap(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.zero, self.net = Zero(), network()

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x + self.zero(x))

    profile = measure(Gap(), (X, Y), sites=["zero", "net.blocks.*"])
    assert profile.law.curve == ()
    assert note(profile, "no-curve").startswith("No law")


@pytest.mark.parametrize("value", [1e300, 1e-300, 1e160, 1e-170])
def test_numbers_of_any_size_have_their_metrics(value: float) -> None:
    """Squares beyond float64 gave nan, and nearest centers 0.2 for 0.93."""
    x = X.double().numpy()
    for metric in (equisep.fuzziness, equisep.cdnv, equisep.ncc_accuracy):
        assert metric(x * value, Y) == pytest.approx(metric(x, Y), rel=1e-9)
    assert equisep.ncc_accuracy(x * value, Y, train=(x * value, Y)) == equisep.ncc_accuracy(x, Y)


def test_features_beyond_all_squares_are_one_sentence() -> None:
    model = nn.Sequential(nn.Linear(8, 4, dtype=torch.float64), nn.ReLU(), nn.Linear(4, 4, dtype=torch.float64))
    with pytest.raises(FeatureError, match="beyond"):
        measure(model, (X.double() * 1e300, Y))


def test_a_mean_of_half_precision_keeps_its_digits() -> None:
    """The mean was rounded back to the features' type: D off by 0.65 % at an offset of 10."""
    torch.manual_seed(0)
    maps = (torch.randn(400, 3, 8, 8) * 0.3 + torch.eye(4, 3)[torch.arange(400) % 4, :, None, None] + 10).bfloat16()
    y = torch.arange(400) % 4
    model = nn.Sequential(nn.Identity(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 4)).bfloat16()
    profile = measure(model, (maps, y), sites=["0"], reduction="mean", **CHEAP)
    exact = equisep.fuzziness(maps.double().mean(dim=(2, 3)), y)
    assert profile["0"].fuzziness == pytest.approx(exact, rel=1e-4)


def test_every_family_has_a_grain_by_structure() -> None:
    assert (
        measure(
            build("resnet18", seed=0, classes=4), (torch.randn(40, 3, 32, 32), torch.arange(40) % 4), **CHEAP
        ).settings["grain"]
        == "blocks"
    )


def test_wrong_words_for_the_reading_are_refused() -> None:
    with pytest.raises(InputError, match="No reading `bach`"):
        measure(network(), (X, Y), mode="bach")

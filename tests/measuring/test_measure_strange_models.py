"""Models and data as users have them: each of these once gave a wrong number, a raw error, or a changed model."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from measured_by_hand import batches, network, samples
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from equisep.errors import DataError, InputError, ModelError, SiteError
from equisep.measuring import measure
from equisep.taps import resolve_sites

X, Y = samples([20] * 4)


class Shared(nn.Module):
    """One activation, called three times."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b, self.c, self.relu = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.c(self.relu(self.b(self.relu(self.a(self.relu(x))))))


@pytest.mark.parametrize(
    ("sites", "names"),
    [
        ("relu:1", ["input", "relu"]),
        (["relu:1", "b"], ["input", "relu", "b"]),
        (["relu:1", "relu:3"], ["input", "relu", "relu:3"]),
        (["layers", "a"], ["input", "relu", "a", "relu:2", "relu:3"]),
    ],
)
def test_the_first_call_by_its_number_and_a_grain_among_names(sites: Any, names: list[str]) -> None:
    assert [site.name for site in measure(Shared(), (X, Y), sites=sites).sites] == names


def test_a_module_called_input_twice() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.input, self.head = nn.Linear(8, 8), nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.input(self.input(x)))

    profile = measure(Named(), (X, Y), sites=["input:2"])
    assert [site.name for site in profile.sites] == ["input", "input:2"]


def test_a_classifier_whose_weight_is_made_anew_at_every_look() -> None:
    """Spectral normalization iterates while a module trains: reading must not move it, and sees what `eval` sees."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.utils.parametrizations.spectral_norm(nn.Linear(8, 4)))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    trained = measure(model.train(), (X, Y), sites=["1"])
    evaluated = measure(model.eval(), (X, Y), sites=["1"])
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert trained.classifier is not None
    assert trained.classifier == evaluated.classifier


def test_modules_that_do_more_in_train_and_eval_than_set_a_flag() -> None:
    class Merging(nn.Linear):
        merged = False

        def train(self, mode: bool = True) -> Merging:
            if not mode and not self.merged:
                self.weight.data += 1.0
                self.merged = True
            return super().train(mode)

    model = nn.Sequential(Merging(8, 8), nn.ReLU(), nn.Linear(8, 4))
    weight = model[0].weight.clone()
    measure(model, (X, Y))
    assert torch.equal(model[0].weight, weight)
    assert not model[0].merged


@pytest.mark.parametrize("mode", ["eval", "mixed"])
def test_a_shuffling_loader_gives_one_d_whatever_the_memory(mode: str) -> None:
    def loader() -> Any:
        torch.manual_seed(5)
        return DataLoader(TensorDataset(X, Y), batch_size=32, shuffle=True, drop_last=True)

    kept, streamed = (measure(network(), loader(), reading=mode, memory=memory) for memory in (None, 0))  # type: ignore[arg-type]
    assert kept.curve() == pytest.approx(streamed.curve(), rel=1e-9)


def test_components_of_a_shuffling_loader_in_several_rounds_keep_their_intervals() -> None:
    torch.manual_seed(5)
    loader = DataLoader(TensorDataset(X, Y), batch_size=40, shuffle=True)
    profile = measure(network(), loader, reduction="pca=3", memory=4000)
    codes = [note.code for note in profile.notes]
    assert "rounds" in codes and "shuffled" not in codes


def test_a_model_that_draws_random_numbers_draws_them_again() -> None:
    class Dropping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.a, self.relu, self.b, self.end, self.head = (
                nn.Linear(8, 16),
                nn.ReLU(),
                nn.Linear(16, 9),
                nn.ReLU(),
                nn.Linear(9, 4),
            )

        def forward(self, x: Tensor) -> Tensor:
            h = functional.dropout(self.relu(self.a(x)), 0.5, training=True)
            return self.head(functional.dropout(self.end(self.b(h)), 0.5, training=True))

    data = batches((X, Y))
    curves = []
    for memory in (None, 12_000, 0):
        torch.manual_seed(3)
        profile = measure(Dropping(), data, sites=["relu", "end"], memory=memory)
        assert "changed" not in [note.code for note in profile.notes]
        curves.append(profile.curve())
    assert curves[1] == pytest.approx(curves[0], rel=1e-9)
    assert curves[2] == pytest.approx(curves[0], rel=1e-9)


def test_boolean_inputs() -> None:
    class Cast(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(x.float())

    profile = measure(Cast(), (X > 0, Y), sites=["head"])
    assert profile.sites[0].fuzziness is not None


@pytest.mark.parametrize("declared", [{"layers": ["rellu"], "blocks": ["a"]}, {"layers": "relu"}, {"layers": [3]}])
def test_sites_that_a_model_declares_wrongly(declared: Any) -> None:
    model = Shared()
    model.sites = declared
    with pytest.raises(SiteError, match=r"No module `rellu`|should list names of its modules"):
        measure(model, (X, Y), sites="layers")


def test_a_module_is_no_site_but_its_name_is() -> None:
    model = Shared()
    with pytest.raises(InputError, match="`sites` takes"):
        measure(model, (X, Y), sites=[model.a])  # type: ignore[list-item]


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.head = nn.Linear(3, 5), nn.Linear(5, 2)

    def forward(
        self, x: Tensor, *, attention_mask: Tensor | None = None, key_padding_mask: Tensor | None = None
    ) -> Tensor:
        return self.head(self.layer(x)[:, 0])


def test_masks_by_torch_s_names_and_masks_that_are_added() -> None:
    torch.manual_seed(1)
    y = torch.arange(40) % 2
    counts = torch.arange(6) < torch.randint(1, 7, (40, 1))
    x = torch.randn(40, 6, 3) + y[:, None, None]
    x[~counts] = 1e3  # padding, which must not count
    masks = {
        "attention_mask": counts.long(),
        "key_padding_mask": ~counts,
    }
    found = [
        measure(Masked(), {"x": x, name: mask, "labels": y}, sites=["layer"], reduction="mean")
        for name, mask in masks.items()
    ]
    added = torch.zeros(40, 6).masked_fill(~counts, -1e9)
    found.append(measure(Masked(), {"x": x, "attention_mask": added, "labels": y}, sites=["layer"], reduction="mean"))
    assert found[0].curve()[0] < 10
    for other in found[1:]:
        assert other.curve() == found[0].curve()


def test_a_lazy_module_is_refused_and_stays_lazy() -> None:
    model = nn.Sequential(nn.LazyLinear(6), nn.ReLU(), nn.Linear(6, 4))
    with pytest.raises(ModelError, match=r"`0\.weight` has no shape yet\. Run the model once on a batch first\."):
        measure(model, (X, Y))
    assert isinstance(model[0], nn.LazyLinear)


def test_attention_and_parametrized_layers_are_found() -> None:
    class Attending(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
            self.linear = nn.utils.parametrizations.weight_norm(nn.Linear(8, 8))
            self.head = nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Tensor:
            h = self.attention(x.unsqueeze(1), x.unsqueeze(1), x.unsqueeze(1))[0].squeeze(1)
            return self.head(functional.relu(self.linear(h)))

    assert resolve_sites(Attending(), "layers") == ("input", "attention", "linear")
    profile = measure(Attending(), (X, Y), sites="layers")
    assert [site.name for site in profile.sites] == ["input", "attention", "linear", "head:in"]
    assert measure(Attending(), (X, Y), sites="**").sites[-1].name == "head"


def test_a_block_that_hands_on_its_input() -> None:
    class Block(nn.Module):
        def __init__(self, skipped: bool) -> None:
            super().__init__()
            self.one, self.act, self.two, self.end, self.skipped = (
                nn.Linear(8, 8),
                nn.ReLU(),
                nn.Linear(8, 8),
                nn.ReLU(),
                skipped,
            )

        def forward(self, x: Tensor) -> Tensor:
            return x if self.skipped else self.end(self.two(self.act(self.one(x))))

    torch.manual_seed(0)
    model = nn.Sequential(*(Block(place == 2) for place in range(6)), nn.Linear(8, 4))
    profile = measure(model, (X, Y))
    assert profile.grains is not None
    assert profile["2"].fuzziness == profile["1"].fuzziness


@pytest.mark.parametrize("how", ["/", "**", "*"])
def test_a_mapping_for_a_forward_pass_without_names(how: str) -> None:
    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = nn.Linear(8, 8), nn.Linear(8, 4)

        def go(self, batch: dict[str, Tensor]) -> Tensor:
            return self.head(self.layer(batch["x"]))

    class Placed(Whole):
        def forward(self, batch: dict[str, Tensor], /) -> Tensor:
            return self.go(batch)

    class Open(Whole):
        def forward(self, batch: dict[str, Tensor], **more: Any) -> Tensor:
            return self.go(batch)

    class Starred(Whole):
        def forward(self, *batch: dict[str, Tensor]) -> Tensor:
            return self.go(batch[0])

    model = {"/": Placed, "**": Open, "*": Starred}[how]()
    assert measure(model, {"x": X, "labels": Y}, sites=["layer"]).sites[-1].name == "layer"


def test_a_site_that_never_changes_has_no_components() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    nn.init.constant_(model[0].bias, -1e6)
    profile = measure(model, (X, Y), sites=["1"], reduction="pca=2")
    assert profile["1"].fuzziness is None
    assert "no-separation" in [note.code for note in profile.notes]


def test_components_do_not_turn_rounding_into_separation() -> None:
    """Features that a layer computed are known to the rounding of their size, also once they are centered."""
    torch.manual_seed(0)
    x = 1e4 + 2e-3 * torch.randn(200, 50)
    model = nn.Sequential(nn.Linear(50, 50, bias=False), nn.Linear(50, 4))
    nn.init.eye_(model[0].weight)
    plain, components = (
        measure(model, (x, torch.arange(200) % 4), sites=["0"], reduction=how) for how in ("flatten", "pca=4")
    )
    assert plain["0"].fuzziness is None
    assert components["0"].fuzziness is None


def test_components_of_wide_features_have_a_chance_level() -> None:
    """As many random labelings are drawn as the narrow components take, not the wide features."""
    torch.manual_seed(0)
    x, y = torch.randn(60, 3000), torch.arange(60) % 3
    model = nn.Sequential(nn.Linear(3000, 3))
    profile = measure(model, (x, y), sites=["0"], reduction="pca=5")
    assert None not in profile.curve("null") and profile.sites[0].fuzziness_interval is not None


def test_few_samples_of_many_classes_are_kept() -> None:
    """Sums of many classes would take more memory than the features themselves."""
    torch.manual_seed(0)
    classes, n = 60, 300
    x, y = torch.randn(n, 20), torch.arange(n) % classes
    model = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, classes))
    features = 4 * n * (20 + 30)
    profile = measure(model, (x, y), sites=["1"], memory=int(1.05 * features), intervals="jackknife")
    assert profile.settings["intervals_by"] == "jackknife"
    assert profile.sites[0].coordinates is not None


def test_too_few_samples_for_folds_wherever_features_are() -> None:
    x, y = samples([4, 4, 4, 3])
    for memory in (None, 6000):
        profile = measure(network(), batches((x, y), 5), memory=memory, intervals="jackknife")
        assert "no-intervals" in [note.code for note in profile.notes]
        assert profile.law.intervals == {}


def test_a_reduction_that_fails_is_named() -> None:
    with pytest.raises(
        SiteError, match=r"The reduction `function <lambda>` could not take what site `input` gives, shape \(4, 8\)"
    ):
        measure(network(), (X, Y), reduction=lambda x: x.amax(dim=(2, 3)))


def switched(module: Any, word: str) -> None:
    module.fp32_precision = word
    assert measure(network(), (X, Y)).law.rho is not None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork: these switches cannot be taken back")
@pytest.mark.parametrize(
    ("module", "word"), [(torch.backends.mkldnn.matmul, "bf16"), (torch.backends, "tf32")], ids=["matmul", "all"]
)
def test_torch_s_newer_precision_switches(module: Any, word: str) -> None:
    """Once they are used, torch refuses to answer the older questions."""
    child = multiprocessing.get_context("fork").Process(target=switched, args=(module, word))
    child.start()
    child.join()
    assert child.exitcode == 0


def test_an_iterator_that_ends_early_loses_nothing_of_the_model() -> None:
    def broken() -> Iterator[tuple[Tensor, Tensor]]:
        yield X[:20], Y[:20]
        raise RuntimeError("the disk is gone")

    model = network()
    forward, hooks = model.forward, len(model._forward_hooks)
    with pytest.raises(DataError, match="RuntimeError: the disk is gone"):
        measure(model, broken())
    assert model.forward == forward and len(model._forward_hooks) == hooks

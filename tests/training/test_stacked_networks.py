"""A convolutional network of a stack is the network it would be alone: weights, order of batches, steps, buffers."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from trained_alone import same, worst

import equisep.training.stacked_networks as stacked_networks
from equisep.devices import precision
from equisep.errors import EquisepError, FeatureError, InputError, LabelError, ModelError, NumericalError
from equisep.models import PureCnn, build
from equisep.training import Recipe, StackedNetworks, train, train_stacked

ROUNDING = 1e-8  # of weights after training; the stack's own rounding, grown by nine steps
CLASSES = 3
NARROW: dict[str, dict[str, Any]] = {
    "resnet-2-layer": {"width_multiplier": 0.5, "size": 8},
    "resnet-mixed": {"width_multiplier": 0.5, "size": 8, "colors": 3},
    "pure-cnn": {"width_multiplier": 1 / 16, "size": 8, "colors": 3},
    "vgg11": {"width_multiplier": 1 / 32},
    "convnet": {"width_multiplier": 0.06, "size": 8, "depth": 3},
    "resnet20": {"width_multiplier": 1 / 8},
}
TINY = {"depth": 2, "channels": 4, "size": 6, "colors": 1, "classes": CLASSES}


def pictures(n: int = 40, *, colors: int = 1, size: int = 6, seed: int = 4) -> tuple[Tensor, Tensor]:
    """Classes around pictures of their own, in float64; 40 make batches of 16, 16 and 8."""
    generator = torch.Generator("cpu").manual_seed(seed)
    y = torch.arange(n) % CLASSES
    centers = torch.randn(CLASSES, colors, size, size, generator=generator, dtype=torch.float64)
    return centers[y] + torch.randn(n, colors, size, size, generator=generator, dtype=torch.float64), y


def recipe(optimizer: str = "adam", rate: float = 1e-3, *, seed: int = 0, **options: Any) -> Recipe:
    """Three epochs in batches of 16, so that the rate drops after each."""
    return Recipe(optimizer, rate, seed=seed, **{"epochs": 3, "batch_size": 16, **options})  # type: ignore[arg-type]


def mixed() -> list[Recipe]:
    """All three optimizers with different seeds, rates, decays, momenta and schedules, neighbors and others of equal settings."""
    return [
        recipe("momentum", 0.03, seed=2, weight_decay=1e-3),
        recipe("adam", 3e-4, seed=1),
        recipe("adam", 3e-4, seed=0),
        recipe("sgd", 0.1, seed=1, weight_decay=0.0),
        recipe("momentum", 0.01, seed=0, momentum=0.5, milestones=(0.0, 0.6), factor=0.5),
        recipe("adam", 3e-4, seed=3),
    ]


def tiny(recipes: list[Recipe], data: tuple[Tensor, Tensor] | None = None, **options: Any) -> StackedNetworks:
    settings = {"network": "pure-cnn", "options": TINY, "dtype": torch.float64, "chunk": 99, **options}
    return train_stacked(recipes, *(data or pictures()), **settings)


def alone(one: Recipe, data: tuple[Tensor, Tensor] | None = None, network: nn.Module | None = None) -> nn.Module:
    network = network or build("pure-cnn", seed=one.seed, **TINY).to(torch.float64)
    train(network, *(data or pictures()), recipe=one)
    return network


@pytest.mark.parametrize("name", sorted(NARROW))
def test_every_member_is_the_network_trained_alone(name: str) -> None:
    """‖Δθ‖/‖θ‖ ≤ 1e-8 for every parameter and buffer."""
    options = {"colors": 1, "classes": CLASSES, **NARROW[name]}
    x, y = pictures(colors=options["colors"], size=options.get("size", 32 if name == "vgg11" else 8))
    found = train_stacked(mixed(), x, y, network=name, options=options, dtype=torch.float64, chunk=6)
    assert found.settings["at_once"] == 6
    for member, one in enumerate(mixed()):
        network = build(name, seed=one.seed, **options).to(torch.float64)
        before = {key: value.detach().clone() for key, value in network.named_parameters()}
        history = train(network, x, y, recipe=one)
        assert worst(found.weights(member), network.state_dict()) <= ROUNDING
        assert worst({key: found.weights(member)[key] for key in before}, before) > 1e-2
        assert found.histories[member].loss == pytest.approx(history.loss, rel=1e-5)
        assert found.histories[member].accuracy == history.accuracy
        assert found.diverged[member] is None


def test_a_member_comes_back_as_an_ordinary_network() -> None:
    x, y = pictures()
    found = tiny(mixed())
    for member, one in enumerate(mixed()):
        network = found.network(member)
        assert isinstance(network, PureCnn) and not network.training
        assert same(network.state_dict(), found.weights(member))
        assert worst({"scores": network(x).detach()}, {"scores": alone(one).eval()(x).detach()}) < ROUNDING
        build("pure-cnn", seed=9, **TINY).to(torch.float64).load_state_dict(found.weights(member), strict=True)
        train(network, x, y, recipe=recipe())  # which goes on without touching what was found
        assert not same(network.state_dict(), found.weights(member))
    assert len(found) == 6 and found.recipes == tuple(mixed())


@pytest.mark.parametrize("place", [[5, 4, 3, 2, 1, 0], [3], [1, 3], [0, 2, 0, 0, 4]], ids=str)
def test_company_and_place_matter_by_rounding_only(place: list[int]) -> None:
    whole, part = tiny(mixed()), tiny([mixed()[member] for member in place])
    for at, member in enumerate(place):
        assert worst(part.weights(at), whole.weights(member)) < ROUNDING


@pytest.mark.parametrize("chunk", [1, 2, 4, None])
def test_chunks_matter_by_rounding_only_and_keep_the_order(chunk: int | None) -> None:
    whole, parts = tiny(mixed()), tiny(mixed(), chunk=chunk)
    assert parts.settings["at_once"] == (chunk or 1)  # on a CPU one at a time, unless asked
    for member in range(6):
        assert worst(parts.weights(member), whole.weights(member)) < ROUNDING
        assert parts.histories[member].loss == pytest.approx(whole.histories[member].loss)


def test_the_same_call_gives_the_same_bits_and_leaves_the_random_state_alone() -> None:
    state = torch.get_rng_state()
    one, two = tiny(mixed()), tiny(mixed())
    assert all(same(one.weights(member), two.weights(member)) for member in range(6))
    assert torch.equal(torch.get_rng_state(), state)


def test_a_member_starts_from_the_weights_its_seed_gives() -> None:
    found = tiny([recipe(seed=seed, epochs=0) for seed in (0, 7, 0)], dtype=torch.float32)
    for member, seed in enumerate((0, 7, 0)):
        assert same(found.weights(member), build("pure-cnn", seed=seed, **TINY).state_dict())
    assert all(history.loss == history.accuracy == () for history in found.histories)
    assert found.diverged == (None,) * 3


def test_networks_can_be_given_and_are_left_as_they_are() -> None:
    """Networks that have learned already, one for longer; frozen and unused parameters stay, as `train` leaves them."""

    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(1, 4, 3).requires_grad_(False)
            self.norm = nn.BatchNorm2d(4)
            self.head = nn.Linear(4, CLASSES)
            self.unused = nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            logits: Tensor = self.head(self.norm(self.conv(x)).relu().mean(dim=(2, 3)))
            return logits

    x, y = pictures()
    starts = []
    for seed in range(3):
        torch.manual_seed(seed)
        starts.append(Own().to(torch.float64))
        train(starts[-1], x, y, recipe=recipe(epochs=seed))
    before = [{name: value.clone() for name, value in start.state_dict().items()} for start in starts]
    recipes = [recipe("adam", 0.01), recipe("sgd", 0.1, seed=1), recipe("momentum", 0.1, seed=2)]
    found = tiny(recipes, network=starts, options=None)
    assert found.settings["network"] == "Own" and found.settings["starts"] == "given"
    assert all(same(start.state_dict(), was) for start, was in zip(starts, before, strict=True))
    for member, (one, start) in enumerate(zip(recipes, starts, strict=True)):
        assert worst(found.weights(member), alone(one, network=start).state_dict()) < ROUNDING
        for name in ("conv.weight", "conv.bias", "unused.weight", "unused.bias"):
            assert torch.equal(found.weights(member)[name], before[member][name])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_member_that_diverges_is_marked_and_disturbs_no_other(dtype: torch.dtype) -> None:
    recipes = [recipe("adam"), recipe("sgd", 1e300), recipe("momentum", 0.01, seed=1), recipe("sgd", 0.1, seed=2)]
    calm = [one if one.rate < 1 else recipe("sgd", 0.1) for one in recipes]
    found, without = tiny(recipes, dtype=dtype), tiny(calm, dtype=dtype)
    assert found.diverged[1] in (1, 2, 3) and not math.isfinite(found.histories[1].loss[-1])
    assert [found.diverged[member] for member in (0, 2, 3)] == [None] * 3
    assert without.diverged == (None,) * 4
    for member in (0, 2, 3):
        assert worst(found.weights(member), without.weights(member)) < (1e-4 if dtype is torch.float32 else ROUNDING)


def test_a_last_step_that_goes_wrong_is_marked_too() -> None:
    x, y = pictures()
    linear = nn.Sequential(nn.Flatten(), nn.Linear(36, CLASSES)).to(torch.float64)
    recipes = [recipe("sgd", rate, epochs=1, batch_size=40) for rate in (1e308, 1e-9)]
    found = tiny(recipes, (1e5 * x, y), network=[linear, linear], options=None)
    assert all(math.isfinite(history.loss[0]) for history in found.histories)
    assert found.diverged == (1, None)


def test_float32_is_the_networks_trained_alone_to_its_own_rounding() -> None:
    x, y = pictures()
    found = tiny(mixed(), (x.float(), y), dtype=torch.float32)
    for member, one in enumerate(mixed()):
        network = alone(one, (x.float(), y), build("pure-cnn", seed=one.seed, **TINY))
        assert worst(found.weights(member), network.state_dict()) < 1e-3


def test_progress_counts_epochs_of_all_members() -> None:
    told: list[tuple[str, int, int | None]] = []
    tiny(mixed(), chunk=3, progress=lambda *args: told.append(args))
    assert told == [("training", done, 3) for done in (0, 1, 1, 2, 2, 3)]


def test_training_works_where_gradients_are_off() -> None:
    with torch.no_grad():
        found = tiny(mixed())
    assert worst(found.weights(0), tiny(mixed()).weights(0)) == 0


def test_memory_that_runs_out_halves_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    original = stacked_networks.stack_modules

    def short(networks: list[nn.Module], *, sample: Any) -> Any:
        sizes.append(len(networks))
        if len(networks) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return original(networks, sample=sample)

    monkeypatch.setattr(stacked_networks, "stack_modules", short)
    parts = tiny(mixed())
    assert sizes == [6, 3, 2, 2, 2] and parts.settings["at_once"] == 2
    monkeypatch.undo()
    whole = tiny(mixed())
    assert all(worst(parts.weights(member), whole.weights(member)) < ROUNDING for member in range(6))


def test_memory_that_one_network_exceeds_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(*_: Any, **__: Any) -> Any:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(stacked_networks, "stack_modules", short)
    with pytest.raises(
        NumericalError, match=r"^Memory ran out on cpu for one `PureCnn` with batches of 16\. Use another"
    ):
        tiny(mixed())


def test_an_error_that_is_not_about_memory_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("something else")

    monkeypatch.setattr(stacked_networks, "stack_modules", broken)
    with pytest.raises(RuntimeError, match=r"^something else$"):
        tiny(mixed())


def test_products_and_convolutions_are_exact_unless_asked_and_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    places: tuple[Any, ...] = (torch.backends.cuda.matmul, torch.backends.cudnn.conv)  # type: ignore[attr-defined]
    before = [place.fp32_precision for place in places]
    seen: list[list[str]] = []
    original = stacked_networks.stack_modules

    def watched(*args: Any, **options: Any) -> Any:
        seen.append([place.fp32_precision for place in places])
        return original(*args, **options)

    monkeypatch.setattr(stacked_networks, "stack_modules", watched)
    assert tiny([recipe(epochs=0)]).settings["tf32"] is False
    assert tiny([recipe(epochs=0)], tf32=True).settings["tf32"] is True
    assert seen == [["ieee", "ieee"], ["tf32", "tf32"]]
    assert [place.fp32_precision for place in places] == before
    with pytest.raises(KeyError), precision(tf32=True):
        raise KeyError
    assert [place.fp32_precision for place in places] == before


def test_settings_and_provenance_say_how_numbers_were_made() -> None:
    found = tiny([recipe(epochs=1)])
    assert found.settings == {
        "network": "pure-cnn", "options": TINY, "starts": "seeds", "dtype": "float64", "tf32": False, "engine": "eager",
        "at_once": 1,
    }  # fmt: skip
    assert found.provenance["device"] == "cpu" and found.provenance["torch"] == torch.__version__


def refused(kind: type[EquisepError], sentence: str, call: Callable[[], Any]) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == sentence
    assert caught.value.exit_code == 2


@pytest.fixture
def nothing_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        pytest.fail("training began")

    monkeypatch.setattr(stacked_networks, "StackedStepper", never)


@pytest.mark.usefixtures("nothing_trains")
@pytest.mark.parametrize(
    ("recipes", "options", "sentence"),
    [
        ([], {}, "`train_stacked` needs at least one recipe; found none."),
        (
            [recipe(), recipe(batch_size=8)],
            {},
            "Networks of one stack share `batch_size`; recipe 0 has 16, recipe 1 has 8. Train one stack for each.",
        ),
        (
            [recipe(), recipe(), recipe(epochs=9)],
            {},
            "Networks of one stack share `epochs`; recipe 0 has 3, recipe 2 has 9. Train one stack for each.",
        ),
        (
            [recipe(batch_size=39)],
            {},
            "40 samples in batches of 39 leave a last batch of one, which BatchNorm cannot normalize. "
            "Change `batch_size` or the number of samples.",
        ),
        (
            [recipe(batch_size=1)],
            {},
            "40 samples in batches of 1 leave a last batch of one, which BatchNorm cannot normalize. "
            "Change `batch_size` or the number of samples.",
        ),
        (None, {"chunk": 0}, "`chunk` was 0; at least one network has to train at a time."),
        (None, {"engine": "graph"}, "No engine `graph`. Did you mean `graphs`? Known: auto, eager, graphs."),
        (
            None,
            {"engine": "graphs"},
            "Captured graphs need a CUDA device and float32; found cpu and torch.float64. Use `engine='auto'`.",
        ),
        (
            None,
            {"dtype": torch.float16},
            "Networks train side by side in float32 or float64; found torch.float16.",
        ),
        (
            None,
            {"network": [build("pure-cnn", seed=0, **TINY)], "options": None},
            "Found 1 networks for 6 recipes. Give one for each.",
        ),
        (
            None,
            {"network": [build("pure-cnn", seed=0, **TINY)] * 6},
            "`options` build networks by name; these networks are built already. Leave `options` out.",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(
    recipes: list[Recipe] | None, options: dict[str, Any], sentence: str
) -> None:
    refused(InputError, sentence, lambda: tiny(mixed() if recipes is None else recipes, **options))


@pytest.mark.usefixtures("nothing_trains")
def test_samples_and_labels_are_refused_with_what_is_wrong() -> None:
    x, y = pictures()
    bad = x.clone()
    bad[3, 0, 2, 1], bad[9, 0, 0, 0] = float("nan"), float("inf")
    for kind, data, sentence in [
        (FeatureError, (bad, y), "The samples hold 2 numbers that are NaN or infinite. Clean them before training."),
        (LabelError, (x, y + 1), "Labels must lie in 0 … 2 (`PureCnn` has 3 outputs); found 1 … 3, 13 of 40 outside. "
                                 "If they are counted from 1, subtract 1."),
        (LabelError, (x, y.double()), "`train_stacked` takes one integer label a sample; found torch.float64 of shape (40,)."),
        (InputError, (x, y[:-1]), "`train_stacked` needs one label a sample and at least one sample; found 40 and 39."),
        (InputError, (x[:0], y[:0]), "`train_stacked` needs one label a sample and at least one sample; found 0 and 0."),
    ]:  # fmt: skip
        refused(kind, sentence, lambda data=data: tiny(mixed(), data))
    with pytest.raises(ModelError, match=r"^`PureCnn` cannot take samples of shape \(1, 5, 6\): .+\.$"):
        tiny(mixed(), (x[:, :, 1:], y))


@pytest.mark.usefixtures("nothing_trains")
def test_networks_that_cannot_be_stacked_are_refused() -> None:
    other = [build("pure-cnn", seed=0, **{**TINY, "depth": depth}) for depth in (2, 2, 3)]
    refused(
        ModelError,
        "Networks of one stack share an architecture; `features.2` is not there in network 0 and Sequential() in network 2. "
        "Train one stack for each.",
        lambda: tiny([recipe()] * 3, network=other, options=None),
    )
    options = {"width_multiplier": 1 / 48, "colors": 1, "classes": CLASSES}
    with pytest.raises(ModelError, match=r"^`DenseNet161` cannot be stacked: "):
        tiny([recipe(), recipe(seed=1)], pictures(size=8), network="densenet161", options=options)
    with pytest.raises(ModelError, match=r"^No network `pure-cn`\. Did you mean `pure-cnn`\?"):
        tiny(mixed(), network="pure-cn")
    with pytest.raises(ModelError, match=r"^The network `pure-cnn` takes no `dept`\. Did you mean `depth`\?"):
        tiny(mixed(), options={"dept": 3})
    with pytest.raises(
        InputError, match=r"^`train_stacked` was asked for device `cuda:99`, which cannot be used here: "
    ):
        tiny(mixed(), device="cuda:99")


def test_a_word_that_is_no_optimizer_is_refused_by_the_recipe() -> None:
    # in a process of its own: here beartype would refuse the word before the record sees it
    code = """
import json
from equisep.errors import EquisepError
from equisep.training import Recipe
told = []
for wrong in ({"optimizer": "adm"}, {"rate": 0.0}, {"rate": float("nan")}):
    try:
        Recipe(**wrong)
    except EquisepError as error:
        told.append(str(error))
print(json.dumps(told))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [
        "No optimizer `adm`. Did you mean `adam`? Known: sgd, momentum, adam.",
        "`rate` must be a positive number; found 0.0.",
        "`rate` must be a positive number; found nan.",
    ]

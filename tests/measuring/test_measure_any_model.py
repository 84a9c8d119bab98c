"""One call on any model: wrapped, compiled, half precision, dictionaries, reductions; one forward pass for all sites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, distributed, nn

import equisep
from equisep.data import Batches
from equisep.errors import InputError, ModelError, SiteError
from equisep.measuring import measure
from equisep.models import build
from equisep.results import Profile

CLASSES = 4


def pictures(n: int = 80, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % CLASSES
    means = torch.randn(CLASSES, 3, 12, 12, generator=generator)
    return means[y] + torch.randn(n, 3, 12, 12, generator=generator), y


class Convolutional(nn.Module):
    """Two residual blocks with in-place activations."""

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm, self.relu = nn.Conv2d(6, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(inplace=True)
            self.again, self.end = nn.Conv2d(6, 6, 3, padding=1), nn.ReLU(inplace=True)

        def forward(self, x: Tensor) -> Tensor:
            return self.end(self.again(self.relu(self.norm(self.conv(x)))) + x)

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, padding=1)
        self.blocks = nn.Sequential(*(self.Block() for _ in range(4)))
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(6, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.pool(self.blocks(self.stem(x))).flatten(1))


def network() -> Convolutional:
    torch.manual_seed(0)
    return Convolutional()


DATA = Batches(*pictures(), batch_size=20)


@contextmanager
def process_group() -> Iterator[None]:
    if not distributed.is_available():
        pytest.skip("this torch has no distributed package")
    store = distributed.HashStore()
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        yield
    finally:
        distributed.destroy_process_group()


def curves(profile: Profile) -> dict[str, tuple[float | None, ...]]:
    return {name: profile.curve(name) for name in ("fuzziness", "null", "nc1", "cdnv", "ncc_train")}


def assert_alike(a: Profile, b: Profile, *, rel: float = 1e-5) -> None:
    assert [site.name for site in a.sites] == [site.name for site in b.sites]
    for name, curve in curves(a).items():
        assert curve == pytest.approx(curves(b)[name], rel=rel), name


WRAPPERS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "data parallel": nn.DataParallel,
    "compiled": lambda model: torch.compile(model, backend="aot_eager"),  # type: ignore[dict-item, return-value]
    "compiled data parallel": lambda model: nn.DataParallel(torch.compile(model, backend="eager")),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("memory", [None, 0])
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("how", WRAPPERS)
def test_wrapped_and_compiled_models_give_the_same_d(how: str, warm: bool, memory: int | None) -> None:
    model = WRAPPERS[how](network().eval())
    if warm:
        with torch.no_grad():
            model(pictures(20)[0])
    profile = measure(model, DATA, memory=memory)
    assert profile.model == "Convolutional"
    assert_alike(profile, measure(network(), DATA, memory=memory))


def test_a_compiled_model_is_noted() -> None:
    profile = measure(torch.compile(network(), backend="eager"), DATA)  # type: ignore[arg-type]
    assert "compiled" in [note.code for note in profile.notes]


def test_distributed_data_parallel() -> None:
    with process_group():
        model = nn.parallel.DistributedDataParallel(network())
        assert_alike(measure(model, DATA), measure(network(), DATA))


@pytest.mark.parametrize("sites", ["layers", "blocks", "auto", "**", ["blocks.2"]])
def test_the_data_go_through_the_model_once_however_many_sites_there_are(sites: Any) -> None:
    model = network()
    seen: list[int] = []
    model.stem.register_forward_hook(lambda module, args, output: seen.append(len(output)))
    measure(model, DATA, sites=sites)
    probe = [size for size in seen if size < 20]
    assert [size for size in seen if size == 20] == [20] * len(DATA)
    assert sum(probe) <= 2 * 4  # one look at four samples; another where sites must be found


def test_both_grains_of_one_forward_pass() -> None:
    profile = measure(network(), DATA)
    assert profile.grains is not None
    assert profile.grains.sites["blocks"] == ("input", *(f"blocks.{i}" for i in range(4)))
    assert profile.law == profile.laws[profile.grains.chosen]
    for grain in ("layers", "blocks"):
        alone = measure(network(), DATA, sites=grain)
        assert alone.grains is None
        assert alone.law.curve == profile.laws[grain].curve
        assert alone.law.intervals == profile.laws[grain].intervals


def test_every_site_of_both_grains_can_be_asked_for() -> None:
    profile = measure(network(), DATA)
    assert profile.grains is not None
    for sites in profile.grains.sites.values():
        assert all(profile[site].fuzziness is not None for site in sites)


def by_hand(site: str, reduce: Callable[[Tensor], Tensor]) -> Tensor:
    """The features of a site, read by a plain hook."""
    model, kept = network().eval(), []
    handle = model.get_submodule(site).register_forward_hook(lambda m, a, output: kept.append(reduce(output.clone())))
    with torch.no_grad():
        for x, _ in DATA:
            model(x)
    handle.remove()
    return torch.cat(kept)


LABELS = torch.cat([y for _, y in DATA])
REDUCED: dict[str, tuple[Callable[[Tensor], Tensor], int]] = {
    "flatten": (lambda x: x.flatten(1), 1),
    "mean": (lambda x: x.mean(dim=(2, 3)), 1),
    "positions": (lambda x: x.permute(0, 2, 3, 1).reshape(-1, 6), 144),
}


@pytest.mark.parametrize("memory", [None, 0])
@pytest.mark.parametrize("name", REDUCED)
def test_reductions_agree_with_plain_hooks(name: str, memory: int | None) -> None:
    reduce, rows = REDUCED[name]
    profile = measure(network(), DATA, sites=["blocks.3"], reduction=name, memory=memory)
    x, y = by_hand("blocks.3", reduce), LABELS.repeat_interleave(rows)
    assert profile["blocks.3"].fuzziness == pytest.approx(equisep.fuzziness(x, y), rel=1e-9)
    assert profile["blocks.3"].ncc_train == pytest.approx(equisep.ncc_accuracy(x, y))
    assert profile.settings["reduction"] == name


@pytest.mark.parametrize("memory", [None, 400_000])
def test_components_keep_d_where_they_keep_everything(memory: int | None) -> None:
    """80 samples span at most 79 dimensions: 80 components lose nothing, 3 lose something."""
    extra = {} if memory is None else {"memory": memory}
    whole = measure(network(), DATA, sites=["blocks.3"])
    same = measure(network(), DATA, sites=["blocks.3"], reduction="pca=80", **extra)
    few = measure(network(), DATA, sites=["blocks.3"], reduction="pca=3", **extra)
    assert same["blocks.3"].fuzziness == pytest.approx(whole["blocks.3"].fuzziness, rel=1e-6)
    assert few["blocks.3"].dim == 3
    assert few["blocks.3"].fuzziness != pytest.approx(whole["blocks.3"].fuzziness, rel=0.01)


def test_components_of_the_training_data_serve_the_test_data() -> None:
    profile = measure(network(), DATA, DATA, sites=["blocks.3"], reduction="pca=5")
    assert profile.curve("fuzziness_test") == pytest.approx(profile.curve(), rel=1e-9)


def test_a_function_as_reduction_is_recorded_by_its_name() -> None:
    def greatest(x: Tensor) -> Tensor:
        return x.amax(dim=(2, 3))

    profile = measure(network(), DATA, sites=["blocks.3"], reduction=greatest)
    assert profile.settings["reduction"] == "function greatest"
    x = by_hand("blocks.3", greatest)
    assert profile["blocks.3"].fuzziness == pytest.approx(equisep.fuzziness(x, LABELS), rel=1e-9)


class Twice(nn.Module):
    """One activation for two layers, and a second input by keyword."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.act, self.head = nn.Linear(6, 9), nn.Linear(9, 7), nn.ReLU(), nn.Linear(7, CLASSES)

    def forward(self, x: Tensor, *, scale: Tensor) -> dict[str, Tensor]:
        h = self.act(self.two(self.act(self.one(x * scale))))
        return {"logits": self.head(h), "features": h}


def rows_by_name(n: int = 80) -> dict[str, Tensor]:
    torch.manual_seed(3)
    y = torch.arange(n) % CLASSES
    return {"x": torch.randn(n, 6) + y[:, None], "scale": torch.rand(n, 1) + 0.5, "labels": y}


def twice() -> Twice:
    torch.manual_seed(1)
    return Twice()


def test_keyword_arguments_and_dictionaries() -> None:
    columns = rows_by_name()
    by_columns = measure(twice(), columns)
    batches = [{name: value[i : i + 16] for name, value in columns.items()} for i in range(0, 80, 16)]
    by_batches = measure(twice(), batches)
    labels = columns["labels"]
    pairs = [({"x": columns["x"][i], "scale": columns["scale"][i]}, labels[i]) for i in (slice(0, 40), slice(40, 80))]
    by_pairs = measure(twice(), pairs)
    assert [site.name for site in by_columns.sites] == ["input", "act", "act:2"]
    for profile in (by_batches, by_pairs):
        assert profile.curve() == pytest.approx(by_columns.curve(), rel=1e-6)
        assert profile.accuracy_train == by_columns.accuracy_train


def test_calls_one_by_one_and_the_last() -> None:
    each, last = (measure(twice(), rows_by_name(), sites=["act"], calls=calls) for calls in ("each", "last"))  # type: ignore[arg-type]
    second = measure(twice(), rows_by_name(), sites=["act:2"])
    assert [site.name for site in last.sites] == ["input", "act"]
    assert [site.name for site in second.sites] == ["input", "act:2"]
    assert last["act"].fuzziness == each["act:2"].fuzziness == second["act:2"].fuzziness


def test_classes_and_functions_choose_sites() -> None:
    by_class = measure(network(), DATA, sites=nn.Conv2d)
    assert [site.name for site in by_class.sites] == [
        "input",
        "stem",
        *(f"blocks.{i}.{conv}" for i in range(4) for conv in ("conv", "again")),
    ]
    assert by_class.settings["sites"] == ["class Conv2d"]
    chosen = measure(network(), DATA, sites=lambda name, module: name in ("pool", "stem"))
    assert [site.name for site in chosen.sites] == ["input", "stem", "pool"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_models(dtype: torch.dtype) -> None:
    half = measure(network().to(dtype), DATA)
    whole = measure(network(), DATA)
    assert half.curve()[0] == pytest.approx(whole.curve()[0], rel=0.1)
    assert {"half-precision", "cast"} <= {note.code for note in half.notes}


def test_autocast_is_the_model_s_matter_not_the_statistics() -> None:
    """Features come in bfloat16; every sum over them is float64 as ever."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        profile = measure(network(), DATA, sites=["blocks.3"])
        kept: list[Tensor] = []
        with equisep.tap(network(), ["blocks.3"], consume=lambda site, x: kept.append(x.clone())):
            pass
    assert profile["input"].fuzziness == measure(network(), DATA, sites=["blocks.3"])["input"].fuzziness
    assert "half-precision" in [note.code for note in profile.notes]


@dataclass
class Output:
    aux: int
    hidden: Tensor
    logits: Tensor


def test_records_and_tuples_as_outputs() -> None:
    class Recorder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.GRU(6, 5, batch_first=True)
            self.head = nn.Linear(5, CLASSES)

        def forward(self, x: Tensor) -> Output:
            rows, _ = self.body(x)
            return Output(3, rows, self.head(rows[:, -1]))

    torch.manual_seed(0)
    y = torch.arange(40) % CLASSES
    x = torch.randn(40, 3, 6) + y[:, None, None]
    profile = measure(Recorder(), (x, y), sites=["body"], reduction="last")
    assert profile["body"].dim == 5
    assert profile.classes == CLASSES
    assert profile.accuracy_train is not None


BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "a glob": ({"sites": "blocks.*.relux"}, SiteError, "The glob `blocks.*.relux` matches none of the 28 modules"),
    "a class": ({"sites": nn.GELU}, SiteError, "The class GELU selects none of the 28 modules"),
    "a name": ({"sites": ["blocks.0.rleu"]}, SiteError, "No module `blocks.0.rleu` in `Convolutional`. Did you mean"),
    "a call": ({"sites": ["pool:2"]}, SiteError, "Site `pool:2` was never reached"),
    "a reduction": ({"reduction": "pca"}, InputError, "`pca=m` keeps m ≥ 1 principal components"),
    "tokens of pictures": (
        {"reduction": "tokens", "sites": ["stem"]}, SiteError, "`tokens` needs token sequences (b × t × d); site `stem` gives",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_sentence(name: str) -> None:
    options, kind, sentence = BAD[name]
    with pytest.raises(kind) as caught:
        measure(network(), DATA, **options)
    assert sentence in str(caught.value)


def test_a_site_without_a_tensor() -> None:
    class Wordy(nn.Module):
        def forward(self, x: Tensor) -> str:
            return "nothing"

    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.head = Wordy(), nn.Linear(6, CLASSES)

        def forward(self, x: Tensor) -> Tensor:
            self.words(x)
            return self.head(x)

    with pytest.raises(SiteError, match=r"Site `words` gives no tensor but str\. Choose another site\."):
        measure(Holder(), (torch.randn(8, 6), torch.arange(8) % CLASSES), sites=["words"])


@pytest.mark.parametrize("name", ["alexnet", "resnet20", "resnet18", "convnet"])
def test_families_by_reduction_are_narrow(name: str) -> None:
    model = build(name, seed=0, colors=3)
    x, y = torch.randn(12, 3, 32, 32), torch.arange(12) % 3
    profile = measure(model, (x, y), sites="blocks", reduction="mean", intervals="none")
    assert all(site.dim <= 512 or site.name.startswith(("hidden", "classifier")) for site in profile.sites)


def test_keys_that_are_no_arguments_of_forward_are_named_beside_them() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(1, 3, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.conv(x).mean(dim=(2, 3))

    x, y = torch.randn(12, 1, 5, 5), torch.arange(12) % 3
    with pytest.raises(ModelError) as caught:
        measure(Net(), [{"image": x, "label": y}])
    assert str(caught.value).startswith(
        "`Net` could not run the first batch: keys of a batch must be argument names of its forward pass (`x`), and the batch "
        "holds `image`. Rename them, or pass `unpack=lambda batch: (batch['image'], batch[…])`, with the key of the labels. "
        "Given the mapping itself, the model said: "
    )
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("memory", [None, 0], ids=["buffered", "streamed"])
def test_the_input_of_the_classifier_is_a_site_where_activations_are_functions(memory: int | None) -> None:
    class Functional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(8, 6), nn.Linear(6, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.fc2(input=self.fc1(x).relu())

    torch.manual_seed(0)
    model, x, y = Functional(), torch.randn(80, 8), torch.arange(80) % 4
    profile = measure(model, (x, y), sites=["fc1", "fc2:in"], memory=memory)
    assert [site.name for site in profile.sites] == ["input", "fc1", "fc2:in"]
    with torch.no_grad():
        wanted = equisep.fuzziness(model.fc1(x).relu(), y)
    assert profile.sites[2].fuzziness == pytest.approx(wanted, rel=1e-6)
    assert profile.sites[2].fuzziness != pytest.approx(profile.sites[1].fuzziness, rel=1e-2)

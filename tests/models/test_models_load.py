"""A model from one line: networks by name, factories, options behind the name, and what loading says."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from equisep.errors import ModelError
from equisep.models import MODELS, Vgg, build, load_model, loading_words, parse_spec

CODE = """
from torch import nn

made = []

def small(width=4, bias=True):
    made.append(width)
    return nn.Sequential(nn.Linear(3, width, bias=bias), nn.ReLU(), nn.Linear(width, 2))

model = nn.Linear(3, 2)
number = 3

def word():
    return "a network"

def broken():
    raise RuntimeError("no weights here")

class Zoo:
    small = staticmethod(small)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "my_networks.py").write_text(CODE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "my_networks", raising=False)
    return "my_networks"


@pytest.mark.parametrize("name", MODELS)
def test_every_network_is_loaded_by_its_name(name: str) -> None:
    with torch.device("meta"):
        assert type(load_model(name)) is type(build(name, seed=0))


def test_a_network_by_name_draws_its_weights_as_a_seed_does() -> None:
    torch.manual_seed(7)
    loaded = load_model("resnet20,width_multiplier=0.25")
    for key, value in build("resnet20", seed=7, width_multiplier=0.25).state_dict().items():
        assert torch.equal(loaded.state_dict()[key], value), key


def test_a_family_with_a_state_dict_file(tmp_path: Path) -> None:
    source = build("convnet", seed=3, depth=2, width=5)
    torch.save({"state_dict": source.state_dict()}, tmp_path / "w.pt")
    loaded = load_model("convnet", checkpoint=tmp_path / "w.pt", depth=2, width=5)
    for key, value in source.state_dict().items():
        assert torch.equal(loaded.state_dict()[key], value), key
    with pytest.raises(ModelError, match=r"w.pt` does not fit `ConvNet`: \d+ keys are missing \(`.*\), 0 unexpected\."):
        load_model("convnet", checkpoint=tmp_path / "w.pt", depth=3, width=5)


@pytest.mark.parametrize(
    ("text", "source", "name", "options"),
    [
        ("resnet56", "network", "resnet56", {}),
        ("vgg13,colors=3,width_multiplier=0.5", "network", "vgg13", {"colors": 3, "width_multiplier": 0.5}),
        ("fnn,widths=[30,20],norm=false", "network", "fnn", {"widths": (30, 20), "norm": False}),
        ("a.b:c.d,flag=True,other=none,word=gelu", "factory", "a.b:c.d", {"flag": True, "other": None, "word": "gelu"}),
        ("timm:resnet18.a1_in1k,pretrained=false", "timm", "resnet18.a1_in1k", {"pretrained": False}),
        ("torchvision:resnet18", "torchvision", "resnet18", {}),
        ("hf:org/name,num_labels=2", "hf", "org/name", {"num_labels": 2}),
        ("hf:./a,b=c/folder", "hf", "./a,b=c/folder", {}),
        ("hf:./a, b", "hf", "./a, b", {}),
    ],
)
def test_specs(text: str, source: str, name: str, options: dict[str, Any]) -> None:
    spec = parse_spec(text)
    assert (spec.source, spec.name, dict(spec.options)) == (source, name, options)


@pytest.mark.parametrize("text", ["resnet65", "mynet", "timm:", ":factory", "module:", ""])
def test_a_spec_of_no_known_form(text: str) -> None:
    with pytest.raises(
        ModelError, match=rf"^`--model` takes a network by name, pkg.module:factory, .*; found `{text}`\."
    ):
        load_model(text)


def test_a_misspelt_network_is_guessed() -> None:
    with pytest.raises(ModelError, match=r"found `resnet65`\. Did you mean `resnet56`"):
        load_model("resnet65")
    with pytest.raises(ModelError, match=r"^The network `vgg13` takes no `colour`\. Did you mean `colors`\? It takes"):
        load_model("vgg13,colour=3")


@pytest.mark.parametrize(
    "spec", ["fnn,depth=99999999999999999999", "vgg13,colors=red", "convnet,width=99999999999999999999"]
)
def test_a_network_that_cannot_be_built_is_one_sentence(spec: str) -> None:
    name, _, given = spec.partition(",")
    with pytest.raises(ModelError, match=rf"^The network `{name}` cannot be built with {given}: .*\.$"):
        load_model(spec)


def test_options_of_the_call_stand_over_those_of_the_line() -> None:
    model = load_model("vgg13,colors=3,classes=7", classes=5, width_multiplier=0.1)
    assert isinstance(model, Vgg)
    assert model(torch.zeros(1, 3, 32, 32)).shape == (1, 5)


def test_a_factory_runs_in_the_working_folder_and_takes_options(module: str) -> None:
    path = list(sys.path)
    plain, wide = load_model(f"{module}:small"), load_model(f"{module}:Zoo.small,width=9,bias=false")
    assert isinstance(plain, nn.Sequential) and isinstance(wide, nn.Sequential)
    assert sys.modules[module].made == [4, 9]
    assert wide[0].bias is None
    assert sys.path == path


def test_a_model_object_serves_as_well_as_a_factory(module: str) -> None:
    assert load_model(f"{module}:model") is sys.modules[module].model
    with pytest.raises(ModelError, match=r"^`my_networks:model` is a model already: nothing is made .* `width`\.$"):
        load_model(f"{module}:model,width=3")


@pytest.mark.parametrize("spelling", ["./my_networks.py", "my_networks.py", "./my_networks", "{here}/my_networks.py"])
def test_a_factory_in_a_file(module: str, tmp_path: Path, spelling: str) -> None:
    path, loaded = list(sys.path), set(sys.modules)
    model = load_model(f"{spelling.format(here=tmp_path)}:small,width=9")
    assert isinstance(model, nn.Sequential) and model[0].out_features == 9
    assert sys.path == path
    assert set(sys.modules) - loaded == {"my_networks"}
    again = load_model(f"{tmp_path}/my_networks.py:small")
    assert isinstance(again, nn.Sequential) and sys.modules["my_networks"].made == [9, 4]  # run once


def test_a_file_finds_the_modules_beside_it_and_shadows_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "beside_it.py").write_text("width = 7", encoding="utf-8")
    text = "import beside_it\nfrom torch import nn\ndef net():\n    return nn.Linear(3, beside_it.width)"
    (folder / "random.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    before = sys.modules["random"]
    assert load_model("code/random.py:net").out_features == 7
    assert sys.modules["random"] is before
    sys.modules.pop("beside_it")


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("./gone.py:net", r"^There is no file `gone.py`\. Check the path, which is taken from the working folder\.$"),
        ("./my_networks.py:smal", r"^`./my_networks.py` has no `smal`\. Did you mean `small`\?$"),
        ("./half.py:net", r"^Importing `half.py` failed: SyntaxError"),
        (
            "./my_networks.py",
            r"found `./my_networks.py`\. Name what makes the model in that file: `./my_networks.py:Net`, say\.",
        ),
    ],
)
def test_a_file_that_makes_no_model(module: str, tmp_path: Path, spec: str, sentence: str) -> None:
    (tmp_path / "half.py").write_text("def make(", encoding="utf-8")
    with pytest.raises(ModelError, match=sentence):
        load_model(spec)
    assert "half" not in sys.modules


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("bert-base-uncased", "hf:bert-base-uncased"),
        ("google/vit-base-patch16-224", "hf:google/vit-base-patch16-224"),
        ("vit_base_patch16_224", "timm:vit_base_patch16_224"),
    ],
)
def test_a_name_of_a_hub_is_guessed(name: str, meant: str) -> None:
    with pytest.raises(ModelError, match=rf"found `{name}`\. Did you mean `{meant}`\? Networks: alexnet"):
        load_model(name)


@pytest.mark.parametrize(
    ("attribute", "sentence"),
    [
        ("number", r"^`my_networks:number` should be a model or a function that makes one; it is a int\.$"),
        ("word", r"^`my_networks:word\(\)` should return a torch\.nn\.Module; it returned str\.$"),
        ("broken", r"^`my_networks:broken\(\)` failed: RuntimeError: no weights here$"),
        ("small,depth=3", r"^`my_networks:small\(depth=3\)` failed: TypeError: .*unexpected keyword argument 'depth'"),
        ("smal", r"^`my_networks` has no `smal`\. Did you mean `small`\?$"),
    ],
)
def test_a_factory_that_makes_no_model(module: str, attribute: str, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        load_model(f"{module}:{attribute}")


def test_modules_that_cannot_be_imported(module: str, tmp_path: Path) -> None:
    with pytest.raises(
        ModelError, match=r"^No module `nowhere_at_all`\. Run from the folder that holds it, or install it"
    ):
        load_model("nowhere_at_all:make")
    (tmp_path / "needs_more.py").write_text("import nowhere_at_all", encoding="utf-8")
    with pytest.raises(ModelError, match=r"^No module `nowhere_at_all`, which `needs_more` imports\."):
        load_model("needs_more:make")
    (tmp_path / "half_written.py").write_text("def make(", encoding="utf-8")
    with pytest.raises(ModelError, match=r"^Importing `half_written` failed: SyntaxError"):
        load_model("half_written:make")


def test_loading_says_whose_code_is_run_and_where_weights_come_from() -> None:
    assert (
        loading_words("a.b:c")
        == "Running the code of `a.b:c`. No --checkpoint for its weights: the model keeps those that this code gives it."
    )
    assert loading_words("resnet20", checkpoint="w.pt") == "Building the network `resnet20`. Weights: `w.pt`."
    assert loading_words("hf:name") == "Weights: the published ones of `hf:name`, fetched where they are not at hand."
    assert loading_words("hf:name,num_labels=2").endswith(
        "; a head that `num_labels` makes wider or narrower begins at random."
    )
    assert loading_words("timm:vit,pretrained=false") == "Weights: random ones."
    assert loading_words("timm:vit", checkpoint="w.pt") == "Weights: `w.pt`."

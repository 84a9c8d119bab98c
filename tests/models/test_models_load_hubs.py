"""timm and torchvision by name: real ones where they are installed, the sentences and the call everywhere."""

import sys
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

import equisep
from equisep.errors import MissingExtraError, ModelError
from equisep.models import load_model, loaded_model

HUBS = ["timm", "torchvision"]


@pytest.fixture(params=HUBS)
def stand_in(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[dict[str, Any]]]:
    """A package of the hub's shape that writes down what it is asked; it knows `vit_tiny`, and one that fails."""
    calls: list[dict[str, Any]] = []

    def make(name: str, **asked: Any) -> nn.Module:
        calls.append({"name": name, **asked})
        if name.startswith("unreachable"):
            raise OSError("no route to host\nmore lines")
        return nn.Linear(2, 3)

    package = ModuleType(request.param)
    models = package if request.param == "timm" else ModuleType("torchvision.models")
    models.list_models = lambda: ["vit_tiny", "unreachable"]  # type: ignore[attr-defined]
    setattr(models, "create_model" if request.param == "timm" else "get_model", make)
    monkeypatch.setitem(sys.modules, request.param, package)
    if models is not package:
        monkeypatch.setitem(sys.modules, "torchvision.models", models)
    return request.param, calls


def test_pretrained_unless_told_or_given_a_checkpoint(
    stand_in: tuple[str, list[dict[str, Any]]], tmp_path: Any
) -> None:
    hub, calls = stand_in
    key, yes, no = ("pretrained", True, False) if hub == "timm" else ("weights", "DEFAULT", None)
    torch.save(nn.Linear(2, 3).state_dict(), tmp_path / "w.pt")
    load_model(f"{hub}:vit_tiny,num_classes=3")
    load_model(f"{hub}:vit_tiny", pretrained=False)
    load_model(f"{hub}:vit_tiny", checkpoint=tmp_path / "w.pt")
    expected = [{key: yes, "num_classes": 3}, {key: no}, {key: no}]
    assert calls == [{"name": "vit_tiny", **entry} for entry in expected]


def test_a_head_of_timm_that_was_never_trained_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(name: str, *, pretrained: bool, num_classes: int = 1000) -> nn.Module:
        model = nn.Linear(2, num_classes)
        model.pretrained_cfg = {"num_classes": 1000}  # type: ignore[assignment]
        return model

    package = ModuleType("timm")
    package.list_models, package.create_model = lambda: ["vit_tiny"], make  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "timm", package)
    (note,) = loaded_model("timm:vit_tiny,num_classes=3").notes
    assert note.text.startswith("The head of `timm:vit_tiny` is new and random (3 classes instead of 1000): accuracy")
    for spec in ("timm:vit_tiny", "timm:vit_tiny,num_classes=1000", "timm:vit_tiny,num_classes=3,pretrained=false"):
        assert loaded_model(spec).notes == ()


def test_an_unknown_name_is_guessed(stand_in: tuple[str, list[dict[str, Any]]]) -> None:
    hub, calls = stand_in
    with pytest.raises(ModelError, match=rf"^No model `vit_tny` in {hub}\. Did you mean `vit_tiny`\? It has 2\.$"):
        load_model(f"{hub}:vit_tny")
    assert not calls


def test_timm_looks_up_what_lies_elsewhere(stand_in: tuple[str, list[dict[str, Any]]]) -> None:
    hub, calls = stand_in
    if hub == "timm":
        load_model("timm:hf-hub:org/name,pretrained=false")
        load_model("timm:vit_tiny.of_some_training")
        assert [call["name"] for call in calls] == ["hf-hub:org/name", "vit_tiny.of_some_training"]


def test_what_fails_inside_the_package_is_one_sentence(stand_in: tuple[str, list[dict[str, Any]]]) -> None:
    hub, _ = stand_in
    sentence = (
        rf"^`{hub}:unreachable` could not be made: OSError: no route to host\. Without a network give `pretrained=f"
    )
    with pytest.raises(ModelError, match=sentence):
        load_model(f"{hub}:unreachable")
    with pytest.raises(ModelError, match=r"no route to host\.$"):
        load_model(f"{hub}:unreachable,pretrained=false")


@pytest.mark.parametrize("hub", HUBS)
def test_a_missing_package_names_its_extra(hub: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, hub, None)
    monkeypatch.delitem(sys.modules, "torchvision.models", raising=False)
    sentence = (
        rf'^`{hub}:resnet18` needs the package `{hub}`, which is not installed\. Run: pip install "equisep\[{hub}\]"$'
    )
    with pytest.raises(MissingExtraError, match=sentence):
        load_model(f"{hub}:resnet18")


def test_a_package_built_for_another_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "timm.py").write_text(
        "raise RuntimeError('operator torchvision::nms does not exist')", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    sentence = (
        r"needs the package `timm`, which is installed but cannot be imported \(RuntimeError: operator torchvision::nms"
    )
    with pytest.raises(ModelError, match=sentence):
        load_model("timm:resnet18")


@pytest.mark.parametrize(("hub", "blocks"), [("timm", 8), ("torchvision", 8)])
def test_the_real_resnet18_is_measured_by_block(hub: str, blocks: int) -> None:
    pytest.importorskip(hub, reason=f"{hub} is not installed (or not for this torch)", exc_type=Exception)
    torch.manual_seed(0)
    model = load_model(f"{hub}:resnet18,pretrained=false,num_classes=3")
    x, y = torch.randn(12, 3, 64, 64), torch.arange(12) % 3
    profile = equisep.measure(model, (x, y), sites="blocks", reduction="mean")
    assert [site.name for site in profile.sites[1:]] == [f"layer{s}.{b}" for s in (1, 2, 3, 4) for b in (0, 1)]
    assert len(profile.sites) == 1 + blocks
    assert profile.classes == 3


def test_a_real_vision_transformer_of_timm_is_measured_by_block() -> None:
    pytest.importorskip("timm", reason="timm is not installed (or not for this torch)", exc_type=Exception)
    torch.manual_seed(0)
    model = load_model("timm:vit_tiny_patch16_224,pretrained=false,num_classes=4,img_size=32,depth=3")
    x, y = torch.randn(16, 3, 32, 32), torch.arange(16) % 4
    for reduction, raw in (("first", []), ("mean", [("input", 3)])):  # a picture has no first token
        profile = equisep.measure(model, (x, y), sites="blocks", reduction=reduction)
        assert [(site.name, site.dim) for site in profile.sites] == [*raw, *((f"blocks.{i}", 192) for i in range(3))]

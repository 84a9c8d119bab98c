"""Compiled, wrapped and scripted models: read inside, by plain names, and left as they were."""

import pytest
import torch
from tapped_models import batch, differing, small, snapshot
from torch import Tensor, nn

from equisep.errors import ModelError, SiteError
from equisep.taps import inner, resolve_sites, site_modules, tap, wrapper_notes

SITES = ["first", "norm", "relu", "head"]


def read(model: nn.Module, sites: object = SITES, x: Tensor | None = None) -> dict[str, Tensor]:
    kept: dict[str, Tensor] = {}
    with tap(model, sites, consume=lambda site, features: kept.update({site: features.clone()})):
        model(batch() if x is None else x)
    return kept


def parallel(model: nn.Module) -> nn.Module:
    """As on a machine without GPUs: where there are some, the wrapper would send every batch there."""
    made = nn.DataParallel(model)
    made.device_ids = []
    return made.to("cpu")


def wrapped(how: str) -> nn.Module:
    model = small().eval()
    if how == "data parallel":
        return parallel(model)
    if how == "compiled":
        return torch.compile(model, backend="eager")
    if how == "compiled in place":
        model.compile(backend="eager")
        return model
    if how == "compiled inside":
        model.first = torch.compile(model.first, backend="aot_eager")
        model.second.compile(backend="eager")
        return model
    return parallel(torch.compile(model, backend="eager"))


HOWS = ["data parallel", "compiled", "compiled in place", "compiled inside", "both"]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_wrapped_models_give_what_the_plain_one_gives(how: str, warm: bool) -> None:
    model = wrapped(how)
    if warm:
        with torch.no_grad():
            model(batch())  # code that was compiled before there were hooks
    plain = read(small().eval())
    found = read(model)
    assert list(found) == ["input", "first", "norm", "relu", "relu:2", "head"]
    assert all(torch.equal(found[site], plain[site]) for site in plain)


@pytest.mark.parametrize("how", HOWS)
def test_names_are_those_of_the_plain_model(how: str) -> None:
    assert list(site_modules(wrapped(how))) == list(site_modules(small()))
    assert resolve_sites(wrapped(how), "**") == resolve_sites(small(), "**")
    assert resolve_sites(wrapped(how), "auto") == ("input", "relu")
    assert type(inner(wrapped(how))).__name__ == "Small"


@pytest.mark.parametrize("how", HOWS)
def test_wrapped_models_are_left_as_they_were(how: str) -> None:
    model = wrapped(how)
    before = snapshot(model)
    read(model)
    assert differing(before, snapshot(model)) == []


def test_compiled_code_runs_again_afterwards() -> None:
    runs = []

    def backend(graph: torch.fx.GraphModule, _: list[Tensor]) -> object:
        def run(*args: Tensor) -> object:
            runs.append(1)
            return graph(*args)

        return run

    model = torch.compile(small().eval(), backend=backend)
    with torch.no_grad():
        model(batch())
        compiled = len(runs)
        read(model)
        assert len(runs) == compiled  # eager inside
        model(batch())
        assert len(runs) > compiled


def test_compiled_models_are_noted() -> None:
    assert wrapper_notes(small()) == wrapper_notes(parallel(small())) == ()
    for how in ("compiled", "compiled in place", "compiled inside", "both"):
        (note,) = wrapper_notes(wrapped(how))
        assert note.code == "compiled"
        assert note.text.startswith("The model is compiled; it was read eagerly, since compiled code skips hooks.")


def test_a_wrapper_inside_a_model_is_looked_through() -> None:
    model = nn.Sequential(parallel(nn.Sequential(nn.Linear(4, 4), nn.ReLU())), nn.Linear(4, 2))
    assert list(site_modules(model)) == ["0", "0.0", "0.1", "1"]
    assert list(read(model, ["0.1"])) == ["input", "0.1"]


@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_a_scripted_model_is_refused() -> None:
    for made in (torch.jit.script(small().eval()), torch.jit.trace(small().eval(), batch())):
        with pytest.raises(ModelError) as caught:
            read(made)
        assert str(caught.value).startswith(
            "`tap` reads modules by hooks, which TorchScript does not take; the model is a "
        )
        assert str(caught.value).endswith("Pass the Python model that it was made from.")


@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_a_scripted_part_cannot_be_read_and_the_rest_can() -> None:
    model = nn.Sequential(torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU())), nn.Linear(4, 2))
    assert list(site_modules(model)) == ["1"]
    assert list(read(model, ["1"])) == ["input", "1"]
    for site, where in (("0.1", "lies inside `0`, which is"), ("0", "is")):
        with pytest.raises(SiteError) as caught:
            resolve_sites(model, site)
        assert str(caught.value) == (
            f"Site `{site}` {where} TorchScript and takes no hooks. Read a module before or after it."
        )


def test_inference_mode_and_autocast_around_a_tap() -> None:
    model = small().eval()
    plain = read(model)
    with torch.inference_mode():
        assert all(torch.equal(read(model)[site], plain[site]) for site in plain)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = read(model)
    assert found["first"].dtype == torch.bfloat16
    torch.testing.assert_close(found["first"].float(), plain["first"], rtol=0.02, atol=0.02)

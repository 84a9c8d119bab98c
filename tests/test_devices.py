"""One device check for every function and command, and provenance."""

from __future__ import annotations

import pytest
import torch

from equisep.devices import precision, provenance, tf32_allowed, usable_device
from equisep.errors import InputError


@pytest.mark.parametrize("device", [None, "cpu", torch.device("cpu")])
def test_none_is_the_cpu(device: str | torch.device | None) -> None:
    assert usable_device(device, asked="measure") == torch.device("cpu")


@pytest.mark.parametrize("device", ["quantum", "cuda:99", "meta", "", 99])
def test_a_device_that_takes_and_gives_no_number_is_one_sentence(device: str | int) -> None:
    with pytest.raises(InputError) as caught:
        usable_device(device, asked="train")
    text = str(caught.value)
    assert text.startswith(f"`train` was asked for device `{device}`, which cannot be used here: ")
    assert text.endswith(". Pass a device that this machine has, such as `device='cpu'`.")
    assert "\n" not in text


@pytest.mark.parametrize("device", [3.5, ["cpu"]])
def test_what_is_no_name_says_its_type(device: object) -> None:
    with pytest.raises(InputError, match=f"a device is a name, and this is a {type(device).__name__}"):
        usable_device(device, asked="train")  # type: ignore[arg-type]


def test_the_command_line_speaks_of_its_option() -> None:
    with pytest.raises(InputError) as caught:
        usable_device("meta", asked="--device")
    assert str(caught.value).startswith("`--device meta` cannot be used here: ")
    assert str(caught.value).endswith(". Name a device that this machine has, such as cpu.")


def test_precision_is_given_back_and_only_a_gpu_shortens() -> None:
    before = torch.backends.cuda.matmul.fp32_precision
    with pytest.raises(KeyError), precision(tf32=before != "tf32"):
        assert torch.backends.cuda.matmul.fp32_precision != before
        raise KeyError
    assert torch.backends.cuda.matmul.fp32_precision == before
    with precision(tf32=True):
        assert tf32_allowed(torch.device("cpu")) == []
        assert tf32_allowed(torch.device("cuda")) == ["convolutions", "products"]


def test_provenance_names_device_and_type() -> None:
    made = provenance(torch.device("cpu"), torch.float64)
    assert (made["device"], made["dtype"], made["torch"]) == ("cpu", "float64", torch.__version__)

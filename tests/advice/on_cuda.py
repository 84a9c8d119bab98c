"""`cut` and `noise` on a GPU beside the CPU.

Needs torch and this package alone: `PYTHONPATH=src:tests python tests/advice/on_cuda.py`.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from advice.networks import Encoder, SmallResNet, bits, exclusive_or, sequential, tokens, vectors
from equisep.advice.cut import cut_model, shorten
from equisep.advice.noise import weight_noise

KINDS = ("sequential", "resnet", "transformer")


def made(kind: str) -> tuple[nn.Module, Any, Any]:
    """A network and data for it."""
    torch.manual_seed(3)
    if kind == "sequential":
        return sequential(), vectors(60, seed=0), vectors(90, seed=1)
    if kind == "resnet":
        return SmallResNet(), vectors(60, seed=0, shape=(1, 6, 6)), vectors(90, seed=1, shape=(1, 6, 6))
    return Encoder(), tokens(60, seed=0), tokens(90, seed=1)


def bits_of(model: nn.Module) -> list[bytes]:
    """Every weight and buffer as it is."""
    return [value.cpu().numpy().tobytes() for value in model.state_dict().values()]


def on(x: Any, device: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of the model on a device."""
    return ((), {name: part.to(device) for name, part in x.items()}) if isinstance(x, dict) else ((x.to(device),), {})


def check_cut(kind: str, *, device: str = "cuda", head: str = "centers") -> str:
    """Accuracies, verdict and shorter networks are those of the CPU, to one sample on the edge; the model is untouched."""
    model, train, test = made(kind)
    model.eval()  # an early exit runs the model as it is
    before, sites, samples = bits_of(model), "auto" if kind == "sequential" else "blocks", len(test[1])
    cpu = cut_model(model, train, test, sites=sites, head=head)  # type: ignore[arg-type]
    gpu = cut_model(model, train, test, sites=sites, head=head, device=device)  # type: ignore[arg-type]
    assert bits_of(model) == before and all(p.device.type == "cpu" for p in model.parameters())
    assert gpu.answer.device.startswith(device) and gpu.answer.mode == cpu.answer.mode == "graph", gpu.answer.stopped
    assert [option.site for option in gpu.answer.options] == [option.site for option in cpu.answer.options]
    for here, there in zip(cpu.answer.options, gpu.answer.options, strict=True):
        for name in ("accuracy", "ncc_train"):
            one, two = getattr(here, name), getattr(there, name)
            assert (one is None) == (two is None)
            assert one is None or abs(one - two) <= 1.5 / min(samples, len(train[1])), (here.site, name, one, two)
        exit_, short, plain = gpu.early_exit(here.site), gpu.short(here.site), cpu.early_exit(here.site)
        args, kwargs = on(test[0], device)
        host, named = on(test[0], "cpu")
        with torch.no_grad():
            scores = short(*args, **kwargs)
            torch.testing.assert_close(scores, exit_(*args, **kwargs), rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(scores.cpu(), plain(*host, **named), rtol=1e-3, atol=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        path = gpu.save(Path(folder) / "short.pt2", after=gpu.answer.options[0].site)
        args, kwargs = on(test[0], device)
        loaded = torch.export.load(path).module()(*args, **kwargs)
        torch.testing.assert_close(loaded, gpu.short(gpu.answer.options[0].site)(*args, **kwargs), rtol=1e-4, atol=1e-4)
    return f"cut {kind} {head}: {len(gpu.answer.options)} cuts alike; {gpu.answer.verdict} (CPU: {cpu.answer.verdict})"


def check_noise(*, device: str = "cuda") -> str:
    """The same noise on both devices, so the same fall to two samples and ρ to three digits; weights come back bit by bit."""
    model = exclusive_or(4)
    before, train, test = bits_of(model), bits(80, seed=0), bits(200, seed=1)
    cpu = weight_noise(model, train, test, sigmas=(0.001, 0.3, 1.0), draws=3)
    gpu = weight_noise(model, train, test, sigmas=(0.001, 0.3, 1.0), draws=3, device=device)
    assert bits_of(model) == before and all(p.device.type == "cpu" for p in model.parameters())
    assert gpu.accuracy == cpu.accuracy == 1
    for here, there in zip(cpu.levels, gpu.levels, strict=True):
        assert abs(here.accuracy.value - there.accuracy.value) <= 2 / 200, (here, there)
        assert (here.rho is None) == (there.rho is None)
        assert here.rho is None or there.rho is None or abs(here.rho.value / there.rho.value - 1) < 1e-3
    for one, two in zip(cpu.layers, gpu.layers, strict=True):
        assert one.name == two.name and abs(one.loss.value - two.loss.value) <= 2 / 200, (one, two)
    return f"noise: {len(gpu.levels)} sizes and {len(gpu.layers)} layers alike; costs 10 points at {gpu.falls_at}"


def main() -> None:
    """All of it."""
    shorten.MOST_ROUNDS = 5
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    begun = time.perf_counter()
    for kind in KINDS:
        print(check_cut(kind), flush=True)
    print(check_cut("resnet", head="linear"), flush=True)
    print(check_noise(), flush=True)
    print(f"{torch.cuda.get_device_name()}: all alike, {time.perf_counter() - begun:.1f} s")


if __name__ == "__main__":
    main()

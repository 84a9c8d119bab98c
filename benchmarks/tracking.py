"""What does a Tracker cost beside the training that it watches, and what do its rivals cost?

Two trainings on synthetic data of the shape of CIFAR-10 (50,000 samples, 10 classes): ResNet18 on 3 × 32 × 32 pictures, and
a network of 20 fully connected layers on 784 numbers; SGD with momentum, batches of 128. On a GPU whole epochs are timed; on a
CPU some steps, scaled to the 391 of an epoch (`epoch_is` says so). Random pictures do, since time
does not depend on them. The overhead of a Tracker is what one reading takes, at `every=1`, over the epoch; medians, in turns.

Rivals, in the same run. `hooks`: what people write by hand, hooks that keep the features of the same samples at the same sites,
and the published D in float32, trace(SSw pinv(SSb)) with d × d matrices; where these would not fit, channels averaged over space,
beside a Tracker that reads the same. `delve`: its layer saturation of every layer, which it gathers in every training step and
turns into numbers once per epoch; skipped, with the reason, where it is not installed. It is no dependency, and need not be
installed beside the others: `pip install --no-deps --target FOLDER delve`, then

    PYTHONPATH=FOLDER python benchmarks/tracking.py --save        (some eight minutes on two cores; `--device cuda` on a GPU)
"""

from __future__ import annotations

import copy
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from _record import finish
from equisep import Tracker
from equisep.models import build
from equisep.taps import site_modules

SAMPLES, CLASSES, BATCH = 50_000, 10, 128
STEPS = SAMPLES // BATCH + 1
CPU_STEPS = {"resnet18": 6, "fnn20": 200}
REPEATS = 3  # of epochs and of readings alike, after one that warms up
LARGEST = 8192  # features beyond which SSw and SSb are not to be formed: 8192² float32 are 256 MiB each, and pinv some of them


def main() -> None:
    """Both networks."""
    device = torch.device(sys.argv[sys.argv.index("--device") + 1] if "--device" in sys.argv else "cpu")
    if "--device" in sys.argv:
        del sys.argv[sys.argv.index("--device") : sys.argv.index("--device") + 2]
    begun = time.perf_counter()
    result: dict[str, Any] = {"samples": SAMPLES, "batch_size": BATCH, "networks": {}}
    for name in ("fnn20", "resnet18"):
        result["networks"][name] = measured(name, device)
    result["seconds_whole_run"] = time.perf_counter() - begun
    named = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    finish("tracking", result, device=named)


def measured(name: str, device: torch.device) -> dict[str, Any]:
    """One network: its epoch, a reading of a Tracker, and the rivals."""
    torch.manual_seed(0)
    shape = (3, 32, 32) if name == "resnet18" else (784,)
    options = {} if name == "resnet18" else {"depth": 20, "width": 100, "inputs": 784, "classes": CLASSES}
    model = build("resnet18" if name == "resnet18" else "fnn", seed=0, **options).to(device)
    y = torch.arange(SAMPLES, device=device) % CLASSES
    x = torch.randn(SAMPLES, *shape, device=device) + torch.randn(CLASSES, *shape, device=device)[y]
    steps = STEPS if device.type == "cuda" else CPU_STEPS[name]

    def train(network: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        order = torch.randperm(SAMPLES, device=device)
        for step in range(steps):
            rows = order[step * BATCH : (step + 1) * BATCH]
            optimizer.zero_grad(set_to_none=True)
            nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
            optimizer.step()

    begun = time.perf_counter()
    tracker = Tracker(model, (x, y))
    construction = time.perf_counter() - begun
    averaged = Tracker(model, (x, y), reduction="mean")
    with tempfile.TemporaryDirectory() as folder:
        written = Tracker(model, (x, y), history=Path(folder) / "history.jsonl")
        runs: dict[str, Callable[[], Any]] = {
            "epoch": partial(train, model, _optimizer(model)),
            "reading": tracker.epoch,
            "reading_written": written.epoch,
            "reading_mean": averaged.epoch,
            "hooks": lambda: by_hooks(model, tracker, mean=name == "resnet18"),
        }
        seconds = _timed(runs, device)
    seconds["epoch"] *= STEPS / steps
    print(f"{name}: {seconds}", file=sys.stderr, flush=True)  # delve takes longer than all else
    profile = tracker.history.last
    return {
        "overhead": seconds["reading"] / seconds["epoch"],
        "overhead_written": seconds["reading_written"] / seconds["epoch"],
        "overhead_mean": seconds["reading_mean"] / seconds["epoch"],
        "overhead_hooks": seconds["hooks"] / seconds["epoch"],
        "hooks_features": "channels averaged over space" if name == "resnet18" else "all",
        "ratio_hooks": seconds["hooks"] / seconds["reading_mean" if name == "resnet18" else "reading"],
        "delve": delve(model, train, STEPS / steps, device),
        "seconds": seconds,
        "seconds_construction": construction,
        "epoch_is": f"{STEPS} steps" if steps == STEPS else f"{steps} steps, timed, times {STEPS}/{steps}",
        "steps_timed": steps,
        "subset": tracker.subset.samples,
        "sites": len(tracker.history.header.sites),
        "features": sum(site.dim for site in profile.profile.sites) if profile and profile.profile else None,
    }


def by_hooks(model: nn.Module, tracker: Tracker, *, mean: bool) -> list[float]:
    """The published D at every site, as a loop by hand has it: float32, d × d matrices, pinv."""
    device = next(model.parameters()).device
    kept: dict[str, list[Tensor]] = {}
    labels = []
    training = model.training
    model.eval()
    with torch.no_grad(), _hooks(model, tracker.history.header.sites, kept, mean=mean):
        for x, y in tracker.subset.on(device):
            kept.setdefault("input", []).append(_vectors(x, mean=mean))
            model(x)
            labels.append(y)
        y = torch.cat(labels)
        values = [published_fuzziness(torch.cat(parts), y) for parts in kept.values()]
    model.train(training)
    return values


def published_fuzziness(h: Tensor, y: Tensor) -> float:
    """Trace(SSw pinv(SSb)) with both matrices formed, in the precision of the features (He & Su 2023)."""
    if h.shape[1] > LARGEST:
        raise RuntimeError(f"{h.shape[1]} features are too many for d × d matrices")
    middle = h.mean(dim=0)
    within, between = torch.zeros(2, h.shape[1], h.shape[1], device=h.device)
    for k in range(CLASSES):
        part = h[y == k]
        own = part.mean(dim=0)
        within += (part - own).T @ (part - own) / len(h)
        between += len(part) / len(h) * torch.outer(own - middle, own - middle)
    return float(torch.trace(within @ torch.linalg.pinv(between)))


def delve(
    model: nn.Module, train: Callable[[nn.Module, torch.optim.Optimizer], None], scale: float, device: torch.device
) -> dict[str, Any]:
    """The same training with delve's saturation of every layer, in turns with one without; or why it was skipped.

    Steps are scaled to an epoch; its numbers are asked for once per epoch, which is not.
    """
    try:
        from delve import SaturationTracker  # type: ignore[import-not-found]
    except Exception as error:  # not there, or made for other versions of what it needs
        return {"skipped": f"{type(error).__name__}: {error}"}
    logging.disable(logging.INFO)  # it tells of every layer
    network = copy.deepcopy(model)
    with tempfile.TemporaryDirectory() as folder:
        try:
            watcher = SaturationTracker(
                str(Path(folder) / "run"), save_to="csv", modules=network, stats=["lsat"], device=str(device)
            )
            runs: dict[str, Callable[[], Any]] = {
                "plain": partial(train, model, _optimizer(model)),
                "watched": partial(train, network, _optimizer(network)),
                "numbers": watcher.add_saturations,
            }
            seconds = _timed(runs, device)
            watcher.close()
        except Exception as error:  # made for other versions
            return {"skipped": f"{type(error).__name__}: {error}"}
    epoch = seconds["watched"] * scale + seconds["numbers"]
    return {
        "version": version("delve"),
        "seconds_epoch": epoch,
        "seconds_numbers": seconds["numbers"],
        "overhead": epoch / (seconds["plain"] * scale) - 1,
    }


def _optimizer(network: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)


def _timed(runs: dict[str, Callable[[], Any]], device: torch.device) -> dict[str, float]:
    """Median seconds of each, in turns; a GPU is waited for before and after."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(-1, REPEATS):
        for name, run in runs.items():
            if device.type == "cuda":
                torch.cuda.synchronize()
            begun = time.perf_counter()
            run()
            if device.type == "cuda":
                torch.cuda.synchronize()
            if turn >= 0:
                times[name].append(time.perf_counter() - begun)
    return {name: statistics.median(values) for name, values in times.items()}


def _vectors(x: Tensor, *, mean: bool) -> Tensor:
    return x.mean(dim=(2, 3)) if mean and x.ndim == 4 else x.flatten(1)


@contextmanager
def _hooks(model: nn.Module, sites: tuple[str, ...], kept: dict[str, list[Tensor]], *, mean: bool) -> Iterator[None]:
    """Forward hooks that keep every output."""
    modules = site_modules(model)

    def keep(name: str) -> Callable[[nn.Module, Any, Tensor], None]:
        return lambda module, args, output: kept.setdefault(name, []).append(_vectors(output, mean=mean).clone())

    handles = [modules[name].register_forward_hook(keep(name)) for name in sites if name != "input"]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


if __name__ == "__main__":
    main()

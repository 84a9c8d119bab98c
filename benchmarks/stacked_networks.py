"""For which convolutional networks does training side by side pay?

Five members at the papers' five Adam rates, batches of 128. `stacked` is one network of grouped convolutions; the fair
rival `one_after_the_other` trains the members in turn with the same code, and on CUDA both replay captured graphs; `plain`
is `train`, in turn as well. Seconds are those of one epoch of all members, set-up excluded; the seconds of set-up (building
the stack and comparing it with its networks) stand beside them. On a CPU only the two smallest networks, and fewer samples.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from _record import finish, interleaved
from equisep.devices import precision
from equisep.models import build
from equisep.training import Recipe, train
from equisep.training.grouped import stack_modules
from equisep.training.stacked_stepping import StackedStepper

RATES = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)
CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("resnet-2-layer", {"colors": 1}),
    ("pure-cnn", {"channels": 16, "colors": 3}),
    ("pure-cnn", {"channels": 64, "colors": 1}),
    ("vgg11", {"colors": 1}),
    ("resnet18", {"colors": 3}),
)


def measured(
    name: str, options: Mapping[str, Any], *, device: str, samples: int, turn: int, repeats: int, tf32: bool = False
) -> dict[str, Any]:
    """One architecture: `repeats` turns of `turn` epochs for each contestant."""
    generator = torch.Generator("cpu").manual_seed(0)
    x = torch.randn(samples, options["colors"], 32, 32, generator=generator).to(device)
    y = (torch.arange(samples) % 10).to(device)
    epochs = turn * (repeats + 1)  # and one turn to warm up, in which graphs are captured
    recipes = [Recipe(rate=rate, epochs=epochs, milestones=()) for rate in RATES]
    captured = device == "cuda"
    with precision(tf32=tf32):
        begun = time.perf_counter()
        stacked = _steppers([recipes], name, options, x, y, captured=captured)
        set_up = time.perf_counter() - begun
        alone = _steppers([[recipe] for recipe in recipes], name, options, x, y, captured=captured)
        networks = [build(name, seed=recipe.seed, **options).to(device) for recipe in recipes]
        once = [Recipe(rate=rate, epochs=turn, milestones=()) for rate in RATES]

        def plain() -> None:
            for network, recipe in zip(networks, once, strict=True):
                train(network, x, y, recipe=recipe)

        contestants = {
            "stacked": _turns(stacked, turn),
            "one_after_the_other": _turns(alone, turn),
            "plain": plain,
        }
        seconds = {key: value / turn for key, value in interleaved(contestants, repeats=repeats).items()}
    return {
        "network": name,
        "options": dict(options),
        "ratio": seconds["one_after_the_other"] / seconds["stacked"],
        "ratio_plain": seconds["plain"] / seconds["stacked"],
        "seconds_per_epoch": seconds,
        "seconds_set_up": set_up,
        "members": len(recipes),
        "samples": samples,
        "engine": "graphs" if captured else "eager",
        "tf32": tf32,
    }


def _steppers(
    groups: Sequence[Sequence[Recipe]],
    name: str,
    options: Mapping[str, Any],
    x: Tensor,
    y: Tensor,
    *,
    captured: bool,
) -> list[Iterator[Any]]:
    """One training for each group of members, ready to give its epochs one by one."""
    found = []
    for recipes in groups:
        networks = [build(name, seed=recipe.seed, **options).to(x.device) for recipe in recipes]
        network = stack_modules(networks, sample=x.shape[1:])
        found.append(StackedStepper(network, x, y, recipes, captured=captured).epochs())
    return found


def _turns(steppers: Sequence[Iterator[Any]], turn: int) -> Callable[[], None]:
    def run() -> None:
        for stepper in steppers:
            for _ in range(turn):
                loss, _ = next(stepper)
            loss.sum().item()  # waits for the device

    return run


def main() -> None:
    """On a machine with a CUDA device all cases, with and without TF32; otherwise the smallest two."""
    cuda = torch.cuda.is_available()
    rows = []
    for name, options in CASES if cuda else CASES[:2]:
        for tf32 in (False, True) if cuda else (False,):
            if cuda:
                found = measured(name, options, device="cuda", samples=1000, turn=3, repeats=3, tf32=tf32)
            else:
                found = measured(name, options, device="cpu", samples=256, turn=1, repeats=1)
            told = f"{name} {options} tf32={tf32}: {found['ratio']:.2f} times as fast as one after the other"
            print(f"{told}, {found['ratio_plain']:.2f} times as plain", file=sys.stderr)
            rows.append(found)
    finish("stacked_networks", {"cases": rows}, device=torch.cuda.get_device_name() if cuda else "cpu")


if __name__ == "__main__":
    main()

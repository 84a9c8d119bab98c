"""How much faster are many networks side by side than one after the other?

The rival `plain` is a fair loop: data resident as tensors, batches by index, torch's own foreach optimizer, the better of
one and two threads. `ensemble` is `train_ensemble` with 15 members of depth 8, all of its set-up included. Losers stay in
the record: `torch_threads` stacks the same way but lets torch split every operation over its threads; `compiled` has the
forward and backward passes compiled by inductor. On a CPU nothing is compiled by default, so that `ratio_eager` is
`ratio`, and a full run needs no time to compile. With a CUDA device the grid of Fig. 1 is timed from process start,
and `train` of single convolutional networks with graphs and without.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch
from torch import Tensor, nn

from _record import finish, interleaved
from equisep.data import load_data, prepare_split
from equisep.measuring import measure
from equisep.models import build
from equisep.training import Engine, Member, Recipe, Shape, Watch, train, train_ensemble
from equisep.training.ensemble import stepper as stepping

MEMBERS, DEPTH = 15, 8
EPOCHS, REPEATS, WHOLE = 50, 5, 600
PAIRED_SEEDS = range(10)
UNREAD = Watch(sites=False)
CONVOLUTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("resnet-2-layer", {"colors": 1}),
    ("pure-cnn", {"channels": 16, "colors": 3}),
    ("vgg11", {"colors": 1}),
    ("resnet18", {"colors": 3}),
)


def plain(member: Member, x: Tensor, y: Tensor, *, epochs: int, nudged: bool = False) -> nn.Module:
    """One network, trained the way a careful user would write it; `nudged` from weights that are one rounding off."""
    recipe = member.recipe
    model = member.shape.build(recipe.seed).to(x.device)
    if nudged:
        for parameter in model.parameters():
            parameter.data = torch.nextafter(parameter.data, torch.full_like(parameter.data, torch.inf))
    optimizer = torch.optim.Adam(model.parameters(), lr=recipe.rate, weight_decay=recipe.weight_decay, foreach=True)
    order = torch.Generator("cpu").manual_seed(recipe.seed)
    model.train()
    for epoch in range(epochs):
        optimizer.param_groups[0]["lr"] = recipe.rate_at(epoch)
        for batch in torch.randperm(len(y), generator=order).to(x.device).split(recipe.batch_size):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
    if x.is_cuda:
        torch.cuda.synchronize()
    return model


def on_threads(threads: int, work: Callable[[], Any]) -> Callable[[], Any]:
    """The work under a number of torch's threads, which is then given back."""

    def run() -> Any:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            return work()
        finally:
            torch.set_num_threads(before)

    return run


@contextmanager
def compiled_passes() -> Iterator[None]:
    """Forward and backward compiled by inductor while this lasts: those for any device, which keep no buffers."""
    eager = {name: getattr(stepping, name) for name in ("forward", "backward")}
    own = stepping.in_place
    try:
        for name, part in eager.items():
            setattr(stepping, name, torch.compile(part, dynamic=False))
        stepping.in_place = lambda device: False
        yield
    finally:
        for name, part in eager.items():
            setattr(stepping, name, part)
        stepping.in_place = own


def cpu_ratios(x: Tensor, y: Tensor) -> dict[str, Any]:
    """The ratios on this machine's processor."""
    members = [Member(Recipe(seed=seed, epochs=EPOCHS), Shape.deep(DEPTH)) for seed in range(MEMBERS)]
    contestants: dict[str, Callable[[], Any]] = {
        "ensemble": lambda: train_ensemble(members, x, y, watch=UNREAD),
        "torch_threads": lambda: train_ensemble(members, x, y, watch=UNREAD, workers=1),
        "plain_1_thread": on_threads(1, lambda: plain(members[0], x, y, epochs=EPOCHS)),
        "plain_2_threads": on_threads(2, lambda: plain(members[0], x, y, epochs=EPOCHS)),
    }
    seconds = interleaved(contestants, repeats=REPEATS)
    rival = min(seconds["plain_1_thread"], seconds["plain_2_threads"]) * MEMBERS
    compiling: float | None = None
    compiled: float | None = None
    begun = time.perf_counter()
    try:
        with compiled_passes():
            train_ensemble(members, x, y, watch=UNREAD, workers=1)
            compiling = time.perf_counter() - begun
            again = {"compiled": lambda: train_ensemble(members, x, y, watch=UNREAD, workers=1)}
            compiled = interleaved(again, repeats=REPEATS)["compiled"]
    except Exception as error:  # no compiler here: then it is no contestant
        print(f"not compiled: {type(error).__name__}: {error}", file=sys.stderr)
    return {
        "ratio": rival / seconds["ensemble"],
        "ratio_eager": rival / seconds["ensemble"],
        "ratio_torch_threads": rival / seconds["torch_threads"],
        "ratio_compiled_compilation_excluded": None if compiled is None else rival / compiled,
        "compilation_seconds": compiling,
        "seconds_per_network": seconds["ensemble"] / MEMBERS * WHOLE / EPOCHS,
        "seconds_per_network_plain": rival / MEMBERS * WHOLE / EPOCHS,
        "seconds": seconds,
        "members": MEMBERS,
        "depth": DEPTH,
        "epochs": EPOCHS,
    }


def whole_run(x: Tensor, y: Tensor) -> dict[str, Any]:
    """A full run of 600 epochs from cold, against plain loops of the same length; and what float32 differs by."""
    members = [Member(Recipe(seed=seed, epochs=WHOLE), Shape.deep(DEPTH)) for seed in range(MEMBERS)]
    begun = time.perf_counter()
    ensemble = train_ensemble(members, x, y)
    together = time.perf_counter() - begun
    rows: list[dict[str, Any]] = []
    alone = []
    for seed in PAIRED_SEEDS:
        begun = time.perf_counter()
        single = on_threads(1, lambda seed=seed: plain(members[seed], x, y, epochs=WHOLE))()  # type: ignore[misc]
        alone.append(time.perf_counter() - begun)
        rounded = on_threads(1, lambda seed=seed: plain(members[seed], x, y, epochs=WHOLE, nudged=True))()  # type: ignore[misc]
        laws = [_law(model, x, y) for model in (ensemble.network(seed), single, rounded)]
        rows.append({"seed": seed, "r": [r for r, _ in laws], "rho": [rho for _, rho in laws]})
    spreads = {
        name: {
            "mean_difference": mean(row[name][0] - row[name][1] for row in rows),
            "difference_deviation": stdev(row[name][0] - row[name][1] for row in rows),
            "rounding_deviation": stdev(row[name][2] - row[name][1] for row in rows),
            "seed_deviation": stdev(row[name][1] for row in rows),
        }
        for name in ("r", "rho")
    }
    return {
        "ratio_whole_run": mean(alone) * MEMBERS / together,
        "seconds_whole_run": together,
        "float32_member_plain_and_plain_one_rounding_off": rows,
        "float32_spread": spreads,
    }


def _law(model: nn.Module, x: Tensor, y: Tensor) -> tuple[float, float]:
    law = measure(model, (x, y), reading="mixed", metrics=["fuzziness"], intervals="none", coordinates=0).law
    assert law.r is not None and law.rho is not None
    return law.r, law.rho


def from_process_start(seeds: int) -> dict[str, Any]:
    """Fig. 1's grid in a process of its own, and how long all of that takes."""
    begun = time.perf_counter()
    words = [sys.executable, str(Path(__file__).parent / "_fig1_grid.py"), "--seeds", str(seeds)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    return {"seconds_from_process_start": time.perf_counter() - begun, **json.loads(done.stdout)}


def gpu_grid() -> dict[str, Any]:
    """Fig. 1's grid from process start, with one and with ten seeds; the plain loop beside it; graphs of one network."""
    record: dict[str, Any] = {}
    for seeds in (1, 10):
        record[f"fig1_grid_{seeds}_seeds"] = from_process_start(seeds)
    x, y = prepare_split(load_data("embedded-10x10"), "he2023-10x10", per_class=100)
    x, y = x.cuda(), y.cuda()
    member = Member(Recipe(epochs=EPOCHS), Shape.deep(DEPTH))
    many = [Member(Recipe(seed=seed, epochs=200), Shape.deep(DEPTH)) for seed in range(57)]
    seconds = interleaved(
        {
            "plain": lambda: plain(member, x, y, epochs=EPOCHS),
            "graphs": lambda: train_ensemble(many, x, y, device="cuda"),
            "eager": lambda: train_ensemble(many, x, y, device="cuda", engine="eager"),
        },
        repeats=2,
    )
    alone = seconds["plain"] / EPOCHS * 200 * len(many)
    record |= {
        "ratio": alone / seconds["graphs"],
        "ratio_eager": alone / seconds["eager"],
        "seconds_per_network": seconds["graphs"] / 200 * WHOLE / len(many),
        "seconds_per_network_plain": seconds["plain"] / EPOCHS * WHOLE,
        "members": len(many),
    }
    thousand = [Member(Recipe(seed=seed % 100, epochs=20), Shape.deep(20)) for seed in range(1000)]
    torch.cuda.reset_peak_memory_stats()
    train_ensemble(thousand, x, y, device="cuda")
    record["bytes_per_member_of_1000_depth_20"] = torch.cuda.max_memory_allocated() / 1000
    record["one_network"] = [one_network(name, options) for name, options in CONVOLUTIONS]
    return record


def one_network(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """`train` of one convolutional network on 1000 images of 32 × 32: steps replayed from graphs against eager ones."""
    generator = torch.Generator("cpu").manual_seed(0)
    x = torch.randn(1000, options["colors"], 32, 32, generator=generator).cuda()
    y = (torch.arange(1000) % 10).cuda()
    recipe = Recipe(epochs=20, milestones=())

    def trained(engine: Engine) -> Callable[[], Any]:
        return lambda: train(build(name, seed=0, **options).cuda(), x, y, recipe=recipe, engine=engine)

    seconds = interleaved({"graphs": trained("graphs"), "eager": trained("eager")}, repeats=2)
    return {"network": name, "options": options, "ratio": seconds["eager"] / seconds["graphs"], "seconds": seconds}


def main() -> None:
    """On a machine with a CUDA device its record, otherwise the processor's."""
    if torch.cuda.is_available():
        finish("ensemble", gpu_grid(), device=torch.cuda.get_device_name())
        return
    x, y = prepare_split(load_data("embedded-10x10"), "he2023-10x10", per_class=100)
    train(Shape.deep(3).build(0), x, y, recipe=Recipe(epochs=1))  # torch's first calls are slow
    finish("ensemble", {**cpu_ratios(x, y), **whole_run(x, y)})


if __name__ == "__main__":
    main()

"""How long is a step of the papers' convolutional networks on a GPU, by what torch is told of them?

Milliseconds of one step (forward, backward, Adam; batches of 128 images of 32 × 32, TF32 allowed as in the figures), four ways in
one run: `eager`, the plain loop; `graphs`, its steps replayed from captured CUDA graphs; `channels_last`, the same with images
and weights laid out channel by channel for every pixel; `tried`, that with cuDNN timing its algorithms for each layer first.
`setup` is what the first two epochs take beyond their steps, which whoever trains for long does not notice. With
`--side-by-side N` the steps a second of one process are put beside those of N that train the same network at once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from _record import RESULTS, save
from equisep.devices import precision
from equisep.figures.catalogue import figure_of
from equisep.figures.cell import Training
from equisep.runs.runners.architecture import network_of
from equisep.training import Recipe, train

NETWORKS = (
    ("he2023/figS3", "cnn-fm"), ("he2023/figS3", "cnn-cifar"), ("he2023/fig4", "alexnet-cifar"), ("he2023/fig4", "vgg13-cifar"),
    ("he2023/fig7", "2-layer-cifar"), ("he2023/fig7", "3-layer-cifar"), ("he2023/fig10", "resnet18-cifar"),
    ("he2023/figS2", "vgg19-cifar"), ("galanti2022/fig6", "convnet-plain-8"), ("he2023/fig8", "densenet-cifar"),
)  # fmt: skip
WAYS = ("eager", "graphs", "channels_last", "tried")
SAMPLES, CLASSES, TIMED = 1000, 10, 4


def cell_of(figure: str, series: str) -> Training:
    """The cell of a series as the paper has it."""
    declared = figure_of(figure)
    cell = declared.cell(declared.named(series)[0])
    assert isinstance(cell, Training)
    return cell


@contextmanager
def told(way: str) -> Iterator[None]:
    """What torch is told beside the layout."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = way == "tried"
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def steps_of(figure: str, series: str, way: str, *, epochs: int = TIMED) -> dict[str, float]:
    """Milliseconds of a step, and seconds of set-up, of one network."""
    cell = cell_of(figure, series)
    colors = 1 if series.endswith("fm") else 3
    generator = torch.Generator("cpu").manual_seed(0)
    x = torch.randn(SAMPLES, colors, 32, 32, generator=generator).cuda()
    y = (torch.arange(SAMPLES) % CLASSES).cuda()
    network = network_of(cell, x, classes=CLASSES).cuda()
    if way in ("channels_last", "tried"):
        x = x.to(memory_format=torch.channels_last)
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # which torch's own types leave out
    ends: list[float] = []

    def after(_: int) -> None:
        torch.cuda.synchronize()
        ends.append(time.perf_counter())

    recipe = Recipe(optimizer=cell.optimizer, rate=1e-4, epochs=2 + epochs, batch_size=cell.batch_size)
    with precision(tf32=True), told(way):
        train(network, x, y, recipe=recipe, engine="eager" if way == "eager" else "auto", after_epoch=after)
    epoch = (ends[-1] - ends[2]) / epochs
    return {"ms": 1e3 * epoch / -(-SAMPLES // cell.batch_size), "setup": ends[2] - ends[0] - 2 * epoch}


def side_by_side(figure: str, series: str, way: str, count: int, *, epochs: int = 60) -> float:
    """Steps a second of so many processes together, each training by itself."""
    words = [sys.executable, __file__, "--one", figure, series, way, str(epochs)]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    told_by_each = [json.loads(process.communicate()[0].splitlines()[-1]) for process in running]
    return float(sum(1e3 / each["ms"] for each in told_by_each))


def main() -> None:
    """All networks, every way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    parser.add_argument("--into", type=Path, help="keep the result in this folder")
    parser.add_argument("--side-by-side", type=int, default=0, metavar="N", help="N processes at once, beside one")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        figure, series, way, epochs = asked.one
        print(json.dumps(steps_of(figure, series, way, epochs=int(epochs))))
        return
    if not torch.cuda.is_available():
        print("Convolutional networks are measured on a GPU, and torch finds none here.")
        return  # `make bench` goes on with what can be measured
    folder = asked.into or (RESULTS if asked.save else None)
    rows: list[dict[str, Any]] = []
    result: dict[str, Any] = {"networks": rows}
    for figure, series in NETWORKS:
        row: dict[str, Any] = {"figure": figure, "series": series}
        for way in WAYS:
            try:
                row[way] = steps_of(figure, series, way)
            except Exception as error:  # one network more or less: the others are measured
                row[way] = {"failed": f"{type(error).__name__}: {error}"[:300]}
            torch.cuda.empty_cache()
        rows.append(row)
        print(json.dumps(row), file=sys.stderr)
        if folder is not None:
            save("convolutions", result, device=torch.cuda.get_device_name(), folder=folder)
    if asked.side_by_side:
        together: list[dict[str, Any]] = []
        result["side_by_side"] = {"processes": asked.side_by_side, "steps_a_second": together}
        for figure, series in (NETWORKS[1], NETWORKS[3], NETWORKS[4]):
            rates = {str(n): side_by_side(figure, series, "tried", n) for n in (1, asked.side_by_side)}
            together.append({"figure": figure, "series": series, **rates})
            print(json.dumps(together[-1]), file=sys.stderr)
            if folder is not None:
                save("convolutions", result, device=torch.cuda.get_device_name(), folder=folder)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

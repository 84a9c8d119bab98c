"""Run figures at paper scale with several processes on one store: how the committed record in `results/` was made.

    python scripts/make_record.py he2023/fig1=10 he2023/fig5 --store runs --device cuda --workers 4 --data cifar10=cifar10_7k

`ID=N` asks for N seeds, `ID:GLOB` for some series of a figure and `ID:GLOB@RATE` for them at one rate, so that several processes
can share it. Figures are taken in the order given, each by one process; what is stored already is not run again, and trainings
that were cut off go on from their checkpoints in the store, at most a minute old: the same line may be called again until all
is done. `--recorded results` takes what was recorded before into the store first, so that more seeds cost no more than
themselves. Small networks leave most of a GPU idle, so several processes gain even on one; they share it best under NVIDIA's
multi-process service. Beside large ones a small network waits for a place with every kernel: run these apart. Afterwards
`scripts/pack_record.py` packs and draws what was run, and `scripts/make_figures_page.py` tabulates it.
"""

from __future__ import annotations

import argparse
import re
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from equisep.errors import InputError
from equisep.figures.catalogue import figure_of
from equisep.figures.figure import Figure
from equisep.runs.plan import parse_stand_ins
from equisep.runs.record import read_record
from equisep.runs.run import run_figure
from equisep.runs.store import Store

METAVAR = "ID[:GLOB[@RATE]][=SEEDS]"


def main() -> None:
    """Run what is asked and say how long each figure took."""
    asked = arguments()
    stand_ins = parse_stand_ins(asked.data), parse_stand_ins(asked.network)
    if asked.recorded is not None:
        take_recorded(asked.recorded, {re.split("[:=]", name)[0] for name in asked.figures}, Store.open(asked.store))
    began = time.perf_counter()
    with ProcessPoolExecutor(asked.workers, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(run_one, name, asked.store, asked.device, *stand_ins): name for name in asked.figures}
        for future in as_completed(waiting):
            try:
                print(f"{time.perf_counter() - began:7.1f} s  {future.result()}", flush=True)
            except Exception as error:  # the others go on
                print(
                    f"{time.perf_counter() - began:7.1f} s  {waiting[future]}: {type(error).__name__}: {error}",
                    flush=True,
                )


def run_one(name: str, store: str, device: str, data: dict[str, str], networks: dict[str, str]) -> str:
    """One figure, whole, and a line about it."""
    began = time.perf_counter()
    figure, seeds = figure_asked(name)
    found = run_figure(figure, store=store, seeds=seeds, device=device, data=data, networks=networks)
    return f"{name.partition('=')[0]}: {found.done} cells, {time.perf_counter() - began:.1f} s"


def figure_asked(name: str) -> tuple[Figure, int | None]:
    """The figure, or the part of one, that a word of the command line asks for, and how many seeds."""
    asked, _, seeds = name.partition("=")
    identity, _, part = asked.partition(":")
    pattern, _, rate = part.partition("@")
    try:
        count, one = int(seeds) if seeds else None, float(rate) if rate else None
    except ValueError:
        raise InputError(
            f"A figure is asked for as {METAVAR}, such as he2023/fig4:alexnet-*@1e-3=3; found `{name}`."
        ) from None
    figure = figure_of(identity)
    return part_of(figure, pattern, one) if part else figure, count


def part_of(figure: Figure, pattern: str, rate: float | None) -> Figure:
    """Some series of a figure, without what is drawn and claimed, which needs the others; at one rate, if given, and no other."""
    series = tuple(replace(each, panel="") for each in figure.named(pattern))
    if rate is not None:
        for each in series:  # what is trained at another rate is no part of the figure, and would not be packed
            if rate not in (tried := figure.rates_of(each)):
                hint = f"Give one of {', '.join(f'{own:g}' for own in tried)}." if tried else "Leave the rate out."
                raise InputError(f"Series `{each.name}` of `{figure.id}` is not tried at rate {rate:g}. {hint}")
        series = tuple(replace(each, rates=(rate,)) for each in series)
    choose = figure.choose if rate is None else "given"
    return replace(figure, series=series, choose=choose, panels=(), claims=(), printed=())


def take_recorded(results: Path, figures: set[str], store: Store) -> None:
    """Put the cells of recorded figures into a store that has them not."""
    for path in (results / f"{name}.json" for name in sorted(figures)):
        if path.exists():
            for entry in read_record(path).entries:
                store.put(entry.cell, entry.outcome, entry.provenance)


def arguments() -> argparse.Namespace:
    """What the user asks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("figures", nargs="+", metavar=METAVAR)
    parser.add_argument("--store", default="equisep-runs")
    parser.add_argument("--recorded", type=Path, metavar="DIR")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--data", action="append", default=[], metavar="NAME=OTHER")
    parser.add_argument("--network", action="append", default=[], metavar="NAME=OTHER")
    asked = parser.parse_args()
    if asked.recorded is not None and not asked.recorded.is_dir():  # all would be trained anew
        parser.error(f"no folder {asked.recorded} of records: give the one that was packed, as results")
    try:
        for name in asked.figures:  # now, not when the figures before it are trained
            figure_asked(name)
    except InputError as error:
        parser.error(str(error))
    return asked


if __name__ == "__main__":
    main()

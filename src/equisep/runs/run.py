"""run_figure: plan, execute what is not stored yet, store each group as it comes, and return the evidence."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from equisep._version import __version__
from equisep.errors import DataError, InputError, StoreError
from equisep.figures.cell import Cell, Training, trainings
from equisep.figures.evidence import Evidence, gather
from equisep.figures.figure import Figure, Series
from equisep.figures.outcome import Outcome
from equisep.files import claimed, plain, writing
from equisep.progress import Progress, Watched, callback, silent, watched
from equisep.runs.cell_files import checkpoint_path, group_folder
from equisep.runs.plan import (
    Planned,
    RunOptions,
    check_changes,
    chosen_count,
    declared,
    first_cells,
    groups_of,
    planned_cells,
    rates_at,
    runner_of,
)
from equisep.runs.store import Store

LOCAL = "local"
CHECKPOINTS = "checkpoints"  # a folder of the store
Result = tuple[Cell, Outcome, dict[str, Any]]


@watched
def run_figure(
    figure: Figure,
    *,
    store: Store | str | Path,
    scale: str = "paper",
    seeds: int | None = None,
    device: str | None = None,
    on: str = LOCAL,
    data: Mapping[str, str] | None = None,
    data_dir: str | None = None,
    networks: Mapping[str, str] | None = None,
    changes: Mapping[str, Any] | None = None,
    progress: Watched = None,
) -> Evidence:
    """Run what is missing of a figure, and gather all that is there.

    store       where cells are kept; cells that are there are taken from it, and the same call after an interrupt goes on.
    scale       `paper` or `smoke`. `seeds`: how many; by default the figure's own number.
    device      where networks train. `on`: `local`, `ray` (a cluster on this machine), or the address of one.
    data        what stands in for a data set: {"cifar10": "cifar10_7k"}. `networks`: likewise for a network.
    changes     fields of every cell to set otherwise, as {"dtype": "float64"}.

    One store holds a figure at a scale with one choice of `data`, `networks` and `changes`; another choice is refused.
    """
    progress = callback(progress)
    held = store if isinstance(store, Store) else Store.open(store)
    asked = RunOptions(scale, seeds, data, changes, substitute=substitutes(data_dir), networks=networks)
    check_changes(figure, changes or {})
    _check_settings(figure, held, asked)
    rates: Callable[[Series], Sequence[float]] | None = None
    if planned := first_cells(figure, asked):
        _execute(figure, planned, held, asked, device=device, on=on, data_dir=data_dir, progress=progress)
        first = gather(figure, held.entries(figure.id, scale), scale=scale)
        rates = _chosen(figure, scale, planned, first)
    whole = planned_cells(figure, asked, rates=rates)
    _execute(figure, whole, held, asked, device=device, on=on, data_dir=data_dir, progress=progress)
    return evidence_of(figure, held, scale)


def evidence_of(figure: Figure, store: Store, scale: str) -> Evidence:
    """What a store holds of a figure as it is declared now; cells of an earlier declaration are left out."""
    manifest = store.manifest(figure.id, scale)
    if manifest is None:
        return gather(figure, (), scale=scale)
    kept = {name: manifest.settings.get(name) for name in ("data", "networks", "changes")}
    asked = RunOptions(scale, **kept)
    own = declared(figure, asked)
    entries = [entry for entry in store.entries(figure.id, scale) if own(entry.series, entry.cell)]
    return gather(figure, entries, scale=scale, plan=[pair for pair in manifest.entries if own(*pair)])


def _execute(
    figure: Figure,
    planned: Sequence[Planned],
    store: Store,
    asked: RunOptions,
    *,
    device: str | None,
    on: str,
    data_dir: str | None,
    progress: Progress,
) -> None:
    """Train the groups of which a cell is missing; a group is trained whole, since company decides the last digits."""
    cells = [plan.cell for plan in planned]
    _check_names(cells)
    check_data(cells, data_dir)
    settings = {"seeds": asked.seeds, "data": dict(asked.data or {}), "changes": dict(asked.changes or {})}
    settings |= {"networks": dict(asked.networks)} if asked.networks else {}
    store.add_manifest(figure.id, asked.scale, [(plan.series, plan.cell) for plan in planned], settings)
    groups = groups_of(cells)
    done = store.done([cell.key for cell in cells])
    todo = [group for group in groups if any(cell.key not in done for cell in group)]

    def keep(results: Sequence[Result]) -> None:
        for cell, outcome, made in results:
            store.put(cell, outcome, {**made, **_commit()})

    if on != LOCAL:
        from equisep.runs.ray import run_groups_on_ray

        run_groups_on_ray(todo, address=on, device=device, data_dir=data_dir, on_done=keep, progress=progress)
        return
    for index, group in enumerate(todo):
        # another process on the same store may have been faster
        if store.done([cell.key for cell in group]) >= {cell.key for cell in group}:
            continue
        with _checkpoints(store, group) as kept:
            keep(run_group(group, device=device, data_dir=data_dir, progress=progress, checkpoints=kept))
            if kept is not None:
                for cell in group:
                    checkpoint_path(kept, cell).unlink(missing_ok=True)
                shutil.rmtree(group_folder(kept, group), ignore_errors=True)
        progress("groups", index + 1, len(todo))


@contextmanager
def _checkpoints(store: Store, group: Sequence[Cell]) -> Iterator[Path | None]:
    """Where a group is kept while it trains; None where another process trains the same and keeps it there."""
    folder = store.root / CHECKPOINTS
    with writing("A checkpoint", folder):
        folder.mkdir(exist_ok=True)
    with claimed(group_folder(folder, group).with_suffix(".lock")) as mine:
        yield folder if mine else None


def run_group(
    cells: Sequence[Cell],
    *,
    device: str | None = None,
    data_dir: str | None = None,
    progress: Progress = silent,
    checkpoints: Path | None = None,
) -> list[Result]:
    """The outcomes of a group of the plan, each with its provenance; `wall_s` is a cell's share of the group's time.

    checkpoints     a folder in which networks are kept while they train.
    """
    began = time.perf_counter()
    name = runner_of(cells[0])
    # each runner brings its own libraries, which the others need not wait for
    runner = importlib.import_module(f"equisep.runs.runners.{name}")
    more = {"checkpoints": checkpoints} if name in ("networks", "ensembles") else {}
    outcomes, made = runner.run_cells(cells, device=device, data_dir=data_dir, progress=progress, **more)
    share = (time.perf_counter() - began) / len(cells)
    made = {"equisep": __version__, **made, "together": len(cells), "wall_s": round(share, 4)}
    return [(cell, outcome, dict(made)) for cell, outcome in zip(cells, outcomes, strict=True)]


def _check_settings(figure: Figure, store: Store, asked: RunOptions) -> None:
    """Refuse to join runs of one figure that differ in stand-ins or changed fields: their numbers would be mixed."""
    try:
        manifest = store.manifest(figure.id, asked.scale)
    except StoreError:
        return  # as this run's is written, one that is damaged is set aside, and one of a newer version refused
    if manifest is None:
        return
    own_cells = trainings(figure.cell(series) for series in figure.series)
    stood_for = {"data": {cell.data for cell in own_cells}, "networks": {cell.network for cell in own_cells}}
    for name, flag in (("data", "--data"), ("networks", "--network"), ("changes", "--set")):
        before, now = plain(manifest.settings.get(name) or {}), plain(getattr(asked, name) or {})
        if name in stood_for:  # stand-ins of other figures' data sets and networks change nothing here
            known = stood_for[name]
            before, now = ({own: other for own, other in each.items() if own in known} for each in (before, now))
        # where nothing was finished, as after a mistaken setting, nothing can be mixed
        if before != now and store.done([cell.key for _, cell in manifest.entries]):
            raise InputError(
                f"`{figure.id}` was asked for with {_flags(flag, now)}; `{store.root}` holds `{figure.id}` run with "
                f"{_flags(flag, before)}, and joining them would mix their numbers. Use another `--store`."
            )


def _flags(flag: str, settings: Mapping[str, Any]) -> str:
    return " ".join(f"{flag} {name}={value}" for name, value in settings.items()) or f"no {flag}"


def _chosen(
    figure: Figure, scale: str, planned: Sequence[Planned], first: Evidence
) -> Callable[[Series], Sequence[float]]:
    """The rates of each series that its first runs chose."""
    from equisep.figures.evidence import ranked_rates

    keys, count = {plan.cell.key for plan in planned}, chosen_count(figure)
    # networks of short runs have no time to fit
    fit = None if figure.choose == "short runs" else figure.fit

    def rates(series: Series) -> Sequence[float]:
        entries = [entry for entry in first.series[series.name].entries if entry.cell.key in keys]
        return (ranked_rates(entries, fit=fit) if entries else rates_at(figure, series, scale))[:count]

    return rates


def substitutes(data_dir: str | None) -> Callable[[Training], str | None]:
    """What stands in at smoke scale for a cell's data, for `RunOptions`: the embedded images where they are not at hand."""

    def find(cell: Training) -> str | None:
        from equisep.runs.cell_data import at_hand, substitute_for

        if runner_of(cell) == "encoders" or at_hand(cell.data, data_dir):
            return None
        return substitute_for(cell)

    return find


def _check_names(cells: Sequence[Cell]) -> None:
    """Refuse an unknown network, activation or optimizer before anything is trained."""
    from equisep.runs.runners.architecture import check_names

    for cell in dict.fromkeys(each.with_(seed=0, data_seed=0) for each in trainings(cells)):
        check_names(cell)


def check_data(cells: Sequence[Cell], data_dir: str | None, *, stand_ins_alone: bool = False) -> None:
    """Load every data set before anything is trained: one that is not there should not cost the hours before it.

    A plan is told without the paper's data, and with `stand_ins_alone` of the user's own files, which nothing downloads.
    """
    from equisep.data.official.sources import SOURCES
    from equisep.runs.cell_data import dataset_of

    trained = [cell for cell in trainings(cells) if runner_of(cell) != "encoders"]
    for name, wanted in dict.fromkeys((cell.data, cell.stands_for) for cell in trained):
        if stand_ins_alone and (not wanted or name in SOURCES):
            continue
        try:
            dataset_of(name, data_dir)
        except DataError as error:
            if wanted:  # it stands in itself
                raise
            raise DataError(
                f"{error} Or let another data set stand in: `--data {name}=OTHER`; `--scale smoke` needs none."
            ) from error


@cache
def _commit() -> dict[str, str]:
    """The commit of the checkout this runs from, where it is one."""
    here = Path(__file__).resolve().parents[3]
    if not (here / ".git").exists():
        return {}
    try:
        # `-dirty`: what ran was not what the commit holds
        asked = ("describe", "--always", "--exclude=*", "--abbrev=12", "--dirty")
        told = subprocess.run(["git", *asked], cwd=here, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return {}
    return {"commit": told.stdout.strip()}

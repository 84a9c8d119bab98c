"""`equisep measure`: a model and data of the user's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equisep.cli.console import (
    command_record,
    notes_in_options,
    options_of,
    out,
    print_json,
    progress_bars,
    reported,
    say,
    say_saved,
    usable_file,
)
from equisep.cli.data import DataFlags, MeasuredData, load_named_data, load_named_model, with_data_options
from equisep.cli.distributed import Launched, by_ranks, process_group, profile_by, profile_on_a_cluster
from equisep.cli.features import refuse_with_features, stored_profile
from equisep.cli.options import (
    OUTPUT,
    PICTURES,
    READ,
    SHARDS,
    STATISTICS,
    Checkpoint,
    DataOrStored,
    Device,
    FeatureLabels,
    Features,
    Json,
    Memory,
    Mode,
    ModelOrStored,
    Quiet,
    Readings,
    Reduced,
    Sites,
    option,
    parse_memory,
    parse_numbers,
    parse_readings,
    parse_sites,
)
from equisep.errors import EquisepError, InputError
from equisep.files import encode
from equisep.progress import Progress
from equisep.results import Note, Profile

if TYPE_CHECKING:
    from torch import nn

    from equisep.data.shard import Shard
    from equisep.measuring.distributed.shards import ShardTask


@reported
@by_ranks
@with_data_options()
def measure(
    ctx: typer.Context,
    model: ModelOrStored = None,
    data: DataOrStored = None,
    features: Features = None,
    labels: FeatureLabels = None,
    checkpoint: Checkpoint = None,
    *,
    flags: DataFlags,
    sites: Sites = None,
    reduction: Reduced = None,
    calls: Annotated[
        str | None,
        option("--calls", READ, "Of a module called more than once: each call is a site, or the last.", default="each"),
    ] = None,
    reading: Readings = None,
    mode: Mode = None,
    weighting: Annotated[
        str | None, option("--weighting", STATISTICS, "sample, class or mixed.", default="sample")
    ] = None,
    classes: Annotated[
        int | None, option("--classes", STATISTICS, "K, where the model's output does not tell.")
    ] = None,
    classifier: Annotated[
        str | None, option("--classifier", STATISTICS, "The linear layer that reads the last site.")
    ] = None,
    epsilon: Annotated[
        float | None,
        option("--epsilon", STATISTICS, "1 - ε nearest-center accuracy counts as separated.", default="0.01"),
    ] = None,
    intervals: Annotated[
        str | None, option("--intervals", STATISTICS, "auto, bootstrap, jackknife or none.", default="auto")
    ] = None,
    whole: Annotated[
        bool | None,
        option(
            "--whole/--sample",
            STATISTICS,
            "The training data are all there are, or a sample of more, as --per-class and --split test make them: then D of "
            "the population stands beside.",
        ),
    ] = None,
    subsamples: Annotated[
        str | None,
        option(
            "--subsamples",
            STATISTICS,
            "Instead of the profile: D, ρ and r of nested parts of the training data, such as 50,100,200 per class.",
        ),
    ] = None,
    memory: Memory = None,
    coordinates: Annotated[
        int | None, option("--coordinates", STATISTICS, "Samples kept for plots; 0: none.", default="300", min=0)
    ] = None,
    seed: Annotated[
        int,
        option(
            "--seed", STATISTICS, "Seed of the factory's weights, the sample, and resampling.", min=0, max=2**32 - 1
        ),
    ] = 0,
    precision: Annotated[
        str | None,
        option(
            "--precision",
            STATISTICS,
            "float32: quicker products of many classes on a CPU, where D is proven to keep six digits.",
            default="float64",
        ),
    ] = None,
    device: Device = None,
    shard: Annotated[
        str | None,
        option(
            "--shard",
            SHARDS,
            "Read one of N shards of the data, such as 3/64, and write its part to --out (.npz) for `equisep merge`.",
        ),
    ] = None,
    means: Annotated[
        Path | None, option("--means", SHARDS, "The second round: what `equisep merge` made of the parts of the first.")
    ] = None,
    on: Annotated[
        str | None,
        option("--on", SHARDS, "Read on a Ray cluster: ray (on this machine), or ray://ADDRESS.", default="here"),
    ] = None,
    shards: Annotated[
        int | None,
        option("--shards", SHARDS, "With --on: in how many parts the data are read.", default="one per CPU or GPU"),
    ] = None,
    out_file: Annotated[Path | None, option("--out", OUTPUT, "Save the profile as JSON here.")] = None,
    plot: Annotated[Path | None, option("--plot", OUTPUT, "Draw the law here (PNG, SVG or PDF).")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how a model of yours separates its classes, layer by layer."""
    from equisep.measuring.distributed.shards import ShardTask
    from equisep.measuring.notes import Notes

    launched = Launched.here(shard=shard, subsamples=subsamples, on=on)
    device, quiet = launched.device(device), quiet or not launched.speaks
    if on is not None:
        _show(profile_on_a_cluster(ctx), out_file=out_file, plot=plot, json=json, quiet=quiet)
        return
    part = _asked_shard(shard, means, out_file, alone=plot is None and not json and subsamples is None)
    usable_file(plot, flag="--plot", endings=PICTURES)
    if subsamples is not None:
        _refuse_with_parts(out=out_file, plot=plot, whole=whole or None, intervals=intervals, coordinates=coordinates)
    options: dict[str, Any] = {
        "sites": parse_sites(sites) if sites else None,
        "calls": calls,
        "reduction": reduction,
        "readings": parse_readings(reading, mode),
        "weighting": weighting,
        "classes": classes,
        "classifier": classifier,
        "epsilon": epsilon,
        "intervals": intervals,
        "whole": whole,
        "memory": parse_memory(memory),
        "seed": seed,
        "coordinates": coordinates,
        "precision": precision,
        "device": device,
    }
    given = {name: value for name, value in options.items() if value is not None}
    if features is not None:
        refuse_with_features(
            given,
            model=model,
            data=data,
            checkpoint=checkpoint,
            subsamples=subsamples,
            per_class=flags.per_class,
            shard=shard,
        )
        with process_group(launched):
            rescue = out_file if launched.speaks else None
            profile = _of_features(features, labels, flags.split, given, out_file=rescue, quiet=quiet)
        if launched.speaks:
            _show(profile, out_file=out_file, plot=plot, json=json, quiet=quiet)
        return
    if model is None or data is None:
        missing = "--model" if model is None else "--data"
        raise InputError(f"`measure` needs `{missing}`: a model and its data, or `--features` that are stored.")
    loaded = load_named_model(model, checkpoint=checkpoint, seed=seed, quiet=quiet)
    with progress_bars(quiet=quiet) as progress:
        source = load_named_data(flags, model=model, progress=progress)
        say(source.words, quiet=quiet)
        given.setdefault("whole", flags.per_class is None and flags.split != "test")
        if subsamples is not None:
            _show_parts(loaded.model, source.train, subsamples, given, json=json, progress=progress)
            return
        record = {**source.record, **flags.asked()}
        settings = {"data": record, "model": model, "checkpoint": checkpoint and str(checkpoint)}
        before, after = (*loaded.notes, *source.notes), _split_notes(flags.split)
        if part is not None and out_file is not None:
            task = ShardTask(part, out_file, means, data=record, settings=settings, notes=(before, after))
            _write_shard(loaded.model, source, task, given, progress)
            return
        with _rescued(out_file if launched.speaks else None, quiet=quiet), redirect_stdout(sys.stderr):
            profile = profile_by(launched, loaded.model, source.train, source.test, **given, progress=progress)
    notes = Notes((*before, *profile.notes, *after))
    made_by = {**profile.provenance, **command_record()}
    profile = replace(
        profile, settings=encode({**profile.settings, **settings}), notes=notes.ranked(), provenance=made_by
    )
    if launched.speaks:
        _show(profile, out_file=out_file, plot=plot, json=json, quiet=quiet)


def _of_features(
    features: str, labels: str | None, split: str, given: dict[str, Any], *, out_file: Path | None, quiet: bool
) -> Profile:
    """The profile of stored features."""
    from equisep.measuring.notes import Notes

    with _rescued(out_file, quiet=quiet), progress_bars(quiet=quiet) as progress:
        profile = stored_profile(features, labels, split, given, progress=progress)
    return replace(
        profile,
        notes=Notes((*profile.notes, *_split_notes(split))).ranked(),
        provenance={**profile.provenance, **command_record()},
    )


def _show(profile: Profile, *, out_file: Path | None, plot: Path | None, json: bool, quiet: bool) -> None:
    """Save, draw and print, as asked."""
    from equisep.report.plots import plot_law, save_figure
    from equisep.report.terminal import render_findings

    if out_file is not None:
        say_saved(profile.save(out_file), "profile", quiet=quiet)
    if plot is not None:
        say_saved(save_figure(plot_law(profile), plot), "plot", quiet=quiet)
    if json:
        print_json(profile.to_dict())
        return
    out.print(render_findings(profile.findings), "", with_flags(profile), sep="\n")


def _asked_shard(shard: str | None, means: Path | None, out_file: Path | None, *, alone: bool) -> Shard | None:
    """The shard that was asked for, which leaves a part in a file and nothing else; `alone`: nothing else was asked for."""
    from equisep.data.shard import Shard

    usable_file(out_file, flag="--out", endings=(".json",) if shard is None else (".npz",))
    if shard is None:
        if means is not None:
            raise InputError("`--means` is for the second round of a shard. Name the shard with `--shard` as well.")
        return None
    if out_file is None or not alone:
        asked = "no `--out`" if out_file is None else "a plot, `--json` or `--subsamples`"
        raise InputError(
            f"A shard leaves its part in a file: `--shard {shard}` takes `--out part.npz` alone; found {asked}."
        )
    return Shard.of(shard)


def _write_shard(
    model: nn.Module, source: MeasuredData, task: ShardTask, given: dict[str, Any], progress: Progress
) -> None:
    """Read one shard, write its part, and say where it is."""
    from equisep.measuring.distributed.shards import measure_shard

    with redirect_stdout(sys.stderr):
        measure_shard(model, source.train, source.test, task=task, **given, progress=progress)
    which = "first" if task.means is None else "second"
    out.print(f"shard {task.shard}, {which} round: {task.out}", markup=False, highlight=False)


def _refuse_with_parts(**others: object) -> None:
    """Raise where a flag was given that a table of parts of the data has no use for."""
    flags = [f"`--{name}`" for name, value in others.items() if value is not None]
    if flags:
        raise InputError(
            "`--subsamples` prints a table of parts of the data (with `--json` their numbers), each a sample of more, and makes "
            f"no profile: found {' and '.join(flags)}. Leave {'it' if len(flags) == 1 else 'them'} out."
        )


def _show_parts(
    model: nn.Module, train: Any, sizes: str, given: dict[str, Any], *, json: bool, progress: Progress
) -> None:
    """Print D, ρ and r of nested parts of the training data."""
    from equisep.measuring import subsamples
    from equisep.report.comparison import render_subsamples, subsample_record

    per_class = parse_numbers(sizes, flag="--subsamples")
    with redirect_stdout(sys.stderr):
        parts = subsamples(model, train, per_class, **_of_parts(given), progress=progress)
    if json:
        print_json({"subsamples": [subsample_record(part) for part in parts]})
    else:
        out.print(render_subsamples(parts))


def _of_parts(given: dict[str, Any]) -> dict[str, Any]:
    """The options that hold for parts of the data too: one reading; `subsamples` says itself that they are no whole."""
    readings = given.get("readings") or ("eval",)
    names = readings.split(",") if isinstance(readings, str) else list(readings)
    if len(names) > 1:
        raise InputError(f"`--subsamples` reads in one reading; found {', '.join(names)}. Name one with `--reading`.")
    return {name: value for name, value in given.items() if name != "whole"}


def with_flags(profile: Profile) -> Profile:
    """The profile as this command shows it: its Notes speak of options."""
    flags = {**options_of(measure), "readings": "--reading"}
    return replace(profile, notes=notes_in_options(profile.notes, flags))


@contextmanager
def _rescued(path: Path | None, *, quiet: bool) -> Iterator[None]:
    """Save what was measured before an error: the training data's profile, where the test data fail."""
    try:
        yield
    except EquisepError as error:
        if isinstance(error.profile, Profile) and path is not None:
            say_saved(error.profile.save(path), "profile of the training data alone", quiet=quiet)
        raise


def _split_notes(split: str) -> tuple[Note, ...]:
    if split != "test":
        return ()
    return (Note("test-split", "The test split was measured by its own means: `train` stands for it in every number."),)

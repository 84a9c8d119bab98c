"""`equisep depth`: how deep a network for these data should be, by training several depths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from equisep.cli.console import (
    in_options,
    options_of,
    out,
    print_json,
    progress_bars,
    reported,
    say,
    say_saved,
    usable_file,
    usable_folder,
)
from equisep.cli.data import DataFlags, load_named_data
from equisep.cli.options import (
    DATA,
    OUTPUT,
    PICTURES,
    READ,
    STATISTICS,
    Channels,
    DataFolder,
    Device,
    Json,
    Normalize,
    PerClass,
    Prepare,
    Quiet,
    Resize,
    option,
)
from equisep.errors import InputError
from equisep.files import encode, json_text, plain, write_whole
from equisep.report.formatting import percent

if TYPE_CHECKING:
    from equisep.advice.depth import DepthSettings, Trial
    from equisep.cli.data import MeasuredData

Split = tuple[Any, Any]
N = TypeVar("N", int, float)
EMBEDDED, PREPARATION = "embedded-10x10", "he2023-10x10"
NETWORKS = "Networks"  # a panel of the help
MANY_INPUTS = 4096  # numbers per sample beyond which the first layer is most of the work


@reported
def depth(
    data: Annotated[str, option("--data", DATA, "A data set by name, or an .npz file of yours.")] = EMBEDDED,
    data_dir: DataFolder = None,
    per_class: PerClass = None,
    samples: Annotated[
        int, option("--samples", DATA, "Training samples that each seed draws of more; 0: all.", min=0)
    ] = 1000,
    held_out: Annotated[
        float, option("--held-out", DATA, "Share of the data to test on, where there are no test data.")
    ] = 0.2,
    prepare: Prepare = None,
    resize: Resize = None,
    channels: Channels = None,
    normalize: Normalize = None,
    depths: Annotated[str, option("--depths", NETWORKS, "Linear layers, the classifier included.")] = "2,3,4,6,8,12,16",
    widths: Annotated[str, option("--widths", NETWORKS, "Hidden widths.")] = "100",
    family: Annotated[str, option("--family", NETWORKS, "fnn, fnn-linear or fnn-no-batchnorm.")] = "fnn",
    rates: Annotated[str, option("--rates", NETWORKS, "Adam's rates.")] = "0.003",
    epochs: Annotated[int, option("--epochs", NETWORKS, "Of every training.")] = 200,
    seeds: Annotated[int, option("--seeds", NETWORKS, "Networks per depth.")] = 8,
    seed: Annotated[int, option("--seed", NETWORKS, "The first seed.", min=0, max=2**31)] = 0,
    reading: Annotated[
        str, option("--reading", READ, "How D, r and nearest centers are read: eval, mixed or drawn.")
    ] = "eval",
    margin: Annotated[
        float | None,
        option(
            "--margin",
            STATISTICS,
            "How far below the best a depth may lie (0.01: one point).",
            default="0.01, or a fifth of the errors",
        ),
    ] = None,
    level: Annotated[float, option("--level", STATISTICS, "Of intervals and recommendation.")] = 0.95,
    fit: Annotated[float, option("--fit", STATISTICS, "Least training accuracy of a depth that counts.")] = 0.99,
    epsilon: Annotated[
        float, option("--epsilon", STATISTICS, "What nearest class means may miss, for effective depth.")
    ] = 0.01,
    min_ncc: Annotated[
        bool, option("--min-ncc", READ, "Also say the minimal NCC depth of the family on these data.")
    ] = False,
    device: Device = None,
    folder: Annotated[
        Path, option("--out", OUTPUT, "Folder where trainings are kept: the same command goes on.")
    ] = Path("equisep-depth"),
    draw: Annotated[Path | None, option("--draw", OUTPUT, "Draw it into this file (.png, .svg, .pdf).")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train networks of several depths on your data and recommend one, or say that the evidence does not tell."""
    import torch

    from equisep.advice.depth import DepthSettings, recommend_depth
    from equisep.advice.depth.words import minimal_ncc_sentence
    from equisep.devices import usable_device
    from equisep.report.advice.depth import render_depth

    settings = DepthSettings(
        depths=_listed(depths, int, flag="--depths"), widths=_listed(widths, int, flag="--widths"),
        rates=_listed(rates, float, flag="--rates"), family=family, seeds=seeds, seed=seed, epochs=epochs, per_class=per_class,
        samples=samples or None, held_out=held_out, reading=reading, margin=margin, level=level, fit=fit, epsilon=epsilon,
    )  # fmt: skip
    usable_file(draw, flag="--draw", endings=PICTURES)
    where = usable_device(device, asked="--device")
    if data == EMBEDDED and (prepare, resize, channels, normalize) == (None, None, None, None):
        prepare = PREPARATION
    if data.endswith(".tsv"):
        raise InputError(
            f"`--data {data}` holds sentences; feed-forward networks take rows of numbers. Save features of them as .npz."
        )
    flags = DataFlags(data, data_dir=data_dir, prepare=prepare, resize=resize, channels=channels, normalize=normalize)
    store = usable_folder(folder, flag="--out")
    torch.set_num_threads(1)  # the ensemble has its own two threads
    finished: list[Trial] = []
    with progress_bars(quiet=quiet) as progress:
        train, test = _splits(load_named_data(flags, model="", progress=progress), data, quiet=quiet)
        say(_plan_words(settings), quiet=quiet)

        def tell(trial: Trial) -> None:
            finished.append(trial)
            say(_trial_words(trial, settings), quiet=quiet)

        try:
            advice = recommend_depth(
                train,
                test,
                **asdict(settings),
                device=where,
                store=store / "networks",
                progress=progress,
                finished=tell,
            )
        except KeyboardInterrupt:
            done = f"{len(finished)} of {settings.trials} trials are finished and kept in {store}"
            say(f"{done}; the same command goes on from there.", quiet=quiet)
            raise
    options = options_of(depth)
    sentences = [in_options(sentence, options) for sentence in advice.sentences]
    if min_ncc and advice.minimal_ncc is not None:
        sentences.insert(1, minimal_ncc_sentence(advice.minimal_ncc))
    content = {"answer": sentences[0], "sentences": sentences, "depth": advice.depth, **encode(advice)}
    write_whole(store / "depth.json", json_text(content, indent=1))
    if draw is not None:
        from equisep.report.advice.depth_plots import plot_depths

        plot_depths(advice, draw)
    if json:
        print_json(plain(content))
    else:
        out.print(render_depth(advice, sentences))
        say_saved(store / "depth.json", "\nall numbers", quiet=quiet)
    if draw is not None and not json:
        say_saved(draw, "the drawing", quiet=quiet)


def _splits(data: MeasuredData, name: str, *, quiet: bool) -> tuple[Split, Split | None]:
    """Training and test samples as tensors, and a remark on each."""
    from equisep.data import Batches

    if not isinstance(data.train, Batches) or not isinstance(data.test, Batches | None):
        raise InputError(
            f"`--data {name}` gives batches; depths are trained on arrays. Let it return (x, y), or save an .npz file."
        )
    say(data.words, quiet=quiet)
    for note in data.notes:
        say(str(note), quiet=quiet)
    inputs = data.train.x[0].numel()
    if inputs > MANY_INPUTS:
        say(
            f"{inputs} numbers per sample make the first layer most of the work; --resize makes images smaller.",
            quiet=quiet,
        )
    if data.test is None:
        say("There are no test data: a part of the data is held out of training (--held-out).", quiet=quiet)
    return (data.train.x, data.train.y), None if data.test is None else (data.test.x, data.test.y)


def _plan_words(settings: DepthSettings) -> str:
    return f"{settings.trials * settings.seeds} networks of family {settings.family}, {settings.epochs} epochs each."


def _trial_words(trial: Trial, settings: DepthSettings) -> str:
    """One line as a trial is finished."""
    width = f", width {trial.width}" if len(settings.widths) > 1 else ""
    rate = f", rate {trial.rate:g}" if len(settings.rates) > 1 else ""
    gone = sum(epoch is not None for epoch in trial.diverged)
    words = f"{gone} of {len(trial.diverged)} diverged" if gone else f"test {percent(trial.mean_accuracy_test)} %"
    return f"depth {trial.depth}{width}{rate}: {words}"


def _listed(text: str, kind: Callable[[str], N], *, flag: str) -> tuple[N, ...]:
    """`2,4,8` as numbers."""
    try:
        return tuple(kind(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise InputError(f"`{flag}` takes numbers parted by commas, such as 2,4,8; found `{text}`.") from None

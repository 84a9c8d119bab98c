"""`equisep peeled network`: a trained model of the user's beside what the Layer-Peeled Model predicts for it."""

from __future__ import annotations

from typing import Annotated

import typer

from equisep.cli.console import out, print_json, progress_bars, reported, say
from equisep.cli.data import preparation_of
from equisep.cli.options import (
    Channels,
    Checkpoint,
    DataFolder,
    Device,
    Json,
    Mode,
    Model,
    Normalize,
    PerClass,
    Prepare,
    Quiet,
    Reading,
    Resize,
    parse_reading,
)
from equisep.cli.peeled.inputs import numbers
from equisep.errors import InputError, NumericalError
from equisep.results import reading_named


@reported
def network(
    model: Model,
    data: Annotated[str, typer.Option("--data", help="A data set by name, or the path of an .npz file.")],
    checkpoint: Checkpoint = None,
    data_dir: DataFolder = None,
    prepare: Prepare = None,
    resize: Resize = None,
    channels: Channels = None,
    normalize: Normalize = None,
    per_class: PerClass = None,
    sizes: Annotated[
        str | None, typer.Option("--sizes", help="Draw this many samples of each class: 100,100,5,5.")
    ] = None,
    trained_sizes: Annotated[
        str | None, typer.Option("--trained-sizes", help="Class sizes it was trained on, where --data are others.")
    ] = None,
    loss_weights: Annotated[
        str | None, typer.Option("--loss-weights", help="The factors on the loss of each class it was trained with.")
    ] = None,
    minority: Annotated[
        str | None,
        typer.Option("--minority", help="Minority classes by number (those of at most half the largest size)."),
    ] = None,
    centered: Annotated[
        bool, typer.Option("--centered/--uncentered", help="Take the mean from classifiers and class means first.")
    ] = False,
    reading: Reading = None,
    mode: Mode = None,
    classifier: Annotated[str | None, typer.Option("--classifier", help="The last linear layer, by name.")] = None,
    test: Annotated[bool, typer.Option("--test/--no-test", help="Accuracy by class on the test split as well.")] = True,
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Samples a batch.")] = 100,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of the factory and the sample.")] = 0,
    device: Device = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure the classifier and class means of a network, beside the Layer-Peeled prediction with its own energies."""
    import torch

    from equisep.compare import compare_network
    from equisep.data import Batches, drawn_order, full_per_class, load_data, prepare_split
    from equisep.devices import usable_device
    from equisep.models import load_model, loading_words

    if per_class is not None and sizes is not None:
        raise InputError("`--per-class` and `--sizes` both say how many samples to draw. Give one of them.")
    drawn = _whole(sizes, flag="--sizes")
    trained, chosen = _whole(trained_sizes, flag="--trained-sizes"), _whole(minority, flag="--minority")
    factors = numbers(loss_weights, flag="--loss-weights")
    how = reading_named(parse_reading(reading, mode) or "eval")
    preparation = preparation_of(prepare, resize=resize, channels=channels, normalize=normalize)
    say(loading_words(model, checkpoint=checkpoint), quiet=quiet)
    torch.manual_seed(seed)  # a factory draws its weights from it
    made = load_model(model, checkpoint=checkpoint)
    if device is not None:
        made = made.to(usable_device(device, asked="--device"))
    with progress_bars(quiet=quiet) as progress:
        dataset = load_data(data, data_dir=data_dir, progress=progress)
        train = prepare_split(dataset, preparation, per_class=per_class, sizes=drawn, seed=seed)
        held = prepare_split(dataset, preparation, split="test") if test and len(dataset.y_test) else None
        order = drawn_order(
            dataset, per_class=per_class, sizes=drawn, seed=seed, pool_per_class=full_per_class(dataset)
        )
        found = compare_network(
            made, Batches(*train, batch_size=batch_size, drawn=order),
            None if held is None else Batches(*held, batch_size=batch_size),
            classifier=classifier, reading=how,
            sizes=trained, loss_weights=factors, minority=chosen,
            centered=centered, progress=progress,
        )  # fmt: skip
    if json:
        print_json(found.to_dict())
    else:
        from equisep.report.peeled.network import render_network

        out.print(render_network(found))
    if found.predicted is None:
        raise NumericalError(next(note.text for note in found.notes if note.code == "no-prediction"))


def _whole(text: str | None, *, flag: str) -> list[int] | None:
    values = numbers(text, flag=flag)
    if values is None:
        return None
    if any(not isinstance(value, int) for value in values):
        raise InputError(f"`{flag}` takes whole numbers with commas between them; found `{text}`.")
    return [int(value) for value in values]

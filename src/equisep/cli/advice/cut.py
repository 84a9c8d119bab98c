"""`equisep cut`: shorten a network of the user's after a layer, or say that it has no redundancy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from equisep.cli.console import (
    in_options,
    options_of,
    out,
    print_json,
    reported,
    say,
    say_saved,
    usable_file,
)
from equisep.cli.data import DataFlags, load_named_data, model_and_data, with_data_options
from equisep.cli.options import (
    DATA,
    OUTPUT,
    READ,
    Checkpoint,
    DataName,
    Device,
    Json,
    Model,
    Quiet,
    Sites,
    option,
    parse_memory,
    parse_sites,
)
from equisep.errors import DataError, ModelError
from equisep.files import encode


@reported
@with_data_options("length", "split")
def cut(
    model: Model,
    data: DataName,
    flags: DataFlags,
    checkpoint: Checkpoint = None,
    test: Annotated[str | None, option("--test", DATA, "Test data, where --data hold none: taken from there.")] = None,
    after: Annotated[
        str | None, typer.Option("--after", help="Cut after this layer; by default all are tried.", show_default="all")
    ] = None,
    head: Annotated[
        str, typer.Option("--head", help="centers (nearest class means) or linear (ridge regression).")
    ] = "centers",
    within: Annotated[
        float, typer.Option("--within", help="Points of test accuracy that a shorter network may lose.")
    ] = 1.0,
    level: Annotated[float, typer.Option("--level", help="Confidence that it loses no more.")] = 0.95,
    sites: Sites = None,
    reduction: Annotated[
        str | None,
        option("--reduction", READ, "How features become vectors: flatten, mean, first or last.", default="auto"),
    ] = None,
    classes: Annotated[int | None, option("--classes", READ, "K, where the model's output does not tell.")] = None,
    memory: Annotated[
        float | None,
        option("--memory", READ, "GiB of features to keep, and of linear heads.", default="1", min=0.0, max=2.0**20),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of the factory's weights and the sample.")
    ] = 0,
    device: Device = None,
    out_file: Annotated[
        Path | None, option("--out", OUTPUT, "Save the shorter network here (.pt2, torch.export).")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Shorten a model of yours after a layer where that costs next to nothing, or learn that there is no such layer."""
    from equisep.advice.cut import cut_model
    from equisep.report.advice.cut import render_cut

    usable_file(out_file, flag="--out", endings=(".pt2",))
    given: dict[str, Any] = {"reduction": reduction, "classes": classes, "sites": parse_sites(sites) if sites else None}
    given["memory"] = parse_memory(memory)
    named = model_and_data(model, flags, checkpoint=checkpoint, device=device, quiet=quiet)
    with named as (loaded, source, progress):
        held_out = source.test if test is None else _test_data(flags, test, model, progress)
        if held_out is None:
            raise DataError(
                f"`cut` compares accuracy on test data, and `--data {data}` holds none. Name them: `--test`."
            )
        made = cut_model(
            loaded.model, source.train, held_out, after=after, head=head, within=within, level=level, device=device,  # type: ignore[arg-type]
            progress=progress, **{name: value for name, value in given.items() if value is not None},
        )  # fmt: skip
    answer = made.answer
    options = options_of(cut)
    if json:
        print_json({"answer": in_options(answer.sentence, options), **encode(answer, nonfinite="null")})
    else:
        out.print(render_cut(answer, lambda text: in_options(text, options)))
    if out_file is None:
        return
    if answer.stopped is not None:
        raise ModelError(answer.stopped)
    if answer.asked is None and answer.chosen is None:
        say("Nothing was saved: no cut is recommended. `--after LAYER` saves one all the same.", quiet=quiet)
        return
    say_saved(made.save(out_file, after=answer.asked), "shorter network", quiet=quiet)


def _test_data(flags: DataFlags, test: str, model: str, progress: Any) -> Any:
    """The test data of another source: its test split, or all that it has where it has one split."""
    from dataclasses import replace

    source = load_named_data(replace(flags, data=test, per_class=None), model=model, progress=progress)
    return source.train if source.test is None else source.test

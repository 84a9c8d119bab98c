"""`equisep demo`: the 8-layer network of He & Su's Fig. 1, at all rates of its grid, trained side by side and shown."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from equisep.cli.console import glyphs, out, print_json, progress_bars, reported, saved, say, usable_folder
from equisep.cli.data import data_record
from equisep.cli.options import OUTPUT, Device, Json, Mode, Quiet, Seed, asked_reading
from equisep.errors import InputError, NumericalError
from equisep.files import encode
from equisep.report.findings import render_findings
from equisep.report.formatting import Glyphs, correlation, number, percent
from equisep.report.tables import plain_table
from equisep.results.readings import BY_BATCH, reading_named

if TYPE_CHECKING:
    from equisep.figures import Figure
    from equisep.progress import Progress
    from equisep.results import Profile, Reading
    from equisep.training import Ensemble, Recipe

PREPARATION = "he2023-10x10"
DATA = "embedded-10x10"
PER_CLASS = 100
DEPTH = 8
MOST_DEPTH = 1000
SMOKE_EPOCHS, SMOKE_PER_CLASS = 20, 30
WORKERS = 2  # not the number of cores: who trains with whom decides the last digits
FILES = ("profile.json", "model.pt", "law.png", "sites.png")


@dataclass(frozen=True, slots=True)
class Sample:
    """Which training samples are drawn."""

    per_class: int
    seed: int


@reported
def demo(
    depth: Annotated[int, typer.Option("--depth", help="Linear layers, the classifier included.")] = DEPTH,
    rate: Annotated[
        float | None, typer.Option("--rate", help="Adam's rate; if absent, the paper's five are tried.")
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", help="As in the paper.")] = 600,
    reading: Annotated[
        str | None,
        typer.Option(
            "--reading",
            help="How BatchNorm reads: mixed (class-mixed batches), drawn (in the order drawn, as the paper's figures) or eval.",
            show_default="mixed",
        ),
    ] = None,
    mode: Mode = None,
    seed: Seed = 0,
    data_seed: Annotated[
        int | None,
        typer.Option("--data-seed", min=0, max=2**32 - 1, help="Seed that draws the samples; --seed if absent."),
    ] = None,
    device: Device = None,
    folder: Annotated[
        Path, typer.Option("--out", help="Folder for profile, plots and weights.", rich_help_panel=OUTPUT)
    ] = Path("equisep-demo"),
    force: Annotated[
        bool, typer.Option("--force", help="Write over an earlier demo in that folder.", rich_help_panel=OUTPUT)
    ] = False,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="A few seconds, on few samples and epochs: not for publication.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train the 8-layer network of Fig. 1 on the embedded data, measure it, and show the law of equi-separation."""
    from equisep.devices import usable_device
    from equisep.figures.papers.he2023 import FIG1, RATES
    from equisep.training import Recipe

    how = reading_named(asked_reading(reading, mode) or "mixed")
    recipe = Recipe(epochs=epochs, seed=seed)  # what cannot be trained is refused, also where --smoke asks for less
    recipes = [replace(recipe, rate=each) for each in (RATES["adam"] if rate is None else (rate,))]
    if smoke:
        recipes = [replace(each, epochs=SMOKE_EPOCHS) for each in recipes]
    if depth > MOST_DEPTH:
        raise InputError(f"`--depth` takes 1 to {MOST_DEPTH} layers; found {depth}.")
    sample = Sample(per_class=SMOKE_PER_CLASS if smoke else PER_CLASS, seed=seed if data_seed is None else data_seed)
    where = usable_device(device, asked="--device")
    _refuse_overwriting(usable_folder(folder, flag="--out"), force=force)
    with progress_bars(quiet=quiet) as progress:
        say(f"Fashion-MNIST at 10×10, {sample.per_class} samples per class.", quiet=quiet)
        rates = ", ".join(f"{each.rate:g}" for each in recipes)
        together = " side by side" if len(recipes) > 1 else ""
        say(f"FNN of {depth} layers, Adam at {rates}{together}, {recipes[0].epochs} epochs.", quiet=quiet)
        profile = _trained_and_measured(depth, recipes, sample, how, where, folder, progress)
    _draw(profile, folder)
    if json:
        print_json(profile.to_dict())
        return
    out.print(render_findings(profile.findings), "", profile, sep="\n")
    if len(recipes) > 1:
        out.print(
            "\nAll rates tried; shown above: the straightest line, as in the paper", style="bold", highlight=False
        )
        out.print(_rate_table(profile, glyphs()))
    if not smoke and recipe.epochs == Recipe().epochs and how in BY_BATCH:
        out.print(f"\nBeside He & Su 2023 (Adam, {depth} layers)", style="bold", highlight=False)
        out.print(_beside_the_paper(profile, FIG1, f"adam-{depth}", glyphs()))
        if how != "drawn":
            say("The paper's numbers were read as drawn: --reading drawn.", quiet=quiet)
    _what_next(folder, depth, sample.per_class, quiet=quiet)


def _refuse_overwriting(folder: Path, *, force: bool) -> None:
    """A demo takes a minute, and its folder may hold what someone still wants."""
    there = [name for name in FILES if (folder / name).exists()]
    if there and not force:
        raise InputError(
            f"`--out {folder}` holds an earlier demo ({', '.join(there)}). Add --force to write over it, or name another folder."
        )


def _trained_and_measured(
    depth: int, recipes: list[Recipe], sample: Sample, reading: Reading, device: Any, folder: Path, progress: Progress
) -> Profile:
    """Train one network per rate, all at once, and measure the one that the paper's rule chooses."""
    import torch

    from equisep.data import PREPARATIONS, Batches, drawn_order, full_per_class, load_data, prepare_split
    from equisep.measuring import measure
    from equisep.training import Member, Shape, Watch, train_ensemble

    torch.set_num_threads(1)  # beside WORKERS no more are needed, and the numbers are the same on any number of cores
    dataset, preparation = load_data(DATA), PREPARATIONS[PREPARATION]
    x, y = prepare_split(dataset, preparation, per_class=sample.per_class, seed=sample.seed)
    test = prepare_split(dataset, preparation, split="test")
    order = drawn_order(dataset, per_class=sample.per_class, seed=sample.seed, pool_per_class=full_per_class(dataset))
    shape = Shape.deep(depth, inputs=x[0].numel(), classes=dataset.classes)
    ensemble = train_ensemble(
        [Member(recipe, shape, data_seed=sample.seed) for recipe in recipes],
        x,
        y,
        test=test,
        drawn=[order] * len(recipes),
        watch=Watch(readings=reading),
        device=device,
        workers=WORKERS,
        progress=progress,
    )
    tried = _tried(ensemble)
    chosen = _chosen(tried)
    network = ensemble.network(chosen)
    torch.save(network.state_dict(), folder / "model.pt")  # before measuring: nothing trained is lost on an error
    train_batches = Batches(x, y, class_names=dataset.class_names, drawn=order)
    profile = measure(
        network.to(device),
        train_batches,
        Batches(*test, drawn=drawn_order(dataset, split="test")),
        reading=reading,
        seed=recipes[chosen].seed,
        name=f"Fnn-{depth}",
        progress=progress,
    )
    record: dict[str, Any] = {
        "data": data_record(dataset, preparation, split="train", batch_size=train_batches.batch_size, **asdict(sample)),
        "training": {
            **asdict(recipes[chosen]),
            "final_loss": tried[chosen]["final_loss"],
            "rates_tried": tried,
            "rate_chosen_by": "most negative r after the last epoch" if len(tried) > 1 else "given",
        },
    }
    profile = replace(profile, settings={**profile.settings, **encode(record)})
    profile.save(folder / "profile.json")
    return profile


def _tried(ensemble: Ensemble) -> list[dict[str, Any]]:
    """What became of every rate; a rate that diverged has no law."""
    from equisep.law import fit_law

    reading = ensemble.reading()
    rows: list[dict[str, Any]] = []
    for index, (member, diverged) in enumerate(zip(ensemble.members, ensemble.diverged, strict=True)):
        row: dict[str, Any] = {"rate": member.recipe.rate, "diverged_at": diverged, "r": None, "rho": None}
        row |= {"final_fuzziness": None, "accuracy_test": None, "final_loss": None}
        curve = ensemble.curve(index)
        if diverged is None and all(math.isfinite(value) for value in curve):
            law = fit_law(curve)
            assert reading.accuracy_test is not None
            row |= {"r": law.r, "rho": law.rho, "final_fuzziness": curve[-1]}
            row |= {"accuracy_test": float(reading.accuracy_test[index])}
            row |= {"final_loss": float(ensemble.loss[index, -1]) if ensemble.loss.shape[1] else None}
        rows.append(row)
    return rows


def _chosen(tried: list[dict[str, Any]]) -> int:
    """He & Su's rule: the rate whose r is most negative after the last epoch."""
    lawful = [index for index, row in enumerate(tried) if row["r"] is not None]
    if lawful:
        return min(lawful, key=lambda index: float(tried[index]["r"]))
    whole = [index for index, row in enumerate(tried) if row["diverged_at"] is None]
    if whole:  # too few sites for an r
        return whole[-1]
    rates = ", ".join(f"{row['rate']:g}" for row in tried)
    raise NumericalError(
        f"Training with adam at rate {rates} diverged: the loss of epoch {tried[0]['diverged_at']} is not finite. "
        "Lower the rate."
    )


def _rate_table(profile: Profile, glyphs: Glyphs) -> Table:
    """What became of every rate."""
    training, missing = profile.settings["training"], glyphs.missing
    rows = []
    for row in training["rates_tried"]:
        if row["diverged_at"] is not None:
            rows.append([f"{row['rate']:g}", "diverged", *[""] * 4])
            continue
        numbers = [number(row[name], 3, missing=missing) for name in ("rho", "final_fuzziness")]
        accuracy = percent(row["accuracy_test"], missing=missing)
        shown = "shown" if row["rate"] == training["rate"] else ""
        rows.append([f"{row['rate']:g}", correlation(row["r"], missing=missing), *numbers, accuracy, shown])
    return plain_table(("rate", "r", glyphs.rho, "last D", "test %", ""), rows, glyphs, left=("",))


def _draw(profile: Profile, folder: Path) -> None:
    from equisep.report.plots import plot_law, save_figure
    from equisep.report.site_plots import plot_sites

    save_figure(plot_law(profile), folder / "law.png")
    save_figure(plot_sites(profile), folder / "sites.png")


def _beside_the_paper(profile: Profile, figure: Figure, series: str, glyphs: Glyphs) -> Table:
    """What was measured beside what the paper and the authors' slides print for the same network."""
    printed = {entry.quantity: entry for entry in figure.printed if entry.series == series}
    rows = []
    for label, name in (("r", "r"), (glyphs.rho, "rho"), ("half-life", "half_life")):
        ours, theirs = getattr(profile.law, name), printed.get(name)
        here = correlation(ours, missing=glyphs.missing) if name == "r" else number(ours, 3, missing=glyphs.missing)
        words = ("not printed", "") if theirs is None else (_as_printed(theirs.value, name), theirs.place)
        rows.append([label, here, *words])
    return plain_table(("", "here", "paper", "where"), rows, glyphs, left=("", "where"))


def _as_printed(value: float, name: str) -> str:
    """The paper prints r to three places."""
    return f"{value:.3f}" if name == "r" else f"{value:g}"


def _what_next(folder: Path, depth: int, per_class: int, *, quiet: bool) -> None:
    saved(folder / "law.png", "the picture", quiet=quiet)
    saved(folder / "sites.png", "the classes, layer by layer", quiet=quiet)
    saved(folder / "profile.json", "all numbers", quiet=quiet)
    other, words = (
        (20, "a deeper one, whose layers do less each") if depth < 15 else (8, "one whose layers do more each")
    )
    say(f"\nNext, try {words}, and your own:", quiet=quiet)
    lines = [
        f"equisep demo --depth {other} --out equisep-demo-{other}",
        f"equisep compare {folder}/profile.json equisep-demo-{other}/profile.json",
    ]
    if depth == DEPTH:  # the factory's own depth
        lines += [
            "equisep measure --model equisep.models:Fnn \\",
            f"    --checkpoint {folder}/model.pt \\",
            f"    --data {DATA} --prepare {PREPARATION} --per-class {per_class}",
        ]
    for line in (*lines, "equisep measure --help"):
        say(f"  {line}", quiet=quiet)

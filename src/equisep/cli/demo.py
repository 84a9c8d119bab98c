"""`equisep demo`: the 8-layer network of He & Su's Fig. 1, at all rates of its grid, trained side by side and shown."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.table import Table

from equisep.cli.console import out, print_json, progress_bars, reported, saved, say, usable_folder
from equisep.cli.options import Device, Json, Quiet, Seed
from equisep.cli.record import data_record
from equisep.errors import NumericalError
from equisep.files import encode
from equisep.results import former_reading, reading_named

if TYPE_CHECKING:
    from equisep.progress import Progress
    from equisep.results import Profile, Reading
    from equisep.training import Ensemble, Recipe

PREPARATION = "he2023-10x10"
DATA = "embedded-10x10"
PER_CLASS = 100
DEPTH = 8
SMOKE_EPOCHS, SMOKE_PER_CLASS = 20, 30
WORKERS = 2  # not the number of cores: who trains with whom decides the last digits
RATES = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)  # Adam's in He & Su 2023; shown is the one with the most negative r

# depth → what the paper and the authors' slides print for Adam on Fashion-MNIST (He & Su 2023, Fig. 1; Su's slides 2024)
PRINTED: dict[int, dict[str, float]] = {
    4: {"r": -1.000},
    8: {"r": -0.997, "rho": 0.53, "half_life": 1.1},
    20: {"r": -0.999, "rho": 0.818, "half_life": 3.45},
}


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
    mode: Annotated[str, typer.Option("--mode", help="batch, as the paper's figures were read, or eval.")] = "batch",
    seed: Seed = 0,
    data_seed: Annotated[
        int | None,
        typer.Option("--data-seed", min=0, max=2**32 - 1, help="Seed that draws the samples; --seed if absent."),
    ] = None,
    device: Device = None,
    folder: Annotated[Path, typer.Option("--out", help="Folder for profile, plots and weights.")] = Path(
        "equisep-demo"
    ),
    smoke: Annotated[
        bool, typer.Option("--smoke", help="A few seconds, on few samples and epochs: nothing to quote.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train the 8-layer network of Fig. 1 on the embedded data, measure it, and show the law of equi-separation."""
    from equisep.devices import usable_device
    from equisep.measuring import Options
    from equisep.training import Recipe

    Options(
        reading=reading_named("eval", mode=mode), seed=seed
    )  # refuse what cannot be measured before training for it
    recipe = Recipe(epochs=SMOKE_EPOCHS if smoke else epochs, seed=seed)
    recipes = [replace(recipe, rate=each) for each in (RATES if rate is None else (rate,))]
    sample = Sample(per_class=SMOKE_PER_CLASS if smoke else PER_CLASS, seed=seed if data_seed is None else data_seed)
    place = usable_device(device, asked="--device")
    usable_folder(folder, flag="--out")
    with progress_bars(quiet=quiet) as progress:
        say(f"Fashion-MNIST at 10×10, {sample.per_class} samples a class.", quiet=quiet)
        rates = ", ".join(f"{each.rate:g}" for each in recipes)
        together = " side by side" if len(recipes) > 1 else ""
        say(f"FNN of {depth} layers, Adam at {rates}{together}, {recipe.epochs} epochs.", quiet=quiet)
        profile = _trained_and_measured(depth, recipes, sample, mode, place, folder, progress)
    _draw(profile, folder)
    if json:
        print_json(profile.to_dict())
        return
    out.print(profile)
    if len(recipes) > 1:
        out.print("\nAll rates tried; shown above is the one with the most negative r", style="bold", highlight=False)
        out.print(_rate_table(profile))
    if not smoke and recipe.epochs == Recipe().epochs and mode == "batch":  # as the printed numbers were read
        out.print(f"\nBeside He & Su 2023 (Fig. 1 and slides: Adam, {depth} layers)", style="bold", highlight=False)
        out.print(_beside_the_paper(profile, depth))
    _what_next(folder, depth, sample.per_class, quiet=quiet)


def _trained_and_measured(
    depth: int, recipes: list[Recipe], sample: Sample, mode: str, place: Any, folder: Path, progress: Progress
) -> Profile:
    """Train one network a rate, all at once, and measure the one that the paper's rule chooses."""
    import torch

    from equisep.data import PREPARATIONS, Batches, load_data, prepare_split
    from equisep.measuring import measure
    from equisep.training import Member, Shape, Watch, train_ensemble

    torch.set_num_threads(1)  # beside WORKERS no more are needed, and the numbers are the same on any number of cores
    dataset, preparation = load_data(DATA), PREPARATIONS[PREPARATION]
    x, y = prepare_split(dataset, preparation, per_class=sample.per_class, seed=sample.seed)
    test = prepare_split(dataset, preparation, split="test")
    shape = Shape.deep(depth, inputs=x[0].numel(), classes=dataset.classes)
    ensemble = train_ensemble(
        [Member(recipe, shape, data_seed=sample.seed) for recipe in recipes], x, y, test=test,
        watch=Watch(reading=cast("Reading", former_reading(mode))), device=place, workers=WORKERS, progress=progress,
    )  # fmt: skip
    tried = _tried(ensemble)
    chosen = _chosen(tried)
    network = ensemble.network(chosen)
    torch.save(network.state_dict(), folder / "model.pt")  # before measuring: nothing trained is lost on an error
    train_batches = Batches(x, y)
    profile = measure(
        network.to(place), train_batches, Batches(*test), reading=reading_named("eval", mode=mode), seed=recipes[chosen].seed,
        name=f"Fnn-{depth}", progress=progress,
    )  # fmt: skip
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
    found: list[dict[str, Any]] = []
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
        found.append(row)
    return found


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


def _rate_table(profile: Profile) -> Table:
    training = profile.settings["training"]
    table = Table("rate", "r", "decay ρ", "last D", "test accuracy", "", box=None)
    for row in training["rates_tried"]:
        if row["diverged_at"] is not None:
            table.add_row(f"{row['rate']:g}", "diverged", *[""] * 4)
            continue
        r, rho, last = (row[name] for name in ("r", "rho", "final_fuzziness"))
        table.add_row(
            f"{row['rate']:g}",
            "—" if r is None else f"{r:.4f}",
            "—" if rho is None else f"{rho:.3f}",
            "—" if last is None else f"{last:.3g}",
            "—" if row["accuracy_test"] is None else f"{100 * row['accuracy_test']:.1f} %",
            "← shown" if row["rate"] == training["rate"] else "",
        )
    return table


def _draw(profile: Profile, folder: Path) -> None:
    from equisep.report.plots import plot_law, save_figure
    from equisep.report.site_plots import plot_sites

    save_figure(plot_law(profile), folder / "law.png")
    save_figure(plot_sites(profile), folder / "sites.png")


def _beside_the_paper(profile: Profile, depth: int) -> Table:
    law, printed = profile.law, PRINTED.get(depth, {})
    table = Table("", "here", "printed", box=None)
    for label, name, digits in (("r", "r", 4), ("decay ρ", "rho", 3), ("half-life", "half_life", 2)):
        ours, theirs = getattr(law, name), printed.get(name)
        table.add_row(
            label,
            "—" if ours is None else f"{ours:.{digits}f}",
            "not printed" if theirs is None else f"{theirs:.3f}".rstrip("0") if name != "r" else f"{theirs:.3f}",
        )
    return table


def _what_next(folder: Path, depth: int, per_class: int, *, quiet: bool) -> None:
    saved(folder / "law.png", "the picture", quiet=quiet)
    saved(folder / "sites.png", "the classes, site by site", quiet=quiet)
    saved(folder / "profile.json", "all numbers", quiet=quiet)
    other, words = (
        (20, "a deeper network separates less a layer") if depth < 15 else (8, "a shallower one, more a layer")
    )
    say(f"\nTry next ({words}):", quiet=quiet)
    lines = [
        f"equisep demo --depth {other} --out equisep-demo-{other}",
        f"equisep compare {folder}/profile.json equisep-demo-{other}/profile.json",
    ]
    if depth == DEPTH:  # the factory's own depth
        lines += [
            f"equisep measure --model equisep.models:Fnn --checkpoint {folder}/model.pt \\",
            f"    --data {DATA} --prepare {PREPARATION} --per-class {per_class}",
        ]
    for line in (*lines, "equisep measure --help"):
        say(f"  {line}", quiet=quiet)

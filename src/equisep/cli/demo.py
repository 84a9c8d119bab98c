"""`equisep demo`: the 8-layer network of He & Su's Fig. 1, at all rates of its grid, trained side by side, on one screen."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from equisep.cli.console import command_record, glyphs, out, print_json, progress_bars, reported, say, usable_folder
from equisep.cli.data import DataFlags, data_record
from equisep.cli.options import DATA as DATA_PANEL
from equisep.cli.options import MODEL, OUTPUT, READ, Device, Json, Mode, Quiet, Seed, option, parse_reading
from equisep.errors import InputError, NumericalError
from equisep.files import encode
from equisep.report.formatting import Glyphs, ascii_text, correlation, duration, number, percent
from equisep.report.overview import render_overview
from equisep.report.tables import PlainTable, plain_table
from equisep.report.terminal import render_findings
from equisep.results.readings import reading_named

if TYPE_CHECKING:
    from equisep.figures.figure import Printed
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
PAPER: Reading = "drawn"  # how the paper's public program reads (docs/readings.md)
FILES = ("report.html", "law.png", "sites.png", "profile.json", "model.pt")


@dataclass(frozen=True, slots=True)
class Sample:
    """Which training samples are drawn."""

    per_class: int
    seed: int


@reported
def demo(
    depth: Annotated[int, option("--depth", MODEL, "Linear layers, the classifier included.")] = DEPTH,
    optimizer: Annotated[str, option("--optimizer", MODEL, "adam, sgd or momentum, as in the paper.")] = "adam",
    rate: Annotated[float | None, option("--rate", MODEL, "Learning rate.", default="all that the paper tries")] = None,
    epochs: Annotated[int, option("--epochs", MODEL, "The default is the paper's.")] = 600,
    smoke: Annotated[
        bool, option("--smoke", MODEL, "A trial run of a few seconds, on few samples: not for publication.")
    ] = False,
    seed: Seed = 0,
    device: Device = None,
    data_seed: Annotated[
        int | None,
        option("--data-seed", DATA_PANEL, "Seed that draws the samples.", default="--seed", min=0, max=2**32 - 1),
    ] = None,
    reading: Annotated[
        str | None,
        option(
            "--reading",
            READ,
            "How BatchNorm reads: eval (running statistics), mixed (those of class-mixed batches) or drawn (those of "
            "batches in the order drawn, as the paper's program).",
            default="eval",
        ),
    ] = None,
    mode: Mode = None,
    everything: Annotated[bool, option("--all", OUTPUT, "Print every sentence and number, not one screen.")] = False,
    folder: Annotated[Path, option("--out", OUTPUT, "Folder for profile, plots and weights.")] = Path("equisep-demo"),
    force: Annotated[bool, option("--force", OUTPUT, "Write over an earlier demo in that folder.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train the network of the paper's Fig. 1 on the embedded data, measure it, and say on one screen what was found."""
    from equisep.devices import usable_device
    from equisep.figures.papers.he2023 import OPTIMIZERS, RATES
    from equisep.training import Recipe

    how = reading_named(parse_reading(reading, mode) or "eval")
    # what cannot be trained is refused, also where --smoke asks for less
    recipe = Recipe(epochs=epochs, seed=seed, optimizer=optimizer)
    recipe.check_side_by_side()
    recipes = [replace(recipe, rate=each) for each in (RATES[optimizer] if rate is None else (rate,))]
    if smoke:
        recipes = [replace(each, epochs=SMOKE_EPOCHS) for each in recipes]
    if depth > MOST_DEPTH:
        raise InputError(f"`--depth` takes 1 to {MOST_DEPTH} layers; found {depth}.")
    sample = Sample(per_class=SMOKE_PER_CLASS if smoke else PER_CLASS, seed=seed if data_seed is None else data_seed)
    where = usable_device(device, asked="--device")
    _refuse_overwriting(usable_folder(folder, flag="--out"), force=force)
    began = time.monotonic()
    with progress_bars(quiet=quiet) as progress:
        rates = f"{len(recipes)} learning rates side by side" if len(recipes) > 1 else f"learning rate {rate:g}"
        say(f"Training {depth} layers on Fashion-MNIST, {rates}.", quiet=quiet)
        profile = _trained_and_measured(depth, recipes, sample, how, where, folder, progress)
    _draw(profile, folder)
    if json:
        print_json(profile.to_dict())
        return
    images = f"{sum(profile.counts):,} Fashion-MNIST images (10×10)"
    trained = f"{OPTIMIZERS[optimizer]}, {recipes[0].epochs} epochs, {duration(time.monotonic() - began)}"
    lead = [f"{depth} layer{'s' if depth > 1 else ''}, {images}, {trained}.", _choice_words(profile)]
    if everything:
        out.print(ascii_text("\n".join(lead), glyphs()), style="dim", highlight=False)
        out.print(render_findings(profile.findings), "", profile, sep="\n")
        if len(recipes) > 1:
            out.print("\nAll rates tried", style="bold", highlight=False)
            out.print(_rate_table(profile, glyphs()))
    else:
        out.print(render_overview(profile, lead=lead, more=f"equisep explain {folder}/profile.json"))
    if not smoke and epochs == Recipe().epochs:
        for line in _paper_words(profile, f"{optimizer}-{depth}"):
            out.print(ascii_text(line, glyphs()), style="dim", highlight=False, markup=False)
    _what_next(folder, depth, quiet=quiet)


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
    readings = tuple(dict.fromkeys((reading, PAPER)))
    shape = Shape.deep(depth, inputs=x[0].numel(), classes=dataset.classes)
    ensemble = train_ensemble(
        [Member(recipe, shape, data_seed=sample.seed) for recipe in recipes],
        x,
        y,
        test=test,
        drawn=[order] * len(recipes),
        watch=Watch(readings=readings),
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
        readings=readings,
        seed=recipes[chosen].seed,
        name=f"Fnn-{depth}",
        progress=progress,
    )
    flags = DataFlags(DATA, prepare=PREPARATION, **asdict(sample))
    batch_size = train_batches.batch_size
    record: dict[str, Any] = {
        "data": {
            **data_record(dataset, preparation, split="train", batch_size=batch_size, **asdict(sample)),
            **flags.asked(),
        },
        "model": f"fnn,depth={depth}",
        "checkpoint": str(folder / "model.pt"),
        "training": {
            **asdict(recipes[chosen]),
            "final_loss": tried[chosen]["final_loss"],
            "rates_tried": tried,
            "rate_chosen_by": "most negative r after the last epoch" if len(tried) > 1 else "given",
        },
    }
    made_by = {**profile.provenance, **command_record()}
    profile = replace(profile, settings={**profile.settings, **encode(record)}, provenance=made_by)
    profile.save(folder / "profile.json")
    return profile


def _tried(ensemble: Ensemble) -> list[dict[str, Any]]:
    """What became of every rate, in the reading shown and in the paper's; a rate that diverged has no law."""
    from equisep.law import fit_law

    reading = ensemble.reading()
    rows: list[dict[str, Any]] = []
    for index, (member, diverged) in enumerate(zip(ensemble.members, ensemble.diverged, strict=True)):
        row: dict[str, Any] = {"rate": member.recipe.rate, "diverged_at": diverged, "r": None, "rho": None}
        row |= {"final_fuzziness": None, "accuracy_test": None, "final_loss": None, "as_the_paper": None}
        curve, printed = ensemble.curve(index), ensemble.curve(index, reading=PAPER)
        if diverged is None and all(math.isfinite(value) for value in (*curve, *printed)):
            law, theirs = fit_law(curve), fit_law(printed)
            assert reading.accuracy_test is not None
            row |= {"r": law.r, "rho": law.rho, "final_fuzziness": curve[-1]}
            row |= {"as_the_paper": {"r": theirs.r, "rho": theirs.rho, "half_life": theirs.half_life}}
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
        f"Training at rate {rates} diverged: the loss of epoch {tried[0]['diverged_at']} is not finite. Lower the rate."
    )


def _choice_words(profile: Profile) -> str:
    """Which rate is shown, why, and what the others came to: of several straight lines the straightest is no surprise."""
    training = profile.settings["training"]
    tried, rate = training["rates_tried"], f"{training['rate']:g}"
    if len(tried) == 1:
        return f"Learning rate {rate}."
    others = sorted(row["r"] for row in tried if row["rate"] != training["rate"] and row["r"] is not None)
    diverged = sum(row["diverged_at"] is not None for row in tried)
    gone = [f"{diverged} diverged"] if diverged else []
    if not others:
        return f"Shown: learning rate {rate}, one of {len(tried)}{''.join(f'; {words}' for words in gone)}."
    span = correlation(others[0]) if len(others) == 1 else f"{correlation(others[0])} to {correlation(others[-1])}"
    beside = "; ".join([f"r of the others {span}", *gone])
    return f"Shown: rate {rate}, the straightest of {len(tried)} ({beside})."


def _rate_table(profile: Profile, glyphs: Glyphs) -> PlainTable:
    """What became of every rate."""
    training, missing = profile.settings["training"], glyphs.missing
    rows: list[list[str]] = []
    for row in training["rates_tried"]:
        if row["diverged_at"] is not None:
            rows.append([f"{row['rate']:g}", "diverged", *[""] * 6])
            continue
        numbers = [number(row[name], 3, missing=missing) for name in ("rho", "final_fuzziness")]
        accuracy = percent(row["accuracy_test"], missing=missing)
        shown = "shown" if row["rate"] == training["rate"] else ""
        theirs = row["as_the_paper"]
        printed = [correlation(theirs["r"], missing=missing), number(theirs["rho"], 3, missing=missing)]
        rows.append([f"{row['rate']:g}", correlation(row["r"], missing=missing), *numbers, accuracy, *printed, shown])
    titles = ("rate", "r", glyphs.rho, "last D", "test %", f"r\n{PAPER}", f"{glyphs.rho}\n{PAPER}", "")
    return plain_table(titles, rows, glyphs, left=("",))


_PRINTED = {"r": "r", "rho": "ρ", "half_life": "half-life"}


def _paper_words(profile: Profile, series: str) -> list[str]:
    """What the paper (or its authors' slides) print for this network, and ours, read and chosen as there."""
    from equisep.figures.papers.he2023 import FIG1

    printed = [entry for entry in FIG1.printed if entry.series == series and entry.quantity in _PRINTED]
    tried = [row for row in profile.settings["training"]["rates_tried"] if row["as_the_paper"] is not None]
    if not printed or not tried:
        return []
    best = min(tried, key=lambda row: math.inf if row["as_the_paper"]["r"] is None else row["as_the_paper"]["r"])
    ours = best["as_the_paper"]
    values = [f"r {correlation(ours['r'])}", f"ρ {number(ours['rho'], 3)}", f"half-life {number(ours['half_life'], 3)}"]
    how = f"`{PAPER}`, rate {best['rate']:g}" if len(tried) > 1 else f"`{PAPER}`"
    return [f"Paper  {_printed(printed)}", f"Here   {', '.join(values)} (as there: {how})"]


def _printed(entries: list[Printed]) -> str:
    """`r -0.997 (Fig. 1); ρ 0.53, half-life 1.1 (slides)`; the paper prints r to three places."""
    by_source: dict[str, list[str]] = {}
    for entry in entries:
        value = f"{entry.value:.3f}" if entry.quantity == "r" else f"{entry.value:g}"
        by_source.setdefault(entry.place, []).append(f"{_PRINTED[entry.quantity]} {value}")
    return "; ".join(f"{', '.join(words)} ({source})" for source, words in by_source.items())


def _draw(profile: Profile, folder: Path) -> None:
    from equisep.report.plots import plot_law, save_figure
    from equisep.report.site_plots import plot_sites

    save_figure(plot_law(profile), folder / "law.png")
    save_figure(plot_sites(profile), folder / "sites.png")
    profile.report(folder / "report.html")


def _what_next(folder: Path, depth: int, *, quiet: bool) -> None:
    other = 20 if depth < 15 else DEPTH
    say(f"Files  {folder}/: {', '.join(FILES)}", quiet=quiet)
    commands = {
        "now your own model": "equisep measure --model ./mine.py:net --data mine.npz",
        "another depth": f"equisep demo --depth {other} --out equisep-demo-{other}",
        "every number": f"equisep explain {folder}/profile.json --all",
    }
    width = max(map(len, commands.values()))
    for count, (what, command) in enumerate(commands.items()):
        say(f"{'' if count else 'Next':<7}{command:<{width}}  {what}", quiet=quiet)

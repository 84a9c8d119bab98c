"""Which layer's features serve my labels: a closed-form probe, nearest centers and few shots at every layer, from one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from equisep.advice.layer.reading import SplitRows, split_rows
from equisep.advice.layer.records import FewShot, LayerAdvice, LayerReading
from equisep.advice.paired_hits import PairedHits, share_interval, significant_by_holm
from equisep.data.feed import Feed, Unpack
from equisep.errors import DataError, InputError
from equisep.labels import check_two_classes
from equisep.measuring.forward import exact_arithmetic
from equisep.measuring.measure import home_of, plan_for
from equisep.measuring.notes import Notes
from equisep.measuring.plan import Plan
from equisep.measuring.request import MEMORY, Options
from equisep.progress import Progress, Watched, callback, silent, watched
from equisep.results import Note, Reading
from equisep.separation.nearest import nearest_points
from equisep.separation.probes import (
    ProbeRows,
    few_shot_certificate,
    few_shot_errors,
    left_out_scores,
    probe_rows,
    ridge_probe,
)
from equisep.separation.probes.axes import MOST_AXES
from equisep.shapes import Bool, Int
from equisep.taps import (
    GRAINS,
    Calls,
    Reduction,
    ReductionLike,
    Sites,
    choose,
    inner,
    random_state_kept,
    refuse_scripted,
    refuse_uninitialized,
    site_record,
)

Look = Callable[[str, ProbeRows], None]
SHOTS = (1, 5, 10, 50, 100)  # samples per class
DRAWS = 20
MOST_LABELS = 2**20  # labels are the user's own: the width of the model's output says nothing of them
HELD_OUT = 5  # of the samples of each class every fifth is held out where no test data are given


@dataclass(frozen=True, slots=True)
class ReadModel:
    """The advice for one model, and which test samples its chosen layer names rightly."""

    advice: LayerAdvice
    hits: Bool[Tensor, " t"]
    labels: Int[Tensor, " t"]


@watched
def choose_layer(
    model: nn.Module,
    train: Any,
    test: Any = None,
    *,
    sites: Sites = "auto",
    calls: Calls = "each",
    reduction: ReductionLike = "auto",
    reading: Reading = "eval",
    shots: Sequence[int] = SHOTS,
    draws: int = DRAWS,
    memory: int | None = None,
    seed: int = 0,
    unpack: Unpack | None = None,
    name: str | None = None,
    progress: Watched = None,
) -> LayerAdvice:
    """Which layer's features serve these labels best, and how many samples per class do.

    The labels need not be those that the model was trained for. A layer is chosen on the training data alone, by the
    leave-one-out accuracy of a ridge probe (`equisep.separation.probes`); all other numbers are of the test data, or of every
    fifth training sample of each class, held out, where no test data are given. Data, `sites`, `calls`, `reduction`
    and `reading` are those of `equisep.measure`; a sample needs one row per site.
    shots, draws   samples per class of nearest centers, and how often they are drawn
    memory         bytes of features to keep (1 GiB); beyond it the data are read in rounds, some layers each

    >>> import torch, equisep
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> _ = torch.manual_seed(0)
    >>> model = equisep.Fnn(depth=4, width=16, inputs=8, classes=3)
    >>> train, test = (x[:60], y[:60]), (x[60:], y[60:])
    >>> from equisep.advice.layer import choose_layer
    >>> advice = choose_layer(model, train, test, shots=(1, 5), draws=5)
    >>> [layer.site for layer in advice.layers]
    ['input', 'blocks.0', 'blocks.1', 'blocks.2']
    >>> advice.sentence.endswith(".")
    True
    """
    progress = callback(progress)
    return read_model(
        model, train, test, sites=sites, calls=calls, reduction=reduction, reading=reading, shots=shots, draws=draws,
        memory=memory, seed=seed, unpack=unpack, name=name, progress=progress,
    ).advice  # fmt: skip


def read_model(
    model: nn.Module,
    train: Any,
    test: Any,
    *,
    sites: Sites = "auto",
    calls: Calls = "each",
    reduction: ReductionLike = "auto",
    reading: Reading = "eval",
    shots: Sequence[int] = SHOTS,
    draws: int = DRAWS,
    memory: int | None = None,
    seed: int = 0,
    unpack: Unpack | None = None,
    name: str | None = None,
    look: Look | None = None,
    progress: Progress = silent,
) -> ReadModel:
    """`choose_layer`, with what a comparison of models needs beside; `look(site, rows)` is given the rows of every layer."""
    if not isinstance(model, nn.Module):
        raise InputError(f"`layer` needs a torch.nn.Module; found {type(model).__name__}.")
    refuse_scripted(model, asked="layer")
    refuse_uninitialized(model, asked="layer")
    how = _reduction(reduction)
    wanted = _checked_shots(shots, draws)
    if not (isinstance(sites, str) and sites in GRAINS):
        choose(model, sites)
    options = Options(
        sites=site_record(sites), calls=calls, reduction="auto" if how is None else how.name, reading=reading,
        metrics=(), classes=MOST_LABELS, memory=MEMORY if memory is None else memory, seed=seed,
    )  # fmt: skip
    notes = Notes()
    with random_state_kept(train, test):
        where, dtype = home_of(model)
        feeds = [
            Feed(data, what=what, device=where, dtype=dtype, unpack=unpack, reading=reading)
            for data, what in ((train, "training"), (test, "test"))
            if data is not None or what == "training"
        ]
        plan = plan_for(model, feeds[0], feeds[1] if len(feeds) > 1 else None, sites, how, options, notes)
        results = _results(plan, feeds, wanted, draws, look=look, notes=notes, progress=progress)
    notes.extend(note for feed in feeds for note in feed.notes.values())
    if plan.probe.reason:
        other = next(grain for grain in plan.probe.grains if grain != plan.probe.grain)
        text = f"The {plan.probe.grain} are probed, since {plan.probe.reason}; `sites='{other}'` probes the {other}."
        notes = Notes((Note("grain", text), *(note for note in notes.ranked() if note.code != "grain")))
    return _chosen(
        name or type(inner(model)).__name__,
        results,
        held_out="test samples" if test is not None else "held-out training samples",
        draws=draws,
        notes=notes,
    )


def _reduction(asked: ReductionLike) -> Reduction | None:
    if isinstance(asked, str) and asked == "auto":
        return None
    how = Reduction.of(asked)
    if how.spreads or how.components is not None:
        raise InputError(
            f"`layer` needs one row of features per sample, as they are; `{how.name}` gives others. Use `mean`."
        )
    return how


def _checked_shots(shots: Sequence[int], draws: int) -> tuple[int, ...]:
    wanted = tuple(sorted({int(m) for m in shots}))
    if not wanted or wanted[0] < 1:
        raise InputError(f"`shots` are numbers of samples per class, 1 or more; found {list(shots)}.")
    if draws < 2:
        raise InputError(f"`draws` is how often few samples are drawn, 2 or more; found {draws}.")
    return wanted


@dataclass(frozen=True, slots=True)
class _Result:
    """One layer: its reading, the squared error of leaving one out, which test samples the probe names rightly."""

    reading: LayerReading
    press: float
    hits: Bool[Tensor, " t"]
    n: int
    guess: float
    classes: int
    labels: Int[Tensor, " t"]


def _results(
    plan: Plan,
    feeds: list[Feed],
    shots: tuple[int, ...],
    draws: int,
    *,
    look: Look | None,
    notes: Notes,
    progress: Progress,
) -> list[_Result]:
    """The layers of the one grain that `measure` would report, in order."""
    seen = plan.probe
    sites = sorted({seen.index_of(site) for site in seen.grains[seen.grain]})
    found: dict[int, _Result] = {}
    for index, splits in split_rows(plan, feeds, sites, notes=notes, progress=progress):
        train, test = splits if len(splits) > 1 else _divided(splits[0], seed=plan.options.seed)
        classes = _same_classes(train.labels, test.labels)
        n, d, site = len(train.labels), seen.dims[index], seen.sites[index]
        if min(n, d) > MOST_AXES:
            text = (
                f"`{site}` has {d} features of {n} samples, and a probe takes at most {MOST_AXES} of one of them: it was left "
                "out. Fewer samples per class, or `reduction='mean'`, would do."
            )
            notes.add("too-wide", text)
            continue
        with exact_arithmetic(train.labels.device):
            rows = probe_rows(
                train.features, torch.searchsorted(classes, train.labels),
                test.features, torch.searchsorted(classes, test.labels), classes=len(classes),
            )  # fmt: skip
            if look is not None:
                look(site, rows)
            number = seen.begins + sites.index(index)
            found[index] = _result(rows, number, site, d, shots, draws, plan.options.seed)
        progress("layers", len(found), len(sites))
    if not found:
        raise DataError("No layer could be probed: " + " ".join(note.text for note in notes.ranked()))
    first = next(iter(found.values()))
    missed = [m for m in shots if first.reading.shots(m) is None]
    if missed:
        words = ", ".join(map(str, missed))
        notes.add(
            "few-samples", f"Few shots of {words} samples per class were left out: a class has fewer training samples."
        )
    return [found[index] for index in sorted(found)]


def _same_classes(train: Tensor, test: Tensor) -> Int[Tensor, " k"]:
    """The labels that the training data have; the test data may have no other."""
    classes, counts = train.unique(return_counts=True)
    check_two_classes(counts, asked="`layer`", names=classes)
    strange = test[~torch.isin(test, classes)]
    if strange.numel():
        raise DataError(
            f"The test data have label {int(strange[0])}, of which the training data have no sample. Check the labels."
        )
    names: Tensor = classes
    return names


def _divided(split: SplitRows, *, seed: int) -> tuple[SplitRows, SplitRows]:
    """Training rows and held-out ones: of each class, in a random order, every fifth."""
    features, labels = torch.cat(split.features), split.labels
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed)).to(labels.device)
    held = torch.zeros_like(labels, dtype=torch.bool)
    for label in labels.unique():
        held[order[labels[order] == label][HELD_OUT - 1 :: HELD_OUT]] = True
    if not bool(held.any()):
        raise DataError(
            f"Without test data every {HELD_OUT}th sample of each class is held out, and no class has {HELD_OUT}. Pass more."
        )
    return SplitRows([features[~held]], labels[~held]), SplitRows([features[held]], labels[held])


def _result(rows: ProbeRows, index: int, site: str, dim: int, shots: tuple[int, ...], draws: int, seed: int) -> _Result:
    """One layer: everything from the rows on their principal axes."""
    probe = ridge_probe(rows.eigenvalues, rows.centers, rows.counts)
    left_out = left_out_scores(rows, probe)
    hot = torch.nn.functional.one_hot(rows.labels, rows.classes).double()
    hits = probe.scores(rows.test).argmax(dim=1) == rows.labels_test
    nearest = nearest_points(rows.test, rows.centers, rows.counts) == rows.labels_test
    errors = few_shot_errors(rows, shots, draws=draws, seed=seed)
    promised = few_shot_certificate(rows, shots)
    n_test = len(hits)
    reading = LayerReading(
        index=index,
        site=site,
        dim=dim,
        loo=float((left_out.argmax(dim=1) == rows.labels).double().mean()),
        accuracy=int(hits.sum()) / n_test,
        interval=share_interval(int(hits.sum()), n_test),
        ncc=int(nearest.sum()) / n_test,
        penalty=probe.penalty,
        few_shot=tuple(
            FewShot(m, float(errors[m].mean()), float(errors[m].std()), promised[m]) for m in shots if m in errors
        ),
    )
    press = float((left_out - hot).square().sum())
    guess = float((rows.labels_test == rows.counts.argmax()).double().mean())
    return _Result(reading, press, hits.cpu(), len(rows.labels), guess, rows.classes, rows.labels_test.cpu())


def _chosen(name: str, results: list[_Result], *, held_out: str, draws: int, notes: Notes) -> ReadModel:
    """The layer of the greatest leave-one-out accuracy, of several the one of the least squared error; the others beside it."""
    best = max(range(len(results)), key=lambda at: (results[at].reading.loo, -results[at].press))
    one = results[best]
    pairs = [paired(one.hits, other.hits) for other in results]
    apart = iter(significant_by_holm([pair.p for at, pair in enumerate(pairs) if at != best]))
    layers = tuple(
        result.reading if at == best else replace(result.reading, against=pairs[at], apart=next(apart))
        for at, result in enumerate(results)
    )
    advice = LayerAdvice(
        model=name, layers=layers, best=best, classes=one.classes, n=one.n, n_test=len(one.hits), held_out=held_out,
        guess=one.guess, draws=draws, notes=notes.ranked(),
    )  # fmt: skip
    return ReadModel(advice, one.hits, one.labels)


def paired(first: Bool[Tensor, " t"], second: Bool[Tensor, " t"]) -> PairedHits:
    """Which of two is right where the other is wrong."""
    return PairedHits(len(first), int((first & ~second).sum()), int((second & ~first).sum()))

"""write_features: what every layer of a model gives, read by the reader of `measure` and written to a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from equisep.data.feed import Feed
from equisep.data.stores import FeatureWriter
from equisep.errors import InputError
from equisep.labels import ClassNames
from equisep.measuring.measure import home_of, known_class_names, placed, plan_for
from equisep.measuring.notes import Notes
from equisep.measuring.plan import Plan
from equisep.measuring.reading import read
from equisep.measuring.request import Options
from equisep.progress import Progress, Watched, callback, watched
from equisep.results import Note, Reading, reading_named
from equisep.taps import (
    Reduction,
    ReductionLike,
    Rows,
    Sites,
    inner,
    random_state_kept,
    refuse_scripted,
    refuse_uninitialized,
    site_record,
)


@dataclass(frozen=True, slots=True)
class WrittenFeatures:
    """The folder that was written, the layers in it, and what needs care."""

    folder: Path
    layers: tuple[str, ...]
    notes: tuple[Note, ...]


@watched
def write_features(
    model: nn.Module,
    train: Any,
    test: Any = None,
    *,
    out: str | Path,
    sites: Sites = "auto",
    reduction: ReductionLike = "auto",
    reading: Reading = "eval",
    classes: int | None = None,
    class_names: ClassNames | None = None,
    device: str | torch.device | None = None,
    name: str | None = None,
    whole: bool = True,
    data: dict[str, Any] | None = None,
    progress: Watched = None,
) -> WrittenFeatures:
    """Write the features of every layer of a model to the folder `out`, which `measure_features` reads.

    Of the two grains that `auto` reads, the reported one is written. Each layer is an .npy file of n × d in the order in which
    the samples were read, beside labels.npy; `features.json` says of which model, how it was read, what its classes are
    called, and whether these are all samples there are (`whole`). The arguments are those of `measure`; `data` is a record of
    the samples.

    >>> import torch, equisep
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> _ = torch.manual_seed(0)
    >>> model = equisep.Fnn(depth=4, width=16, inputs=8, classes=3)
    >>> from equisep.measuring import write_features
    >>> written = write_features(model, (x, y), out="features")
    >>> len(equisep.measure_features("features").sites)
    4
    """
    progress = callback(progress)
    refuse_scripted(model, asked="write_features")
    refuse_uninitialized(model, asked="write_features")
    how = None if isinstance(reduction, str) and reduction == "auto" else Reduction.of(reduction)
    if how is not None and (how.spreads or how.components is not None):
        cure = "Write them without, and pass it to `measure_features`."
        if how.spreads:
            cure = (
                "What is written is flat, so that no position is left in it: measure the model with it, or save maps as they "
                "are (.npy of n × channels × positions) and pass it to `measure_features`."
            )
        raise InputError(
            f"Features are written one row per sample, as they are; `{how.name}` makes others of them. {cure}"
        )
    mode = reading_named(reading)
    options = Options(
        sites=site_record(sites), reduction="auto" if how is None else how.name, reading=mode, classes=classes
    )
    notes = Notes()
    with placed(model, device), random_state_kept(train, test):
        where, dtype = home_of(model)
        feeds = {
            split: Feed(given, what=what, device=where, dtype=dtype, reading=mode)
            for split, given, what in (("train", train, "training"), ("test", test, "test"))
            if given is not None
        }
        plan = plan_for(model, feeds["train"], feeds.get("test"), sites, how, options, notes)
        known = known_class_names(class_names, feeds["train"], plan.probe.classes)
        with FeatureWriter(Path(out), plan.probe.grains[plan.probe.grain]) as writer:
            for split, feed in feeds.items():
                writer.begin(split)
                _written(plan, feed, writer, progress)
            said = {
                "model": name or type(inner(model)).__name__,
                "reading": mode,
                "reduction": plan.reduction.name,
                "classes": plan.probe.classes,
                "class_names": known,
                "whole": whole,
                "data": data,
            }
            folder = writer.done(said)
    notes.extend(note for feed in feeds.values() for note in feed.notes.values())
    return WrittenFeatures(folder, writer.layers, notes.ranked())


def _written(plan: Plan, feed: Feed, writer: FeatureWriter, progress: Progress) -> None:
    """One split, batch by batch: the sites of the reported grain, two names of one tensor each by itself."""
    names: dict[int, list[str]] = {}
    for layer in writer.layers:
        names.setdefault(plan.probe.index_of(layer), []).append(layer)

    def take(index: int, rows: Rows) -> None:
        for layer in names[index]:
            writer.add(layer, rows.features)

    def start(labels: Tensor) -> None:
        writer.labels(labels)

    with random_state_kept(feed.source):
        read(
            plan,
            feed,
            take=take,
            start=start,
            progress=progress,
            what=f"reading the {feed.what} data",
            scored=False,
            only=frozenset(names),
        )

"""measure_features: from features that are stored, or at hand, to a profile, by the passes of `measure`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from equisep.data.feed import Feed
from equisep.data.inputs import Inputs
from equisep.data.shard import Shard
from equisep.data.stores import StoredBatches, StoredFeatures, StoredSplit, held_features, open_features
from equisep.devices import usable_device
from equisep.errors import InputError, SiteError, did_you_mean
from equisep.labels import ClassNames
from equisep.measuring.distributed.control import Call, declining, in_group
from equisep.measuring.distributed.ranks import Ranks, processes
from equisep.measuring.distributed.together import ALONE
from equisep.measuring.fingerprint import Fingerprint
from equisep.measuring.forward import Calling
from equisep.measuring.measure import known_class_names, run_plan
from equisep.measuring.notes import Notes
from equisep.measuring.plan import Plan, StoredLayers
from equisep.measuring.probe import Probe
from equisep.measuring.request import Options, metric_names, plain_number
from equisep.progress import Watched, callback, watched
from equisep.results import Profile, reading_named
from equisep.shapes import Shaped
from equisep.taps import Reduction, ReductionLike

STORED = Call(
    "measure_features",
    "In a process group all ranks call it, with one store; `group=False` measures in one process alone.",
    "All ranks measure one store with the same options.",
)
# options of `measure` that say how a model is run
_OF_MODELS = ("sites", "calls", "reduction", "reading", "classifier")


@watched
def measure_features(
    features: Any,
    labels: Any = None,
    *,
    test: Any = None,
    test_labels: Any = None,
    split: str = "both",
    sites: str | Sequence[str] = "auto",
    reduction: ReductionLike = "flatten",
    class_names: ClassNames | None = None,
    device: str | torch.device | None = None,
    name: str | None = None,
    group: bool = True,
    progress: Watched = None,
    **options: Any,
) -> Profile:
    """Measure how stored features separate their classes, layer by layer: the profile of `measure`, without the network.

    features     a file or folder, local or a URL: .npy, .safetensors, .arrow or .feather, .parquet. Every array, tensor or column
                 of lists is a layer, in the order of names (`layer2` before `layer10`) or of columns; a folder of .npy files is
                 one layer in parts. Folders `train` and `test` are the two data sets. Or a mapping of arrays.
    labels       by default the array or column called `labels`, `label`, `y` or the like; else its name, a file, or an array.
    test         test data that lie elsewhere, with `test_labels`; of a folder that holds `train` and `test`, the latter.
    split        `both`, `train` alone, or `test` alone, measured by its own means.
    sites        the layers to read, by names or globs; `auto` reads all.
    reduction    how rows of more than one dimension become vectors, as in `measure`.

    group        in a process group every rank reads batches of its own of what is stored, and all have the profile of one
                 process; False measures in this process alone, as arrays at hand always are.

    All further options are those of `measure` (metrics, classes, weighting, intervals, memory, whole, seed, …). Features are
    read twice, in blocks, where they do not fit `memory`: what is held beside is O(K·d) per layer.

    >>> import torch, equisep
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> profile = equisep.measure_features({"first": x, "second": x.tanh()}, y)  # or a folder, a file, a URL
    >>> [site.name for site in profile.sites]
    ['first', 'second']
    """
    progress = callback(progress)
    divided = group and in_group() and not isinstance(features, Mapping) and not isinstance(test, Mapping)
    with declining(STORED, group=divided):
        if test is None and test_labels is not None:
            raise InputError("`test_labels` needs `test`, the features that they are of. Pass both, or neither.")
        stored = _one_split(_opened(features, labels, what="training"), split)
        other = stored.test
        if test is not None:
            there = _opened(test, test_labels, what="test")
            other = there.test or there.train
            if other.names != stored.train.names:
                raise InputError(
                    f"`test` needs the layers of the features, {_few(stored.train.names)}; found {_few(other.names)}."
                )
        how, chosen = Reduction.of(reduction), _chosen(stored.train.names, sites)
        asked = _options(options, stored, sites=chosen, reduction=how.name)
    where = torch.device("cpu") if device is None else usable_device(device, asked="measure_features")
    model = StoredLayers(where)
    with processes(model, dealt=True, call=STORED) if divided else nullcontext(ALONE) as together:
        shard = together.shard if isinstance(together, Ranks) else None
        feed = _feed(stored.train, chosen, "training", where, shard=shard)
        batches = feed.source
        assert isinstance(batches, StoredBatches)
        feed_test = None if other is None else _feed(other, chosen, "test", where, like=batches, shard=shard)
        inputs, first = feed.first()
        feed.restart()
        seen = _probe(inputs, first, how, asked, stored.manifest.get("classes"), batches.classes)
        plan = Plan(model, seen, how, asked, together=together)
        together.agree(plan, None)
        if isinstance(together, Ranks):
            together.control.same(_facts(feed, feed_test, Fingerprint().after(inputs, first)))
        said = tuple(stored.manifest["class_names"]) if stored.manifest.get("class_names") else None
        known = known_class_names(class_names or said, feed, plan.probe.classes)
        title = name or stored.manifest.get("model") or Path(stored.where).name
        profile, failure = run_plan(
            plan, feed, feed_test, name=title, class_names=known, notes=Notes(stored.notes), progress=progress
        )  # fmt: skip
        profile = together.one(profile) if isinstance(together, Ranks) else profile
    profile = replace(profile, settings={**profile.settings, "features": stored.where})
    if failure is not None:
        failure.profile = profile
        raise failure
    return profile


def _opened(features: Any, labels: Any, *, what: str) -> StoredFeatures:
    if isinstance(features, Mapping):
        if labels is None:
            raise InputError(f"The {what} features are arrays at hand: pass their labels as well.")
        return held_features(features, labels, what=what)
    if not isinstance(features, str | Path):
        raise InputError(
            f"Features are a path, a URL, or a mapping from layers to arrays; found {type(features).__name__}. "
            "One array alone goes as `{'features': x}`."
        )
    if labels is not None and not isinstance(labels, str | Path):
        raise InputError(
            "Labels of stored features are a file or the name of a column; found an array. Save it beside them as labels.npy."
        )
    return open_features(features, labels=labels)


def _one_split(stored: StoredFeatures, split: str) -> StoredFeatures:
    """What is stored of one split, or of both."""
    if split == "both":
        return stored
    if split not in ("train", "test"):
        raise InputError(f"`split` takes both, train or test; found `{split}`.")
    if split == "train":
        return replace(stored, test=None)
    if stored.test is None:
        raise InputError(f"`split=test` needs test data; `{stored.where}` holds none (a folder `test` beside `train`).")
    return replace(stored, train=stored.test, test=None, manifest={**stored.manifest, "whole": False})


def _few(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:3]) + (", …" if len(names) > 3 else "")


def _chosen(names: Sequence[str], sites: str | Sequence[str]) -> tuple[str, ...]:
    """The layers asked for, in the order of the store."""
    if sites == "auto":
        return tuple(names)
    patterns = [sites] if isinstance(sites, str) else list(sites)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise SiteError(
                f"No layer `{pattern}` among the features.{did_you_mean(pattern, names)} They are {_few(names)} ({len(names)})."
            )
    return tuple(name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns))


def _options(given: dict[str, Any], stored: StoredFeatures, *, sites: tuple[str, ...], reduction: str) -> Options:
    """The options of the statistics; how the model was read is for the writer of the features to say."""
    known = [entry.name for entry in fields(Options) if entry.name not in _OF_MODELS]
    strange = next((name for name in given if name not in known), None)
    if strange is not None:
        raise InputError(f"`measure_features` has no option `{strange}`.{did_you_mean(strange, known)}")
    plain = {name: plain_number(value) for name, value in given.items() if value is not None}
    if "metrics" in plain:
        plain["metrics"] = metric_names(plain["metrics"])
    plain.setdefault("whole", bool(stored.manifest.get("whole", True)))
    reading = reading_named(stored.manifest.get("reading") or "eval")
    return Options(sites=sites, reduction=reduction, reading=reading, **plain)


def _feed(
    split: StoredSplit,
    sites: tuple[str, ...],
    what: str,
    device: torch.device,
    *,
    like: StoredBatches | None = None,
    shard: Shard | None = None,
) -> Feed:
    layers = tuple(layer for layer in split.layers if layer.name in sites)
    batches = StoredBatches(replace(split, layers=layers), like=like, reused=True)
    return Feed(batches, what=what, device=device, dtype=None, shard=shard)


def _facts(feed: Feed, feed_test: Feed | None, first: Fingerprint) -> dict[str, Any]:
    """What ranks that read one store agree on, by name."""
    facts: dict[str, Any] = {"test data": "none" if feed_test is None else "given"}
    for each in (feed, feed_test):
        if each is not None:
            assert isinstance(each.source, StoredBatches)
            facts |= {f"{name} of the {each.what} data": fact for name, fact in each.source.facts.items()}
    return {**facts, "first rows of the training data": first}


def _probe(
    inputs: Inputs, labels: Tensor, reduction: Reduction, options: Options, told: int | None, found: int
) -> Probe:
    """What a probe of the network would have told, from the first rows; K as asked, `told` with the features, or `found`."""
    rows: dict[str, Shaped[Tensor, "r d"]] = {
        site: reduction(x, site=site).features for site, x in inputs.kwargs.items()
    }
    numbers = tuple(x.numel() / len(labels) for x in rows.values())
    classes = options.classes or told or found
    owner = (
        f"`classes={classes}`" if options.classes else "as features.json has it" if told else "as the labels have it"
    )
    return Probe(
        names=tuple(rows),
        sites=tuple(rows),
        dims=tuple(x.shape[1] for x in rows.values()),
        numbers=numbers,
        bytes=tuple(count * x.element_size() for count, x in zip(numbers, rows.values(), strict=True)),
        classes=classes,
        owner=owner,
        scored=False,
        calling=Calling(),
        grains={"": tuple(rows)},
    )

"""The probe: one batch through the model to learn which sites it reaches, in what order, and what its classifier is."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from math import isfinite

import torch
from torch import Tensor, nn

from equisep.data.inputs import Inputs
from equisep.errors import FeatureError, InputError, ModelError
from equisep.measuring.classifier import note_scores, number_of_classes, with_classifier, with_classifier_input
from equisep.measuring.forward import Calling, run_model
from equisep.measuring.notes import Notes
from equisep.measuring.probe.reached_sites import ReachedSites
from equisep.measuring.request import Options
from equisep.results import Note
from equisep.results.readings import BY_BATCH
from equisep.results.wording import plural
from equisep.shapes import Shaped
from equisep.taps import (
    GRAINS,
    INPUT,
    Choice,
    Reduction,
    Sites,
    batch_norms,
    blocks_note,
    choose,
    declares_sites,
    eager,
    grains_of,
    inner,
    kind_of,
    listening,
    reading_mode,
    recorded_calls,
    scores_of,
    site_modules,
)

SAMPLES = 4  # of the first batch: enough to see what a model does
REPEATED = 3  # times in sequence that a block makes a network of blocks
IMAGES = 4  # dimensions of a batch of images
LARGEST = 1e150  # a number whose square, summed over features, float64 still holds
TOKENS = (torch.int64, torch.int32)  # what an embedding looks up: numbers without size or order


@dataclass(frozen=True, slots=True)
class Probe:
    """What one batch told.

    names       what the tap listens to                 same        site → the site before it that gave its very tensor
    sites       distinct sites in call order            passed      sites that cannot be read, and were not named
    dims        their widths                            grains      grain (or "") → the sites to report, in call order
    numbers     of a sample, at each site, and `bytes`  classifier  the linear layer that gives the scores, and `reads`
    classes     K, and `owner`, who says so                         the site whose features it is given; `head`, that layer
                                                                    also where what it is given is no site
    grain       the one that is reported, and `reason`, why
    unscored    what is to be said where the model's own accuracy is asked for, and its outputs hold no scores of the classes
    sums        of what the samples gave at each site: Σ x, Σ w·x with weights that rise from −1 to 1, and Σ |x|
    """

    names: tuple[str, ...]
    sites: tuple[str, ...]
    dims: tuple[int, ...]
    numbers: tuple[float, ...]
    bytes: tuple[float, ...]
    classes: int
    owner: str
    scored: bool
    calling: Calling
    same: Mapping[str, str] = field(default_factory=dict)
    passed: frozenset[str] = frozenset()
    grains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    classifier: str | None = None
    head: str | None = None
    reads: str | None = None
    notes: tuple[Note, ...] = ()
    unscored: tuple[Note, ...] = ()
    grain: str = ""
    reason: str = ""
    sums: tuple[tuple[float, float, float], ...] = ()

    @property
    def begins(self) -> int:
        """The index of the first site: 0 is the raw input, also where it is left out."""
        return 0 if self.sites[0] == INPUT else 1

    def index_of(self, site: str) -> int:
        """Where a site stands among the distinct ones."""
        return self.sites.index(self.same.get(site, site))


def probe(
    model: nn.Module,
    inputs: Inputs,
    labels: Tensor,
    sites: Sites,
    reduction: Reduction,
    options: Options,
    *,
    raw: bool = True,
) -> Probe:
    """Run the first samples of a batch and look; the whole batch, where the model will have no other size.

    `raw` says whether the raw input is a site.
    """
    if len(labels) > SAMPLES:
        with suppress(ModelError):  # so that the traceback of a second failure does not hold the first
            return _probe(model, inputs.head(SAMPLES), sites, reduction, options, raw)
    return _probe(model, inputs, sites, reduction, options, raw)


def _probe(model: nn.Module, inputs: Inputs, sites: Sites, reduction: Reduction, options: Options, raw: bool) -> Probe:
    calling, notes = Calling.of(inner(model), inputs)
    choice, grains, more = _choice(model, inputs, calling, sites, options)
    notes += more
    assert inputs.main is not None
    tokens = inputs.main.dtype in TOKENS
    if tokens or not raw:
        choice = Choice(tuple(name for name in choice.names if name != INPUT), choice.named)
    if tokens:
        kind = str(inputs.main.dtype).removeprefix("torch.")
        text = f"The inputs are {kind} numbers such as token ids, whose distances mean nothing: the site `input` is left out."
        notes += (Note("token-input", text),)
    reached = ReachedSites(model, choice, len(inputs.main))
    linear = {name: module for name, module in site_modules(model).items() if isinstance(module, nn.Linear)}
    with (
        listening(
            model,
            choice.names,
            give=reached.take,
            reading=options.reading,
            calls=options.calls,
            reduction=reduction,
            spare=reached.spare,
        ),
        ExitStack() as stack,
    ):
        for name, module in linear.items():  # after the tap's own hooks: what a layer is given may be a site
            stack.callback(module.register_forward_pre_hook(reached.watch(name)).remove)
        output = run_model(inner(model), inputs, calling, what="the first batch")
    names, unreached = reached.names(found=options.sites in GRAINS)
    classes, owner = number_of_classes(model, output, options)
    scores = scores_of(output, classes)
    seen = Probe(
        names=names,
        sites=tuple(reached.dims),
        dims=tuple(reached.dims.values()),
        numbers=tuple(reached.numbers.values()),
        bytes=tuple(reached.numbers[site] * size for site, size in reached.sizes.items()),
        classes=classes,
        owner=owner,
        scored=scores is not None and scores.shape[1] == classes,
        calling=calling,
        same=reached.same,
        passed=frozenset(reached.passed),
        grains=reached.reported(grains),
        notes=(*notes, *unreached),
        unscored=note_scores(model, output, classes),
        sums=tuple(reached.sums.values()),
    )
    return with_classifier(_with_grain(seen, model), model, linear, reached.fed, reduction, options)


def _with_grain(seen: Probe, model: nn.Module) -> Probe:
    """The probe with the grain that is reported: by the structure of the model, never by how well a grain follows the law.

    `blocks` where one composite module (a residual block, a transformer layer) repeats three times or more in sequence.
    """
    if len(seen.grains) == 1:
        return replace(seen, grain=next(iter(seen.grains)))
    modules, longest, run, last = site_modules(model), ("", 0), 0, None
    for site in seen.grains["blocks"]:
        block = modules.get(site)
        kind = kind_of(block) if block is not None and any(True for _ in block.children()) else None
        run = run + 1 if kind is not None and kind is last else int(kind is not None)
        last = kind
        if kind is not None and run > longest[1]:
            longest = (kind.__name__, run)
    name, count = longest
    if count >= REPEATED:
        grain, reason = "blocks", f"`{name}` repeats {count} times in sequence"
    else:
        grain, reason = "layers", f"no block repeats {REPEATED} times or more in sequence"
    other = next(each for each in seen.grains if each != grain)
    text = (
        f"Layers and blocks were both measured; the {grain} are reported, since {reason}. The law of the {other} is in "
        f"`laws['{other}']`, and `sites='{other}'` reports them."
    )
    return replace(seen, grain=grain, reason=reason, notes=(*seen.notes, Note("grain", text)))


def reduction_for(model: nn.Module, inputs: Inputs, notes: Notes) -> Reduction:
    """The reduction where none was asked for: token sequences are averaged over their real tokens, all else is flattened.

    Sequences are known by token ids or an attention mask among the inputs; a transformer of images, by its attention layers
    and image inputs.
    """
    main = inputs.main
    masked = any("mask" in name for name in inputs.kwargs)
    if masked or (main is not None and main.dtype in TOKENS):
        text = "Token sequences are averaged over their real tokens (`reduction='mean'`); `flatten` would read padding as well."
        notes.add("reduction", text)
        return Reduction.of("mean")
    if attends_to_patches(model, inputs):
        assert main is not None
        text = (
            "The model attends to patches of images: features are averaged over patches (`reduction='mean'`), not flattened. The "
            f"raw input is left out, since the average of an image is {plural(main.shape[1], 'number')}, too few to compare."
        )
        notes.add("reduction", text)
        return Reduction.of("mean")
    return Reduction.of("flatten")


def attends_to_patches(model: nn.Module, inputs: Inputs) -> bool:
    """Whether this is a transformer of images."""
    attention = any("attention" in type(module).__name__.lower() for module in model.modules())
    return attention and inputs.main is not None and inputs.main.ndim == IMAGES


def _choice(
    model: nn.Module, inputs: Inputs, calling: Calling, sites: Sites, options: Options
) -> tuple[Choice, dict[str, tuple[str, ...]], tuple[Note, ...]]:
    """The sites asked for; a grain is proposed from the calls of a forward pass, and of `auto` both are."""
    if not (isinstance(sites, str) and sites in GRAINS):
        choice = choose(model, sites)
        return choice, {"": choice.names}, ()
    calls, output = None, None
    if not declares_sites(model):
        with reading_mode(model, options.reading), eager(), recorded_calls(model) as calls:
            output = run_model(inner(model), inputs, calling, what="the first batch")
    grains = with_classifier_input(grains_of(model, calls), model, calls or (), output, options.classes)
    notes = blocks_note(model, grains) if sites == "blocks" else ()
    if sites != "blocks" or notes:
        notes += grains.notes
    both = {"layers": grains.layers, "blocks": grains.blocks}
    return Choice((INPUT, *grains.at(sites))), both if sites == "auto" else {sites: both[sites]}, notes


def check_finite(features: Tensor, *, site: str, where: str) -> None:
    """Raise where a site gives anything but numbers, or numbers whose squares are none."""
    if not features.is_floating_point() or bool(features.sum(dtype=torch.float32).isfinite()):
        return  # any NaN or Inf would have made the sum one
    bad = int(torch.count_nonzero(features - features))  # NaN where a number has no size, else zero
    refuse_extreme(float(largest(features)), numbers=features.numel(), site=site, where=where, bad=bad)


def largest(features: Tensor) -> Shaped[Tensor, ""]:
    """The largest size among all numbers; NaN or Inf where one of them is: a GPU is not waited for, and told of one step."""
    return torch.linalg.vector_norm(features, ord=torch.inf) if features.numel() else features.new_zeros(())


def refuse_extreme(most: float, *, numbers: int, site: str, where: str, bad: int | None = None) -> None:
    """Raise where a site gives anything but numbers, `bad` of them where that is known, or numbers whose squares are none."""
    if not isfinite(most):
        count = "" if bad is None else f"{bad} "
        raise FeatureError(
            f"Site `{site}` gives {count}NaN or Inf among {numbers} numbers at {where}. Check the inputs and the weights."
        )
    if most > LARGEST:
        raise FeatureError(
            f"Site `{site}` gives numbers up to {most:.2g} at {where}, beyond {LARGEST:g}: their squares leave float64. "
            "Scale the inputs or the weights."
        )


def check_batch(model: nn.Module, size: int, options: Options, *, index: int, what: str) -> None:
    """In a reading by the batch one sample alone has no spread for BatchNorm to normalize by."""
    if options.reading in BY_BATCH and size == 1 and batch_norms(model):
        raise InputError(
            f"The reading `{options.reading}` needs at least 2 samples per batch; batch {index} of the {what} data holds 1. "
            "Use another batch size, or `drop_last=True`."
        )

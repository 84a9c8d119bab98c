"""Notes: what needs care about a measurement, gathered while it runs and ranked, what changes a conclusion first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from equisep.data.mixing import Mixing
from equisep.devices import tf32_allowed
from equisep.measuring.request import FOLDED, FOLDS, Options
from equisep.results import LawFit, Note, SiteReading
from equisep.results.wording import plural
from equisep.separation import SiteStatistics
from equisep.separation.noise.mean_noise import MOST_CLASSES
from equisep.separation.pairs.directional import DIRECTED_CLASSES
from equisep.shapes import Int
from equisep.taps import Reduction

# from those that change a conclusion to those that say how it was read; what is not listed stands between
_FIRST = (
    "unmixed-batches", "test-is-training", "batch-statistics", "sample-size", "too-few-samples", "no-corrected", "no-separation",
    "changed", "class-mix", "rank", "no-curve", "zero-fuzziness", "small-classes", "low-classes", "no-effective-depth",
)  # fmt: skip
_LAST = (
    "grain",
    "functional",
    "unreached",
    "unfit",
    "no-scores",
    "no-classifier",
    "reduction",
    "token-input",
    "cast",
    "rounds",
    "tf32",
)
SHOW_COMPANY = "`readings='eval,drawn'` shows by how much."
_MIX = 0.1  # of the samples: a larger difference between the class shares of training and test data changes D
_LOW = 0.9  # nearest-center accuracy of a class, below which an effective depth speaks for the others only


class Notes:
    """The notes of one measurement, each once."""

    def __init__(self, notes: Iterable[Note] = ()) -> None:
        self._notes: dict[Note, None] = dict.fromkeys(notes)

    def add(self, code: str, text: str, *, site: str | None = None) -> None:
        """One more."""
        self._notes.setdefault(Note(code, text, site=site))

    def extend(self, notes: Iterable[Note]) -> None:
        """Several more."""
        for note in notes:
            self._notes.setdefault(note)

    def ranked(self) -> tuple[Note, ...]:
        """All of them, those that change a conclusion first."""
        return tuple(sorted(self._notes, key=lambda note: _rank(note.code)))


def _rank(code: str) -> int:
    if code in _FIRST:
        return _FIRST.index(code)
    return len(_FIRST) + (1 + _LAST.index(code) if code in _LAST else 0)


def note_classes(notes: Notes, counts: Int[Tensor, " k"], *, what: str) -> None:
    """Classes that are absent or have a single sample."""
    for size, code, words in ((0, "absent", "no sample"), (1, "single", "one sample")):
        classes = (counts == size).nonzero().flatten().tolist()
        if classes:
            names = ", ".join(map(str, classes[:5])) + (", …" if len(classes) > 5 else "")
            effect = "left out of all means over classes" if size == 0 else "without within-class spread of their own"
            own = ", and in these data each is its own class mean" if size == 1 and what == "training" else ""
            text = f"{len(classes)} of {counts.numel()} classes ({names}) have {words} in the {what} data; they are {effect}"
            notes.add(f"{code}-{what}", f"{text}{own}.")


def note_class_names(notes: Notes, names: Sequence[str] | None) -> None:
    """Classes that share a name; lists in use do (ImageNet has two kinds of crane), so they are taken."""
    named: dict[str, list[int]] = {}
    for number, name in enumerate(names or ()):
        named.setdefault(name, []).append(number)
    for name, numbers in named.items():
        if len(numbers) > 1:
            which = ", ".join(map(str, numbers[:5])) + (", …" if len(numbers) > 5 else "")
            text = f"Classes {which} are all called `{name}`: only their numbers tell them apart. Pass other `class_names`."
            notes.add("same-class-name", text)


def note_sample_size(notes: Notes, readings: Sequence[SiteReading], law: LawFit, beyond: LawFit | None) -> None:
    """Of training data that are a sample: where D of the population cannot be told, and where its law is another."""
    refused = [reading for reading in readings if reading.corrected is not None and reading.corrected.value is None]
    if refused:
        first = refused[0]
        assert first.corrected is not None
        text = (
            f"D of the population cannot be told at {len(refused)} of {len(readings)} sites, first `{first.name}`: "
            f"{first.corrected}."
        )
        notes.add("too-few-samples", text)
    span = None if beyond is None else beyond.intervals.get("rho")
    if beyond is None or span is None or law.rho is None or beyond.rho is None or len(beyond.curve) != len(law.curve):
        return
    if not span.low <= law.rho <= span.high or beyond.verdict != law.verdict:
        # two sites, or a flat curve, have no r
        theirs, ours = ("" if each.r is None else f" and r {each.r:.4f} ({each.verdict})" for each in (beyond, law))
        text = (
            f"The data are a sample, and noise of its class means tells in the law: of the population ρ is {beyond.rho:.3g} "
            f"{span}{theirs}, of these samples {law.rho:.3g}{ours}."
        )
        notes.add("sample-size", text)


def note_no_corrected(
    notes: Notes, readings: Sequence[SiteReading], counts: Int[Tensor, " k"], options: Options, *, spreads: bool
) -> None:
    """Of training data that are a sample: why D of the population was asked of no site; `spreads`: samples have several rows."""
    if not options.wants("fuzziness") or any(reading.corrected is not None for reading in readings):
        return
    n, present = int(counts.sum()), int((counts > 0).sum())
    reasons = (
        (
            options.intervals not in FOLDED,
            f"it is told by folds of the samples, which `intervals='{options.intervals}'` leaves out",
        ),
        (not options.wants("null"), "it is judged by the chance level, and `metrics` has no `null`"),
        (spreads, f"by `reduction='{options.reduction}'` a sample has several rows, which are no further samples"),
        (present > MOST_CLASSES, f"it is computed up to {MOST_CLASSES} classes, and these are {present:,}"),
        (n < 2 * FOLDS, f"{FOLDS} folds of {plural(n, 'sample')} are too small"),
        (True, "it is told by folds of the samples and by random labels, which another Note says were left out"),
    )
    reason = next(words for holds, words in reasons if holds)
    notes.add(
        "no-corrected", f"The data are a sample, and D of the population (corrected D) stands at no site: {reason}."
    )


def note_same_data(notes: Notes) -> None:
    """Test data that are the training data, by the fingerprints of both."""
    text = (
        "The test data are the training data, sample by sample: numbers of test data say nothing about samples that the "
        "network has not seen. Pass other samples, or none."
    )
    notes.add("test-is-training", text)


def note_class_mix(notes: Notes, train: Int[Tensor, " k"], test: Int[Tensor, " k"], options: Options) -> None:
    """Training and test data that hold classes in different shares: their D do not compare when weighed by sample."""
    differ = float((train / train.sum() - test / test.sum()).abs().sum() / 2)
    if differ > _MIX and options.weighting != "class":
        text = (
            f"Training and test data hold the classes in different shares ({100 * differ:.0f} % of the samples would have to "
            "change class), and D weighs classes by them: the two curves of D do not compare. "
            "`weighting='class'` weighs all classes alike in both."
        )
        notes.add("class-mix", text)
    present = train[train > 0]
    if options.weighting != "sample" and options.wants("null") and bool((present != present[0]).any()):
        text = f"The chance level is of classes of equal size; of unequal ones, weighed by `{options.weighting}`, it is higher."
        notes.add("equal-chance", text)


def note_sites(notes: Notes, readings: Sequence[SiteReading], sites: Sequence[SiteStatistics]) -> None:
    """What needs care about single sites, gathered so that one cause makes one note."""
    sizes = [int(site.spread.centers.counts[site.spread.centers.counts > 0].min()) for site in sites]
    wide = [(size, reading.dim) for size, reading in zip(sizes, readings, strict=True) if reading.dim > size]
    if wide:
        smallest, widest = min(size for size, _ in wide), max(dim for _, dim in wide)
        known = any(reading.null is not None for reading in readings)
        beside = "; compare it with its chance level (D under random labels)" if known else ""
        text = (
            f"The smallest class has {plural(smallest, 'sample')} against up to {widest} features at {len(wide)} of "
            f"{len(readings)} sites: D depends on n against d there{beside}."
        )
        notes.add("small-classes", text)
    coarse = sum(site.spread.centers.eps > 1e-5 for site in sites)
    if coarse:
        notes.add(
            "half-precision", f"{coarse} sites came in half precision: differences below its rounding are cut off."
        )
    for reading, site in zip(readings, sites, strict=True):
        space = site.spread.subspace
        if space.rank == 0:
            text = (
                f"All class means coincide to the rounding of the features (below {space.cut:.2g}): D does not exist. Features "
                "that are all alike, or far from zero beside their spread, hold no digits of their classes."
            )
            notes.add("no-separation", text, site=reading.name)
        elif space.rank < space.full_rank:
            text = (
                f"The class means span {space.rank} of {space.full_rank} directions (cut at {space.cut:.2g}): they have "
                "become dependent, and D depends on the cut."
            )
            notes.add("rank", text, site=reading.name)


def note_directional(notes: Notes, classes: int, options: Options) -> None:
    """Too many classes for the spread along the lines between all pairs of means."""
    if options.wants("cdnv_directional") and classes > DIRECTED_CLASSES:
        text = (
            f"The directional CDNV was left out: the sums of all pairs of {classes:,} classes are kept up to "
            f"{DIRECTED_CLASSES:,} classes."
        )
        notes.add("no-directional", text)


def note_many_classes(notes: Notes, classes: int, most: int, options: Options) -> None:
    """Too many classes for what needs numbers of all pairs of classes under every labeling."""
    named = (
        ("intervals", options.wants("fuzziness") and options.intervals in FOLDED),
        ("the chance level", options.wants("null")),
        ("the law of each class", options.wants("class_fuzziness")),
    )
    lost = [name for name, wanted in named if wanted]
    if lost:
        words = " and ".join(filter(None, [", ".join(lost[:-1]), lost[-1]]))
        text = f"Left out of {classes:,} classes: {words}, which are computed up to {most:,} classes."
        notes.add("many-classes", text)


def note_batches(notes: Notes, mixing: Mixing | None, *, what: str) -> None:
    """Batches that mix the classes less than chance, read by their own statistics."""
    if mixing is not None and mixing.unmixed:
        text = (
            f"The batches of the {what} data are less class-mixed than a random order makes them ({mixing_words(mixing)}): "
            "BatchNorm normalizes a class by the company it is read in, which changes D, the more so the deeper the layer. "
            f"{SHOW_COMPANY}"
        )
        notes.add("unmixed-batches", text)


def mixing_words(mixing: Mixing) -> str:
    """What the test of class-mixing saw, in a clause."""
    often = "" if mixing.pairs is None else f"two samples of one class share a batch {mixing.pairs:.3g} times as often"
    pure = f"{mixing.pure} of {mixing.batches} batches hold one class only" if mixing.pure else ""
    return "; ".join(part for part in (pure, often) if part)


def note_batch_statistics(notes: Notes, model: nn.Module) -> None:
    """BatchNorm layers without running statistics, which go by the batch in `eval` too."""
    names = [name for name, each in model.named_modules() if isinstance(each, _BatchNorm) and each.running_mean is None]
    if names:
        text = (
            f"{plural(len(names), 'BatchNorm layer')} (first `{names[0]}`) {'keep' if len(names) > 1 else 'keeps'} no running "
            "statistics: in `eval` too samples are normalized by their batch, so that D and accuracy depend on which samples "
            "share one. Pass batches as the network will meet them."
        )
        notes.add("batch-statistics", text)


def note_tf32(notes: Notes, model: nn.Module, device: torch.device, dtype: torch.dtype | None) -> None:
    """Where a GPU may have shortened what the features come from."""
    kinds = {"convolutions": _ConvNd, "products": nn.Linear}
    switches = {"convolutions": "torch.backends.cudnn.allow_tf32", "products": "torch.backends.cuda.matmul.allow_tf32"}
    short = [
        kind for kind in tf32_allowed(device) if any(isinstance(module, kinds[kind]) for module in model.modules())
    ]
    if dtype == torch.float32 and short:
        text = (
            f"The GPU may shorten {' and '.join(short)} to TF32, which keeps 10 bits: features carry its rounding. "
            f"Set `{switches[short[0]]} = False` for whole float32."
        )
        notes.add("tf32", text)


def note_depth(notes: Notes, depth: int | None, readings: Sequence[SiteReading], options: Options) -> None:
    """No effective depth, or one that leaves a class behind."""
    if not options.wants("ncc"):
        return
    share = f"{100 * (1 - options.epsilon):g} %"
    best = max(
        (site for site in readings if site.ncc_train is not None), key=lambda site: site.ncc_train or 0, default=None
    )
    if depth is None:
        most = "" if best is None else f" `{best.name}` comes to {100 * (best.ncc_train or 0):.1f} %."
        text = (
            f"Nearest-center training accuracy does not stay at {share} up to the last layer: there is no effective depth at "
            f"ε = {options.epsilon:g}.{most} A larger `epsilon` accepts less."
        )
        notes.add("no-effective-depth", text)
        return
    site = next(reading for reading in readings if reading.index == depth)
    low = [k for k, value in enumerate(site.ncc_class_train or ()) if value is not None and value < _LOW]
    if low:
        worst = min(low, key=lambda k: (site.ncc_class_train or ())[k] or 0)
        text = (
            f"At the effective depth (`{site.name}`) nearest centers find fewer than {100 * _LOW:g} % of {len(low)} of "
            f"{len(site.ncc_class_train or ())} classes; of class {worst} "
            f"{100 * ((site.ncc_class_train or ())[worst] or 0):.0f} %. The depth speaks for the other classes."
        )
        notes.add("low-classes", text)


def note_no_picture(notes: Notes, *, pictured: bool, wanted: bool) -> None:
    """No samples for plots: rows of parts of the data have no number where a sample has several."""
    if wanted and not pictured:
        text = "No samples were kept for plots (`coordinates`): the data were read in parts, and each sample has several rows."
        notes.add("no-coordinates", text)


def note_classifier(
    notes: Notes, classes: int, site: str, reduction: Reduction, *, head: str | None, stored: bool = False
) -> None:
    """Why there is no NC3 and NC4."""
    if stored:
        text = "Stored features come without their network: its accuracy, its margins, NC3 and NC4 are not known."
    elif reduction.components is not None:
        text = f"`{reduction.name}` changes the features that the classifier reads, so NC3 and NC4 do not exist."
    elif head is None:
        text = f"No linear layer gives {classes} outputs, so NC3 and NC4 do not exist."
    else:
        text = (
            f"The classifier `{head}` does not read the last site `{site}` directly, so NC3 and NC4 do not exist; to have them, "
            f"name what it reads, `{head}:in`, among `sites`."
        )
    notes.add("no-classifier", text)

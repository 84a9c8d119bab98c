"""Cell: one training, or one solved problem, with everything that can change its numbers; flat, frozen, JSON in and out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, fields, replace
from functools import cache
from typing import Any, Literal, Self, final, get_args

from equisep.errors import InputError, did_you_mean
from equisep.files import encode
from equisep.results.codec import decode
from equisep.results.readings import former_reading, reading_named

Kind = Literal["train", "staged", "solve"]
Problem = Literal["", "balanced", "qnorm", "minority", "two-layer"]
_FORMER = {"mixed": "batch"}  # readings under the names that keys were made of from the beginning


class Cell:
    """What one run is made of: a `Training` or a `Solve`; `Cell(…)` makes the one that `kind` names, a training unless told.

    Both are flat: their fields stand in one dictionary, under the names that keys, stores and records have always used.
    """

    __slots__ = ()

    def __new__(cls, **given: Any) -> Self:
        """The record of the kind asked for; an unknown field is refused with its near matches."""
        own = cls if cls is not Cell else _class_of(given)
        _refuse_unknown(given, own)
        return object.__new__(own)  # type: ignore[return-value]  # of a subclass, whose `__init__` Python then calls

    def with_(self, **changes: Any) -> Self:
        """The cell with some fields changed; an unknown one is refused with its near matches."""
        _refuse_unknown(changes, type(self))
        return replace(self, **changes)  # type: ignore[type-var]

    @property
    def key(self) -> str:
        """The name of this cell and of no other: SHA-256 of the fields that differ from their defaults.

        Defaults never change, and a field added later keeps every older key.
        """
        return hashlib.sha256(json.dumps(self.own_fields(), sort_keys=True).encode()).hexdigest()[:32]

    def own_fields(self) -> dict[str, Any]:
        """The fields that differ from their defaults, as `to_dict` has them; a solved problem always says that it is one."""
        return {name: value for name, value in self.to_dict().items() if value != field_defaults()[name]}

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, every field; readings under their former names, which keys are made of."""
        content = dict(encode(self))
        if "readings" in content:
            content["modes"] = [_FORMER.get(name, name) for name in content.pop("readings")]
        return content

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Cell:
        """The cell that `to_dict` wrote; fields left out have their defaults, those of the other kind are left out."""
        own = _class_of(content)
        for name in content:
            if name not in field_defaults():
                _refuse_unknown({name: None}, own)
        given = {name: value for name, value in content.items() if name in field_names(own)}
        if own is Training and "modes" in content:
            modes = content["modes"]
            given["readings"] = [former_reading(mode) for mode in modes] if isinstance(modes, list) else modes
        cell = decode(own, given, where="cell")
        assert isinstance(cell, Cell)
        return cell


@dataclass(frozen=True, slots=True)
class Stages:
    """A training in two or three stages; epochs, layers and classes as `Training` explains them."""

    first_epochs: int
    first_depth: int
    first_trains: int
    first_classes: tuple[int, ...] | None
    first_schedule: int
    keep: int
    renew: bool
    leaky: bool
    last_epochs: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Training(Cell):
    """The settings of one training; the defaults are those of He & Su 2023.

    data            a name of `equisep.data.DATA_NAMES`, an npz of a data folder, or a table of sentences.
    stands_for      the paper's data set, where `data` stands in for it.
    preparation     a name of `equisep.data.PREPARATIONS`; `none`: as stored, bytes divided by 255.
    per_class, sizes      samples drawn of each class by `data_seed`; neither: all. `classes`: of these alone, numbered anew.
    test_per_class  of the test set; None is the whole one.
    validation      samples per class held out of training: drawn by `data_seed` beyond those that are trained on, with as
                    many changed labels.
    second, second_noise  a second sample of so many per class, disjoint from the first, joined to it with this share of
                    its labels replaced; `second_read` only shows it to the trained network (GG22, the comparative bound).
    copies          how many times the samples of each class stand in an epoch (oversampling by resampling); None: once each.
                    What is read of training data is read of the copies too. `rare_classes` then says which are the minority.
    network, …      a name of `equisep.models.MODELS`, `bert`, or any model of `equisep.models.load_model`, as `./mine.py:net`,
                    a function that hears of `inputs`, `colors`, `size` and `classes` if it asks for them; an option that is
                    None is the network's own. `activation`: whether there are ReLUs, or one of `torch.nn` in their place: `gelu`.
    optimizer       sgd, momentum or adam, or any of `torch.optim`: `AdamW`, `rmsprop,alpha=0.9`.
    init            of weights: empty, as torch draws them; `he`: N(0, 2/inputs) for every matrix, biases 0 (He et al. 2015).
    network_for     the paper's network, where `network` stands in for it.
    class_weights   factors of the loss by class, the sum over a batch divided by its size. `loss`: a rule that makes them of
                    the class sizes, for torch's `CrossEntropyLoss(weight=…)`; see `equisep.runs.runners.cells`.
                    `fixed_etf`: the classifier is a simplex ETF of unit rows, drawn by `seed`, without bias, and does not
                    learn (Yang et al. 2022).
    first_*, keep, renew, leaky, last_epochs      `kind="staged"`, see `stages`. Stage 1: `first_epochs` of layers 1 …
                    `first_trains` (0: all) of a network of `first_depth` layers (0: `depth`), on `first_classes`, on the
                    schedule of a training of `first_schedule` epochs (0: at a constant rate). Stage 2: `epochs` of the
                    layers above `keep`; the lower ones come from stage 1 and are fixed; the upper ones do too unless
                    `renew`. Stage 3: `last_epochs` of all layers. `leaky`: see `equisep.training.Stage`.
    read_epochs     epochs at which sites are read, beside the last one; `readings` (`eval`, `mixed`, `drawn`, all of one
                    training; `modes` formerly), `grains`, `reductions`: how. `weightings`: of D after the last epoch; see
                    `equisep.separation.Convention`.
    course          every so many epochs the law, loss, accuracies and nearest centers of the last layer are read too, and kept
                    as arrays over epochs (`course_epoch`, `course_rho`, …): see `equisep.figures.course`. With
                    `classifier`, NC1 and the mean cosine of the minority's classifier rows too. 0: not.
    test_sites      whether the sites are read on test data too. `class_wise`: D_k. `classifier`: the cosines of the
                    classifier's rows and of the class means, margins, energies, and accuracy by class;
                    `rare_classes`: those, by number, that count as minority there; None: those with fewer samples than
                    others. `coordinates`: samples kept as two principal components per site. `noise`: shares of each weight
                    matrix's norm added to it as Gaussian noise, `noise_draws` times each, after training.
    """

    kind: Literal["train", "staged"] = "train"
    data: str = "fashion-mnist"
    stands_for: str = ""
    preparation: str = "he2023-10x10"
    per_class: int | None = 100
    sizes: tuple[int, ...] | None = None
    classes: tuple[int, ...] | None = None
    test_per_class: int | None = None
    label_noise: float = 0.0
    second: int = 0
    second_noise: float = 0.0
    second_read: bool = False
    augment: bool = False
    network: str = "fnn"
    depth: int | None = 8
    width: int | None = 100
    widths: tuple[int, ...] | None = None
    norm: bool = True
    activation: bool | str = True
    channels: int | None = None
    kernel: int | None = None
    pooling: bool | None = None
    width_multiplier: float = 1.0
    optimizer: str = "adam"
    rate: float = 1e-3
    epochs: int = 600
    batch_size: int = 128
    weight_decay: float = 5e-4
    momentum: float = 0.9
    milestones: tuple[float, ...] = (1 / 3, 2 / 3)
    factor: float = 0.1
    class_weights: tuple[float, ...] | None = None
    seed: int = 0
    data_seed: int = 0
    dtype: str = "float32"
    tf32: bool = False
    first_epochs: int = 0
    first_depth: int = 0
    first_trains: int = 0
    first_classes: tuple[int, ...] | None = None
    first_schedule: int = 0
    keep: int = 0
    renew: bool = False
    leaky: bool = False
    last_epochs: int = 0
    read_epochs: tuple[int, ...] = ()
    readings: tuple[str, ...] = ("mixed", "eval")
    grains: tuple[str, ...] = ("layers",)
    reductions: tuple[str, ...] = ("flatten",)
    weightings: tuple[str, ...] = ("sample",)
    test_sites: bool = False
    class_wise: bool = False
    classifier: bool = False
    coordinates: int = 0
    noise: tuple[float, ...] = ()
    noise_draws: int = 0
    loss: str = ""
    fixed_etf: bool = False
    rare_classes: tuple[int, ...] | None = None
    validation: int = 0
    course: int = 0
    init: Literal["", "he"] = ""
    copies: tuple[int, ...] | None = None
    network_for: str = ""
    modes: InitVar[tuple[str, ...] | None] = None

    def __post_init__(self, modes: tuple[str, ...] | None) -> None:
        _check_name(self, "kind", ("train", "staged"))
        if self.init:
            _check_name(self, "init", ("he",))
        _normalize(self)
        read = [reading_named(name) for name in self.readings]
        if modes is not None:
            read = [reading_named(None, mode=mode) for mode in modes]
        object.__setattr__(self, "readings", tuple(read))

    @property
    def stages(self) -> Stages | None:
        """The stages of a training of kind `staged`."""
        if self.kind != "staged":
            return None
        return Stages(**{entry.name: getattr(self, entry.name) for entry in fields(Stages)})

    @property
    def takes_all(self) -> bool:
        """Whether it trains on all samples that its data set has, and draws none of them."""
        return self.per_class is None and self.sizes is None

    @property
    def of_paper(self) -> Training:
        """The cell as the paper has it: without what stands in for its data or its network."""
        own = {"data": self.stands_for or self.data, "network": self.network_for or self.network}
        return self.with_(stands_for="", network_for="", **own)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Solve(Cell):
    """A Layer-Peeled problem of `majority` and `minority` classes, solved: see `equisep.peeled`.

    hidden_energy, nonlinearity     of the problem `two-layer`: E_1, and `linear` or `relu`.
    """

    kind: Literal["solve"] = "solve"
    problem: Problem = ""
    majority: int = 0
    minority: int = 0
    dimension: int = 0
    power: float = 2.0
    feature_energy: float = 5.0
    weight_energy: float = 1.0
    ratios: tuple[float, ...] = ()
    starts: int = 0
    seed: int = 0
    hidden_energy: float = 1.0
    nonlinearity: str = "linear"

    def __post_init__(self) -> None:
        _check_name(self, "kind", ("solve",))
        _check_name(self, "problem", get_args(Problem)[1:])
        _normalize(self)


def trainings(cells: Iterable[Cell]) -> list[Training]:
    """Those that are trained."""
    return [cell for cell in cells if isinstance(cell, Training)]


def field_names(kind: type[Cell]) -> tuple[str, ...]:
    """The fields of trainings, or of solved problems."""
    return tuple(entry.name for entry in fields(kind))  # type: ignore[arg-type]


@cache
def field_defaults() -> Mapping[str, Any]:
    """Every field of both kinds as `to_dict` has it, with the value that no key is made of."""
    solved = {entry.name: encode(entry.default) for entry in fields(Solve)}
    return {**solved, **Training().to_dict()}


def _class_of(given: Mapping[str, Any]) -> type[Training] | type[Solve]:
    """The kind of cell that some fields are of."""
    kind = given.get("kind", "solve" if given.get("problem") else "train")
    _check_known("kind", kind, get_args(Kind))
    return Solve if kind == "solve" else Training


def _refuse_unknown(given: Mapping[str, Any], kind: type[Cell]) -> None:
    known = field_names(kind)
    for name in given:
        if name in known or (name == "modes" and kind is Training):
            continue
        if name in (*field_names(Training), *field_names(Solve)):
            whose, other = ("solved", "trainings") if kind is Solve else ("trained", "solved problems")
            raise InputError(f"A cell that is {whose} has no field `{name}`, which {other} have. Leave it out.")
        raise InputError(f"A cell has no field `{name}`.{did_you_mean(name, known)} It has {', '.join(known)}.")


def _check_name(cell: Cell, name: str, known: Sequence[str]) -> None:
    _check_known(name, getattr(cell, name), known)


def _check_known(name: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        raise InputError(
            f"A cell's `{name}` was {value!r}.{did_you_mean(str(value), known)} Known: {', '.join(known)}."
        )


def _normalize(cell: Training | Solve) -> None:
    """1 and 1.0 are one rate and must have one key, also after a journey through JSON."""
    for entry in fields(cell):
        value, kind = getattr(cell, entry.name), str(entry.type)
        if "float" in kind and type(value) is int:
            object.__setattr__(cell, entry.name, float(value))
        elif "float" in kind and isinstance(value, tuple | list):
            object.__setattr__(cell, entry.name, tuple(float(each) if type(each) is int else each for each in value))
        elif kind in ("int", "int | None") and isinstance(value, float):
            if not value.is_integer():
                raise InputError(f"A cell's `{entry.name}` is a whole number; found {value}.")
            object.__setattr__(cell, entry.name, int(value))

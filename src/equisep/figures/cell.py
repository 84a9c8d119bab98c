"""Cell: one training, or one solved problem, with everything that can change its numbers; flat, frozen, JSON in and out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Literal, get_args

from equisep.errors import InputError, did_you_mean
from equisep.files import encode
from equisep.results.codec import decode

Kind = Literal["train", "staged", "solve"]
Problem = Literal["", "balanced", "qnorm", "minority"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The settings of one training or one solved problem; the defaults are those of He & Su 2023.

    data            a name of `equisep.data.DATA_NAMES`, an npz of a data folder, or a table of sentences.
    stands_for      the paper's data set, where `data` stands in for it.
    preparation     a name of `equisep.data.PREPARATIONS`.
    per_class, sizes      samples drawn of each class by `data_seed`; neither: all. `classes`: of these alone, numbered anew.
    test_per_class  of the test set; None is the whole one.
    second, second_noise  a second sample of so many a class, disjoint from the first, joined to it with this share of
                    its labels replaced; `second_read` only shows it to the trained network (GG22, the comparative bound).
    network, …      a name of `equisep.models.MODELS`, or `bert` or `hf:…`; an option that is None is the network's own.
    first_*, keep, renew, leaky, last_epochs      `kind="staged"`. Stage 1: `first_epochs` of layers 1 … `first_trains`
                    (0: all) of a network of `first_depth` layers (0: `depth`), on `first_classes`, on the schedule of
                    a training of `first_schedule` epochs (0: at a constant rate). Stage 2: `epochs` of the layers above
                    `keep`; the lower ones come from stage 1 and are fixed; the upper ones do too unless `renew`.
                    Stage 3: `last_epochs` of all layers. `leaky`: see `equisep.training.Stage`.
    read_epochs     epochs at which sites are read, beside the last one; `modes`, `grains`, `reductions`: how.
                    `weightings`: of D after the last epoch; see `equisep.separation.Convention`.
    test_sites      whether the sites are read on test data too. `class_wise`: D_k. `classifier`: the cosines of the
                    classifier's rows and of the class means, and accuracy by class. `coordinates`: samples kept as two
                    principal components a site. `noise`: shares of each weight matrix's norm added to it as Gaussian
                    noise, `noise_draws` times each, after training.
    problem, …      `kind="solve"`: a Layer-Peeled problem of `majority` and `minority` classes; see `equisep.peeled`.
    """

    kind: Kind = "train"
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
    activation: bool = True
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
    modes: tuple[str, ...] = ("batch", "eval")
    grains: tuple[str, ...] = ("layers",)
    reductions: tuple[str, ...] = ("flatten",)
    weightings: tuple[str, ...] = ("sample",)
    test_sites: bool = False
    class_wise: bool = False
    classifier: bool = False
    coordinates: int = 0
    noise: tuple[float, ...] = ()
    noise_draws: int = 0
    problem: Problem = ""
    majority: int = 0
    minority: int = 0
    dimension: int = 0
    power: float = 2.0
    feature_energy: float = 5.0
    weight_energy: float = 1.0
    ratios: tuple[float, ...] = ()
    starts: int = 0

    def __new__(cls, **given: Any) -> Cell:
        """Refuses an unknown field with its near matches, before the dataclass does without."""
        _refuse_unknown(given)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        for name, known in (("kind", get_args(Kind)), ("problem", get_args(Problem))):
            value = getattr(self, name)
            if value not in known:
                raise InputError(
                    f"A cell's `{name}` was {value!r}.{did_you_mean(str(value), known)} Known: {', '.join(known)}."
                )
        # 1 and 1.0 are one rate and must have one key, also after a journey through JSON
        for name in _real_fields():
            value = getattr(self, name)
            if type(value) is int:
                object.__setattr__(self, name, float(value))
            elif isinstance(value, tuple | list):
                object.__setattr__(self, name, tuple(float(each) if type(each) is int else each for each in value))
        for name in _whole_fields():
            value = getattr(self, name)
            if isinstance(value, float) and value.is_integer():
                object.__setattr__(self, name, int(value))
            elif isinstance(value, float):
                raise InputError(f"A cell's `{name}` is a whole number; found {value}.")

    def with_(self, **changes: Any) -> Cell:
        """The cell with some fields changed; an unknown one is refused with its near matches."""
        _refuse_unknown(changes)
        return replace(self, **changes)

    @property
    def key(self) -> str:
        """The name of this cell and of no other: SHA-256 of the fields that differ from their defaults.

        Defaults never change, and a field added later keeps every older key.
        """
        own = {name: value for name, value in self.to_dict().items() if value != _defaults()[name]}
        return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:32]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, every field."""
        return dict(encode(self))

    @staticmethod
    def from_dict(content: Mapping[str, Any], *, where: str = "cell") -> Cell:
        """The cell that `to_dict` wrote; fields left out have their defaults."""
        _refuse_unknown(content)
        cell = decode(Cell, dict(content), where=where)
        assert isinstance(cell, Cell)
        return cell


CELL_FIELDS: tuple[str, ...] = tuple(entry.name for entry in fields(Cell))


@cache
def _real_fields() -> tuple[str, ...]:
    return tuple(entry.name for entry in fields(Cell) if "float" in str(entry.type))


@cache
def _whole_fields() -> tuple[str, ...]:
    return tuple(entry.name for entry in fields(Cell) if str(entry.type) in ("int", "int | None"))


@cache
def _defaults() -> Mapping[str, Any]:
    return Cell().to_dict()


def _refuse_unknown(changes: Mapping[str, Any]) -> None:
    for name in changes:
        if name not in CELL_FIELDS:
            raise InputError(
                f"A cell has no field `{name}`.{did_you_mean(name, CELL_FIELDS)} It has {', '.join(CELL_FIELDS)}."
            )

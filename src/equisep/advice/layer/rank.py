"""Which of several models has the features for my labels: each at its own best layer, on the same test samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import torch
from torch import nn

from equisep.advice.layer.choose import DRAWS, SHOTS, ReadModel, paired, read_model
from equisep.advice.layer.records import ModelPair, RankAdvice
from equisep.advice.paired_hits import significant_by_holm
from equisep.errors import DataError, InputError
from equisep.progress import Progress, Watched, callback, watched
from equisep.results import Note


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model by name, with the data as it takes them: two text models have a tokenizer each, and the same sentences."""

    name: str
    model: nn.Module
    train: Any
    test: Any = None


@watched
def rank_models(
    candidates: Sequence[Candidate],
    *,
    shots: Sequence[int] = SHOTS,
    draws: int = DRAWS,
    memory: int | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    progress: Watched = None,
) -> RankAdvice:
    """Several models on one data set, the best first; each at the layer that its training data chose.

    Every two are compared on the same test samples: the difference of their accuracies with an interval, and whether it can be
    told from chance, over all pairs together. `options` are further ones of `choose_layer`.

    >>> import torch, equisep
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> _ = torch.manual_seed(0)
    >>> model = equisep.Fnn(depth=4, width=16, inputs=8, classes=3)
    >>> train, test = (x[:60], y[:60]), (x[60:], y[60:])
    >>> from equisep.advice.layer import Candidate, rank_models
    >>> other = equisep.Fnn(depth=2, width=16, inputs=8, classes=3)
    >>> ranking = rank_models([Candidate("deep", model, train, test), Candidate("shallow", other, train, test)], draws=5)
    >>> ranking.sentence.endswith(".")
    True
    """
    progress = callback(progress)
    names = [each.name for each in candidates]
    if len(names) < 2 or len(set(names)) < len(names):
        raise InputError(f"`rank` needs at least two models of different names; found {', '.join(names) or 'none'}.")
    if len({each.test is None for each in candidates}) > 1:
        raise InputError("`rank` needs test data for all models, or for none.")
    read: dict[str, ReadModel] = {}
    for each in candidates:
        read[each.name] = read_model(
            each.model, each.train, each.test, shots=shots, draws=draws, memory=memory, seed=seed, name=each.name,
            progress=_named(progress, each.name), **(options or {}),
        )  # fmt: skip
        first = read[names[0]]
        if not torch.equal(first.labels, read[each.name].labels):
            raise DataError(
                f"`{names[0]}` and `{each.name}` were not read on the same test samples: their labels differ. Pass both the same "
                "data, in the same order."
            )
    order = sorted(names, key=lambda name: -read[name].advice.chosen.accuracy)
    couples = list(combinations(order, 2))
    hits = [paired(read[a].hits, read[b].hits) for a, b in couples]
    apart = significant_by_holm([each.p for each in hits])
    pairs = tuple(ModelPair(a, b, each, told) for (a, b), each, told in zip(couples, hits, apart, strict=True))
    notes = dict.fromkeys(
        Note(note.code, f"{name}: {note.text}", note.site) for name in order for note in read[name].advice.notes
    )
    fitted = [_fitted(name) for name in order if read[name].advice.fitted]
    return RankAdvice(tuple(read[name].advice for name in order), pairs, (*fitted, *notes))


def _named(progress: Progress, name: str) -> Progress:
    """The progress of one model among several."""
    return lambda what, done, total: progress(f"{name}: {what}", done, total)


def _fitted(name: str) -> Note:
    text = (
        f"{name}: the probe names training samples, left out, far more often than held-out ones, as where a model was trained on "
        "them; another layer of it may be better. Rank on samples that no model was trained on."
    )
    return Note("fitted", text)

"""Train the top of a model on new data, for several numbers of layers kept fixed, and read how bottom and top then separate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor, nn

from equisep.advice.paired_hits import LEAST_SEEDS
from equisep.advice.standings import Hits, select
from equisep.advice.transfer.answer import Start, TransferAnswer, TransferTrial, balanced_between
from equisep.advice.transfer.freeze import Order, Transferred
from equisep.data.feed import Feed, Unpack
from equisep.errors import DataError, DivergenceError, InputError
from equisep.labels import check_range
from equisep.measuring.measure import home_of, measure, placed, plan_for
from equisep.measuring.notes import Notes
from equisep.measuring.request import MEMORY, Options
from equisep.progress import Progress, silent
from equisep.taps import (
    INPUT,
    Reduction,
    ReductionLike,
    Sites,
    inner,
    random_state_kept,
    refuse_scripted,
    refuse_uninitialized,
    site_record,
)
from equisep.training.loop import train as fit
from equisep.training.recipe import Recipe

MOST_TRIED = 6  # numbers of kept layers that are tried unless told
READ_AT_ONCE = 256


def transfer_model(
    model: nn.Module,
    train: Any,
    test: Any,
    *,
    keep: Sequence[int] | None = None,
    start: Start = "pretrained",
    seeds: int = 5,
    seed: int = 0,
    epochs: int = 20,
    rate: float = 1e-3,
    batch_size: int = 128,
    weight_decay: float = 5e-4,
    margin: float | None = None,
    level: float = 0.95,
    sites: Sites = "auto",
    reduction: ReductionLike = "auto",
    unpack: Unpack | None = None,
    device: str | torch.device | None = None,
    name: str | None = None,
    progress: Progress = silent,
) -> TransferAnswer:
    """How many layers of a trained model to keep fixed on new data: test accuracy, and the loads of bottom and top.

    For each number of kept layers a copy of the model gets a new classifier for the classes of `train`, the layers behind the
    kept ones are trained with Adam (`start`: on from their weights, `pretrained`, or from `new` ones), and D is read layer by
    layer on the new training data in `eval`. The *load* of a layer is ln D_{l−1} − ln D_l. He & Su 2023 suggest, without an
    experiment, to part a network where bottom and top improve the separation alike; the answer says where that is and what test
    accuracy is there. It recommends the greatest number of kept layers shown to lie within `margin` (one point of test accuracy,
    or a fifth of the errors) of every other, over seeds and test samples together. The model is left as it is.

    keep     numbers of layers, 0 to L (all but the classifier); by default up to six, evenly spaced.

    >>> import torch, equisep
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> _ = torch.manual_seed(0)
    >>> model = equisep.Fnn(depth=4, width=16, inputs=8, classes=3)
    >>> train, test = (x[:60], y[:60]), (x[60:], y[60:])
    >>> from equisep.advice.transfer import transfer_model
    >>> answer = transfer_model(model, train, test, keep=[0, 2], seeds=3, epochs=1)
    >>> [trial.kept for trial in answer.trials]
    [0, 2]
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"`transfer` needs a torch.nn.Module; found {type(model).__name__}.")
    refuse_scripted(model, asked="transfer")
    refuse_uninitialized(model, asked="transfer")
    _check(start, seeds, level, margin)
    recipe = Recipe(
        optimizer="adam", rate=rate, epochs=epochs, batch_size=batch_size, weight_decay=weight_decay, seed=seed
    )
    how = None if isinstance(reduction, str) and reduction == "auto" else Reduction.of(reduction)
    with placed(model, device), random_state_kept(train, test):
        where, dtype = home_of(model)
        feeds = [
            Feed(data, what=what, device=where, dtype=dtype, unpack=unpack)
            for data, what in ((train, "training"), (test, "test"))
        ]
        notes = Notes()
        (x, y), held_out = (_gathered(feed) for feed in feeds)
        classes = int(y.max()) + 1
        check_range(held_out[1], classes, owner=f"The training data have {classes} classes", where="the test data")
        options = Options(
            sites=site_record(sites), reduction="auto" if how is None else how.name, metrics=("fuzziness",),
            intervals="none", coordinates=0, memory=MEMORY, classes=max(classes, 2),
        )  # fmt: skip
        plan = plan_for(model, feeds[0], None, sites, how, options, notes)
        grain = plan.probe.grains[plan.probe.grain]
        layers = [site for site in grain if site != INPUT]
        order = Order.of(model, feeds[0].first()[0].head(4), plan.probe.calling, layers)
        work = _Work(model, order, layers, (x, y), held_out, classes, start, recipe, sites, reduction)
        tried = _numbers(keep, len(layers))
        rows: list[TransferTrial] = []
        hits: dict[int, Hits] = {}
        for position, kept in enumerate(tried):
            trial, own = work.trial(kept, range(seed, seed + seeds), lambda done: progress(
                "training", position * seeds + done, len(tried) * seeds  # noqa: B023 (called at once)
            ))  # fmt: skip
            rows.append(trial)
            if own is not None:
                hits[position] = own
    answer = TransferAnswer(
        model=name or type(inner(model)).__name__, layers=len(layers), start=start, seeds=seeds, samples=len(y),
        test_samples=len(held_out[1]), epochs=epochs, rate=rate, level=level, trials=tuple(rows), notes=notes.ranked(),
    )  # fmt: skip
    if not hits:
        return answer
    chosen = select(hits, order=sorted(hits, key=lambda index: -rows[index].kept), margin=margin, level=level)
    return replace(
        answer,
        margin=chosen.margin,
        recommended=chosen.recommended,
        best=chosen.best,
        standings=chosen.standings,
        enough=chosen.enough,
        balanced=balanced_between(rows),
    )


def _check(start: str, seeds: int, level: float, margin: float | None) -> None:
    if start not in get_args(Start):
        raise InputError(f"`start` is {' or '.join(get_args(Start))}; found {start!r}.")
    if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < LEAST_SEEDS:
        raise InputError(
            f"`seeds` is how many trainings there are of each choice, {LEAST_SEEDS} or more; found {seeds!r}."
        )
    if not 0 < level < 1:
        raise InputError(f"`level` is the confidence of the answer, between 0 and 1; found {level!r}.")
    if margin is not None and not 0 <= margin < 1:
        raise InputError(f"`margin` is a share of test accuracy, from 0 to below 1; found {margin!r}.")


def _numbers(keep: Sequence[int] | None, layers: int) -> list[int]:
    """The numbers of kept layers, the smallest first."""
    if keep is None:
        spaced = np.linspace(0, layers, min(MOST_TRIED, layers + 1))
        return sorted({round(value) for value in spaced.tolist()})
    bad = [
        number
        for number in keep
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= layers
    ]
    if bad or not keep:
        raise InputError(
            f"`keep` takes numbers of layers from 0 to {layers}, which is all that were found; found {list(keep)}."
        )
    return sorted(set(keep))


def _gathered(feed: Feed) -> tuple[Tensor, Tensor]:
    """All samples and labels as two tensors, which training draws its batches from."""
    parts: list[tuple[Tensor, Tensor]] = []
    for inputs, labels in feed:
        if len(inputs.tensors) != 1 or inputs.main is None:
            raise DataError(
                f"`transfer` trains on samples of one tensor each; the {feed.what} data hold {', '.join(inputs.tensors)}."
            )
        parts.append((inputs.main, labels))
    return torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])


class _Work:
    """Copies of the model trained and read: what does not change from one number of kept layers to the next."""

    def __init__(
        self,
        model: nn.Module,
        order: Order,
        layers: Sequence[str],
        train: tuple[Tensor, Tensor],
        test: tuple[Tensor, Tensor],
        classes: int,
        start: Start,
        recipe: Recipe,
        sites: Sites,
        reduction: ReductionLike,
    ) -> None:
        self.model, self.order, self.layers = model, order, layers
        self.train, self.test, self.classes = train, test, classes
        self.start, self.recipe, self.sites, self.reduction = start, recipe, sites, reduction

    def trial(self, kept: int, seeds: range, told: Any) -> tuple[TransferTrial, Hits | None]:
        """Every seed of one number of kept layers; `hits` are None where a training diverged."""
        site = self.layers[kept - 1] if kept else None
        rows: list[tuple[float, float | None, float | None]] = []
        hits: list[np.ndarray] = []
        diverged = parameters = 0
        for seed in seeds:
            torch.manual_seed(seed)  # new weights come from it; the caller keeps the state
            copy = Transferred(self.model, self.order, keep=site, classes=self.classes, start=self.start)
            parameters = copy.trained
            try:
                fit(copy, *self.train, recipe=replace(self.recipe, seed=seed))
            except DivergenceError:
                diverged += 1
            else:
                rows.append((_share(copy, *self.train), *self._loads(copy, kept)))
                hits.append(_right(copy, *self.test).numpy())
            told(seed - seeds.start + 1)
        trial = TransferTrial(
            kept=kept,
            site=site,
            parameters=parameters,
            accuracy=tuple(row[0] for row in rows),
            accuracy_test=tuple(float(own.mean()) for own in hits),
            bottom=tuple(row[1] for row in rows),
            top=tuple(row[2] for row in rows),
            diverged=diverged,
        )
        return trial, None if diverged else np.stack(hits)

    def _loads(self, copy: Transferred, kept: int) -> tuple[float | None, float | None]:
        """The mean loads of the kept layers and of those behind them, on the new training data."""
        profile = measure(
            copy.model, self.train, sites=self.sites, reduction=self.reduction, metrics=("fuzziness",),
            classes=self.classes, intervals="none", coordinates=0,
        )  # fmt: skip
        values = {reading.name: reading.fuzziness for reading in profile.sites}
        curve = [values.get(INPUT), *(values.get(site) for site in self.layers)]
        logs = [math.log(value) if value is not None and 0 < value < math.inf else None for value in curve]
        first, middle, last = logs[0], logs[kept], logs[-1]
        bottom = None if first is None or middle is None or not kept else (first - middle) / kept
        above = len(self.layers) - kept
        top = None if middle is None or last is None or not above else (middle - last) / above
        return bottom, top


@torch.no_grad()
def _right(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Which samples the model classifies rightly, in `eval`."""
    model.eval()
    parts = [model(part).argmax(dim=1) for part in x.split(READ_AT_ONCE)]
    return (torch.cat(parts) == y).cpu()


def _share(model: nn.Module, x: Tensor, y: Tensor) -> float:
    return float(_right(model, x, y).to(torch.float64).mean())

"""Shorten a network after a layer: every cut on the same test samples, its weights and its time beside the whole network's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, get_args

import torch
from torch import nn

from equisep.advice.cut.answer import NAMED, CutAnswer, CutOption, Head, Whole, judged
from equisep.advice.cut.heads import EarlyExit, one_site
from equisep.advice.cut.layers import JudgedHeads, Layers, Question
from equisep.advice.cut.shorten import (
    WHOLE,
    Example,
    check_other_size,
    median_ratio,
    save_program,
    shortened,
    timed_in_turns,
)
from equisep.advice.paired_hits import PairedLoss
from equisep.data.feed import Feed, Unpack
from equisep.devices import usable_device
from equisep.display import brief
from equisep.errors import InputError, ModelError, did_you_mean
from equisep.law.effective_depth import PERFECT
from equisep.measuring.measure import home_of
from equisep.measuring.notes import Notes
from equisep.measuring.plan import Plan
from equisep.measuring.request import MEMORY, Options
from equisep.progress import Watched, callback, watched
from equisep.results import Note
from equisep.taps import (
    Reduction,
    ReductionLike,
    Sites,
    eager,
    inner,
    random_state_kept,
    reading_mode,
    refuse_scripted,
    refuse_uninitialized,
    site_record,
)

if TYPE_CHECKING:
    from torch import fx

TIMED = 16  # samples of a batch that is timed, where it has as many
TRACED = 4  # samples that the export sees: their number stays open


@brief
@dataclass(frozen=True, slots=True)
class Cut:
    """The answer, and the shorter networks behind it."""

    answer: CutAnswer
    exits: Mapping[str, EarlyExit]
    graphs: Mapping[str, fx.GraphModule]
    example: Example

    def short(self, after: str | None = None) -> fx.GraphModule:
        """The network ended after a layer, the recommended one unless told, as a graph that can be exported."""
        site = self._site(after)
        if self.answer.stopped is not None:
            raise ModelError(self.answer.stopped)
        return self.graphs[site]

    def early_exit(self, after: str | None = None) -> EarlyExit:
        """The same in the model's own code, ended by an exception: also for models that cannot be exported."""
        return self.exits[self._site(after)]

    def save(self, path: str | Path, after: str | None = None) -> Path:
        """Write `short(after)`: `torch.export.load(path).module()` is that network again."""
        short, target = self.short(after), Path(path)
        if target.suffix != ".pt2":
            raise InputError(f"An exported network is saved as .pt2; found `{target}`.")
        fixed = save_program(short, self.example, target)
        if fixed:
            raise ModelError(
                f"`{target}` was written, but takes batches of {len(self.example.tensors[0])} samples alone: the model's code "
                f"fixes the size of `{fixed[0]}`."
            )
        return target

    def _site(self, after: str | None) -> str:
        site = self.answer.chosen if after is None else after
        if site is None:
            raise InputError(f"{self.answer.sentence} To shorten it all the same, name a layer: `after=`.")
        if site not in self.exits:
            raise InputError(f"No cut was made after `{site}`.{did_you_mean(site, self.exits)} Name it as `after=`.")
        return site


@watched
def cut_model(
    model: nn.Module,
    train: Any,
    test: Any,
    *,
    after: str | None = None,
    head: Head = "centers",
    within: float = 1.0,
    level: float = 0.95,
    sites: Sites = "auto",
    reduction: ReductionLike = "auto",
    classes: int | None = None,
    epsilon: float = PERFECT,
    memory: int | None = None,
    unpack: Unpack | None = None,
    device: str | torch.device | None = None,
    name: str | None = None,
    progress: Watched = None,
) -> Cut:
    """Shorten a network after a layer, or say that it has no redundancy.

    train, test    as `equisep.measure` takes them: heads come from the training data, accuracy from the test data.
    after          one layer to cut after. By default all are looked at, and the earliest is recommended from which on every cut
                   is shown to lose at most `within` points of test accuracy, by one-sided paired bounds at `level`.
    head           `centers`, the nearest class mean of the training features, or `linear`, a ridge regression onto the classes
                   in closed form, its penalty chosen by generalized cross-validation. Neither is trained by steps.
    sites, reduction, classes, epsilon, memory, unpack     as in `measure`; features must be one row a sample.
    device         cut a copy of the model there: graphs run, and are saved, for the device that they were made on.

    The model is read in `eval`, and left as it was. Where torch.export cannot take the model, `answer.stopped` says which module
    stopped it; `Cut.early_exit` ends its forward pass all the same.

    >>> import torch, equisep
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> _ = torch.manual_seed(0)
    >>> model = equisep.Fnn(depth=4, width=16, inputs=8, classes=3)
    >>> train, test = (x[:60], y[:60]), (x[60:], y[60:])
    >>> from equisep.advice.cut import cut_model
    >>> cut = cut_model(model, train, test, after="blocks.1")
    >>> tuple(cut.short()(x[:5]).shape)
    (5, 3)
    >>> cut.save("short.pt2")  # torch.export.load reads it without the model's code
    PosixPath('short.pt2')
    """
    progress = callback(progress)
    _check(model, head, within, level)
    how = None if isinstance(reduction, str) and reduction == "auto" else Reduction.of(reduction)
    options = Options(
        sites=site_record(sites),
        reduction="auto" if how is None else how.name,
        metrics=("ncc",),
        classes=classes,
        epsilon=epsilon,
        level=level,
        intervals="none",
        coordinates=0,
        memory=MEMORY if memory is None else memory,
    )
    site = None if after is None else one_site(model, after)
    model = _on_device(model, device)
    with random_state_kept(train, test):
        where, dtype = home_of(model)
        feeds = [
            Feed(data, what=what, device=where, dtype=dtype, unpack=unpack)
            for data, what in ((train, "training"), (test, "test"))
        ]
        question = Question(model, feeds[0], feeds[1], options, how, Notes(), progress)
        layers, plan = question.plans(sites, site)
        heads = question.judged_heads(plan, head, whole=site is None)
        cuts = _options(heads, layers, level)
        judgment = judged(cuts, layers=len(layers.names), within=within / 100, asked=site is not None)
        named = (judgment.site, judgment.perhaps)
        shorter = _Shorter.of(question, plan, heads, _shown(cuts, heads.depth, named))
        answer = CutAnswer(
            model=name or type(inner(model)).__name__,
            head=head,
            reduction=plan.reduction.name,
            layers=len(layers.names),
            grain=layers.grain,
            asked=site,
            within=float(within),
            level=level,
            whole=shorter.whole(float(heads.network.double().mean())),
            options=shorter.measured,
            verdict=judgment.verdict,
            chosen=judgment.site,
            perhaps=judgment.perhaps,
            effective_depth=heads.depth,
            baseline="network" if heads.scored else "last layer",
            mode="graph" if WHOLE in shorter.graphs else "eager",
            batch=shorter.batch,
            rounds=len(shorter.seconds[WHOLE]),
            device=str(where),
            threads=torch.get_num_threads(),
            first=cuts[0].index or 1,
            stopped=shorter.stopped,
            notes=_notes(question, heads),
        )
        return Cut(answer, shorter.exits, shorter.graphs, shorter.example)


def _check(model: object, head: str, within: float, level: float) -> None:
    if not isinstance(model, nn.Module):
        raise InputError(f"`cut` needs a torch.nn.Module; found {type(model).__name__}.")
    refuse_scripted(model, asked="cut")
    refuse_uninitialized(model, asked="cut")
    if head not in get_args(Head):
        known = get_args(Head)
        raise InputError(f"No head `{head}`.{did_you_mean(str(head), known)} Known: {', '.join(known)}.")
    if isinstance(within, bool) or not isinstance(within, int | float) or not 0 <= within < 100:
        raise InputError(f"`within` is points of test accuracy, 0 or more and below 100; found {within!r}.")
    if not 0.5 < level < 1:
        raise InputError(f"`level` is the confidence of a one-sided bound, above 0.5 and below 1; found {level!r}.")


def _on_device(model: nn.Module, device: str | torch.device | None) -> nn.Module:
    """The model, or a copy of it on another device: a graph is bound to the device on which it was made."""
    home = home_of(model)[0]
    there = home if device is None else usable_device(device, asked="cut")
    if there == home:
        return model
    try:
        return deepcopy(model).to(there)
    except RuntimeError as error:
        raise ModelError(
            f"`{type(inner(model)).__name__}` could not be copied to {there}: {error} Move it there, and leave `device` out."
        ) from error


def _options(heads: JudgedHeads, layers: Layers, level: float) -> list[CutOption]:
    """Every cut with what it loses."""
    n, network = len(heads.network), heads.network
    options = []
    for site, right in heads.right.items():
        lost, gained = int((network & ~right).sum()), int((~network & right).sum())
        loss = PairedLoss.of(n, lost=lost, gained=gained, level=level)
        options.append(CutOption(site, layers.number(site), int(right.sum()) / n, heads.ncc_train[site], loss))
    return options


def _shown(options: Sequence[CutOption], depth: int | None, named: Sequence[str | None]) -> list[CutOption]:
    """The cuts from the effective depth on, or from one that the answer names where it is earlier, and the last few at least.

    All, where there is no effective depth.
    """
    starts = [position for position, option in enumerate(options) if option.site in named]
    starts += [position for position, option in enumerate(options) if option.index == depth]
    first = min(starts, default=0)
    return list(options[min(first, max(0, len(options) - 1 - NAMED)) :])


def _notes(question: Question, heads: JudgedHeads) -> tuple[Note, ...]:
    question.notes.extend(note for feed in (question.train, question.test) for note in feed.notes.values())
    if not heads.scored:
        text = "The network gives no class scores: cuts are compared with the same head at its last layer."
        question.notes.add("no-scores", text)
    return question.notes.ranked()


@dataclass(frozen=True, slots=True)
class _Shorter:
    """The shorter networks, and how long each takes; `stopped` says why there are no graphs of them."""

    model: nn.Module
    options: Sequence[CutOption]
    exits: Mapping[str, EarlyExit]
    graphs: Mapping[str, fx.GraphModule]
    example: Example
    seconds: Mapping[str, list[float]]
    batch: int
    stopped: str | None

    @staticmethod
    def of(question: Question, plan: Plan, heads: JudgedHeads, options: Sequence[CutOption]) -> _Shorter:
        """Export once, then time all in turns: graph beside graph, or eager beside eager."""
        model, inputs = question.model, question.example()
        readouts = {option.site: heads.readouts[option.site] for option in options}
        exits = {site: EarlyExit(model, site, readout) for site, readout in readouts.items()}
        few = Example.of(model, inputs.head(TRACED), plan.probe.calling)
        more = Example.of(model, inputs.head(TIMED), plan.probe.calling)
        graphs: dict[str, fx.GraphModule] = {}
        stopped = None
        with random_state_kept():
            try:
                graphs = shortened(model, readouts, few)
                check_other_size(graphs, model, few, more)
            except ModelError as error:
                graphs, stopped = {}, str(error)
            if WHOLE in graphs:
                runs = {site: _bound(graph, more.tensors, {}) for site, graph in graphs.items()}
            else:
                runs = {site: _bound(module, *more.arguments(more.tensors)) for site, module in exits.items()}
                runs[WHOLE] = _bound(inner(model), *more.arguments(more.tensors))
            with reading_mode(model, "eval"), eager():
                seconds = timed_in_turns(runs, home_of(model)[0], progress=question.progress)
        return _Shorter(model, options, exits, graphs, few, seconds, len(more.tensors[0]), stopped)

    def whole(self, accuracy: float) -> Whole:
        """The network itself."""
        return Whole(accuracy, _parameters(self.model), 1e3 * median(self.seconds[WHOLE]))

    @property
    def measured(self) -> tuple[CutOption, ...]:
        """The cuts with their parameters and times."""
        return tuple(
            replace(
                option,
                parameters=_parameters(self.graphs[option.site]) if option.site in self.graphs else None,
                milliseconds=1e3 * median(self.seconds[option.site]),
                time_share=median_ratio(self.seconds[option.site], self.seconds[WHOLE]),
            )
            for option in self.options
        )


def _bound(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], object]:
    return lambda: module(*args, **kwargs)


def _parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())

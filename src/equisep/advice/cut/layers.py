"""The heads of all layers: made from the training data, judged on the same test samples as the network itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from equisep.advice.cut.answer import Head
from equisep.advice.cut.heads import AffineHead, Readout, centers_head, linear_head
from equisep.data.feed import Feed
from equisep.data.inputs import Inputs
from equisep.errors import DataError, InputError
from equisep.law.effective_depth import effective_depth
from equisep.measuring.measure import home_of, plan_for
from equisep.measuring.notes import Notes
from equisep.measuring.passes import Passes, training_passes
from equisep.measuring.plan import Plan
from equisep.measuring.reading import read
from equisep.measuring.request import Options
from equisep.progress import Progress
from equisep.separation import SiteStatistics
from equisep.separation.stream import ClassScatter
from equisep.shapes import Bool
from equisep.taps import INPUT, Reduction, Rows, Sites, first_call, inner, random_state_kept, scores_of, signature_of
from equisep.taps.reduce import Padding, padding_of
from equisep.taps.tap import by_name

WIDEST = 4096  # features of a site that a linear head reads: the scatter is a matrix of that side


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers of the reported grain, by number from 1; a site that is none of them has no number."""

    names: tuple[str, ...]
    same: Mapping[str, str]
    grain: str

    def number(self, site: str) -> int | None:
        """Which layer a site is."""
        own = self.same.get(site, site)
        return self.names.index(own) + 1 if own in self.names else None


@dataclass(frozen=True, slots=True)
class JudgedHeads:
    """A readout per site in the order of the layers, which test samples each has right, and so the network.

    Where the network gives no class scores (`scored` is False), `network` is the last layer's head. `depth` is the effective
    depth, where all layers were read.
    """

    readouts: Mapping[str, Readout]
    right: Mapping[str, Bool[Tensor, " n"]]
    network: Bool[Tensor, " n"]
    scored: bool
    ncc_train: Mapping[str, float]
    depth: int | None


@dataclass(frozen=True, slots=True)
class Question:
    """The model, its data, and how they are read."""

    model: nn.Module
    train: Feed
    test: Feed
    options: Options
    reduction: Reduction | None
    notes: Notes
    progress: Progress

    def plans(self, sites: Sites, after: str | None) -> tuple[Layers, Plan]:
        """The layers that are counted, and what is read: all of them, or the one asked for."""
        for feed in (self.train, self.test):
            if not feed.again:
                raise DataError(
                    f"`cut` reads its data more than once, and the {feed.what} data end after one reading. Pass a loader."
                )
        first = self._plan(sites, Notes())
        same = first.probe.same
        reported = first.probe.grains[first.probe.grain]
        distinct = tuple(dict.fromkeys(same.get(site, site) for site in reported if site != INPUT))
        layers = Layers(distinct, same, first.probe.grain or "layers")
        plan = self._plan([first_call(site) for site in distinct] if after is None else [after], self.notes)
        if plan.reduction.spreads or plan.reduction.components is not None:
            raise InputError(
                f"`cut` needs one row a sample, and `reduction={plan.reduction.name}` makes others. Use flatten, mean, first "
                "or last."
            )
        return layers, plan

    def _plan(self, sites: Sites, notes: Notes) -> Plan:
        plan = plan_for(self.model, self.train, self.test, sites, self.reduction, self.options, notes)
        self.train.restart()
        self.test.restart()
        return plan

    def judged_heads(self, plan: Plan, head: Head, *, whole: bool) -> JudgedHeads:
        """Every layer's head from the training data, then all of them on the test data in one reading."""
        passes = training_passes(plan, self.train, notes=self.notes, progress=self.progress)
        ncc = {
            site: _ncc(statistics, passes.read.n)
            for site, statistics in zip(plan.probe.sites, passes.sites, strict=True)
            if site != INPUT
        }
        depth = effective_depth([0.0, *ncc.values()], epsilon=self.options.epsilon) if whole else None
        padding = self._padding(plan)
        readouts = {
            site: Readout(site, plan.reduction, padding, made).to(home_of(self.model)[0]).eval()
            for site, made in self._heads(plan, passes, head).items()
        }
        judge = _Judge(plan, readouts)
        with random_state_kept(self.test.source), _heard(inner(self.model), judge.scored):
            read(
                plan, self.test, take=judge.take, start=judge.start, progress=self.progress, what="reading the test data",
                only=_positions(plan, readouts),
            )  # fmt: skip
        right = {site: torch.cat(parts) for site, parts in judge.right.items()}
        scored = len(judge.network) > 0
        network = torch.cat(judge.network) if scored else right[list(readouts)[-1]]
        return JudgedHeads(readouts, right, network, scored, ncc, depth)

    def _heads(self, plan: Plan, passes: Passes[SiteStatistics], head: Head) -> dict[str, AffineHead]:
        """Heads by site: class means come with the training passes, linear heads need a reading of their own."""
        kind = torch.float64 if home_of(self.model)[1] is torch.float64 else torch.float32
        if head == "centers":
            known = zip(plan.probe.sites, passes.sites, strict=True)
            return {site: centers_head(part.spread.centers, kind) for site, part in known if site != INPUT}
        where, probe = home_of(self.model)[0], plan.probe
        scatters = {
            index: ClassScatter.empty(classes=probe.classes, dim=probe.dims[index], device=where)
            for index in self._narrow(plan)
        }
        labels: list[Tensor] = []
        with random_state_kept(self.train.source):
            read(
                plan, self.train, take=lambda index, rows: scatters[index].add(rows.features, labels[-1]),
                start=labels.append, progress=self.progress, what="linear heads", scored=False, only=frozenset(scatters),
            )  # fmt: skip
        return {probe.sites[index]: linear_head(scatter, kind) for index, scatter in scatters.items()}

    def _narrow(self, plan: Plan) -> list[int]:
        """The last sites, as many as have few enough features for a matrix of that side, all of them within the memory."""
        probe, left, kept = plan.probe, self.options.memory, list[int]()
        for index in reversed(plan.sites):
            left -= 8 * probe.dims[index] ** 2
            if probe.sites[index] == INPUT or probe.dims[index] > WIDEST or left < 0:
                break
            kept.insert(0, index)
        if not kept:
            raise InputError(
                f"A linear head reads up to {WIDEST} features and needs their squares as `memory`; the last layer, "
                f"`{probe.sites[-1]}`, gives {probe.dims[-1]}. Pass `reduction='mean'`, more `memory`, or `head='centers'`."
            )
        before = sum(site != INPUT for site in probe.sites[: kept[0]])
        if before:
            text = (
                f"The first {before} layers got no linear head: it is for up to {WIDEST} features, and for as many layers as fit "
                "`memory` with the squares of their widths."
            )
            self.notes.add("wide", text)
        return kept

    def _padding(self, plan: Plan) -> Padding | None:
        if not plan.reduction.masked:
            return None
        args, kwargs = plan.probe.calling.passed(_first(self.train))
        return padding_of(by_name(signature_of(inner(self.model)), args, kwargs))

    def example(self) -> Inputs:
        """The first inputs of the test data, copied: a model that begins in place overwrites them."""
        return _first(self.test).changed(Tensor.clone)


def _first(feed: Feed) -> Inputs:
    with random_state_kept(feed.source):
        inputs, _ = feed.first()
    feed.restart()
    return inputs


def _ncc(site: SiteStatistics, n: int) -> float:
    assert site.nearest is not None
    return int(site.nearest.hits.sum()) / n


def _positions(plan: Plan, sites: Mapping[str, Any]) -> frozenset[int]:
    return frozenset(plan.probe.sites.index(site) for site in sites)


@contextmanager
def _heard(model: nn.Module, hear: Callable[[Any], None]) -> Iterator[None]:
    """Hand on what a model gives."""

    def hook(module: nn.Module, args: Any, output: Any) -> None:
        hear(output)

    handle = model.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


class _Judge:
    """Which test samples every head has right, and the network itself."""

    def __init__(self, plan: Plan, readouts: Mapping[str, Readout]) -> None:
        self.plan, self.readouts = plan, readouts
        self.right: dict[str, list[Tensor]] = {site: [] for site in readouts}
        self.network: list[Tensor] = []
        self.labels = torch.zeros(0, dtype=torch.int64, device="cpu")

    def start(self, labels: Tensor) -> None:
        """A batch begins."""
        self.labels = labels

    def take(self, index: int, rows: Rows) -> None:
        """The features of one site."""
        site = self.plan.probe.sites[index]
        scores = self.readouts[site].head(rows.features)
        self.right[site].append((scores.argmax(dim=1) == self.labels).cpu())

    def scored(self, output: Any) -> None:
        """The model's own scores, where it gives any."""
        scores = scores_of(output, self.plan.probe.classes) if self.plan.probe.scored else None
        if scores is not None:
            self.network.append((scores.argmax(dim=1) == self.labels).cpu())

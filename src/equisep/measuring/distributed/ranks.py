"""Ranks: the processes of a group measure as one, each its own part of the data; every one of them gets the same profile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import reduce
from itertools import zip_longest
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.utils.data import DistributedSampler

from equisep._version import __version__
from equisep.data.feed import Feed
from equisep.data.inputs import Inputs
from equisep.data.ordered import dividing_sampler
from equisep.data.shard import Numbering, Shard
from equisep.errors import DataError, InputError
from equisep.measuring.distributed.control import MEASURE, Call, Control
from equisep.measuring.distributed.division import Division
from equisep.measuring.distributed.lockstep import batches_in_step
from equisep.measuring.distributed.marks import layout_mark, model_mark, refuse_whole_features
from equisep.measuring.distributed.together import ALONE, Batches, Check
from equisep.measuring.fingerprint import Fingerprint
from equisep.results import Profile, Reading
from equisep.separation import Projections, TestSite, TrainSite
from equisep.separation.group_sums import GroupSums, SumFrame
from equisep.separation.pairs.confusion import Confusion
from equisep.separation.site.second_sums import SecondSums, put_second_sums, second_sums
from equisep.shapes import Int
from equisep.taps import is_divided

SHOWN = 4  # samples that a process without any borrows from another, to know the model by
ALIKE = 8  # samples of a first batch that are no coincidence, where two processes have the same
CURE = (
    "In a process group every rank passes its own part of the data: a loader with a DistributedSampler, or "
    "`Subset(data, range(rank, len(data), world))`. To measure in one process, call `measure` before the group is made."
)

ROUNDING = 16  # times √eps by which sums over one site may differ between processes that compute the same

R = TypeVar("R")


class Ranks:
    """How the plan of each process is that of all; see `Together`."""

    partial = True

    def __init__(self, control: Control, model: nn.Module, *, dealt: bool) -> None:
        self.control, self.dealt = control, dealt
        self.lockstep = is_divided(model)
        self.division = Division.of(model, control)
        self._device = next((each.device for each in model.parameters()), torch.device("cpu"))
        self._spare: Inputs | None = None

    @property
    def shard(self) -> Shard:
        """What is read here of data that all processes have."""
        return Shard(self.division.part, self.division.parts)

    # --- before the first reading

    def sample(self, feed: Feed) -> tuple[Inputs, Int[Tensor, " b"]]:
        """The first samples to plan by: one's own, or where a process has none those of another."""
        inputs = labels = None
        if self.dealt:
            inputs, labels = feed.first()
        else:
            try:
                inputs, labels = feed.first()
            except DataError:  # no batch: others may have some
                if feed.batch_sizes:
                    raise
        self._number(feed, labels)
        mark = None if inputs is None or labels is None else Fingerprint().after(inputs, labels.cpu())
        told = None
        if inputs is not None and labels is not None:
            told = inputs.head(SHOWN).changed(Tensor.cpu), labels[:SHOWN].cpu(), mark, len(labels)
        heard = self.control.meet(told)
        having = [rank for rank, each in enumerate(heard) if each is not None]
        if not having:
            raise feed.nothing()
        self.division.refuse_other([None if each is None else each[2] for each in heard], feed.what)
        if not self.dealt:
            self._refuse_same({rank: heard[rank][2] for rank in having if heard[rank][3] >= ALIKE}, feed.what)
        if inputs is None or labels is None:
            inputs, labels = feed.here(*heard[having[0]][:2])
        self._spare = inputs.head(SHOWN)
        return inputs, labels

    def _refuse_same(self, marks: Mapping[int, Any], what: str) -> None:
        """Raise where two processes read the same samples, as all do that pass the whole data; a team takes turns."""
        for members in zip_longest(*self.division.teams):  # who have their turns together
            known: dict[Any, int] = {}
            for rank in members:
                if rank not in marks:
                    continue
                if marks[rank] in known:
                    raise InputError(f"Ranks {known[marks[rank]]} and {rank} read the same {what} data. {CURE}")
                known[marks[rank]] = rank

    def _number(self, feed: Feed, labels: Tensor | None) -> None:
        """What numbers the samples have in the whole: by the sampler that divided them, else one part after the other."""
        if self.dealt:
            return
        part, parts = self.division.part, self.division.parts
        sampler = dividing_sampler(feed.source)
        if isinstance(sampler, DistributedSampler) and (sampler.num_replicas, sampler.rank) == (parts, part):
            n = len(sampler.dataset)  # type: ignore[arg-type]
            own = None if sampler.drop_last else len(range(part, n, parts))
            feed.numbering = Numbering(part, parts, own)
            if sampler.drop_last and n % parts:
                text = f"The sampler of the {feed.what} data drops {n % parts} of {n} samples, so that all ranks have as many."
                feed.note("dropped-samples", text)
        elif hasattr(sampler, "num_replicas"):
            text = (
                f"`{type(sampler).__name__}` divides the {feed.what} data among ranks. Where it repeats samples, so that all "
                "have as many, these count twice."
            )
            feed.note("maybe-padded", text)
        sizes = self.division.heads(self.control.meet(None if feed.numbering.step > 1 else feed.samples))
        if feed.numbering.step > 1:
            return
        if all(size is not None for size in sizes):
            feed.numbering = Numbering(sum(sizes[:part]))
        else:  # not known before they are read: in turns
            feed.numbering = Numbering(part, parts)

    def agree(self, plan: Any, dtype: Any, taken: Mapping[Reading, Reading] | None = None) -> None:
        """Raise where processes differ in what must be one: the model, its sites, classes, types or the options."""
        refuse_whole_features(plan.reduction, plan.options, asked="A process group")
        facts = {
            "version of equisep": __version__,
            "classes": plan.probe.classes,
            "sites": [plan.probe.sites, plan.probe.dims],
            "type of the parameters": str(dtype),
            "model": model_mark(plan.model),
            "options": {**asdict(plan.options), "memory": None},
            "readings, which batches and samples tell apart": dict(taken or {}),
        }
        self.control.same(facts)
        slack = ROUNDING * torch.finfo(dtype or torch.float64).eps ** 0.5
        self.division.refuse_unlike(plan.probe.sites, self.control.meet(plan.probe.sums), slack)

    # --- a reading

    def batches(self, feed: Feed, check: Check) -> Batches:
        """The batches to run here; where the model is spread over processes, as many as the longest part has."""
        if not self.lockstep:
            return ALONE.batches(feed, check)
        assert self._spare is not None
        return batches_in_step(feed, check, self._spare, control=self.control, division=self.division)

    def read(self, read: R, reading: str, what: str) -> R:
        """What all processes read."""
        parts: list[Any] = self.control.meet(read)
        if not self.dealt:
            self._refuse_same({rank: each.order for rank, each in enumerate(parts) if each.n}, what)
        return reduce(type(parts[0]).merge, parts).judged(reading, what)  # type: ignore[no-any-return]

    def any_of(self, sites: Iterable[int]) -> set[int]:
        """The sites that any process named."""
        return set().union(*self.control.meet(set(sites)))

    def gather(self, value: Any) -> list[Any]:
        """What every process has, in their order."""
        return self.control.meet(value)

    def tell(self, error: Exception) -> None:
        """Let the others know of an error, unless it came from one of them."""
        self.control.fail(error)

    def one(self, profile: Profile) -> Profile:
        """The profile of the first process, for all of them."""
        found = self.control.meet(profile if self.control.rank == 0 else None)[0]
        assert isinstance(found, Profile)
        return found

    # --- sums

    def turn(self, sites: Mapping[int, TrainSite | TestSite]) -> None:
        """Add up the first pass of all processes, and turn to the second."""
        metas = self.control.meet({index: _meta(site) for index, site in sites.items()})
        for index, site in sites.items():
            self._add_first(site, [each[index] for each in metas])
            site.turn()
        marks = self.control.meet([float(site.own.main.subspace.directions.sum()) for site in sites.values()])
        if any(mark != marks[0] for mark in marks):
            raise InputError(
                "The ranks found different directions of one set of class means: their processors round differently. Measure "
                "on machines of one kind, or by shards in files (`--shard`), which share one set of directions."
            )

    def _add_first(self, site: TrainSite | TestSite, metas: list[Any]) -> None:
        assert site.sums is not None
        control, known = self.control, [meta for meta in metas if meta is not None]
        if len({meta[:2] for meta in known}) > 1:
            raise InputError(
                f"The ranks disagree on the features of a site: widths and precisions {sorted({meta[:2] for meta in known})}."
            )
        dim, narrow = known[0][:2]
        first = next(rank for rank, meta in enumerate(metas) if meta is not None)
        own, classes = site.sums.frame, site.sums.classes
        device = self._device if own is None else own.shift.device
        shift = torch.zeros(dim, dtype=torch.float64) if own is None or control.rank != first else own.shift
        shift = control.add(shift.clone()).to(device)
        origins, seen = None, torch.zeros(classes, dtype=torch.bool)
        if not narrow:
            here = seen if own is None else own.known.cpu()
            owners = control.least(torch.where(here, control.rank, control.world))
            mine = owners == control.rank
            origins = torch.zeros(classes, dim, dtype=torch.float64)
            if own is not None and own.origins is not None:
                origins[mine] = own.origins.cpu()[mine]
            origins, seen = control.add(origins).to(device), owners < control.world
        frame = SumFrame(shift, origins, seen.to(device), narrow, max(meta[2] for meta in known))
        sums = site.sums.about(frame)
        for table in sums.tables.values():
            table.copy_(control.add(table.clone()))
        sums.eps = frame.eps
        site.sums = sums

    def finish(self, sites: Mapping[int, TrainSite | TestSite]) -> None:
        """Add up the second pass of all processes."""
        sparse = self.control.meet({index: _sparse(second_sums(site).confusion) for index, site in sites.items()})
        for index, site in sites.items():
            own = second_sums(site)
            confusion = own.confusion
            if confusion is not None:
                confusion = reduce(Confusion.merge, [each[index] for each in sparse])
            tables = {name: self.control.add(table.clone()) for name, table in own.tables.items()}
            collapse = None if own.collapse is None else self._projections(own.collapse)
            put_second_sums(site, SecondSums(self._projections(own.projections), tables, collapse, confusion))

    def _projections(self, own: Projections) -> Projections:
        """The spread of all rows: sums about the common means add up, and are centered then."""
        count = own.counts.to(torch.float64).unsqueeze(1)
        counts, traces = self.control.add(own.counts.clone()), self.control.add(own.traces.clone())
        linear = self.control.add(count * own.means)
        square = self.control.add(own.squares + count * own.means.square())
        n = counts.clamp(min=1).to(torch.float64).unsqueeze(1)
        means = linear / n
        return Projections(counts, means, (square - n * means.square()).clamp_(min=0), traces)


def _meta(site: TrainSite | TestSite) -> tuple[int, bool, float] | None:
    assert isinstance(site.sums, GroupSums)
    frame = site.sums.frame
    return None if frame is None else (frame.dim, frame.narrow, frame.eps)


def _sparse(confusion: Confusion | None) -> Confusion | None:
    """Who is taken for whom, as it is sent: pairs that occur, on the CPU."""
    return None if confusion is None else confusion.merge(Confusion(confusion.classes))


@contextmanager
def processes(
    model: nn.Module, *, dealt: bool, call: Call = MEASURE, facts: Mapping[str, Any] | None = None
) -> Iterator[Ranks]:
    """All processes of the default group, which end together: where one fails, the others hear of it.

    `facts` must be the same in all of them, by name, and so must the model: this is seen before it is run, since processes that
    run one together wait for each other inside it.
    """
    control = Control(call)
    try:
        control.same({**(facts or {}), "model": layout_mark(model)})
        yield Ranks(control, model, dealt=dealt)
    except BaseException as error:
        control.fail(error)
        raise
    finally:
        control.close()

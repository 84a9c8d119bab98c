"""One reading: every batch of a feed once through the model, each activation checked and handed on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from equisep.data.feed import Feed
from equisep.data.inputs import Inputs
from equisep.data.mixing import Mixing, class_mixing
from equisep.data.stores import StoredBatches
from equisep.errors import DataError, EquisepError, SiteError
from equisep.labels import check_range
from equisep.measuring.fingerprint import Fingerprint, Run, joined_runs, runs_of
from equisep.measuring.forward import exact_arithmetic, run_model
from equisep.measuring.notes import mixing_words
from equisep.measuring.plan import Plan
from equisep.measuring.probe import Probe, check_batch, check_finite, largest, refuse_extreme
from equisep.measuring.scores import ScoreSums
from equisep.progress import Progress
from equisep.results import ClassPair, Reading
from equisep.results.readings import BY_BATCH
from equisep.shapes import Int
from equisep.taps import Activation, Rows, UnfitError, batch_norms, first_call, inner, listening, scores_of

Start = Callable[[Int[Tensor, " b"]], None]
Take = Callable[[int, Rows], None]


@dataclass(frozen=True, slots=True)
class Read:
    """What a reading saw beside the features: label counts, fingerprints of the samples in order, sums of class scores.

    `mixing` says how batches in a user's order mix the classes, where BatchNorm went by them; `random` that the model draws
    random numbers. Where the samples are a part of the data, `runs` are their fingerprints by number, and `company` the labels
    of every batch with the number of its first sample, where the mixing of the whole is to be known of them.
    """

    counts: Int[Tensor, " k"]
    order: Fingerprint
    scores: ScoreSums | None
    mixing: Mixing | None = None
    random: bool = False
    runs: tuple[Run, ...] = ()
    company: tuple[tuple[int, Tensor], ...] = ()

    def merge(self, other: Read) -> Read:
        """What both parts of the data showed."""
        runs = (*self.runs, *other.runs)
        scored = self.scores is not None and other.scores is not None
        return Read(
            counts=self.counts + other.counts,
            order=joined_runs(runs),
            scores=self.scores.merge(other.scores) if scored and self.scores and other.scores else None,
            random=self.random or other.random,
            runs=runs,
            company=(*self.company, *other.company),
        )

    def judged(self, reading: Reading, what: str) -> Read:
        """The same, once all parts are there, with how their batches mix the classes."""
        if not self.company:
            return self
        labels = [part for _, part in sorted(self.company, key=lambda entry: entry[0])]
        mixing = class_mixing(torch.cat(labels).numpy(), [len(part) for part in labels])
        refuse_unmixed(mixing, reading, what)
        return replace(self, mixing=mixing, company=())

    @property
    def n(self) -> int:
        """Samples read."""
        return int(self.counts.sum())

    @property
    def accuracy(self) -> float | None:
        """Of the network, where it gives scores."""
        return None if self.scores is None else shares(self.scores.hits, self.counts).whole

    @property
    def class_accuracy(self) -> tuple[float | None, ...] | None:
        """Per class; None for a class without samples."""
        return None if self.scores is None else shares(self.scores.hits, self.counts).each

    @property
    def margins(self) -> tuple[float | None, ...] | None:
        """The mean of the own score less the largest other, per class, where it was asked for."""
        return None if self.scores is None else self.scores.mean_margins

    @property
    def confused(self) -> tuple[ClassPair, ...] | None:
        """The pairs of classes that the network takes for each other most often, where they were asked for."""
        known = None if self.scores is None else self.scores.confusion
        return None if known is None else known.most_confused()


@dataclass(slots=True)
class Tally:
    """What a reading has seen so far, beside the features; `batches` is how many."""

    counts: Int[Tensor, " k"]
    sums: ScoreSums
    scored: bool
    order: Fingerprint = field(default_factory=Fingerprint)
    runs: list[Run] = field(default_factory=list)
    labels: list[Tensor] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)  # the number of the first sample of each batch
    random: bool = False
    batches: int = 0

    @staticmethod
    def new(plan: Plan, *, scored: bool) -> Tally:
        """Nothing seen yet."""
        classes, options = plan.probe.classes, plan.options
        return Tally(
            counts=torch.zeros(classes, dtype=torch.int64, device="cpu"),
            sums=ScoreSums(classes, margins=options.wants("margins"), confusion=options.wants("confusion")),
            scored=scored and plan.probe.scored,
        )

    def see(self, inputs: Inputs, labels: Int[Tensor, " b"], feed: Feed, *, partial: bool, company: bool) -> None:
        """One batch more; its labels are kept where it matters who was read in whose company."""
        local = labels.cpu()
        self.counts += torch.bincount(local, minlength=len(self.counts))
        self.order = self.order.after(inputs, local)
        if partial:
            self.runs += runs_of(inputs, local, first=feed.first_number, step=feed.numbering.step)
        if company:
            self.labels.append(local)
            self.firsts.append(feed.first_number)
        self.batches += 1

    def score(self, output: Any, labels: Int[Tensor, " b"]) -> None:
        """The class scores of a batch, as long as all batches have them."""
        scores = scores_of(output, len(self.counts)) if self.scored else None
        self.scored = scores is not None and scores.shape == (len(labels), len(self.counts))
        if self.scored and scores is not None:
            self.sums.add(scores, labels)


class Shares(NamedTuple):
    """Hits over samples: of all classes together, and of each, None where it has no samples."""

    whole: float
    each: tuple[float | None, ...]


def shares(hits: Int[Tensor, " k"], counts: Int[Tensor, " k"]) -> Shares:
    """Hits over samples."""
    hit, count = hits.tolist(), counts.tolist()
    return Shares(sum(hit) / sum(count), tuple(a / b if b else None for a, b in zip(hit, count, strict=True)))


def read(
    plan: Plan,
    feed: Feed,
    *,
    take: Take,
    start: Start | None = None,
    progress: Progress,
    what: str,
    scored: bool = True,
    only: frozenset[int] | None = None,
    whole: bool = False,
    tally: Tally | None = None,
    after: Callable[[Tally], None] | None = None,
) -> Read:
    """Run all batches; `start(labels)` before each, `take(site index, rows)` for each activation.

    Without `scored` the accuracy of the model is not asked for, and the forward pass ends after the last site, unless
    `whole` says that it must not. `only` restricts a reading to some sites. A reading that was stopped goes on from its
    `tally`; `after` is told of it after every batch.
    """
    probe, options, partial = plan.probe, plan.options, plan.together.partial
    state = _State(probe, only, only_last=options.calls == "last")
    seen = Tally.new(plan, scored=scored) if tally is None else tally
    total, begun = feed.batches, seen.batches
    scored, by_company = seen.scored, in_company(plan.model, options.reading, feed)

    def give(found: Activation) -> None:
        if not state.counts or state.failure is not None:
            return
        try:
            site_index = state.checked(found)
            if site_index is not None:
                with exact_arithmetic(found.rows.features.device):
                    take(site_index, plan.reduced(site_index, found.rows))
        except EquisepError as error:
            if not plan.together.lockstep:
                raise
            state.failure = error  # other processes wait for this one inside the forward pass: it ends first

    def check(number: int, labels: Int[Tensor, " b"]) -> None:
        index = begun + number
        check_range(labels, probe.classes, owner=probe.owner, where=f"batch {index} of the {feed.what} data")
        check_batch(plan.model, len(labels), options, index=index, what=feed.what)

    stop = not scored and not whole and not plan.together.lockstep
    with (
        _running(plan, feed, state, give, stop=stop) as run,
        closing(plan.together.batches(feed, check)) as batches,
    ):
        for index, (inputs, labels, counts) in enumerate(batches, start=begun):
            state.counts = counts
            if not counts:  # of another process, and a model that is spread over several of them needs this one too
                run(inputs, "a batch of another process")
                continue
            state.begin(index, labels, feed.what)
            if start is not None:
                start(labels)
            before = torch.get_rng_state()
            output = run(inputs, f"batch {index} of the {feed.what} data")
            state.finish()
            seen.random = seen.random or not torch.equal(before, torch.get_rng_state())
            samples = Inputs() if plan.stored else inputs  # features are no samples
            seen.see(samples, labels, feed, partial=partial, company=by_company)
            seen.score(output, labels)
            progress(what, index + 1, total)
            if after is not None:
                after(seen)
    if not seen.batches and not partial:
        raise feed.nothing()
    return Read(
        counts=seen.counts,
        order=seen.order,
        scores=seen.sums if seen.scored else None,
        mixing=checked_mixing(options.reading, feed, seen.labels) if by_company and not partial else None,
        random=seen.random,
        runs=tuple(seen.runs),
        company=tuple(zip(seen.firsts, seen.labels, strict=True)) if by_company and partial else (),
    )


@contextmanager
def _running(
    plan: Plan, feed: Feed, state: _State, give: Callable[[Activation], None], *, stop: bool
) -> Iterator[Callable[[Inputs, str], Any]]:
    """A function that runs the model on a batch, whose activations are given on; of stored features it gives on the batch."""
    if not plan.stored:
        with listening(
            plan.model, state.names, give=give, reading=plan.options.reading, calls=plan.options.calls,
            reduction=plan.reduction, stop=stop, until=state.until, spare=state.spare,
        ):  # fmt: skip
            yield lambda inputs, what: run_model(inner(plan.model), inputs, plan.probe.calling, what=what)
        return

    def run(inputs: Inputs, what: str) -> None:
        for site, x in inputs.kwargs.items():
            give(Activation(site, plan.reduction(x, site=site), len(x), None))

    if isinstance(feed.source, StoredBatches):
        feed.source.wanted = frozenset(site for site, index in state.position.items() if index in state.wanted)
    yield run


def in_company(model: nn.Module, reading: Reading, feed: Feed) -> bool:
    """Whether it matters which samples share a user's batches: where BatchNorm goes by them."""
    return reading in BY_BATCH and not feed.mixes and bool(batch_norms(model))


def checked_mixing(reading: Reading, feed: Feed, labels: list[Tensor]) -> Mixing:
    """How a user's batches mix the classes."""
    mixing = feed.mixing(labels)
    refuse_unmixed(mixing, reading, feed.what)
    return mixing


def refuse_unmixed(mixing: Mixing, reading: Reading, what: str) -> None:
    """`mixed` refuses batches that mix the classes less than chance."""
    if reading == "mixed" and mixing.unmixed:
        raise DataError(
            f"The reading `mixed` needs class-mixed batches, and those of the {what} data are less mixed than a random "
            f"order makes them ({mixing_words(mixing)}). Shuffle the loader, or pass the pair (X, Y), which is mixed for "
            "you; `reading='drawn'` reads the batches as they are, and `reading='eval'` does not depend on them."
        )


def refuse_unsteady(model: nn.Module, reading: Reading, feed: Feed) -> None:
    """`drawn` is of one order: raise where another reading of the same data came in another one, and BatchNorm went by it."""
    if reading == "drawn" and batch_norms(model):
        raise DataError(
            f"`drawn` reads samples in the order in which they were drawn, and the {feed.what} data came in another order when "
            "they were read again. Pass data that keep their order, or enough `memory` to read them once, or read `eval`."
        )


class _State:
    """The batch under way, and what its activations must look like."""

    def __init__(self, probe: Probe, only: frozenset[int] | None, *, only_last: bool) -> None:
        self.probe, self.only_last = probe, only_last
        self.position = {site: index for index, site in enumerate(probe.sites)}
        self.wanted = frozenset(self.position.values()) if only is None else only
        self.labels: Tensor = torch.zeros(0, dtype=torch.int64, device="cpu")
        self.seen: set[str] = set()
        self.where = ""
        self.counts = True  # whether the batch under way does
        self.failure: EquisepError | None = None  # of a site, where the forward pass must end first
        self.looked_at: list[
            tuple[str, int, Tensor]
        ] = []  # sites on a GPU, how many numbers they gave, and the largest size

    @property
    def names(self) -> tuple[str, ...]:
        """What to listen to: no site after the last wanted one, so that a forward pass may end there."""
        if len(self.wanted) == len(self.position):
            return self.probe.names
        sites = [site for site, place in self.position.items() if place in self.wanted]
        return tuple(site if self.only_last else first_call(site) for site in sites)

    @property
    def until(self) -> str | None:
        """The last of the wanted sites, where others come after it."""
        last = max(self.wanted)
        return self.probe.sites[last] if len(self.wanted) < len(self.position) else None

    def begin(self, index: int, labels: Tensor, what: str) -> None:
        self.labels, self.seen = labels, set()
        self.where = f"batch {index} of the {what} data"

    def spare(self, site: str, error: UnfitError) -> bool:
        """Sites that the probe passed over are passed over again."""
        return site in self.probe.passed

    def checked(self, found: Activation) -> int | None:
        """The site's index, once its features have as many rows and columns as they must, all finite.

        None for a site that is none of its own: passed over by the probe, or the very tensor of the site before it.
        """
        site, features = found.site, found.rows.features
        if site in self.probe.passed:
            return None
        twin = self.probe.same.get(site)
        if twin is not None:
            if found.same_as is None or self.probe.same.get(found.same_as, found.same_as) != twin:
                raise SiteError(
                    f"Site `{site}` gave the very tensor of `{twin}` in the first batch, and another at {self.where}. "
                    "Measure them one at a time."
                )
            self.seen.add(site)
            return None
        index = self.position.get(site)
        if index is None:
            raise SiteError(f"Site `{site}` appeared only at {self.where}: the model calls it more often there.")
        self.seen.add(site)
        if found.samples != len(self.labels):
            raise SiteError(
                f"Site `{site}` gives {found.samples} rows for the {len(self.labels)} samples of {self.where}. "
                "Choose a site that keeps one row a sample."
            )
        if features.shape[1] != self.probe.dims[index]:
            raise SiteError(
                f"Site `{site}` gives {features.shape[1]} features at {self.where}, {self.probe.dims[index]} before. "
                "Features of changing width have no class means; of sequences read `mean`, `first`, `last` or `tokens`."
            )
        if features.is_cuda and features.is_floating_point():  # which is waited for once, after the batch
            self.looked_at.append((site, features.numel(), largest(features)))
        else:
            check_finite(features, site=site, where=self.where)
        return index

    def finish(self) -> None:
        """After a batch: raise where a wanted site was not reached, or gave what is no number."""
        if self.failure is not None:
            raise self.failure
        if self.looked_at:
            known = torch.stack([most for _, _, most in self.looked_at]).tolist()
            for (site, count, _), most in zip(self.looked_at, known, strict=True):
                refuse_extreme(most, numbers=count, site=site, where=self.where)
            self.looked_at = []
        wanted = [site for site, place in self.position.items() if place in self.wanted]
        missing = [site for site in wanted if site not in self.seen]
        if missing:
            raise SiteError(
                f"Site `{missing[0]}` was not reached at {self.where}, though the first samples reached it. Of modules that are "
                "called now more, now less often, `calls='last'` reads the last call."
            )

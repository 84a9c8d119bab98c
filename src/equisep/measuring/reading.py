"""One reading: every batch of a feed once through the model, each activation checked and handed on."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from equisep.data.feed import Feed
from equisep.errors import SiteError
from equisep.labels import check_range
from equisep.measuring.options import Options
from equisep.measuring.probe import Probe, check_batch, check_finite, run_model
from equisep.progress import Progress
from equisep.shapes import Int
from equisep.taps import tap

Start = Callable[[int, Int[Tensor, " b"]], None]
Take = Callable[[int, Tensor, Int[Tensor, " b"]], None]


@dataclass(frozen=True, slots=True)
class Read:
    """What a reading saw beside the features: label counts, a fingerprint of their order, network accuracy."""

    counts: Int[Tensor, " k"]
    order: int
    hits: int | None
    batches: int
    pure: int
    kept: float

    @property
    def sortedness(self) -> float:
        """How much likelier than by chance a label permuted inside its batch stays right; 1 for class-mixed batches."""
        by_chance = float((self.counts / self.n).square().sum())
        small = self.batches * (1 - by_chance) / self.n  # a sample is always found in its own batch: 1/b on average
        return (self.kept / self.n - small) / by_chance

    @property
    def n(self) -> int:
        """Samples read."""
        return int(self.counts.sum())


class Stop(BaseException):
    """Raised by a consumer to end a reading early; nothing outside this package sees it."""


def read(
    model: nn.Module,
    feed: Feed,
    probe: Probe,
    options: Options,
    *,
    take: Take,
    start: Start | None = None,
    progress: Progress,
    what: str,
) -> Read:
    """Run all batches; `start(index, labels)` before each, `take(site index, features, labels)` for each activation."""
    position = {site: index for index, site in enumerate(probe.sites)}
    state = _State(probe=probe, position=position)
    counts = torch.zeros(probe.classes, dtype=torch.int64, device="cpu")
    kept = 0.0
    order, hits, pure, index = 0, 0, 0, -1
    scored = True
    total = feed.batches

    def consume(site: str, features: Tensor) -> None:
        take(state.checked(site, features), features, state.labels)

    with tap(model, probe.names, consume=consume, mode=options.mode):
        for index, (x, labels) in enumerate(feed):
            check_range(labels, probe.classes, owner=probe.owner)
            check_batch(model, len(labels), options, index=index, what=feed.what)
            state.begin(index, labels, feed.what)
            if start is not None:
                start(index, labels)
            output = run_model(model, x, what=f"batch {index} of the {feed.what} data")
            state.finish()
            local = labels.cpu()
            here = torch.bincount(local, minlength=probe.classes)
            counts += here
            kept += float(here.square().sum()) / len(local)
            order = zlib.crc32(local.numpy().tobytes(), order)
            pure += int(local.unique().numel() == 1)
            scored = scored and isinstance(output, Tensor) and output.ndim == 2 and output.shape[1] == probe.classes
            hits += int((output.argmax(dim=1) == labels).sum()) if scored else 0
            progress(what, index + 1, total)
    if index < 0:
        raise feed.nothing()
    return Read(counts=counts, order=order, hits=hits if scored else None, batches=index + 1, pure=pure, kept=kept)


class _State:
    """The batch under way, and what its activations must look like."""

    def __init__(self, *, probe: Probe, position: dict[str, int]) -> None:
        self.probe, self.position = probe, position
        self.labels: Tensor = torch.zeros(0, dtype=torch.int64, device="cpu")
        self.seen: set[str] = set()
        self.where = ""

    def begin(self, index: int, labels: Tensor, what: str) -> None:
        self.labels, self.seen = labels, set()
        self.where = f"batch {index} of the {what} data"

    def checked(self, site: str, features: Tensor) -> int:
        """The site's index, once its features have as many rows and columns as they must, all finite."""
        index = self.position.get(site)
        if index is None:
            raise SiteError(f"Site `{site}` appeared only at {self.where}: the model calls it more often there.")
        self.seen.add(site)
        if features.shape[0] != len(self.labels):
            raise SiteError(
                f"Site `{site}` gives {features.shape[0]} rows for the {len(self.labels)} samples of {self.where}. "
                "Choose a site that keeps one row a sample."
            )
        if features.shape[1] != self.probe.dims[index]:
            raise SiteError(
                f"Site `{site}` gives {features.shape[1]} features at {self.where}, {self.probe.dims[index]} before. "
                "Features of changing width have no class means."
            )
        check_finite(features, site=site, where=self.where)
        return index

    def finish(self) -> None:
        missing = [site for site in self.probe.sites if site not in self.seen]
        if missing:
            raise SiteError(f"Site `{missing[0]}` was not reached at {self.where}, though the first batch reached it.")

"""All processes of a training read: each its part of the subset, and the history is that of one process (gloo, two ranks)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from tracked import loader, network, samples

from equisep import History, Tracker
from equisep.errors import InputError
from measuring.distributed.processes import in_processes

METRICS = ("fuzziness", "fuzziness_test", "nc1", "cdnv", "ncc_train", "ncc_test")


def trained(rank: int, path: Path | None, *, epochs: int = 2, done: int = 0, world: int = 2) -> dict[str, Any]:
    """DDP as users have it: each process its part of the data; with a path, tracked by all of them."""
    model = network()
    torch.manual_seed(7 + rank)
    wrapped = nn.parallel.DistributedDataParallel(model)
    data = TensorDataset(*samples())
    sampler = DistributedSampler(data, num_replicas=world, rank=rank)
    batches = DataLoader(data, batch_size=20, sampler=sampler)
    tracker = None
    if path is not None:
        tracker = Tracker(wrapped, batches, test=samples(seed=1), per_class=9, history=path, ranks="all")
        if done:
            tracker.resume(done)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(done + 1, epochs + 1):
        sampler.set_epoch(epoch)
        for x, y in batches:
            optimizer.zero_grad()
            nn.functional.cross_entropy(wrapped(x), y).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        if tracker is not None:
            assert tracker.epoch(epoch) is not None, tracker.history.last
    state = {name: value.numpy().tobytes() for name, value in model.state_dict().items()}
    state["random"] = torch.get_rng_state().numpy().tobytes()
    curves = {}
    if tracker is not None:
        profiles = tracker.history.profiles()
        curves = {number: {name: profile.curve(name) for name in METRICS} for number, profile in profiles.items()}
    return {"state": state, "curves": curves, "model": model.state_dict()}


def test_all_processes_read_what_one_would(tmp_path: Path) -> None:
    """The training is bit for bit the one without, BatchNorm's own statistics of every process included."""
    path = tmp_path / "run.jsonl"
    plain = in_processes(2, lambda rank: trained(rank, None))
    tracked = in_processes(2, lambda rank: trained(rank, path))
    for one, two in zip(plain, tracked, strict=True):
        assert [name for name in one["state"] if one["state"][name] != two["state"][name]] == []
    assert plain[0]["state"]["1.running_mean"] != plain[1]["state"]["1.running_mean"]
    assert tracked[0]["curves"] == tracked[1]["curves"]
    history = History.load(path)
    assert history.numbers == (1, 2)
    last = history.profile(2)
    assert last.provenance["ranks"] == 2 and sum(last.counts) == 36 and last.settings["batch_sizes"] == [18]
    model = network()
    model.load_state_dict(tracked[0]["model"])  # the network of the first process
    alone = Tracker(model, loader(), test=samples(seed=1), per_class=9).epoch(2)
    assert alone is not None
    for name in METRICS:
        assert tracked[1]["curves"][2][name] == pytest.approx(alone.curve(name), rel=1e-6), name


def test_a_training_that_goes_on_is_read_by_all(tmp_path: Path) -> None:
    """The other processes have no file, and know what was read before all the same."""
    path = tmp_path / "run.jsonl"

    def twice(rank: int) -> list[int]:
        trained(rank, path, epochs=1)
        return sorted(trained(rank, path, epochs=2, done=1)["curves"])

    assert in_processes(2, twice) == [[1, 2], [1, 2]]
    assert History.load(path).numbers == (1, 2)


def other_data(rank: int) -> Any:
    with pytest.raises(InputError, match=r"differs from that of rank 0|Rank . stopped") as told:
        Tracker(network(), samples(seed=rank), per_class=5, ranks="all")
    return str(told.value)


def failing(rank: int) -> Any:
    model = network()
    tracker = Tracker(model, samples(), per_class=5, ranks="all")
    with torch.no_grad():
        if rank == 1:  # as one GPU may
            next(model.parameters()).fill_(torch.nan)
    with pytest.warns(UserWarning, match="The reading of epoch 1 failed"):
        assert tracker.epoch(1) is None
    assert tracker.history.last is not None
    return tracker.history.last.failure


def test_what_goes_wrong_in_one_process_is_heard_by_all() -> None:
    words = in_processes(2, other_data)
    assert all("that of rank 1 differs" in text or "stopped" in text for text in words)
    failures = in_processes(2, failing)
    assert "NaN" in failures[1] and "Rank 1 stopped, and the others with it" in failures[0]


def test_one_process_alone_is_the_first(tmp_path: Path) -> None:
    tracker = Tracker(network(), loader(), per_class=5, history=tmp_path / "h.jsonl", ranks="all")
    assert not tracker.by_all and tracker.epoch(1) is not None
    with pytest.raises(InputError, match="`first` or `all`; found 'both'"):
        Tracker(network(), loader(), ranks="both")  # type: ignore[arg-type]

"""Chunks: as many members at once as memory allows, and fewer where it runs out after all."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from trained_alone import SMALL, clouds, member, mixed, same, worst

import equisep.training.ensemble.chunks as chunks
import equisep.training.ensemble.memory as memory
import equisep.training.ensemble.reading as watch
from equisep.errors import NumericalError
from equisep.training import Ensemble, Member, Shape, Watch, bytes_per_member, train_ensemble

PLAIN = Watch(sites=False)
ALLOCATOR = (  # what torch's CPU allocator says
    "[enforce fail at alloc_cpu.cpp:119] err == 0. DefaultCPUAllocator: can't allocate memory: "
    "you tried to allocate 4000000000000 bytes. Error code 12 (Cannot allocate memory)"
)
FAILURES = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB."),
    RuntimeError(ALLOCATOR),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    MemoryError("Unable to allocate 8.00 GiB for an array"),
]


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many members every chunk had."""
    seen: list[int] = []
    unwatched = chunks.train_chunk

    def watched(task: Any, *rest: Any) -> Ensemble:
        seen.append(len(task.members))
        return unwatched(task, *rest)

    monkeypatch.setattr(chunks, "train_chunk", watched)
    return seen


def short_of_memory(monkeypatch: pytest.MonkeyPatch, *, above: int, error: BaseException) -> list[int]:
    """Chunks of more than `above` members fail in their second epoch; the sizes of all that were tried."""
    tried: list[int] = []
    unwatched = chunks.Stepper.step

    def step(self: Any, rows: Any, labels: Any) -> None:
        self.steps = getattr(self, "steps", 0) + 1
        if self.steps == 1:
            tried.append(self.stack.members)
        if self.steps == 4 and self.stack.members > above:
            raise error
        unwatched(self, rows, labels)

    monkeypatch.setattr(chunks.Stepper, "step", step)
    return tried


def trained(members: list[Member], **options: Any) -> Ensemble:
    return train_ensemble(members, *clouds(), **{"dtype": torch.float64, "watch": PLAIN, **options})


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_a_chunk_that_does_not_fit_is_split_and_so_are_the_rest(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    members = [*mixed(), *mixed(epochs=3, batch_size=32)[::-1], member(seed=9)]
    whole = trained(members, chunk=8)
    tried = short_of_memory(monkeypatch, above=2, error=error)
    found = trained(members, chunk=8)
    assert tried == [8, 4, 2, 2, 2, 2, 2, 1]
    assert found.members == tuple(members)
    assert all(worst(found.weights(index), whole.weights(index)) < 1e-12 for index in range(len(members)))
    assert np.allclose(found.loss, whole.loss, rtol=1e-6)


def test_what_was_done_before_memory_ran_out_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tried = short_of_memory(monkeypatch, above=1, error=FAILURES[0])
    found = trained(mixed(), chunk=3, store=tmp_path)
    assert tried == [3, 2, 1, 1, 1, 1, 1]
    assert len(list(tmp_path.iterdir())) == 5
    tried.clear()
    assert same(trained(mixed(), store=tmp_path).weights(2), found.weights(2)) and tried == []


def test_one_member_that_does_not_fit_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = short_of_memory(monkeypatch, above=0, error=FAILURES[1])
    with pytest.raises(
        NumericalError,
        match=r"^One member of Fnn-3 \(6 inputs, .*\) needs about \d+ MiB on cpu, which is not free there\. "
        r"Use another device or a smaller network\.$",
    ) as caught:
        trained(mixed())
    assert tried == [5, 3, 2, 1]
    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.parametrize("error", [RuntimeError("mat1 and mat2 shapes cannot be multiplied"), ValueError("wrong")])
def test_any_other_error_is_not_taken_for_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    tried = short_of_memory(monkeypatch, above=0, error=error)
    with pytest.raises(type(error), match=str(error)):
        trained(mixed())
    assert tried == [5]


@pytest.mark.parametrize(("room", "expected"), [(0, [1] * 5), (1.0, [1] * 5), (2.5, [2, 2, 1]), (4, [4, 1]), (99, [5])])
def test_chunks_follow_the_memory_allowed(sizes: list[int], room: float, expected: list[int]) -> None:
    need = max(bytes_per_member(one, 70, torch.float64, epochs=3) for one in mixed())
    trained(mixed(), memory=int(room * need))
    assert sizes == expected


def test_the_hungriest_member_counts_wherever_it_stands(sizes: list[int]) -> None:
    members = [*[member("sgd", 0.1, seed=seed) for seed in range(4)], member("adam", 1e-3)]
    hungry = bytes_per_member(members[-1], 70, torch.float64, epochs=3)
    assert hungry > bytes_per_member(members[0], 70, torch.float64, epochs=3)
    for order in (members, members[::-1]):
        sizes.clear()
        trained(order, memory=2 * hungry - 1)  # two of the others would fit
        assert sizes == [1] * 5


def test_a_cpu_takes_no_more_at_once_than_its_cache_likes_unless_told(
    sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "CPU_CHUNK", 3)
    trained(mixed())
    assert sizes == [3, 2]
    sizes.clear()
    trained(mixed(), chunk=4)
    assert sizes == [4, 1]
    sizes.clear()
    trained(mixed(), chunk=4, memory=2 * max(bytes_per_member(one, 70, torch.float64, epochs=3) for one in mixed()))
    assert sizes == [2, 2, 1]


def test_free_memory_decides_where_nothing_is_said(sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    need = max(bytes_per_member(one, 70, torch.float64, epochs=3) for one in mixed())
    monkeypatch.setattr(chunks, "free_bytes", lambda device: int(2.1 * need / memory.SHARE))
    trained(mixed())
    assert sizes == [2, 2, 1]


def test_bytes_of_a_member_grow_with_what_it_holds() -> None:
    def need(one: Member, n: int = 1000, dtype: torch.dtype = torch.float32, epochs: int = 600) -> int:
        return bytes_per_member(one, n, dtype, epochs=epochs)

    small, deep = Member(shape=Shape.deep(8)), Member(shape=Shape.deep(20))
    numbers = small.shape.parameters
    assert need(deep) > 2 * need(small)
    assert need(small, dtype=torch.float64) > 1.8 * need(small)
    assert need(small, n=60_000) - need(small) >= 59_000 * 2 * 8  # positions and labels
    assert need(small) >= 4 * (4 * numbers + 128 * 2 * 7 * 100)  # weights, gradient, moments; two tensors a layer
    by_optimizer = [need(member(name, shape=Shape.deep(8), batch_size=128)) for name in ("sgd", "momentum", "adam")]
    assert np.diff(by_optimizer).tolist() == [4 * numbers] * 2
    assert need(Member(shape=Shape.deep(8, norm=False))) < need(small)


class Held(TorchDispatchMode):
    """Counts the bytes of all tensors alive."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(found):
            if isinstance(tensor, torch.Tensor):
                self._note(tensor.untyped_storage())
        return found

    def _note(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._known:
            return
        self._known.add(key)
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._drop, key, size)

    def _drop(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.now -= size


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize(
    "shape",
    [
        Shape.deep(6, width=50, inputs=40, classes=5),
        Shape.deep(6, width=50, inputs=40, classes=5, norm=False),
        Shape((9, 90, 9), inputs=40, classes=5),
        Shape((), inputs=40, classes=5),
    ],
    ids=str,
)
def test_a_member_takes_no_more_than_is_said(monkeypatch: pytest.MonkeyPatch, shape: Shape, optimizer: str) -> None:
    """The difference between many members and few; what reading takes is bounded by itself, so one is read at a time."""
    monkeypatch.setitem(watch.READ_BYTES, "cpu", 1)
    x, y = clouds(300, inputs=40, classes=5)
    one = member(optimizer, 1e-3, shape=shape, epochs=2, batch_size=128)
    peaks = []
    for members in (4, 20):
        with Held() as held:
            train_ensemble([one] * members, x.float(), y, watch=PLAIN, memory=2**40)
        peaks.append(held.peak)
    said = bytes_per_member(one, 300, torch.float32, epochs=2)
    assert 0.2 * said < (peaks[1] - peaks[0]) / 16 <= said


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"memory.max": "max", "memory.current": "5"}, None),
        ({"memory.max": "1000000", "memory.current": "400000"}, 600_000),
        ({"memory.max": "1000", "memory.current": "4000"}, 0),
        ({"memory.max": "1000000"}, None),
        ({}, None),
    ],
)
def test_free_memory_is_within_the_control_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: int | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    free = memory.free_bytes(torch.device("cpu"))
    assert free == expected if expected is not None else free > 10**6


def test_progress_counts_epochs_of_all_chunks_and_ends_at_the_end() -> None:
    told: list[tuple[str, int, int | None]] = []
    trained(mixed(), chunk=2, progress=lambda *report: told.append(report))
    assert {(what, total) for what, _, total in told} == {("training", 3)}
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert told[-1] == ("training", 3, 3) and len(told) == 9


@contextmanager
def two_threads() -> Iterator[None]:
    """Torch with two threads, which it has to have still when this is over."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        yield
        with ThreadPoolExecutor(1) as fresh:  # a thread takes its number from the one that was set last, by whichever
            assert fresh.submit(torch.get_num_threads).result() == torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("interrupt", [True, False])
def test_members_on_several_threads_are_the_same_members(interrupt: bool, sizes: list[int]) -> None:
    told: list[int] = []

    def progress(what: str, done: int, total: int | None) -> None:
        told.append(done)
        if interrupt:
            raise KeyboardInterrupt

    members = mixed(epochs=40)
    plain = trained(members)
    if interrupt:
        with two_threads(), pytest.raises(KeyboardInterrupt):
            trained(members, workers=2, progress=progress)
        assert told[-1] <= 40
    else:
        with two_threads():
            threaded = trained(members, progress=progress)  # as many as torch has
        assert sizes == [5, 2, 3] or sizes == [5, 3, 2]
        assert all(worst(threaded.weights(index), plain.weights(index)) < 1e-9 for index in range(5))
        assert told == sorted(told) and told[-1] == 40
        assert threaded.members == tuple(members)
    assert torch.is_grad_enabled()


def test_memory_that_runs_out_on_one_thread_splits_the_whole_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = trained(mixed())
    tried = short_of_memory(monkeypatch, above=1, error=FAILURES[1])
    found = trained(mixed(), workers=2)
    assert set(tried[:2]) == {2, 3} and tried.count(1) >= 5  # five alone at last, some of them twice
    assert all(worst(found.weights(index), whole.weights(index)) < 1e-12 for index in range(5))


def test_more_threads_than_members_is_one_member_a_thread(sizes: list[int]) -> None:
    found = trained([member(), member(shape=SMALL, seed=4)], workers=9)
    assert sizes == [1, 1] and len(found) == 2

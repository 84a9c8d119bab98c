"""Kernels of our own give what torch gives: on a GPU, or where Triton's interpreter stands in for one (TRITON_INTERPRET=1)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
import torch
from torch import Tensor

from equisep.separation import Assignments, SiteStatistics, SiteTask, TrainSite
from equisep.separation.gpu import GroupRuns, add_rows, passes, residual_products, residuals_of, runs, spread_of

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1" and not torch.cuda.is_available()
needs_kernels = pytest.mark.skipif(
    find_spec("triton") is None or not (torch.cuda.is_available() or INTERPRETED),
    reason="needs Triton, and a CUDA device or TRITON_INTERPRET=1",
)
DEVICE = "cpu" if INTERPRETED else "cuda"
SIZES = [(700, 70, 5, 4), (64, 33, 7, 1), (900, 40, 50, 20)]


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Features on the CPU count as those of a GPU where that is interpreted."""
    monkeypatch.setattr(runs, "DEVICE", DEVICE)
    yield


def drawn(n: int, d: int, k: int, *, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Classes of uneven sizes, class 1 empty, far from zero."""
    generator = torch.Generator().manual_seed(n)
    y = torch.randint(0, k, (n,), generator=generator) * torch.randint(0, 2, (n,), generator=generator)
    y[y == 1] = 0
    means = 2 * torch.randn(k, d, generator=generator)
    return (100 + means[y] + torch.randn(n, d, generator=generator)).to(DEVICE, dtype), y.to(DEVICE)


@needs_kernels
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_kernels_give_what_torch_gives(size: tuple[int, int, int, int], dtype: torch.dtype) -> None:
    n, d, k, r = size
    if INTERPRETED and dtype == torch.bfloat16:
        pytest.skip("numpy, which interprets, has no bfloat16")
    x, y = drawn(n, d, k, dtype=dtype)
    means, directions = torch.randn(k, d, dtype=torch.float64), torch.randn(d, r, dtype=torch.float64)
    means, directions = means.to(DEVICE), directions.to(DEVICE)
    sums = torch.ones(k, d, dtype=torch.float64, device=DEVICE)
    add_rows(sums, x, GroupRuns.of(y, k, rows=passes.SUMMED_ROWS))
    assert torch.equal(sums, torch.ones_like(sums).index_add_(0, y, x.double()))  # exact either way
    wanted = x.double() - means[y]
    residuals, norms = residuals_of(x[:, : d - 1], y, means[:, : d - 1])
    assert torch.equal(residuals, wanted[:, : d - 1])
    torch.testing.assert_close(norms, wanted[:, : d - 1].square().sum(dim=1), rtol=1e-13, atol=0)
    spaced = torch.stack([y, y + 1], dim=1)[:, 0]  # labels that do not lie side by side, a column of a table
    assert torch.equal(residuals_of(x, spaced, means)[0], wanted)
    found = residual_products(x, spaced, means, directions)
    norms, along = found.norms, found.along
    torch.testing.assert_close(norms, wanted.square().sum(dim=1), rtol=1e-13, atol=0)
    torch.testing.assert_close(
        along, wanted @ directions, rtol=0, atol=1e-13 * float(wanted.norm() * directions.norm())
    )
    for spread in (found.spread, spread_of(along, norms, spaced, k)):
        counts, middles, squares, traces = spread.by_group()
        assert torch.equal(counts, torch.bincount(y, minlength=k))
        summed = torch.zeros(k, r + 1, dtype=torch.float64, device=DEVICE)
        sums = summed.index_add(0, y, torch.cat([along, norms.unsqueeze(1)], dim=1))
        torch.testing.assert_close(middles, sums[:, :r] / counts.clamp(min=1).unsqueeze(1), rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(traces, sums[:, r], rtol=1e-12, atol=0)
        centered = (along - middles[y]).square()
        torch.testing.assert_close(squares, torch.zeros_like(squares).index_add(0, y, centered), rtol=1e-11, atol=1e-12)


def of(x: Tensor, y: Tensor, k: int, **task: int) -> SiteStatistics:
    site, rows = TrainSite(SiteTask(k, **task)), Assignments.of(
        y, first=0, classes=k, folds=task.get("folds", 0), relabelings=task.get("relabelings", 0), seed=0
    )  # fmt: skip
    site.first([x[:300], x[300:]], rows)
    site.turn()
    site.second([x[:300], x[300:]], rows)
    return site.statistics()


@needs_kernels
@pytest.mark.parametrize("k", [5, 50])
@pytest.mark.parametrize("task", [{}, {"folds": 3, "relabelings": 2}])
def test_a_site_is_the_same(k: int, task: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = drawn(900, 60, k)
    mine = of(x, y, k, **task)
    monkeypatch.setattr(runs, "DEVICE", "none")
    theirs = of(x, y, k, **task)
    for name in ("counts", "means", "squares", "traces"):
        a, b = (getattr(each.spread.projections, name).double() for each in (mine, theirs))
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11 * float(b.abs().max() + 1), msg=name)
    assert mine.nearest is not None and theirs.nearest is not None
    assert torch.equal(mine.nearest.hits, theirs.nearest.hits)
    assert mine.replicates == (None if theirs.replicates is None else pytest.approx(theirs.replicates, rel=1e-9))
    assert mine.chance == (None if theirs.chance is None else pytest.approx(theirs.chance, rel=1e-9))


@pytest.mark.parametrize(("generation", "fit"), [((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_gpus_without_float64_tiles_are_left_to_torch(
    generation: tuple[int, int], fit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: generation)
    runs.multiplies.cache_clear()
    try:
        assert runs.multiplies(torch.device("cuda:0")) is fit
    finally:
        runs.multiplies.cache_clear()


@pytest.mark.parametrize(("generation", "fit"), [((9, 0), True), ((10, 0), False), ((12, 0), True)])
def test_products_in_tiles_are_left_out_where_the_compiler_has_none(
    generation: tuple[int, int], fit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: generation)
    runs.in_tiles.cache_clear()
    try:
        assert runs.in_tiles(torch.device("cuda:0")) is fit
    finally:
        runs.in_tiles.cache_clear()

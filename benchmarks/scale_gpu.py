"""What does a GPU do with features that lie on it, as a share of what it can: of copies at few classes, of products at many?

Both ceilings are measured in the same run: a copy of 8 GB (bytes read and written), and a float64 product of 8192 × 8192.

few          n × 2048 float32, K = 10: D takes two readings of the features; `share` is their bytes per second over the copy's
many         K = 1000: D takes 2·n·d·(K−1) float64 operations, nearest centers 2·n·K·(K−1) more; `share` is of that rate
             (the decomposition of the class means, which does not grow with n, is `turn_seconds` and counts in `whole_share`)
             Each by kernels of our own and by torch alone (`torch_alone`).
million      K = 10⁶, d = 128, batches that are drawn anew at each reading: D and CDNV, seconds and greatest memory of the GPU
nccl         one rank of a process group whose backend is NCCL: the profile is that of one process
tiles        seconds of a million rows' products at K = 10 by rows, columns, warps and stages of a tile, the default first;
             `summed`, those of their sums by numbers and columns; `decompositions`, seconds of means' SVD by several ways

`python benchmarks/scale_gpu.py --save` takes a minute and a half on one H200. `--small` tries all of it on any machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

import equisep
from _record import finish
from equisep.separation import Assignments, SiteTask, TrainSite
from equisep.separation.centers import cdnv_of
from equisep.separation.convention import PAPER
from equisep.separation.fuzziness import fuzziness_of
from equisep.separation.gpu import passes, runs
from equisep.separation.subspace import thin_svd

ON = "cuda" if torch.cuda.is_available() else "cpu"
SMALL = "--small" in sys.argv
ROWS, WIDTH = (4096, 128) if SMALL else (2_000_000, 2048)
MANY = 100 if SMALL else 1000
MILLION, SAMPLES, BATCH = (2000, 8000, 2000) if SMALL else (1_000_000, 4_000_000, 125_000)
TILES = (
    (64, 32, 4, 3), (64, 32, 4, 1), (64, 32, 4, 2), (64, 32, 4, 4), (128, 32, 4, 2), (128, 32, 4, 3), (128, 16, 4, 2),
    (128, 16, 4, 3), (128, 16, 4, 4), (64, 16, 4, 3), (64, 16, 2, 3), (32, 32, 2, 3), (64, 32, 2, 2), (128, 32, 8, 2),
)  # fmt: skip
SUMMED = ((4096, 512), (2048, 256), (4096, 256), (2048, 128), (4096, 128), (8192, 256))
REPEATS = 3
LONGEST = 40.0  # seconds that the pairs of a million classes may be expected to take


def timed(work: Callable[[], Any], *, repeats: int = REPEATS) -> float:
    """The fewest seconds of some runs, the GPU waited for; one run before them warms up."""
    best = float("inf")
    for number in range(repeats + 1):
        synchronized()
        begin = time.perf_counter()
        work()
        synchronized()
        best = min(best, time.perf_counter() - begin) if number else best
    return best


def synchronized() -> None:
    """Wait for the GPU, where there is one."""
    if ON == "cuda":
        torch.cuda.synchronize()


def drawn(n: int, d: int, k: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Float32 features of k classes, made where they are to lie."""
    generator = torch.Generator(ON).manual_seed(seed)
    y = (torch.arange(n, device=ON) * 7919) % k
    x = torch.randn(n, d, generator=generator, device=ON)
    means = 2 * torch.randn(k, d, generator=generator, device=ON)
    for begin in range(0, n, 100_000):
        x[begin : begin + 100_000] += means[y[begin : begin + 100_000]]
    return x, y


def ceilings() -> dict[str, float]:
    """Bytes that a copy moves in a second, and float64 operations of a product."""
    size = 2**20 if SMALL else 2**30
    source = torch.randn(size, device=ON)
    target = torch.empty_like(source)
    copied = timed(lambda: target.copy_(source), repeats=10)
    side = 256 if SMALL else 8192
    a, b = (torch.randn(side, side, device=ON, dtype=torch.float64) for _ in range(2))
    return {"copy_bytes_per_second": 2 * 4 * size / copied, "products_per_second": 2 * side**3 / timed(lambda: a @ b)}


def passed(x: Tensor, y: Tensor, k: int, *, nearest: bool) -> dict[str, float]:
    """The fewest seconds of the first pass, of the turn and of the second, and D."""
    best: dict[str, float] = {}
    for number in range(REPEATS + 1):
        site, rows = TrainSite(SiteTask(k, centers=nearest)), Assignments(y)
        for name, work in (
            ("first_seconds", lambda site=site, rows=rows: site.first([x], rows)),
            ("turn_seconds", site.turn),
            ("second_seconds", lambda site=site, rows=rows: site.second([x], rows)),
        ):
            synchronized()
            begin = time.perf_counter()
            work()
            synchronized()
            spent = time.perf_counter() - begin
            best[name] = min(best.get(name, spent), spent) if number else float("inf")
        if ON == "cuda" and best["turn_seconds"] > 1.5 and number:  # a decomposition of the CPU: once is enough
            break
    value = fuzziness_of(site.statistics().spread, PAPER)
    assert value is not None
    return {**best, "fuzziness": value}


def both_ways(work: Callable[[], dict[str, float]]) -> dict[str, Any]:
    """By kernels of our own and by torch alone, and how far D differs."""
    mine = work()
    known, runs.DEVICE = runs.DEVICE, "none"
    try:
        plain = work()
    finally:
        runs.DEVICE = known
    return {**mine, "torch_alone": plain, "difference": abs(mine["fuzziness"] / plain["fuzziness"] - 1)}


def few(ceiling: dict[str, float]) -> dict[str, Any]:
    """Ten classes: what is read of the features in a second, over what a copy moves."""
    x, y = drawn(ROWS, WIDTH, 10)
    read = 2 * x.numel() * x.element_size()

    def work() -> dict[str, float]:
        one = passed(x, y, 10, nearest=False)
        seconds = one["first_seconds"] + one["turn_seconds"] + one["second_seconds"]
        return {**one, "share": read / seconds / ceiling["copy_bytes_per_second"]}

    result = both_ways(work)
    result["nearest"] = passed(x, y, 10, nearest=True)
    result["fuzziness_seconds"] = timed(lambda: equisep.fuzziness(x, y))
    result["tiles"], result["summed"] = tiles(x, y), summed(x, y)
    result["n"], result["d"] = x.shape
    return result


def tiles(x: Tensor, y: Tensor) -> dict[str, float]:
    """Seconds of the products by rows, columns and warps of a tile."""
    generator = torch.Generator(ON).manual_seed(0)
    means, directions = (
        torch.randn(*shape, generator=generator, device=ON, dtype=torch.float64)
        for shape in ((10, x.shape[1]), (x.shape[1], 9))
    )
    known, seconds = (passes.ROWS, passes.COLUMNS, passes.WARPS, passes.STAGES), {}
    for shape in TILES if runs.kernels_fit(x) else ():
        passes.ROWS, passes.COLUMNS, passes.WARPS, passes.STAGES = shape
        seconds[" × ".join(map(str, shape))] = timed(
            lambda: passes.residual_products(x[:1_000_000], y[:1_000_000], means, directions)
        )
    passes.ROWS, passes.COLUMNS, passes.WARPS, passes.STAGES = known
    return seconds


def summed(x: Tensor, y: Tensor) -> dict[str, float]:
    """Seconds of the sums by numbers and columns of a tile."""
    known, seconds = (passes.SUMMED_TILE, passes.SUMMED_COLUMNS), {}
    sums, rows = torch.zeros(10, x.shape[1], device=ON, dtype=torch.float64), x[:1_000_000]
    order = runs.GroupRuns.of(y[:1_000_000], 10, rows=passes.SUMMED_ROWS)
    for shape in SUMMED if runs.kernels_fit(x) else ():
        passes.SUMMED_TILE, passes.SUMMED_COLUMNS = shape
        seconds[" × ".join(map(str, shape))] = timed(lambda: passes.add_rows(sums, rows, order))
    passes.SUMMED_TILE, passes.SUMMED_COLUMNS = known
    return seconds


def many(ceiling: dict[str, float]) -> dict[str, Any]:
    """A thousand classes: float64 operations in a second, over those of a product."""
    x, y = drawn(ROWS, WIDTH, MANY)
    (n, d), r = x.shape, min(MANY - 1, x.shape[1])
    results: dict[str, Any] = {"n": n, "d": d, "classes": MANY}
    for name, nearest in (("fuzziness", False), ("nearest", True)):
        needed = 2.0 * n * d * r + (2.0 * n * MANY * r if nearest else 0)

        def work(nearest: bool = nearest, needed: float = needed) -> dict[str, float]:
            one = passed(x, y, MANY, nearest=nearest)
            seconds = one["first_seconds"] + one["second_seconds"]
            rate = ceiling["products_per_second"]
            return {
                **one,
                "share": needed / seconds / rate,
                "whole_share": needed / (seconds + one["turn_seconds"]) / rate,
            }

        results[name] = both_ways(work)
    matrix = torch.randn(d, MANY, device=ON, dtype=torch.float64)
    ways: dict[str, Callable[[], Any]] = {
        "as it is done": lambda: thin_svd(matrix),
        "by the CPU": lambda: torch.linalg.svd(matrix.cpu(), full_matrices=False),
        "made triangular, then by the CPU": lambda: torch.linalg.svd(torch.linalg.qr(matrix)[1].cpu()),
        "by the GPU": lambda: torch.linalg.svd(matrix, full_matrices=False),
    }
    results["products_by_width"] = {
        f"{rows} × {d} × {width}": 2.0 * rows * d * width / timed(lambda a=a, b=b: a @ b)  # type: ignore[misc]
        for rows, width in ((8192, r), (8192, r + 1), (16_384, r), (16_384, r + 1))
        for a, b in [(torch.randn(rows, d, device=ON).double(), torch.randn(d, width, device=ON).double())]
    }
    results["decompositions"] = {name: timed(way, repeats=1) for name, way in ways.items()}
    return results


def million() -> dict[str, Any]:
    """D and CDNV of very many classes, whose rows are drawn anew at each reading."""
    k, d = MILLION, 128

    def batches(classes: int, samples: int) -> Iterator[tuple[Tensor, Assignments]]:
        generator = torch.Generator(ON).manual_seed(1)
        means = torch.randn(classes, d, generator=generator, device=ON)
        for begin in range(0, samples, BATCH):
            y = (torch.arange(begin, min(begin + BATCH, samples), device=ON) * 7919) % classes
            yield means[y] + 0.1 * torch.randn(len(y), d, generator=generator, device=ON), Assignments(y)

    def whole(classes: int, samples: int, *, paired: bool) -> dict[str, Any]:
        site = TrainSite(SiteTask(classes, centers=False))
        marks = [time.perf_counter()]
        for x, rows in batches(classes, samples):
            site.first([x], rows)
        site.turn()
        for x, rows in batches(classes, samples):
            site.second([x], rows)
        spread = site.statistics().spread
        value = fuzziness_of(spread, PAPER)
        synchronized()
        marks.append(time.perf_counter())
        pairs = cdnv_of(spread) if paired else None
        marks.append(time.perf_counter())
        return {
            "classes": classes,
            "n": samples,
            "d": d,
            "fuzziness": value,
            "cdnv": pairs,
            "fuzziness_seconds": marks[1] - marks[0],
            "cdnv_seconds": marks[2] - marks[1],
        }

    tenth = whole(k // 10, SAMPLES // 10, paired=True)
    if ON == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    result = whole(k, SAMPLES, paired=100 * tenth["cdnv_seconds"] < LONGEST)
    used = torch.cuda.max_memory_allocated() / 2**30 if ON == "cuda" else None
    return {**result, "gibibytes": used, "a tenth": tenth}


def one_rank() -> dict[str, Any]:
    """A process group of one rank, measured as any group is; printed by torchrun's child."""
    import torch.distributed as dist

    from equisep.data.shard import Shard
    from equisep.measuring.distributed.ranks import processes
    from equisep.measuring.measure import answered, measured, request_for

    dist.init_process_group("nccl" if ON == "cuda" else "gloo")
    summed = torch.ones(4, device=ON)
    dist.all_reduce(summed)
    x, y = drawn(2000, 32, 10)
    model = equisep.Fnn(4, width=64, inputs=32, classes=10).to(ON)
    alone = answered(request_for(model, (x, y)), group=False)
    with processes(model, dealt=True) as ranks:
        request = request_for(model, (x, y))
        found, failure = measured(request, shard=Shard(0, 1), together=ranks)
        profile = ranks.one(found)
    assert failure is None
    backend = dist.get_backend()
    dist.destroy_process_group()
    differences = [
        abs(a / b - 1) for a, b in zip(profile.curve("fuzziness"), alone.curve("fuzziness"), strict=True) if a and b
    ]
    return {"backend": backend, "sites": len(differences), "difference": max(differences)}


def nccl() -> dict[str, Any]:
    """The same by torchrun."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1", __file__]
    done = subprocess.run(
        [*command, "one-rank"], capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(lines[-1])  # type: ignore[no-any-return]


def gpu_of(record: dict[str, Any]) -> str:
    """What a GPU did with features that lie on it, as a table of docs/scale.md."""
    few, many, million, ceiling = record["few"], record["many"], record["million"], record["ceilings"]
    copies, products = ceiling["copy_bytes_per_second"] / 1e12, ceiling["products_per_second"] / 1e12
    lines = [
        "| n | d | K | what | seconds | of what the GPU can do | by torch alone |",
        "|---|---|---|---|---|---|---|",
    ]

    def line(one: dict[str, Any], size: dict[str, Any], what: str, ceiling: str, *, classes: int, turn: bool) -> None:
        spent = sum(one[f"{name}_seconds"] for name in (("first", "turn", "second") if turn else ("first", "second")))
        rest = "" if turn else f"; {one['whole_share']:.0%} with the decomposition's {one['turn_seconds']:.2g} s"
        lines.append(
            f"| {size['n']:,} | {size['d']:,} | {classes:,} | {what} | {spent:.2g} | {one['share']:.0%} of {ceiling}{rest} | "
            f"{one['torch_alone']['share']:.0%} |"
        )

    line(few, few, "D", f"a copy, {copies:.1f} TB/s", classes=10, turn=True)
    rate, classes = f"a float64 product, {products:.0f} TFLOP/s", many["classes"]
    line(many["fuzziness"], many, "D, both passes", rate, classes=classes, turn=False)
    line(many["nearest"], many, "D and nearest centers, both passes", rate, classes=classes, turn=False)
    size = f"| {million['n']:,} | {million['d']:,} | {million['classes']:,}"
    memory = f"{million['gibibytes']:.1f} GiB at most"
    lines += [
        f"{size} | D | {million['fuzziness_seconds']:.2g} | {memory} | |",
        f"{size} | CDNV, all pairs | {million['cdnv_seconds']:.2g} | {memory} | |",
    ]
    return "\n".join(lines)


def main() -> None:
    """Every part; one that fails leaves a sentence, and the others their numbers."""
    if SMALL:
        sys.argv.remove("--small")
    ceiling = ceilings()
    result: dict[str, Any] = {"ceilings": ceiling}
    for name, work in (
        ("nccl", nccl),
        ("few", lambda: few(ceiling)),
        ("many", lambda: many(ceiling)),
        ("million", million),
    ):
        begin = time.perf_counter()
        try:
            result[name] = work()
        except Exception as error:  # a part of its own: what else was measured is kept
            result[name] = {"failed": f"{type(error).__name__}: {error}"}
        if ON == "cuda":
            torch.cuda.empty_cache()
        result[name]["seconds"] = time.perf_counter() - begin
        print(f"{name}: {result[name]['seconds']:.1f} s", file=sys.stderr)
    finish("scale", result, device=torch.cuda.get_device_name() if ON == "cuda" else "cpu")


if __name__ == "__main__":
    if sys.argv[1:2] == ["one-rank"]:
        print(json.dumps(one_rank()))
    else:
        main()

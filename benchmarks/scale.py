"""What do n samples, d features and K classes cost: time, memory and digits, beside the ways that others go?

All ways of a size take turns, so that a noisy minute hits all of them, and the fastest run counts. `seconds` are those of the
clock, `core_seconds` those of all cores together, `mebibytes` the greatest memory beside the data. `error` is the relative
difference from float64.

D            `pinv64`: SSw and SSb as d × d matrices and the pseudo-inverse in float64, as published scripts do; `pinv32`: the
             same in float32, as packages of collapse metrics do; `equisep`, and `equisep32` with `precision="float32"`
CDNV         `loops`: two loops in Python over all pairs of classes; `equisep_cdnv`
CH           Calinski–Harabasz by `torchmetrics`, which keeps all samples until the end; `harabasz64`, the definition in float64;
             `equisep_stream`, which keeps none
stored       features in an .npy file, once in an Arrow file: D, CDNV and nearest centers from there, with products in float64 and
             in float32, each in a process of its own; and the speed of the reader beside the best that a plain loop of reads
             into one piece of memory does with the same file in the same minute

`python benchmarks/scale.py --save` takes three minutes on two idle cores, `--full --save` half an hour at most and 11 GB of disk.
`--page` writes the tables of docs/scale.md from the saved record.
"""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import equisep
from _record import RESULTS, finish
from fuzziness import by_matrices, data
from scale_gpu import gpu_of

REPEATS, LARGE = 3, 2 * 10**7  # runs of each way, and numbers from which on one has to do for the ways of others
SLOW = "loops"  # which one run always has to do for
READ_BYTES = 2**33  # of a small file, that are read until its speed counts: three times of it a busy neighbor may hit
PIECES = (2**20, 2**22, 2**24)  # bytes that a plain loop reads at once: the best of these counts
DENSE = ("equisep", "equisep32", "pinv32", "pinv64")
PAIRS = ("equisep_cdnv", "loops")
KEPT = ("equisep_stream", "torchmetrics", "harabasz64")
SIZES: tuple[tuple[int, int, int, tuple[str, ...]], ...] = (
    (1000, 512, 10, (*DENSE, *PAIRS, *KEPT)),
    (5000, 1024, 10, (*DENSE, *KEPT)),
    (5000, 256, 100, (*DENSE, *PAIRS, *KEPT)),
    (10_000, 4096, 10, ("equisep", "equisep32", "pinv32")),
)
FULL = (
    (10_000, 1024, 10, (*DENSE, *KEPT)),
    (10_000, 256, 200, (*DENSE, *PAIRS, *KEPT)),
    (10_000, 4096, 10, (*DENSE, *KEPT)),
    (40_000, 2048, 100, (*DENSE, *KEPT)),
    (20_000, 512, 1000, (*DENSE, "equisep_cdnv", *KEPT)),  # loops over a million pairs would take an hour
    (2000, 65_536, 10, ("equisep",)),
)
ROWS = ((12_800, 2048, 1000), (51_200, 2048, 1000), (200_000, 576, 49_152))
FULL_ROWS = ((204_800, 2048, 1000), (1_280_000, 2048, 1000), (2_000_000, 576, 49_152))
ARROW_ROWS = 51_200  # … of which there is an Arrow file as well
POINTS = 4096  # class means whose distances are timed
NEAREST = 2000  # classes up to which nearest centers are asked for: beyond, a GPU should
CLASSES = 20_000  # … and pairs of means in a quick run


def resident() -> int:
    """Resident memory now, in KiB; the greatest so far counts from here on (as Linux has it).

    What earlier ways have freed goes back first: the next one would use it again, and seem to need nothing.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status("VmRSS")


def peak() -> int:
    """The greatest resident memory, in KiB."""
    return _status("VmHWM")


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


# --- ways, each a function of features and labels


def loops(x: Tensor, y: Tensor) -> float:
    """CDNV by two loops over classes."""
    classes = y.unique().tolist()
    total = 0.0
    for i in classes:
        for j in classes:
            if i != j:
                a, b = x[y == i].double(), x[y == j].double()
                spread = a.var(dim=0, correction=0).sum() + b.var(dim=0, correction=0).sum()
                total += float(spread / (2 * (a.mean(dim=0) - b.mean(dim=0)).square().sum()))
    return total / (len(classes) * (len(classes) - 1))


def by_torchmetrics(x: Tensor, y: Tensor) -> float:
    """Calinski–Harabasz by a metric that gathers all samples."""
    from torchmetrics.clustering import CalinskiHarabaszScore

    metric = CalinskiHarabaszScore()
    for part, labels in zip(x.split(1000), y.split(1000), strict=True):
        metric.update(part, labels)
    return float(metric.compute())


def harabasz(x: Tensor, y: Tensor) -> float:
    """Calinski–Harabasz by its definition, all numbers in float64 at once."""
    wide, counts = x.double(), y.bincount()
    means = torch.zeros(len(counts), x.shape[1], dtype=torch.float64).index_add_(0, y, wide) / counts.unsqueeze(1)
    between = float(counts.double() @ (means - wide.mean(dim=0)).square().sum(dim=1))
    within = float((wide - means[y]).square().sum())
    return between / within * (len(y) - len(counts)) / (len(counts) - 1)


def streamed(x: Tensor, y: Tensor) -> float:
    """Calinski–Harabasz from the traces of both scatter matrices, which a stream keeps."""
    profile = equisep.measure_features({"x": x}, y, metrics=("traces",), intervals="none", memory=0, coordinates=0)
    site, classes = profile.sites[0], int(y.max()) + 1
    assert site.trace_between is not None and site.trace_within is not None
    return site.trace_between / site.trace_within * (len(y) - classes) / (classes - 1)


WAYS: dict[str, Callable[[Tensor, Tensor], float]] = {
    "equisep": equisep.fuzziness,
    "equisep32": lambda x, y: equisep.fuzziness(x, y, precision="float32"),
    "pinv32": by_matrices,
    "pinv64": lambda x, y: by_matrices(x.double(), y),
    "equisep_cdnv": equisep.cdnv,
    "loops": loops,
    "equisep_stream": streamed,
    "torchmetrics": by_torchmetrics,
    "harabasz64": harabasz,
}
TRUTH = {**dict.fromkeys(DENSE, "pinv64"), **dict.fromkeys(PAIRS, "loops"), **dict.fromkeys(KEPT, "harabasz64")}
INSTEAD = {"pinv64": "equisep", "loops": "equisep_cdnv", "harabasz64": "equisep_stream"}  # where it would take too long
OURS = ("equisep", "equisep32", "equisep_cdnv", "equisep_stream")


def judge(way: str, known: Collection[str]) -> str:
    """The way by which a way is judged, of those that were run."""
    return TRUTH[way] if TRUTH[way] in known else INSTEAD[TRUTH[way]]


def run(way: str, x: Tensor, y: Tensor) -> dict[str, float]:
    """One way, once to warm up on few rows and once to be timed."""
    few = torch.arange(min(len(y), 4 * (int(y.max()) + 1)))
    WAYS[way](x[few][:, :64].contiguous(), y[few])
    before, clock, cores = resident(), time.perf_counter(), time.process_time()
    value = WAYS[way](x, y)
    return {
        "seconds": time.perf_counter() - clock,
        "core_seconds": time.process_time() - cores,
        "mebibytes": (peak() - before) / 1024,
        "value": value,
    }


# --- features in a file


def written(n: int, d: int, k: int, folder: Path) -> None:
    """Float32 features of k classes, drawn and written in pieces."""
    generator = np.random.default_rng(0)
    means = generator.standard_normal((k, d), dtype=np.float32)
    labels = (np.arange(n) * 7919) % k
    np.save(folder / "labels.npy", labels)
    rows = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=np.float32, shape=(n, d))
    for start in range(0, n, 10_000):
        part = labels[start : start + 10_000]
        rows[start : start + len(part)] = means[part] + generator.standard_normal((len(part), d), dtype=np.float32)
    rows.flush()


def as_arrow(folder: Path, target: Path) -> None:
    """The same features as lists in one column of an Arrow file."""
    import pyarrow
    from pyarrow import feather

    x = np.load(folder / "x.npy", mmap_mode="r")
    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(x.reshape(-1)), x.shape[1])
    table = pyarrow.table({"x": lists, "label": np.load(folder / "labels.npy")})
    feather.write_feather(table, str(target / "x.arrow"), compression="uncompressed")


def raw_seconds(path: Path, piece: int) -> float:
    """The file read from end to end into one piece of memory."""
    memory, clock = bytearray(piece), time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.readinto(memory):
            pass
    return time.perf_counter() - clock


def run_reading(folder: Path) -> dict[str, Any]:
    """Both ways to read a folder, in turns, the fastest of some."""
    from equisep.data.stores import StoredBatches, open_features

    (path,) = (path for path in folder.iterdir() if path.stem == "x")
    batches = StoredBatches(open_features(folder).train, reused=True)
    raw, ours = [], []
    for _ in range(max(REPEATS, READ_BYTES // path.stat().st_size)):
        raw += [raw_seconds(path, piece) for piece in PIECES]
        clock = time.perf_counter()
        for _rows in batches:
            pass
        ours.append(time.perf_counter() - clock)
    return {"file": path.suffix[1:], "raw_seconds": min(raw), "reading_seconds": min(ours)}


def run_stored(folder: Path, k: int, precision: str) -> dict[str, Any]:
    """D, CDNV and nearest centers of a folder."""
    metrics = ("fuzziness", *(("cdnv",) if k <= CLASSES else ()), *(("ncc",) if k <= NEAREST else ()))
    marks: dict[str, list[float]] = {}

    def progress(what: str, done: int, total: int | None) -> None:
        marks.setdefault(what, [time.process_time()]).append(time.process_time())

    clock, cores = time.perf_counter(), time.process_time()
    profile = equisep.measure_features(
        folder, metrics=metrics, intervals="none", memory=0, coordinates=0, precision=precision, progress=progress
    )
    return {
        "metrics": list(metrics),
        "precision": precision,
        "seconds": time.perf_counter() - clock,
        "core_seconds": time.process_time() - cores,
        "passes": {what: times[-1] - times[0] for what, times in marks.items()},
        "gibibytes": peak() / 2**20,
        "fuzziness": profile.sites[0].fuzziness,
        "ncc": profile.sites[0].ncc_train,
    }


def rates() -> dict[str, float]:
    """What a core does in a second: numbers summed, products of the second pass, float32 products of nearest centers, pairs."""
    from equisep.separation import Assignments, SiteTask, TrainSite

    n, d, k = 20_480, 1024, 1000
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(n) % k
    x = torch.randn(n, d, generator=generator) + torch.randn(k, d, generator=generator)[y]
    spent: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        begin = time.process_time()
        result = work()
        spent[name] = min(spent.get(name, float("inf")), time.process_time() - begin)
        return result

    for _ in range(REPEATS):
        for nearest in (False, True):
            site = TrainSite(SiteTask(k, centers=nearest))
            timed("first", lambda site=site: site.first([x], Assignments(y)))  # type: ignore[misc]
            timed("turn", site.turn)
            timed("second" if not nearest else "nearest", lambda site=site: site.second([x], Assignments(y)))  # type: ignore[misc]
    r = k - 1
    spent["pairs"] = pair_seconds(r)
    return {
        "numbers_summed": n * d / spent["first"],
        "products": 2.0 * n * d * r / spent["second"],
        "nearest_products": 2.0 * n * k * r / max(spent["nearest"] - spent["second"], 1e-9),
        "decomposition_products": 2.0 * d * k * k / spent["turn"],
        "pair_products": float(POINTS) * POINTS * r / spent["pairs"],
    }


def pair_seconds(r: int) -> float:
    """All distances between many class means in r directions."""
    from equisep.separation.pairs.means import squared_distances

    points = torch.randn(POINTS, r, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    best = float("inf")
    for _ in range(REPEATS):
        begin = time.process_time()
        for _tile in squared_distances(points):
            pass
        best = min(best, time.process_time() - begin)
    return best


# --- what all of it comes to


def cells(full: bool) -> list[dict[str, Any]]:
    """All ways at all sizes, in turns; the fastest run of each."""
    rows = []
    sizes = {
        (n, d, k): ways for n, d, k, ways in (*SIZES, *(FULL if full else ()))
    }  # a full run has more ways of a size
    for (n, d, k), ways in sizes.items():
        best: dict[str, dict[str, float]] = {}
        x, y = data(n, d, k, decades=1)
        x = x.to(torch.float32)
        for number in range(REPEATS):
            for way in ways:
                if not number or way in OURS or (n * d < LARGE and way != SLOW):
                    one = run(way, x, y)
                    best[way] = min(best.get(way, one), one, key=lambda each: each["core_seconds"])
        for way, one in best.items():
            one["error"] = abs(one["value"] / best[judge(way, best)]["value"] - 1)
        rows.append({"n": n, "d": d, "classes": k, "ways": best})
    return rows


def stored(full: bool) -> list[dict[str, Any]]:
    """Features of a file, each size and precision in a process of its own; the file is gone afterwards."""
    rows = list[dict[str, Any]]()
    for n, d, k in (*ROWS, *FULL_ROWS) if full else ROWS:
        size = {"n": n, "d": d, "classes": k}
        with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as other:
            written(n, d, k, Path(name))
            exact = {**size, **_process("reading", name), **_process("stored", name, str(k), "float64")}
            rows.append(exact)
            if k <= NEAREST:
                quick = _process("stored", name, str(k), "float32")
                error = abs(quick["fuzziness"] / exact["fuzziness"] - 1)
                rows.append({**size, "file": exact["file"], **quick, "error": error})
            if n == ARROW_ROWS:
                as_arrow(Path(name), Path(other))
                rows.append({**size, **_process("reading", other), **_process("stored", other, str(k), "float64")})
        print(json.dumps(rows[-1]), file=sys.stderr)  # half an hour is long
    return rows


def growth(files: list[dict[str, Any]]) -> float:
    """What the memory of the most rows is more than that of the fewest, of one width, one number of classes, one way."""
    alike = [row for row in files if (row["classes"], row["file"], row["precision"]) == (ROWS[0][2], "npy", "float64")]
    return float(alike[-1]["gibibytes"] / alike[0]["gibibytes"] - 1)


def _process(*words: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, *words], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def costs_of(record: dict[str, Any]) -> str:
    """The worked costs of docs/scale.md, from the rates of a record."""
    known, bytes_read = record["rates"], record["read_bytes_per_second"]
    lines = [
        "| features | n | d | K | layers | read twice | D | CDNV | nearest centers | memory per layer |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, n, d, k, layers in WORKED:
        r = min(d, k - 1)
        summed = n * d / known["numbers_summed"]
        second = 2.0 * n * d * r / known["products"]
        decomposed = 2.0 * d * k * min(d, k) / known["decomposition_products"]
        hours = [
            (summed + second + decomposed) / 3600,
            float(k) * k * r / known["pair_products"] / 3600,
            2.0 * n * k * r / known["nearest_products"] / 3600,
        ]
        reading = 2 * 4 * n * d * layers / bytes_read
        held = 8 * record["held_matrices"] * k * d / 2**30
        cost = " | ".join(_hours(layers * each) for each in hours)
        lines.append(
            f"| {name} | {n:,} | {d:,} | {k:,} | {layers} | {_hours(reading / 3600)} | {cost} | {held:.2g} GiB |"
        )
    return "\n".join(lines)


NAMES = {
    "equisep": "D, `equisep.fuzziness`",
    "equisep32": 'D, the same with `precision="float32"`',
    "pinv32": "D, d × d matrices and `pinv` in float32",
    "pinv64": "D, d × d matrices and `pinv` in float64",
    "equisep_cdnv": "CDNV, `equisep.cdnv`",
    "loops": "CDNV, loops over pairs of classes",
    "equisep_stream": "Calinski–Harabasz, from a stream",
    "torchmetrics": "Calinski–Harabasz, torchmetrics",
}


def speed_of(record: dict[str, Any]) -> str:
    """Time, memory and digits of all ways, as a table of docs/scale.md."""
    measured = all("mebibytes" in one for row in record["sizes"] for one in row["ways"].values())
    titles = [
        "n",
        "d",
        "K",
        "number, and how",
        "core-seconds",
        *(["MiB beside the data"] if measured else []),
        "relative error",
    ]
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    for row in record["sizes"]:
        size = f"{row['n']:,} | {row['d']:,} | {row['classes']:,}"
        for way, name in NAMES.items():
            if way in row["ways"]:
                one = row["ways"][way]
                cost = f"{one['core_seconds']:.2g}" + (f" | {max(0, round(one['mebibytes'])):,}" if measured else "")
                error = "–" if judge(way, row["ways"]) == way else format(one["error"], ".0e")
                lines.append(f"| {size} | {name} | {cost} | {error} |")
    return "\n".join(lines)


def stored_of(record: dict[str, Any]) -> str:
    """Features of files, as a table of docs/scale.md."""
    words = {"fuzziness": "D", "cdnv": "CDNV", "ncc": "nearest centers"}
    lines = [
        "| n | d | K | file | numbers | products | seconds | core-seconds | GiB at most | reader, of a plain loop |",
        f"|{'---|' * 10}",
    ]
    for row in record["stored"]:
        share = f"{row['raw_seconds'] / row['reading_seconds']:.0%}" if "reading_seconds" in row else ""
        what = ", ".join(words[name] for name in row["metrics"])
        size = f"{row['n']:,} | {row['d']:,} | {row['classes']:,} | .{row.get('file', 'npy')} | {what}"
        took = f"{row['seconds']:.3g} | {row['core_seconds']:.3g} | {row['gibibytes']:.3g}"
        lines.append(f"| {size} | {row.get('precision', 'float64')} | {took} | {share} |")
    return "\n".join(lines)


def _hours(value: float) -> str:
    number, unit = (3600 * value, "s") if value < 1 / 60 else (60 * value, "min") if value < 1 else (value, "h")
    return f"{number:,.0f} {unit}" if number >= 10 else f"{number:.2g} {unit}"


WORKED = (
    ("ImageNet-1k, ResNet-50, last layer", 1_281_167, 2048, 1000, 1),
    ("ImageNet-1k, ViT-L, every block", 1_281_167, 1024, 1000, 24),
    ("ImageNet-22k, ResNet-50, last layer", 14_197_122, 2048, 21_841, 1),
    ("ImageNet-22k, ViT-L, every block", 14_197_122, 1024, 21_841, 24),
    ("128k vocabulary, 8B model, every block, 10 M tokens", 10_000_000, 4096, 128_256, 32),
)


def write_page(record: dict[str, Any], page: Path) -> None:
    """Put all tables between their marks; that of the GPU is of a record of its own."""
    text = page.read_text(encoding="utf-8")
    (kept,) = RESULTS.glob("scale-nvidia-*.json")
    gpu = gpu_of(json.loads(kept.read_text(encoding="utf-8")))
    for name, table in (
        ("speed", speed_of(record)),
        ("stored", stored_of(record)),
        ("costs", costs_of(record)),
        ("gpu", gpu),
    ):
        begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        head, rest = text.split(begin)
        text = head + begin + table + end + rest.split(end)[1]
    page.write_text(text, encoding="utf-8")


def main() -> None:
    """Everything, or the page alone."""
    page = Path(__file__).parents[1] / "docs" / "scale.md"
    if "--page" in sys.argv:
        (kept,) = RESULTS.glob("scale-cpu-*.json")
        write_page(json.loads(kept.read_text(encoding="utf-8")), page)
        return
    full = "--full" in sys.argv
    if full:
        sys.argv.remove("--full")
    speed, sizes, files = rates(), cells(full), stored(full)
    timed = [row for row in files if "reading_seconds" in row]
    largest = max(files, key=lambda row: row["classes"] * row["d"])
    finish(
        "scale",
        {
            "rates": speed,
            "read_bytes_per_second": max(4 * row["n"] * row["d"] / row["reading_seconds"] for row in timed),
            "read_share_of_raw": {
                kind: min(row["raw_seconds"] / row["reading_seconds"] for row in timed if row["file"] == kind)
                for kind in ("npy", "arrow")
            },
            "memory_growth": growth(files),
            # of K × d float64 numbers, as many as the memory of the largest state came to
            "held_matrices": largest["gibibytes"] * 2**30 / (8 * largest["classes"] * largest["d"]),
            "sizes": sizes,
            "stored": files,
        },
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["stored"]:
        print(json.dumps(run_stored(Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])))
    elif sys.argv[1:2] == ["reading"]:
        print(json.dumps(run_reading(Path(sys.argv[2]))))
    else:
        main()

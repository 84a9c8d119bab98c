"""What docs/training.md says of the limit, from what `_limit.py` counts and from the committed records of `limit.py`.

`python benchmarks/_limit_page.py` prints the tables and what the text says; tests/test_limit_page.py compares the page with them.
"""

from __future__ import annotations

import json
from typing import Any

from _limit import EPOCHS, STEPS, counts, floor
from _record import RESULTS
from equisep.training import Shape

DATASHEET = {"operations": 67e12, "bytes": 4.8e12}  # of an H200: float32 outside the matrix units, device memory
TF32 = 494e12  # operations a second of its matrix units on dense matrices
WANTED = 1e5 / 600  # trainings a second that were asked for


def records(device: str) -> list[dict[str, Any]]:
    """The committed records of `limit.py` on such a device."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob(f"limit-{device}-*.json"))]


def counted() -> list[str]:
    """What one member of the papers' 8-layer network needs in one epoch."""
    shape = Shape.deep(8)
    known, least = counts(shape), floor(shape, DATASHEET)
    rows = {
        "operations of the products": f"{known['operations'] / 1e6:.0f} million",
        "weights and both moments": f"{known['state_bytes'] / 1e3:.0f} kB",
        "the optimizer reads and writes them in every step": f"{known['optimizer_bytes'] / 1e6:.1f} MB",
        "both passes read the weights": f"{known['weights_for_products_bytes'] / 1e6:.1f} MB",
        "linear outputs, written once and read three times": f"{known['linear_outputs_bytes'] / 1e6:.1f} MB",
        "together": f"{known['least_bytes'] / 1e6:.1f} MB, {known['operations'] / known['least_bytes']:.0f} operations a byte",
        "what the kernel moves": f"{known['kernel_bytes'] / 1e6:.1f} MB",
        "shared memory of one of its blocks": f"{known['kernel_block_shared_bytes'] / 1e3:.0f} kB",
        "trainings a second, if operations were all": f"{1 / least['operations']:.0f}",
        "if operations by tensor cores in TF32 were all": f"{TF32 / (EPOCHS * known['operations']):.0f}",
        "if bytes were all": f"{1 / least['bytes']:.0f}",
        "if the bytes of the kernel were all": f"{DATASHEET['bytes'] / (EPOCHS * known['kernel_bytes']):.0f}",
        "asked for: 100,000 in ten minutes": f"{WANTED:.0f}",
    }
    return ["| one member of depth 8, width 100, with Adam | an epoch |", "|---|---|"] + [
        f"| {name} | {value} |" for name, value in rows.items()
    ]


def rates(record: dict[str, Any]) -> list[str]:
    """What the datasheet promises, and what a large product and a large copy reached in the run."""
    found, faster = record["ceilings_per_second"], record["ceilings_per_second_tf32"]
    return [
        "| an H200 a second | datasheet | measured |",
        "|---|---|---|",
        f"| operations in float32 | {DATASHEET['operations'] / 1e12:.0f} T | {found['operations'] / 1e12:.0f} T |",
        f"| operations in TF32 | {TF32 / 1e12:.0f} T | {faster['operations'] / 1e12:.0f} T |",
        f"| bytes | {DATASHEET['bytes'] / 1e12:.1f} TB | {found['bytes'] / 1e12:.1f} TB |",
    ]


def on_gpu(record: dict[str, Any]) -> list[str]:
    """Trainings a second by the kernel, and their share of float32's floor; with TF32 and by graphs where the record has them.

    Rows that a run has not reached are left out.
    """
    names = ["depth", "width", "members", "blocks a member", "kernel", "TFLOP/s", "of the floor"]
    names += ["with TF32", "TFLOP/s with TF32", "graphs"]
    faster, graphs = "kernel_tf32_trainings_per_second", "graphs_trainings_per_second"
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    for row in sorted(record["rows"], key=lambda row: (row["depth"], row["width"], row["members"])):
        if "kernel_trainings_per_second" not in row:
            continue
        shape = Shape.deep(row["depth"], width=row["width"])
        rate, each = row["kernel_trainings_per_second"], EPOCHS * counts(shape)["operations"] / 1e12
        share = rate * max(floor(shape, DATASHEET).values())
        blocks = row["build"].split(",")[0].removeprefix("cluster ")
        cells = [str(row[name]) for name in ("depth", "width", "members")]
        cells += [blocks, f"{rate:.1f}", f"{rate * each:.1f}", f"{share:.0%}"]
        cells += [f"{row[faster]:.1f}", f"{row[faster] * each:.1f}"] if faster in row else ["–", "–"]
        cells.append(f"{row[graphs]:.1f}" if graphs in row else "–")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def counters(record: dict[str, Any], members: int = 264) -> list[str]:
    """What the hardware counted while the kernel trained one epoch, in float32 and with TF32."""
    shape, name = Shape.deep(8), f"{members} members of depth 8, cluster 1, resident 2"
    steps, full = members * STEPS, record["ceilings_per_second"]["bytes"]
    columns: list[list[str]] = []
    for known in (record["counters"][name], record["counters"][f"{name}, TF32"]):

        def of(counter: str, known: dict[str, str] = known) -> float:
            return float(known[counter].replace(",", ""))

        seconds, moved = of("gpu__time_duration.sum [ns]") / 1e9, of("dram__bytes.sum.per_second [byte/s]")
        wanted = WANTED * EPOCHS * seconds / members * moved
        stalled = "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio [inst]"
        columns.append(
            [
                f"{seconds * 1e3:.1f} ms",
                f"{members / (EPOCHS * seconds):.0f}",
                f"{moved / 1e12:.2f} TB, {moved / full:.0%}",
                f"{moved * seconds / steps / 1e6:.1f} MB",
                f"{wanted / 1e12:.1f} TB, {wanted / full:.0%}",
                f"{of('lts__t_sector_hit_rate.pct [%]'):.0f}%",
                f"{of('smsp__issue_active.avg.pct_of_peak_sustained_active [%]'):.0f}%",
                f"{of('sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active [%]'):.0f}%",
                f"{of('sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active [%]'):.0f}%",
                f"{of('smsp__average_warp_latency_per_inst_issued.ratio [cycle]'):.1f}",
                f"{of(stalled):.1f}",
            ]
        )
    names = [
        "time of the epoch",
        "trainings a second, were all epochs like it",
        f"moved through device memory a second, of the {full / 1e12:.1f} TB of a large copy",
        f"by a step of one network; counted: {counts(shape)['kernel_bytes'] / STEPS / 1e6:.1f} MB",
        f"a second, if it trained {WANTED:.0f} networks a second",
        "reads and writes that the cache answers",
        "instructions issued, of what could be",
        "pipe of multiplications and additions busy",
        "pipe of tensor cores busy",
        "cycles of a warp from one instruction to the next",
        "of them waiting for memory",
    ]
    return ["| | float32 | TF32 |", "|---|---|---|"] + [
        f"| {name} | {one} | {other} |" for name, one, other in zip(names, *columns, strict=True)
    ]


def said(record: dict[str, Any]) -> list[str]:
    """What the text says of the same run, word by word."""
    grid, grids = record["fig1_grid_1_seeds"], record["fig1_grid_10_seeds"]
    rows = [row for row in record["rows"] if (row["depth"], row["width"]) == (8, 100)]
    top = {ending: max(row.get(f"kernel{ending}_trainings_per_second", 0) for row in rows) for ending in ("", "_tf32")}
    used = top[""] * EPOCHS * counts(Shape.deep(8))["operations"] / 1e12
    plain, compiled, vmap = (
        record["users"][f"{way}_trainings_per_second"] for way in ("plain", "compiled", "vmap_264")
    )
    kernel, graphs = (
        rows[0][f"{way}_trainings_per_second"] for way in ("kernel", "graphs")
    )  # of 264 members, as vmap's
    return [
        f"take {grid['seconds_from_process_start']:.1f} s from process start",
        f"of which {grid['seconds_imports_and_data']:.1f} s are imports and data "
        f"({grid['seconds_of_them_importing_torch']:.1f} s torch alone",
        f"{grids['trainings']} take {grids['seconds_from_process_start']:.1f} s",
        f"trains {top['']:.0f} networks of depth 8 a second, 100,000 in {1e5 / top[''] / 60:.0f} minutes, "
        f"at {used:.0f} of the {DATASHEET['operations'] / 1e12:.0f} TFLOP/s",
        f"with TF32 {top['_tf32']:.0f} a second, 100,000 in {1e5 / top['_tf32'] / 60:.0f} minutes",
        f"a plain loop trains {plain:.3f} networks of depth 8 a second, a compiled one {compiled:.3f}, `torch.func.vmap` over "
        f"264 networks {vmap:.1f}, captured graphs {graphs:.0f} and the kernel {kernel:.0f}",
        f"What stands between {used:.0f} and {DATASHEET['operations'] / 1e12:.0f} TFLOP/s",
    ]


def on_cpu(record: dict[str, Any]) -> list[str]:
    """Trainings a minute on a processor, of every contestant."""
    names = ["depth", "members", "engine", "without `cpu_passes`", "vmap", "plain loop", "compiled loop"]
    names += ["of the floor", "of products of this size"]
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    for row in record["rows"]:
        if "engine_trainings_per_second" not in row:
            continue
        known = [record[name].get(f"depth {row['depth']}", {}) for name in ("plain", "compiled")]
        plain, compiled = (
            max((value for name, value in one.items() if name.startswith("trainings")), default=None) for one in known
        )
        vmap = max(value for name, value in row.items() if name.startswith("vmap"))
        rates = [row["engine_trainings_per_second"], row["engine_without_cpu_passes_trainings_per_second"], vmap, plain]
        told = ["–" if value is None else f"{60 * value:.1f}" for value in (*rates, compiled)]
        shares = (row["engine_share_of_floor"], row["engine_share_of_products_of_this_size"])
        cells = [str(row["depth"]), str(row["members"]), *told, *(f"{share:.0%}" for share in shares)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Print every table there is a record for, and what the text says."""
    tables = [counted()]
    for record in records("nvidia-h200"):
        tables += [rates(record), on_gpu(record), counters(record), said(record)]
    tables += map(on_cpu, records("cpu"))
    print("\n\n".join("\n".join(table) for table in tables))


if __name__ == "__main__":
    main()

"""The tables of docs/training.md on the limit, from what `_limit.py` counts and from the committed records of `limit.py`.

`python benchmarks/_limit_page.py` prints them; tests/test_limit_page.py compares the page with them.
"""

from __future__ import annotations

import json
from typing import Any

from _limit import EPOCHS, counts, floor
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


def on_gpu(record: dict[str, Any]) -> list[str]:
    """Trainings a second by the kernel, and their share of float32's floor; those with TF32 where the record has them."""
    names = ["depth", "members", "blocks a member", "trainings a second", "TFLOP/s", "of the floor"]
    faster = "kernel_tf32_trainings_per_second"
    told = any(faster in row for row in record["rows"])
    names += ["with TF32", "TFLOP/s with TF32"] if told else []
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    for row in record["rows"]:
        if "kernel_trainings_per_second" not in row:
            continue
        shape = Shape.deep(row["depth"], width=row["width"])
        rate, each = row["kernel_trainings_per_second"], EPOCHS * counts(shape)["operations"] / 1e12
        share = rate * max(floor(shape, DATASHEET).values())
        blocks = row["build"].split(",")[0].removeprefix("cluster ")
        cells = [str(row["depth"]), str(row["members"]), blocks, f"{rate:.1f}", f"{rate * each:.1f}", f"{share:.0%}"]
        if told:
            cells += [f"{row[faster]:.1f}", f"{row[faster] * each:.1f}"] if faster in row else ["–", "–"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


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
    """Print every table there is a record for."""
    tables = [counted(), *map(on_gpu, records("nvidia-h200")), *map(on_cpu, records("cpu"))]
    print("\n\n".join("\n".join(table) for table in tables))


if __name__ == "__main__":
    main()

"""What was measured, as the settings of a profile keep it: alike for every command, so that profiles compare."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equisep.data import Dataset, Preparation


def data_record(
    dataset: Dataset, preparation: Preparation, *, split: str, per_class: int | None, seed: int, batch_size: int
) -> dict[str, Any]:
    """Which samples, prepared how, in which batches."""
    return {
        "name": dataset.name,
        "checksum": dataset.checksum,
        "split": split,
        "per_class": per_class,
        "seed": seed,
        "preparation": asdict(preparation),
        "batch_size": batch_size,
    }

"""One step from a data set to tensors: a sample is drawn from a split and prepared."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from equisep.data.dataset import Dataset
from equisep.data.preparation import Preparation, prepare
from equisep.data.sampling import draw
from equisep.errors import DataError
from equisep.shapes import Float, Int


def prepare_split(
    dataset: Dataset,
    preparation: Preparation | str | None = None,
    *,
    per_class: int | None = None,
    sizes: Sequence[int] | None = None,
    seed: int = 0,
    split: str = "train",
    classes: int | Sequence[int] | None = None,
) -> tuple[Float[torch.Tensor, "n ..."], Int[torch.Tensor, " n"]]:
    """Samples (float32) and labels (int64) of a split, drawn as `draw` does and prepared as `prepare` does."""
    x, y = dataset.split(split)
    if len(x) == 0:
        raise DataError(f"The {split} split of `{dataset.name}` holds no samples. Use another split or data set.")
    if per_class is None and sizes is None and classes is None:
        return prepare(x, preparation), torch.from_numpy(y.copy())
    chosen = draw(
        y, per_class=per_class, sizes=sizes, seed=seed, classes=dataset.classes if classes is None else classes
    )
    return prepare(x[chosen], preparation), torch.from_numpy(y[chosen])

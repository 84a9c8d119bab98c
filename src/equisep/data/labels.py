"""Labels as numpy keeps them here: an int64 vector of class numbers from 0 on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from equisep.errors import LabelError
from equisep.labels import class_indices
from equisep.results import Note

Labels = npt.NDArray[np.int64]

MOST_CLASSES = 2**24  # a mean is kept for each class, so a stray identifier taken for a label would fill the memory


def label_vector(labels: npt.ArrayLike | torch.Tensor) -> tuple[Labels, Note | None]:
    """Labels as a new int64 vector, with a Note where one-hot rows were turned into class numbers."""
    # torch warns when it is handed an array it must not write to, hence the copy
    indices, note = class_indices(labels.copy() if isinstance(labels, np.ndarray) else labels)
    vector: Labels = indices.cpu().numpy().copy()
    if vector.size and int(vector.min()) < 0:
        raise LabelError(
            f"Class labels run from 0 on; found {int((vector < 0).sum())} negative ones, the least {int(vector.min())}. "
            "Drop or renumber those samples."
        )
    if vector.size and int(vector.max()) >= MOST_CLASSES:
        raise LabelError(
            f"Class labels number the classes from 0 on; the highest found is {int(vector.max())}. "
            "Renumber them, e.g. with `numpy.unique(y, return_inverse=True)[1]`."
        )
    return vector, note

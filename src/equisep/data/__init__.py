"""Data sets by name or path, how they are prepared, and which samples are drawn from them."""

from equisep.data.batches import Batches
from equisep.data.dataset import Dataset
from equisep.data.load import DATA_NAMES, load_data
from equisep.data.preparation import PREPARATIONS, Preparation, named_preparation, prepare, resize_images
from equisep.data.sampling import draw, randomize_labels
from equisep.data.split import prepare_split

__all__ = [
    "DATA_NAMES",
    "PREPARATIONS",
    "Batches",
    "Dataset",
    "Preparation",
    "draw",
    "load_data",
    "named_preparation",
    "prepare",
    "prepare_split",
    "randomize_labels",
    "resize_images",
]

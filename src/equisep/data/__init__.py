"""Data sets by name or path, how they are prepared, and which samples are drawn from them."""

from equisep.data.batches import Batches
from equisep.data.dataset import Dataset, class_names_of
from equisep.data.load import DATA_NAMES, full_per_class, load_data
from equisep.data.preparation import (
    PREPARATIONS,
    Preparation,
    drawn_order,
    named_preparation,
    prepare,
    prepare_split,
    resize_images,
)
from equisep.data.sampling import draw, randomize_labels
from equisep.data.text import Sentences, TokenBatches, load_sentences, load_tokenizer

__all__ = [
    "DATA_NAMES",
    "PREPARATIONS",
    "Batches",
    "Dataset",
    "Preparation",
    "Sentences",
    "TokenBatches",
    "class_names_of",
    "draw",
    "drawn_order",
    "full_per_class",
    "load_data",
    "load_sentences",
    "load_tokenizer",
    "named_preparation",
    "prepare",
    "prepare_split",
    "randomize_labels",
    "resize_images",
]

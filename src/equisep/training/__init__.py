"""Training networks the way the papers do: one alone, or many of one shape side by side."""

from equisep.training.augment import CROP_FLIP_ROTATE, Augmentation
from equisep.training.captured import Engine
from equisep.training.ensemble.member import FrozenNorm, Member, Shape, Stage
from equisep.training.ensemble.memory import bytes_per_member
from equisep.training.ensemble.reading import EnsembleReading, Watch
from equisep.training.ensemble.record import Ensemble
from equisep.training.ensemble.train import train_ensemble
from equisep.training.loop import History, train
from equisep.training.recipe import OptimizerName, Recipe

__all__ = [
    "CROP_FLIP_ROTATE",
    "Augmentation",
    "Engine",
    "Ensemble",
    "EnsembleReading",
    "FrozenNorm",
    "History",
    "Member",
    "OptimizerName",
    "Recipe",
    "Shape",
    "Stage",
    "Watch",
    "bytes_per_member",
    "train",
    "train_ensemble",
]

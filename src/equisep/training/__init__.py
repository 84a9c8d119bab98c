"""Training networks the way the papers do: one alone, or many of one shape side by side."""

from equisep.devices import Engine
from equisep.training.ensemble.member import FrozenNorm, Member, Stage
from equisep.training.ensemble.memory import bytes_per_member
from equisep.training.ensemble.reading import Reading, Watch
from equisep.training.ensemble.record import Ensemble
from equisep.training.ensemble.shape import Shape
from equisep.training.ensemble.train import train_ensemble
from equisep.training.grouped import StackedModule, stack_modules
from equisep.training.loop import History, train
from equisep.training.recipe import OptimizerName, Recipe
from equisep.training.stacked_networks import StackedNetworks, train_stacked

__all__ = [
    "Engine",
    "Ensemble",
    "FrozenNorm",
    "History",
    "Member",
    "OptimizerName",
    "Reading",
    "Recipe",
    "Shape",
    "StackedModule",
    "StackedNetworks",
    "Stage",
    "Watch",
    "bytes_per_member",
    "stack_modules",
    "train",
    "train_ensemble",
    "train_stacked",
]

"""Training networks the way the papers do: one alone, or many of one shape side by side."""

from equisep.training.engines import Engine
from equisep.training.ensemble import train_ensemble
from equisep.training.grouped import StackedModule, stack_modules
from equisep.training.loop import History, train
from equisep.training.member import FrozenNorm, Member, Stage
from equisep.training.memory import bytes_per_member
from equisep.training.recipe import OptimizerName, Recipe
from equisep.training.shape import Shape
from equisep.training.stacked_networks import StackedNetworks, train_stacked
from equisep.training.trained import Ensemble
from equisep.training.watch import Reading, Watch

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

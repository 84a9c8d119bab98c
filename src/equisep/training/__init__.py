"""Training a network the way the papers do."""

from equisep.training.loop import History, train
from equisep.training.recipe import OptimizerName, Recipe

__all__ = ["History", "OptimizerName", "Recipe", "train"]

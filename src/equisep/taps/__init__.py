"""Reading the activations of any nn.Module, which is left exactly as it was found."""

from equisep.taps.modes import Mode, batch_norms, random_state_kept, reading_mode
from equisep.taps.sites import GRAINS, INPUT, Sites, module_names, resolve_sites
from equisep.taps.tap import Consume, features_of, first_tensor, tap

__all__ = [
    "GRAINS",
    "INPUT",
    "Consume",
    "Mode",
    "Sites",
    "batch_norms",
    "features_of",
    "first_tensor",
    "module_names",
    "random_state_kept",
    "reading_mode",
    "resolve_sites",
    "tap",
]

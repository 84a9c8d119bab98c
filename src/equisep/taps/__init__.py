"""Reading the activations of any nn.Module, which is left exactly as it was found."""

from equisep.taps.calls import Call, first_tensor, recorded_calls, scores_of, with_whole_scores
from equisep.taps.modes import batch_norms, random_state_kept, reading_mode
from equisep.taps.names import INPUT, every_call, first_call, is_among
from equisep.taps.reduce import Reduction, ReductionLike, Rows, UnfitError
from equisep.taps.sites import (
    GRAINS,
    Choice,
    Grains,
    Sites,
    blocks_note,
    choose,
    declares_sites,
    grains_of,
    resolve_sites,
    site_record,
)
from equisep.taps.spread import full_tensor, is_divided, is_spread, sharded_by, whole
from equisep.taps.tap import Activation, Calls, check_calls, listening, signature_of, tap
from equisep.taps.walk import modules_of, parameters_of
from equisep.taps.wrappers import (
    eager,
    inner,
    kind_name,
    kind_of,
    refuse_flattened,
    refuse_scripted,
    refuse_uninitialized,
    site_modules,
    wrapper_notes,
)

__all__ = [
    "GRAINS",
    "INPUT",
    "Activation",
    "Call",
    "Calls",
    "Choice",
    "Grains",
    "Reduction",
    "ReductionLike",
    "Rows",
    "Sites",
    "UnfitError",
    "batch_norms",
    "blocks_note",
    "check_calls",
    "choose",
    "declares_sites",
    "eager",
    "every_call",
    "first_call",
    "first_tensor",
    "full_tensor",
    "grains_of",
    "inner",
    "is_among",
    "is_divided",
    "is_spread",
    "kind_name",
    "kind_of",
    "listening",
    "modules_of",
    "parameters_of",
    "random_state_kept",
    "reading_mode",
    "recorded_calls",
    "refuse_flattened",
    "refuse_scripted",
    "refuse_uninitialized",
    "resolve_sites",
    "scores_of",
    "sharded_by",
    "signature_of",
    "site_modules",
    "site_record",
    "tap",
    "whole",
    "with_whole_scores",
    "wrapper_notes",
]

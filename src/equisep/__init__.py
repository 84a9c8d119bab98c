"""See how a neural network separates its classes, layer by layer.

>>> import torch, equisep
>>> y = torch.arange(90) % 3
>>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
>>> _ = torch.manual_seed(0)
>>> model = equisep.Fnn(depth=4, width=16, inputs=8, classes=3)
>>> profile = equisep.measure(model, (x, y))  # any nn.Module, any iterable of (x, y)
>>> len(profile.sites), profile.law.verdict
(4, 'no law')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equisep._version import __version__ as __version__
from equisep.faces import on_demand

if TYPE_CHECKING:
    from equisep import peeled as peeled
    from equisep.advice.depth import recommend_depth as recommend_depth
    from equisep.data import load_data as load_data
    from equisep.law import fit_law as fit_law
    from equisep.law import summarize_laws as summarize_laws
    from equisep.measuring import corrected_fuzziness as corrected_fuzziness
    from equisep.measuring import measure as measure
    from equisep.measuring import measure_features as measure_features
    from equisep.models import Fnn as Fnn
    from equisep.results import LawFit as LawFit
    from equisep.results import Profile as Profile
    from equisep.separation import cdnv as cdnv
    from equisep.separation import class_fuzziness as class_fuzziness
    from equisep.separation import fuzziness as fuzziness
    from equisep.separation import ncc_accuracy as ncc_accuracy
    from equisep.taps import tap as tap
    from equisep.tracking import History as History
    from equisep.tracking import Separation as Separation
    from equisep.tracking import Tracker as Tracker
    from equisep.training import train as train
    from equisep.training import train_ensemble as train_ensemble

__all__ = [
    "Fnn",
    "History",
    "LawFit",
    "Profile",
    "Separation",
    "Tracker",
    "__version__",
    "cdnv",
    "class_fuzziness",
    "corrected_fuzziness",
    "fit_law",
    "fuzziness",
    "load_data",
    "measure",
    "measure_features",
    "ncc_accuracy",
    "peeled",
    "recommend_depth",
    "summarize_laws",
    "tap",
    "train",
    "train_ensemble",
]

# loaded on first use (PEP 562), so that `import equisep` costs nothing and imports no framework
__getattr__, __dir__, _ = on_demand(
    __name__,
    {
        "advice.depth": "recommend_depth",
        "data": "load_data",
        "law": "fit_law summarize_laws",
        "measuring": "corrected_fuzziness measure measure_features",
        "models": "Fnn",
        "peeled": "peeled",
        "results": "LawFit Profile",
        "separation": "cdnv class_fuzziness fuzziness ncc_accuracy",
        "taps": "tap",
        "tracking": "History Separation Tracker",
        "training": "train train_ensemble",
    },
    loaded=__all__,
)

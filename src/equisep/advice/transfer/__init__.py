"""Transfer: how many layers of a trained model to keep fixed on new data, and how bottom and top then share the separation.

The answer is read and shown without torch: nothing here is imported before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equisep.faces import on_demand

if TYPE_CHECKING:
    from equisep.advice.transfer.answer import TransferAnswer as TransferAnswer
    from equisep.advice.transfer.transfer import transfer_model as transfer_model

__getattr__, __dir__, __all__ = on_demand(
    __name__,
    {
        "answer": "TransferAnswer",
        "transfer": "transfer_model",
    },
)

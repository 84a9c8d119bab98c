"""KerasNetwork: a Keras 3 model on its torch backend with its layers as modules that can be read."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from equisep.errors import ModelError


class KerasNetwork(nn.Module):
    """A Keras model whose layers are modules by name; Keras itself hides them from torch.

    Every layer with a kernel begins a step, which ends before the next one: its sites are the outputs of these steps, but
    of the last one, the classifier. Dropout does nothing when a network is read, so that no site lies behind it. The layers
    are the model's own: nothing is copied. It is read as Keras infers, with the moving statistics of BatchNorm.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        if not isinstance(model, nn.Module):
            raise ModelError(
                f"Keras runs `{type(model).__name__}` on another backend than torch. Set the environment variable "
                "`KERAS_BACKEND=torch` before `import keras`."
            )
        if not getattr(model, "built", False):
            raise ModelError(f"`{model.name}` has no weights yet. Call `model.build(shape)`, or train it first.")
        object.__setattr__(self, "keras_model", model)  # its layers are registered, once
        layers = {_module_name(layer.name): layer for layer in self.keras_model.layers if _has_output(layer)}
        for name, layer in layers.items():
            self.add_module(name, layer)
        self.sites = dict.fromkeys(("layers", "blocks"), tuple(_step_ends(layers)))

    keras_model: Any

    def forward(self, x: Tensor) -> Tensor:
        """The model's prediction."""
        output: Tensor = self.keras_model(x, training=False)
        return output


def _step_ends(layers: dict[str, Any]) -> list[str]:
    """The last layer of every step that does something, without that of the classifier."""
    ends: list[str] = []
    for name, layer in layers.items():
        if hasattr(layer, "kernel") or not ends:
            ends.append(name)
        elif not type(layer).__name__.endswith(("Dropout", "Dropout1D", "Dropout2D", "Dropout3D", "Flatten")):
            ends[-1] = name
    return ends[:-1] if len(ends) > 1 else ends


def _has_output(layer: Any) -> bool:
    return type(layer).__name__ != "InputLayer"


def _module_name(name: str) -> str:
    return str(name).replace(".", "_")

"""Many networks of one architecture as one module: grouped convolutions, wider BatchNorms, batched products.

Activations are (batch, members · channels, …) with the channels of a member side by side, so that `flatten(1)` and
everything that works on each channel by itself keep members apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from equisep.devices import out_of_memory
from equisep.errors import InputError, ModelError
from equisep.shapes import Float
from equisep.training.architecture import INSTEAD, check_alike, check_parts

PROBES = 3  # samples a member on which a stack is compared with its networks
ROUNDING = 1e-6  # relative, in float64; a stack that mixes members differs by about 1


class MemberLinear(nn.Module):
    """Linear layers of m members side by side: one batched product."""

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        super().__init__()
        self.members = len(layers)
        self.weight = _parameter([layer.weight for layer in layers])
        biases = [layer._parameters["bias"] for layer in layers]
        self.bias = _parameter([bias for bias in biases if bias is not None]) if biases[0] is not None else None

    def forward(self, x: Float[Tensor, "b _"]) -> Float[Tensor, "b _"]:
        """Every member's inputs through its own weights."""
        own = x.unflatten(1, (self.members, -1)).transpose(0, 1)  # m b i
        weight = self.weight.unflatten(0, (self.members, -1)).transpose(1, 2)  # m i o
        if self.bias is None:
            found: Tensor = own.bmm(weight)  # m b o
        else:
            found = torch.baddbmm(self.bias.unflatten(0, (self.members, 1, -1)), own, weight)
        return found.transpose(0, 1).flatten(1)


class Memberwise(nn.Module):
    """A part without parameters, applied to each member by itself, as to m times as many samples."""

    def __init__(self, part: nn.Module, members: int) -> None:
        super().__init__()
        self.part = part
        self.members = members

    def forward(self, x: Float[Tensor, "b _ *rest"]) -> Float[Tensor, "b _ ..."]:
        """The outputs of the part, members side by side again."""
        own = self.part(x.unflatten(1, (self.members, -1)).flatten(0, 1))
        found: Tensor = own.unflatten(0, (len(x), self.members)).flatten(1, 2)
        return found


class StackedModule(nn.Module):
    """m networks that are computed at once; made by `stack_modules`, which sees to it that they can be.

    The tree of modules and the names of parameters and buffers are those of one network; each of these tensors holds
    all members one after the other along its first axis.
    """

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = len(networks)
        self.network = _stacked(networks)
        self._shapes = {name: tuple(value.shape) for name, value in networks[0].state_dict().items()}

    def forward(self, x: Float[Tensor, "b m ..."]) -> Float[Tensor, "b m k"]:
        """Class scores of every member on a batch of its own."""
        scores: Tensor = self.network(x.flatten(1, 2)).unflatten(1, (self.members, -1))
        return scores

    def state(self, member: int) -> dict[str, Tensor]:
        """The state dict of one member on the CPU, as its network loads it."""
        whole = self.network.state_dict()
        return {
            name: whole[name].detach().reshape(self.members, *shape)[member].cpu().clone()
            for name, shape in self._shapes.items()
        }


def stack_modules(networks: Sequence[nn.Module], *, sample: Sequence[int]) -> StackedModule:
    """One module that computes all networks, each on its own batch; `sample` is the shape of one sample.

    Stacked are Conv2d (to groups), BatchNorm1d and 2d (to more channels) and Linear (to a batched product); parts
    without parameters work on every channel by itself or, where they may not (`Repeat`, option A, Softmax, …), on
    each member by itself. What networks do between their parts is kept as it is. Where that mixes channels, as the
    concatenations of DenseNet do, the result would be wrong and is refused: copies with random weights are stacked and
    compared with each network on its own, in float64, in evaluation and in training mode.
    The networks stay as they are.
    """
    check_alike(networks)
    check_parts(networks[0], known=_FORMS)
    if not sample or min(sample) < 1:
        raise InputError(f"`sample` is the shape of one sample, such as (3, 32, 32); found {tuple(sample)}.")
    _check_wiring(networks, sample)
    return StackedModule(networks)


def class_scores(network: nn.Module, x: Float[Tensor, "b ..."]) -> Float[Tensor, "b k"]:
    """A network's scores, and one sentence where it gives none."""
    kind = type(network).__name__
    try:
        scores: Any = network(x)
    except (RuntimeError, ValueError, TypeError, LookupError) as error:
        if out_of_memory(error):
            raise
        reason = str(error).split("\n")[0].rstrip(".")
        raise ModelError(f"`{kind}` cannot take samples of shape {tuple(x.shape[1:])}: {reason}.") from error
    if not isinstance(scores, Tensor) or scores.ndim != 2:
        found = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise ModelError(f"`{kind}` has to give one row of class scores a sample; found {found} for {len(x)} samples.")
    return scores


def _widened(layers: Sequence[Any], *, sizes: Sequence[str]) -> nn.Module:
    """The first layer with the tensors of all, one after the other, and its `sizes` so many times as large."""
    found: nn.Module = deepcopy(layers[0])
    for name in sizes:
        setattr(found, name, getattr(found, name) * len(layers))
    for name, parameter in found._parameters.items():
        if parameter is not None:
            setattr(found, name, _parameter([getattr(layer, name) for layer in layers]))
    for name, buffer in found._buffers.items():
        if buffer is not None:
            setattr(found, name, _joined([getattr(layer, name) for layer in layers]))
    return found


def _parameter(values: Sequence[Tensor]) -> nn.Parameter:
    return nn.Parameter(_joined(values), requires_grad=values[0].requires_grad)


def _joined(values: Sequence[Tensor]) -> Tensor:
    """All members along the first axis; single numbers become a vector."""
    return torch.cat([value.detach().view(1) if value.ndim == 0 else value.detach() for value in values])


_FORMS: dict[type[nn.Module], Callable[[Sequence[Any]], nn.Module]] = {
    nn.Conv2d: partial(_widened, sizes=("groups", "in_channels", "out_channels")),
    nn.BatchNorm1d: partial(_widened, sizes=("num_features",)),
    nn.BatchNorm2d: partial(_widened, sizes=("num_features",)),
    nn.Linear: MemberLinear,
}
# parts that treat every channel by itself, or hold nothing; other parts without parameters are applied memberwise
_CHANNELWISE = (
    nn.Sequential, nn.Identity, nn.ReLU, nn.LeakyReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid,
    nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d,
)  # fmt: skip


def _stacked(networks: Sequence[nn.Module]) -> nn.Module:
    """The tree of the first network with every part in its stacked form."""
    tree = deepcopy(networks[0])
    forms: dict[int, nn.Module] = {}  # a part under two names stays one part
    for name, part in list(tree.named_modules(remove_duplicate=False)):
        if id(part) not in forms:
            forms[id(part)] = _form(part, [network.get_submodule(name) for network in networks])
        if forms[id(part)] is part:
            continue
        if not name:
            return forms[id(part)]
        tree.set_submodule(name, forms[id(part)])
    return tree


def _form(part: nn.Module, parts: Sequence[nn.Module]) -> nn.Module:
    if type(part) in _FORMS:
        return _FORMS[type(part)](parts)
    if type(part) in _CHANNELWISE or next(part.children(), None) is not None:
        return part
    return Memberwise(part, len(parts))


@torch.no_grad()
def _check_wiring(networks: Sequence[nn.Module], sample: Sequence[int]) -> None:
    """Refuse networks whose stack computes something else.

    Not the weights but the wiring is in question, so that copies with random weights are compared: a zero among real
    weights could hide a mistake. In float64 rounding is far from any mistake.
    """
    home = next((tensor.device for tensor in networks[0].parameters()), torch.device("cpu"))
    home = torch.device("cpu") if home.type == "mps" else home  # which has no float64
    generator = torch.Generator(home).manual_seed(0)
    copies = [_shaken(network, home, generator) for network in networks]
    together = StackedModule(copies)
    x = torch.randn(PROBES, len(copies), *sample, generator=generator, dtype=torch.float64, device=home)
    for training, mode in ((False, "evaluation"), (True, "training")):
        own = [class_scores(copy.train(training), x[:, member]) for member, copy in enumerate(copies)]
        try:
            scores = together.train(training)(x)
        except (RuntimeError, ValueError, TypeError, LookupError) as error:
            if out_of_memory(error):
                raise
            reason = str(error).split("\n")[0].rstrip(".")
            raise ModelError(
                f"`{type(networks[0]).__name__}` cannot run as a stack of {len(networks)}: {reason}. {INSTEAD}"
            ) from error
        for member, (copy, alone) in enumerate(zip(copies, own, strict=True)):
            state, wanted = together.state(member), copy.state_dict()
            pairs = [(scores[:, member], alone), *((state[name], value.cpu()) for name, value in wanted.items())]
            gap = max(
                (_gap(found, expected) for found, expected in pairs), key=lambda value: (math.isnan(value), value)
            )
            if not gap <= ROUNDING:
                raise ModelError(
                    f"`{type(networks[0]).__name__}` cannot be stacked: in {mode} mode network {member} of "
                    f"{len(networks)} gives other numbers than alone (relative difference {gap:.1g}), because its forward "
                    f"pass mixes channels outside of its parts, or is random. {INSTEAD}"
                )


def _gap(found: Tensor, expected: Tensor) -> float:
    if found.shape != expected.shape:
        return math.inf
    size = float(expected.to(torch.float64).norm())
    gap = float((found - expected).to(torch.float64).norm())
    return gap / size if size else gap


def _shaken(network: nn.Module, home: torch.device, generator: torch.Generator) -> nn.Module:
    """A copy in float64 with random weights, scales, shifts and statistics that keep activations near 1."""
    found = deepcopy(network).to(home, torch.float64)
    for value in (*found.parameters(), *found.buffers()):
        if value.ndim > 1:
            value.normal_(std=math.sqrt(2 * len(value) / value.numel()), generator=generator)
        elif value.is_floating_point():
            value.uniform_(0.5, 1.5, generator=generator)
    return found

"""Forward and backward through all members on a processor: the arithmetic of `passes`, laid out for BLAS and caches.

Activations lie in memory as (member, unit, batch). Products then are W X, which BLAS does faster than X Wᵀ (91 against
82 GFLOP/s on one core for 128×100×100), and a channel of BatchNorm is a contiguous row. They are written where those of
the last step were, through views made once: fresh memory is in no cache, and each call into torch, a view too, lets go
of the interpreter, for which threads that train other members are waiting.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.shapes import Float, Int
from equisep.training.ensemble.passes import EPSILON, MOMENTUM, Plan, split_vectors
from equisep.training.ensemble.stack import Stack


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer for one batch size: views of its parameters and of the buffers it works in; c is m·o."""

    weight: Float[Tensor, "m o i"]
    upward: Float[Tensor, "m i o"]  # the same weight
    grad: Float[Tensor, "m o i"]
    product: Float[Tensor, "m o i"]  # the gradient before it is copied to its place, which has gaps between members
    bias: Float[Tensor, "m o 1"]
    scale: Float[Tensor, " c"] | None
    shift: Float[Tensor, " c"] | None
    inputs: Float[Tensor, "m i b"]
    samples: Float[Tensor, "m b i"]  # the same inputs
    linear: Float[Tensor, "m o b"]
    channels: Float[Tensor, "1 c b"]  # the same outputs
    output: Float[Tensor, "1 c b"] | None  # after BatchNorm and ReLU, the inputs of the layer above; none of the last
    below: Float[Tensor, "m i b"]  # ∂loss/∂inputs


class CpuPasses:
    """Both passes through one stack under one plan, with room for its largest batch; gradients go to `grad`."""

    def __init__(
        self, stack: Stack, grad: Float[Tensor, "m p"], plan: Plan, learning_vectors: Int[Tensor, " v"], *, batch: int
    ) -> None:
        self.stack = stack
        self.grad = grad
        self.plan = plan
        self.learning_vectors = learning_vectors
        inputs, outputs = zip(*stack.shape.layers, strict=True)

        def room(numbers: int) -> Float[Tensor, " numbers"]:
            return stack.theta.new_empty(stack.members * numbers)

        self._inputs = [room(units * batch) for units in inputs]
        self._linear = [room(units * batch) for units in outputs]
        self._below = [room(max(inputs) * batch) for _ in range(2)]  # one is read while the other is written
        self._product = room(max(i * o for i, o in stack.shape.layers))
        self._packed = stack.theta.new_empty(len(stack.vectors))
        self._moved = [index for index in range(len(stack.running_mean)) if not plan.held[index]]
        running = (stack.running_mean, stack.running_var)
        self._running = [kept[index].unsqueeze(0) for kept in running for index in self._moved]
        self._statistics: list[tuple[Tensor, Tensor]] = []  # of each hidden layer, with BatchNorm: mean, inverse
        self._layers: dict[int, list[_Layer]] = {}

    def forward(self, pool: Float[Tensor, "N i"], rows: Int[Tensor, "b m"]) -> Float[Tensor, "b m k"]:
        """Class scores of all members on these rows of the pool, in training mode."""
        layers, shape = self._of_size(len(rows)), self.stack.shape
        torch.index_select(self.stack.theta.view(-1), 0, self.stack.vectors, out=self._packed)
        torch.index_select(pool, 0, rows.t().flatten(), out=layers[0].samples.view(-1, shape.inputs))
        self._statistics = []
        for index, layer in enumerate(layers):
            torch.baddbmm(layer.bias, layer.weight, layer.inputs, out=layer.linear)
            if layer.output is not None:
                y = self._normalized(index, layer) if shape.norm else layer.channels
                torch.clamp_min(y, 0, out=layer.output) if shape.activation else layer.output.copy_(y)
        if self._moved:
            self._follow(len(rows))
        return layers[-1].linear.permute(2, 0, 1)

    def backward(self, slope: Float[Tensor, "b m k"]) -> None:
        """From ∂loss/∂scores of the last forward pass to ∂loss/∂θ of the layers that learn; others are left alone."""
        layers, plan = self._of_size(len(slope)), self.plan
        slope = slope.permute(1, 2, 0)  # m k b
        vectors: list[list[Tensor]] = []
        for index in range(len(layers) - 1, plan.lowest - 1, -1):
            layer = layers[index]
            here: list[Tensor] = []
            if layer.output is not None:
                slope, here = self._through_activation(index, layer, slope)
            if plan.learning[index]:
                layer.grad.copy_(torch.bmm(slope, layer.samples, out=layer.product))
                vectors.append([slope.sum(dim=2).view(-1), *here])
            if index > plan.lowest:
                slope = torch.bmm(layer.upward, slope, out=layer.below)
        packed = torch.cat([part for parts in reversed(vectors) for part in parts])
        self.grad.view(-1).index_copy_(0, self.learning_vectors, packed)

    def _of_size(self, size: int) -> list[_Layer]:
        """The layers for batches of `size`, made once."""
        if size not in self._layers:
            self._layers[size] = list(self._views(size))
        return self._layers[size]

    def _views(self, size: int) -> Iterator[_Layer]:
        m, vectors = self.stack.members, split_vectors(self.stack, self._packed)

        def seen(room: Tensor, rows: int, columns: int) -> Tensor:
            return room[: m * rows * columns].view(m, rows, columns)

        for index, (inputs, outputs) in enumerate(self.stack.shape.layers):
            last = index == self.stack.shape.depth - 1
            # samples are gathered as rows: the lowest inputs alone are (member, batch, unit) in memory
            room = self._inputs[index]
            taken = seen(room, inputs, size) if index else seen(room, size, inputs).transpose(1, 2)
            linear, weight = seen(self._linear[index], outputs, size), self.stack.weight(index)
            yield _Layer(
                weight=weight,
                upward=weight.transpose(1, 2),
                grad=self.stack.weight(index, of=self.grad),
                product=seen(self._product, outputs, inputs),
                bias=vectors[index].bias.unsqueeze(2),
                scale=vectors[index].scale,
                shift=vectors[index].shift,
                inputs=taken,
                samples=taken.transpose(1, 2),
                linear=linear,
                channels=linear.view(1, -1, size),
                output=None if last else seen(self._inputs[index + 1], outputs, size).view(1, -1, size),
                below=seen(self._below[index % 2], inputs, size),
            )

    def _normalized(self, index: int, layer: _Layer) -> Float[Tensor, "1 c b"]:
        """BatchNorm by the batch, which is one group norm whose groups are the channels of all members, or as held."""
        if self.plan.held[index]:
            running = (self.stack.running_mean[index], self.stack.running_var[index])
            y, mean, inverse = torch.native_batch_norm(
                layer.channels, layer.scale, layer.shift, *running, False, MOMENTUM, EPSILON
            )
        else:
            _, c, size = layer.channels.shape
            y, mean, inverse = torch.native_group_norm(layer.channels, layer.scale, layer.shift, 1, c, size, c, EPSILON)
        self._statistics.append((mean, inverse))
        return y

    def _follow(self, size: int) -> None:
        """Running statistics move, as BatchNorm's do: by the variance without bias."""
        means, inverses = zip(*(self._statistics[index] for index in self._moved), strict=True)
        variances = torch.cat(inverses, dim=1).pow_(-2).sub_(EPSILON).mul_(size / (size - 1))
        split = variances.split([mean.shape[1] for mean in means], dim=1)
        torch._foreach_lerp_(self._running, [*means, *split], MOMENTUM)

    def _through_activation(
        self, index: int, layer: _Layer, slope: Float[Tensor, "m o b"]
    ) -> tuple[Float[Tensor, "m o b"], list[Tensor]]:
        """Back through ReLU and BatchNorm of a hidden layer; the gradients of scale and shift where the layer learns."""
        flat = slope.view(layer.channels.shape)
        if self.stack.shape.activation:
            torch.ops.aten.threshold_backward.grad_input(flat, layer.output, 0, grad_input=flat)
        if not self.stack.shape.norm:
            return slope, []
        learns, (mean, inverse) = self.plan.learning[index], self._statistics[index]
        asked = [True, learns, learns]
        if self.plan.held[index]:
            running = (self.stack.running_mean[index], self.stack.running_var[index])
            flat, scale, shift = torch.ops.aten.native_batch_norm_backward(
                flat, layer.channels, layer.scale, *running, mean, inverse, False, EPSILON, asked
            )
        else:
            _, c, size = layer.channels.shape
            flat, scale, shift = torch.ops.aten.native_group_norm_backward(
                flat, layer.channels, mean, inverse, layer.scale, 1, c, size, c, asked
            )
        return flat.view(slope.shape), [scale, shift] if learns else []

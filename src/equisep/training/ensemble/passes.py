"""Forward and backward through all members at once, written out: no autograd graph, few and large kernels.

Activations are laid out (batch, member, unit). Seen as (batch, member·unit) a whole ensemble is one BatchNorm of m·d
channels, for which torch has fast kernels on every device; seen as (member, batch, unit) its linear layers are one
batched matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.shapes import Float, Int
from equisep.training.ensemble.stack import Stack

MOMENTUM, EPSILON = 0.1, 1e-5  # torch's defaults for BatchNorm, which `Fnn` takes
EVERYONE = slice(None)


@dataclass(frozen=True, slots=True)
class Vectors:
    """Biases, scales and shifts of one layer, members side by side."""

    bias: Float[Tensor, "m o"]
    scale: Float[Tensor, " c"] | None
    shift: Float[Tensor, " c"] | None


@dataclass(frozen=True, slots=True)
class Trace:
    """What the backward pass needs of one hidden layer: its input, its linear output, BatchNorm's batch statistics."""

    inputs: Float[Tensor, "b m i"]
    linear: Float[Tensor, "b m o"]
    output: Float[Tensor, "b m o"]
    mean: Tensor | None
    inverse: Tensor | None


@dataclass(frozen=True, slots=True)
class Plan:
    """Which layers learn in a stage, and which normalize by running statistics and leave them alone."""

    learning: tuple[bool, ...]
    held: tuple[bool, ...]

    @property
    def lowest(self) -> int:
        """The first layer that learns; gradients go no further down."""
        return self.learning.index(True)


def vectors_of(stack: Stack) -> list[Vectors]:
    """The vector parameters of every layer, gathered at once."""
    return split_vectors(stack, stack.theta.view(-1).index_select(0, stack.vectors))


def split_vectors(stack: Stack, packed: Float[Tensor, " v"]) -> list[Vectors]:
    """The vector parameters of every layer as views of what was gathered."""
    m, hidden = stack.members, len(stack.shape.widths)
    sizes = [
        m * outputs
        for layer, (_, outputs) in enumerate(stack.shape.layers)
        for _ in range(3 if stack.shape.norm and layer < hidden else 1)
    ]
    parts = iter(packed.split(sizes))
    vectors = []
    for layer, (_, outputs) in enumerate(stack.shape.layers):
        bias = next(parts).view(m, outputs)
        normed = stack.shape.norm and layer < hidden
        vectors.append(Vectors(bias, next(parts) if normed else None, next(parts) if normed else None))
    return vectors


def product(a: Float[Tensor, "m r s"], b: Float[Tensor, "m s t"], out: Float[Tensor, "m r t"]) -> None:
    """A @ b into `out`, whatever its strides.

    cuBLAS writes any strides at full speed. On the CPU only a contiguous result is spread over the threads (145 against
    57 GFLOP/s on two cores for 15 products of 128×100×100), so that a copy at the end pays.
    """
    if out.is_cuda:
        torch.bmm(a, b, out=out)
    else:
        out.copy_(torch.bmm(a, b))


def linear(
    stack: Stack, layer: int, h: Float[Tensor, "b m i"], bias: Float[Tensor, "m o"], *, members: slice = EVERYONE
) -> Float[Tensor, "b m o"]:
    """X Wᵀ + b for all members (or some), into the layout of activations."""
    z = h.new_empty(h.shape[0], *bias.shape)
    across, weight = h.transpose(0, 1), stack.weight(layer)[members].transpose(1, 2)
    if z.is_cuda:
        torch.baddbmm(bias.unsqueeze(1), across, weight, out=z.transpose(0, 1))
    else:
        torch.add(torch.bmm(across, weight).transpose(0, 1), bias, out=z)  # see `product`
    return z


def normalize(
    z: Float[Tensor, "b *g m o"],
    vectors: Vectors,
    running: tuple[Tensor, Tensor] | None,
    *,
    by_batch: bool,
) -> tuple[Float[Tensor, "b *g m o"], Tensor, Tensor]:
    """BatchNorm of m·d channels by the batch (updating `running`, where given) or by `running`."""
    mean, var = running or (None, None)
    flat, saved_mean, saved_inverse = torch.native_batch_norm(
        z.flatten(1), vectors.scale, vectors.shift, mean, var, by_batch, MOMENTUM, EPSILON
    )
    return flat.view(z.shape), saved_mean, saved_inverse


def forward(
    stack: Stack, x: Float[Tensor, "b m i"], vectors: Sequence[Vectors], plan: Plan
) -> tuple[Float[Tensor, "b m k"], list[Trace]]:
    """Class scores of all members on their batches in training mode, with what the backward pass needs."""
    h, traces = x, []
    for layer in range(len(stack.shape.widths)):
        z = linear(stack, layer, h, vectors[layer].bias)
        mean = inverse = None
        y = z
        if stack.shape.norm:
            running = (stack.running_mean[layer], stack.running_var[layer])
            y, mean, inverse = normalize(z, vectors[layer], running, by_batch=not plan.held[layer])
        if stack.shape.activation:
            y = y.relu_()
        traces.append(Trace(h, z, y, mean, inverse))
        h = y
    return linear(stack, stack.shape.depth - 1, h, vectors[-1].bias), traces


def backward(
    stack: Stack,
    grad: Float[Tensor, "m p"],
    slope: Float[Tensor, "b m k"],
    top: Float[Tensor, "b m o"],
    traces: Sequence[Trace],
    vectors: Sequence[Vectors],
    plan: Plan,
    learning_vectors: Int[Tensor, " v"],
) -> None:
    """From ∂loss/∂scores to ∂loss/∂θ of the layers that learn, written into `grad`; other entries are left alone.

    `top` is the classifier's input, `learning_vectors` the positions of the vector parameters of learning layers.
    """
    last = stack.shape.depth - 1
    gradients: list[list[Tensor]] = []
    for layer in range(last, plan.lowest - 1, -1):
        here: list[Tensor] = []
        if layer < last:
            slope, here = _through_activation(stack, slope, traces[layer], vectors[layer], layer, plan)
        inputs = traces[layer].inputs if layer < last else top
        across = slope.transpose(0, 1)  # m b o
        if plan.learning[layer]:
            product(across.transpose(1, 2), inputs.transpose(0, 1), stack.weight(layer, of=grad))
            gradients.append([slope.flatten(1).sum(dim=0), *here])
        if layer > plan.lowest:
            below = torch.empty_like(inputs)
            product(across, stack.weight(layer), below.transpose(0, 1))
            slope = below
    grad.view(-1).index_copy_(0, learning_vectors, torch.cat([part for parts in reversed(gradients) for part in parts]))


def _through_activation(
    stack: Stack, slope: Tensor, trace: Trace, vectors: Vectors, layer: int, plan: Plan
) -> tuple[Tensor, list[Tensor]]:
    """Back through ReLU and BatchNorm of one hidden layer; the gradients of scale and shift where the layer learns."""
    if stack.shape.activation:
        slope = torch.ops.aten.threshold_backward(slope, trace.output, 0)
    if not stack.shape.norm:
        return slope, []
    learns = plan.learning[layer]
    flat, scale, shift = torch.ops.aten.native_batch_norm_backward(
        slope.flatten(1),
        trace.linear.flatten(1),
        vectors.scale,
        stack.running_mean[layer],
        stack.running_var[layer],
        trace.mean,
        trace.inverse,
        not plan.held[layer],
        EPSILON,
        [True, learns, learns],
    )
    return flat.view(slope.shape), [scale, shift] if learns else []

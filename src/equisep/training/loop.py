"""The plain training loop of one network: readable top to bottom, deterministic by seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from equisep.errors import InputError, LabelError, NumericalError
from equisep.labels import check_range
from equisep.progress import Progress, silent
from equisep.shapes import Float, Shaped
from equisep.training.recipe import Recipe

Augment = Callable[[Tensor, torch.Generator], Tensor]


@dataclass(frozen=True, slots=True)
class History:
    """Mean training loss and accuracy of every epoch, as seen while training."""

    loss: tuple[float, ...]
    accuracy: tuple[float, ...]


def train(
    model: nn.Module,
    x: Float[Tensor, "n ..."],
    y: Shaped[Tensor, " n"],
    *,
    recipe: Recipe | None = None,
    class_weights: Sequence[float] | None = None,
    augment: Augment | None = None,
    after_epoch: Callable[[int], None] | None = None,
    progress: Progress = silent,
) -> History:
    """Train a network in place on data held as tensors, on the device they are on.

    The batch order comes from a CPU generator of its own, one `randperm` an epoch, so that it depends on the seed
    alone; the last smaller batch is kept. The model is left in training mode, as torch's own loops leave it.

    class_weights    factors of the loss by class; the sum over a batch is still divided by its size.
    augment          changes each batch of samples before it is seen, by a generator of its own.
    after_epoch      called with the number of epochs done, 0 before the first; the model may be read there, and is set
                     back to training.
    """
    recipe = recipe or Recipe()
    _check(model, x, y, recipe)
    optimizer = recipe.make_optimizer(model.parameters())
    order = torch.Generator("cpu").manual_seed(recipe.seed)
    chance = torch.Generator("cpu").manual_seed(recipe.seed)
    weights = None if class_weights is None else torch.tensor(class_weights, device=x.device, dtype=x.dtype)
    losses: list[float] = []
    accuracies: list[float] = []
    if after_epoch is not None:
        after_epoch(0)
    model.train()
    for epoch in range(recipe.epochs):
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate_at(epoch)
        loss_sum = torch.zeros((), device=x.device)
        hits = torch.zeros((), dtype=torch.int64, device=x.device)
        for batch in torch.randperm(len(y), generator=order, device="cpu").to(x.device).split(recipe.batch_size):
            logits = model(x[batch] if augment is None else augment(x[batch], chance))
            if epoch == 0:
                check_range(y[batch], logits.shape[1], owner=f"`{type(model).__name__}` has {logits.shape[1]} outputs")
            loss = _loss(logits, y[batch], weights)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss_sum += loss.detach() * len(batch)
            hits += (logits.detach().argmax(dim=1) == y[batch]).sum()
        losses.append(float(loss_sum) / len(y))
        accuracies.append(int(hits) / len(y))
        if not math.isfinite(losses[-1]):
            raise NumericalError(
                f"Training with {recipe.optimizer} at rate {recipe.rate:g} diverged: the loss of epoch {epoch + 1} "
                f"is {losses[-1]}. Lower the rate."
            )
        if after_epoch is not None:
            after_epoch(epoch + 1)
            model.train()
        progress("training", epoch + 1, recipe.epochs)
    return History(loss=tuple(losses), accuracy=tuple(accuracies))


def _loss(logits: Tensor, y: Tensor, weights: Tensor | None) -> Tensor:
    if weights is None:
        return nn.functional.cross_entropy(logits, y)
    return nn.functional.cross_entropy(logits, y, weight=weights, reduction="sum") / len(y)


def _check(model: nn.Module, x: Tensor, y: Tensor, recipe: Recipe) -> None:
    if not isinstance(x, Tensor) or not isinstance(y, Tensor):
        raise InputError(
            f"`train` takes tensors; found {type(x).__name__} and {type(y).__name__}. Use `torch.as_tensor`."
        )
    if y.ndim != 1 or y.is_floating_point():
        raise LabelError(f"`train` takes one integer label a sample; found {y.dtype} of shape {tuple(y.shape)}.")
    home = next((parameter.device for parameter in model.parameters()), x.device)
    if x.device != home or y.device != home:
        raise InputError(
            f"`train` found the model on {home}, x on {x.device} and y on {y.device}. Move them to one device."
        )
    if len(x) != len(y) or len(y) == 0:
        raise InputError(f"`train` needs one label a sample and at least one sample; found {len(x)} and {len(y)}.")
    normalized = any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules())
    if normalized and (recipe.batch_size == 1 or len(y) % recipe.batch_size == 1):
        raise InputError(
            f"{len(y)} samples in batches of {recipe.batch_size} leave a last batch of one, which BatchNorm cannot "
            "normalize. Change `batch_size` or the number of samples."
        )

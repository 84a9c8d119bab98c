"""The plain training loop of one network: readable top to bottom, deterministic by seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from equisep.devices import out_of_memory
from equisep.display import brief
from equisep.errors import DivergenceError, FeatureError, InputError, LabelError, NumericalError
from equisep.labels import check_range
from equisep.progress import Watched, callback, watched
from equisep.shapes import Float, Int, Shaped
from equisep.taps import eager
from equisep.training.augment import Augmentation, one_row_each
from equisep.training.captured import Engine, ModelSteps, hooked, replays
from equisep.training.checkpoint import Checkpoint, Lists
from equisep.training.recipe import Recipe
from equisep.training.threads import Operations, StepThreads

Augment = Augmentation | Callable[[Tensor, torch.Generator], Tensor]


@brief
@dataclass(frozen=True, slots=True)
class History:
    """Mean training loss and accuracy of every epoch, as seen while training."""

    loss: tuple[float, ...]
    accuracy: tuple[float, ...]


@watched
def train(
    model: nn.Module,
    x: Float[Tensor, "n ..."],
    y: Shaped[Tensor, " n"],
    *,
    recipe: Recipe | None = None,
    engine: Engine = "auto",
    class_weights: Sequence[float] | None = None,
    weighted_mean: bool = False,
    logit_adjustment: Sequence[float] | None = None,
    augment: Augment | None = None,
    after_epoch: Callable[[int], None] | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Watched = None,
) -> History:
    """Train a network in place on data held as tensors, on the device they are on.

    The batch order comes from a CPU generator of its own, one `randperm` per epoch, so that it depends on the seed
    alone; the last smaller batch is kept. The model is left in training mode, as torch's own loops leave it. On a CPU
    steps too small to be shared run on one of torch's threads.

    engine           `graphs`: steps are replayed from captured CUDA graphs; `eager`; or `auto`: graphs on a GPU wherever
                     they give the same numbers, which hooks, augmentation by a function and a forward pass that needs the
                     host forbid.
    class_weights    factors of the loss by class; the sum over a batch is still divided by its size, or, with
                     `weighted_mean`, by the sum of its weights, as torch's `CrossEntropyLoss(weight=…)` does.
    logit_adjustment added to the scores in the loss alone, one number per class (Menon et al. 2021).
    augment          changes each batch of samples before it is seen, by a generator of its own: a function of both, or an
                     `Augmentation`, which graphs can hold.
    after_epoch      called with the number of epochs done, 0 before the first; the model may be read there, and is set
                     back to training.
    checkpoint       where the training is kept from time to time, and goes on from where it was kept before.
    progress         bars where someone watches, unless False; or called as `progress("training", epochs done, epochs)`.

    >>> import torch, equisep
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> _ = torch.manual_seed(0)
    >>> model = equisep.Fnn(depth=4, width=16, inputs=8, classes=3)
    >>> from equisep.training import Recipe
    >>> history = equisep.train(model, x, y, recipe=Recipe(optimizer="adam", rate=1e-2, epochs=5, batch_size=30))
    >>> len(history.loss), history.loss[-1] < history.loss[0]
    (5, True)
    """
    progress = callback(progress)
    recipe = _recipe(recipe)
    _check(model, x, y, recipe)
    _check_augment(augment)
    on_host = augment is not None and not isinstance(augment, Augmentation)
    obstacle = "batches are augmented on the host" if on_host else hooked(model)
    if not recipe.of_papers:
        obstacle = f"`{recipe.optimizer}` counts its steps on the host"
    replayed = replays(engine, x.device, obstacle=obstacle)
    loss = _MeanLoss(x, class_weights=class_weights, weighted_mean=weighted_mean, logit_adjustment=logit_adjustment)
    step = _Step(model, x, y, recipe, loss=loss, augment=augment, capturable=replayed)
    graphs = ModelSteps(step, model, device=x.device, required=engine == "graphs") if replayed else None
    order = torch.Generator("cpu").manual_seed(recipe.seed)
    chance = {"order": order, "augment": step.chance}
    done, history = _begun(checkpoint, model, step, chance)
    losses, accuracies = history["loss"], history["accuracy"]
    if after_epoch is not None and not done:
        after_epoch(0)
    model.train()
    for epoch in range(done, recipe.epochs):
        step.begin_epoch(rate=recipe.rate_at(epoch))
        rows = torch.randperm(len(y), generator=order, device="cpu").to(x.device).split(recipe.batch_size)
        batches = step.with_chance(rows)
        with _troubles_told(model, x, recipe), step.threads:
            if graphs is not None:
                graphs.epoch(batches, rate=recipe.rate_at(epoch))
            else:
                for batch in batches:
                    step(*batch)
        losses.append(float(step.loss) / len(y))
        accuracies.append(int(step.hits) / len(y))
        _check_finite(model, losses, recipe)
        if after_epoch is not None:
            after_epoch(epoch + 1)
            model.train()
        if checkpoint is not None and epoch + 1 < recipe.epochs:
            checkpoint.offer(epoch + 1, model, step.optimizer, chance, history)
        progress("training", epoch + 1, recipe.epochs)
    return History(loss=tuple(losses), accuracy=tuple(accuracies))


def _begun(
    checkpoint: Checkpoint | None, model: nn.Module, step: _Step, chance: dict[str, torch.Generator]
) -> tuple[int, Lists]:
    """How many epochs are done already, and their history."""
    kept = None if checkpoint is None else checkpoint.resume(model, step.optimizer, chance)
    return (0, {"loss": [], "accuracy": []}) if kept is None else kept


class _MeanLoss:
    """Cross-entropy over a batch, with the weights and adjustments of classes that were asked for, kept on the device."""

    def __init__(
        self,
        x: Tensor,
        *,
        class_weights: Sequence[float] | None,
        weighted_mean: bool,
        logit_adjustment: Sequence[float] | None,
    ) -> None:
        kept = [
            None if own is None else torch.tensor(own, device=x.device, dtype=x.dtype)
            for own in (class_weights, logit_adjustment)
        ]
        self._weights, self._added = kept
        self._weighted_mean = weighted_mean

    def __call__(self, logits: Tensor, y: Tensor) -> Tensor:
        scores = logits if self._added is None else logits + self._added
        if self._weights is None or self._weighted_mean:
            return nn.functional.cross_entropy(scores, y, weight=self._weights)
        return nn.functional.cross_entropy(scores, y, weight=self._weights, reduction="sum") / len(y)


class _Step:
    """One step on one batch. `loss` and `hits` collect what an epoch saw: Σ loss·batch, the number of right answers."""

    def __init__(
        self,
        model: nn.Module,
        x: Tensor,
        y: Tensor,
        recipe: Recipe,
        *,
        loss: _MeanLoss,
        augment: Augment | None,
        capturable: bool,
    ) -> None:
        self.model, self.x, self.y = model, x, y
        self.loss = torch.zeros((), device=x.device)
        self.hits = torch.zeros((), dtype=torch.int64, device=x.device)
        self.optimizer = recipe.make_optimizer(model.parameters(), capturable=capturable)
        self._mean_loss = loss
        self._augment = augment
        self.chance = torch.Generator("cpu").manual_seed(recipe.seed)
        self._begun = False
        self.threads = StepThreads(x.device)

    def begin_epoch(self, *, rate: float) -> None:
        """Nothing seen yet, at this rate."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.loss.zero_()
        self.hits.zero_()

    def with_chance(self, batches: Sequence[Int[Tensor, " _"]]) -> list[tuple[Tensor, ...]]:
        """Each batch of an epoch with what an `Augmentation` draws for it, brought to the device at once."""
        if not isinstance(self._augment, Augmentation):
            return [(rows,) for rows in batches]
        drawn = torch.cat([self._augment.drawn(len(rows), self.chance) for rows in batches]).to(self.x.device)
        return list(zip(batches, drawn.split([len(rows) for rows in batches]), strict=True))

    @torch.enable_grad()
    def __call__(self, rows: Int[Tensor, " b"], *drawn: Tensor) -> None:
        """Scores, loss, gradients, optimizer."""
        x, y = self.x[rows], self.y[rows]
        if self._augment is not None:
            x = self._augmented(x, self._augment, *drawn)
        logits = self.model(x) if self._begun else self._first_scores(x)
        loss = self._mean_loss(logits, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.loss += loss.detach() * len(rows)
        self.hits += (logits.detach().argmax(dim=1) == y).sum()

    def _augmented(self, x: Tensor, augment: Augment, *drawn: Tensor) -> Tensor:
        made = augment.apply(x, *drawn) if isinstance(augment, Augmentation) else augment(x, self.chance)
        return one_row_each(made, len(x), of="`augment`")

    def _first_scores(self, x: Tensor) -> Tensor:
        """Scores that tell how many classes there are and, on a CPU, how much work a step is."""
        if self.threads.undecided:
            with eager(), Operations() as seen:  # the compiler would take the counting for a part of the network
                logits: Tensor = self.model(x)
            self.threads.decide(3 * seen.count)  # a backward pass is twice the work of a forward pass
        else:
            logits = self.model(x)
        owner = f"`{type(self.model).__name__}` has {logits.shape[1]} outputs"
        check_range(self.y, logits.shape[1], owner=owner)
        self._begun = True
        return logits


def _check_finite(model: nn.Module, losses: Sequence[float], recipe: Recipe) -> None:
    """Refuse to go on from a loss that is not finite, or to end with weights that are not."""
    what = None if math.isfinite(losses[-1]) else f"the loss of epoch {len(losses)} is {losses[-1]}"
    if what is None and len(losses) == recipe.epochs:
        bad = [name for name, value in model.named_parameters() if not bool(torch.isfinite(value).all())]
        what = f"`{bad[0]}` is not finite after epoch {len(losses)}" if bad else None
    if what is not None:
        error = DivergenceError(
            f"Training with {recipe.optimizer} at rate {recipe.rate:g} diverged: {what}. Lower the rate."
        )
        error.epoch = len(losses)
        raise error


@contextmanager
def _troubles_told(model: nn.Module, x: Tensor, recipe: Recipe) -> Iterator[None]:
    """One sentence where memory runs out, or the samples are of another type than the weights."""
    device, held = x.device, next((each.dtype for each in model.parameters() if each.is_floating_point()), x.dtype)
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if "dtype" in str(error) and held != x.dtype:
            raise InputError(
                f"`{type(model).__name__}` has weights of {held}, the samples are {x.dtype}: {error}. Pass `x.to({held})`, or "
                f"`model.to({x.dtype})`."
            ) from error
        if not out_of_memory(error):
            raise
        raise NumericalError(
            f"Memory ran out on {device} for one `{type(model).__name__}` with batches of {recipe.batch_size}. "
            "Use another device, a smaller network or smaller batches."
        ) from error


def _recipe(given: object) -> Recipe:
    if given is None:
        return Recipe()
    if not isinstance(given, Recipe):
        raise InputError(
            f"`recipe` is an `equisep.training.Recipe`, as `Recipe(epochs=100, rate=1e-3)`; found {given!r}."
        )
    return given


def _check_augment(given: object) -> None:
    if given is not None and (isinstance(given, type) or not callable(given)):
        raise InputError(
            "`augment` is a function of samples and a generator, or an `equisep.training.Augmentation`, as "
            f"`CROP_FLIP_ROTATE`; found {given!r}."
        )


def _check(model: nn.Module, x: Tensor, y: Tensor, recipe: Recipe) -> None:
    if not isinstance(x, Tensor) or not isinstance(y, Tensor):
        raise InputError(
            f"`train` takes tensors; found {type(x).__name__} and {type(y).__name__}. Use `torch.as_tensor`."
        )
    if y.ndim != 1 or y.is_floating_point():
        raise LabelError(f"`train` takes one integer label per sample; found {y.dtype} of shape {tuple(y.shape)}.")
    home = next((parameter.device for parameter in model.parameters()), x.device)
    if x.device != home or y.device != home:
        raise InputError(
            f"`train` found the model on {home}, x on {x.device} and y on {y.device}. Move them to one device."
        )
    if len(x) != len(y) or len(y) == 0:
        raise InputError(f"`train` needs one label per sample and at least one sample; found {len(x)} and {len(y)}.")
    if bad := int((~torch.isfinite(x)).sum()):
        raise FeatureError(f"The samples hold {bad} numbers that are NaN or infinite. Clean them before training.")
    normalized = any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules())
    if normalized:
        recipe.check_normalized(len(y))

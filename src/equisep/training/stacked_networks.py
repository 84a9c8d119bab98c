"""Training convolutional networks of one architecture side by side, as one network of grouped convolutions.

When it pays: seldom, which is why the default is one network after the other, on a GPU from captured graphs. Measured on
one H200 with the five Adam rates as members, 32 × 32, 1000 samples, against one after the other, both captured:

    network                       float32     TF32
    4-block ResNet, 8 channels    1.63        2.29 times as fast
    pure CNN, 16 channels         0.64        0.63
    pure CNN, 64 channels         0.67        1.39
    VGG11                         1.02        0.84
    ResNet18                      0.71        1.25

Grouped convolutions of torch's libraries are slow for most widths. Against the plain loop of `train`, captured graphs alone
gain 1.1 to 2.2 times. On a CPU it does not pay either: 0.99 for the 4-block ResNet, 0.52 for the pure CNN of 16 channels.
`benchmarks/stacked_networks.py` measures this; its records are in `benchmarks/results`.
Feed-forward networks have an ensemble
trainer of their own, `train_ensemble`, which also reads sites along the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from equisep.devices import captures, out_of_memory, precision, provenance, usable_device
from equisep.errors import FeatureError, InputError, LabelError, NumericalError
from equisep.labels import check_range
from equisep.models import build
from equisep.progress import Progress, silent
from equisep.taps.modes import batch_norms, reading_mode
from equisep.training.architecture import check_alike
from equisep.training.grouped import StackedModule, class_scores, stack_modules
from equisep.training.loop import History
from equisep.training.recipe import Recipe
from equisep.training.stacked_stepping import StackedStepper


@dataclass(frozen=True, slots=True)
class StackedNetworks:
    """Trained networks, in the order of their recipes.

    `diverged` is, for each, the first epoch (from 1) whose loss is not finite, the last one if its weights or statistics
    end so, or None. `template` is a network of their architecture. `settings` and `provenance` say what else could
    change a number.
    """

    recipes: tuple[Recipe, ...]
    histories: tuple[History, ...]
    diverged: tuple[int | None, ...]
    states: tuple[Mapping[str, Tensor], ...]
    template: nn.Module
    settings: Mapping[str, Any]
    provenance: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.recipes)

    def network(self, member: int) -> nn.Module:
        """One member as an ordinary network on the CPU, in evaluation mode."""
        found = deepcopy(self.template)
        found.load_state_dict(self.states[member])
        return found.eval()

    def weights(self, member: int) -> dict[str, Tensor]:
        """One member's state dict, for the `load_state_dict` of its family or `torch.save`."""
        return {name: value.clone() for name, value in self.states[member].items()}


def train_stacked(
    recipes: Sequence[Recipe],
    x: Tensor,
    y: Tensor,
    *,
    network: str | Sequence[nn.Module],
    options: Mapping[str, Any] | None = None,
    device: str | torch.device | None = None,
    dtype: torch.dtype = torch.float32,
    engine: str = "auto",
    tf32: bool = False,
    chunk: int | None = None,
    progress: Progress = silent,
) -> StackedNetworks:
    """Train a network for each recipe as `train` would train it alone, all at once; others matter by rounding only.

    network      a name of `equisep.models`, built with `options` and the seed of each recipe; or networks to start
                 from, one a recipe, of one architecture and left as they are. See `stack_modules` for which can be stacked.
    engine       `eager`, `graphs` (captured CUDA graphs, float32), or `auto`: graphs where they can be had.
    tf32         lets a GPU round products and convolutions to 10 bits for speed; recorded.
    chunk        the most networks that train at once; by default one, since more seldom pay (see this module's text).
                 Where memory runs out it is halved.

    A network that diverges disturbs no other. Some kernels for grouped convolutions multiply a neighbor's NaN by zero; so
    on a GPU the members of a chunk in which one diverged are trained again, one after the other.
    """
    recipes = tuple(recipes)
    _check_recipes(recipes)
    place = usable_device(device, asked="train_stacked")
    captured = captures(engine, place, dtype)
    _check_samples(x, y)
    if chunk is not None and chunk < 1:
        raise InputError(f"`chunk` was {chunk}; at least one network has to train at a time.")
    networks = _networks(recipes, network, options)
    check_alike(networks)
    _check_fit(networks[0], x, y, recipes[0])
    task = _Task(recipes, networks, x.detach().to(place, dtype), y.detach().to(place, torch.int64), captured)
    with precision(tf32=tf32):
        trained, at_once = _trained_in_chunks(task, chunk or 1, progress)
    return StackedNetworks(
        recipes=recipes,
        histories=tuple(one.history for one in trained),
        diverged=tuple(one.diverged for one in trained),
        states=tuple(one.state for one in trained),
        template=deepcopy(networks[0]).to("cpu", dtype),
        settings={
            "network": network if isinstance(network, str) else type(networks[0]).__name__,
            "options": dict(options or {}),
            "starts": "seeds" if isinstance(network, str) else "given",
            "dtype": str(dtype).removeprefix("torch."),
            "tf32": tf32,
            "engine": "graphs" if captured else "eager",
            "at_once": at_once,
        },
        provenance=provenance(place, dtype),
    )


@dataclass(frozen=True, slots=True)
class _Task:
    """Everything that training some networks takes."""

    recipes: Sequence[Recipe]
    networks: Sequence[nn.Module]
    x: Tensor
    y: Tensor
    captured: bool

    def of(self, members: Sequence[int]) -> _Task:
        """The same task for some of its members."""
        return replace(
            self,
            recipes=[self.recipes[member] for member in members],
            networks=[self.networks[member] for member in members],
        )


@dataclass(frozen=True, slots=True)
class _Trained:
    """One trained member."""

    history: History
    diverged: int | None
    state: Mapping[str, Tensor]


def _trained_in_chunks(task: _Task, size: int, progress: Progress) -> tuple[list[_Trained], int]:
    """All members, at most `size` at once, fewer where memory runs out; and how many it were at most."""
    place, epochs = task.x.device, task.recipes[0].epochs
    found: list[_Trained] = []
    queue = _pieces(range(len(task.recipes)), size)
    at_once = 0
    while queue:
        members = queue.pop(0)

        def report(epoch: int, share: int = len(members), before: int = len(found)) -> None:
            progress("training", (before * epochs + share * epoch) // len(task.recipes), epochs)

        part = None
        try:
            part = _trained(task.of(members), report)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            if len(members) == 1:
                raise NumericalError(
                    f"Memory ran out on {place} for one `{type(task.networks[0]).__name__}` with batches of "
                    f"{task.recipes[0].batch_size}. Use another device, a smaller network or smaller batches."
                ) from error
        if part is None:  # out of the handler, whose error held on to the tensors of the stack
            queue = _pieces([member for piece in (members, *queue) for member in piece], (len(members) + 1) // 2)
            if place.type == "cuda":
                torch.cuda.empty_cache()
            continue
        if place.type == "cuda" and len(members) > 1 and any(one.diverged is not None for one in part):
            queue = [*_pieces(members, 1), *queue]
            continue
        at_once = max(at_once, len(members))
        found += part
    return found, at_once


def _trained(task: _Task, report: Callable[[int], None]) -> list[_Trained]:
    """The members of a task, trained as one stack."""
    starts = [deepcopy(network).to(task.x.device, task.x.dtype) for network in task.networks]
    stacked = stack_modules(starts, sample=task.x.shape[1:])
    del starts  # whose memory training can use
    losses, hits = [], []
    for loss, right in StackedStepper(stacked, task.x, task.y, task.recipes, captured=task.captured).epochs():
        losses.append(loss)
        hits.append(right)
        report(len(losses))
    found = []
    for member, (own, counts) in enumerate(zip(_columns(losses, stacked), _columns(hits, stacked), strict=True)):
        history = History(loss=tuple(own), accuracy=tuple(count / len(task.y) for count in counts))
        state = stacked.state(member)
        first = next((epoch for epoch, value in enumerate(own, start=1) if not math.isfinite(value)), None)
        sound = all(bool(value.isfinite().all()) for value in state.values())
        found.append(_Trained(history, first if first is not None or sound else len(own), state))
    return found


def _columns(epochs: Sequence[Tensor], stacked: StackedModule) -> list[list[Any]]:
    """What every epoch gave for all members, as a list for each member."""
    return torch.stack(list(epochs), dim=1).tolist() if epochs else [[] for _ in range(stacked.members)]


def _networks(
    recipes: Sequence[Recipe], network: str | Sequence[nn.Module], options: Mapping[str, Any] | None
) -> list[nn.Module]:
    """Where every member starts from; members of one seed share one network, which is only read."""
    if isinstance(network, str):
        made = {seed: build(network, seed=seed, **(options or {})) for seed in {recipe.seed for recipe in recipes}}
        return [made[recipe.seed] for recipe in recipes]
    if options:
        raise InputError("`options` build networks by name; these networks are built already. Leave `options` out.")
    if len(network) != len(recipes):
        raise InputError(f"Found {len(network)} networks for {len(recipes)} recipes. Give one for each.")
    return list(network)


def _check_recipes(recipes: Sequence[Recipe]) -> None:
    if not recipes:
        raise InputError("`train_stacked` needs at least one recipe; found none.")
    for index, recipe in enumerate(recipes):
        for name in ("batch_size", "epochs"):
            if getattr(recipe, name) != getattr(recipes[0], name):
                raise InputError(
                    f"Networks of one stack share `{name}`; recipe 0 has {getattr(recipes[0], name)}, "
                    f"recipe {index} has {getattr(recipe, name)}. Train one stack for each."
                )


def _check_samples(x: Tensor, y: Tensor) -> None:
    if y.ndim != 1 or y.is_floating_point():
        raise LabelError(
            f"`train_stacked` takes one integer label a sample; found {y.dtype} of shape {tuple(y.shape)}."
        )
    if len(x) != len(y) or len(y) == 0:
        raise InputError(
            f"`train_stacked` needs one label a sample and at least one sample; found {len(x)} and {len(y)}."
        )
    bad = int((~torch.isfinite(x)).sum())
    if bad:
        raise FeatureError(f"The samples hold {bad} numbers that are NaN or infinite. Clean them before training.")


def _check_fit(network: nn.Module, x: Tensor, y: Tensor, recipe: Recipe) -> None:
    """Refuse samples that the networks cannot take, labels they have no output for, batches they cannot normalize."""
    home = next(network.parameters(), x)
    with reading_mode(network, "eval"):
        classes = class_scores(network, x[:2].to(home.device, home.dtype)).shape[1]
    check_range(y.to(torch.int64), classes, owner=f"`{type(network).__name__}` has {classes} outputs")
    if batch_norms(network) and (recipe.batch_size == 1 or len(y) % recipe.batch_size == 1):
        raise InputError(
            f"{len(y)} samples in batches of {recipe.batch_size} leave a last batch of one, which BatchNorm cannot "
            "normalize. Change `batch_size` or the number of samples."
        )


def _pieces(members: Sequence[int], size: int) -> list[Sequence[int]]:
    return [members[start : start + size] for start in range(0, len(members), size)]

"""The calls of one forward pass: which modules ran, in what order, on what, and which tensor in what they gave is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from torch import Tensor, nn

from equisep.display import brief
from equisep.taps.names import GIVEN, call_site
from equisep.taps.spread import SCORES_CURE, is_handed_on, layouts_followed, whole
from equisep.taps.wrappers import kind_name, site_modules

FEATURES = "last_hidden_state"  # what Hugging Face calls the features of a model
SCORES = "logits"  # … and its class scores


def first_tensor(value: Any) -> Tensor | None:
    """The first tensor in a tensor, tuple, list, mapping or dataclass, depth first.

    Where entries have names, `last_hidden_state` comes first, then `logits`: a model's output may begin with its loss.
    """
    if isinstance(value, Tensor):
        return value
    return next((tensor for entry in _entries(value) if (tensor := first_tensor(entry)) is not None), None)


def _entries(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        named = dict(value)
    elif is_dataclass(value) and not isinstance(value, type):
        named = {entry.name: getattr(value, entry.name) for entry in fields(value)}
    else:
        return value if isinstance(value, list | tuple) else ()
    return [*(named.pop(key) for key in (FEATURES, SCORES) if key in named), *named.values()]


def scores_of(output: Any, classes: int | None = None) -> Tensor | None:
    """The class scores, b × K: the output itself, or its entry `logits`; None where there are none.

    Of other tuples, mappings and records, where K is known (`classes`), the only entry that is b × K.
    """
    scores = _scores_entry(output)
    if scores is None and classes is not None and not isinstance(output, Tensor):
        entries = [each for each in _entries(output) if isinstance(each, Tensor)]
        fitting = [each for each in entries if each.ndim == 2 and each.shape[1] == classes]
        scores = fitting[0] if len(fitting) == 1 else None
    return scores if scores is not None and scores.shape[1] >= 2 else None


def _scores_entry(output: Any) -> Tensor | None:
    scores = output
    if isinstance(output, Mapping):
        scores = output.get(SCORES)
    elif not isinstance(output, Tensor):
        scores = getattr(output, SCORES, None)
    return scores if isinstance(scores, Tensor) and scores.ndim == 2 else None


def with_whole_scores(output: Any) -> Any:
    """What a model gives; where ranks hold parts of its class scores, these alone, as a whole."""
    scores = _scores_entry(output)
    if scores is None:
        return output
    every = whole(scores, what="The model", cure=SCORES_CURE)
    return output if every is scores else every


@brief
@dataclass(frozen=True, slots=True)
class Call:
    """One call: the module's name and class, the shapes of the first tensors that it gave and was given.

    `after` is the module whose output it was handed unchanged, where it ran last before.
    """

    module: str
    number: int
    kind: str
    shape: tuple[int, ...] | None
    given: tuple[int, ...] | None
    after: str | None

    @property
    def site(self) -> str:
        """The name of the site that this call is."""
        return call_site(self.module, self.number)

    @property
    def given_site(self) -> str:
        """The name of the site that its input is."""
        return call_site(f"{self.module}{GIVEN}", self.number)


@contextmanager
def recorded_calls(model: nn.Module) -> Iterator[list[Call]]:
    """Record the calls while the `with` lasts, in the order in which they end."""
    calls: list[Call] = []
    numbers: Counter[str] = Counter()
    latest: list[tuple[str, Tensor | None]] = [("", None)]
    begun: dict[str, tuple[tuple[int, ...] | None, str | None]] = {}

    def before(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            maker, output = latest[0]
            given = first_tensor((*args, kwargs))
            begun[name] = _shape(given), maker if is_handed_on(given, output) else None

        return hook

    def after(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            made = first_tensor(output)
            numbers[name] += 1
            calls.append(Call(name, numbers[name], kind_name(module), _shape(made), *begun.get(name, (None, None))))
            latest[0] = name, made

        return hook

    with ExitStack() as stack:
        for name, module in site_modules(model).items():
            stack.callback(module.register_forward_pre_hook(before(name), with_kwargs=True).remove)
            stack.callback(module.register_forward_hook(after(name)).remove)
        stack.callback(latest.clear)
        stack.enter_context(layouts_followed(model))
        yield calls


def _shape(tensor: Tensor | None) -> tuple[int, ...] | None:
    return None if tensor is None else tuple(tensor.shape)

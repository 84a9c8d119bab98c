"""The calls of one forward pass: which modules ran, in what order, what they gave, and what they were given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from equisep.taps.outputs import first_tensor
from equisep.taps.wrappers import call_site, site_modules


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the module's name and class, the shape of the first tensor it gave, and the module that made its input.

    `after` is the module whose output it was handed unchanged, where it ran last before.
    """

    module: str
    number: int
    kind: str
    shape: tuple[int, ...] | None
    after: str | None

    @property
    def site(self) -> str:
        """The name of the site that this call is."""
        return call_site(self.module, self.number)


@contextmanager
def recorded_calls(model: nn.Module) -> Iterator[list[Call]]:
    """Record the calls while the `with` lasts, in the order in which they end."""
    calls: list[Call] = []
    numbers: Counter[str] = Counter()
    latest: list[tuple[str, Tensor | None]] = [("", None)]
    given: dict[str, str | None] = {}

    def before(name: str) -> Callable[[nn.Module, Any], None]:
        def hook(module: nn.Module, args: Any) -> None:
            maker, output = latest[0]
            given[name] = maker if output is not None and first_tensor(args) is output else None

        return hook

    def after(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            found = first_tensor(output)
            numbers[name] += 1
            shape = None if found is None else tuple(found.shape)
            calls.append(Call(name, numbers[name], type(module).__name__, shape, given.get(name)))
            latest[0] = name, found

        return hook

    with ExitStack() as stack:
        for name, module in site_modules(model).items():
            stack.callback(module.register_forward_pre_hook(before(name)).remove)
            stack.callback(module.register_forward_hook(after(name)).remove)
        stack.callback(latest.clear)
        yield calls

"""The tap: forward hooks that hand every activation on inside the hook, and always come off."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

from torch import Tensor, nn

from equisep.display import brief
from equisep.errors import InputError, SiteError, did_you_mean
from equisep.results import Reading, reading_named
from equisep.shapes import Bool
from equisep.taps.calls import first_tensor
from equisep.taps.modes import random_state_kept, reading_mode
from equisep.taps.names import INPUT, call_site, module_of, port_of
from equisep.taps.reduce import Reduction, ReductionLike, Rows, UnfitError, padding_mask
from equisep.taps.sites import Sites, resolve_sites
from equisep.taps.spread import layouts_followed, model_rests, whole
from equisep.taps.wrappers import eager, inner, refuse_scripted, refuse_uninitialized, site_modules

Consume = Callable[[str, Tensor], None]
"""Called as `consume(site, features)` with features of shape b × d, the moment the module has computed them."""

Calls = Literal["each", "last"]


@brief
@dataclass(frozen=True, slots=True)
class Activation:
    """What a site gave in one call.

    `samples` is how many samples the module saw. `same_as` names the site before it, where both gave the very same tensor:
    a block returns what its last activation made.
    """

    site: str
    rows: Rows
    samples: int
    same_as: str | None


@contextmanager
def tap(
    model: nn.Module,
    sites: Sites = "auto",
    *,
    consume: Consume,
    reading: Reading = "eval",
    calls: Calls = "each",
    reduction: ReductionLike = "flatten",
    stop: bool = False,
    mode: str | None = None,
) -> Iterator[tuple[str, ...]]:
    """Read activations of a model while the `with` lasts; run the model inside it as usual.

    `consume` sees each activation as rows, flattened to b × d unless another `reduction` is asked for, before any later
    layer runs, so an in-place activation cannot overwrite it; what it wants to keep it must copy. The raw input comes
    first, as site `input`, if the reduction can take it. A module called more than once in a forward pass gives one site
    a call: `relu`, then `relu:2`, …; with `calls="last"` only its last call, handed on when the forward pass ends.
    `fc:in` is the first tensor that the module `fc` is given, which no module need have made.

    With `stop=True` a forward pass ends after the last site and gives None; the first one runs through, to learn which
    it is, and all do under `calls="last"`. Compiled models run eagerly inside, since compiled code skips hooks; wrapped
    ones (DataParallel) are read inside the wrapper. Hooks come off, and flags and global random states are given back,
    whatever happens.

    >>> import torch, equisep
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> _ = torch.manual_seed(0)
    >>> model = equisep.Fnn(depth=4, width=16, inputs=8, classes=3)
    >>> with equisep.tap(model, "blocks.*", consume=lambda site, rows: print(site, tuple(rows.shape))):
    ...     scores = model(x)
    input (90, 8)
    blocks.0 (90, 16)
    blocks.1 (90, 16)
    blocks.2 (90, 16)
    """
    reading = reading_named(reading, mode=mode)
    names, how = checked_tap(model, sites, calls=calls, reduction=reduction)

    def give(activation: Activation) -> None:
        consume(activation.site, activation.rows.features)

    def raw_input(site: str, error: UnfitError) -> bool:
        return site == INPUT  # nobody asked for it

    with listening(model, names, give=give, reading=reading, calls=calls, reduction=how, stop=stop, spare=raw_input):
        yield names


def checked_tap(
    model: nn.Module, sites: Sites, *, calls: str, reduction: ReductionLike
) -> tuple[tuple[str, ...], Reduction]:
    """What a tap was asked, or one sentence that says what is wrong with it."""
    if not isinstance(model, nn.Module):
        raise InputError(f"`tap` reads a torch.nn.Module; found {type(model).__name__}.")
    refuse_scripted(model, asked="tap")
    refuse_uninitialized(model, asked="tap")
    how = Reduction.of(reduction)
    if how.components is not None:
        raise InputError(f"`tap` hands on batch by batch, and `{how.name}` needs all data first. Use `measure`.")
    check_calls(calls)
    return resolve_sites(model, sites), how


def check_calls(calls: object) -> None:
    """Raise unless `calls` is one of the words known."""
    if calls not in get_args(Calls):
        raise InputError(f"No calls `{calls}`.{did_you_mean(str(calls), get_args(Calls))} Known: each, last.")


@contextmanager
def listening(
    model: nn.Module,
    names: tuple[str, ...],
    *,
    give: Callable[[Activation], None],
    reading: Reading,
    calls: str = "each",
    reduction: Reduction,
    stop: bool = False,
    until: str | None = None,
    spare: Callable[[str, UnfitError], bool] | None = None,
) -> Iterator[None]:
    """The hooks behind `tap`; `names` are resolved already, and `input` is read only where it is among them.

    `until` is the last of the sites, where it is known beforehand: with `stop` the first forward pass ends there too.
    `spare` is asked about a site that gives what cannot be read; where it says yes, the site is passed over.
    """
    core = inner(model)
    modules = site_modules(model)
    listener = _Listener(names, give, reduction, calls, signature_of(core), spare, frozenset(modules))
    if stop and until is not None and until != INPUT and not listener.only_last:
        listener.until = port_of(until, modules)
    with ExitStack() as stack:
        stack.enter_context(random_state_kept())
        stack.enter_context(reading_mode(model, reading))
        stack.enter_context(eager())
        stack.enter_context(layouts_followed(model))
        if stop:
            stack.enter_context(_ending_early(core, listener))
        stack.callback(core.register_forward_pre_hook(listener.before, with_kwargs=True, prepend=True).remove)
        stack.callback(core.register_forward_hook(listener.end).remove)
        for port in dict.fromkeys(port_of(name, modules)[0] for name in names if name != INPUT):
            module = modules[module_of(port, modules)]
            if port in modules:
                stack.callback(module.register_forward_hook(listener.made(port)).remove)
            else:
                stack.callback(module.register_forward_pre_hook(listener.given(port), with_kwargs=True).remove)
        yield


def signature_of(model: nn.Module) -> inspect.Signature | None:
    """What the forward pass takes, where Python can tell."""
    try:
        return inspect.signature(model.forward)
    except (TypeError, ValueError):
        return None


class _Enough(BaseException):
    """Ends a forward pass after the last site; the tap that raises it catches it."""


class _Listener:
    """What the hooks of one tap share: calls counted anew in every forward pass, the padding mask, and what waits."""

    def __init__(
        self,
        names: tuple[str, ...],
        give: Callable[[Activation], None],
        reduction: Reduction,
        calls: str,
        signature: inspect.Signature | None,
        spare: Callable[[str, UnfitError], bool] | None,
        modules: frozenset[str],
    ) -> None:
        self.spare, self.modules = spare, modules
        self.names, self.give, self.reduction, self.signature = frozenset(names), give, reduction, signature
        self.only_last = calls == "last"
        self.until: tuple[str, int] | None = None  # the call after which a forward pass may end
        self.counts: Counter[str] = Counter()
        self.final: tuple[str, int] | None = None
        self.mask: Bool[Tensor, "b t"] | None = None
        self.waiting: dict[str, Activation] = {}
        self.latest: tuple[str, Tensor, int] | None = None

    def before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A forward pass begins."""
        self.forget()
        if self.reduction.masked:
            self.mask = padding_mask(by_name(self.signature, args, kwargs))
        if INPUT in self.names:
            self.read((*args, kwargs), site=INPUT)

    def made(self, port: str) -> Callable[[nn.Module, Any, Any], None]:
        """The hook behind a module: its output."""

        def hook(module: nn.Module, args: Any, output: Any) -> None:
            self.called(port, output)

        return hook

    def given(self, port: str) -> Callable[[nn.Module, Any, Any], None]:
        """The hook before a module: its input, in order or by name."""

        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self.called(port, (*args, kwargs))

        return hook

    def called(self, port: str, value: Any) -> None:
        """One more call of a module, or of its input: read it if it was asked for."""
        self.counts[port] += 1
        number = self.counts[port]
        site = call_site(port, number)
        if port in self.names:
            if site in self.modules and site != port and not self.only_last:
                raise SiteError(
                    f"Call {number} of the module `{port}` would be the site `{site}`, which is the name of another module. "
                    "Rename that module, or read only last calls (`calls='last'`)."
                )
            self.read(value, site=port if self.only_last else site, waits=self.only_last)
        elif not self.names.isdisjoint({f"{port}:{number}", site} - self.modules):
            self.read(value, site=site)
        else:
            return
        self.final = port, number
        if self.until == self.final:
            self.flush()
            raise _Enough

    def end(self, module: nn.Module, args: Any, output: Any) -> None:
        """A forward pass ends."""
        self.flush()
        self.latest = self.mask = None

    def read(self, output: Any, *, site: str, waits: bool = False) -> None:
        """Hand on what a site gave, or let it wait until the forward pass ends."""
        made = first_tensor(output)
        same = None if made is None else self.same_as(made)
        with model_rests():
            try:
                tensor = None if made is None else whole(made, what=f"Site `{site}`")
                rows = self.rows(output, tensor, site=site)
            except UnfitError as error:
                if self.spare is not None and self.spare(site, error):
                    return
                raise
            assert made is not None and tensor is not None
            if waits:
                self.waiting.pop(site, None)  # its latest call stands last
                self.waiting[site] = Activation(site, Rows(rows.features.clone(), rows.owners), len(tensor), None)
                return
            self.latest = None if made.is_inference() else (site, made, made._version)
            self.give(Activation(site, rows, len(tensor), same))

    def rows(self, output: Any, tensor: Tensor | None, *, site: str) -> Rows:
        """The rows of what a site gave, or why there are none."""
        if tensor is None or tensor.ndim == 0:
            what = "a single number" if tensor is not None else f"no tensor but {type(output).__name__}"
            raise UnfitError(f"Site `{site}` gives {what}. Choose another site.")
        if tensor.is_complex():
            raise UnfitError(f"Site `{site}` gives complex numbers. Choose another site.")
        return self.reduction(tensor.detach(), site=site, mask=self.mask)

    def same_as(self, output: Tensor) -> str | None:
        """The site before this one, where it gave this very tensor and nothing has written to it since."""
        if self.latest is None or self.latest[1] is not output or self.latest[2] != output._version:
            return None
        return self.latest[0]

    def flush(self) -> None:
        """Hand on what waited."""
        waiting, self.waiting = self.waiting, {}
        for activation in waiting.values():
            self.give(activation)

    def forget(self) -> None:
        """Drop what a forward pass left that did not come to its end."""
        self.counts.clear()
        self.waiting.clear()
        self.final = self.latest = self.mask = None


@contextmanager
def _ending_early(model: nn.Module, listener: _Listener) -> Iterator[None]:
    """The model's forward pass, ended after the last site of the pass before; it then gives None."""
    forward, own = model.forward, "forward" in vars(model)

    def until_enough(*args: Any, **kwargs: Any) -> Any:
        try:
            output = forward(*args, **kwargs)
        except _Enough:
            return None
        if not listener.only_last:  # how often a module will be called is known when the forward pass is over
            listener.until = listener.final
        return output

    try:
        model.forward = until_enough
        yield
    finally:
        if own:
            model.forward = forward
        else:
            del model.forward


def by_name(signature: inspect.Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a forward pass by name, and what a mapping among them holds."""
    named: dict[str, Any] = {}
    if signature is not None:
        try:
            named |= signature.bind_partial(*args, **kwargs).arguments
        except TypeError:  # the model itself will say what is wrong with them
            named = {}
    for value in (*args, *list(named.values())):
        if isinstance(value, Mapping):
            named |= value
    return named | kwargs

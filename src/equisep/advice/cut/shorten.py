"""Shorter networks as graphs of their own: one export of the model, ended after a layer; and what they take, timed in turns."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from statistics import median
from typing import Any, BinaryIO

import torch
from torch import Tensor, fx, nn
from torch.export import Dim

from equisep.advice.cut.heads import EarlyExit, Readout
from equisep.data.inputs import Inputs
from equisep.errors import ModelError
from equisep.files import write_whole
from equisep.measuring.forward import Calling
from equisep.progress import Progress, silent
from equisep.taps import eager, inner, reading_mode, scores_of, signature_of, site_modules
from equisep.taps.watch import watched

WHOLE = ""  # the network itself among the graphs
_PLACED = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
WARM_UPS = 1
LEAST_ROUNDS, MOST_ROUNDS = 5, 51
SECONDS = 10.0  # after which no further round begins, once there are enough
_ENDED_EAGERLY = (
    "`equisep.advice.cut.early_exit(model, LAYER)` ends its forward pass all the same, and cannot be saved."
)


@dataclass(frozen=True, slots=True)
class Example:
    """A batch as the graphs take it: tensors by the names of the model's arguments, all else fixed."""

    inputs: Inputs
    calling: Calling
    names: tuple[str, ...]

    @staticmethod
    def of(model: nn.Module, inputs: Inputs, calling: Calling) -> Example:
        """The tensors that this model is given, under the names that its forward pass has for them."""
        signature = signature_of(inner(model))
        known = [] if signature is None else [p.name for p in signature.parameters.values() if p.kind in _PLACED]
        args, kwargs = calling.passed(inputs)
        if calling.whole:
            args, kwargs = inputs.args, dict(inputs.kwargs)
        names = [known[i] if i < len(known) else f"x{i}" for i in range(len(args))]
        kept = Inputs(args, kwargs)
        return Example(kept, calling, tuple(names[int(key)] if key in _numbers(args) else key for key in kept.tensors))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Positional first, then by name."""
        return tuple(self.inputs.tensors.values())

    @property
    def given(self) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
        """The tensors as the data give them, in order and by name: a saved program is called as it was exported."""
        first = sum(isinstance(value, Tensor) for value in self.inputs.args)
        return self.tensors[:first], dict(zip(self.names[first:], self.tensors[first:], strict=True))

    def arguments(self, tensors: tuple[Tensor, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of the forward pass with these tensors in place of the example's."""
        left = iter(tensors)
        return self.calling.passed(self.inputs.changed(lambda _: next(left)))

    @property
    def dynamic(self) -> tuple[dict[int, Any], ...]:
        """The dimensions that may differ from batch to batch: samples, and of token ids and masks the tokens."""
        main = self.tensors[0]
        return tuple(
            dict.fromkeys(range(1 if x.is_floating_point() or x.ndim != 2 else 2), Dim.AUTO)
            if x.ndim and len(x) == len(main)
            else {}
            for x in self.tensors
        )


def _numbers(args: tuple[Any, ...]) -> set[str]:
    return {str(position) for position in range(len(args))}


class _Tapped(nn.Module):
    """A model that gives the class scores of every readout, and its own last: what is exported once."""

    def __init__(self, model: nn.Module, readouts: Mapping[str, Readout], example: Example) -> None:
        super().__init__()
        self.model, self.example = inner(model), example
        self.readouts = nn.ModuleList(readouts.values())

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        args, kwargs = self.example.arguments(tensors)
        arguments = dict(zip(self.example.names, tensors, strict=True))
        scores: dict[str, Tensor] = {}

        def scored(readout: Readout) -> Any:
            # at once, before a later layer overwrites in place what this one gave
            return lambda value: scores.__setitem__(readout.site, readout(value, arguments))

        readouts = [readout for readout in self.readouts if isinstance(readout, Readout)]
        with watched(self.model, {readout.site: scored(readout) for readout in readouts}):
            output = self.model(*args, **kwargs)
        own = scores_of(output, next(iter(scores.values())).shape[1])
        return (*(scores[readout.site] for readout in readouts), *(() if own is None else (own,)))


def shortened(model: nn.Module, readouts: Mapping[str, Readout], example: Example) -> dict[str, fx.GraphModule]:
    """The model ended after each site, and under `WHOLE` the model itself where it gives scores.

    Each is a graph of torch's own operations, made from one `torch.export`: it holds nothing behind the site's scores, and only
    the weights in front of them, which are the model's own tensors. Its forward pass takes the model's tensors, by position or
    by name. A model that cannot be exported is refused with the module at which that failed.
    """
    with reading_mode(model, "eval"), eager():
        tapped = _Tapped(model, readouts, example)
        program = _exported(tapped, example, stopped_in=site_modules(model))
        # guards ask for the sizes of the example where it is of one sample: they are asked anew when a graph is saved
        graph = program.module(check_guards=False)
        assert isinstance(graph, fx.GraphModule)
        (output,) = graph.graph.find_nodes(op="output")
        nodes = list(output.args[0])
        cuts = {site: _until(graph, node, example) for site, node in zip(readouts, nodes, strict=False)}
        if len(nodes) > len(readouts):
            cuts[WHOLE] = _until(graph, nodes[-1], example)
        for site, readout in readouts.items():
            _check_equal(cuts[site], EarlyExit(model, site, readout), example, site)
    return cuts


def _until(graph: fx.GraphModule, scores: fx.Node, example: Example) -> fx.GraphModule:
    """The graph up to one node, without what that node does not need."""
    short, copies = fx.Graph(), dict[fx.Node, fx.Node]()
    names = iter(example.names)
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            copies[node] = short.placeholder(next(names))
        else:
            copies[node] = short.node_copy(node, copies.__getitem__)
        if node is scores:
            break
    short.output(copies[scores])
    short.eliminate_dead_code()
    return fx.GraphModule(graph, short)  # which takes over only what the nodes use


def _check_equal(graph: fx.GraphModule, eager_model: EarlyExit, example: Example, site: str) -> None:
    """Raise where the graph gives other numbers than the model: one that draws, or goes by values, was traced wrongly."""
    copies = [x.clone() for x in example.tensors]
    args, kwargs = example.arguments(tuple(x.clone() for x in example.tensors))
    ours, theirs = graph(*copies), eager_model(*args, **kwargs)
    slack = 1e3 * torch.finfo(theirs.dtype).eps
    kept = theirs.isfinite()
    scale = theirs[kept].abs().max() if bool(kept.any()) else theirs.new_ones(())
    if not torch.equal(ours.isfinite(), kept) or not bool(((ours - theirs)[kept].abs() <= slack * scale).all()):
        raise ModelError(
            f"`{type(eager_model.model).__name__}` cannot be shortened after `{site}`: as a graph its scores are others than "
            "when it is run. Does its forward pass draw random numbers?"
        )


def check_other_size(graphs: Mapping[str, fx.GraphModule], model: nn.Module, example: Example, other: Example) -> None:
    """Raise where a graph takes as many samples as the example has and no others: `len(x)` is a number to torch.export."""
    with torch.no_grad(), eager():
        for graph in graphs.values():
            try:
                graph(*(x.clone() for x in other.tensors))
            except Exception as error:  # whatever an operation says of sizes that do not fit
                raise ModelError(
                    f"`{type(inner(model)).__name__}` cannot be shortened: made a graph by torch.export, its forward pass takes "
                    f"batches of {len(example.tensors[0])} samples only, as where it asks for `len(x)`: take `x.shape[0]`. "
                    f"{_ENDED_EAGERLY}"
                ) from error


def save_program(graph: fx.GraphModule, example: Example, path: Path) -> tuple[str, ...]:
    """Write a shortened model with `torch.export.save`, and say which of its inputs are fixed in size.

    What is read again is called as the data were given: tensors in order, or by name.

    >>> short = torch.export.load("short.pt2").module()
    """
    with torch.no_grad(), eager():
        shapes = dict(zip(example.names, example.dynamic, strict=True))
        program = _exported(graph, example, shapes=shapes)

        def write(file: BinaryIO) -> None:
            torch.export.save(program, file)

        write_whole(path, write)
    given = program.graph.find_nodes(op="placeholder")[-len(example.names) :]
    fixed = [isinstance(node.meta["val"].shape[0], int) for node in given]
    return tuple(name for name, flag, x in zip(example.names, fixed, example.tensors, strict=True) if flag and x.ndim)


def _exported(
    module: nn.Module,
    example: Example,
    *,
    shapes: dict[str, Any] | None = None,
    stopped_in: Mapping[str, nn.Module] | None = None,
) -> torch.export.ExportedProgram:
    """Torch's export, with a sentence around whatever it cannot do and the module that was running then."""
    name = type(module.model).__name__ if isinstance(module, _Tapped) else "The shortened model"
    with _running(stopped_in or {}) as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about torch's own insides; no number depends on them
        try:
            return torch.export.export(
                module,
                *((example.tensors, None) if shapes is None else example.given),
                dynamic_shapes={"tensors": example.dynamic} if shapes is None else shapes,
                strict=False,
            )
        except Exception as error:  # whatever torch or a user's model raises
            where = f"module `{stack[-1]}`" if stack else "its own forward pass"
            reason = (str(error).strip() or type(error).__name__).partition("\n")[0]
            raise ModelError(
                f"`{name}` cannot be shortened: {where} could not be made a graph by torch.export ({reason}). "
                f"{_ENDED_EAGERLY}"
            ) from error


@contextmanager
def _running(modules: Mapping[str, nn.Module]) -> Iterator[list[str]]:
    """The modules that have begun and not ended, the innermost last."""
    begun: list[str] = []

    def enter(name: str) -> Any:
        return lambda module, args: begun.append(name)

    def leave(module: nn.Module, args: Any, output: Any) -> None:
        begun.pop()

    with ExitStack() as stack:
        for name, module in modules.items():
            stack.callback(module.register_forward_pre_hook(enter(name)).remove)
            stack.callback(module.register_forward_hook(leave).remove)
        yield begun


def timed_in_turns(
    runs: Mapping[str, Callable[[], object]], device: torch.device, *, progress: Progress = silent
) -> dict[str, list[float]]:
    """Seconds of each call, one a round; every round calls all of them, beginning with another each time."""
    names = list(runs)
    for _ in range(WARM_UPS):
        for name in names:
            _seconds(runs[name], device)
    taken: dict[str, list[float]] = {name: [] for name in names}
    began = time.perf_counter()
    for turn in range(MOST_ROUNDS):
        if turn >= LEAST_ROUNDS and time.perf_counter() - began > SECONDS:
            break
        first = turn % len(names)
        for name in (*names[first:], *names[:first]):
            taken[name].append(_seconds(runs[name], device))
        progress("timing", turn + 1, MOST_ROUNDS)
    return taken


def _seconds(run: Callable[[], object], device: torch.device) -> float:
    _wait(device)
    began = time.perf_counter()
    run()
    _wait(device)
    return time.perf_counter() - began


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def median_ratio(times: Sequence[float], beside: Sequence[float]) -> float:
    """The median of the ratios, round by round: both of a round ran at the same moment."""
    return median(one / two for one, two in zip(times, beside, strict=True))

"""The command `equisep`: its commands, each loaded only when it is called, and examples below their help."""

from __future__ import annotations

import importlib
import io
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from equisep._version import __version__

# panel of `equisep --help` → name → what it says of a command; its code is in `equisep.cli.NAME`, or in the module of
# `equisep.cli` that `MODULES` names: a function of that name, or a `group`
PANELS = {
    "Start": {
        "demo": "Train a small network, measure it, say what was found.",
        "measure": "Measure how a model of yours separates its classes.",
        "explain": "Say in words what a saved profile means.",
        "report": "Write a page (HTML) about saved profiles or a training.",
    },
    "Look closer": {
        "law": "Print the laws of a saved profile.",
        "compare": "Print what differs between saved profiles.",
        "history": "Print the law over the epochs of a tracked training.",
        "sites": "List the modules of a model, and which of them are read.",
    },
    "Decide": {
        "depth": "How deep: train several depths on your data, recommend one.",
        "cut": "Shorten a model after a layer, or learn that it has no redundancy.",
        "layer": "Which layer's features serve your labels.",
        "rank": "Which model's features serve your labels.",
        "transfer": "Fine-tune on new data: how many layers to keep fixed.",
        "rare": "Which rare classes are lost, and the loss weights that rescue them.",
        "noise": "How much noise on its weights a model bears.",
    },
    "Large data": {
        "features": "Write the features of every layer to files, to measure them later.",
        "merge": "Make one profile of the shards of a measurement.",
    },
    "Research": {
        "peeled": "The Layer-Peeled Model: which small classes will be lost.",
        "figures": "The papers' figures: run, show and judge them.",
    },
}
COMMANDS = {name: words for commands in PANELS.values() for name, words in commands.items()}
MODULES = {
    **dict.fromkeys(("explain", "law", "compare", "report", "history"), "profiles"),
    **dict.fromkeys(("layer", "rank"), "advice.layer"),
    **{name: f"advice.{name}" for name in ("cut", "depth", "noise", "rare", "transfer")},
    "merge": "distributed",
}
EXAMPLES: dict[str, tuple[str, ...]] = {
    "demo": ("equisep demo", "equisep demo --depth 20 --out deep"),
    "measure": (
        "equisep measure --model ./mine.py:net --checkpoint net.pt --data mine.npz --out p.json",
        "equisep measure --model torchvision:resnet18 --data ./mine.py:loader --reading eval,drawn",
        "equisep measure --features features",
    ),
    "merge": ("equisep merge a*.npz --out means.npz", "equisep merge b*.npz --out p.json"),
    "explain": ("equisep explain p.json", "equisep explain p.json --all"),
    "report": ("equisep report p.json", "equisep report a.json b.json --out compared.html", "equisep report run.jsonl"),
    "features": ("equisep features ./mine.py:net --checkpoint net.pt --data mine.npz --out features",),
    "sites": ("equisep sites --model ./mine.py:net", "equisep sites --model vgg13,colors=3 --input 3x32x32"),
    "layer": ("equisep layer torchvision:resnet18 --data ./mine.py:loader",),
    "rank": ("equisep rank torchvision:resnet18 torchvision:vgg11 --data ./mine.py:loader",),
    "law": ("equisep law p.json",),
    "history": ("equisep history run.jsonl --draw run.png", "equisep history run.jsonl --epoch 5 --out p.json"),
    "noise": ("equisep noise --model ./mine.py:net --checkpoint net.pt --data mine.npz",),
    "cut": ("equisep cut --model ./mine.py:net --checkpoint net.pt --data mine.npz --out short.pt2",),
    "transfer": ("equisep transfer --model ./mine.py:net --checkpoint net.pt --data new.npz",),
    "compare": ("equisep compare before.json after.json", "equisep compare seed-*.json"),
    "depth": ("equisep depth --data mine.npz --depths 2,4,8",),
    "rare": ("equisep rare --sizes 500,500,50,5",),
    "peeled solve": ("equisep peeled solve --sizes 500,500,50,50",),
    "peeled threshold": (
        "equisep peeled threshold --majority 5 --minority 5",
        "equisep peeled threshold --sizes 500,500,50,5",
    ),
    "peeled diagram": ("equisep peeled diagram cosine --plot cosine.png",),
    "peeled two-layer": ("equisep peeled two-layer --groups 6:1 --activation relu",),
    "peeled network": ("equisep peeled network --model ./mine.py:net --checkpoint net.pt --data mine.npz",),
    "figures list": ("equisep figures list",),
    "figures run": (
        "equisep figures run he2023/fig1 --scale smoke --draw drawn",
        "equisep figures run he2023/fig1 --seeds 10 --plan",
    ),
    "figures show": ("equisep figures show he2023/fig1",),
}


class _Command(TyperCommand):
    """A command whose flags are shown as flags; newer versions of typer show `--json <bool>`.

    Where it takes a MODEL in its place, `--model MODEL`, which other commands have, is the same.
    """

    def get_params(self, ctx: Any) -> Any:
        return _as_flags(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = {name for param in self.params for name in param.opts}
        if options & {"model", "models"} and "--model" not in options:
            args = [part.removeprefix("--model=") for part in args if part != "--model"]
        return super().parse_args(ctx, args)


class _Group(TyperGroup):
    """A group of commands whose flags are shown as flags."""

    def get_params(self, ctx: Any) -> Any:
        return _as_flags(super().get_params(ctx))


class _LazyGroup(_Group):
    """The commands of `COMMANDS`: a name and a line of help each, until one of them is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in COMMANDS:
            self.commands[args[0]] = _loaded(args[0])
        return super().resolve_command(ctx, args)


def _as_flags(params: Any) -> Any:
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


def _loaded(name: str) -> Any:
    """A command with its options, or a group with its commands; with examples below their help."""
    module = importlib.import_module(f"equisep.cli.{MODULES.get(name, name)}")
    group: typer.Typer | None = getattr(module, "group", None)
    alone = group is None
    if group is None:
        group = typer.Typer(add_completion=False, rich_markup_mode="rich")
        group.command(name)(getattr(module, name))
    group.info.cls = _Group
    for info in group.registered_commands:
        info.cls = _Command
        info.epilog = epilog(name if alone else f"{name} {info.name}")
    command = get_command(group)
    command.name = name
    return command


app = typer.Typer(
    name="equisep",
    cls=_LazyGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"equisep {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """See how a neural network separates its classes, layer by layer."""


def _unloaded() -> None:
    """Stands for a command in the list of commands."""


for _panel, _commands in PANELS.items():
    for _name, _help in _commands.items():
        app.command(_name, help=_help, short_help=_help, rich_help_panel=_panel)(_unloaded)


def main() -> None:
    """The entry point that the package installs."""
    sys.path.insert(0, str(Path.cwd()))  # a model of the user's lies there, and may import as late as in its forward
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ρ shows ?, and no traceback
    app()


def epilog(command: str) -> str | None:
    """What stands below the help of a command: its examples, one line each."""
    lines = EXAMPLES.get(command, ())
    title = "[dim]Examples[/]" if len(lines) > 1 else "[dim]Example[/]"
    return "\n\n".join((title, *(f"  {line}" for line in lines))) if lines else None

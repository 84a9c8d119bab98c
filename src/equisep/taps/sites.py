"""Which modules of a model are read: declared sites, names, globs, classes, functions, or a proposal from the module tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import nn

from equisep.display import brief
from equisep.errors import InputError, SiteError, did_you_mean
from equisep.results import Note
from equisep.taps.calls import Call
from equisep.taps.names import GIVEN, INPUT, INPUT_MODULE, call_site, parts
from equisep.taps.propose import propose_blocks, propose_layers
from equisep.taps.wrappers import aliases, inner, kind_name, scripted_at, site_modules

if TYPE_CHECKING:
    Site = str | type[nn.Module] | Callable[[str, nn.Module], bool]
    Sites = Site | Sequence[Site]
else:
    Site = Sites = Any  # so that what is no site reaches the sentence below, whoever checks types at run time

GRAINS = ("auto", "layers", "blocks")

_WILD = {"**.": r"(?:.*\.)?", "**": ".*", "*": "[^.]*", "?": "[^.]"}


@brief
@dataclass(frozen=True, slots=True)
class Choice:
    """The sites asked for: modules (`relu`: every call), what they are given (`fc:in`), single calls (`relu:2`), the input first.

    `named` are those asked for by their very name, which must be reached; others were found, and need not be.
    """

    names: tuple[str, ...]
    named: frozenset[str] = frozenset()


@brief
@dataclass(frozen=True, slots=True)
class Grains:
    """The sites of a model at both grains, without the raw input, and what is to be said of them."""

    layers: tuple[str, ...]
    blocks: tuple[str, ...]
    notes: tuple[Note, ...] = ()

    def at(self, grain: str) -> tuple[str, ...]:
        """The names of one grain; of `auto` those of both, layers first."""
        if grain == "auto":
            return tuple(dict.fromkeys((*self.layers, *self.blocks)))
        return self.layers if grain == "layers" else self.blocks


def resolve_sites(model: nn.Module, sites: Sites = "auto") -> tuple[str, ...]:
    """Module names to read, the raw input first; a measurement orders them as the forward pass calls them.

    A grain (`layers`, `blocks`, or `auto`: both) asks the model's own `sites`, or the module tree where it declares none.
    Otherwise each entry is a module name, the input of a module (`fc:in`), one call of either (`relu:2`), a glob (`*`
    stands for one part of a dotted name, `**` for any number; `blocks.*:in`), a module class, or a function of name and
    module that says yes or no.
    """
    return choose(model, sites).names


def choose(model: nn.Module, sites: Sites = "auto") -> Choice:
    """The choice behind `resolve_sites`, which remembers what was asked for by name."""
    if isinstance(sites, str) and sites in GRAINS:
        return Choice((INPUT, *grains_of(model).at(sites)))
    entries = [sites] if isinstance(sites, str) or callable(sites) else sites
    if not isinstance(entries, Sequence) or not all(
        isinstance(entry, str) or (callable(entry) and not isinstance(entry, nn.Module)) for entry in entries
    ):
        raise InputError(
            "`sites` takes `auto`, `layers`, `blocks`, module names, globs, module classes, functions of (name, module), "
            f"or a list of these; found {sites!r}."
        )
    known = site_modules(model)
    chosen: dict[str, None] = {INPUT: None}
    named = set()
    for entry in entries:
        names = _matches(model, entry, known) if isinstance(entry, str) else _selected(model, entry, known)
        chosen.update(dict.fromkeys(names))
        if isinstance(entry, str) and not _is_glob(entry):
            named.update(names)
    if len(chosen) == 1:
        raise SiteError(f"No site was asked for. Name modules of `{kind_name(model)}`, or use `auto`.")
    return Choice(tuple(chosen), frozenset(named) - {INPUT})


def grains_of(model: nn.Module, calls: Sequence[Call] | None = None) -> Grains:
    """The sites of a model at both grains: declared by itself, or proposed from its modules (and calls, where known)."""
    core = inner(model)
    declared = getattr(core, "sites", None)
    modules = site_modules(model)
    declared = _declared(model, declared, modules) if isinstance(declared, Mapping) else {}
    notes: list[Note] = []
    blocks = declared.get("blocks", ()) or propose_blocks(core)
    layers = declared.get("layers", ())
    if not layers:
        layers, remarks = propose_layers(modules, blocks=blocks, calls=calls, model=kind_name(core))
        notes += remarks
    if not layers and not blocks:
        raise SiteError(
            f"`{kind_name(core)}` has no module inside whose output could be read: there is no layer between its inputs "
            "and its class scores. `equisep.fuzziness(x, y)` gives D of the inputs themselves."
        )
    return Grains(layers=layers or blocks, blocks=blocks or layers, notes=tuple(notes))


def _declared(
    model: nn.Module, declared: Mapping[Any, Any], known: Mapping[str, nn.Module]
) -> dict[str, tuple[str, ...]]:
    """The sites that a model declares, by grain, every entry of which must be found."""
    grains: dict[str, tuple[str, ...]] = {}
    for grain in ("layers", "blocks"):
        entries = declared.get(grain) or ()
        if (
            isinstance(entries, str)
            or not isinstance(entries, Sequence)
            or not all(isinstance(e, str) for e in entries)
        ):
            raise SiteError(
                f"`sites[{grain!r}]` of `{kind_name(model)}` should list names of its modules; found {entries!r}."
            )
        names = [name for entry in entries if entry not in GRAINS for name in _matches(model, entry, known)]
        grains[grain] = tuple(dict.fromkeys(names))
    return grains


def declares_sites(model: nn.Module) -> bool:
    """Whether a model says itself where it is to be read, at both grains."""
    declared = getattr(inner(model), "sites", None)
    return isinstance(declared, Mapping) and bool(declared.get("layers")) and bool(declared.get("blocks"))


def blocks_note(model: nn.Module, grains: Grains) -> tuple[Note, ...]:
    """The Note of a model that was asked for blocks and has none."""
    core = inner(model)
    declared = getattr(core, "sites", None)
    if grains.blocks != grains.layers or (isinstance(declared, Mapping) and declared.get("blocks")):
        return ()
    text = f"`{kind_name(core)}` has no repeated blocks: its layers were read instead. Name the sites to choose others."
    return (Note("no-blocks", text),)


def site_record(sites: Any) -> tuple[str, ...] | str:
    """Sites as a profile saves them: classes and functions by their names."""
    if isinstance(sites, str):
        return sites
    if callable(sites):
        return (_words(sites),)
    if not isinstance(sites, Sequence):
        return (repr(sites),)
    return tuple(site if isinstance(site, str) else _words(site) for site in sites)


def _words(site: Any) -> str:
    name = getattr(site, "__name__", type(site).__name__)
    return f"class {name}" if isinstance(site, type) else f"function {name}"


def _selected(model: nn.Module, site: Any, known: Mapping[str, nn.Module]) -> list[str]:
    if isinstance(site, type):
        selected = [name for name, module in known.items() if isinstance(module, site)]
    else:
        selected = [name for name, module in known.items() if site(name, module)]
    if not selected:
        raise SiteError(
            f"The {_words(site)} selects none of the {len(known)} modules of `{kind_name(model)}`. "
            "`equisep sites` lists them."
        )
    return selected


def _matches(model: nn.Module, pattern: str, known: Mapping[str, nn.Module]) -> list[str]:
    """The sites behind one entry: of its modules the outputs, or the inputs, all calls or one."""
    if pattern == INPUT or pattern in known:
        return [pattern]
    asked, given, number = parts(pattern)
    if asked == INPUT and pattern != INPUT:
        if INPUT_MODULE not in known:
            raise SiteError(
                f"No site `{pattern}`: the raw input `{INPUT}` is no module and comes once. Name `{INPUT}`."
            )
        asked = INPUT_MODULE
    ports = [f"{name}{GIVEN}" if given else name for name in _modules(model, asked, known)]
    if number in (None, "*"):
        return ports
    return [f"{port}:1" if number == "1" else call_site(port, int(number or 1)) for port in ports]


def _modules(model: nn.Module, pattern: str, known: Mapping[str, nn.Module]) -> list[str]:
    """The modules that a name, a grain or a glob stands for."""
    if pattern in known:
        return [pattern]
    second = aliases(model)
    if pattern in second:
        return [second[pattern]]
    if pattern in GRAINS:
        return list(grains_of(model).at(pattern))
    kind = kind_name(model)
    if _is_glob(pattern):
        expression = _glob(pattern)
        matching = [name for name in known if expression.fullmatch(name)]
        if not matching:
            raise SiteError(
                f"The glob `{pattern}` matches none of the {len(known)} modules of `{kind}`. "
                "`equisep sites` lists them; `*` stands for one part of a name, `**` for any number."
            )
        return matching
    if not pattern.strip():
        raise SiteError(
            f"An empty name is no site. Name modules of `{kind}`, or use `auto`; `equisep sites` lists them."
        )
    script = scripted_at(model, pattern)
    if script is not None:
        where = "is" if script == pattern else f"lies inside `{script}`, which is"
        raise SiteError(f"Site `{pattern}` {where} TorchScript and takes no hooks. Read a module before or after it.")
    raise SiteError(
        f"No module `{pattern}` in `{kind}`.{did_you_mean(pattern, known)} `equisep sites` lists all {len(known)}."
    )


def _is_glob(pattern: str) -> bool:
    return "*" in pattern or "?" in pattern


def _glob(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*\.|\*\*|\*|\?)", pattern)
    return re.compile("".join(_WILD.get(part, re.escape(part)) for part in parts))

"""The house: imports point down only, the public names are these, importing costs nothing and touches nothing."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import equisep
from equisep.advice.cut import cut_model

SOURCE = Path(equisep.__file__).parent
REPO = SOURCE.parents[1]

# from the foundation up; folders of one rank do not import each other
RANKS = [
    ["_version", "display", "errors", "faces", "shapes", "progress"],
    ["files"],
    ["results"],
    ["labels", "devices", "workers", "user_code", "hub"],
    ["data", "models", "taps", "separation", "peeled"],
    ["law"],
    ["findings"],
    ["training", "measuring"],
    ["compare", "tracking", "distributed"],
    ["advice"],
    ["figures"],
    ["runs"],
    ["report"],
    ["cli"],
]
RANK = {name: rank for rank, names in enumerate(RANKS) for name in names}
NO_TORCH = ("display", "errors", "progress", "files", "results", "law", "findings", "figures", "report")
# methods that import what they need when called: a profile draws and tabulates itself
EXCEPTIONS = {
    ("results", "report"): {"plot", "report", "to_frame", "__rich_console__", "_repr_html_"},
    ("results", "findings"): {"findings", "explain"},
    ("tracking", "report"): {"plot", "report", "to_frame", "_repr_html_"},
}
ADVISED = re.compile(r"\b(equisep(?:\.[A-Za-z_]\w*)+)\(")
COPIED = re.compile(ADVISED.pattern + r"|^from equisep\.")
MOST_FILES = 17  # of a folder, its face included
FRAMEWORKS = (
    "torch",
    "numpy",
    "matplotlib",
    "plotly",
    "pandas",
    "lightning",
    "torchmetrics",
    "transformers",
    "cvxpy",
    "ray",
    "rich",
    "typer",
)


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(SOURCE.rglob("*.py")):
        top = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if top not in ("__init__", "__main__"):
            yield top, path


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(imported module, name of the function it is imported in or '')."""

    def visit(node: ast.AST, inside: str) -> Iterator[tuple[str, str]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.Import):
                yield from ((alias.name, inside) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, "imports are absolute"
                yield child.module or "", inside
            name = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else inside
            yield from visit(child, name)

    yield from visit(tree, "")


def test_imports_point_down_only() -> None:
    wrong = []
    for top, path in modules():
        for name, inside in imports(ast.parse(path.read_text(encoding="utf-8"))):
            if not name.startswith("equisep."):
                continue
            other, *rest = name.split(".")[1:]
            if other == top or inside in EXCEPTIONS.get((top, other), set()):
                continue
            if RANK[other] >= RANK[top]:
                wrong.append(f"{path.relative_to(SOURCE)} imports {name}, which stands above it or beside it")
            if any(part.startswith("_") for part in rest):
                wrong.append(f"{path.relative_to(SOURCE)} imports {name}, which is {other}'s own")
    assert not wrong, "\n".join(wrong)


def test_the_order_names_every_folder_and_no_other() -> None:
    """Folders of issues to come stand in the order before they stand in the house."""
    tops = {top for top, _ in modules()}
    assert tops <= RANK.keys()
    assert RANK.keys() - tops <= {"findings", "distributed"}


def test_no_folder_is_crowded() -> None:
    folders = {path.parent for _, path in modules()}
    crowded = {str(folder): count for folder in folders if (count := len(list(folder.glob("*.py")))) > MOST_FILES}
    assert not crowded


def names_under(top: str) -> list[str]:
    """Every module of one folder (or file) of the house, as dotted names."""
    found = [path.relative_to(SOURCE.parent).with_suffix("") for name, path in modules() if name == top]
    return [".".join(path.parts).removesuffix(".__init__") for path in found]


def test_a_report_can_be_redrawn_and_a_history_read_without_torch() -> None:
    """In one process, from the foundation up: the first module after which torch is there is the one that loaded it."""
    names = [*(name for top in NO_TORCH for name in names_under(top)), "equisep.tracking"]
    code = f"""
import importlib, sys
for name in {names!r}:
    importlib.import_module(name)
    assert 'torch' not in sys.modules, name
from equisep.tracking import Entry, Header, History, Stopping
assert 'torch' not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_equisep_imports_no_framework_and_touches_no_global_state() -> None:
    code = f"""
import builtins, os, sys, locale, warnings, logging, random, signal
before = (dict(os.environ), list(warnings.filters), random.getstate(), logging.root.level, list(sys.path), os.getcwd())
import equisep
equisep.__version__, dir(equisep)
after = (dict(os.environ), list(warnings.filters), random.getstate(), logging.root.level, list(sys.path), os.getcwd())
assert before == after
loaded = [name for name in {FRAMEWORKS!r} if name in sys.modules]
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_using_every_public_name_touches_no_torch_or_numpy_state_and_no_submodule_hides_one() -> None:
    code = """
import numpy, torch
def state():
    return (torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled(), torch.get_rng_state().sum().item(),
            torch.are_deterministic_algorithms_enabled(), str(numpy.random.get_state()[1][:5]), str(numpy.geterr()))
before = state()
import equisep
import sys
for name in sorted(equisep.__all__, key="Separation".__eq__):  # last: torchmetrics, its base, draws
    assert getattr(equisep, name) is not None
    assert name == "Separation" or not {"matplotlib", "pandas", "torchmetrics"} & sys.modules.keys(), name
assert state() == before
import equisep.cli.app, equisep.measuring.measure  # a submodule must not stand where a function of its name was
assert callable(equisep.measure) and callable(equisep.fuzziness)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names() -> None:
    assert equisep.__all__ == [
        "Fnn",
        "History",
        "LawFit",
        "Profile",
        "Separation",
        "Tracker",
        "__version__",
        "cdnv",
        "class_fuzziness",
        "corrected_fuzziness",
        "fit_law",
        "fuzziness",
        "load_data",
        "measure",
        "measure_features",
        "ncc_accuracy",
        "peeled",
        "recommend_depth",
        "summarize_laws",
        "tap",
        "train",
        "train_ensemble",
    ]
    assert sorted(equisep.__all__) == equisep.__all__ == dir(equisep)
    with pytest.raises(AttributeError, match="no attribute 'fuzzyness'"):
        _ = equisep.fuzzyness  # type: ignore[attr-defined]


def test_every_module_says_what_it_knows() -> None:
    silent = [path for _, path in modules() if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert not silent


def test_calls_that_sentences_and_examples_advise_can_be_made() -> None:
    """A sentence that names a module that moved, or a module as if it were a function, sends users astray."""
    said = {(call, path) for _, path in modules() for call in ADVISED.findall(path.read_text(encoding="utf-8"))}
    assert len(said) > 20
    for call, path in sorted(said):
        _, *parts = call.split(".")
        if len(parts) == 1:
            assert parts[0] in set(equisep.__all__) - {"peeled"}, f"{path.name} advises {call}(…)"
            continue
        found: object = equisep
        for part in parts:
            inside = f"{getattr(found, '__name__', '')}.{part}"
            found = getattr(found, part) if hasattr(found, part) else importlib.import_module(inside)
        assert callable(found), f"{path.name} advises {call}(…), which is {found!r}"


def test_what_findings_advise_has_the_arguments_of_what_is_called() -> None:
    """The call that most unfinished networks were told to make raised a TypeError; another was of a folder not imported yet."""
    bound = []
    for path in (SOURCE / "findings").glob("*.py"):
        nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
        parts = [part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values]
        for node in (each for each in nodes if each not in parts):
            if not (isinstance(node, ast.Constant) and isinstance(node.value, str) and COPIED.search(node.value)):
                continue
            names: dict[str, object] = {"equisep": equisep}
            for call in ast.walk(ast.parse(node.value)):
                if isinstance(call, ast.ImportFrom):
                    exec(ast.unparse(call), names)
                if isinstance(call, ast.Call):
                    words = ast.unparse(call.func)
                    assert words.count(".") <= ("equisep." in words), f"{words} needs more than `import equisep`"
                    called = eval(words, names)
                    inspect.signature(called).bind(
                        *call.args, **{each.arg: each.value for each in call.keywords if each.arg}
                    )
                    bound.append(called)
    assert equisep.Tracker in bound and cut_model in bound and len(bound) >= 4


def test_the_page_on_architecture_names_files_that_exist() -> None:
    page = (REPO / "docs" / "architecture.md").read_text(encoding="utf-8")
    for name in re.findall(r"`((?:[a-z_]+/)+[a-z_0-9]+\.py)`", page):
        base = REPO if name.startswith(("tests/", "simulations/", "scripts/")) else SOURCE
        assert (base / name).is_file(), name
    for name in re.findall(r"`((?:[a-z_]+/)+)`", page):
        assert (SOURCE / name).is_dir() or (REPO / name).is_dir(), name
    for section in page.split("\n## "):  # a name alone is of the folder that its section names
        said = re.search(r"[Ff]iles(?: without a folder)? are in `([a-z_/]+)/`", section)
        for name in re.findall(r"`([a-z_0-9]+\.py)`", section):
            assert (SOURCE / said[1] / name).is_file() if said else False, f"{name} in {section.splitlines()[0]}"


def test_the_version_is_told_once() -> None:
    citation = (REPO / "CITATION.cff").read_text(encoding="utf-8")
    changelog = (REPO / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"version: {equisep.__version__}" in citation
    assert f"## {equisep.__version__}" in changelog


def test_the_core_imports_and_measures_with_torch_and_numpy_alone() -> None:
    """Accelerator machines often have nothing else."""
    code = """
import sys
for name in ("matplotlib", "pandas", "pooch", "rich", "typer", "scipy", "jaxtyping", "beartype", "torchmetrics"):
    sys.modules[name] = None
import torch, equisep
model = equisep.Fnn(3, width=5, inputs=4, classes=2)
x, y = torch.randn(40, 4), torch.arange(40) % 2
profile = equisep.measure(model, (x, y), (x, y))
assert profile.law.rho is not None and repr(profile)
assert equisep.Separation(2)(x, y)["fuzziness"] > 0
equisep.load_data("embedded-10x10")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_assumes_a_default_device() -> None:
    """Under `torch.set_default_device` new tensors land elsewhere; what belongs on the CPU says so."""
    from equisep.training import Recipe

    model = equisep.Fnn(3, width=5, inputs=4, classes=2)
    x, y = torch.randn(40, 4), torch.arange(40) % 2
    with torch.device("meta"):
        equisep.train(model, x, y, recipe=Recipe(epochs=1, batch_size=16))
        for memory in (2**30, 5_000, 0):
            equisep.measure(model, [(x[:20], y[:20]), (x[20:], y[20:])], [(x, y)], memory=memory)

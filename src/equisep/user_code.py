"""What the user's own code makes, named in one line: `pkg.module:name` or `file.py:name`, with options behind it."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from equisep.errors import EquisepError, did_you_mean

_VALUE = r"\[[^\[\]]*\]|[^,/]*"
_OPTION = re.compile(rf",([A-Za-z_]\w*)=({_VALUE})")
_OPTIONS = re.compile(rf"(?:,[A-Za-z_]\w*=(?:{_VALUE}))+$")
_WORDS = {"true": True, "false": False, "none": None}


def split_options(text: str) -> tuple[str, dict[str, Any]]:
    """`name,colors=3,flag=true` as the name and its options: numbers, true, false, none, words, or several as `[0.9,0.99]`."""
    match = _OPTIONS.search(text)
    if match is None:
        return text, {}
    return text[: match.start()], {key: _value(value) for key, value in _OPTION.findall(match.group())}


def _value(text: str) -> Any:
    word = text.strip()
    if word.startswith("[") and word.endswith("]"):
        return tuple(_value(part) for part in word[1:-1].split(",") if part.strip())
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    for number in (int, float):
        try:
            return number(word)
        except ValueError:
            continue
    return word


def made_by(
    spec: str,
    options: Mapping[str, Any],
    *,
    ready: Callable[[Any], bool],
    kind: str,
    returns: str,
    error: type[EquisepError],
) -> Any:
    """What `spec` is, where it is `ready`, or what it makes when called with `options`: **its code is imported and run**.

    A module is searched for in the working folder first, as `python -m` would; a file finds the modules beside it.
    `kind` and `returns` are the words of the sentences, `error` their type.
    """
    with _named(spec, error) as value:
        if ready(value):
            if options:
                raise error(f"`{spec}` is a {kind} already: nothing is made that could take `{next(iter(options))}`.")
            return value
        if not callable(value):
            raise error(f"`{spec}` should be a {kind} or a function that makes one; it is a {type(value).__name__}.")
        call = f"{spec}({', '.join(f'{key}={given!r}' for key, given in options.items())})"
        try:
            result = value(**options)
        except Exception as problem:  # whatever a user's code raises
            raise error(f"`{call}` failed: {type(problem).__name__}: {problem}") from problem
    if not ready(result):
        raise error(f"`{call}` should return {returns}; it returned {type(result).__name__}.")
    return result


def code_checksum(spec: str) -> str:
    """SHA-256 of the file that a `spec` of `made_by` names, which was loaded before; nothing where there is no such file."""
    source = spec.rpartition(":")[0]
    file = file_named(source)
    if file is None:
        file = Path(getattr(sys.modules.get(source), "__file__", None) or "")
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


def option_names(spec: str, *, error: type[EquisepError]) -> tuple[str, ...]:
    """The options that what `spec` of `made_by` names declares; **its code is imported and run**."""
    with _named(spec, error) as value:
        try:
            return tuple(inspect.signature(value).parameters)
        except (TypeError, ValueError):  # no function, or one that does not say
            return ()


@contextmanager
def _named(spec: str, error: type[EquisepError]) -> Iterator[Any]:
    """What `spec` names, while its folder can be imported from."""
    source, _, attribute = spec.rpartition(":")
    file = file_named(source)
    with _importable(Path.cwd() if file is None else file.parent.absolute()):
        module = _module(source, error) if file is None else _file(file, error)
        yield _attribute(module, source, attribute, error)


def file_named(source: str) -> Path | None:
    """The file that a source is, written with or without `.py`; None for a dotted module name."""
    if source.endswith(".py"):
        return Path(source).expanduser()
    return Path(f"{source}.py").expanduser() if "/" in source or os.sep in source else None


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _module(name: str, error: type[EquisepError]) -> Any:
    with _importing(name, error):
        return importlib.import_module(name)


def _file(path: Path, error: type[EquisepError]) -> Any:
    """The module in a file, which may have the name of one that is loaded already."""
    if not path.is_file():
        raise error(f"There is no file `{path}`. Check the path, which is taken from the working folder.")
    known = sys.modules.get(path.stem)
    if known is not None and getattr(known, "__file__", None) == str(path.absolute()):
        return known
    spec = importlib.util.spec_from_file_location(path.stem, path.absolute())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if known is None:  # classes are pickled by the name of their module
        sys.modules[path.stem] = module
    try:
        with _importing(str(path), error):
            spec.loader.exec_module(module)
    except BaseException:
        if known is None:
            sys.modules.pop(path.stem, None)
        raise
    return module


@contextmanager
def _importing(name: str, error: type[EquisepError]) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as problem:
        missing = problem.name or name
        needed = "" if missing == name or name.startswith(f"{missing}.") else f", which `{name}` imports"
        raise error(f"No module `{missing}`{needed}. Run from the folder that holds it, or install it.") from problem
    except Exception as problem:  # whatever a user's code raises
        raise error(f"Importing `{name}` failed: {type(problem).__name__}: {problem}") from problem


def _attribute(module: Any, source: str, attribute: str, error: type[EquisepError]) -> Any:
    value = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            hint = did_you_mean(part, [entry for entry in dir(value) if not entry.startswith("_")])
            raise error(f"`{source}` has no `{attribute}`.{hint}")
        value = getattr(value, part)
    return value

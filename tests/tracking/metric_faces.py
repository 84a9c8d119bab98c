"""`Separation` on both of its bases, whatever is installed: torchmetrics' own, and the one that stands alone."""

from __future__ import annotations

import importlib.util
import sys
from importlib.util import find_spec
from types import ModuleType

import pytest

import equisep.tracking.torchmetrics as natural

HAS_TORCHMETRICS = find_spec("torchmetrics") is not None


def standalone() -> ModuleType:
    """The same file, imported as where torchmetrics is not installed."""
    name = "separation_standing_alone"
    if name in sys.modules:
        return sys.modules[name]
    kept = sys.modules.get("torchmetrics")
    sys.modules["torchmetrics"] = None  # type: ignore[assignment]
    try:
        spec = importlib.util.spec_from_file_location(name, natural.__file__)
        assert spec is not None and spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        if kept is None:
            del sys.modules["torchmetrics"]
        else:
            sys.modules["torchmetrics"] = kept
    return module


needs_torchmetrics = pytest.mark.skipif(not HAS_TORCHMETRICS, reason="torchmetrics is not installed")
FACES = [
    pytest.param(standalone().Separation, id="alone"),
    pytest.param(natural.Separation, id="torchmetrics", marks=needs_torchmetrics),
]

"""Colors of classes and curves are told apart by any eye, in light and in dark, and stand out from what is behind them."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest

# what an eye without one kind of cone makes of linear RGB: Machado, Oliveira & Fernandes (2009), at full strength
EYES = {
    "all cones": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = XYZ.sum(1)


def linear(color: str) -> np.ndarray:
    """Linear RGB of #rrggbb."""
    value = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIELAB of linear RGB."""
    share = XYZ @ np.clip(rgb, 0, 1) / WHITE
    root = np.where(share > 216 / 24389, np.cbrt(share), (24389 / 27 * share + 16) / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def palette(scheme: str) -> dict[str, str]:
    """The colors of the style sheet: those of dark screens stand behind those of light ones."""
    sheet = (files("equisep.report.page") / "assets" / "page.css").read_text(encoding="utf-8")
    light, dark = sheet.split("prefers-color-scheme: dark", 1)
    return dict(re.findall(r"--([a-z]+(?:-\d)?):\s*(#[0-9a-fA-F]{6})", light if scheme == "light" else dark))


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_classes_and_curves_are_told_apart(scheme: str, eye: str) -> None:
    known = palette(scheme)
    groups = {
        12: [f"class-{k}" for k in range(10)],
        9: ["train", "test", "chance", "corrected"],
    }  # curves differ in dashes too
    for least, names in groups.items():
        seen = {name: lab(np.asarray(EYES[eye]) @ linear(known[name])) for name in names}
        nearest = min((np.linalg.norm(seen[one] - seen[other]), one, other) for one, other in combinations(names, 2))
        assert nearest[0] >= least, nearest


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_points_stand_out_from_the_panel(scheme: str) -> None:
    known = palette(scheme)
    behind = float(XYZ[1] @ linear(known["panel"]))
    for name in [f"class-{k}" for k in range(10)]:
        light = float(XYZ[1] @ linear(known[name]))
        assert (max(light, behind) + 0.05) / (min(light, behind) + 0.05) >= 2.2, name

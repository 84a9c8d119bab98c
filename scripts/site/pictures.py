"""Draw the pictures of the tutorial and of the gallery: `python scripts/site/pictures.py` (a minute).

The tutorial's picture comes from the tutorial's own code, the others from one network trained here and from solved problems.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
from playwright.sync_api import sync_playwright

import equisep
from equisep import Profile, peeled
from equisep.data import load_data, prepare_split
from equisep.peeled.vectors import MOST_CLASSES, class_vectors
from equisep.report.peeled.plots import plot_cosines, plot_long_tail, plot_phases
from equisep.report.peeled.vector_plots import plot_vectors
from equisep.report.plots import save_figure
from equisep.report.site_plots import plot_sites
from equisep.training import Recipe

DOCS = Path(__file__).parents[2] / "docs"
IMAGES = DOCS / "images"
DPI = 110  # of pictures that stand in columns


def tutorial() -> None:
    """The tutorial's law, by its first Python blocks up to the one that draws it."""
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for body in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            exec(compile(body, "tutorial.md", "exec"), names)
            if Path("law.png").exists():
                (IMAGES / "tutorial-law.png").write_bytes(Path("law.png").read_bytes())
                return


def network() -> None:
    """A network of 8 layers on the embedded pictures, tracked while it trains, then measured."""
    data = load_data("embedded-10x10")
    x, y = prepare_split(data, "he2023-10x10", per_class=100)
    test = prepare_split(data, "he2023-10x10", split="test")
    torch.manual_seed(0)
    model = equisep.Fnn(8)
    tracker = equisep.Tracker(model, (x, y), test=test)

    def read(epoch: int) -> None:
        if epoch in (1, 5, 10, 20, 40, 80, 150):
            tracker.epoch(epoch)

    equisep.train(model, x, y, recipe=Recipe(epochs=150, rate=3e-3), after_epoch=read)
    profile = equisep.measure(model, (x, y), test, class_names=data.class_names, name="8 layers")
    axes = profile.plot(metric="class_fuzziness")
    save_figure(axes, IMAGES / "gallery-classes.png", dpi=DPI)
    save_figure(profile.plot(metric="load"), IMAGES / "gallery-work.png", dpi=DPI)
    save_figure(profile.plot(metric="ncc_test"), IMAGES / "gallery-nearest.png", dpi=DPI)
    save_figure(plot_sites(profile), IMAGES / "gallery-sites.png", dpi=DPI)
    tracker.history.plot(IMAGES / "gallery-history.png")
    page(profile)


def page(profile: Profile) -> None:
    """The first screen of a profile's page, in the Chromium of this machine."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "page.html"
        profile.report(path)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        screen = browser.new_page(viewport={"width": 1200, "height": 900})
        screen.goto(path.as_uri())
        screen.screenshot(path=IMAGES / "gallery-page.png")
        browser.close()


def solved() -> None:
    """Diagrams of the Layer-Peeled Model."""
    save_figure(plot_cosines(peeled.cosine_curves()), IMAGES / "gallery-cosines.png", dpi=DPI)
    ratios, energies = np.geomspace(1, 1e4, 61), np.geomspace(0.1, 30, 46)
    phases = peeled.phase_by_energy(5, 5, ratios=ratios, feature_energies=energies, weight_energy=1)
    save_figure(plot_phases(phases), IMAGES / "gallery-phases.png", dpi=DPI)
    tail = peeled.long_tail(classes=10, largest=5000, ratio=100, feature_energy=5, weight_energy=1)
    save_figure(plot_long_tail(tail), IMAGES / "gallery-tail.png", dpi=DPI)
    vectors = [class_vectors(classes) for classes in range(2, MOST_CLASSES + 1)]
    save_figure(plot_vectors(vectors), IMAGES / "class-vectors.png", dpi=DPI)


if __name__ == "__main__":
    tutorial()
    network()
    solved()

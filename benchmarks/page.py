"""How large is a page, and how long until something is drawn?

Three pages: of the demo's network in two readings, of a training of 20 layers read at 9 epochs, and of 200 layers and 1,000
classes (drawn numbers). For each the size, the seconds to make it, the milliseconds from opening the file to the first drawing
and to all of them (medians, each in a window of its own, in Chromium with networking off), the milliseconds that the page's
main thread worked until then (which other programs on the machine do not change), the requests it made, the lines in its
console, and what axe-core objects to in light and dark at 380 and 1280 pixels. The promises are 1 MiB and 300 ms on two
quiet cores, 5 MiB and 2 s for the large one, and nothing else. Needs Chromium.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

import equisep
from _record import finish
from equisep.data import PREPARATIONS, prepare_split
from equisep.law import fit_law
from equisep.report.page import history_page, profile_page
from equisep.results import ClassCosines, ClassPair, Coordinates, Profile, SiteReading
from equisep.training import Recipe

REPEATS = 7
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
FIRST = "() => performance.getEntriesByName('equisep-plot')[0].startTime"
ALL = "() => { dispatchEvent(new Event('beforeprint')); return performance.now(); }"


def samples(split: str = "train", per_class: int = 100) -> tuple[torch.Tensor, torch.Tensor]:
    """Samples of the embedded Fashion-MNIST, as many of each class."""
    x, y = prepare_split(equisep.load_data("embedded-10x10"), PREPARATIONS["he2023-10x10"], split=split)
    rows = torch.cat([(y == k).nonzero().flatten()[:per_class] for k in range(10)])
    return x[rows].flatten(1), y[rows]


def demo() -> str:
    """The network of the demo, trained for a while, in the demo's readings."""
    torch.manual_seed(0)
    network = equisep.Fnn(8)
    equisep.train(network, *samples(), recipe=Recipe(epochs=30))
    return profile_page([equisep.measure(network, samples(), samples("test"), readings=("eval", "drawn"))])


def training() -> str:
    """Twenty layers, read at nine epochs."""
    torch.manual_seed(0)
    network = equisep.Fnn(20)
    tracker = equisep.Tracker(network, samples(), test=samples("test"))
    for _ in range(9):
        equisep.train(network, *samples(), recipe=Recipe(epochs=1))
        tracker.epoch()
    return history_page(tracker.history)


def large(layers: int = 200, classes: int = 1000) -> str:
    """Two hundred layers and a thousand classes, every field filled with drawn numbers: as much as there can be."""
    rng = numpy.random.default_rng(0)
    curve = 40 * 0.98 ** numpy.arange(layers) * numpy.exp(0.02 * rng.standard_normal(layers))
    extremes = tuple(ClassPair(k, k + 1, float(rng.uniform(-1, 1))) for k in range(20))

    def drawn(low: float, high: float) -> tuple[float, ...]:
        return tuple(rng.uniform(low, high, classes).tolist())

    def coordinates() -> Coordinates:
        points = rng.standard_normal((300, 2)).tolist()
        labels = tuple(rng.integers(0, classes, 300).tolist())
        return Coordinates(points=tuple((x, y) for x, y in points), labels=labels, explained=(0.3, 0.1))

    sites = tuple(
        SiteReading(
            index=step,
            name="input" if step == 0 else f"encoder.layers.{step - 1}.mlp.activation",
            dim=1024,
            fuzziness=value,
            fuzziness_test=1.3 * value,
            null=900.0,
            class_fuzziness=drawn(0.5 * value, 2 * value),
            nc1=value / classes,
            cdnv=value / 9,
            cdnv_test=value / 7,
            cdnv_directional=value / 90,
            ncc_train=min(1.0, 0.3 + step / 200),
            ncc_test=min(1.0, 0.3 + step / 400),
            ncc_class_train=drawn(0.8, 1),
            ncc_class_test=drawn(0.5, 1),
            cosines=ClassCosines(mean=-1 / (classes - 1), least=extremes, greatest=extremes),
            coordinates=coordinates(),
        )
        for step, value in enumerate(curve.tolist())
    )
    profile = Profile(
        model="Encoder",
        classes=classes,
        counts=(50,) * classes,
        counts_test=(10,) * classes,
        sites=sites,
        law=fit_law(curve.tolist()),
        effective_depth=140,
        accuracy_train=1.0,
        accuracy_test=0.7,
        reading="eval",
        class_names=tuple(f"class number {k}" for k in range(classes)),
        accuracy_class_train=drawn(0.9, 1),
        accuracy_class_test=drawn(0.4, 1),
        confused_train=extremes,
        confused_test=extremes,
    )
    return profile_page([profile])


@dataclass(frozen=True)
class Visit:
    """A page in a window of its own, its requests, the lines of its console, and what its main thread has worked so far."""

    page: Page
    requests: list[str]
    lines: list[str]
    main_thread_ms: float


def visit(browser: Browser, path: Path, *, width: int = 1280, dark: bool = False) -> Visit:
    """Open a page and wait for its first drawing."""
    context = browser.new_context(
        offline=True, viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
    )
    page = context.new_page()
    requests: list[str] = []
    lines: list[str] = []
    thread = context.new_cdp_session(page)
    thread.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: lines.append(message.text))
    page.on("pageerror", lambda error: lines.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector("figure[data-drawn]", state="attached")
    worked = {entry["name"]: entry["value"] for entry in thread.send("Performance.getMetrics")["metrics"]}
    return Visit(page, requests[1:], lines, 1000 * worked["TaskDuration"])  # the first request is the file itself


def measured(browser: Browser, make: Callable[[], str], path: Path) -> dict[str, Any]:
    """Everything that is promised of one page."""
    start = time.perf_counter()
    text = make()
    path.write_text(text, encoding="utf-8")
    made = time.perf_counter() - start
    first, every, visits = [], [], []
    for _ in range(REPEATS):
        visits.append(visit(browser, path))
        page = visits[-1].page
        first.append(page.evaluate(FIRST))
        begun = page.evaluate("() => performance.now()")
        every.append(first[-1] + page.evaluate(ALL) - begun)
        page.context.close()
    working = statistics.median(entry.main_thread_ms for entry in visits)
    violations = 0
    for width, dark in ((380, False), (380, True), (1280, False), (1280, True)):
        visits.append(visit(browser, path, width=width, dark=dark))
        visits[-1].page.evaluate(ALL)
        violations += Axe().run(visits[-1].page).violations_count
        visits[-1].page.context.close()
    return {
        "kibibytes": round(len(text.encode()) / 1024),
        "measured_and_made_s": made,
        "first_plot_ms": statistics.median(first),
        "first_plot_least_ms": min(first),
        "first_plot_main_thread_ms": working,
        "all_plots_ms": statistics.median(every),
        "requests": sum(len(entry.requests) for entry in visits),
        "console_lines": sum(len(entry.lines) for entry in visits),
        "axe_violations": violations,
        "load_average": os.getloadavg()[0],
    }


def main() -> None:
    """All pages, in one browser."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("No `chromium` on this machine; `apt-get install chromium` brings it.")
    makers = {"demo": demo, "20 layers, 9 epochs": training, "200 layers, 1,000 classes": large}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        result = {name: measured(browser, make, Path(folder) / "page.html") for name, make in makers.items()}
        version = browser.version
        browser.close()
    finish("page", {"pages": result, "chromium": version, "cores": os.cpu_count()})


if __name__ == "__main__":
    main()

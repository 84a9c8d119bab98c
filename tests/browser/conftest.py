"""One Chromium for all tests of the page, offline, and a page that gathers every request and every line of its console."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import shown_networks as shown

from equisep.report.page import history_page, profile_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from equisep.results import Profile

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@dataclass
class Opened:
    """A page and what it did that nobody asked for."""

    page: Page
    requests: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def check_quiet(self) -> None:
        """No request but the file itself, no line in the console, no error, no refusal by the security policy."""
        assert self.requests == []
        assert self.lines == []
        assert self.page.locator(".failed").count() == 0

    def draw_all(self) -> None:
        """Draw what is drawn as it comes near the window, as before printing."""
        self.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert self.page.locator("figure.plot:not([data-drawn])").count() == 0


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Closed with the last test of this folder: as long as it runs, so does its event loop, and tests elsewhere have theirs."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: `apt-get install chromium` brings it")
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: the extra `dev` has it")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Opened]]:
    """Open a file in a window of its own, with networking off."""
    contexts = []

    def opened(
        path: Path, *, width: int = 1280, dark: bool = False, scripts: bool = True, still: bool = True
    ) -> Opened:
        context = browser.new_context(
            offline=True,
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce" if still else "no-preference",
            java_script_enabled=scripts,
        )
        contexts.append(context)
        watched = Opened(context.new_page())
        address = path.as_uri()
        page = watched.page
        page.on("request", lambda request: watched.requests.append(request.url) if request.url != address else None)
        page.on("console", lambda message: watched.lines.append(message.text))
        page.on("pageerror", lambda error: watched.lines.append(str(error)))
        page.on("dialog", lambda dialog: (watched.lines.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.goto(address)
        if scripts:
            page.wait_for_selector("html[data-ready]", state="attached")
        return watched

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="package")
def network() -> Profile:
    return shown.profile_of(shown.trained(5)[0])


@pytest.fixture(scope="package")
def pages(tmp_path_factory: pytest.TempPathFactory, network: Profile) -> dict[str, Path]:
    """The kinds of page there are, each as a file."""
    folder = tmp_path_factory.mktemp("pages")
    model, history = shown.trained(3, history=True)
    assert history is not None
    texts = {
        "one": profile_page([network]),
        "two": profile_page([network, shown.profile_of(model)]),
        "training": history_page(history),
        **{name: profile_page([poor]) for name, poor in shown.poor(network).items()},
        "hostile": profile_page([shown.hostile(network)]),
        "hostile two": profile_page([shown.hostile(network), shown.hostile(network)]),
    }
    paths = {}
    for name, text in texts.items():
        paths[name] = folder / f"{name}.html"
        paths[name].write_text(text, encoding="utf-8")
    return paths

"""The documentation site: it builds without a warning, asks nobody for anything, and no link of it leads nowhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from documents import DOCS, REPO

LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "link": "href",
}
NOT_LOADED = {"next", "prev", "canonical", "alternate"}  # kinds of <link> that only tell
FROM = [*DOCS.rglob("*"), *(REPO / "scripts" / "site").rglob("*.py"), *(REPO / "src").rglob("*.py")]
FROM += [REPO / "mkdocs.yml", REPO / "CONTRIBUTING.md"]


@dataclass
class Built(HTMLParser):
    """What one built page loads, where it leads, and the ids that others can lead to."""

    loads: list[str] = field(default_factory=list)
    leads: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids.update(value for name, value in values.items() if name in ("id", "name"))
        address = values.get(LOADED.get(tag, ""), "")
        if address and not (tag == "link" and set(values.get("rel", "").split()) & NOT_LOADED):
            self.loads.append(address)
        self.loads += re.findall(r"url\(['\"]?([^'\")]+)", values.get("style", ""))
        self.loads += [part.split()[0] for part in values.get("srcset", "").split(",") if part.strip()]
        if tag == "a" and values.get("href"):
            self.leads.append(values["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` built it, or built here where that one is missing or older than what it is made of."""
    made = REPO / "site" / "sitemap.xml"
    if made.is_file() and all(path.stat().st_mtime < made.stat().st_mtime for path in FROM if path.is_file()):
        return made.parent
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Built]:
    found = {}
    for path in sorted(site.rglob("*.html")):
        found[path] = Built()
        found[path].feed(path.read_text(encoding="utf-8"))
    return found


def test_every_page_of_docs_is_on_the_site_and_in_its_navigation(site: Path, pages: dict[Path, Built]) -> None:
    written = {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.rglob("*.md")}
    built = {path.relative_to(site).as_posix() for path in pages}
    assert written <= built, written - built
    home = set(pages[site / "index.html"].leads)
    assert written - {"index.html"} <= home, written - home


def test_pages_of_figures_have_the_width_that_a_table_of_contents_would_take(site: Path) -> None:
    """Pictures and tables of claims want it, and such a page has no headings."""
    column = 'data-md-component="sidebar" data-md-type="toc"'
    hidden = {path.stem for path in (site / "figures").glob("*.html") if f"{column} hidden" in path.read_text("utf-8")}
    assert len(hidden) > 30 and "index" not in hidden and column in (site / "training.html").read_text("utf-8")


def test_the_pages_load_nothing_from_elsewhere(site: Path, pages: dict[Path, Built]) -> None:
    assert sum(len(page.loads) for page in pages.values()) > 100
    foreign = {(path.name, one) for path, page in pages.items() for one in page.loads if outside(one)}
    for path in site.rglob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        urls = re.findall(r"url\(['\"]?([^'\")]+)|@import ['\"]([^'\"]+)", text)
        foreign |= {(path.name, one) for pair in urls for one in pair if one and outside(one)}
    assert not foreign
    assert not [
        path.name for path in pages if 'class="mermaid"' in path.read_text(encoding="utf-8")
    ]  # fetched when used


def outside(address: str) -> bool:
    return bool(urlsplit(address).netloc) or address.startswith(("http:", "https:", "//"))


def test_every_link_and_picture_of_the_site_is_there(site: Path, pages: dict[Path, Built]) -> None:
    lost = []
    for path, page in pages.items():
        if path.name == "404.html":  # its links start at the root of a server
            continue
        for one in [*page.loads, *page.leads]:
            parts = urlsplit(one)
            if outside(one) or parts.scheme:
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            anchored = parts.fragment in ("", "__codelineno") or target not in pages
            if not target.is_file() or not (anchored or unquote(parts.fragment) in pages[target].ids):
                lost.append(f"{path.relative_to(site)}: {one}")
    assert not lost, "\n".join(lost)


def test_the_first_screen_has_the_picture_and_the_law() -> None:
    opening = (DOCS / "index.md").read_text(encoding="utf-8").partition("\n## ")[0]
    assert "images/law.png" in opening
    assert "D<sub>l</sub> ≈ ρ<sup>" in opening

"""What MkDocs does not know of this repository: pages that nobody has to list, and files that pages link to outside docs/."""

from __future__ import annotations

import os
import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

REPO = Path(__file__).parents[2]
LINK = re.compile(r"(\]\(|src=\"|href=\")((?:\.\./)+[^)\s\"#]+)")  # Markdown and HTML, to somewhere above the page
CONTRIBUTING = "contributing.md"  # the page that CONTRIBUTING.md is on the site
PAPERS = {
    "he2023": "He & Su 2023",
    "fang2021": "Fang, He, Long & Su 2021",
    "galanti2022": "Galanti & Galanti 2022",
    "equisep2026": "Experiments of our own",
}
TAKEN = "repository"  # the folder of the site that holds files of the repository


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation with every page of docs/ in it, so that a new page needs no line there."""
    docs = Path(config.docs_dir)
    listed = set(_pages(config.nav))
    there = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    figures = [name for name in there - listed if name.startswith("figures")]  # figures.md, or figures/…
    others = sorted(there - listed - set(figures))
    for section in config.nav or []:
        if "Figures" in section:
            section["Figures"] = [*_by_paper(figures), *section["Figures"]]
        if "Guides" in section:
            section["Guides"] = [*section["Guides"], *others]
    return config


def _by_paper(figures: list[str]) -> list[Any]:
    """Pages of figures, `figures/he2023-fig1.md`, in a section for each paper; what is of none comes first, an index ahead."""
    papers: dict[str, list[str]] = {name: [] for name in PAPERS}
    rest: list[str] = []
    for page in sorted(figures, key=_natural):
        paper = page.removeprefix("figures/").partition("-")[0]
        papers.get(paper, rest).append(page)
    rest.sort(key=lambda page: not page.endswith("index.md"))
    return [*rest, *({PAPERS[paper]: pages} for paper, pages in papers.items() if pages)]


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """fig2 before fig10."""
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", name)]


def _pages(nav: Any) -> list[str]:
    """The files that a navigation names."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav or []
    return [name for part in parts for name in _pages(part)]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """CONTRIBUTING.md as a page, and with every page the files of the repository that it links to."""
    text = (REPO / "CONTRIBUTING.md").read_text(encoding="utf-8")
    files.append(File.generated(config, CONTRIBUTING, content=text.replace("](docs/", "](")))
    for page in [file for file in files if file.is_documentation_page()]:
        for _, target in LINK.findall(page.content_string):
            outside = _outside(page.src_uri, target)
            if outside and f"{TAKEN}/{outside}" not in files.src_uris:
                source = REPO / outside
                if source.is_file():  # a folder or a slip stays as it is, and the strict build names it
                    files.append(File.generated(config, f"{TAKEN}/{outside}", abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to files of the repository lead to their copies on the site; a figure's page, all one piece, has its full width."""
    if page.file.src_uri.startswith("figures/") and not page.file.src_uri.endswith("index.md"):
        page.meta.setdefault("hide", ["toc"])

    def moved(found: re.Match[str]) -> str:
        outside = _outside(page.file.src_uri, found[2])
        copy = f"{TAKEN}/{outside}"
        if outside is None or copy not in files.src_uris:
            return found[0]
        return found[1] + relpath(copy, dirname(page.file.src_uri) or os.curdir)

    return LINK.sub(moved, markdown)


def _outside(page: str, target: str) -> str | None:
    """The path in the repository that a page of docs/ links to, or None where it is inside docs/."""
    path = normpath(join("docs", dirname(page), target))
    return None if path.startswith(("docs/", "..")) else path

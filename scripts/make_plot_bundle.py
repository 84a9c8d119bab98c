"""Makes the vendored bundle of Observable Plot that pages are drawn with, its record and its notices.

    python scripts/make_plot_bundle.py [--check]

Needs node and npm with a package registry. The versions of `scripts/plot_bundle/package-lock.json` are installed into a
temporary folder, no install script runs, and esbuild leaves only what `scripts/plot_bundle/entry.js` names. The bundle begins
with the license of every package that has a part in it, so that each page carries them. Two runs write the same bytes;
`--check` writes nothing and says whether the committed bundle is what this script makes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RECIPE = Path(__file__).resolve().parent / "plot_bundle"
ASSETS = Path(__file__).resolve().parent.parent / "src" / "equisep" / "report" / "page" / "assets"
BUNDLE, RECORD, LICENSES = "plot.min.js", "plot.json", "plot.LICENSE.txt"
# a browser of 2022 or later; nothing newer is asked of the page's own script
OPTIONS = ["--bundle", "--minify", "--format=iife", "--global-name=Plot", "--target=es2022", "--legal-comments=none"]


def package_of(source: str) -> str | None:
    """The package that a file of esbuild's account belongs to; None for our own entry."""
    parts = source.rsplit("node_modules/", maxsplit=1)[-1].split("/")
    if "node_modules/" not in source:
        return None
    return "/".join(parts[:2]) if parts[0].startswith("@") else parts[0]


def packages_inside(account: dict[str, Any]) -> list[str]:
    """Packages with at least one byte in the bundle, by name."""
    (output,) = account["outputs"].values()
    sources = [source for source, share in output["inputs"].items() if share["bytesInOutput"] > 0]
    return sorted({package for source in sources if (package := package_of(source))})


def notices(folder: Path, packages: Iterable[str], versions: dict[str, str]) -> str:
    """The license files of the packages, those of one text together."""
    owners: dict[str, list[str]] = {}
    for package in packages:
        text = (folder / "node_modules" / package / "LICENSE").read_text(encoding="utf-8").strip()
        owners.setdefault(text, []).append(f"{package} {versions[package]}")
    parts = [f"{', '.join(names)}:\n\n{text}" for text, names in owners.items()]
    body = "\n\n----\n\n".join(parts)
    if "*/" in body:
        sys.exit("A license would end the comment it stands in.")
    return f"Observable Plot and the modules it is built on, bundled; their licenses:\n\n{body}\n"


def build(folder: Path) -> dict[str, bytes]:
    """Every file that is committed: the bundle, what is recorded of it, and the licenses."""
    for name in ("package.json", "package-lock.json", "entry.js"):
        shutil.copy(RECIPE / name, folder)
    subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)
    tool = folder / "node_modules" / ".bin" / "esbuild"
    made = [f"--metafile={folder / 'account.json'}", f"--outfile={folder / BUNDLE}", "--log-level=error"]
    subprocess.run([str(tool), str(folder / "entry.js"), *OPTIONS, *made], cwd=folder, check=True)
    packages = packages_inside(json.loads((folder / "account.json").read_text(encoding="utf-8")))
    lock = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    entries = {package: lock[f"node_modules/{package}"] for package in packages}
    versions = {package: str(entry["version"]) for package, entry in entries.items()}
    licenses = notices(folder, packages, versions)
    text = f"/*! {licenses}*/\n" + (folder / BUNDLE).read_text(encoding="utf-8")
    if "</script" in text.lower():
        sys.exit("The bundle would end the script element it stands in.")
    bundle = text.encode()
    record = {
        "file": BUNDLE,
        "name": "@observablehq/plot",
        "version": versions["@observablehq/plot"],
        "license": entries["@observablehq/plot"]["license"],
        "bytes": len(bundle),
        "sha256": hashlib.sha256(bundle).hexdigest(),
        "made_by": "scripts/make_plot_bundle.py",
        "packages": {
            package: {"version": versions[package], "license": entry["license"]} for package, entry in entries.items()
        },
    }
    return {
        BUNDLE: bundle,
        RECORD: (json.dumps(record, indent=2) + "\n").encode(),
        LICENSES: licenses.encode(),
    }


def main() -> None:
    """Build, then write or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--check", action="store_true", help="Write nothing; fail where the committed bundle is another."
    )
    check = parser.parse_args().check
    if shutil.which("npm") is None:
        sys.exit("No `npm` on this machine. Install Node.js 20 or later to make the bundle.")
    with tempfile.TemporaryDirectory() as temporary:
        files = build(Path(temporary))
    if check:
        other = [name for name, content in files.items() if (ASSETS / name).read_bytes() != content]
        sys.exit(
            f"Not what this script makes: {', '.join(other)}. Run it without --check and commit." if other else None
        )
    ASSETS.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (ASSETS / name).write_bytes(content)
    print(files[RECORD].decode())


if __name__ == "__main__":
    main()

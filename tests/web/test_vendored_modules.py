"""Modules of others that the pages load: what is in the repository is what was noted, and it is small."""

from __future__ import annotations

import gzip
import hashlib
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from koi_lang.system.resources import PACKAGE
from tests.wheel import CHECKOUT

STATIC = PACKAGE / "web" / "static"
VENDOR = STATIC / "vendor"
AXE = CHECKOUT / "tests" / "data" / "axe"
# What is loaded when a source is opened, and with the first text that has code or a formula.
ON_DEMAND = {VENDOR / name for name in ("codemirror.js", "highlight.js", "katex.js")}
LARGEST = 200_000


def table_of(folder: Path) -> dict[str, Any]:
    """What was noted about the files of a folder."""
    return tomllib.loads((folder / "VENDOR.toml").read_text("utf-8"))


@pytest.mark.parametrize("folder", [VENDOR, AXE])
def test_files_are_those_that_were_noted(folder: Path) -> None:
    """Nobody changed a file after it was bundled, and none is there that is not noted."""
    noted = {name: about["sha256"] for name, about in table_of(folder).items()}
    files = [path for path in folder.iterdir() if path.suffix in (".js", ".css")]

    assert noted == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_every_package_has_its_licence() -> None:
    """Each package has a version, a licence and its text, and no text is left of one that went."""
    packages = [package for about in table_of(VENDOR).values() for package in about["packages"]]
    texts = {package["text"] for package in packages}

    assert all(re.fullmatch(r"\d+\.\d+\.\d+", package["version"]) for package in packages)
    assert {"MIT", "Apache-2.0", "BSD-3-Clause", "(MPL-2.0 OR Apache-2.0)"} == {
        package["licence"] for package in packages
    }
    assert texts == {path.relative_to(VENDOR).as_posix() for path in (VENDOR / "licences").iterdir()}


def test_the_pages_are_small() -> None:
    """Everything that both pages load at the start is at most 200 kB, compressed."""
    loaded = [path for path in STATIC.rglob("*") if path.suffix in (".html", ".css", ".js", ".svg")]
    sizes = {path: len(gzip.compress(path.read_bytes())) for path in loaded if path not in ON_DEMAND}

    assert len(sizes) >= 6
    assert sum(sizes.values()) <= LARGEST, sizes

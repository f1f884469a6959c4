"""The changelog: releases in order, of which the newest is this version, and fragments from which the next is made."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

from koi_lang.version import __version__
from tests.wheel import CHECKOUT

FOLDER = CHECKOUT / "changes"
FRAGMENTS = sorted(path for path in FOLDER.glob("*") if path.name not in ("README.md", "template.md"))
TYPES = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["tool"]["towncrier"]["type"]
KINDS = {kind["directory"]: kind["name"] for kind in TYPES}


def releases() -> list[tuple[tuple[int, ...], str]]:
    """The version and the date of each release, in the order of the page."""
    page = (CHECKOUT / "CHANGELOG.md").read_text("utf-8")
    found = re.findall(r"^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)$", page, re.MULTILINE)
    assert page.count("\n## ") == len(found), "a release has a version and a date"
    return [(tuple(map(int, version.split("."))), date) for version, date in found]


def test_the_newest_release_is_this_version() -> None:
    """Releases stand from the newest, which the package says it is, to the oldest."""
    assert releases() == sorted(set(releases()), reverse=True)
    assert __version__ == ".".join(map(str, releases()[0][0]))


def test_fragments_have_a_kind() -> None:
    """A file among the fragments is called by one of the kinds that the page beside them lists."""
    listed = dict(re.findall(r"\| `(\w+)` \| (.+) \|", (FOLDER / "README.md").read_text("utf-8")))

    assert listed == KINDS
    assert [] == [path.name for path in FRAGMENTS if not re.fullmatch(rf"[\w-]+\.({'|'.join(KINDS)})\.md", path.name)]


def test_fragments_make_a_release() -> None:
    """A draft of the next release has every fragment as an entry below its kind."""
    command = (sys.executable, "-m", "towncrier", "build", "--draft", "--version", "99.0.0")
    draft = subprocess.run(command, cwd=CHECKOUT, capture_output=True, encoding="utf-8", check=True).stdout

    assert sorted(path.read_text("utf-8").strip() for path in FRAGMENTS) == sorted(entries(draft))


def entries(section: str) -> list[str]:
    """The texts of the entries of a release, without their marks."""
    return [
        entry.partition("\n\n")[0].strip() for entry in re.split(r"^\* ", section.replace("\n  ", "\n"), flags=re.M)[1:]
    ]

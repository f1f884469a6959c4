"""The changelog: releases in order, of which the newest is this version."""

from __future__ import annotations

import re

from koi_lang.version import __version__
from tests.wheel import CHECKOUT


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

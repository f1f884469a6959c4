"""The PATH of the suite: the one that it was started with, without bubblewrap."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, MutableMapping
from pathlib import Path

# Where it is found, every command of every test runs confined, which other tests than its own do not expect.
HIDDEN = "bwrap"
# The variable that holds the PATH that the suite was started with.
ORIGINAL = "KOI_TESTS_ORIGINAL_PATH"


def hide_bubblewrap(environment: MutableMapping[str, str]) -> tempfile.TemporaryDirectory[str] | None:
    """Replace each folder of PATH that holds bubblewrap by a folder of links to everything else in it.

    Returns:
        The folder that holds the links, for as long as processes use them; None where nothing had to be replaced.
    """
    path = environment.get("PATH", "").split(os.pathsep)
    folders = {each: Path(each).resolve() for each in path if os.path.lexists(os.path.join(each, HIDDEN))}
    if not folders:
        return None
    temporary = tempfile.TemporaryDirectory(prefix="koi-tests-path-")
    links = {folder: Path(temporary.name) / str(number) for number, folder in enumerate(set(folders.values()))}
    for folder, place in links.items():
        _link_others(folder, place)
    environment[ORIGINAL] = environment["PATH"]
    environment["PATH"] = os.pathsep.join(str(links[folders[each]]) if each in folders else each for each in path)
    return temporary


def original_path(environment: Mapping[str, str]) -> str:
    """The PATH that the suite was started with."""
    return environment.get(ORIGINAL) or environment.get("PATH", os.defpath)


def _link_others(folder: Path, place: Path) -> None:
    place.mkdir()
    for each in os.scandir(folder):
        if each.name != HIDDEN:
            (place / each.name).symlink_to(each.path)

"""Files of a project that are code: they run without an approval, in this run or after it.

Code is what Python, Koi, a shell or git loads by itself. What a tool runs when somebody calls it, such as a Makefile,
is none.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from importlib.machinery import all_suffixes
from pathlib import Path

# Endings of names, with who runs such a file.
ENDINGS = {
    **dict.fromkeys((*all_suffixes(), ".pyw", ".pyo", ".pyz", ".so", ".pyd", ".dylib", ".dll"), "Python imports"),
    **dict.fromkeys((".pth", "._pth", ".egg-link"), "Python reads when it starts"),
    ".koi": "Koi runs",
    **dict.fromkeys((".bat", ".cmd", ".ps1"), "Windows runs"),
}
# Whole names.
NAMES = {
    "pyvenv.cfg": "says which Python runs",
    "head": "makes a folder a repository, from whose settings git runs commands",
}
# Endings of folders: what packages of Python bring is loaded as their descriptions say.
FOLDERS = {
    **dict.fromkeys((".dist-info", ".egg-info", ".egg"), "tells Python and Koi what to load"),
    "__pycache__": "Python imports",
}


def runner_of(parts: Sequence[str], file: Path) -> str | None:
    """The program that runs a file without asking, as a clause; None for a file that is no code.

    Args:
        parts: of its path below the project, as it was given or with links resolved.
        file: the file, which need not exist.
    """
    reasons = (why for *folders, name in readings_of(parts) for why in _reasons(folders, name))
    return next(reasons, "a shell runs" if _is_script(file) else None)


def _reasons(folders: Sequence[str], name: str) -> Iterator[str]:
    yield from (why for ending, why in ENDINGS.items() if name.endswith(ending))
    yield from (why for whole, why in NAMES.items() if name == whole)
    yield from (why for folder in folders for ending, why in FOLDERS.items() if folder.endswith(ending))


def as_systems_see(name: str) -> str:
    """A name without the differences that some systems ignore: letter case, Unicode forms, streams, final dots."""
    return fold_name(name).partition(":")[0].rstrip(". ")


def fold_name(name: str) -> str:
    """The same, where a colon is a sign as others are."""
    folded = unicodedata.normalize("NFKC", name).casefold().rstrip(". ")
    return name.casefold() if "/" in folded else folded  # some signs are forms of several with a slash


def readings_of(parts: Sequence[str]) -> list[list[str]]:
    """The parts of a path as systems with streams see them, and as the others do where that is something else."""
    whole = [fold_name(part) for part in parts]
    if not any(":" in part for part in whole):
        return [whole]
    return [[part.partition(":")[0].rstrip(". ") for part in whole], whole]


def _is_script(file: Path) -> bool:
    """Whether a file is executable and has an interpreter line."""
    try:
        if not os.access(file, os.X_OK) or not stat.S_ISREG(file.stat().st_mode):
            return False
        with open(file, "rb") as opened:
            return opened.read(2) == b"#!"
    except OSError:
        return False

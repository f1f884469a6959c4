"""A path as programs and models write it to a file inside of a folder, or to a refusal."""

from __future__ import annotations

import sys
from pathlib import Path, PurePosixPath, PureWindowsPath

from koi_lang.errors import AgentError, PermissionDenied

# Whoever could change these could allow themselves anything else.
SETTINGS = frozenset({"koi.toml"})


def place(root: Path, path: str, *, changing: bool = False) -> Path:
    """The file that a path stands for, with all links resolved; it need not exist.

    Args:
        root: the folder that is not left.
        path: relative, with `/` between its parts.
        changing: whether the file is to be written, moved or removed.

    Raises:
        AgentError: the text is no path.
        PermissionDenied: it leads out of the folder, or to something hidden.
    """
    if not isinstance(path, str) or not path.strip() or not path.isprintable():
        raise AgentError(f"{path!r} is no path", help="Write one such as `notes/today.md`.")
    parts = PurePosixPath(path.replace("\\", "/")).parts
    if PurePosixPath(path).is_absolute() or PureWindowsPath(path).anchor or ".." in parts or parts[:1] == ("~",):
        raise _outside(path)
    base = root.resolve()
    try:
        found = base.joinpath(*parts).resolve()
    except (OSError, RuntimeError) as error:  # links in a circle
        raise _outside(path) from error
    if not found.is_relative_to(base):
        raise _outside(path)
    for each in (parts, found.relative_to(base).parts):
        _require_ordinary(path, each, changing=changing)
    if changing and str(found).casefold() in _running():
        help = "It says what its agents may do, which counts from the next run on."
        raise PermissionDenied(f"`{path}` is part of the running program, which only the person can change", help=help)
    return found


def _running() -> set[str]:
    """The files of everything that is loaded: programs, and the Python modules that they import."""
    return {str(getattr(module, "__file__", None)).casefold() for module in list(sys.modules.values())}


def _outside(path: str) -> PermissionDenied:
    help = "Name a file below the folder in which the program is run, without `..`."
    return PermissionDenied(f"`{path}` lies outside of the project", help=help)


def _require_ordinary(path: str, parts: tuple[str, ...], *, changing: bool) -> None:
    if any(part.startswith(".") for part in parts):
        help = "Names that begin with a dot hold settings, keys and journals."
        raise PermissionDenied(f"`{path}` is hidden from programs", help=help)
    if changing and parts and parts[-1].casefold() in SETTINGS:
        raise PermissionDenied(f"`{path}` can only be changed by the person", help="It says what programs may do.")

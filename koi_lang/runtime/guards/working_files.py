"""Files that agents work on: below the project, closed where they hold secrets, and opened without following links."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath, PureWindowsPath

from koi_lang.errors import AgentError, PermissionDeniedError
from koi_lang.runtime.guards.file_names import as_systems_see, is_closed
from koi_lang.runtime.guards.paths import SETTINGS, outside_error, resolved_inside, running_files, running_programs

# What systems take, in bytes and in characters.
MAX_NAME_CHARS, MAX_PATH_CHARS = 255, 1000


def working_path(root: Path, path: str, *, changing: bool = False) -> Path:
    """The file that a path stands for, with all links resolved; it need not exist.

    Args:
        root: the folder of the project, which is not left.
        path: relative to it, or absolute and in it.
        changing: whether the file is to be written or removed.

    Raises:
        AgentError: the text is no path.
        PermissionDeniedError: it leads out of the project, or to something closed.
    """
    base = root.resolve()
    parts = _parts(path, base)
    found = resolved_inside(path, parts, base)
    for each in (parts, found.relative_to(base).parts):
        if why := is_closed(each):
            raise PermissionDeniedError(f"`{path}` is closed to agents: {why}", help="Leave it to the person.")
    if changing and found == base:
        raise AgentError(f"`{path}` is the folder of the project", help="Name a file in it.")
    _require_foreign(path, found, changing=changing)
    return found


def _parts(path: str, base: Path) -> tuple[str, ...]:
    if not isinstance(path, str) or not path.strip() or not path.isprintable():
        raise AgentError(f"{path!r} is no path", help="Write one such as `src/main.py`.")
    given = PurePosixPath(path.replace("\\", "/"))
    if given.is_absolute() and given.is_relative_to(base):
        given = given.relative_to(base)
    if given.is_absolute() or PureWindowsPath(path).drive or ".." in given.parts or given.parts[:1] == ("~",):
        raise outside_error(path, base)
    if any(len(os.fsencode(part)) > MAX_NAME_CHARS for part in given.parts) or len(path) > MAX_PATH_CHARS:
        message = f"`{path[:40]}…` is no path: a name has at most {MAX_NAME_CHARS} bytes, a path {MAX_PATH_CHARS:,}"
        raise AgentError(message, help="Write one such as `src/main.py`.")
    return given.parts


def _require_foreign(path: str, file: Path, *, changing: bool) -> None:
    """Raise PermissionDeniedError where a file is part of the running program, or of its permissions."""
    name = str(file).casefold()
    if name in (running_files() if changing else running_programs()):
        help = "It says what its agents may do, so only the person changes it."
        raise PermissionDeniedError(f"`{path}` is part of the running program, which is closed to agents", help=help)
    if changing and as_systems_see(file.name) in SETTINGS:
        raise PermissionDeniedError(f"`{path}` can only be changed by the person", help="It says what programs may do.")

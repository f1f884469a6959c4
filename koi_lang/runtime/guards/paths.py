"""Paths of a project in programs and answers: refused where they lead out of it, are hidden, or run as code."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import repeat
from pathlib import Path, PurePosixPath, PureWindowsPath

from koi_lang.errors import AgentError, PermissionDeniedError
from koi_lang.runtime.agents.declarations import Role
from koi_lang.runtime.guards.file_names import as_systems_see, runner_of
from koi_lang.runtime.modules.koi_module import KoiModule
from koi_lang.settings import cache_folder, config_folder
from koi_lang.system.globs import path_inside
from koi_lang.system.open_folders import resolve_links

# The permission of a role whose agents may change files that are run.
WRITE_CODE = "write_code"
# Whoever could change these could allow themselves anything else: they say which servers programs start, and what
# these reach.
BELOW = "Name a file below the folder of the project, without `..`."
SETTINGS = frozenset({"koi.toml", ".mcp.json", ".koi-config.json"})


def project_path(root: Path, path: str, *, changing: bool = False, role: Role | None = None) -> Path:
    """The file that a path stands for, with all links resolved; it need not exist.

    Args:
        root: the folder that is not left.
        path: relative, with `/` between its parts.
        changing: whether the file is to be written, moved or removed.
        role: of whoever changes it; without one, no code is changed.

    Raises:
        AgentError: the text is no path, or not the one to write for a file of the project.
        PermissionDeniedError: it leads out of the folder, or to something hidden, or is not to be changed.
    """
    if not isinstance(path, str) or not path.strip() or not path.isprintable():
        raise AgentError(f"{path!r} is no path", help="Write one such as `notes/today.md`.")
    base, parts = root.resolve(), PurePosixPath(path.replace("\\", "/")).parts
    if PurePosixPath(path).is_absolute() or PureWindowsPath(path).anchor or ".." in parts or parts[:1] == ("~",):
        raise outside_error(path, base)
    found = resolved_inside(path, parts, base)
    for each in (parts, found.relative_to(base).parts):
        _require_ordinary(path, each, changing=changing)
    if changing:
        _require_no_code(path, found, (parts, found.relative_to(base).parts), role)
    return found


def _require_no_code(path: str, file: Path, names: Iterable[Sequence[str]], role: Role | None) -> None:
    if str(file).casefold() in running_files():
        help = "It says what its agents may do, which counts from the next run on."
        raise PermissionDeniedError(
            f"`{path}` is part of the running program, which only the person can change", help=help
        )
    require_no_code(path, next(filter(None, (runner_of(parts, file) for parts in names if parts)), None), role)


def require_no_code(path: str, why: str | None, role: Role | None) -> None:
    """Raise PermissionDeniedError where a file is code that a role may not change.

    Args:
        why: it is code, as a clause; None where it is not.
    """
    if why is not None and not (role and role.allows(WRITE_CODE)):
        named = f"`{role.name}`" if role else "the agent's role"
        help = f"Choose another name, or give {named} the permission: `can {WRITE_CODE}`."
        raise PermissionDeniedError(
            f"`{path}` is code ({why}), and only an agent with `{WRITE_CODE}` may change it", help=help
        )


def running_files() -> set[str]:
    """The files of all that is loaded, in small letters: programs with their texts, and Python modules."""
    files = map(getattr, list(sys.modules.values()), repeat("__file__"), repeat(""))
    return running_programs() | {*map(_in_small_letters, map(str, files))}


@cache
def _in_small_letters(path: str) -> str:
    """A path as it is compared: with each file that is written, those of thousands of modules are."""
    return path.casefold()


def running_programs() -> set[str]:
    """The `.koi` files of all programs that are loaded, and texts that are part of them, in small letters."""
    modules = [module for module in list(sys.modules.values()) if isinstance(module, KoiModule)]
    return {str(file).casefold() for module in modules for file in module.files}


def own_folders() -> list[Path]:
    """The folders for caches and for keys, with all links resolved: their content is run, or says what may be done."""
    return [cache_folder().resolve(), config_folder().resolve()]


def resolved_inside(path: str, parts: Sequence[str], base: Path) -> Path:
    """The target of a path with links resolved. Raises PermissionDeniedError outside of a folder, AgentError."""
    try:
        found = resolve_links(base.joinpath(*parts))
    except (OSError, RuntimeError) as error:  # links in a circle
        raise AgentError(f"the links on the way to `{path}` cannot be followed", help="Name another file.") from error
    if not found.is_relative_to(base):
        raise PermissionDeniedError(f"`{path}` lies outside of the project", help=BELOW)
    if any(base in each.parents and found.is_relative_to(each) for each in own_folders()):
        raise PermissionDeniedError(f"`{path}` is closed to agents: Koi keeps its own files there", help=BELOW)
    return found


def outside_error(path: str, base: Path) -> AgentError:
    """That a path is not one from the folder of the project, with the path to write where it leads into the project."""
    inside = path_inside(path)
    if PurePosixPath(path).is_relative_to(base):
        inside = path_inside(PurePosixPath(path).relative_to(base).as_posix())
    if not inside or PureWindowsPath(path).drive:
        return PermissionDeniedError(f"`{path}` lies outside of the project", help=BELOW)
    why = "has `..` in it" if ".." in path else "is not a path from the folder of the project"
    return AgentError(f"`{path}` {why}", help=f"Write `{inside}`.")


def _require_ordinary(path: str, parts: tuple[str, ...], *, changing: bool) -> None:
    if any(part.startswith(".") for part in parts):
        help = "Names that begin with a dot hold settings, keys and journals."
        raise PermissionDeniedError(f"`{path}` is hidden from programs", help=help)
    if changing and parts and as_systems_see(parts[-1]) in SETTINGS:
        raise PermissionDeniedError(f"`{path}` can only be changed by the person", help="It says what programs may do.")

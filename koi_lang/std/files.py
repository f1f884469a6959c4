"""Files of the project for `std/files`: paths to texts and back, never outside of the folder of the program."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from koi_lang.errors import AgentError, KoiError, UnreadableFileError, reason
from koi_lang.runtime.context import current
from koi_lang.runtime.guards.paths import project_path
from koi_lang.runtime.guards.write_quota import count_written
from koi_lang.runtime.replay.calls import Effect
from koi_lang.std.code.opened_files import OpenedFile
from koi_lang.std.code.text_files import MARK, text_in
from koi_lang.std.effects import agent, folder, may_read, perform_effect, require_file
from koi_lang.system.globs import glob_matcher
from koi_lang.system.open_folders import folder_of, open_inside, replace_inside

MAX_READ = 1_000_000
MAX_WRITTEN = 1_000_000
MAX_LISTED = 1000
# The fields of a change that are paths.
PATHS = ("path", "to")


async def read(path: str) -> str:
    """The text of a file. Raises KoiError where it is missing, too large, or no text."""
    return str(await _seen("files.read", path, lambda file: _text(file, path)))


async def exists(path: str) -> bool:
    """Whether there is such a file or folder."""
    return bool(await _seen("files.exists", path, Path.exists))


async def about(path: str) -> dict[str, Any]:
    """`path`, `bytes`, `changed` (milliseconds since 1970) and `isFolder`. Raises KoiError."""
    return dict(await _seen("files.about", path, lambda file: _about(file, path)))


async def list_files(pattern: str) -> list[str]:
    """The files that a pattern fits, sorted; hidden ones are left out. Raises AgentError for a pattern that is none."""
    fits = glob_matcher(pattern)

    async def look() -> list[str]:
        return list(_run_guarded(pattern, lambda: _fitting(folder(), fits, pattern)))

    return list(await perform_effect(Effect("files.list", {"pattern": pattern}, safe=True), look))


async def write(path: str, text: str, before: str | None = None) -> dict[str, Any]:
    """Replace or make a file as a whole, with the folders on its way. Raises KoiError; then nothing has changed.

    Args:
        before: the text that it must still have; None where that does not matter.
    """
    _require_text(text)
    return dict(await _change_file("files.write", {"path": path, "text": text}, lambda: _replace(path, text, before)))


async def append(path: str, text: str) -> dict[str, Any]:
    """Add a text to the end of a file; readers see all of it or nothing. Raises KoiError."""
    _require_text(text)
    return dict(await _change_file("files.append", {"path": path, "text": text}, lambda: _add(path, text)))


async def remove(path: str) -> bool:
    """Remove a file; says whether it was there. Raises KoiError for a folder."""
    return bool(await _change_file("files.remove", {"path": path}, lambda: _remove(path)))


async def move(path: str, target: str) -> None:
    """Move a file; an existing target is not replaced. Raises KoiError."""
    await _change_file("files.move", {"path": path, "to": target}, lambda: _move(path, target))


# ---------------------------------------------------------------- by way of the run


async def _seen(name: str, path: str, look: Callable[[Path], Any]) -> Any:
    async def work() -> Any:
        file = project_path(folder(), path)
        await require_file("read", file)
        return _run_guarded(path, lambda: look(file))

    return await perform_effect(Effect(name, {"path": path}, safe=True), work)


def _change_file(name: str, given: dict[str, Any], change: Callable[[], Any]) -> Awaitable[Any]:
    async def work() -> Any:
        for name in PATHS:
            if name in given:
                await require_file("write", _run_guarded(given[name], partial(_changed_file, given[name])))
        async with _recording(given):
            return _run_guarded(given["path"], change)

    count_written(given.get("text", ""))  # a second time: what the call is given is told, too
    return perform_effect(Effect(name, given), work)


@asynccontextmanager
async def _recording(given: Mapping[str, Any]) -> AsyncIterator[None]:
    """A context in which the paths of a call may be changed, so that it can be undone where the run is recorded."""
    run, asking = current.get(), agent()
    if run is None:
        yield
        return
    paths = [given[name] for name in PATHS if name in given]
    files = _run_guarded(given["path"], lambda: [*map(_changed_file, paths)])
    async with run.changes.record(files, "" if asking is None else asking.name):
        yield


def _run_guarded(path: str, work: Callable[[], Any]) -> Any:
    """The result of work on a file; an error of the system becomes a KoiError."""
    try:
        return work()
    except FileNotFoundError as error:
        raise UnreadableFileError(f"there is no file `{path}`", help="`listFiles` tells which there are.") from error
    except OSError as error:
        raise UnreadableFileError(f"`{path}` cannot be used: {reason(error)}") from error


# ---------------------------------------------------------------- reading


def _text(file: Path, path: str) -> str:
    held = open_inside(folder(), file)
    try:
        return text_in(OpenedFile(path, path, held).content(MAX_READ), path)
    finally:
        os.close(held)


def _about(file: Path, path: str) -> dict[str, Any]:
    found = file.stat()
    is_folder = stat.S_ISDIR(found.st_mode)
    changed = found.st_mtime_ns // 1_000_000
    return {"path": path, "bytes": 0 if is_folder else found.st_size, "changed": changed, "isFolder": is_folder}


def _fitting(root: Path, fits: Callable[[str], bool], pattern: str) -> list[str]:
    found: list[str] = []
    for path in _files(root.resolve()):
        found += [path] if fits(path) else []
        if len(found) > MAX_LISTED:
            help = "Give a narrower pattern."
            raise AgentError(f"more than {MAX_LISTED:,} files fit `{pattern}`", help=help)
    return sorted(found)


def _files(root: Path) -> Iterator[str]:
    """The paths of all files below a folder that are not hidden and do not lead out of it."""
    for here, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            path = (Path(here) / name).relative_to(root).as_posix()
            if not name.startswith(".") and _is_inside(root, path):
                yield path


def _is_inside(root: Path, path: str) -> bool:
    try:
        return may_read(path) and project_path(root, path).is_file()
    except KoiError:
        return False


# ---------------------------------------------------------------- changing


def _changed_file(path: str) -> Path:
    """A file that is about to be changed. Raises KoiError where that is not allowed."""
    asking = agent()
    return project_path(folder(), path, changing=True, role=None if asking is None else asking.role)


def _require_text(text: str) -> None:
    if not isinstance(text, str):
        raise AgentError("only a text can be written", help="Turn it into one: `JSON.stringify(value)`.")


def _replace(path: str, text: str, before: str | None = None) -> dict[str, Any]:
    """Write a file as a whole; a byte order mark stays."""
    file, data = _changed_file(path), text.encode("utf-8", "replace")
    if file.is_dir():
        raise AgentError(f"`{path}` is a folder", help="Name a file in it.")
    if before is not None and _text(file, path) != before:
        help = "Read it again, and make the change to what stands there now."
        raise AgentError(f"`{path}` has been changed by somebody else meanwhile", help=help)
    if file.is_file() and not data.startswith(MARK):
        with open(open_inside(folder(), file), "rb") as opened:
            data = MARK + data if opened.read(len(MARK)) == MARK else data
    if len(data) > MAX_WRITTEN:
        raise AgentError(f"`{path}` would have {len(data):,} bytes; at most {MAX_WRITTEN:,} are written")
    replace_inside(folder(), file, data)
    return {"path": path, "bytes": len(data)}


def _add(path: str, text: str) -> dict[str, Any]:
    file = _changed_file(path)
    before = _text(file, path) if file.exists() else ""
    return _replace(path, before + text)


def _remove(path: str) -> bool:
    file = _changed_file(path)
    if file.is_dir():
        raise AgentError(f"`{path}` is a folder", help="Only files are removed.")
    with suppress(FileNotFoundError), folder_of(folder(), file) as (held, name):
        os.unlink(name, dir_fd=held)
        return True
    return False


def _move(path: str, target: str) -> None:
    here, there = map(_changed_file, (path, target))
    if not here.is_file():
        raise FileNotFoundError(path)
    if there.exists():
        raise AgentError(f"there is a `{target}` already", help="Remove it first, or choose another path.")
    with folder_of(folder(), here) as (held, name), folder_of(folder(), there, make=True) as (target_held, target_name):
        os.rename(name, target_name, src_dir_fd=held, dst_dir_fd=target_held)

"""A file or folder of the project, opened by its path; failures are one error with advice."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from koi_lang.diagnostics import nearest
from koi_lang.errors import UnreadableFileError, reason
from koi_lang.runtime.guards.working_files import working_path
from koi_lang.std.code.project_files import View
from koi_lang.std.code.text_files import MAX_BYTES
from koi_lang.system.open_folders import open_folder, open_inside

WHICH_THERE_ARE = "`list_files` tells which files there are."


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file or folder of a project.

    Attributes:
        path: as it was given.
        name: from the folder of the project, with links resolved; `.` for that folder.
        held: its descriptor.
    """

    path: str
    name: str
    held: int

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder. Raises OSError."""
        return stat.S_ISDIR(os.fstat(self.held).st_mode)

    def content(self, most: int = MAX_BYTES) -> bytes:
        """The bytes of a file, at most so many. Raises UnreadableFileError for another entry or more, and OSError."""
        about = os.fstat(self.held)
        if stat.S_ISDIR(about.st_mode):
            raise UnreadableFileError(f"`{self.path}` is a folder", help="Name a file in it.")
        if not stat.S_ISREG(about.st_mode):
            raise UnreadableFileError(f"`{self.path}` is a pipe or a device, which has no content to read")
        with open(self.held, "rb", closefd=False) as file:
            data = file.read(most + 1) if about.st_size <= most else b""
        size = max(about.st_size, len(data))
        if size > most:
            message = f"`{self.path}` has {size:,} bytes, and at most {most:,} are read"
            raise UnreadableFileError(message, help="Have a command cut a piece out of it.")
        return data


@contextmanager
def open_named(view: View, path: str) -> Iterator[OpenedFile]:
    """A context with the entry of a path open.

    Raises:
        UnreadableFileError: it is not there, or the system does not let it be read.
        AgentError: the text is no path.
        PermissionDeniedError: it leads out of the project, or to something closed, also by rules.
    """
    file = working_path(view.root, path)
    name = file.relative_to(view.root).as_posix()
    view.require_reading(name, path)
    try:
        held = open_folder(view.root, file) if file == view.root else open_inside(view.root, file)
        try:
            yield OpenedFile(path, name, held)
        finally:
            os.close(held)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UnreadableFileError(f"there is no file `{path}`", help=_suggestion(view, file, name)) from error
    except OSError as error:
        raise UnreadableFileError(f"`{path}` cannot be read: {reason(error)}") from error


def _suggestion(view: View, file: Path, name: str) -> str:
    """The advice for a missing file: the most similar name, if there is one."""
    try:
        held = open_folder(view.root, file.parent)
    except OSError:
        return WHICH_THERE_ARE
    try:
        before = name[: name.rfind("/") + 1]
        with os.scandir(held) as entries:
            places = [before + entry.name for entry in entries if not entry.is_symlink()]
        near = nearest(name, [place for place in places if view.shows(place, is_folder=False)])
    finally:
        os.close(held)
    return f"Did you mean `{near}`?" if near else WHICH_THERE_ARE

"""The files of a run's long outputs, `.koi/outputs/RUN/N`: for their owner alone, reached without following links."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from koi_lang.runtime.snapshots.store import write_file
from koi_lang.system.open_folders import FILE, STATE_FOLDER, open_folder

RUN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def outputs_folder(project: Path, run: str) -> Path:
    """Where a run keeps its long outputs; removed with its journal."""
    return project / STATE_FOLDER / "outputs" / run


def delete_outputs(project: Path, run: str) -> None:
    """Remove the outputs of a run, if there are any; targets of links stay."""
    folder = outputs_folder(project, run)
    if not RUN.fullmatch(run) or folder.resolve() != outputs_folder(project.resolve(), run):
        return
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # those of other runs are there
        folder.parent.rmdir()


@dataclass(frozen=True, slots=True)
class OutputFiles:
    """The long outputs of one run.

    Attributes:
        project: where its program is run.
    """

    project: Path
    run: str

    def write(self, number: int, data: bytes) -> None:
        """Make a new file. Raises OSError, FileExistsError where there is one of that number."""
        with self._open(make=True) as folder, ExitStack() as undo:
            undo.callback(_remove, str(number), folder)
            try:
                write_file(str(number), data, folder=folder)
            except FileExistsError:
                undo.pop_all()
                raise
            undo.pop_all()

    def read(self, number: int) -> bytes:
        """The content of a file. Raises OSError."""
        with self._open() as folder:
            held = os.open(str(number), os.O_RDONLY | FILE, dir_fd=folder)
            with os.fdopen(held, "rb") as file:
                return file.read()

    def sizes(self) -> dict[int, int]:
        """The size of each file in bytes, by its number; empty where nothing can be read."""
        found: dict[int, int] = {}
        with suppress(OSError), self._open() as folder, os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.isdecimal():
                    found[int(entry.name)] = entry.stat(follow_symlinks=False).st_size
        return found

    def delete(self) -> None:
        """Remove all of them."""
        delete_outputs(self.project, self.run)

    @contextmanager
    def _open(self, *, make: bool = False) -> Iterator[int]:
        if not RUN.fullmatch(self.run):
            raise FileNotFoundError(f"`{self.run}` is the name of no run")
        folder = open_folder(self.project, outputs_folder(self.project.resolve(), self.run), make=make)
        try:
            if make:
                os.fchmod(folder, 0o700)
            yield folder
        finally:
            os.close(folder)


def _remove(name: str, folder: int) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)

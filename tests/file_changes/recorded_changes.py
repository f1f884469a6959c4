"""Runs with a journal that change files by actions, what the tree is before and after, and their undo."""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from koi_lang.runtime.file_changes.run_undo import RunUndo
from koi_lang.runtime.file_changes.undoing import UndoneFile
from koi_lang.runtime.journal.entries import Header
from koi_lang.runtime.journal.reader import read
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.journal.writer import Writer
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from koi_lang.sessions.file_undo import undo_in_journal
from koi_lang.settings import read_settings

# A path to what is there: a mode with a content, what a link leads to, or the mode of a folder.
Files = Mapping[str, tuple[int, Any]]


def tree(folder: Path) -> Files:
    """Everything in a folder but what Koi keeps."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        about = path.lstat()
        if name.split("/")[0] == ".koi":
            continue
        if stat.S_ISLNK(about.st_mode):
            found[name] = (0, os.readlink(path))
        else:
            mode = stat.S_IMODE(about.st_mode)
            found[name] = (mode, None if path.is_dir() else path.read_bytes())
    return found


async def record(folder: Path, work: Callable[[Run], Awaitable[Any]], run: str = "run") -> None:
    """Do some work in a run with a journal."""
    services = Services(lambda llm: None, folder=folder, detailed=True, id=run)  # type: ignore[arg-type, return-value]
    services.settings = read_settings(folder)
    held = Run(services)
    header = Header(run, 0.0, str(folder / "main.koi"), "", "")
    writer = Writer(path_of(folder, run), header, str, held.stop)
    held.events.subscribe(writer)
    try:
        async with held:
            await work(held)
    finally:
        writer.close()


def entries_of(folder: Path, run: str = "run") -> int:
    """How many entries the journal of a run has."""
    return read(path_of(folder, run)).end.count


def undo(folder: Path, entry: int = 0, run: str = "run") -> tuple[list[UndoneFile], list[str]]:
    """Put back what a run has changed behind an entry; gives what came of it, and what was refused beforehand."""
    journal = read(path_of(folder, run))
    undo = RunUndo(folder, run, journal.entries, read_settings(folder))
    plan = undo.plan(entry)
    refused = [f"{each.file}: {each.refusal}" for each in plan.refusals]
    return undo_in_journal(undo, journal, plan, str), refused

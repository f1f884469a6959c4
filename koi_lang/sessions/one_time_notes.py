"""Notes that a person gets once, and not with every run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from koi_lang import settings

FOLDER = "notes"


def note_once(name: str, line: str, note: Callable[[str], None]) -> None:
    """Tell something once; a file in the folder of caches keeps that it has been told.

    Args:
        name: a name for a file.
    """
    folder = settings.cache_folder() / FOLDER
    with suppress(OSError):  # where nothing can be written it is told again
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / name).exists():
            return
        (folder / name).touch()
    note(line)

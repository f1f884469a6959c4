"""A run to its journal: who writes it, what stands in its header, and which secrets stay out of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from koi_lang import __version__, cache, settings
from koi_lang.redaction import redactor
from koi_lang.runtime.engine import Run
from koi_lang.runtime.journal.entries import Header
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.journal.writer import Writer


@contextmanager
def recorded(
    run: Run, program: str, entry: cache.Entry, payload: Mapping[str, Any], *, verbose: bool
) -> Iterator[Path]:
    """Write a journal of a run that has not started yet; gives its path.

    Args:
        payload: of the command line; fields with names such as `password` are secrets.
        verbose: whether to say where the journal is.

    Raises:
        JournalError: it cannot be created.
    """
    folder = Path.cwd()
    texts = {name: value if isinstance(value, str) else str(value) for name, value in payload.items()}
    redact = redactor(settings.environment(), settings.dotenv(folder), texts)
    header = Header(run.id, time.time(), program, hash_of(entry), __version__, tuple(sys.argv[1:]))
    writer = Writer(path_of(folder, run.id), header, redact, run.host.log)
    if verbose:
        run.host.log(f"journal: {writer.path}")
    run.events.subscribe(writer)
    try:
        yield writer.path
    finally:
        writer.close()


def hash_of(entry: cache.Entry) -> str:
    """One hash for the content of all files of a program, wherever they are."""
    return cache.digest("\n".join(sorted(entry.files.values())).encode())

"""The help of errors in the tracebacks of Python programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from koi_lang.diagnostics import CompileError
from koi_lang.errors import KoiError


@contextmanager
def advising() -> Iterator[None]:
    """A context whose uncaught errors show their advice."""
    try:
        yield
    except CompileError:  # its text has the help of each diagnostic
        raise
    except KoiError as error:
        note = f"help: {error.help}"
        if error.help and note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        raise

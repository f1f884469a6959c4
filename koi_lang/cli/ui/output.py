"""Files that the person has named for the output of a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from koi_lang.errors import UsageError, reason


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """A context in which a file that the person has named is written. Raises UsageError where it cannot be."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"`{path}` cannot be written: {reason(error)}", help="Name another file.") from error

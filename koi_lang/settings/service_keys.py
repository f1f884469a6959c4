"""Which keys of services count: those that this person has made, and those of folders that they trust.

A key lies in the folder of its service and goes where that goes, so the configuration knows it by a fingerprint. One
that has come with a folder of others is still in the hands of these: it counts in that folder alone.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from koi_lang.system.open_folders import SERVICE_KEY, read_regular_file

# Of the configuration: a file for each key that counts, with the folder that it was in then.
NOTES = "service-keys"
# More bytes than a key has.
MAX_KEY_BYTES = 128


def fingerprint(text: str, folder: Path | None = None) -> str:
    """The fingerprint of a key, which reveals nothing of it.

    Args:
        text: content of its file.
        folder: the project that it counts in; None for one that this person has made, which counts everywhere.
    """
    place = b"" if folder is None else os.fsencode(folder.resolve())
    return hashlib.sha256(b"\0".join([b"service key", "".join(text.split()).lower().encode(), place])).hexdigest()[:32]


def counts(text: str, folder: Path, config: Path) -> bool:
    """Whether a key counts in a folder."""
    try:
        return any((config / NOTES / fingerprint(text, place)).is_file() for place in (None, folder))
    except OSError:  # the configuration cannot be read
        return False


def find_foreign_key(text: str, folder: Path, config: Path) -> str:
    """The fingerprint of a key that a folder has brought; empty where there is none, or it counts."""
    return fingerprint(text, folder) if text and not counts(text, folder, config) else ""


def note_key(found: str, folder: Path, config: Path) -> None:
    """Have the key of a fingerprint count from now on. Raises OSError."""
    for each in (config, config / NOTES):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(config / NOTES / found, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(os.fsencode(folder.absolute()) + b"\n")


def forget_key(folder: Path, config: Path) -> bool:
    """Have the key in a folder not count any more; returns whether it did."""
    try:
        text = read_regular_file(folder / SERVICE_KEY, MAX_KEY_BYTES).decode("ascii", "replace")
    except OSError:
        return False
    if not counts(text, folder, config):
        return False
    for place in (None, folder):
        (config / NOTES / fingerprint(text, place)).unlink(missing_ok=True)
    return True

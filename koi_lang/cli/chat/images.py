"""A message to the image that was pasted into it, which messages cannot carry."""

from __future__ import annotations

import re
from pathlib import Path
from shlex import split

from koi_lang.errors import UsageError

DATA = re.compile(r"data:image/[\w.+-]+;base64,")
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".avif"})
LONGEST_PATH = 4096


def refuse_images(text: str) -> None:
    """Raise UsageError when a message is, or holds, an image; a file that is only spoken of is none."""
    if DATA.search(text):
        help = "Keep the image in a file, and say what the agent is to do with that file."
        raise UsageError("the message holds an image, and messages carry text only", help=help)
    path = _path(text)
    if path is not None:
        help = f"Say what the agent is to do with the file, such as: How large is {path.name}?"
        raise UsageError(f"`{path.name}` is an image, and messages carry text only", help=help)


def _path(text: str) -> Path | None:
    """The image file that is all there is in a message, as terminals paste what is dropped on them."""
    if len(text) > LONGEST_PATH or "\n" in text.strip():
        return None
    try:
        words = split(text.strip().removeprefix("file://"))
        path = Path(words[0]).expanduser() if len(words) == 1 else None
        return path if path is not None and path.suffix.lower() in SUFFIXES and path.is_file() else None
    except (ValueError, OSError, RuntimeError):  # no path at all
        return None

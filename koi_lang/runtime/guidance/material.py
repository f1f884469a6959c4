"""Texts that others have written, read as material: bounded, plain UTF-8, in the folder that they belong to.

Messages go on behind the name of a file.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from koi_lang.errors import AgentError
from koi_lang.runtime.guards.file_names import is_closed
from koi_lang.runtime.playbook.outside_text import BREAK
from koi_lang.system.open_folders import open_inside, resolve_links

# Between the ends of a text of which the middle is left out.
GAP = "[… {count:,} bytes of this file are left out here …]"
# What says how characters are joined, in scripts that need it.
JOINERS = frozenset("\u200c\u200d")
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


def read_whole(file: Path, root: Path, most: int, advice: str) -> str:
    """The text of a file.

    Args:
        root: the folder that its links do not leave.
        most: bytes that it may have.
        advice: what to do where it has more.

    Raises:
        AgentError: it leads out of the folder, or is no text, or too large.
        OSError: it cannot be read.
    """
    with _open_material(file, root) as opened:
        data = opened.read(most + 1)
    if len(data) > most:
        raise AgentError(f"is larger than {most:,} bytes", help=advice)
    return as_plain_text(data)


def read_ends(file: Path, root: Path, most: int) -> str:
    """The text of a file; of one that is larger, its first and last lines, and between them how much is left out.

    Raises:
        AgentError: it leads out of the folder, or is no text.
        OSError: it cannot be read.
    """
    with _open_material(file, root) as opened:
        size = os.fstat(opened.fileno()).st_size
        if size <= most:
            return as_plain_text(opened.read(most))
        half = most // 2
        head = opened.read(half)
        opened.seek(size - half)
        tail = opened.read(half)
    head = head[: head.rfind(b"\n") + 1] or _whole_characters(head)
    tail = tail[tail.find(b"\n") + 1 :] or _whole_characters(tail)
    gap = GAP.format(count=size - len(head) - len(tail))
    return f"{as_plain_text(head).rstrip()}\n{gap}\n{as_plain_text(tail)}"


@contextmanager
def _open_material(file: Path, root: Path) -> Iterator[BinaryIO]:
    """A file of a folder; one that is a pipe is not waited for. Raises AgentError or OSError."""
    try:
        found, base = resolve_links(file), root.resolve()
    except RuntimeError as error:
        raise AgentError("is a link that leads to itself", help="Write a file in its place.") from error
    if not found.is_relative_to(base):
        raise AgentError("leads out of its folder", help="Put a copy in its place instead of a link.")
    if why := is_closed(found.relative_to(base).parts):
        raise AgentError(f"leads to a file that is closed to agents ({why})", help="Write a file in its place.")
    with open(open_inside(base, found), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise AgentError("is no file with a text", help="Write a file in its place.")
        yield opened


def as_plain_text(data: bytes) -> str:
    """Bytes as a text without hidden characters. Raises AgentError for invalid UTF-8."""
    try:
        return plain_text(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise AgentError("is not UTF-8 text", help="Save it as UTF-8.") from error


def plain_text(text: str) -> str:
    r"""A text without characters that nobody sees, with `\n` for every end of a line."""

    def is_seen(sign: str) -> bool:
        return sign == "\t" or sign in JOINERS or unicodedata.category(sign) not in UNSEEN

    lines = (line if line.isascii() and line.isprintable() else filter(is_seen, line) for line in BREAK.split(text))
    return "\n".join("".join(line) for line in lines)


def _whole_characters(data: bytes) -> bytes:
    """A piece of UTF-8 without the parts of characters at its ends."""
    return data.decode("utf-8", "ignore").encode()

"""A file as numbered lines, an image as an image, a folder as a list: `read_file` of `std/code`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from koi_lang.errors import KoiError, UnreadableFileError
from koi_lang.llm.images import BadImageError, Image, media_type_of
from koi_lang.runtime.concurrency.stoppable_threads import run_in_thread
from koi_lang.runtime.guards.working_files import working_path
from koi_lang.runtime.model_calls.images import value_of
from koi_lang.std.code.access import failure, whole_number
from koi_lang.std.code.opened_files import OpenedFile, open_named
from koi_lang.std.code.project_files import MayRead, View, read_all
from koi_lang.std.code.text_files import decode_file

# What is given at most: lines, bytes of them, characters of one line, and names in a folder.
MAX_LINES = 2000
MAX_SHOWN = 48_000
MAX_LINE_CHARS = 2000
MAX_ENTRIES = 1000
WIDTH = 5


async def read_file(
    root: Path, path: str, offset: Any = 1, limit: Any = MAX_LINES, *, may_read: MayRead = read_all
) -> dict[str, Any]:
    """Some lines of a file, with their numbers; a PNG, JPEG, GIF or WebP as an image; a folder as its entries.

    Args:
        root: the folder of the project.
        path: relative to it, or absolute and in it.
        offset: the first line, from 1.
        limit: how many lines; 2,000 and some 48 KB are the most, and a line is cut after 2,000 characters.
        may_read: says what rules leave of the project: of this file, and of those that are listed of a folder.

    Returns:
        `success`, `path`, and of a file `content`, `totalLines`, `from`, `to`, and `truncated` with a `hint` where more
        follows; of an image `type` and `image`; of a folder `type` and `entries`; or an `error`.

    Raises:
        AgentError: the path is none, or the numbers are.
        PermissionDeniedError: it leads out of the project, or to something closed.
    """
    first, count = whole_number(offset, "offset", least=1), whole_number(limit, "limit")
    return await run_in_thread(lambda stop: _read(View(root.resolve(), may_read, stop), path, first, count))


def _read(view: View, path: str, first: int, count: int) -> dict[str, Any]:
    try:
        with open_named(view, path) as file:
            reader = _FileReader(view, file)
            return reader.entries() if file.is_folder else reader.lines(first, count)
    except (UnreadableFileError, BadImageError) as error:
        return failure(error.message, error.help)


class _FileReader:
    def __init__(self, view: View, file: OpenedFile) -> None:
        self._view, self._file = view, file

    def lines(self, first: int, count: int) -> dict[str, Any]:
        """The result for a file. Raises UnreadableFileError and BadImageError."""
        data, path = self._file.content(), self._file.path
        if media_type_of(data):
            return self._result(type="image", image=value_of(Image.of(data, path)))
        lines = text_lines(decode_file(data, path).text)
        if first > max(len(lines), 1):
            message = f"`{path}` has {len(lines):,} lines, so there is none from line {first:,} on"
            return failure(message, totalLines=len(lines))
        return self._piece(lines, first, min(count, MAX_LINES))

    def _piece(self, lines: list[str], first: int, count: int) -> dict[str, Any]:
        shown: list[str] = []
        left = MAX_SHOWN
        for line in _clip(lines[first - 1 : first - 1 + count]):
            left -= len(line.encode()) + WIDTH + 2
            if left < 0:
                break
            shown.append(f"{first + len(shown):>{WIDTH}}\t{line}")
        last = first + len(shown) - 1
        result = self._result(content="\n".join(shown), totalLines=len(lines))
        result |= {"from": first, "to": last}
        if last < len(lines):
            result |= {"truncated": True, "hint": f"go on with `offset` {last + 1}"}
        return result

    def _result(self, **more: Any) -> dict[str, Any]:
        return {"success": True, "path": self._file.name, **more}

    def entries(self) -> dict[str, Any]:
        """The result for a folder. Raises OSError."""
        entries = sorted(self._entries())
        result = self._result(type="directory", entries=entries[:MAX_ENTRIES])
        if len(entries) > MAX_ENTRIES:
            hint = f"these are {MAX_ENTRIES:,} of {len(entries):,}; `list_files` takes a pattern"
            result |= {"truncated": True, "hint": hint}
        return result

    def _entries(self) -> Iterator[str]:
        """The entries of a folder; the names of folders end with `/`."""
        before = "" if self._file.name == "." else f"{self._file.name}/"
        with os.scandir(self._file.held) as entries:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                if entry.is_symlink():
                    inner = self._follow(before + entry.name)
                    is_folder = inner is not None and inner.is_dir()
                    if inner is None:
                        continue
                if self._view.shows(before + entry.name, is_folder=is_folder):
                    yield entry.name + "/" * is_folder

    def _follow(self, path: str) -> Path | None:
        """The target of a link, if that is in the project and open."""
        try:
            return working_path(self._view.root, path)
        except KoiError:
            return None


def text_lines(text: str) -> list[str]:
    """The lines of a text; an end of line ends one, and begins none."""
    return text.removesuffix("\n").split("\n") if text else []


def _clip(lines: list[str]) -> Iterator[str]:
    for line in lines:
        more = len(line) - MAX_LINE_CHARS
        yield line if more <= 0 else f"{line[:MAX_LINE_CHARS]}… ({more:,} more characters)"

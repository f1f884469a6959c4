"""The tools of `std/code` as functions for code: each effect takes place once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from koi_lang.runtime.replay.calls import Effect
from koi_lang.std.code import changing, outlines, project_files, reading, searching, symbols
from koi_lang.std.code.access import Workplace
from koi_lang.std.code.searching import SearchRequest
from koi_lang.std.effects import perform_effect


async def read_file(path: str, offset: int = 1, limit: int = 2000) -> Any:
    """Some lines of a file. Raises KoiError."""

    async def work(place: Workplace) -> Any:
        may_read = await place.require_reading(path)
        place.note_seen(path)
        return await reading.read_file(place.root, path, offset, limit, may_read=may_read)

    return await _perform("read_file", {"path": path, "offset": offset, "limit": limit}, work, safe=True)


async def list_files(pattern: str = "**") -> Any:
    """The files that a pattern fits. Raises KoiError."""
    return await _perform(
        "list_files",
        {"pattern": pattern},
        lambda place: project_files.list_files(place.root, pattern, may_read=place.may_read),
        safe=True,
    )


async def grep(pattern: str, path: str = ".", options: Mapping[str, Any] | None = None) -> Any:
    """The lines that an expression fits. Raises KoiError."""
    given = dict(options or {})
    request = SearchRequest(
        pattern,
        path,
        given.get("files", ""),
        given.get("context", 0),
        given.get("ignoreCase", True),
        given.get("maxMatches", 50),
    )
    return await _perform(
        "grep",
        {"pattern": pattern, "path": path, **given},
        lambda place: searching.grep(place.root, request, may_read=place.may_read),
        safe=True,
    )


async def outline(path: str) -> Any:
    """The outline of a file. Raises KoiError."""

    async def work(place: Workplace) -> Any:
        may_read = await place.require_reading(path)
        return await outlines.outline(place.root, path, may_read=may_read)

    return await _perform("outline", {"path": path}, work, safe=True)


async def find_symbol(name: str) -> Any:
    """Where something is declared. Raises KoiError."""
    return await _perform(
        "find_symbol",
        {"name": name},
        lambda place: symbols.find_symbol(place.root, name, may_read=place.may_read),
        safe=True,
    )


async def write_file(path: str, content: str) -> Any:
    """Make a file, or replace its text. Raises KoiError."""
    given = {"path": path, "content": content}
    return await _perform("write_file", given, lambda place: changing.write_file(place, path, content))


async def edit_file(path: str, before: str, after: str) -> Any:
    """Replace a piece of a file. Raises KoiError."""
    given = {"path": path, "before": before, "after": after}
    return await _perform("edit_file", given, lambda place: changing.edit_file(place, path, before, after))


async def patch_file(path: str, diff: str) -> Any:
    """Change a file by a unified diff. Raises KoiError."""
    given = {"path": path, "diff": diff}
    return await _perform("patch_file", given, lambda place: changing.edit_file(place, path, diff=diff))


async def _perform(
    name: str, given: Mapping[str, Any], work: Callable[[Workplace], Awaitable[Any]], *, safe: bool = False
) -> Any:
    effect = Effect(f"code.{name}", dict(given), safe=safe)
    return await perform_effect(effect, lambda: work(Workplace.current()))

"""Files that a pattern fits: `list_files` of `std/code`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from koi_lang.runtime.concurrency.stoppable_threads import run_in_thread
from koi_lang.std.code.project_files import MayRead, View, files_below, read_all
from koi_lang.system.globs import glob_matcher, has_wildcards, require_pattern

MAX_LISTED = 1000


async def list_files(root: Path, pattern: str = "**", *, may_read: MayRead = read_all) -> dict[str, Any]:
    """The files of a project that a pattern such as `src/**/*.py` fits, sorted; the name of a folder means all in it.

    Args:
        root: the folder of the project.
        may_read: says what rules leave of it.

    Returns:
        `success`, `count` of all that fit, `truncated`, and the `files`, at most 1,000.

    Raises:
        AgentError: it is no pattern, or there are too many files to look at.
    """
    wanted = require_pattern(pattern)
    return await run_in_thread(lambda stop: _fitting(View(root.resolve(), may_read, stop), wanted))


def _fitting(view: View, pattern: str) -> dict[str, Any]:
    folder = pattern.rstrip("/")
    if folder in (".", ""):
        pattern = "**"
    elif pattern.endswith("/") or (not has_wildcards(folder) and os.path.isdir(view.root / folder)):
        pattern = f"{folder}/**"
    fits = glob_matcher(pattern)
    found = [path for path in files_below(view) if fits(path)]
    result: dict[str, Any] = {"success": True, "count": len(found), "truncated": len(found) > MAX_LISTED}
    result["files"] = found[:MAX_LISTED]
    if not found and "/" not in pattern:
        result["hint"] = f"`{pattern}` is about the uppermost folder; `**/{pattern}` is about all folders"
    elif result["truncated"]:
        result["hint"] = f"these are the first {MAX_LISTED:,}; name a folder to see the others"
    return result

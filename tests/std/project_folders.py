"""Folders of projects for tests of what agents see of them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any


def fill(root: Path, files: dict[str, str | bytes]) -> Path:
    """Write files with the folders on their way; gives the folder."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def give(work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """What a tool gives."""
    return asyncio.run(work)

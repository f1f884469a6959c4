"""Somebody who swaps a folder for a link while tools work below it: nothing outside is read or written."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import KoiError
from koi_lang.std.code import changing, outlines, reading, searching, symbols
from koi_lang.std.code.access import Workplace
from koi_lang.std.code.searching import SearchRequest
from tests.adversary.hostile_project import tree_of

SECONDS = 0.6
OUTSIDE = "def canary(): return 'outside'\n"
TOOLS: dict[str, Callable[[Path], Awaitable[Any]]] = {
    "read_file": lambda root: reading.read_file(root, "src/a.py"),
    "outline": lambda root: outlines.outline(root, "src/a.py"),
    "grep": lambda root: searching.grep(root, SearchRequest("canary")),
    "grep a file": lambda root: searching.grep(root, SearchRequest("canary", "src/a.py")),
    "find_symbol": lambda root: symbols.find_symbol(root, "canary"),
    "write_file": lambda root: changing.write_file(Workplace(root, None), "src/a.py", f"x = {time.monotonic_ns()}\n"),
    "make": lambda root: changing.write_file(Workplace(root, None), f"src/{time.monotonic_ns()}/a.py", "x\n"),
    "edit_file": lambda root: changing.edit_file(Workplace(root, None), "src/a.py", "own", "own own"),
}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A project whose `src` is a folder, and a link to one outside, by turns."""
    root, outside = tmp_path / "project", tmp_path / "outside"
    for folder, text in ((root / "src", "own = 1\n"), (outside, OUTSIDE)):
        folder.mkdir(parents=True)
        (folder / "a.py").write_text(text)
    (root / "link").symlink_to(outside)
    is_over = threading.Event()

    def swap() -> None:
        while not is_over.is_set():
            for old, new in (("src", "kept"), ("link", "src"), ("src", "link"), ("kept", "src")):
                with suppress(OSError):  # the tools make folders, too
                    os.rename(root / old, root / new)

    swapping = threading.Thread(target=swap)
    swapping.start()
    yield root
    is_over.set()
    swapping.join()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("tool", TOOLS)
def test_a_swapped_folder_leads_nowhere(project: Path, tool: str) -> None:
    """Whenever it is swapped: what is outside is neither told nor changed, and errors are sentences."""
    outside = project.parent / "outside"
    before, ends = tree_of(outside), time.monotonic() + SECONDS
    told: list[str] = []

    async def work() -> None:
        while time.monotonic() < ends or len(told) < 6:
            try:
                told.append(str(await TOOLS[tool](project)))
            except KoiError as error:
                told.append(error.message)

    asyncio.run(work())

    assert [] == [text for text in told if "outside'" in text or "def canary" in text]
    assert before == tree_of(outside)

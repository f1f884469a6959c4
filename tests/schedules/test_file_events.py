"""Files that change begin runs: once for each change, over kills, and not for what is the same."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from koi_lang.service.file_events import FileEvents, stamp_files
from tests.schedules.service import Runs, Service, SetClock, job, serving, settle

DOCS = job("file docs/**/*.md")


def write(folder: Path, path: str, text: str) -> None:
    """Write a file of the folder."""
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text, "utf-8")


class Watched:
    """The files of a service."""

    def __init__(self, service: Service, folder: Path) -> None:
        self.service = service
        self.events = FileEvents(service.database, folder, service.scheduler, service.lines.append)

    async def changes(self) -> list[list[tuple[str, str]]]:
        """What has been begun by now for which files: what changed has to stay as it is for two looks."""
        for _ in range(2):
            await self.events.look()
        self.service.scheduler.look()
        await settle()
        begun: list[Any] = [payload for _, payload in self.service.runs.begun.values()]
        return [[(file["change"], file["path"]) for file in payload["files"]] for payload in begun]


def test_changes_of_files_begin_a_run(tmp_path: Path) -> None:
    """What was there before is no change; what changes at one time is told together."""

    async def play() -> None:
        for name in ("a.md", "sub/b.md", "c.txt"):
            write(tmp_path, f"docs/{name}", "1")
        async with serving(tmp_path, SetClock("2026-11-26 09:00"), Runs(), DOCS) as service:
            watched = Watched(service, tmp_path)
            assert [] == await watched.changes()
            write(tmp_path, "docs/a.md", "2")
            write(tmp_path, "docs/deep/er/d.md", "1")
            write(tmp_path, "docs/c.txt", "2")
            (tmp_path / "docs/sub/b.md").unlink()
            told = [("changed", "docs/a.md"), ("added", "docs/deep/er/d.md"), ("removed", "docs/sub/b.md")]
            assert [told] == await watched.changes()

    asyncio.run(play())


def test_a_file_that_is_touched_has_not_changed(tmp_path: Path) -> None:
    """The content counts, not the time."""

    async def play() -> None:
        write(tmp_path, "docs/a.md", "1")
        async with serving(tmp_path, SetClock("2026-11-26 09:00"), Runs(), DOCS) as service:
            watched = Watched(service, tmp_path)
            await watched.changes()
            os.utime(tmp_path / "docs/a.md", (1, 1))
            assert [] == await watched.changes()

    asyncio.run(play())


def test_what_changes_while_a_run_works_begins_one_more(tmp_path: Path) -> None:
    """Everything that changed meanwhile is told at once; a change that was taken back is none."""

    async def play() -> None:
        write(tmp_path, "docs/same.md", "1")
        async with serving(tmp_path, SetClock("2026-11-26 09:00"), Runs(), DOCS) as service:
            watched = Watched(service, tmp_path)
            await watched.changes()
            for name in ("a", "b", "c"):
                write(tmp_path, f"docs/{name}.md", "1")
                write(tmp_path, "docs/same.md", name)
                await watched.changes()
            write(tmp_path, "docs/same.md", "a")
            assert 1 == len(await watched.changes())
            await service.runs.end()
            assert [("added", "docs/b.md"), ("added", "docs/c.md")] == (await watched.changes())[1]

    asyncio.run(play())


def test_changes_during_a_kill_are_found(tmp_path: Path) -> None:
    """What changed while no service ran begins a run afterwards, what had begun one does not."""

    async def play() -> None:
        clock, runs = SetClock("2026-11-26 09:00"), Runs()
        async with serving(tmp_path, clock, runs, DOCS) as service:
            watched = Watched(service, tmp_path)
            await watched.changes()
            write(tmp_path, "docs/a.md", "1")
            assert 1 == len(await watched.changes())
            await runs.end()
        write(tmp_path, "docs/b.md", "1")
        async with serving(tmp_path, clock, runs, DOCS) as service:
            assert [[("added", "docs/a.md")], [("added", "docs/b.md")]] == await Watched(service, tmp_path).changes()

    asyncio.run(play())


def test_a_file_that_comes_and_goes_is_told_each_time(tmp_path: Path) -> None:
    """The same change again is another one."""

    async def play() -> None:
        async with serving(tmp_path, SetClock("2026-11-26 09:00"), Runs(), DOCS) as service:
            watched = Watched(service, tmp_path)
            await watched.changes()
            for _ in range(2):
                write(tmp_path, "docs/a.md", "1")
                await watched.changes()
                await service.runs.end()
                (tmp_path / "docs/a.md").unlink()
                await watched.changes()
                await service.runs.end()
            assert ["added", "removed", "added", "removed"] == [each[0][0] for each in await watched.changes()]

    asyncio.run(play())


def test_many_changes_begin_several_runs(tmp_path: Path) -> None:
    """A run is told of a thousand files, the next one of the rest."""

    async def play() -> None:
        async with serving(tmp_path, SetClock("2026-11-26 09:00"), Runs(), job("file **")) as service:
            watched = Watched(service, tmp_path)
            await watched.changes()
            for number in range(1200):
                write(tmp_path, f"{number}.txt", "1")
            await watched.changes()
            await service.runs.end()
            assert [1000, 200] == [len(each) for each in await watched.changes()]

    asyncio.run(play())


def test_a_pattern_means_files_of_the_folder(tmp_path: Path) -> None:
    """Neither hidden folders, nor those of tools, nor what a link leads to outside."""
    for name in ("a.md", "b/c.md", "b/d/e.md", ".git/f.md", "node_modules/g.md", ".koi/h.md", "b/i.txt"):
        write(tmp_path / "in", name, "1")
    write(tmp_path, "out/j.md", "1")
    (tmp_path / "in/k.md").symlink_to(tmp_path / "out/j.md")
    (tmp_path / "in/l").symlink_to(tmp_path / "out")
    (tmp_path / "in/m.md").symlink_to(tmp_path / "in/a.md")

    found = {
        pattern: list(stamp_files(tmp_path / "in", pattern, {})) for pattern in ("**/*.md", "*.md", "b/*/*", ".git/*")
    }

    assert {
        "**/*.md": ["a.md", "b/c.md", "b/d/e.md", "m.md"],
        "*.md": ["a.md", "m.md"],
        "b/*/*": ["b/d/e.md"],
        ".git/*": [".git/f.md"],
    } == found

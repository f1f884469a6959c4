"""Files that agents may see: what is ignored, closed, a link or no name is left out."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import AgentError
from koi_lang.runtime.concurrency.stoppable_threads import StoppedError
from koi_lang.std.code.project_files import View, files_below, list_files, read_all
from koi_lang.system.globs import file_matcher, glob_matcher
from tests.limits import LIMIT_S
from tests.std import ignored_trees
from tests.std.project_folders import fill, give


def seen(root: Path, start: str = "") -> list[str]:
    """All that is seen below a folder."""
    return files_below(View(root.resolve(), read_all, lambda: None), start)


@pytest.mark.needs("git")
def test_git_agrees(tmp_path: Path) -> None:
    """On random trees with random rules the files are those that git does not ignore, links left out."""
    different, total = [], 0
    for seed in range(40):
        root = tmp_path / str(seed)
        root.mkdir()
        paths = ignored_trees.make(random.Random(seed), root)
        by_git = ignored_trees.ignored_by_git(root, list(paths))
        names = [path for path in paths if (root / path).is_file() and not (root / path).is_symlink()]
        expected = {path for path in names if path not in by_git and path.isprintable() and "\\" not in path}
        different += [(seed, path) for path in sorted(expected ^ {*seen(root)}) if not path.endswith(".gitignore")]
        total += len(expected)

    assert total > 300
    assert len(different) < total / 500, different


def test_closed_files_are_not_there(tmp_path: Path) -> None:
    """Journals, the repository's own files, secrets, links and names that nobody can write are left out."""
    names = (".env", "a/.env.local", ".git/config", ".koi/runs/1", "key.pem", ".ssh/known", "A/.GIT/x", "b\\c", "d\ne")
    fill(tmp_path, dict.fromkeys((*names, ".github/ci.yml", "a/b.py", ".env.example"), "x"))
    fill(tmp_path.parent / "elsewhere", {"x.py": "x"})
    os.symlink(tmp_path.parent / "elsewhere", tmp_path / "out")
    os.symlink("a", tmp_path / "in")
    os.symlink("/etc/passwd", tmp_path / "passwd")
    os.mkfifo(tmp_path / "pipe")
    os.close(os.open(os.fsencode(tmp_path) + b"/\xff.py", os.O_CREAT))

    assert [".env.example", ".github/ci.yml", "a/b.py"] == seen(tmp_path)


def test_rules_of_the_person_count(tmp_path: Path) -> None:
    """What may not be read is not listed."""
    fill(tmp_path, {"a.py": "", "private/b.py": ""})
    given = give(list_files(tmp_path, "**", may_read=lambda path: not path.startswith("private/")))

    assert ["a.py"] == given["files"]


def test_an_ignored_folder_is_seen_when_it_is_named(tmp_path: Path) -> None:
    """Rules of the folders around count for what is in it; they do not close the folder itself."""
    fill(
        tmp_path,
        {".gitignore": "lib/\n*.log\n", "lib/a.js": "", "lib/a.log": "", "lib/.gitignore": "b.js", "lib/b.js": ""},
    )

    assert [".gitignore"] == seen(tmp_path)
    assert ["lib/.gitignore", "lib/a.js"] == seen(tmp_path, "lib")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("**", ["a.py", "src/b.py", "src/deep/c.ts", "src/deep/d.tsx"]),
        ("*.py", ["a.py"]),
        ("**/*.py", ["a.py", "src/b.py"]),
        ("src/**", ["src/b.py", "src/deep/c.ts", "src/deep/d.tsx"]),
        ("src", ["src/b.py", "src/deep/c.ts", "src/deep/d.tsx"]),
        ("./src/", ["src/b.py", "src/deep/c.ts", "src/deep/d.tsx"]),
        (".", ["a.py", "src/b.py", "src/deep/c.ts", "src/deep/d.tsx"]),
        ("src/*", ["src/b.py"]),
        ("**/*.{ts,tsx}", ["src/deep/c.ts", "src/deep/d.tsx"]),
        ("src/{deep/{c,x}.ts,b.py}", ["src/b.py", "src/deep/c.ts"]),
        ("src/[ab].py", ["src/b.py"]),
        ("src/b.py", ["src/b.py"]),
        ("SRC/**", []),
    ],
)
def test_patterns(tmp_path: Path, pattern: str, expected: list[str]) -> None:
    """A pattern fits whole paths; a folder stands for all that is in it."""
    fill(tmp_path, dict.fromkeys(("a.py", "src/b.py", "src/deep/c.ts", "src/deep/d.tsx"), ""))

    assert {"success": True, "count": len(expected), "truncated": False, "files": expected} == {
        name: value for name, value in give(list_files(tmp_path, pattern)).items() if name != "hint"
    }


@pytest.mark.parametrize("pattern", ["", "  ", 3, "../x", "/etc/*", "~/x", "a/../b", "[a", "x" * 501, "{a,b}" * 7])
def test_no_pattern_is_refused(tmp_path: Path, pattern: Any) -> None:
    """What is no pattern, or leads outside, is told in a sentence with advice."""
    with pytest.raises(AgentError) as caught:
        give(list_files(tmp_path, pattern))

    assert caught.value.help


def test_a_pattern_with_dots_names_the_one_to_write(tmp_path: Path) -> None:
    """It leads into the project, so it is not said to lie outside."""
    with pytest.raises(AgentError, match=r"has `\.\.` in it") as caught:
        give(list_files(tmp_path, "src/../*.py"))

    assert caught.value.help == "Write `*.py`."


def test_patterns_take_bounded_time() -> None:
    """Many stars on long names take no more than a square of time."""
    fits = glob_matcher("*a" * 200 + "b")
    start_s = time.process_time()
    for _ in range(20):
        fits("a" * 250)

    assert time.process_time() - start_s < 2


def test_filters_are_about_names() -> None:
    """A filter without a slash fits names in all folders, and one with `!` what others do not."""
    fits, not_tests = file_matcher("*.py"), file_matcher("!**/test_*")

    assert [True, True, False] == [fits(path) for path in ("a.py", "src/a.py", "a.pyc")]
    assert [True, False, False] == [not_tests(path) for path in ("a.py", "test_a.py", "x/test_a.py")]


def test_long_lists_are_cut(tmp_path: Path) -> None:
    """At most 1,000 files are told, with how many there are and what to do."""
    fill(tmp_path, {f"{number:04}": "" for number in range(1001)})
    given = give(list_files(tmp_path, "**"))

    assert (1001, True, 1000, "0999") == (given["count"], given["truncated"], len(given["files"]), given["files"][-1])
    assert "1,000" in given["hint"]


def test_whoever_ends_it_ends_the_walk(tmp_path: Path) -> None:
    """A call that is cancelled ends its thread, at the next folder."""
    fill(tmp_path, {f"{number}/x": "" for number in range(50)})
    asked: list[str] = []
    go_on = threading.Event()

    async def cancel() -> None:
        loop, begun = asyncio.get_running_loop(), asyncio.Event()

        def may_read(path: str) -> bool:
            asked.append(path)
            loop.call_soon_threadsafe(begun.set)
            return go_on.wait(LIMIT_S)

        task = asyncio.create_task(list_files(tmp_path, "**", may_read=may_read))
        await begun.wait()
        task.cancel()
        loop.call_later(0.01, go_on.set)  # when the task has been told
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())

    assert 0 < len(asked) < 50


def test_stopping_is_an_error_of_its_own(tmp_path: Path) -> None:
    """What is raised in the thread is raised by the walk."""

    def stop() -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        files_below(View(tmp_path.resolve(), read_all, stop))


def test_a_pattern_may_be_longer_than_a_name(tmp_path: Path) -> None:
    """It fits nothing, and is no error of the system."""
    assert asyncio.run(list_files(tmp_path, "a" * 300))["files"] == []

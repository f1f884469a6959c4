"""A project of many files to the CPU time of keeping it, keeping it unchanged, and putting some of it back."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measuring import Figure, repeat
from koi_lang.runtime.tree.project import ProjectTree
from koi_lang.settings import read_settings

FILES, BYTES, RESTORED = 10_000, 6_000, 20
RULES = (
    "*.pyc\nnode_modules/\n/build\n*.log\n!keep.log\ndist/\n*.egg-info/\ndocs/_build/\n**/tmp/*.bak\n*~\n[._]*.sw?\n"
)


def figures(folder: Path) -> list[Figure]:
    """Time of a first snapshot, of one of the same tree, and of restoring what has changed."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        project = ProjectTree(Path(name).resolve(), lambda: None, read_settings(Path(name)))
        _write_files(project.folder)
        first = repeat(3, lambda: _first_s(project))
        again = repeat(5, lambda: _cpu_s(lambda: project.snapshot("run")))
        restored = repeat(5, lambda: _restore_s(project))
    return [
        Figure("CPU of a snapshot of 10,000 files, 60 MB", 5, first, "s"),
        Figure("CPU of one where nothing has changed", 0.4, again, "s"),
        Figure("CPU of restoring 20 of these files", 0.1, restored, "s"),
    ]


def _write_files(folder: Path) -> None:
    chance = random.Random(1)
    (folder / ".gitignore").write_text(RULES)
    for number in range(FILES):
        path = _file(folder, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(chance.randbytes(BYTES))
    time.sleep(0.2)  # what was written a moment ago is read again


def _file(folder: Path, number: int) -> Path:
    return folder / f"package{number % 50}" / f"module{number // 50 % 10}" / f"file{number}.txt"


def _first_s(project: ProjectTree) -> float:
    shutil.rmtree(project.folder / ".koi", ignore_errors=True)
    return _cpu_s(lambda: project.snapshot("run"))


def _restore_s(project: ProjectTree) -> float:
    kept = project.snapshot("run")
    for number in range(RESTORED):
        _file(project.folder, number).write_bytes(b"changed")
    taken_s = _cpu_s(lambda: project.restore(kept["id"], None))
    if project.snapshot("run")["id"] != kept["id"]:
        raise AssertionError("the tree is not the same again")
    return taken_s


def _cpu_s(work: Callable[[], object]) -> float:
    start_s = time.process_time()
    work()
    return time.process_time() - start_s

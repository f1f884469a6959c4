"""A program that is killed at every entry of its journal, each time in a process of its own, and resumed.

Run as `python -m tests.journal.killing FIRST STEP [before]` in a folder with `main.koi` and `answers.json`; it writes
what came of each kill, behind an entry or just before it is written, as one JSON object a line.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from koi_lang.cli import main
from koi_lang.runtime.journal.entries import Header, JournalEntry
from koi_lang.runtime.journal.writer import Writer

RUN = ("run", "--quiet", "--allow", "shell", "--answers", "answers.json", "main.koi")
RESUME = ("resume", "last", "--on-doubt", "retry")
LOADED = (
    "koi_lang.cli.run",
    "koi_lang.cli.resume",
    "koi_lang.runtime.playbook.loop",
    "koi_lang.runtime.prelude",
    "koi_lang.runtime.registry.store",
    "koi_lang.runtime.journal.writer",
    "koi_lang.compiler.compile",
    "koi_lang.llm.connect",
    "koi_lang.llm.scripted",
    "koi_lang.program.safe_expressions",
    "koi_lang.program.error_report",
    "sqlite3",
)
FILES = ("main.koi", "effects.py", "answers.json")


def kill_after(lines: int) -> None:
    """Have this process killed once it has written so many lines of a journal."""
    written, write = 0, Writer._add

    def counted(self: Writer, content: Header | JournalEntry) -> None:
        nonlocal written
        write(self, content)
        written += 1
        if written == lines:
            os.kill(os.getpid(), signal.SIGKILL)

    Writer._add = counted  # type: ignore[method-assign]


def kill_before(lines: int) -> None:
    """Have this process killed when it is about to write a line of a journal: what the line tells has taken place."""
    written, write = 0, Writer._add

    def counted(self: Writer, content: Header | JournalEntry) -> None:
        nonlocal written
        written += 1
        if written == lines:
            os.kill(os.getpid(), signal.SIGKILL)
        write(self, content)

    Writer._add = counted  # type: ignore[method-assign]


def forked(words: Sequence[str], folder: Path, prepare: Callable[[], None]) -> int:
    """How a command ended in a process of its own; what it prints is added to `out` and `err`."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.chdir(folder)
    for name, descriptor in (("out", 1), ("err", 2)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), descriptor)
    prepare()
    sys.argv = ["koi", *words]
    try:
        main(list(words))
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 0)
    os._exit(0)


def anew(base: Path) -> Path:
    """A folder with the program, always in the same place, so that it is compiled once."""
    folder = base / "again"
    folder.mkdir()
    for name in FILES:
        if (base / name).exists():
            shutil.copy(base / name, folder / name)
    return folder


def registry_of(folder: Path) -> dict[str, list[object]]:
    """What the tables of a registry hold."""
    file = folder / ".koi/registry/registry.sqlite"
    if not file.exists():
        return {}
    with closing(sqlite3.connect(file)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in names}


def _effects_in(folder: Path) -> Path:
    """What effects have left: hidden, where the files of the project are kept and put back."""
    return next((file for name in ("effects", ".effects") if (file := folder / name).exists()), folder / "effects")


def kill_and_resume(base: Path, lines: int, kill: Callable[[int], None]) -> dict[str, object]:
    """What came of a run that was killed after, or before, so many lines."""
    folder = anew(base)
    killed = forked(RUN, folder, lambda: kill(lines))
    resumed = forked(RESUME, folder, lambda: None) if killed else None
    files = {name: folder / name for name in ("out", "err")} | {"effects": _effects_in(folder)}
    texts = {name: file.read_text() if file.exists() else "" for name, file in files.items()}
    tables = registry_of(folder)
    shutil.rmtree(folder)
    return {"lines": lines, "killed": killed, "resumed": resumed, "registry": tables, **texts}


def load_all() -> None:
    """Import what every child would import."""
    for name in LOADED:
        importlib.import_module(name)


if __name__ == "__main__":
    load_all()
    lines, step = map(int, sys.argv[1:3])
    kill = kill_before if sys.argv[3:] == ["before"] else kill_after
    outcome: dict[str, object] = {"killed": 1}
    while outcome["killed"]:
        outcome = kill_and_resume(Path.cwd(), lines, kill)
        sys.stdout.write(json.dumps(outcome) + "\n")
        sys.stdout.flush()
        lines += step

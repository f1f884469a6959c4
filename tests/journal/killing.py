"""A program that is killed at every entry of its journal, each time in a process of its own, and resumed.

Run as `python -m tests.journal.killing FIRST STEP` in a folder with `main.koi` and `answers.json`; it writes what came
of each kill as one JSON object a line.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from koi_lang.cli import main
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
    "koi_lang.llm.providers",
    "koi_lang.llm.scripted",
    "koi_lang.expressions",
    "koi_lang.failures",
    "sqlite3",
)
FILES = ("main.koi", "effects.py", "answers.json")


def kill_after(lines: int) -> None:
    """Have this process killed once it has written so many lines of a journal."""
    written, write = 0, Writer._write

    def counted(self: Writer, line: bytes) -> None:
        nonlocal written
        write(self, line)
        written += 1
        if written == lines:
            os.kill(os.getpid(), signal.SIGKILL)

    Writer._write = counted  # type: ignore[method-assign]


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
        shutil.copy(base / name, folder / name)
    return folder


def kill_and_resume(base: Path, lines: int) -> dict[str, object]:
    """What came of a run that was killed after so many lines."""
    folder = anew(base)
    killed = forked(RUN, folder, lambda: kill_after(lines))
    resumed = forked(RESUME, folder, lambda: None) if killed else None
    texts = {
        name: (folder / name).read_text() if (folder / name).exists() else "" for name in ("out", "err", "effects")
    }
    shutil.rmtree(folder)
    return {"lines": lines, "killed": killed, "resumed": resumed, **texts}


def load_all() -> None:
    """Import what every child would import."""
    for name in LOADED:
        importlib.import_module(name)


if __name__ == "__main__":
    load_all()
    lines, step = map(int, sys.argv[1:])
    outcome: dict[str, object] = {"killed": 1}
    while outcome["killed"]:
        outcome = kill_and_resume(Path.cwd(), lines)
        sys.stdout.write(json.dumps(outcome) + "\n")
        sys.stdout.flush()
        lines += step

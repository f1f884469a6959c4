"""Commands of `koi` inside the test process, which goes on when they end."""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryFile
from unittest import mock

from koi_lang.cli import main
from koi_lang.program import loader
from koi_lang.runtime.modules.python_neighbours import PackageFinder, TopFinder
from tests.forking import stream_of

# Commands that only look, or write files: they run no program, which might end the process or leave threads.
QUIET = frozenset(
    ("audit", "check", "compile", "docs", "fmt", "graph", "init", "list", "permissions", "prompt", "runs")
)
# Has them load programs as a run does; and the help, whose own option click keeps as it was when it was first made.
ELSEWHERE = frozenset(("--run-code", "--help", "-h"))
# More than a pipe holds would have to be written while the command reads.
MAX_STDIN_CHARS = 4096


def exit_code_of(*words: str) -> int:
    """Carry a command out, and return its exit code.

    One that fails ends its process where threads are left over. Here these may be those of another test, so that only
    the command ends; processes that it forks end as ever, since they would go on with the tests.
    """
    here, end_process = os.getpid(), os._exit

    def end(code: int) -> None:
        sys.exit(code) if os.getpid() == here else end_process(code)

    with mock.patch.object(os, "_exit", end), mock.patch.object(gc, "freeze"):
        try:
            main(list(words))
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def is_possible(words: tuple[str, ...], stdin: str) -> bool:
    """Whether a command can be carried out here, where no loop of the test runs that it would have to run in."""
    is_main = threading.current_thread() is threading.main_thread()
    has_loop = asyncio._get_running_loop() is not None
    looks = not QUIET.isdisjoint(words[:1]) and not ELSEWHERE.intersection(words)
    return is_main and not has_loop and looks and len(stdin) <= MAX_STDIN_CHARS


def run(
    words: tuple[str, ...], folder: Path, environment: Mapping[str, str], stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """The outcome of a `koi` command that gets a text, with what it changes in this process put back."""
    with (
        TemporaryFile("w+", encoding="utf-8") as out,
        TemporaryFile("w+", encoding="utf-8") as err,
        chdir(folder),
        mock.patch.object(sys, "argv", ["koi", *words]),
        _modules(environment.get("PYTHONPATH", "")),
        _variables(environment),
        _streams(stdin, out.fileno(), err.fileno()),
    ):
        code = exit_code_of(*words)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(words, code, out.read(), err.read())


@contextmanager
def _modules(pythonpath: str) -> Iterator[None]:
    """Have modules looked for in more folders; what is imported from there or from the project is forgotten."""
    path = [*sys.path]
    finders = [finder for finder in sys.meta_path if not isinstance(finder, (TopFinder, PackageFinder))]
    loader.unload()
    last = next(reversed(sys.modules))
    importlib.invalidate_caches()
    patched = mock.patch.multiple(sys, path=[*filter(None, pythonpath.split(os.pathsep)), *path], meta_path=finders)
    try:
        with patched:
            yield
    finally:
        for name in modules_behind(last):
            file = getattr(sys.modules[name], "__file__", None) or ""
            is_foreign = file and not any(file.startswith(os.path.join(folder, "")) for folder in path if folder)
            if is_foreign or name.startswith(loader.PREFIX):
                del sys.modules[name]


def modules_behind(last: str) -> list[str]:
    """The names of the modules that were imported after one: of thousands, those need not be compared."""
    return [*takewhile(last.__ne__, reversed([*sys.modules]))]


@contextmanager
def _variables(environment: Mapping[str, str]) -> Iterator[None]:
    with mock.patch.dict(os.environ, environment, clear=True):
        time.tzset()
        yield
    time.tzset()


@contextmanager
def _streams(stdin: str, out: int, err: int) -> Iterator[None]:
    """Replace the descriptors of the standard streams, which commands that are started inherit, and the streams."""
    reading, writing = os.pipe()
    os.write(writing, stdin.encode())
    os.close(writing)
    kept = [os.dup(descriptor) for descriptor in range(3)]
    for flushed in (sys.stdout, sys.stderr):
        flushed.flush()
    try:
        for descriptor, target in enumerate((reading, out, err)):
            os.dup2(target, descriptor)
        streams = {name: stream_of(descriptor) for descriptor, name in enumerate(("stdin", "stdout", "stderr"))}
        with mock.patch.multiple(sys, **streams, **{f"__{name}__": stream for name, stream in streams.items()}):
            yield
    finally:
        for descriptor, saved in enumerate(kept):
            os.dup2(saved, descriptor)
            os.close(saved)
        os.close(reading)

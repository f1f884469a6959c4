"""A process that has imported `koi`, and forks one from itself for each command it is asked for.

Run as `python -P tests/forking.py PATH MODULES`; it listens at that socket until its standard input ends, and imports
with the first request: what `koi` needs, and more modules. Nothing is run in this process itself, so that each command
begins as one that was started alone. The command may be another such process, which has imported everything then.
"""

from __future__ import annotations

import ast
import ctypes
import fcntl
import gc
import importlib
import multiprocessing
import os
import pkgutil
import runpy
import socket
import sys
import termios
import time
import types
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

# Used by commands, but imported only when they need it.
LAZY = (
    *("asyncio", "concurrent.futures.thread", "coverage.cmdline", "cronsim", "email.utils", "encodings.idna"),
    *("http.client", "markdown_it", "mcp.server.mcpserver", "openai", "pdb", "pytest", "sqlite3"),
    *("uvicorn.lifespan.on", "uvicorn.protocols.websockets.websockets_sansio_impl"),
)
# Bytes of a large page of memory, and what Linux from 6.1 on calls having memory be in such.
LARGE_PAGE, MADV_COLLAPSE = 2 << 20, 25
HERE = os.path.dirname(os.path.abspath(__file__))
# Before these comes the folder of the package.
PATH = [path for path in sys.path if path not in (HERE, os.path.dirname(HERE))]


class Running(NamedTuple):
    """A command that runs, and the connection to who asked for it.

    Attributes:
        outlives: it ends on its own, and is not killed when who asked has gone.
    """

    process: BaseProcess
    asker: socket.socket
    outlives: bool


def import_all() -> None:
    """Import what commands import, and check a program with all that there is in the language."""
    for module in pkgutil.walk_packages(importlib.import_module("koi_lang").__path__, "koi_lang."):
        if not module.name.endswith("__main__"):
            with suppress(ModuleNotFoundError):  # of an extra that is not installed
                importlib.import_module(module.name)
    for name in LAZY:
        importlib.import_module(name)
    # The lexer and the rules about playbooks compile their patterns, 60 ms of them, when they first come to where they
    # count.
    path = os.path.join(HERE, "data", "everything.koi")
    files = importlib.import_module("koi_lang.program.files").DiskFiles()
    importlib.import_module("koi_lang.compiler.compile").check_program(path, files)
    importlib.import_module("koi_lang.system.certificates").certificates()
    # Two looks at many files: the time of the compiler's, and which packages bring extensions.
    importlib.import_module("koi_lang.program.cache").find(path)
    importlib.import_module("koi_lang.extensions.finding").find_installed()
    use_large_pages()


def use_large_pages() -> None:
    """Have Linux keep what has been imported in pages of 2 MB, where it can.

    To fork copies the table of all pages, and the end of the command takes it down again: of 180 MB in pages of 4 kB
    that is 45,000 rows, and two thirds of what a short command takes.
    """
    if sys.platform != "linux":
        return
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    with open("/proc/self/maps", encoding="utf-8") as maps:
        rows = [line.split() for line in maps]
    for place, rights, *_, name in (row if len(row) > 5 else [*row, ""] for row in rows):
        if rights == "rw-p" and name in ("", "[heap]"):
            start, end = (int(address, 16) for address in place.split("-"))
            start, end = -(-start // LARGE_PAGE) * LARGE_PAGE, end // LARGE_PAGE * LARGE_PAGE
            if start < end:
                advise(start, end - start, MADV_COLLAPSE)  # which fails where the kernel does not know it


def serve(requests: socket.socket) -> None:
    """Fork for each request until standard input ends, and with it all that still runs."""
    running: list[Running] = []
    while True:
        askers = (one.asker for one in running if not one.outlives)
        ready = wait([0, requests, *(one.process.sentinel for one in running), *askers])
        if 0 in ready:
            for one in running:
                one.process.kill()
            return
        for one in list(running):
            if one.process.sentinel in ready:
                running.remove(one)
                report(one)
            elif one.asker in ready:
                running.remove(one)
                drop(one)
        if requests in ready:
            running.append(forked(requests, running))


def drop(one: Running) -> None:
    """End a command that nobody waits for any more; what it has started may go on, and is not waited for."""
    with one.asker:
        one.process.kill()
        one.process.join()


def report(ended: Running) -> None:
    """Tell who asked for a command how it ended."""
    ended.process.join()
    with ended.asker:
        tell(ended.asker, ended.process.exitcode)


def tell(asker: socket.socket, number: int | None) -> None:
    """Send a number to who asked, if somebody still listens."""
    with suppress(BrokenPipeError, ConnectionResetError):
        asker.sendall(f"{number}\n".encode())


def forked(requests: socket.socket, running: list[Running]) -> Running:
    """The command that somebody asks for."""
    asker, _ = requests.accept()
    _, streams, _, _ = socket.recv_fds(asker, 1, 3)
    with asker.makefile() as lines:
        wanted = ast.literal_eval(lines.readline())
    others = (requests, asker, *(one.asker for one in running))
    process = multiprocessing.get_context("fork").Process(target=carry_out, args=(wanted, streams, others))
    process.start()
    for stream in streams:
        os.close(stream)
    tell(asker, process.pid)
    return Running(process, asker, wanted["outlives"])


def carry_out(wanted: dict[str, Any], streams: list[int], others: tuple[socket.socket, ...]) -> None:
    """Do what is wanted in a process of its own."""
    for other in others:
        other.close()
    become(wanted["words"], wanted["folder"], wanted["environment"], wanted["terminal"], streams)
    if sys.argv[0] == "-m":
        runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
    elif sys.argv[0] == "-c":
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(sys.argv.pop(1), "<string>", "exec"), vars(main))
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


def become(words: list[str], folder: str, environment: dict[str, str], terminal: bool, streams: list[int]) -> None:
    """Have this process look as if Python had just been started with some words; `-u` and `-B` change nothing here."""
    while words[0] in ("-u", "-B"):
        words = words[1:]
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
        os.close(stream)
    if terminal:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    sys.pycache_prefix = environment.get("PYTHONPYCACHEPREFIX") or None
    sys.argv = words
    before = folder if words[0] in ("-c", "-m") else os.path.dirname(words[0])
    sys.path[:] = [before, *os.environ.get("PYTHONPATH", "").split(os.pathsep), *PATH]
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        stream = stream_of(descriptor)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def stream_of(descriptor: int) -> Any:
    """A standard stream as Python makes it."""
    if descriptor == 0:
        return open(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    buffering = 1 if descriptor == 2 or os.isatty(descriptor) or os.environ.get("PYTHONUNBUFFERED") else -1
    errors = "backslashreplace" if descriptor == 2 else "surrogateescape"
    return open(descriptor, "w", buffering, "utf-8", errors, "\n", closefd=False)


if __name__ == "__main__":
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(sys.argv[1])
        listening.listen(16)
        sys.stdout.write("ready\n")
        sys.stdout.close()
        gc.disable()  # what is imported stays, so that searching it for garbage would only take time
        if 0 not in wait([0, listening]) and "koi_lang" not in sys.modules:
            import_all()
        if 0 not in wait([0, listening]):
            sys.path[:] = [os.path.dirname(HERE), *PATH]
            for name in sys.argv[2:]:
                importlib.import_module(name)
        gc.freeze()
        gc.enable()
        serve(listening)

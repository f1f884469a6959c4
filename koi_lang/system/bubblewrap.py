"""Bubblewrap: the arguments with which it confines a command, and whether it works on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from koi_lang.errors import reason

PROGRAM = "bwrap"
# Namespaces of its own, no rights of root, no terminal, and no longer a life than that of whoever started it.
ALONE = ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
# Everything as it is, but for reading; devices and processes are its own.
SYSTEM = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
NOTHING = "/dev/null"
# Lowers limits of the shell that becomes a command; `-u` is called `-p` by some shells.
SET_LIMITS = """
lower() {
  now=$(ulimit "$1") || return
  [ "$now" != unlimited ] && [ "$now" -le "$2" ] || ulimit "$1" "$2"
}
lower -d %d && lower -f %d && { lower -u %d 2> /dev/null || lower -p %d; } || exit 126
exec "$@"
"""
BLOCK_BYTES = 512
PROBE_LIMIT_S = 5.0
MAX_FAULT_CHARS = 200


@dataclass(frozen=True, slots=True)
class CommandBounds:
    """The limits of a command's resources, for others who use the machine.

    Attributes:
        memory_bytes: of each process.
        processes: at a time; nothing bounds those of root.
        file_bytes: of each file that it writes.
        folder_bytes: of each folder that is its own, in memory; None where bubblewrap is too old to bound them.
    """

    memory_bytes: int = 4 << 30
    processes: int = 500
    file_bytes: int = 1 << 30
    folder_bytes: int | None = 256 << 20

    def limited_words(self, words: Sequence[str]) -> list[str]:
        """A command that begins with limits of the system."""
        figures = self.memory_bytes // 1024, self.file_bytes // BLOCK_BYTES, self.processes, self.processes
        return ["/bin/sh", "-c", SET_LIMITS % figures, "sh", *words]


@dataclass(frozen=True, slots=True)
class Confinement:
    """The visible part of the machine for a command. All paths are absolute, exist, and have their links resolved.

    Attributes:
        project: may be changed.
        work: the folder that the command begins in.
        empty: folders that look empty; what is written there is gone with the command.
        shown: what is seen of these after all, for reading.
        changeable: further folders that may be changed.
        fixed: what cannot be changed in the project.
        hidden_folders: of the project, which look empty and cannot be written.
        hidden_files: of the project, which cannot be opened.
        stand_ins: files with those in whose place they are seen, for reading.
        variables: of its environment.
        network: whether it reaches other machines, and servers on this one.
        bounds: what it may take; None for as much as the person may.
    """

    project: str
    work: str
    empty: Sequence[str] = ()
    shown: Sequence[str] = ()
    changeable: Sequence[str] = ()
    fixed: Sequence[str] = ()
    hidden_folders: Sequence[str] = ()
    hidden_files: Sequence[str] = ()
    stand_ins: Sequence[tuple[str, str]] = ()
    variables: Sequence[tuple[str, str]] = ()
    network: bool = False
    bounds: CommandBounds | None = None


def confined_words(program: str, confinement: Confinement, words: Sequence[str]) -> list[str]:
    """A command as bubblewrap carries it out; later mounts lie over earlier ones, so their order counts.

    Args:
        program: bubblewrap itself.
        words: the command.
    """
    bounds = confinement.bounds
    size = () if bounds is None or bounds.folder_bytes is None else ("--size", str(bounds.folder_bytes))
    mounts = [
        *((*size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev") if size else ()),
        *(word for folder in confinement.empty for word in (*size, "--tmpfs", folder)),
        *(word for path in confinement.shown for word in ("--ro-bind-try", path, path)),
        *("--bind", confinement.project, confinement.project),
        *(word for folder in confinement.changeable for word in ("--bind", folder, folder)),
        *(word for path in confinement.fixed for word in ("--ro-bind-try", path, path)),
        *(word for folder in confinement.hidden_folders for word in ("--tmpfs", folder, "--remount-ro", folder)),
        *(word for file in confinement.hidden_files for word in ("--ro-bind", NOTHING, file)),
        *(word for own, file in confinement.stand_ins for word in ("--ro-bind", own, file)),
    ]
    network = ("--share-net",) if confinement.network else ()
    nesting = ("--unshare-user", "--disable-userns") if size else ()
    variables = (("TMPDIR", "/tmp"), *confinement.variables)
    begin = (*(word for pair in variables for word in ("--setenv", *pair)), "--chdir", confinement.work, "--")
    own = words if bounds is None else bounds.limited_words(words)
    return [program, *ALONE, *network, *nesting, *SYSTEM, *mounts, *begin, *own]


def find_bubblewrap(folders: Sequence[str], project: Path) -> str | None:
    """Where bubblewrap is installed; never within a project, which brings no guard of its own.

    Args:
        folders: where programs are looked for, in order.
    """
    for folder in folders:
        path = os.path.join(folder, PROGRAM)
        is_there = os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK)
        if is_there and not Path(path).resolve().is_relative_to(project):
            return path
    return None


async def find_fault(program: str, confinement: Confinement) -> str | None:
    """The reason why bubblewrap cannot confine a command here, as a clause; None where it works."""
    words = confined_words(program, replace(confinement, network=False), ("true",))
    try:
        process = await asyncio.create_subprocess_exec(*words, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
    except OSError as error:
        return f"`{program}` cannot be started: {reason(error)}"
    try:
        async with asyncio.timeout(PROBE_LIMIT_S):
            _, written = await process.communicate()
    except TimeoutError:
        return f"`{program}` did not answer within {PROBE_LIMIT_S:g} s"
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode == 0:
        return None
    said = " ".join(written.decode("utf-8", "replace").split())
    return said[:MAX_FAULT_CHARS] or f"`{program}` ended with exit code {process.returncode}"

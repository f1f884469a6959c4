"""The remaining capacity of a process: open files and memory."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

# As many files as a process asks for; some systems allow a billion, and others fail to raise a limit that far.
WANTED_FILES = 1 << 16
# Where systems list the open files of the process that looks; Linux from 6.2 on gives their number as the size of that.
LINUX_FILES, OPEN_FILES = "/proc/self/fd", ("/proc/self/fd", "/dev/fd")
# Below so many, or such a share, files and memory are short.
MIN_FILES = 16
MIN_FILES_SHARE = 1 / 16
MIN_MEMORY_SHARE = 1 / 20


def file_limits() -> tuple[int, int] | None:
    """How many files this process may have open now, and at most; None where the system has no such limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (WANTED_FILES if each == resource.RLIM_INFINITY else each for each in limits)
    return soft, hard


def raise_file_limit() -> None:
    """Have this process open as many files as it may; by default systems allow many fewer."""
    limits = file_limits()
    if limits is None or limits[0] >= min(limits[1], WANTED_FILES):
        return
    import resource

    with suppress(OSError, ValueError):  # a system that says one limit and has another
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(limits[1], WANTED_FILES), hard))


def count_open_files() -> int:
    """How many files this process has open; 0 where the system does not tell."""
    with suppress(OSError):
        count = os.stat(LINUX_FILES).st_size
        if count:
            return count
    for folder in OPEN_FILES:
        try:
            return len(os.listdir(folder)) - 1  # without the one that is read
        except FileNotFoundError:
            continue
        except OSError:  # not even that one can be opened
            limits = file_limits()
            return 0 if limits is None else limits[0]
    return 0


def are_files_short() -> bool:
    """Whether this process can open only a few more files."""
    limits = file_limits()
    return limits is not None and limits[0] - count_open_files() < max(MIN_FILES, limits[0] * MIN_FILES_SHARE)


def is_memory_short() -> bool:
    """Whether the system, or the container, has little memory left, as far as it tells."""
    with suppress(OSError, ValueError, KeyError):
        lines = (line.split() for line in Path("/proc/meminfo").read_text("ascii").splitlines())
        sizes = {words[0]: int(words[1]) for words in lines if len(words) > 1}
        if sizes["MemAvailable:"] < sizes["MemTotal:"] * MIN_MEMORY_SHARE:
            return True
    with suppress(OSError, ValueError):  # `max` where the container has no limit
        group = Path("/sys/fs/cgroup")
        most, taken = (int((group / name).read_text("ascii")) for name in ("memory.max", "memory.current"))
        return most - taken < most * MIN_MEMORY_SHARE
    return False

"""Processes with everything that they have started: how they are asked to end, and ended."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress


def end_group(leader: int) -> None:
    """End a process and its group at once; an ended one is ignored.

    Windows knows the processes that a process has started for as long as it lives, and no group after that.
    """
    if hasattr(os, "killpg"):
        _signal_group(leader, signal.SIGKILL)
    else:
        _taskkill("/F", leader)


def ask_group_to_end(leader: int) -> None:
    """Ask a process and its group to end."""
    if hasattr(os, "killpg"):
        _signal_group(leader, signal.SIGTERM)
    else:
        _taskkill("", leader)


def _signal_group(leader: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def _taskkill(how: str, leader: int) -> None:
    words = ["taskkill", *([how] if how else []), "/T", "/PID", str(leader)]
    subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)

"""The end of a process whose parent is killed, by the system itself, where it can do that."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


def die_with_parent(parent: int) -> None:
    """Have this process killed when its parent ends, also if it computes and hears nothing.

    Args:
        parent: the process that should still be there; where it is not, this one ends at once.
    """
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)

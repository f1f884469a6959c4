"""Cases to outcomes in a process of its own, which the network cannot be reached from."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

from koi_lang.errors import KoiError
from koi_lang.system.loopback import is_loopback
from koi_lang.testing.cases import Case, CaseOutcome, failed_outcome
from koi_lang.testing.loops import JumpingLoop, Overtime

# How long the loop of a case has, in seconds, to end between two steps before it is ended wherever it is.
SOON_S = 0.2
# Audit events of Python: sending to an address, which is a pair unless it is a file, and looking up a name.
SENT = ("socket.connect", "socket.sendto", "socket.sendmsg")
LOOKED_UP = ("socket.getaddrinfo", "socket.gethostbyname")
LOCAL = ("", "0.0.0.0")


def serve(connection: Connection, others: Sequence[Connection], timeout_s: float, is_hermetic: bool = True) -> None:
    """Run the cases that arrive, one after the other, until there are no more.

    Args:
        connection: cases come in, outcomes go out.
        others: connections of the parent that a forked process has to close, so that each end is noticed.
        timeout_s: most time of a case.
        is_hermetic: whether nothing outside of this machine can be reached; else the process ends with its parent at
            once, so that nobody but who goes on with a case is at it.
    """
    for other in others:
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)  # what programs write past Python must not get between the lines of the report
    if is_hermetic:
        sys.addaudithook(stay_inside)
    else:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        while (case := connection.recv()) is not None:
            connection.send(run_limited(case, timeout_s))
    except (EOFError, BrokenPipeError):
        return  # nobody is interested any more


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None, "a process that was started by another one"
    wait([parent.sentinel])
    os._exit(1)


def run_limited(case: Case, timeout_s: float) -> CaseOutcome:
    """The outcome of a case; a failure when it takes too long.

    Where there is no timer, as on Windows, whoever waits for the process ends it.
    """
    if not hasattr(signal, "SIGALRM"):
        return case.run()
    before = signal.signal(signal.SIGALRM, _end_soon)
    signal.setitimer(signal.ITIMER_REAL, timeout_s)
    try:
        return case.run()
    except Overtime as overtime:
        error = KoiError(f"this did not end within {timeout_s:g} s", help="`--timeout` sets another limit.")
        return failed_outcome(error.with_traceback(overtime.__traceback__), CaseOutcome(False, timeout_s))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _end_soon(signal_number: int, frame: Any) -> None:
    """End a case between two steps: an exception would be lost in a destructor, or break what is half done."""
    signal.signal(signal.SIGALRM, _raise_overtime)
    with suppress(RuntimeError):  # no loop is running
        loop = asyncio.get_running_loop()
        if isinstance(loop, JumpingLoop):
            signal.setitimer(signal.ITIMER_REAL, SOON_S)
            return loop.end_soon()
    raise Overtime


def _raise_overtime(signal_number: int, frame: Any) -> NoReturn:
    raise Overtime


def stay_inside(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse every connection that would leave this machine; for `sys.addaudithook`. Raises KoiError."""
    if event in SENT and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    elif event in LOOKED_UP:
        host = arguments[0]
    else:
        return
    name = host.decode("utf-8", "replace") if isinstance(host, bytes) else str(host or "")
    if name not in LOCAL and not is_loopback(name):
        raise KoiError(f"a test reaches nothing outside of this machine, and this asks for `{name}`")

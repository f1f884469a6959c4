"""Cases to their outcomes, side by side in several processes; one that crashes or hangs costs one case."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing import connection, parent_process
from multiprocessing.connection import Connection, wait
from operator import length_hint
from time import monotonic
from typing import Any, NoReturn

from koi_lang.errors import KoiError
from koi_lang.system.loopback import is_loopback
from koi_lang.testing.cases import Case, CaseOutcome, CaseResult, failed_outcome
from koi_lang.testing.loops import JumpingLoop, Overtime

# How long a process that does not end a case in time is left alone before it is killed.
GRACE_S = 2.0


def results(cases: Iterable[Case], *, jobs: int, timeout_s: float, is_hermetic: bool = True) -> Generator[CaseResult]:
    """The outcomes of cases as they come in. Closing the iterator ends the running ones.

    Args:
        cases: are begun in this order, each taken when there is a process for it.
        jobs: how many processes work at most.
        timeout_s: most time of a case.
        is_hermetic: whether the processes can reach nothing outside of this machine.
    """
    pool = _Pool(min(jobs, length_hint(cases, jobs)), timeout_s, is_hermetic=is_hermetic)
    waiting = iter(cases)
    try:
        while True:
            pool.begin(waiting)
            if not pool.is_busy:
                return
            yield from pool.wait_for_results()
    finally:
        pool.close()


class _Worker:
    """A process and the case it is at."""

    def __init__(self, siblings: Sequence[_Worker], timeout_s: float, *, is_hermetic: bool) -> None:
        # Forked processes have everything loaded; elsewhere than on Linux forking is not safe.
        context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        self.connection, theirs = context.Pipe()
        inherited = [self.connection, *(sibling.connection for sibling in siblings)]
        others = inherited if context.get_start_method() == "fork" else []
        self.process = context.Process(target=serve, args=(theirs, others, timeout_s, is_hermetic), daemon=True)
        _start(self.process)
        theirs.close()
        self.timeout_s = timeout_s
        self.case: Case | None = None
        self.begun = 0.0

    @property
    def overdue_s(self) -> float:
        """Seconds until it is to be killed."""
        return self.begun + self.timeout_s + GRACE_S - monotonic()

    def begin(self, case: Case) -> None:
        """Hand out a case."""
        self.case, self.begun = case, monotonic()
        self.connection.send(case)

    def outcome(self) -> CaseOutcome | None:
        """The outcome of the case; None when the process died."""
        try:
            received: CaseOutcome = self.connection.recv()
        except (EOFError, ConnectionResetError):
            return None
        return received

    def dismiss(self) -> None:
        """Let the process end by itself, where it is at no case."""
        if self.case is None:
            with suppress(OSError):
                self.connection.send(None)

    def kill(self, patience_s: float = 0.0) -> int:
        """End the process if it has not ended by then; gives its exit code, negative for a signal."""
        self.process.join(patience_s)
        self.process.kill()
        self.process.join()
        self.connection.close()
        return self.process.exitcode or 0


class _Pool:
    def __init__(self, size: int, timeout_s: float, *, is_hermetic: bool = True) -> None:
        self._timeout_s, self._is_hermetic = timeout_s, is_hermetic
        self._workers: list[_Worker] = []
        for _ in range(size):
            self._add()

    @property
    def is_busy(self) -> bool:
        """Whether a case is under way."""
        return any(worker.case is not None for worker in self._workers)

    def begin(self, waiting: Iterator[Case]) -> None:
        """Give every idle process a case; one that has died since its last case is replaced."""
        for worker in [each for each in self._workers if not each.process.is_alive() and each.case is None]:
            self._replace(worker)
            worker.kill()
        for worker in self._workers:
            if worker.case is None and (case := next(waiting, None)) is not None:
                worker.begin(case)

    def wait_for_results(self) -> Iterator[CaseResult]:
        """Wait for the next outcomes."""
        busy = {worker.connection: worker for worker in self._workers if worker.case is not None}
        patience_s = max(0.0, min(worker.overdue_s for worker in busy.values()))
        ready = connection.wait(list(busy), patience_s)
        for link, worker in busy.items():
            case = worker.case
            assert case is not None
            if link in ready:
                yield CaseResult(case, self._outcome_of(worker))
            elif worker.overdue_s <= 0:
                yield CaseResult(case, self._hung(worker))

    def _outcome_of(self, worker: _Worker) -> CaseOutcome:
        outcome = worker.outcome()
        if outcome is None:
            self._replace(worker)
            return CaseOutcome(False, monotonic() - worker.begun, f"error: {_how_it_ended(worker.kill(GRACE_S))}")
        worker.case = None
        return outcome

    def _hung(self, worker: _Worker) -> CaseOutcome:
        self._replace(worker)
        worker.kill()
        message = f"error: this did not end within {self._timeout_s:g} s, and its process was killed"
        return CaseOutcome(False, self._timeout_s, f"{message}\n  = help: `--max-time` sets another limit.")

    def _replace(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        self._add()

    def _add(self) -> None:
        self._workers.append(_Worker(self._workers, self._timeout_s, is_hermetic=self._is_hermetic))

    def close(self) -> None:
        """End all processes: idle ones regularly, so that coverage can write its data."""
        for worker in self._workers:
            worker.dismiss()
        for worker in self._workers:
            worker.kill(0.0 if worker.case is not None else GRACE_S)


def _start(process: Any) -> None:
    """Start a process that never hears of Ctrl-C: it is for the one that waits for it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.start()
    finally:
        signal.signal(signal.SIGINT, before)


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"the process of this test ended itself with the exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    return f"the process of this test was ended by the signal {name}"


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
        error = KoiError(f"this did not end within {timeout_s:g} s", help="`--max-time` sets another limit.")
        outcome = failed_outcome(error.with_traceback(overtime.__traceback__), CaseOutcome(False, timeout_s))
        return replace(outcome, message="\n".join([outcome.message, *getattr(overtime, "__notes__", ())]))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _end_soon(signal_number: int, frame: Any) -> None:
    """End a case between two steps: an exception would be lost in a destructor, or break half-done work."""
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

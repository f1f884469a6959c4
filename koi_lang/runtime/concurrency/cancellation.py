"""Blocks of code that can be cancelled from outside, also while they compute and wait for nothing."""

from __future__ import annotations

import asyncio
import os
import warnings
from contextlib import suppress
from contextvars import Context, ContextVar, Token
from functools import cache
from math import inf
from pathlib import Path
from time import monotonic
from types import CodeType, FrameType, TracebackType
from typing import NoReturn

from koi_lang.js.environment import await_outside, call_outside
from koi_lang.runtime.concurrency.alarm import Alarm, alarm_of_process

# How long code that waits has to end by itself before code that computes is interrupted.
PATIENCE_S = 0.05
# How long code may clean up, in `finally`, before it is cancelled once more.
GRACE_S = 5.0
PACKAGE = str(Path(os.path.abspath(__file__)).parents[2])
# Code that computes and leaves nothing half done: what operators and built-in functions of programs become.
COMPUTING = (os.path.join(PACKAGE, "js", ""), os.path.join(PACKAGE, "runtime", "destructuring.py"))
# But for what looks after tasks, timers and connections there.
STARTING = ("promises.py", "task_scope.py", "timers.py", "fetch.py", "python_interop.py", "environment.py")
# Where exceptions that come from nowhere are not expected: our own code, the event loop, and imports.
CAREFUL = (
    os.path.join(PACKAGE, ""),
    os.path.join(os.path.dirname(asyncio.__file__), ""),
    "<frozen importlib",
)


class CancelScope:
    """An async context whose code is cancelled when its time is up, or when it is asked to end.

    Code that waits is cancelled as tasks are. Code that computes is interrupted at a safe point; that needs the main
    thread, where signals arrive, and that nobody else uses the timer of the process.

    Args:
        limit_s: how long the block may take; None is as long as it likes.

    Attributes:
        caught: the cancellation that ended the block because it was asked to end, or its time was up; else None.
    """

    def __init__(self, limit_s: float | None = None) -> None:
        self._due = inf if limit_s is None else monotonic() + limit_s
        self.caught: asyncio.CancelledError | None = None
        self._task: asyncio.Task[object] | None = None
        self._interrupted: dict[asyncio.Task[object], float] = {}
        self._cancelled_at, self._cancels, self._before = -inf, 0, 0
        self._handle: asyncio.Handle | None = None
        self._alarm: Alarm | None = None

    async def __aenter__(self) -> CancelScope:
        self._task, self._loop = asyncio.current_task(), asyncio.get_running_loop()
        assert self._task is not None, "this runs in a task"
        self._before = self._task.cancelling()
        self._token: Token[tuple[CancelScope, ...]] = _scopes.set((*_scopes.get(), self))
        self._alarm = alarm_of_process(_interrupt)
        if self._due < inf:
            self._cancel_in_time()
        self._set_alarm()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        task, self._task = self._task, None
        assert task is not None, "a block that was entered"
        _scopes.reset(self._token)
        if self._handle is not None:
            self._handle.cancel()
        if self._alarm is not None:
            self._alarm.release(self)
        for _ in range(self._cancels):
            task.uncancel()
        is_over = bool(self._cancels) or monotonic() >= self._due
        if is_over and isinstance(error, asyncio.CancelledError) and task.cancelling() <= self._before:
            self.caught = error
        return self.caught is not None

    def cancel(self, delay_s: float = 0.0) -> None:
        """Have the block end, or give it some seconds; any thread may ask for it, and the handler of a signal."""
        self._due = min(self._due, monotonic() + delay_s)
        if self._task is not None:
            self._set_alarm()
            with suppress(RuntimeError):  # the loop has ended meanwhile, and the block with it
                self._loop.call_soon_threadsafe(self._cancel_in_time)

    def _cancel_in_time(self) -> None:
        """Cancel when the block is due, unless that has happened or is going to."""
        if not self._cancels and self._task is not None:
            if self._handle is not None:
                self._handle.cancel()
            # The loop decides how time passes; in tests it jumps.
            self._handle = self._loop.call_later(max(0.0, self._due - monotonic()), self._cancel)

    def _cancel(self) -> None:
        """Cancel what waits, and once more after a while: nobody cleans up for ever."""
        task = self._task
        if task is None:
            return
        if self._handle is not None:
            self._handle.cancel()
        if task not in self._interrupted or monotonic() >= self._interrupted[task] + GRACE_S:
            self._cancelled_at, self._cancels = monotonic(), self._cancels + 1
            task.cancel()
        self._handle = self._loop.call_later(GRACE_S, self._cancel)

    # ------------------------------------------------------------ code that computes

    def must_interrupt(self, task: asyncio.Task[object]) -> bool:
        """Whether a task of the block has computed for too long; one that cleans up is left alone for a while."""
        if self._task is None:
            return False  # what a task has started may last longer than the block
        last = self._interrupted.get(task, self._cancelled_at if task.cancelling() else -inf)
        return monotonic() >= max(self._due + PATIENCE_S, last + GRACE_S)

    def interrupt(self, task: asyncio.Task[object]) -> NoReturn:
        """End the code of a task of the block where it is."""
        # The code may just have made one.
        warnings.filterwarnings("ignore", r"coroutine '.*' was never awaited", RuntimeWarning)
        self._interrupted[task] = monotonic()
        raise asyncio.CancelledError

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.set(self, self._due + PATIENCE_S)


_scopes: ContextVar[tuple[CancelScope, ...]] = ContextVar("koi_cancel_scopes", default=())


def detached_context() -> Context:
    """An empty context for work that lasts longer than the current one, but ends with the cancel scopes around it."""
    context = Context()
    context.run(_scopes.set, _scopes.get())
    return context


def _interrupt(frame: FrameType | None) -> None:
    """End the code that is running where it is, if a block around it is to end and the code can be ended there."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop is running
        return
    for scope in _scopes.get():
        if task is not None and scope.must_interrupt(task) and is_safe_point(frame):
            scope.interrupt(task)


def is_safe_point(frame: FrameType | None) -> bool:
    """Whether code can be ended where it is: in a line of a program, or in what such a line calls and may be given up.

    Whoever runs programs has to expect any exception from them, and from functions of Python that they import.
    """
    while frame is not None:
        if frame.f_code in OUTSIDE or frame.f_code.co_filename.endswith(".koi"):
            return True
        if _is_careful(frame.f_code):
            return False
        frame = frame.f_back
    return False


OUTSIDE = (call_outside.__code__, await_outside.__code__)


@cache
def _is_careful(code: CodeType) -> bool:
    file = code.co_filename
    return file.startswith(CAREFUL) and (not file.startswith(COMPUTING) or file.endswith(STARTING))

"""Blocks of code that can be cancelled from outside, also while they compute and wait for nothing."""

from __future__ import annotations

import asyncio
import gc
import opcode
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Coroutine, Hashable
from contextlib import suppress
from contextvars import Context, ContextVar, Token
from functools import cache
from math import inf
from pathlib import Path
from time import monotonic
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from koi_lang.js.environment import await_outside, call_outside
from koi_lang.lazy import lazy_module
from koi_lang.runtime.concurrency.thread_interrupts import LineEvents, raise_at
from koi_lang.source import is_program

if TYPE_CHECKING:
    from koi_lang.runtime.concurrency import thread_alarm
else:
    thread_alarm = lazy_module("koi_lang.runtime.concurrency.thread_alarm")


T = TypeVar("T")
JUMP_BACKWARD = opcode.opmap.get("JUMP_BACKWARD")
# How long code that waits has to end by itself before code that computes is interrupted.
PATIENCE_S = 0.05
# How long code may clean up, in `finally`, before it is cancelled once more.
GRACE_S = 5.0
# Longer limits never come, and are too long for the timers of some systems.
MAX_LIMIT_S = 1e8
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

    Code that waits is cancelled as tasks are. Code that computes is interrupted at a safe point, in any thread; what
    Python waits for outside of an event loop, such as `time.sleep`, is cut short where signals arrive: in the main
    thread, unless somebody else uses the timer of the process.

    Args:
        limit_s: how long the block may take; None is as long as it likes.

    Attributes:
        caught: the cancellation that ended the block because it was asked to end, or its time was up; else None.
    """

    def __init__(self, limit_s: float | None = None) -> None:
        self._due = inf if limit_s is None or limit_s > MAX_LIMIT_S else monotonic() + limit_s
        self.caught: asyncio.CancelledError | None = None
        self._task: asyncio.Task[object] | None = None
        self._interrupted: dict[asyncio.Task[object], float] = {}
        self._cancelled_at = -inf
        self._cancels = 0
        self._before = 0
        self._handle: asyncio.Handle | None = None
        self._alarm: Alarm | None = None
        self._targets: dict[FrameType, int] = {}

    async def __aenter__(self) -> CancelScope:
        self._task, self._loop = asyncio.current_task(), asyncio.get_running_loop()
        assert self._task is not None, "this runs in a task"
        self._before = self._task.cancelling()
        self._token: Token[tuple[CancelScope, ...]] = _scopes.set((*_scopes.get(), self))
        self._thread = threading.get_ident()
        self._alarm = signal_alarm(_ring, _line_events().disable) or _thread_alarm(os.getpid())
        if self._due < inf:
            self._cancel_in_time()
        self._set_alarm()  # also without a limit: the end of an inner block would free the alarm of this one
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        task, self._task = self._task, None
        assert task is not None, "a block that was entered"
        self._targets.clear()
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

    def postpone(self, delay_s: float) -> None:
        """Have the block end some seconds later than it would; its loop has to count these seconds as none."""
        self._due += delay_s
        self._set_alarm()

    def _cancel_in_time(self) -> None:
        """Cancel when the block is due, unless that has happened or is going to."""
        if not self._cancels and self._task is not None:
            if self._handle is not None:
                self._handle.cancel()
            # The loop decides how time passes; in tests it jumps.
            self._handle = self._loop.call_later(max(0.0, self._due - monotonic()), self._cancel)

    def _cancel(self) -> None:
        """Cancel waiting work, and again after a while: clean-up has a limit."""
        task = self._task
        if task is None:
            return
        self._targets.clear()
        if self._handle is not None:
            self._handle.cancel()
        if task not in self._interrupted or monotonic() >= self._interrupted[task] + GRACE_S:
            self._cancelled_at, self._cancels = monotonic(), self._cancels + 1
            task.cancel()
        self._handle = self._loop.call_later(GRACE_S, self._cancel)

    def is_due(self) -> bool:
        """Whether the block is to end, and has not ended yet."""
        return self._task is not None and monotonic() >= self._due

    # ------------------------------------------------------------ code that computes

    def must_interrupt(self, task: asyncio.Task[object]) -> bool:
        """Whether a task of the block has computed for too long; one that cleans up is left alone for a while."""
        if self._task is None:
            return False  # what a task has started may last longer than the block
        last = self._interrupted.get(task, self._cancelled_at if task.cancelling() else -inf)
        return monotonic() >= max(self._due + PATIENCE_S, last + GRACE_S)

    def interrupt(self, task: asyncio.Task[object]) -> NoReturn:
        """End the code of a task of the block where it is."""
        self._begin_interrupt(task)
        raise asyncio.CancelledError

    def interrupt_from_outside(self, task: asyncio.Task[object], frame: FrameType, thread: int) -> None:
        """The same by another thread, unless the code has left the frame that was looked at."""
        self._targets[frame] = thread
        last = self._interrupted.get(task)
        if self.must_interrupt(task):
            self._begin_interrupt(task)
            if not raise_at(asyncio.CancelledError, thread, self._targets):
                self._interrupted.pop(task)
                if last is not None:
                    self._interrupted[task] = last
        self._targets.clear()

    def look_from_outside(self) -> None:
        """Have the code that runs in the thread of the block looked at, by another thread: some may be due."""
        frame = sys._current_frames().get(self._thread)
        if sys.version_info >= (3, 12):
            _line_events().enable(_codes_with_safe_points(frame))
            return
        task = asyncio.current_task(self._loop)
        if frame is not None and task is not None and _runs_in(frame, task):
            scope = _scope_to_end(frame, task, scopes_of(task))
            if scope is not None:
                scope.interrupt_from_outside(task, frame, self._thread)

    def _begin_interrupt(self, task: asyncio.Task[object]) -> None:
        # The code may just have made one.
        warnings.filterwarnings("ignore", r"coroutine '.*' was never awaited", RuntimeWarning)
        self._interrupted[task] = monotonic()

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.set(self, self._due + PATIENCE_S)


_scopes: ContextVar[tuple[CancelScope, ...]] = ContextVar("koi_cancel_scopes", default=())


def start_detached(group: asyncio.TaskGroup, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start a task of a group that sees no context variable of the code that starts it, but ends with its scopes."""
    context = Context()
    context.run(_scopes.set, _scopes.get())
    return group.create_task(work, context=context)


def scopes_of(task: asyncio.Task[Any]) -> tuple[CancelScope, ...]:
    """The scopes around the work of a task, from the outside in; safe to call from any thread."""
    # Python 3.11 does not tell the context of a task.
    context = next(each for each in gc.get_referents(task) if isinstance(each, Context))
    return context.get(_scopes, ())


def must_end() -> bool:
    """Whether the current code is to end because a block around it is."""
    return any(scope.is_due() for scope in _scopes.get())


def _ring(frame: FrameType | None) -> None:
    """The same as `_interrupt` in the handler of a signal, or soon after where the code is jumping back in a loop.

    From 3.13 on Python looks for signals there, and an error passes by the `finally` around the loop.
    """
    if frame is not None and sys.version_info >= (3, 13) and frame.f_code.co_code[frame.f_lasti] == JUMP_BACKWARD:
        _line_events().enable(_codes_with_safe_points(frame))
    else:
        _interrupt(frame)


def _interrupt(frame: FrameType | None) -> None:
    """End the code that is running where it is, if a block around it is to end and the code can be ended there."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop is running
        return
    if task is not None and (scope := _scope_to_end(frame, task, _scopes.get())) is not None:
        scope.interrupt(task)


def _scope_to_end(
    frame: FrameType | None, task: asyncio.Task[object], scopes: tuple[CancelScope, ...]
) -> CancelScope | None:
    """The block that the code of a task is in and that is to end now, if the code can be ended where it is."""
    for scope in scopes:
        if scope.must_interrupt(task):
            return scope if is_safe_point(frame) else None
    return None


@cache
def _thread_alarm(process: int) -> thread_alarm.ThreadAlarm:
    """The alarm for threads of a process; one that was forked has none of its parent's threads."""
    return thread_alarm.ThreadAlarm(CancelScope.look_from_outside, _line_events().disable)


@cache
def _line_events() -> LineEvents:
    return LineEvents(_interrupt)


def _runs_in(frame: FrameType | None, task: asyncio.Task[object]) -> bool:
    """Whether a frame belongs to a task, whichever is the current one meanwhile."""
    first = getattr(task.get_coro(), "cr_frame", None)
    while frame is not None and frame is not first:
        frame = frame.f_back
    return frame is not None


def is_safe_point(frame: FrameType | None) -> bool:
    """Whether code can be ended at its position: in a line of a program, or in an abandonable call of such a line.

    Whoever runs programs has to expect any exception from them, and from functions of Python that they import.
    """
    while frame is not None:
        if _is_given_up(frame.f_code):
            return True
        if _is_careful(frame.f_code):
            return False
        frame = frame.f_back
    return False


def _codes_with_safe_points(frame: FrameType | None) -> set[CodeType]:
    """The code that is running in a frame and those around it, where `is_safe_point` holds for them."""
    found: set[CodeType] = set()
    inner: set[CodeType] = set()
    while frame is not None:
        if _is_given_up(frame.f_code):
            found, inner = found | inner | {frame.f_code}, set()
        elif _is_careful(frame.f_code):
            inner = set()
        else:
            inner.add(frame.f_code)
        frame = frame.f_back
    return found


def _is_given_up(code: CodeType) -> bool:
    """Whether code and its callees may be ended anywhere."""
    return code in OUTSIDE or is_program(code.co_filename)


OUTSIDE = (call_outside.__code__, await_outside.__code__)


@cache
def _is_careful(code: CodeType) -> bool:
    file = code.co_filename
    return file.startswith(CAREFUL) and (not file.startswith(COMPUTING) or file.endswith(STARTING))


def postpone_limits(delay_s: float) -> None:
    """Have the blocks around the current code end some seconds later, since it was stopped for so long."""
    for scope in _scopes.get():
        scope.postpone(delay_s)


# What lies between two calls of whoever is not done.
PAUSE_S = 0.02
Ring = Callable[[FrameType | None], None]


class Alarm(Protocol):
    """Rings for each owner from a moment on, again and again until that releases it."""

    def set(self, owner: Hashable, moment: float) -> None:
        """Have it ring from a moment of `monotonic` on; infinity is not yet."""

    def release(self, owner: Hashable) -> None:
        """Forget the moment of an owner."""


class SignalAlarm:
    """The handler of SIGALRM: from the first of some moments on it calls a function again and again.

    Args:
        ring: is called in the main thread with the frame of the code that is running there, which ends with the
            exception that it raises.
        rest: is called there when nobody's moment is to come any more.
    """

    def __init__(self, ring: Ring, rest: Callable[[], object]) -> None:
        self._ring, self._rest = ring, rest
        self._moments: dict[Hashable, float] = {}
        # What the timer of the process was set for.
        self._first = inf

    def set(self, owner: Hashable, moment: float) -> None:
        """Have it ring from a moment of `monotonic` on, until it is released; infinity is not yet."""
        self._moments[owner] = moment
        self._schedule()

    def release(self, owner: Hashable) -> None:
        """Forget the deadline of an owner; without any, the previous handler of the signal is restored."""
        self._moments.pop(owner, None)
        self._schedule()
        if not self._moments:
            self._rest()
        if not self._moments and self._is_set():
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Set the next alarm, and ring."""
        self._schedule()
        self._ring(frame)

    def _schedule(self) -> None:
        first = min(self._moments.values(), default=inf)
        if first == self._first == inf:
            return  # most blocks have no limit, and each call of a handler is one
        if self._is_set():
            self._first = first
            signal.setitimer(signal.ITIMER_REAL, 0 if first == inf else max(first - monotonic(), PAUSE_S))

    def _is_set(self) -> bool:
        """Whether the signal is still ours: a module of Python may have taken it."""
        known: object = signal.getsignal(signal.SIGALRM)
        return known is self


def signal_alarm(ring: Ring, rest: Callable[[], object]) -> SignalAlarm | None:
    """The alarm of the main thread.

    None in other threads, where somebody else uses the timer, and on Windows, which has no such timer.
    """
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        return None
    known = signal.getsignal(signal.SIGALRM)
    if isinstance(known, SignalAlarm):
        return known
    if known is not signal.SIG_DFL or any(signal.getitimer(signal.ITIMER_REAL)):
        return None
    alarm = SignalAlarm(ring, rest)
    signal.signal(signal.SIGALRM, alarm)
    return alarm

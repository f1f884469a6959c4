"""The scope that everything started in the background belongs to, and ends with."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from contextvars import Context, ContextVar, Token, copy_context
from types import FrameType, TracebackType
from typing import Any, Protocol, TypeAlias

from koi_lang.errors import KoiError
from koi_lang.js.errors import is_final
from koi_lang.js.undefined import Value

Work: TypeAlias = Coroutine[Any, Any, Value]


class Clearable(Protocol):
    """Something that will happen later unless it is cleared."""

    def clear(self) -> None:
        """Do not let it happen."""


class EagerCoroutine(Coroutine[Any, Any, Value]):
    """A coroutine whose first step was taken before its task runs: calls run up to their first wait at once."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._first: tuple[Any, ...] = ()
        self._failure: BaseException | None = None
        self._result: StopIteration | None = None

    def begin(self) -> None:
        """Run to the first wait, the end, or a failure; the task then hears of it in order."""
        try:
            self._first = (self._work.send(None),)
        except StopIteration as stop:
            self._result = stop
        except (Exception, asyncio.CancelledError) as error:
            self._failure = error

    @property
    def cr_frame(self) -> FrameType | None:
        """The frame of the coroutine, by the name that Python gives it; None when it has ended."""
        frame: FrameType | None = getattr(self._work, "cr_frame", None)
        return frame

    def send(self, value: Any) -> Any:
        """Go on; the first time, hand out what the first step came to."""
        if self._failure is not None:
            raise self._failure
        if self._result is not None:
            raise self._result
        if not self._first:
            return self._work.send(value)
        (awaited,), self._first = self._first, ()
        if awaited is not None:
            # A task that saw this future in between has taken the mark that says it is being awaited.
            awaited._asyncio_future_blocking = True
        return awaited

    def throw(self, *error: Any) -> Any:
        """Raise an error where the coroutine waits; one that has ended in its first step does not hear of it."""
        if self._failure is not None:
            raise self._failure
        if self._result is not None:
            raise self._result
        self._first = ()
        return self._work.throw(*error)

    def close(self) -> None:
        """Give the coroutine up."""
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Value]:
        raise TypeError("only a task runs this")


class TaskScope:
    """An async context that waits at its end for all tasks and timers started in it.

    Left by an exception, it cancels them and waits until they have ended. A rejected promise that nobody handled
    makes the scope raise its error at the end.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Value]] = set()
        self._timers: dict[Clearable, bool] = {}
        self._rejected: dict[object, BaseException] = {}
        # Of these, which may be final; whether they are depends on who asks.
        self._grave: dict[object, KoiError] = {}
        self._idle: asyncio.Event | None = None
        self._token: Token[TaskScope | None] | None = None
        self._open = False

    async def __aenter__(self) -> TaskScope:
        self._idle = asyncio.Event()
        self._token = _current.set(self)
        self._open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await self._wait()
        finally:
            await self._cancel()
            self._open = False
            if self._token is not None:
                _current.reset(self._token)
        if error is None and self._rejected:
            raise next(iter(self._rejected.values()))

    def start(self, work: Work, context: Context | None = None) -> asyncio.Task[Value]:
        """Run a coroutine in a task of this scope; its first step is taken before this returns."""
        if not self._open:
            work.close()
            raise KoiError("nothing can be started after its run has ended")
        begun, context = EagerCoroutine(work), context or copy_context()
        task = asyncio.get_running_loop().create_task(begun, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        _step(begun, task, context)
        return task

    def hold(self, timer: Clearable, waits: bool = True) -> None:
        """Own a timer until `release`: wait for it, or else clear it at the end."""
        self._timers[timer] = waits
        self._tell()

    def holds(self, timer: Clearable) -> bool:
        """Whether the end waits for a timer."""
        return self._timers.get(timer, False)

    def release(self, timer: Clearable) -> None:
        """A timer is over; unknown ones are ignored."""
        self._timers.pop(timer, None)
        self._tell()

    def reject(self, promise: object, error: BaseException) -> None:
        """Remember the error of a promise that nobody has handled yet; a final one ends the waiting."""
        self._rejected[promise] = error
        if isinstance(error, KoiError):
            self._grave[promise] = error
        self._tell()

    def handle(self, promise: object) -> None:
        """Forget a rejection: somebody looks after it."""
        self._rejected.pop(promise, None)
        self._grave.pop(promise, None)

    def _forget(self, task: asyncio.Task[Value]) -> None:
        self._tasks.discard(task)
        self._tell()

    def _busy(self) -> bool:
        if any(map(is_final, self._grave.values())):
            return False
        return bool(self._tasks) or any(self._timers.values())

    def _tell(self) -> None:
        if self._idle is not None and not self._busy():
            self._idle.set()

    async def _wait(self) -> None:
        while self._idle is not None and self._busy():
            self._idle.clear()
            await self._idle.wait()

    async def _cancel(self) -> None:
        """End every task; being cancelled meanwhile does not leave one behind."""
        cancelled: asyncio.CancelledError | None = None
        for timer in list(self._timers):
            timer.clear()
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            try:
                await asyncio.wait(self._tasks)
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled


class ChildScope(TaskScope):
    """What one call starts within a scope: the scope owns it, and a call that is cancelled takes it along.

    A final error that nobody has handled ends the call, which may wait for what will never come.
    """

    def __init__(self, whole: TaskScope) -> None:
        super().__init__()
        self._whole = whole
        self._task: asyncio.Task[Any] | None = None
        self._end: BaseException | None = None

    async def __aenter__(self) -> ChildScope:
        self._token = _current.set(self)
        self._task = asyncio.current_task()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            _current.reset(self._token)
        task, self._task = self._task, None
        if isinstance(error, asyncio.CancelledError):
            await self._cancel()
        if self._end is not None and task is not None and task.uncancel() == 0:
            raise self._end

    def start(self, work: Work, context: Context | None = None) -> asyncio.Task[Value]:
        """Run a coroutine in a task of the whole scope."""
        task = self._whole.start(work, context)
        if not task.done():
            self._tasks.add(task)
            task.add_done_callback(self._forget)
        return task

    def hold(self, timer: Clearable, waits: bool = True) -> None:
        """Let the whole scope own a timer."""
        super().hold(timer, waits)
        self._whole.hold(timer, waits)

    def release(self, timer: Clearable) -> None:
        """A timer is over."""
        super().release(timer)
        self._whole.release(timer)

    def reject(self, promise: object, error: BaseException) -> None:
        """Let the whole scope remember a rejection, unless it ends the call."""
        if self._task is None or not is_final(error):
            self._whole.reject(promise, error)
        elif self._end is None:
            self._end = error
            self._task.cancel()

    def handle(self, promise: object) -> None:
        """Let the whole scope forget a rejection."""
        self._whole.handle(promise)


_current: ContextVar[TaskScope | None] = ContextVar("koi_scope", default=None)


def current_scope() -> TaskScope:
    """The innermost scope.

    Raises:
        KoiError: there is none.
    """
    scope = _current.get()
    if scope is None:
        raise KoiError("nothing can be started in the background outside a run")
    return scope


def _step(begun: EagerCoroutine, task: asyncio.Task[Value], context: Context) -> None:
    """Take the first step as the new task, so that timeouts and cancel scopes inside bind to it."""
    loop = asyncio.get_running_loop()
    outer = asyncio.current_task()
    if outer is not None:
        asyncio.tasks._leave_task(loop, outer)
    asyncio.tasks._enter_task(loop, task)
    try:
        context.run(begun.begin)
    finally:
        asyncio.tasks._leave_task(loop, task)
        if outer is not None:
            asyncio.tasks._enter_task(loop, outer)

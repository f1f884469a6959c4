"""A run kept open in a task of its own, in which other tasks have calls carried out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from contextvars import Context, copy_context
from pathlib import Path
from typing import Any, TypeVar

from koi_lang.errors import KoiError, UsageError
from koi_lang.events import Event, RunEnded
from koi_lang.outcome import Outcome, capture
from koi_lang.runtime.concurrency.cancellation import detached_context, must_end
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.run import Run
from koi_lang.sessions.config import PreparedRun

T = TypeVar("T")
# Variables of a context that belong to runs; all others are those of the caller.
OWN = "koi_"


class HeldRun:
    """A run that lasts until it is closed. Work may come from any task of its event loop, several at once.

    Args:
        open_run: makes the run, with consumers that are told what happens.
        prepare: brings the run, which has been entered, to where it is to be before anybody else uses it.
        on_failure: is told what ends the run after it was ready, and before it was closed.

    Attributes:
        opened: the run and what belongs to it; None before it has been entered, and after its end.
        context: the variables that belong to the run; those who use it copy it.
        error: what ended it before it was closed; None where nothing has.
        journal: where it is recorded; None where it is not.
    """

    context: Context

    def __init__(
        self,
        open_run: Callable[[Sequence[Consumer]], AbstractContextManager[PreparedRun]],
        prepare: Callable[[Run], Awaitable[None]] | None = None,
        on_failure: Callable[[Exception], None] | None = None,
    ) -> None:
        self.opened: PreparedRun | None = None
        self.error: Exception | None = None
        self._failure: Exception | None = None
        self.journal: Path | None = None
        self._open_run, self._prepare, self._on_failure = open_run, prepare, on_failure
        self._over, self._ended = asyncio.Event(), asyncio.Event()
        self._calls: set[asyncio.Task[Any]] = set()
        self._holder: asyncio.Task[None] | None = None

    async def begin(self, group: asyncio.TaskGroup) -> None:
        """Open the run in a task of a group. Raises KoiError when it cannot be opened."""
        self._loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = self._loop.create_future()
        self._holder = group.create_task(self._hold(ready), context=detached_context())
        await ready

    async def _hold(self, ready: asyncio.Future[None]) -> None:
        try:
            error = self.error = (await capture(self._live(ready))).error
            if error is not None and not ready.done():
                ready.set_exception(error)
            elif error is not None and self._on_failure is not None:
                self._on_failure(error)
        finally:
            self.opened = None
            self._ended.set()

    async def _live(self, ready: asyncio.Future[None]) -> None:
        with self._open_run([self._note_end]) as opened:
            self.journal = opened.journal
            async with opened.run as run, together() as group:
                self.opened, self._group, self.context = opened, group, copy_context()
                if self._prepare is not None:
                    await self._prepare(run)
                ready.set_result(None)
                await self._over.wait()
                if self._failure is not None:
                    raise self._failure

    def _note_end(self, event: Event) -> None:
        if isinstance(event.data, RunEnded):
            self._ended.set()

    @property
    def run(self) -> Run:
        """The run. Raises what ended it, or KoiError when it was closed."""
        if self.opened is None:
            raise self.error or KoiError(
                "the program is not open", help="Call its agents inside of `async with koi_lang.open(…) as program:`."
            )
        return self.opened.run

    def start(self, work: Callable[[Run], Awaitable[T]]) -> asyncio.Task[Outcome[T]]:
        """Begin some work in the run, which ends with it at the latest.

        Raises:
            KoiError: the run has ended.
            UsageError: another event loop than that of the run is running.
        """
        self._require_loop()
        task = self.start_task(_carry_out(self.run, work), self._context_of_call())
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        return task

    def _require_loop(self) -> None:
        if self.opened is None or self._loop is asyncio.get_running_loop():
            return
        help = "Call it from the event loop that opened it; from another thread use `asyncio.run_coroutine_threadsafe`."
        raise UsageError("the program was opened in another event loop", help=help)

    def start_task(self, work: Coroutine[Any, Any, T], context: Context) -> asyncio.Task[T]:
        """Begin a task that ends with the run at the latest; the run must be open."""
        return _task_of(self._group, work, context)

    async def result_of(self, call: asyncio.Task[Outcome[T]]) -> T:
        """What comes of work that was begun. Cancelling this cancels the work, and waits for its end.

        Raises:
            KoiError: the run has ended before the work did.
            Exception: what the work fails with.
        """
        try:
            await asyncio.wait([call])
        finally:
            if not call.done():
                call.cancel()
                await asyncio.wait([call])
        if call.cancelled():
            await self._ended.wait()
            raise self.error or KoiError("the program was closed before the call had ended")
        return call.result().result()

    def _context_of_call(self) -> Context:
        """The variables of the run, with those of the caller that are none of ours, such as the id of a request."""
        context = self.context.copy()
        for variable, value in copy_context().items():
            if not variable.name.startswith(OWN):
                context.run(variable.set, value)
        return context

    async def close(self, grace_s: float, error: BaseException | None = None) -> None:
        """End the run, and calls that are under way; without any, what goes on in the background gets some time.

        Args:
            grace_s: how long, in seconds.
            error: what those who hold the run have failed with, which is how it ends then; one that is no Exception,
                such as a cancellation, interrupts it.
        """
        calls = list(self._calls)
        for call in calls:
            call.cancel()
        if calls:
            await asyncio.wait(calls)
        if error is not None and not isinstance(error, Exception):
            self.cancel()
        self._failure = error if isinstance(error, Exception) else None
        await self.end(0 if calls or error is not None else grace_s)

    async def end(self, grace_s: float) -> bool:
        """End the run, in which no call is under way; gives whether all else in it had ended by itself in time."""
        if self._holder is None:
            return True
        self._over.set()
        is_in_time = True
        try:
            async with asyncio.timeout(grace_s):
                await self._ended.wait()
        except TimeoutError:
            is_in_time = False
            self._holder.cancel()
        # From here on only services are closed, which must not be cancelled and takes them a limited time.
        await asyncio.wait([self._holder])
        return is_in_time

    def cancel(self) -> None:
        """Have the run end at once, with all that is under way in it."""
        if self._holder is not None:
            self._holder.cancel()


def _task_of(group: asyncio.TaskGroup, work: Coroutine[Any, Any, T], context: Context) -> asyncio.Task[T]:
    return group.create_task(work, context=context)


async def _carry_out(run: Run, work: Callable[[Run], Awaitable[T]]) -> Outcome[T]:
    """How some work ended; a program cannot end the process."""
    try:
        outcome = await capture(work(run))
    except SystemExit as error:
        return Outcome(error=ExitError(error.code))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if must_end() or (task is not None and task.cancelling()):
            raise
        return Outcome(error=KoiError("the call waited for something that was cancelled"))
    run.ledger.tell_overspent(run.host.log)
    return outcome


class ExitError(KoiError):
    """Python code of a program has asked for the end of the process.

    Attributes:
        exit_code: of the process, or a text for the person, as in `sys.exit`.
    """

    def __init__(self, exit_code: Any) -> None:
        super().__init__(f"the program has called `sys.exit({exit_code!r})`, which ends its call and nothing else")
        self.exit_code = exit_code

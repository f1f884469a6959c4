"""A run kept open in a task of its own, in which other tasks have calls carried out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from contextvars import Context, copy_context
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from koi_lang.errors import CallCancelledError, KoiError, Outcome, UsageError, capture
from koi_lang.events import Event, RunEnded
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.exports import plain_copy
from koi_lang.runtime.budget.limits import Budget, in_time, paid_by
from koi_lang.runtime.concurrency.cancellation import must_end, start_detached
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.journal.calls import CALL
from koi_lang.runtime.journal.writer import Writer
from koi_lang.runtime.replay.location import current_place, enter_place
from koi_lang.runtime.replay.ordering import BEGIN
from koi_lang.runtime.run import Run
from koi_lang.sessions.held_call import HeldCall

T = TypeVar("T")
Work = Callable[[Run], Awaitable[T]]
# Variables of a context that belong to runs; all others are those of the caller.
OWN = "koi_"


# Makes a run and the writer of its journal, None where it is not recorded, with consumers that are told what happens.
OpenRun = Callable[[Sequence[Consumer]], AbstractContextManager[tuple[Run, Writer | None]]]


class HeldRun:
    """A run that lasts until it is closed; a `CallsPort`. Calls may come from any task of its event loop, many at once.

    Args:
        open_run: makes the run.
        explain: an error as a person gets it.
        prepare: brings the run, which has been entered, to where it is to be before anybody else uses it.
        on_failure: is told what ends the run after it was ready, and before it was closed.

    Attributes:
        opened: the run; None before it has been entered, and after its end.
        writer: of its journal; None where it is not recorded.
        context: the variables that belong to the run; those who use it copy it.
        error: what ended it before it was closed; None where nothing has.
        journal: where it is recorded; None where it is not.
        calls: those that are under way.
    """

    context: Context
    journal: Path | None
    _failure: Exception | None
    _group: asyncio.TaskGroup
    _over: asyncio.Event
    _ended: asyncio.Event

    def __init__(
        self,
        open_run: OpenRun,
        explain: Callable[[BaseException], str],
        prepare: Callable[[Run], Awaitable[None]] | None = None,
        on_failure: Callable[[Exception], None] | None = None,
    ) -> None:
        self.opened: Run | None = None
        self.writer: Writer | None = None
        self.error: Exception | None = None
        self.calls: set[HeldCall] = set()
        self._open_run = open_run
        self._explain = explain
        self._prepare = prepare
        self._on_failure = on_failure
        self._holder: asyncio.Task[None] | None = None

    async def open_in(self, group: asyncio.TaskGroup) -> None:
        """Open the run in a task of a group; one that has ended makes room for it. Raises KoiError."""
        self.error = self._failure = self.journal = None
        self._over, self._ended = asyncio.Event(), asyncio.Event()
        # Calls by the ids that their callers gave them, with what they ask for.
        self._known: dict[str, tuple[HeldCall, Any]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self.calls = set()
        self._loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = self._loop.create_future()
        self._holder = start_detached(group, self._hold(ready))
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
        with self._open_run([self._note_end]) as (opened, self.writer):
            self.journal = None if self.writer is None else self.writer.path
            async with opened as run, together() as self._group:
                self.opened = run
                self.context = copy_context()
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
        return self.opened

    # ------------------------------------------------------------ calls

    async def call(self, id: str, agent: type[Agent], event: str, payload: Any, budget: Budget) -> Any:
        """What comes of an event of an agent, which is carried out once; see `CallsPort`."""
        self._require_loop()
        if not id:
            raise UsageError("a call needs an id that is not empty")
        wanted = (agent, event, plain_copy(payload))
        known = self._known.get(id)
        if known is None:
            known = self._known[id] = (self.start_handler(agent, event, payload, budget, id), wanted)
        if known[1] != wanted:
            help = "Give each call an id of its own."
            raise UsageError(f"the id `{id}` is that of another call, of `{known[0].name}`", help=help)
        return plain_copy(await self.result_of(known[0]))

    async def cancel(self, id: str) -> bool:
        """End a call, nothing else, and wait until nothing of it is under way; gives whether anything was."""
        self._require_loop()
        call = self._known[id][0] if id in self._known else None
        if call is None or call.task.done():
            return False
        call.cancel()
        await asyncio.wait([call.task])
        return True

    def start_handler(self, agent: type[Agent], event: str, payload: Any, budget: Budget, id: str = "") -> HeldCall:
        """Begin a call of an event of an agent, at a place of its own, so that many may go on at once.

        Raises as `start` does.
        """
        given = plain_copy(payload)

        async def carry_out(run: Run) -> Any:
            return plain_copy(await run.call(agent, event, plain_copy(given)))

        return self.start(f"{agent.about.name}.{event}", carry_out, budget, id, args=given)

    def start(
        self, name: str, work: Work[Any], budget: Budget, id: str = "", *, is_alone: bool = False, **given: Any
    ) -> HeldCall:
        """Begin a call, which ends with the run at the latest, and tell it.

        Args:
            name: what is called.
            id: of its caller; a call without is named by its number.
            is_alone: whether no other one goes on meanwhile, so that what happens in it needs no place of its own.
            given: what is told of its beginning.

        Raises:
            KoiError: the run has ended.
            UsageError: another event loop than that of the run is running.
        """
        self._require_loop()
        run, root = self.run, self.context.run(current_place)
        assert root is not None, "a run that has been entered"
        place = root.child(CALL)
        call = HeldCall(id or place.label.replace("#", "-"), name, place)
        self.calls.add(call)
        if is_alone:
            call.tell_start(run, given)
        inner = partial(_carry_out_call, call, work if is_alone else _begin_in_slot(call, work, given), budget)
        call.task = self._start_task(_carry_out(run, inner))
        # Not at the end of the task itself: one that is cancelled before its first step never comes to that.
        call.task.add_done_callback(lambda _: self._end_call(run, call))
        return call

    def _end_call(self, run: Run, call: HeldCall) -> None:
        self.calls.discard(call)
        if call.is_told:
            run.events.emit(call.describe_end(self._explain), path=call.path)

    def number_from(self, number: int) -> None:
        """Have the next call be the n-th."""
        root = self.context.run(current_place)
        assert root is not None, "a run that has been entered"
        root.counts[CALL] = number - 1

    async def result_of(self, call: HeldCall) -> Any:
        """What comes of a call. Cancelling this cancels the call, unless others wait for it, and waits for its end.

        Raises:
            CallCancelledError: somebody has ended the call.
            KoiError: the run has ended before the call did, or why the call was ended from outside.
            Exception: what the call fails with.
        """
        call.waiting += 1
        try:
            await asyncio.wait([call.task])
        finally:
            call.waiting -= 1
            if not call.task.done() and not call.waiting:
                call.cancel()
                await asyncio.wait([call.task])
        if call.is_cancelled and (call.task.cancelled() or call.scope.caught is not None):
            raise call.end_error or CallCancelledError(f"the call of `{call.name}` was cancelled")
        return await self._result_of_task(call.task)

    async def perform(self, work: Work[T]) -> T:
        """What comes of some work in the run beside its calls; it is not told. Being cancelled ends it.

        Raises:
            KoiError: the run has ended, or does so before the work.
            UsageError: another event loop than that of the run is running.
            Exception: what the work fails with.
        """
        self._require_loop()
        task = self._start_task(_carry_out(self.run, work))
        try:
            await asyncio.wait([task])
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        return await self._result_of_task(task)

    async def _result_of_task(self, task: asyncio.Task[Outcome[T]]) -> T:
        """What a task gave that has ended. Raises what it failed with, or KoiError when the run has ended it."""
        if task.cancelled():
            await self._ended.wait()
            raise self.error or KoiError("the program was closed before the call had ended")
        return task.result().result()

    def _start_task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin a task that ends with the run at the latest; the run must be open."""
        context = self.context.copy()
        for variable, value in copy_context().items():
            if not variable.name.startswith(OWN):  # of the caller, such as the id of a request
                context.run(variable.set, value)
        task = self._group.create_task(work, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _require_loop(self) -> None:
        if self.opened is None or self._loop is asyncio.get_running_loop():
            return
        help = "Call it from the event loop that opened it; from another thread use `asyncio.run_coroutine_threadsafe`."
        raise UsageError("the program was opened in another event loop", help=help)

    # ------------------------------------------------------------ its end

    async def close(self, grace_s: float, error: BaseException | None = None) -> None:
        """End the run, and calls that are under way; without any, what goes on in the background gets some time.

        Args:
            grace_s: how long, in seconds.
            error: what those who hold the run have failed with, which is how it ends then; one that is no Exception,
                such as a cancellation, interrupts it.
        """
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if error is not None and not isinstance(error, Exception):
            self.interrupt_run()
        self._failure = error if isinstance(error, Exception) else None
        await self.end(0 if tasks or error is not None else grace_s)

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

    async def wait_for_end(self) -> None:
        """Wait until it has ended."""
        if self._holder is not None:
            await asyncio.wait([self._holder])

    def interrupt_run(self) -> None:
        """Have the run end at once, with all that is under way in it."""
        if self._holder is not None:
            self._holder.cancel()


async def _carry_out_call(call: HeldCall, work: Work[Any], budget: Budget, run: Run) -> Any:
    """What comes of the work of a call within its budget. Raises CallCancelledError when it was interrupted."""
    async with call.scope, AsyncExitStack() as limits:
        with enter_place(call.place):
            account = run.ledger.spending_of(f"`{call.name}`", budget, is_playbook=False)
        if account is not None:
            await limits.enter_async_context(in_time(account))
            limits.enter_context(paid_by(account))
        return await work(run)
    raise CallCancelledError(f"the call of `{call.name}` was cancelled")


def _begin_in_slot(call: HeldCall, work: Work[T], given: Mapping[str, Any]) -> Work[T]:
    """Work at the place of a call, which begins, and is told, when what goes on in the run waits for something.

    So it begins at the same point of all other work where the run is repeated.
    """

    async def carry_out(run: Run) -> T:
        await run.recorder.slots.take_slot(BEGIN, call.path)
        call.tell_start(run, given)
        with enter_place(call.place):
            return await work(run)

    return carry_out


async def _carry_out(run: Run, work: Work[T]) -> Outcome[T]:
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

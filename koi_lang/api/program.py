"""Programs as Python opens, calls and runs them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, TypeVar

from koi_lang.api.advice import advising
from koi_lang.api.agent import ProgramAgent
from koi_lang.diagnostics import suggestion
from koi_lang.errors import AgentError, KoiError, ProgramError, UsageError, raised_as
from koi_lang.events import Event
from koi_lang.js.promises import TaskScope
from koi_lang.program.error_report import explain, message
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.budget.limits import Budget, BudgetAccount, in_time
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.host import Host
from koi_lang.runtime.journal.calls import MAIN
from koi_lang.runtime.journal.writer import Writer
from koi_lang.runtime.outside_calls import open_programs
from koi_lang.runtime.run import Run
from koi_lang.sessions.continuation import Continuation
from koi_lang.sessions.held_call import HeldCall
from koi_lang.sessions.held_run import ExitError, HeldRun
from koi_lang.sessions.prepared import Prepared
from koi_lang.sessions.recording import recording
from koi_lang.sessions.session import Statistics

# How long work in the background may take to end by itself when a program is left.
GRACE_S = 5.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ProgramUsage:
    """The usage of a program's models so far.

    Attributes:
        requests: answers that were paid for.
        cached_tokens: those of `input_tokens` that a provider had read before.
        cost_usd: what has a known price.
        is_cost_known: whether `cost_usd` is all of it.
    """

    requests: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: float
    is_cost_known: bool


class Program:
    """A Koi program with a run of its own, an async context.

    Its agents live until the context is left: their state and memory, budgets and permissions count for all calls.
    Calls may come from any task of the event loop, several at once. Leaving the context ends what is under way, closes
    servers and models, and writes the end of the journal.
    """

    def __init__(self, ready: Prepared, host: Host) -> None:
        self._ready, self._host = ready, host
        self._statistics = Statistics()
        self._agents = {agent.about.name: agent for agent in ready.agents}
        self._held: HeldRun | None = None
        self._consumers: list[Consumer] = [self._statistics]

    def __repr__(self) -> str:
        return f"<koi program {Path(self._ready.path).name}>"

    async def __aenter__(self) -> Program:
        if self._held is not None:
            raise UsageError("a program is entered once", help="Call `koi_lang.open` again for another run of it.")
        held = self._held = HeldRun(self._open_run, self.explain)
        self._group = together()
        await held.open_in(await self._group.__aenter__())
        open_programs.set((*open_programs.get(), self))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        open_programs.set(tuple(program for program in open_programs.get() if program is not self))
        try:
            held = self._require_held()
            await held.close(GRACE_S, _origin_of(error))
        finally:
            await self._group.__aexit__(kind, error, trace)
        if error is None and held.error is not None:
            with advising(), raised_as(_as_koi_error):
                raise held.error

    @contextmanager
    def _open_run(self, consumers: Sequence[Consumer]) -> Iterator[tuple[Run, Writer | None]]:
        options = self._ready.options
        run = self._ready.run(
            self._host,
            [self._tell, *consumers],
            self._host.log,
            limits=options.session_limits,
            payload=options.payload,
            detailed=options.record is not False,
        )
        run.events.subscribe(self._tell, transient=True)
        with recording(run, self._ready, Continuation()) as writer:
            yield run, writer

    def _tell(self, event: Event) -> None:
        for consumer in tuple(self._consumers):
            consumer(event)

    def _require_held(self) -> HeldRun:
        if self._held is None:
            help = "Write `async with koi_lang.open(…) as program:` and use it inside."
            raise UsageError("the program is not open yet", help=help)
        return self._held

    # ------------------------------------------------------------ what it has

    @property
    def agents(self) -> tuple[str, ...]:
        """The names of its agents, in the order of their declaration."""
        return tuple(self._agents)

    @property
    def module(self) -> ModuleType:
        """Its Python module."""
        return self._ready.module

    @property
    def journal(self) -> Path | None:
        """Where the run is recorded; None where it is not."""
        return self._require_held().journal

    @property
    def usage(self) -> ProgramUsage:
        """The usage of its models so far."""
        known = self._statistics.usage
        tokens = known.by_kind
        return ProgramUsage(
            known.requests, tokens["input"], tokens["output"], tokens["cached"], known.usd, not known.unpriced
        )

    def subscribe(self, consumer: Consumer) -> None:
        """Have a consumer be told every event, of all calls."""
        self._consumers.append(consumer)

    def explain(self, error: BaseException) -> str:
        """An error as `koi run` shows it, with the lines of the program that it came through; without secrets."""
        cause = error.__cause__ if isinstance(error, ProgramError) else None
        return self._ready.redactor()(explain(cause or error, self._ready.folder.as_posix()))

    def has_file(self, path: str) -> bool:
        """Whether a `.koi` file belongs to it, by its absolute path."""
        return path in self._ready.entry.files

    # ------------------------------------------------------------ what it does

    def agent(self, name: str) -> ProgramAgent:
        """An agent by its name.

        Raises:
            AgentError: there is none.
            UsageError: the name is no text.
        """
        if not isinstance(name, str):
            raise UsageError(f"an agent cannot be named {name!r}", help='Give a text, such as `agent("Editor")`.')
        if name not in self._agents:
            raise AgentError(f"there is no agent `{name}`", help=suggestion(name, list(self._agents), "agent"))
        return ProgramAgent(self, self._agents[name])

    async def run(self) -> None:
        """Run the `run` statements of the program, and wait for all their work. Raises KoiError."""
        main = self._require_main()

        async def carry_out(run: Run) -> None:
            async with TaskScope():
                await main()

        await self.result_of(self._require_held().start(MAIN, carry_out, self._budget))

    async def run_as_whole(self) -> None:
        """Carry them out as the whole run, which is recorded as one of `koi run` then. Raises KoiError."""
        main = self._require_main()

        async def carry_out(run: Run) -> None:
            async with in_time(BudgetAccount(self._budget, f"`{MAIN}`", run.clock)), TaskScope():
                await main()

        with advising(), raised_as(_as_koi_error):
            await self._require_held().perform(carry_out)

    def _require_main(self) -> Callable[[], Awaitable[None]]:
        main: Callable[[], Awaitable[None]] | None = getattr(self._ready.module, "main", None)
        if main is None:
            help = "Call an agent, `await program.agent(…).event({…})`, or add `run Agent.event({})` to the file."
            raise UsageError(f"`{Path(self._ready.path).name}` runs nothing", help=help)
        return main

    @property
    def _budget(self) -> Budget:
        """Of each call; all others are of the whole run."""
        return Budget(time_s=self._ready.options.call_time_s)

    async def call(self, agent: type[Agent], event: str, payload: Any) -> Any:
        """The result of an event of an agent. Raises KoiError."""
        return await self.result_of(self.start(agent, event, payload))

    async def perform(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of some work in its run. Raises as the work does."""
        return await self._require_held().perform(lambda run: work())

    def start(self, agent: type[Agent], event: str, payload: Any, consumer: Consumer | None = None) -> HeldCall:
        """Begin a call, with a consumer of its events. Raises KoiError when the program is not open."""
        call = self._require_held().start_handler(agent, event, payload, self._budget)
        if consumer is not None:
            follow = partial(_tell_what_happens_in, call, consumer)
            self._consumers.append(follow)
            call.task.add_done_callback(lambda _: self._consumers.remove(follow))
        return call

    async def result_of(self, call: HeldCall) -> Any:
        """The result of a call; cancelling this ends it. Raises KoiError."""
        with advising(), raised_as(_as_koi_error):
            return await self._require_held().result_of(call)


def _tell_what_happens_in(call: HeldCall, consumer: Consumer, event: Event) -> None:
    """Tell a consumer of an event that happens in a call, if it does; the call itself has its caller."""
    length = len(call.path)
    if event.path[:length] == call.path and len(event.path) > length:
        consumer(event)


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run.

    Attributes:
        journal: where it was recorded; None where it was not.
    """

    usage: ProgramUsage
    journal: Path | None


def _as_koi_error(error: Exception) -> KoiError:
    """An error as callers get it: those of Koi are raised as they are."""
    if isinstance(error, KoiError):
        raise error
    return ProgramError(message(error))


def _origin_of(error: BaseException | None) -> BaseException | None:
    """The error of a run whose context is left with one; the end of the process is no failure."""
    if isinstance(error, SystemExit):
        return None
    return error.__cause__ or error if isinstance(error, ProgramError) else error


async def run_to_end(program: Program) -> RunResult:
    """Carry out the `run` statements of a program that is not open yet.

    Raises:
        KoiError: it fails.
        SystemExit: Python code in it has ended the process.
    """
    async with program:
        try:
            await program.run_as_whole()
        except ExitError as error:
            raise SystemExit(error.exit_code) from error
    return RunResult(program.usage, program.journal)

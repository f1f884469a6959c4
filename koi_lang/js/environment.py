"""The port through which JavaScript's values ask the world: in a run it is recorded, elsewhere it is the machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any, Protocol, TypeVar

from koi_lang.errors import AgentError, KoiError
from koi_lang.js.console_state import ConsoleState

T = TypeVar("T")
# Larger whole numbers are infinite as doubles.
MAX_DOUBLE_BITS = 1023


class OutputPort(Protocol):
    """Where a program prints."""

    def print(self, text: str) -> None:
        """Show one piece of the program's output, a line break is added."""

    def log(self, text: str) -> None:
        """Show one line that is not output (progress, warnings)."""


class Firing(Protocol):
    """One time that a timer fires."""

    def skips_clock(self) -> bool:
        """Whether it does not wait for the clock: when it fires follows from what is recorded."""

    def turn(self) -> Awaitable[None] | None:
        """What to wait for before it fires; None where no order is kept."""

    def record(self) -> None:
        """It fires now."""


@dataclass(frozen=True, slots=True)
class ForeignCall:
    """A call of a function or class of Python, which is not ours.

    Attributes:
        name: what it is in messages and journals, such as `clock.tick`.
        named: arguments by name.
        safe: whether doing it twice does no harm.
    """

    name: str
    function: Callable[..., Any]
    args: Sequence[Any] = ()
    named: Mapping[str, Any] = field(default_factory=dict)
    safe: bool = False

    @property
    def must_wait(self) -> bool:
        """Whether its result has to be awaited."""
        return iscoroutinefunction(self.function)

    def make(self) -> Any:
        """Make the call, or give what makes it when it is awaited. Raises as the function does."""
        require_execution(f"`{self.name or getattr(self.function, '__name__', 'a function')}`")
        return (await_outside if self.must_wait else call_outside)(self.function, *self.args, **self.named)


def call_outside(function: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
    """Call a function that is not ours: its code can be ended wherever it is."""
    try:
        return function(*args, **named)
    except (SystemExit, GeneratorExit) as error:
        if function is sys.exit:
            raise
        raise _as_failure(function, error) from error
    finally:
        end_here()


async def await_outside(function: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
    """The same for an async one."""
    try:
        return await function(*args, **named)
    except SystemExit as error:
        raise _as_failure(function, error) from error
    finally:
        end_here()


def _as_failure(function: Callable[..., Any], error: BaseException) -> AgentError:
    name = getattr(function, "__qualname__", "a function of Python")
    reason = "".join(f": {part}" for part in error.args if part is not None)
    message = f"`{name}` has raised `{type(error).__name__}{reason}`, with which a tool would end the whole run"
    return AgentError(message, help="Return a value that says so, or raise an exception such as `ValueError`.")


def end_here() -> None:
    """Where an end comes that another thread has asked for while the interpreter was away: a function begins."""


class Environment(OutputPort, Protocol):
    """What values may ask of the world.

    Attributes:
        console: the open groups, counts and clocks of `console`.
    """

    console: ConsoleState

    def observe(self, what: str, look: Callable[[], T]) -> T:
        """What code sees outside, such as the clock; a run that goes on sees the same again."""

    def random_bytes(self, count: int) -> bytes:
        """At most 64 bytes that nobody can guess; in a run that goes on they come again."""

    async def perform(
        self, name: str, given: Mapping[str, Any], work: Callable[[], Awaitable[T]], *, safe: bool, unseen: Any = None
    ) -> T:
        """Do something to the world; a run that goes on gets what came of it, and does not do it again.

        Args:
            name: what it is, such as `fetch`.
            given: what it is given, JSON values.
            safe: whether doing it twice does no harm.
            unseen: what else it is given, which is not written down.

        Raises:
            Exception: as the work does, or did.
        """

    def call_python(self, call: ForeignCall) -> Any:
        """Make a call whose outcome a run that goes on gets again. Raises as the call does, or did."""

    def read_python(self, owner: Any, name: str, value: Any) -> Any:
        """What an object or module of Python has under a name, once calls that were not made again have been made.

        Args:
            value: what it has before that.
        """

    def fork_context(self) -> Context:
        """A copy of the context for work that goes on beside the current code."""

    def next_firing(self) -> Firing:
        """The next time that a timer fires, counted by the code that sets it."""


class StandardOutput:
    """The streams of the process."""

    def print(self, text: str) -> None:
        """Write a line to standard output."""
        sys.stdout.write(text + "\n")

    def log(self, text: str) -> None:
        """Write a line to standard error."""
        sys.stderr.write(text + "\n")


class ClockFiring:
    """A timer fires when the clock says so."""

    def skips_clock(self) -> bool:
        """It never does."""
        return False

    def turn(self) -> None:
        """No order is kept."""

    def record(self) -> None:
        """Nobody hears of it."""


class Machine:
    """The environment outside of runs: nothing is recorded.

    Args:
        output: where programs print; by default the streams of the process.
    """

    def __init__(self, output: OutputPort | None = None) -> None:
        target = output or StandardOutput()
        self.print, self.log = target.print, target.log
        self.console = ConsoleState()

    def observe(self, what: str, look: Callable[[], T]) -> T:
        """What there is now."""
        return look()

    def random_bytes(self, count: int) -> bytes:
        """Bytes from the system."""
        return os.urandom(count)

    async def perform(
        self, name: str, given: Mapping[str, Any], work: Callable[[], Awaitable[T]], *, safe: bool, unseen: Any = None
    ) -> T:
        """Do it. Raises as the work does, and KoiError where programs are only inspected."""
        require_execution(f"`{name}`")
        return await work()

    def call_python(self, call: ForeignCall) -> Any:
        """Make the call. Raises as it does."""
        return call.make()

    def read_python(self, owner: Any, name: str, value: Any) -> Any:
        """What it has now."""
        return value

    def fork_context(self) -> Context:
        """A plain copy."""
        return copy_context()

    def next_firing(self) -> Firing:
        """When the clock says so."""
        return ClockFiring()


# Whether programs are only inspected, so that their code does nothing outside of them.
_is_inspecting: ContextVar[bool] = ContextVar("koi_is_inspecting", default=False)


def is_inspecting() -> bool:
    """Whether the current code belongs to a command that inspects programs without running their code."""
    return _is_inspecting.get()


@contextmanager
def inspecting() -> Iterator[None]:
    """Code in this context calls no Python function, and does nothing outside of its program."""
    token = _is_inspecting.set(True)
    try:
        yield
    finally:
        _is_inspecting.reset(token)


def require_execution(what: str) -> None:
    """Raise KoiError for something that code does outside of a program which is only inspected."""
    if _is_inspecting.get():
        raise not_executed(what)


def not_executed(what: str) -> KoiError:
    """The error of code that a command which only inspects a program does not execute."""
    help = "If you trust the program, add `--run-code`, or use `koi run`."
    return KoiError(f"{what} is not executed by a command that only inspects a program", help=help)


MACHINE = Machine()
_environment: ContextVar[Environment | None] = ContextVar("koi_environment", default=None)


def current_environment() -> Environment:
    """That of the run this code belongs to; outside of runs, the machine."""
    return _environment.get() or MACHINE


def note_rounding(n: int) -> None:
    """Say once a run that code goes on with the double that is nearest to a whole number, as JavaScript does."""
    environment = _environment.get()
    is_exact = n.bit_length() <= MAX_DOUBLE_BITS and int(float(n)) == n
    if environment is not None and not is_exact and not environment.console.has_rounded:
        environment.console.has_rounded = True
        environment.log(
            f"`{n}` is beyond 2 ** 53, so code that computes with it or writes it into a text rounds it: "
            "have Python give it as a text"
        )


@contextmanager
def in_environment(environment: Environment) -> Iterator[None]:
    """Code in this context, and what it starts, asks `environment`."""
    token = _environment.set(environment)
    try:
        yield
    finally:
        _environment.reset(token)

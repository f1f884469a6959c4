"""Calls of agents and skills by Python code that belongs to no run, in the programs that it has opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Protocol, TypeVar

from koi_lang.errors import AgentError, UsageError
from koi_lang.runtime.context import current

T = TypeVar("T")
# What compiled code reaches of a run, by the names of the prelude.
RUN_NAMES = frozenset({"live", "peers", "registry"})


class OpenProgram(Protocol):
    """A program with a run of its own, in which calls from outside are carried out."""

    def has_file(self, path: str) -> bool:
        """Whether a `.koi` file belongs to it, by its absolute path."""

    async def call(self, agent: type[Any], event: str, payload: Any) -> Any:
        """The result of an event of an agent. Raises KoiError."""

    async def perform(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of some work in its run. Raises as the work does."""


Opener = TypeVar("Opener", bound=Callable[[str], AbstractAsyncContextManager[OpenProgram]])
# What opens a program for a call, by its file; the first one counts.
_openers: list[Callable[[str], AbstractAsyncContextManager[OpenProgram]]] = []


def opens_programs(opener: Opener) -> Opener:
    """Register the function that opens programs for calls from outside of all programs."""
    _openers.append(opener)
    return opener


# Those around the current code, the innermost last.
open_programs: ContextVar[tuple[OpenProgram, ...]] = ContextVar("koi_programs", default=())


def program_of(file: str) -> OpenProgram | None:
    """The innermost open program that a file belongs to."""
    return next((program for program in reversed(open_programs.get()) if program.has_file(file)), None)


async def call_agent(agent: type[Any], event: str, file: str, payload: Any) -> Any:
    """The result of an event of an agent in a file. Raises AgentError where its program is not open."""
    run = current.get()
    if run is not None:
        return await run.call(agent, event, payload)
    program = program_of(file)
    if program is None:
        call = f"{agent.about.name}.{event}"
        help = f'Write `async with koi_lang.open("{Path(file).name}"):` around `await {call}({{…}})`.'
        raise AgentError(f"`{call}` can be called only while its program is open", help=help)
    return await program.call(agent, event, payload)


async def perform_in_program(file: str, work: Callable[[], Awaitable[T]]) -> T:
    """The result of work in the open program of a file, else in one that is opened for it."""
    program = program_of(file)
    if program is not None:
        return await program.perform(work)
    if not _openers:
        help = f'Write `async with koi_lang.open("{Path(file).name}"):` around the call.'
        raise AgentError("the call needs a program, and none is open", help=help)
    async with _openers[0](file) as opened:
        return await opened.perform(work)


def payload_of(payload: Any, fields: Mapping[str, Any]) -> Any:
    """The payload of a call from Python: an object and further fields of it; an empty object where there is nothing.

    Raises:
        UsageError: there are fields, but the payload is no object.
    """
    if not fields:
        return {} if payload is None else payload
    if not isinstance(payload, Mapping | None):
        help = "Give one object, `{…}`, or named arguments."
        raise UsageError("fields can be added only to a payload that is an object", help=help)
    return {**(payload or {}), **fields}


@cache
def needs_run(function: Callable[..., Any]) -> bool:
    """Whether compiled code reaches agents, teams or the registry: itself, or by functions that it names."""
    seen: set[CodeType] = set()
    left: list[Any] = [function]
    while left:
        named = left.pop()
        found = getattr(named, "__koi_code__", named)
        if not isinstance(found, FunctionType) or found.__code__ in seen:
            continue
        seen.add(found.__code__)
        names = {name for code in _codes(found.__code__) for name in code.co_names}
        if names & RUN_NAMES:
            return True
        left += [found.__globals__[name] for name in names if name in found.__globals__]
        left += [cell.cell_contents for cell in found.__closure__ or ()]
    return False


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of all functions inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)

"""The run, and the call of a playbook, that a piece of code belongs to."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from koi_lang.errors import AgentError

if TYPE_CHECKING:
    from koi_lang.runtime.ports import AgentPort, CallPort, RunPort

current: ContextVar[RunPort | None] = ContextVar("koi_run", default=None)
# The agent whose handler is running, and the payload of that.
handling: ContextVar[tuple[AgentPort, Any] | None] = ContextVar("koi_handling", default=None)
delegating: ContextVar[CallPort | None] = ContextVar("koi_execution", default=None)


def current_run() -> RunPort:
    """The run this code belongs to. Raises AgentError outside of runs."""
    run = current.get()
    if run is None:
        raise AgentError(
            "agents, teams and the registry exist only while a program runs",
            help="start the program with `koi run`.",
        )
    return run


def current_execution() -> CallPort | None:
    """The playbook call that the current code was started by; None in code that no playbook called."""
    return delegating.get()

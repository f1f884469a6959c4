"""The tools of an AgentDojo suite as a Python module, which Koi programs import."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

# Carries a tool out in the environment of the task at hand.
run_tool: ContextVar[Callable[[str, Mapping[str, Any]], str]] = ContextVar("run_tool")


def call(name: str, arguments: Mapping[str, Any]) -> str:
    """Call a tool with the arguments that are not null; the text is that which AgentDojo shows to models."""
    return run_tool.get()(name, {key: value for key, value in arguments.items() if value is not None})

"""Conditions of a call: they narrow it, and all that is called from it, beside the rules of the person."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from koi_lang.runtime.guards.access_rules import ANY, AccessRule
from koi_lang.runtime.guards.permissions import Permission, is_meant
from koi_lang.runtime.guards.shell_reader import read_shell


@dataclass(frozen=True, slots=True)
class CallConditions:
    """Conditions that hold for a call.

    Attributes:
        cannot: rules for what is not done.
        ask: rules for what the person is asked about each time.
        below: folders or files from the project; only what lies below all of them is changed.
    """

    cannot: tuple[AccessRule, ...] = ()
    ask: tuple[AccessRule, ...] = ()
    below: tuple[str, ...] = ()

    def denial(self, permission: Permission) -> str:
        """Why something is not done, as a clause; empty where no condition forbids it."""
        if rule := next((rule for rule in self.cannot if is_meant(rule, permission)), None):
            return f"the condition `cannot {rule.text}` denies it"
        access = permission.access
        if access is None:
            return ""
        has_commands = access.kind == "run" and any(rule.kind in (ANY, "run") for rule in self.cannot)
        if has_commands and not read_shell(access.subject).is_whole:
            return "what it does cannot be read, and a condition denies some commands"
        outside = (path for path in self.below if access.kind == "write" and not is_below(access.subject, path))
        return next((f"the condition `below {path}` denies it" for path in outside), "")

    def reason_to_ask(self, permission: Permission) -> str:
        """Why the person is asked about something, as a clause; empty where no condition has them asked.

        Commands and tools of MCP servers may do what rules for files and hosts forbid, which no rule sees.
        """
        if rule := next((rule for rule in self.ask if is_meant(rule, permission)), None):
            return f"the condition `ask {rule.text}` has you asked"
        is_closed = permission.access is None or permission.access.kind == "run"
        has_blind_spot = self.below or any(rule.kind != "run" for rule in self.cannot)
        return "it may pass by the conditions of this call" if is_closed and has_blind_spot else ""


_conditions: ContextVar[tuple[CallConditions, ...]] = ContextVar("koi_conditions", default=())


def conditions() -> tuple[CallConditions, ...]:
    """The conditions of the current call and of those around it; tasks and timers that it starts have them, too."""
    return _conditions.get()


@contextmanager
def held_to(added: CallConditions) -> Iterator[None]:
    """Hold the calls of the block to conditions; those around it stay."""
    token = _conditions.set((*_conditions.get(), added))
    try:
        yield
    finally:
        _conditions.reset(token)


def is_below(path: str, folder: str) -> bool:
    """Whether a path from the project is a folder or lies below it."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")

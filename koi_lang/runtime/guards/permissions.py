"""The permissions of a run: what the person has allowed, beforehand or for always."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from typing import Protocol


class Permission(Protocol):
    """Something that may need the person's leave, such as a command."""

    @property
    def rule(self) -> str:
        """The rule that allows this and nothing else."""

    def is_covered(self, rules: Set[str]) -> bool:
        """Whether broader rules allow it, such as patterns."""


@dataclass(frozen=True, slots=True)
class ExactPermission:
    """What only its own rule allows."""

    rule: str

    def is_covered(self, rules: Set[str]) -> bool:
        """No other rule allows it."""
        return False


class Permissions:
    """What was allowed in one run; it only grows, and only by the person.

    Args:
        rules: given beforehand, such as `shell:git status`.
        on_allow: is told of every rule that is added.
    """

    def __init__(self, rules: Iterable[str] = (), on_allow: Callable[[str], None] = lambda rule: None) -> None:
        self._rules, self._on_allow = set(rules), on_allow

    @property
    def rules(self) -> frozenset[str]:
        """All rules that count now."""
        return frozenset(self._rules)

    def is_allowed(self, permission: Permission) -> bool:
        """Whether nobody has to be asked."""
        return permission.rule in self._rules or permission.is_covered(self._rules)

    def allow(self, rule: str) -> None:
        """Let a rule count from now on, as the person says."""
        self._rules.add(rule)
        self._on_allow(rule)

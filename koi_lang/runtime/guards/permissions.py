"""The permissions of a run: denied, allowed, and to be asked about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Protocol

from koi_lang.runtime.guards.access_rules import ANY, EVERYTHING, FILES, AccessRule, Kind, WantedAccess, rules_in
from koi_lang.runtime.guards.shell_reader import read_shell
from koi_lang.runtime.guards.trust import NO_TRUST, Trust
from koi_lang.runtime.guards.working_files import is_closed

# What begins a rule that the person has given when asked.
GIVEN = re.compile(r"\w+=")


class Permission(Protocol):
    """Something that may need the person's leave, such as a command."""

    @property
    def access(self) -> WantedAccess | None:
        """Its form for rules of files, commands and pages; None for other kinds."""

    @property
    def rule(self) -> str:
        """The rule that allows this and nothing else."""

    @property
    def lasting_rule(self) -> str:
        """The rule that "always" stands for: this, or the like of it."""

    @property
    def lasting_words(self) -> str:
        """The meaning of that rule, for people."""

    def is_covered(self, rules: Set[str]) -> bool:
        """Whether broader rules allow it, such as patterns."""


@dataclass(frozen=True, slots=True)
class ExactPermission:
    """A permission that only its own rule grants."""

    rule: str
    access: None = None

    @property
    def lasting_rule(self) -> str:
        """Nothing more than the rule itself."""
        return self.rule

    @property
    def lasting_words(self) -> str:
        """The rule, which says it."""
        return f"`{self.rule}`"

    def is_covered(self, rules: Set[str]) -> bool:
        """No other rule allows it."""
        return False


@dataclass(frozen=True, slots=True)
class Restrictions:
    """Rules that hold in spite of every permission.

    Attributes:
        deny: nobody is asked about what these mean, and it is not done.
        ask: the person is asked about what these mean, unless another rule allows it.
        trust: what the person says of topics.
    """

    deny: tuple[AccessRule, ...] = ()
    ask: tuple[AccessRule, ...] = ()
    trust: Trust = NO_TRUST


NO_RESTRICTIONS = Restrictions()


class KeptRules(Protocol):
    """Rules that the person keeps for later runs."""

    def note_given(self, rule: str) -> bool:
        """Note that a rule was given for a run; gives whether that is not the first time, and it can be kept."""

    def keep(self, rule: str) -> None:
        """Have a rule count in every run."""


class Permissions:
    """The granted permissions of one run; they only grow, and only by the person.

    Args:
        rules: given beforehand, such as `shell:git status`.
        on_allow: is told of every rule that is added.
        restrictions: what is denied or asked about, whatever is allowed.
        kept: what the person keeps for later runs; None where nothing is kept.

    Attributes:
        trust: what the person says of topics.
    """

    def __init__(
        self,
        rules: Iterable[str] = (),
        on_allow: Callable[[str], None] = lambda rule: None,
        restrictions: Restrictions = NO_RESTRICTIONS,
        kept: KeptRules | None = None,
    ) -> None:
        self.kept = kept
        self._rules = set(rules)
        self._on_allow = on_allow
        self._restrictions = restrictions
        self.trust = restrictions.trust
        self._requested = 0

    @property
    def rules(self) -> frozenset[str]:
        """All rules that count now."""
        return frozenset(self._rules)

    def next_request(self) -> str:
        """A new name for a request to the person, so that an answer reaches the one that it is for."""
        self._requested += 1
        return f"approval-{self._requested}"

    def denial(self, permission: Permission) -> str:
        """The rule that denies a permission, over any grant; empty for none."""
        rules = self._restrictions.deny
        found = next((rule.text for rule in rules if is_meant(rule, permission)), "")
        return found or ("" if permission.access is None else self.trust.forbids(permission.access))

    def is_given(self, permission: Permission) -> bool:
        """Whether the person has allowed it for always, itself or the like of it."""
        if permission.rule in self._rules:
            return True
        return permission.is_covered({rule for rule in self._rules if GIVEN.match(rule)})

    def reason_to_ask_first(self, permission: Permission) -> str:
        """The reason to ask the person in spite of rules, as a clause; empty for none."""
        access = permission.access
        if access is None:
            return ""
        if line := self.trust.asks(access):
            return f"`{line}` has you asked"
        has_denied = access.kind == "run" and any(rule.kind in (ANY, "run") for rule in self._restrictions.deny)
        is_unclear = has_denied and not read_shell(access.subject).is_whole
        return "what it does cannot be read, and some commands are denied" if is_unclear else ""

    def is_covered(self, permission: Permission) -> bool:
        """Whether a rule allows it that was given beforehand."""
        return permission.is_covered(self._rules)

    def reason_to_ask(self, permission: Permission) -> str:
        """Why the person is asked about something that is open to everybody otherwise; empty where they are not."""
        rule = next((rule for rule in self._restrictions.ask if is_meant(rule, permission)), None)
        return "" if rule is None else f"the rule `{rule.text}` has you asked"

    def is_allowed(self, permission: Permission) -> bool:
        """Whether nobody has to be asked."""
        asks_first = bool(self.reason_to_ask_first(permission))
        return self.is_given(permission) or (not asks_first and self.is_covered(permission))

    def is_open(self, kind: Kind) -> bool:
        """Whether rules allow everything of a kind, and no rule denies a part of it or has the person asked."""
        if self.trust.restricts(kind):
            return False
        restricting = (*self._restrictions.deny, *self._restrictions.ask)
        if any(rule.kind == kind or (rule.kind == ANY and "/" not in rule.pattern) for rule in restricting):
            return False
        everything = WantedAccess(kind, EVERYTHING)
        return any(rule.covers(everything) for rule in rules_in(sorted(self._rules)))

    def allow(self, rule: str) -> None:
        """Let a rule count from now on, as the person says."""
        self._rules.add(rule)
        self._on_allow(rule)


def is_meant(rule: AccessRule, permission: Permission) -> bool:
    """Whether a rule that denies or asks means something, read widely."""
    return rule.is_everything or (permission.access is not None and rule.means(permission.access))


# ---------------------------------------------------------------- rules that never count


def explain_rules(allow: Iterable[str], restrictions: Restrictions) -> Iterator[str]:
    """The description of rules, a line each.

    Args:
        allow: all that is allowed; what is no rule of files, commands and pages is passed over.
    """
    yield from (f"the rule `{rule.text}` denies everything" for rule in restrictions.deny if rule.is_everything)
    for rule in dict.fromkeys((*rules_in(allow), *restrictions.ask)):
        if why := _why_never(rule, restrictions.deny):
            yield f"the rule `{rule.text}` never counts: {why}"
    for rule in restrictions.deny:
        if _leads_out(rule):
            yield f"the rule `{rule.text}` never counts: it leads out of the project"


def _why_never(rule: AccessRule, deny: Iterable[AccessRule]) -> str:
    if _leads_out(rule):
        return "it leads out of the project"
    parts = [part for part in rule.pattern.split("/") if part and part.strip("*")]
    if rule.kind in FILES and (why := is_closed(parts)):
        return f"what it names is closed to agents: {why}"
    denying = next((each for each in deny if _is_within(rule, each)), None)
    return f"`{denying.text}` denies all of it" if denying else ""


def _leads_out(rule: AccessRule) -> bool:
    return rule.kind in (*FILES, ANY) and (rule.pattern.startswith("~") or ".." in rule.pattern.split("/"))


def _is_within(rule: AccessRule, around: AccessRule) -> bool:
    """Whether a rule means nothing that another one does not mean; a pattern is looked at as a path of its own."""
    if around.is_everything or rule == around:
        return True
    if rule.kind in FILES:
        return around.means(WantedAccess("read" if rule.kind == "read" else "write", rule.pattern))
    return rule.pattern == around.pattern and around.kind == ANY

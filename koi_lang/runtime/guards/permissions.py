"""The permissions of a run: what the person denies, allows, or wants to be asked about."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, cast

from koi_lang.runtime.guards.access_rules import (
    ANY,
    AROUND_WORDS,
    EVERYTHING,
    FILES,
    KINDS,
    AccessRule,
    Kind,
    WantedAccess,
    rules_in,
)
from koi_lang.runtime.guards.file_names import is_closed
from koi_lang.runtime.guards.shell_reader import read_shell

Level = Literal["never", "ask", "act"]
PARTS = re.compile(r"[\W_]+")
# The rule that allows every command, and the beginning of one with a pattern of commands.
ALL_COMMANDS, COMMAND_PATTERN = "shell", "shell:"


@dataclass(frozen=True, slots=True)
class Permission:
    """Leave of the person for one thing, such as a command.

    Attributes:
        rule: the rule that allows this and nothing else; no part of it is a pattern.
        lasting_words: the meaning of the lasting rule, for people.
        access: its form for rules of files, commands and pages; None for other kinds.
        usual: the same as people write it in rules that allow it; rules that deny do not need it.
        wider: rules that the person gives for always, and that include this, such as those of the folders around it.
        has_wider: whether "always" stands for the first of these rather than for this alone.
        is_covered_by: whether rules of a form of their own allow it.
    """

    rule: str
    lasting_words: str
    access: WantedAccess | None = None
    usual: WantedAccess | None = None
    wider: tuple[str, ...] = ()
    has_wider: bool = False
    is_covered_by: Callable[[Collection[str]], bool] = lambda rules: False

    @property
    def lasting_rule(self) -> str:
        """The rule that "always" stands for: this, or the like of it."""
        return self.wider[0] if self.has_wider else self.rule


def exact_permission(rule: str) -> Permission:
    """A permission that only its own rule grants."""
    return Permission(rule, f"`{rule}`")


@dataclass(frozen=True, slots=True)
class Trust:
    """How far the person trusts agents, by topic: `[trust] deploy = "never"` in `koi.toml`.

    A topic is a kind of rule, the name of an action or of a tool of an MCP server, or a word of commands. Commands are
    read widely, as by rules that deny: letter case does not count, nor where in a command the word stands.

    Attributes:
        levels: topics with their levels, in the order of the file.
    """

    levels: tuple[tuple[str, Level], ...] = ()

    def find_line(self, level: Level, name: str = "", access: WantedAccess | None = None) -> str:
        """The settings line that gives a level to a named action or tool, or to an access; empty for none."""
        wanted = [topic for topic, its_level in self.levels if its_level == level]
        if not wanted:
            return ""
        words = _words_of(access.subject) if access is not None and access.kind == "run" else frozenset[str]()
        names = {name, "" if access is None else access.kind} - {""}
        topic = next((topic for topic in wanted if topic in names or topic.casefold() in words), None)
        return "" if topic is None else f'[trust] {topic} = "{level}"'

    def restricts(self, kind: Kind) -> bool:
        """Whether anything of a kind may be forbidden or asked about."""
        return any(level != "act" and (topic == kind or kind == "run") for topic, level in self.levels)

    def rules(self) -> list[str]:
        """The rules by which topics are allowed; those of words for simple commands that begin with them."""
        free = [topic for topic, level in self.levels if level == "act"]
        kinds = [f"{topic}:{EVERYTHING}" for topic in free if topic in KINDS]
        words = [rule for topic in free if topic not in KINDS for rule in (f"run:{topic}", f"run:{topic} *")]
        return [*kinds, *words]


def trust_of(given: Mapping[str, str]) -> Trust:
    """The trust levels of a checked table of `koi.toml`."""
    return Trust(tuple((topic, cast(Level, level)) for topic, level in given.items()))


def _words_of(command: str) -> frozenset[str]:
    """The words of a command, the names in its paths, and the parts of both."""
    text = command.casefold()
    plain = re.sub(r"""['"\\]""", "", text)  # a shell joins what is quoted
    found = {word for each in (text, plain) for word in (*AROUND_WORDS.split(each), *PARTS.split(each))}
    names = {name for word in found for name in (*word.split("/"), word.rpartition("/")[2].partition(".")[0])}
    return frozenset(found | names)


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
    trust: Trust = Trust()


NO_RESTRICTIONS = Restrictions()


class KeptRules(Protocol):
    """Rules that the person keeps for later runs."""

    def rules(self) -> Sequence[str]:
        """The lasting permissions for every run."""

    def note_given(self, rule: str) -> bool:
        """Note that a rule was given for a run; gives whether that is not the first time, and it can be kept."""

    def keep(self, rule: str) -> None:
        """Have a rule count in every run."""


class Permissions:
    """The granted permissions of one run; they only grow, and only by the person.

    Args:
        rules: given beforehand, such as `shell:git status`.
        on_allow: is told of every rule that is added.
        kept: what the person keeps for later runs; None where nothing is kept.

    Attributes:
        trust: what the person says of topics.
        restrictions: what is denied or asked about, whatever is allowed.
    """

    def __init__(
        self,
        rules: Iterable[str] = (),
        on_allow: Callable[[str], None] = lambda rule: None,
        restrictions: Restrictions = NO_RESTRICTIONS,
        kept: KeptRules | None = None,
    ) -> None:
        self.kept = kept
        self._rules = {rule: _parse_allowing(rule) for rule in rules}
        self._on_allow = on_allow
        self.restrictions = restrictions
        self.trust = restrictions.trust

    @property
    def rules(self) -> frozenset[str]:
        """All rules that count now."""
        return frozenset(self._rules)

    def denial(self, permission: Permission) -> str:
        """The rule that denies a permission, over any grant; empty for none."""
        found = next((rule.text for rule in self.restrictions.deny if is_meant(rule, permission)), "")
        return found or ("" if permission.access is None else self.trust.find_line("never", access=permission.access))

    def grant(self, permission: Permission) -> Literal["given", "rule"] | None:
        """The ground on which it is allowed: a lasting answer for it or the like of it, or a rule given beforehand."""
        if any(rule in self._rules for rule in (permission.rule, *permission.wider)):
            return "given"
        accesses = [access for access in (permission.access, permission.usual) if access is not None]
        rules = [rule for rule in self._rules.values() if rule is not None]
        has_rule = any(rule.covers(access) for rule in rules for access in accesses)
        return "rule" if has_rule or permission.is_covered_by(self._rules) else None

    def reason_to_ask_first(self, permission: Permission) -> str:
        """The reason to ask the person in spite of rules, as a clause; empty for none."""
        access = permission.access
        if access is None:
            return ""
        if line := self.trust.find_line("ask", access=access):
            return f"`{line}` has you asked"
        has_denied = access.kind == "run" and any(rule.kind in (ANY, "run") for rule in self.restrictions.deny)
        is_unclear = has_denied and not read_shell(access.subject).is_whole
        return "what it does cannot be read, and some commands are denied" if is_unclear else ""

    def is_allowed(self, permission: Permission) -> bool:
        """Whether nobody has to be asked."""
        grant = self.grant(permission)
        return grant == "given" or (grant == "rule" and not self.reason_to_ask_first(permission))

    def is_open(self, kind: Kind) -> bool:
        """Whether rules allow everything of a kind, and no rule denies a part of it or has the person asked."""
        if self.trust.restricts(kind):
            return False
        restricting = (*self.restrictions.deny, *self.restrictions.ask)
        if any(rule.kind == kind or (rule.kind == ANY and "/" not in rule.pattern) for rule in restricting):
            return False
        everything = WantedAccess(kind, EVERYTHING)
        return any(rule is not None and rule.covers(everything) for rule in self._rules.values())

    def allow(self, rule: str) -> None:
        """Let a rule count from now on, as the person says."""
        self._rules[rule] = _parse_allowing(rule)
        self._on_allow(rule)


def _parse_allowing(text: str) -> AccessRule | None:
    """A rule for files, commands or pages; None for one of another form."""
    if text == ALL_COMMANDS:
        return AccessRule("run", EVERYTHING)
    if text.startswith(COMMAND_PATTERN):  # in which `**` is no more than `*`
        return AccessRule("run", text.removeprefix(COMMAND_PATTERN).replace(EVERYTHING, ANY))
    return next(iter(rules_in([text])), None)


def command_patterns(rules: Iterable[str]) -> list[str]:
    """The patterns of commands that rules allow without asking the person."""
    return sorted(rule.removeprefix(COMMAND_PATTERN) for rule in rules if rule.startswith(COMMAND_PATTERN))


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
    if rule.kind in ("read", "write", "run"):
        return around.means(WantedAccess(cast(Kind, rule.kind), rule.pattern.rstrip(ANY) or EVERYTHING))
    return rule.pattern == around.pattern and around.kind == ANY

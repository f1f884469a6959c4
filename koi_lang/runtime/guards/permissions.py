"""The permissions of a run: what the person denies, allows, or wants to be asked about."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
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
    behind_links,
    literal_parts,
    rules_in,
)
from koi_lang.runtime.guards.file_names import is_closed
from koi_lang.runtime.guards.started_commands import read_commands

Level = Literal["never", "ask", "act"]
PARTS = re.compile(r"[\W_]+")
# The rule that allows every command, and the beginning of one with a pattern of commands.
ALL_COMMANDS, COMMAND_PATTERN = "shell", "shell:"
# The actions and functions that run commands.
COMMAND_ACTIONS = frozenset({ALL_COMMANDS, "run_command"})
# The tool of other coding agents that does what several actions do, each by its field `command`.
EDITORS = ("str_replace_editor", "str_replace_based_edit_tool")
EDITOR_ACTIONS = {"view": "read_file", "create": "write_file", "str_replace": "edit_file", "insert": "edit_file"}
# What tools of other coding agents are called here; models know their names by heart.
FAMILIAR: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("bash", "execute_command", "run_shell_command", "run_terminal_cmd"), ("run_command", "shell")),
    **dict.fromkeys(("read", "view", "cat"), ("read_file",)),
    **dict.fromkeys(("edit", "replace", "str_replace"), ("edit_file",)),
    **dict.fromkeys(("write", "create_file"), ("write_file",)),
    **dict.fromkeys(("glob", "ls", "list_dir", "list_directory"), ("list_files",)),
    **dict.fromkeys(("search", "search_file_content"), ("grep",)),
    **dict.fromkeys(EDITORS, tuple(EDITOR_ACTIONS.values())),
}


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

    A topic is a kind of rule, the name of an action or of a tool of an MCP server, or a word of commands. An action
    that runs commands stands for all commands. They are read widely, as by rules that deny: letter case does not count,
    nor where in a command the word stands, and names that models know restrict the actions that they lead to.

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
        if access is not None and access.kind == "run":
            names |= COMMAND_ACTIONS
        meant = {topic: {topic} for topic in wanted}
        if level != "act":
            names = {each.casefold() for each in names}
            # A kind has files looked at one by one, not the actions that models call by its name.
            plain = {topic: topic.casefold() for topic in wanted}
            familiar = {topic: () if plain[topic] in KINDS else FAMILIAR.get(plain[topic], ()) for topic in wanted}
            meant = {topic: {plain[topic], *familiar[topic]} for topic in wanted}
        topic = next((topic for topic in wanted if topic.casefold() in words or meant[topic] & names), None)
        return "" if topic is None else f'[trust] {topic} = "{level}"'

    def restricts(self, kind: Kind) -> bool:
        """Whether anything of a kind may be forbidden or asked about."""
        return any(level != "act" and (topic.casefold() == kind or kind == "run") for topic, level in self.levels)

    def rules(self) -> list[str]:
        """The rules by which topics are allowed; those of words for simple commands that begin with them."""
        free = [topic for topic, level in self.levels if level == "act"]
        kinds = [f"{topic}:{EVERYTHING}" for topic in free if topic in KINDS]
        kinds += [f"run:{EVERYTHING}" for topic in free if topic in COMMAND_ACTIONS]
        words = [topic for topic in free if topic not in KINDS and topic not in COMMAND_ACTIONS]
        words = [rule for topic in words for rule in (f"run:{topic}", f"run:{topic} *")]
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

    def find_denial(self, access: WantedAccess | None) -> str:
        """The rule or topic that denies an access over any grant, as it is written; empty for none.

        Args:
            access: None for what only rules about everything mean.
        """
        if rule := next((rule for rule in self.deny if is_meant(rule, access)), None):
            return rule.text
        return "" if access is None else self.trust.find_line("never", access=access)

    def denies_file(self, kind: Literal["read", "write"], path: str) -> bool:
        """Whether anything denies access to a file, given by its path from the folder of the project."""
        return self.find_denial(WantedAccess(kind, path)) != ""

    def denies_files(self) -> bool:
        """Whether anything denies access to some files."""
        has_rules = any(rule.kind in (*FILES, ANY) for rule in self.deny)
        return has_rules or any(level == "never" and topic.casefold() in FILES for topic, level in self.trust.levels)


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
        is_unclear = has_denied and not read_commands(access.subject).is_whole
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


def is_meant(rule: AccessRule, access: WantedAccess | None) -> bool:
    """Whether a rule that denies or asks means an access, read widely; None is one that only rules for all mean."""
    return rule.is_everything or (access is not None and rule.means(access))


# ---------------------------------------------------------------- rules that never count


def explain_rules(allow: Iterable[str], restrictions: Restrictions, folder: Path) -> Iterator[str]:
    """The description of rules, a line each.

    Args:
        allow: all that is allowed; what is no rule of files, commands and pages is passed over.
        folder: of the project.
    """
    yield from (f"the rule `{rule.text}` denies everything" for rule in restrictions.deny if rule.is_everything)
    allowing = rules_in(allow)
    for rule in dict.fromkeys(allowing):
        # A name alone counts in every folder.
        for linked in behind_links(rule, folder) if "/" in rule.pattern else ():
            target = f"{rule.kind}:{linked.pattern.removeprefix('/') or '.'}"
            yield f"the rule `{rule.text}` never counts: a link in it leads elsewhere; write `{target}`"
    for section, rules in (("allow", allowing), ("ask", restrictions.ask)):
        for rule in dict.fromkeys(rules):
            if why := _leads_out(rule, folder) or _why_closed(rule):
                yield f"the rule `{rule.text}` never counts: {why}"
            elif around := next((each for each in restrictions.deny if _is_within(rule, each)), None):
                never = f"the rule `{rule.text}` of `{section}` never counts"
                yield f"{never}: `{around.text}` of `deny` denies all of it"
    for rule in restrictions.deny:
        if why := _leads_out(rule, folder):
            yield f"the rule `{rule.text}` never counts: {why}"


def _why_closed(rule: AccessRule) -> str:
    parts = [part for part in rule.pattern.split("/") if part and part.strip("*")]
    why = is_closed(parts) if rule.kind in FILES else ""
    return why and f"what it names is closed to agents: {why}"


def _leads_out(rule: AccessRule, folder: Path) -> str:
    """Why a rule for files means none of the project, as a clause; empty where it may.

    A `/` at the beginning is the folder of the project. What follows may be a path of the machine all the same, if the
    project has no such folder.
    """
    if rule.kind not in (*FILES, ANY):
        return ""
    if rule.pattern.startswith("~") or ".." in rule.pattern.split("/"):
        return "it leads out of the project"
    parts = literal_parts(rule.pattern)
    if not rule.pattern.startswith("/") or len(parts) < 2 or os.path.lexists(folder / parts[0]):
        return ""
    path = Path("/", *parts)
    if base := next((each for each in (folder, folder.resolve()) if path.is_relative_to(each)), None):
        inside = rule.pattern.removeprefix(base.as_posix()).strip("/")
        return f"patterns begin at the folder of the project; write `{rule.kind}:{inside or '.'}`"
    return "it leads out of the project" if path.exists() else ""


def _is_within(rule: AccessRule, around: AccessRule) -> bool:
    """Whether a rule means nothing that another one does not mean; a pattern is looked at as a path of its own."""
    if around.is_everything or rule == around:
        return True
    if rule.kind in ("read", "write", "run"):
        return around.means(WantedAccess(cast(Kind, rule.kind), rule.pattern.rstrip(ANY) or EVERYTHING))
    return rule.pattern == around.pattern and around.kind == ANY

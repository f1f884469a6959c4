"""Who may use what of an MCP server: what an agent is granted, and the rules of whoever describes the server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from koi_lang.errors import PermissionDeniedError, SettingsError
from koi_lang.grants import EVERYTHING, covers, of_kind
from koi_lang.js.undefined import undefined
from koi_lang.runtime.agents.declarations import Mcp
from koi_lang.runtime.guards.approval import because, request_approval
from koi_lang.runtime.guards.permissions import ExactPermission
from koi_lang.runtime.guards.trust import ASKING, line_of
from koi_lang.runtime.host import ApprovalRequest, NobodyAllowsError
from koi_lang.runtime.mcp.safe_text import clip_text

if TYPE_CHECKING:
    from koi_lang.runtime.ports import AgentPort

RULES = ("ask", "deny")
MOST_SHOWN = 500
# The name in rules for a server's requests for a model, so that no tool can have it.
MODEL = "model"


@dataclass(frozen=True, slots=True)
class Rules:
    """Patterns of tools, `prompt:name` and `resource:address`.

    Attributes:
        ask: the person has to agree to each call.
        deny: nobody may use them.
    """

    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


def rules_of(name: str, *descriptions: Mapping[str, Any]) -> Rules:
    """The rules in all descriptions of a server together. Raises SettingsError when one is no list of patterns."""
    found: dict[str, list[str]] = {rule: [] for rule in RULES}
    for description in descriptions:
        for rule in RULES:
            patterns = description.get(rule)
            if patterns is None or patterns is undefined:
                continue
            if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
                help = f'Write `{rule} = ["write_*"]` in `koi.toml`, or `{rule}: ["write_*"]` in the program.'
                raise SettingsError(f"`{rule}` of the MCP server `{name}` is no list of patterns", help=help)
            found[rule] += patterns
    return Rules(tuple(found["ask"]), tuple(found["deny"]))


@dataclass(frozen=True, slots=True)
class Access:
    """What an agent may use of a server."""

    server: Mcp
    rules: Rules

    def shows(self, name: str, kind: str = "") -> bool:
        """Whether a tool, or something else of a kind, is granted and not denied."""
        return self.server.grants(name, kind) and not covers(self.rules.deny, name, kind)

    def has(self, kind: str) -> bool:
        """Whether anything of a kind is granted."""
        return self.server.granted is None or bool(of_kind(self.server.granted, kind))

    def require(self, agent: AgentPort, name: str, kind: str = "") -> None:
        """Raise PermissionDeniedError unless something is granted and not denied."""
        server, wanted = self.server.name, f"{kind}:{name}" if kind else name
        if not self.server.grants(name, kind):
            help = f"`uses mcp {server}({', '.join(self.server.granted or ())})` is all that it is granted."
            raise PermissionDeniedError(
                f"`{agent.name}` may not use `{wanted}` of the MCP server `{server}`", help=help
            )
        if covers(self.rules.deny, name, kind):
            raise PermissionDeniedError(f"the rules for the MCP server `{server}` deny `{wanted}`")

    async def permit(self, agent: AgentPort, name: str, kind: str = "", arguments: Any = None) -> None:
        """The same, and the person is asked where a rule says so. Raises PermissionDeniedError."""
        self.require(agent, name, kind)
        level = None if kind else agent.run.permissions.trust.level_of(name)
        if level == "never":
            told = f"`{name}` of the MCP server `{self.server.name}` is not used"
            raise PermissionDeniedError(f"{told}: `{line_of(name, level)}` of the person denies it")
        if level in ASKING or (level is None and covers(self.rules.ask, name, kind)):
            await _ask(agent, McpPermission(self.server.name, name, kind), arguments)


@dataclass(frozen=True, slots=True)
class McpPermission:
    """Leave to use a tool of a server, or something else of a kind."""

    server: str
    name: str
    kind: str = ""

    @property
    def as_rule(self) -> str:
        """What it is, as rules write it."""
        return f"{self.kind}:{self.name}" if self.kind else self.name

    @property
    def access(self) -> None:
        """Rules of files, commands and pages do not mean it."""

    @property
    def rule(self) -> str:
        """The rule for this and nothing else: it is no pattern, whatever a server calls its tools."""
        return f"mcp={json.dumps([self.server, self.as_rule])}"

    @property
    def lasting_rule(self) -> str:
        """Nothing more than the tool itself."""
        return self.rule

    @property
    def lasting_words(self) -> str:
        """As in "`read_file` of `files`"."""
        return f"`{self.as_rule}` of `{self.server}`"

    def is_covered(self, rules: Set[str]) -> bool:
        """Whether rules such as `mcp:files` or `mcp:files:write_*` cover it; `mcp:files:model` is no tool."""
        return covers(allowed_patterns(self.server, rules), self.name, self.kind)


async def _ask(agent: AgentPort, permission: McpPermission, arguments: Any) -> None:
    """Raise PermissionDeniedError unless a rule or the person allows it."""
    server, wanted = permission.server, permission.as_rule
    detail = "" if arguments is None else clip_text(json.dumps(arguments, ensure_ascii=False), MOST_SHOWN)
    request = ApprovalRequest(f"use `{wanted}` of the MCP server `{server}`", detail, agent.name)
    verdict = await request_approval(agent.run.host, agent.run.permissions, request, permission)
    if verdict.outcome == "unanswered":
        told = f"nobody can be asked to allow `{wanted}` of the MCP server `{server}`, so it was not used"
        raise NobodyAllowsError(told, help=f'`--allow "mcp:{server}:{wanted}"` allows it beforehand.')
    if not verdict.is_allowed:
        told = f"the person did not allow `{wanted}` of the MCP server `{server}`"
        raise PermissionDeniedError(because(told, verdict))


def allowed_patterns(server: str, rules: Set[str]) -> list[str]:
    """The patterns of a server's tools, documents and prompts that rules allow without asking the person."""
    if f"mcp:{server}" in rules:
        return list(EVERYTHING)
    begin = f"mcp:{server}:"
    patterns = [rule.removeprefix(begin) for rule in rules if rule.startswith(begin)]
    return sorted(pattern for pattern in patterns if pattern != MODEL)


def model_permission(server: str) -> ExactPermission:
    """Leave for a server to have models answer; patterns of tools do not cover it."""
    return ExactPermission(f"mcp:{server}:{MODEL}")

"""Permissions of MCP tools: the grants of agents, and the rules in the description of a server."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from koi_lang.errors import SettingsError
from koi_lang.grants import EVERYTHING, covers, of_kind
from koi_lang.js.undefined import undefined
from koi_lang.runtime.agents.declarations import Mcp
from koi_lang.runtime.guards.permissions import Permission, exact_permission
from koi_lang.runtime.guards.policy import Access, Refusal
from koi_lang.runtime.host import ApprovalRequest, clip_text

if TYPE_CHECKING:
    from koi_lang.runtime.ports import AgentPort

RULES = ("ask", "deny")
MAX_SHOWN = 500
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
class ServerAccess:
    """The access of an agent to a server."""

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
        agent.run.policy.check(Access(closed=self._find_refusal(agent, name, kind), is_open=True))

    async def permit(
        self, agent: AgentPort, name: str, kind: str = "", arguments: Any = None, *, changes: bool = False
    ) -> None:
        """The same, and the person is asked where a rule says so. Raises PermissionDeniedError."""
        server, named = self.server.name, f"{kind}:{name}" if kind else name
        subject = f"`{named}` of the MCP server `{server}`"
        detail = "" if arguments is None else clip_text(json.dumps(arguments, ensure_ascii=False), MAX_SHOWN)
        permission = Permission(
            f"mcp={json.dumps([server, named])}",
            f"`{named}` of `{server}`",
            is_covered_by=lambda rules: covers(allowed_patterns(server, rules), name, kind),
        )
        access = Access(
            subject,
            ApprovalRequest(f"use {subject}", detail, agent.name),
            permission,
            topic="" if kind else name,
            changes=changes,
            closed=self._find_refusal(agent, name, kind),
            is_open=not covers(self.rules.ask, name, kind),
            done="used",
            rule=f"mcp:{server}:{named}",
        )
        await agent.run.policy.require(access)

    def _find_refusal(self, agent: AgentPort, name: str, kind: str) -> Refusal | None:
        server, wanted = self.server.name, f"{kind}:{name}" if kind else name
        if not self.server.grants(name, kind):
            help = f"`uses mcp {server}({', '.join(self.server.granted or ())})` is all that it is granted."
            return Refusal(f"`{agent.name}` may not use `{wanted}` of the MCP server `{server}`", help)
        if covers(self.rules.deny, name, kind):
            return Refusal(f"the rules for the MCP server `{server}` deny `{wanted}`")
        return None


def allowed_patterns(server: str, rules: Collection[str]) -> list[str]:
    """The patterns of a server's tools, documents and prompts that rules allow without asking the person."""
    if f"mcp:{server}" in rules:
        return list(EVERYTHING)
    begin = f"mcp:{server}:"
    patterns = [rule.removeprefix(begin) for rule in rules if rule.startswith(begin)]
    return sorted(pattern for pattern in patterns if pattern != MODEL)


def model_permission(server: str) -> Permission:
    """Leave for a server to have models answer; patterns of tools do not cover it."""
    return exact_permission(f"mcp:{server}:{MODEL}")

"""Exposed agents as tools for clients, and the arguments of a call as the payload of a handler."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp import types

from koi_lang.errors import UsageError
from koi_lang.js.json_text import parse_exactly
from koi_lang.js.undefined import undefined
from koi_lang.mcp_server.results import result_of, typed_result_of
from koi_lang.runtime.actions.registered import ActionKind
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.declarations import Handler
from koi_lang.runtime.schema import with_definitions_at_root

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Where a result stands that is no object.
RESULT_FIELD = "result"


@dataclass(frozen=True, slots=True)
class ExposedTool:
    """A handler that is offered as a tool.

    Attributes:
        name: of the tool.
        actions: all there are in the run.
        has_playbook: whether the client may see the playbook of the handler.
    """

    name: str
    agent: type[Agent]
    handler: Handler
    actions: Sequence[ActionKind]
    has_playbook: bool = True

    @property
    def target(self) -> str:
        """The called handler, as journals name it."""
        return f"{self.agent.about.name}.{self.handler.event}"

    @property
    def title(self) -> str:
        """The name of the handler as words: `Add numbers`."""
        return " ".join(WORD.findall(self.handler.event)).capitalize() or self.handler.event

    @property
    def description(self) -> str:
        """The description of the handler, else of its agent."""
        about = self.agent.about
        playbook = about.playbooks.get(self.handler.event, "") if self.has_playbook else ""
        return (
            self.handler.affordance
            or playbook
            or f"`{self.handler.event}` of `{about.name}`" + (f": {about.affordance}" if about.affordance else "")
        )

    @property
    def schema(self) -> Mapping[str, Any]:
        """JSON Schema of the arguments: always an object; a parameter of another type is a field of it."""
        declared = self.handler.schema
        if self._parameter is not None:
            fields = {"properties": {self._parameter: declared}, "required": [self._parameter]}
            declared = with_definitions_at_root(fields)
        optional: dict[str, Any] = {"required": []} if self.handler.may_get_nothing else {}
        return {"type": "object", **declared, **optional}

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """JSON Schema of the structured content; a result that is no object is its field `result`."""
        if self.handler.result is None:
            return None
        declared = self.handler.result.schema
        if declared.get("type") == "object":
            return dict(declared)
        fields = {"properties": {RESULT_FIELD: declared}, "required": [RESULT_FIELD]}
        return {"type": "object", **with_definitions_at_root(fields)}

    def result(self, value: Any) -> types.CallToolResult:
        """The result of the handler for a client. Raises TypeErrorValue where the value contains itself."""
        declared = self.handler.result
        if declared is None:
            return result_of(value)
        return typed_result_of(value, None if declared.schema.get("type") == "object" else RESULT_FIELD)

    @property
    def _parameter(self) -> str | None:
        """The name of a parameter whose declared type is no object."""
        if not self.handler.schema or self.handler.schema.get("type") == "object":
            return None
        return str(self.handler.function.__code__.co_varnames[1])

    @property
    def only_looks(self) -> bool:
        """Whether a call changes nothing: all that a model may do for it only looks. Never claimed of code."""
        about = self.agent.about
        allows = about.role().allows
        allowed = (kind for kind in self.actions if allows(kind.needs))
        has_functions = any(skill.restrict(allows).functions for skill in about.skills())
        return self.handler.playbook and all(
            kind.only_looks or (kind.name == "call_skill" and not has_functions) for kind in allowed
        )

    def payload(self, arguments: Mapping[str, Any]) -> Any:
        """The payload of the handler. An untyped one may also be given as one argument `args`."""
        given = parse_exactly(json.dumps(dict(arguments)))
        if self._parameter is not None:
            return given.get(self._parameter, undefined)
        if not given and self.handler.may_get_nothing:
            return undefined
        if not self.handler.schema and given.keys() == {"args"} and isinstance(given["args"], dict):
            return given["args"]
        return given

    def as_tool(self) -> types.Tool:
        """The tool as the protocol describes it."""
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=dict(self.schema),
            output_schema=self.output_schema,
            annotations=types.ToolAnnotations(read_only_hint=True) if self.only_looks else None,
        )


def exposed_agents(agents: Sequence[type[Agent]], program: str) -> list[type[Agent]]:
    """The agents that are to be served. Raises UsageError when there is none."""
    found = [agent for agent in agents if agent.about.exposed]
    if found:
        return found
    names = ", ".join(f"`{agent.about.name}`" for agent in agents)
    help = f"Write `expose mcp` in an agent; it declares {names}." if names else "Write `expose mcp` in an agent."
    raise UsageError(f"`{program}` exposes no agent", help=help)


def offers(agents: Sequence[type[Agent]], actions: Sequence[ActionKind]) -> list[ExposedTool]:
    """Every public handler, called as its event, or as `Agent_event` where several agents handle it.

    Raises:
        UsageError: there is none, or two tools would have the same name.
    """
    public = [(agent, handler) for agent in agents for handler in agent.about.handlers.values() if not handler.private]
    times = Counter(handler.event for _, handler in public)
    found = [
        ExposedTool(
            handler.event if times[handler.event] == 1 else f"{agent.about.name}_{handler.event}",
            agent,
            handler,
            actions,
        )
        for agent, handler in public
    ]
    twice = [name for name, count in Counter(offer.name for offer in found).items() if count > 1]
    if twice:
        raise UsageError(f"two tools would be called `{twice[0]}`", help="Rename one of the handlers or agents.")
    if not found:
        raise UsageError(f"every handler of `{agents[0].about.name}` is private", help="Leave out `private` at one.")
    return found

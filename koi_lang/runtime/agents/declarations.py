"""What programs declare beside agents: roles, MCP servers, handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from koi_lang.grants import covers

# `write` includes `read`; a plain name covers every detail of it (`registry` covers `registry:read`).
IMPLIED = {"read": "write", "read_tasks": "write_tasks"}


@dataclass(frozen=True, slots=True)
class Role:
    """A set of capabilities under a name; roles of one name are the same role."""

    name: str
    capabilities: tuple[str, ...]

    def __repr__(self) -> str:
        return f"[Role: {self.name}]"

    def allows(self, permission: str | None) -> bool:
        """Whether the role has a permission such as `execute` or `registry:read`; None needs no permission."""
        if permission is None or permission in self.capabilities:
            return True
        family = permission.partition(":")[0]
        return family in self.capabilities or IMPLIED.get(permission) in self.capabilities


def role(name: str, capabilities: Sequence[str]) -> Role:
    """Declare a role."""
    return Role(name, tuple(capabilities))


@dataclass(frozen=True, slots=True, eq=False)
class Mcp:
    """An MCP server that an agent uses; its options are evaluated when it is first used.

    Attributes:
        options: None where the program declares no server of that name, so that files of the folder describe it.
        granted: patterns of the tools that may be used, `prompt:name` and `resource:address` for what else there is;
            None grants everything.
    """

    name: str
    options: Callable[[], Mapping[str, Any]] | None = None
    granted: tuple[str, ...] | None = None

    def only(self, *patterns: str) -> Mcp:
        """The same server for somebody who may use no more than some of its tools."""
        return replace(self, granted=patterns)

    def grants(self, name: str, kind: str = "") -> bool:
        """Whether a tool may be used, or something else of a kind: `resource`, `prompt`."""
        return self.granted is None or covers(self.granted, name, kind)


def by_name(servers: Iterable[Mcp]) -> dict[str, Mcp]:
    """Servers by their names; of one that is used several times all is granted that is granted anywhere."""
    found: dict[str, Mcp] = {}
    for server in servers:
        before = found.setdefault(server.name, server)
        if before is not server and before.granted is not None:
            granted = None if server.granted is None else (*before.granted, *server.granted)
            found[server.name] = replace(server, granted=granted)
    return found


HandlerFunction = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Handler:
    """One event an agent handles.

    Attributes:
        affordance: what it does, for other agents' prompts.
        schema: JSON Schema of the payload; empty when anything goes.
        private: not offered outside of the program.
        background: declared `async`.
        playbook: whether a model carries it out.
        budget: most a call may spend.
    """

    event: str
    function: HandlerFunction
    affordance: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    private: bool = False
    background: bool = False
    playbook: bool = False
    budget: Mapping[str, Any] = field(default_factory=dict)

    @property
    def may_get_nothing(self) -> bool:
        """Whether the parameter for the payload has a default."""
        code = getattr(self.function, "__code__", None)
        defaults = getattr(self.function, "__defaults__", None) or ()
        return code is not None and len(defaults) >= code.co_argcount - 1


def on(event: str, **about: Any) -> Callable[[HandlerFunction], Handler]:
    """Declare a function of an agent's class as the handler of an event; keywords are fields of Handler."""
    return lambda function: Handler(event, function, **about)

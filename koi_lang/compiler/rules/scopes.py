"""What the holes of a text may name: in a playbook, and in a prompt that playbooks contain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.declared_types import choices_of
from koi_lang.compiler.rules.program import AnalysedProgram, Use
from koi_lang.compiler.symbols import SymbolTable
from koi_lang.compiler.templates import PURE, payload_parts
from koi_lang.compiler.walk import Enclosing, everything

ROOTS = PURE | {"args", "state", "agentName", "userMessage"}
# How far below the payload fields are known: a type may contain itself.
MAX_DEPTH = 3
LET = re.compile(r"@let\s+([A-Za-z_]\w*)\s*=")
KEY = re.compile(r'"(\w+)"\s*:')


@dataclass(frozen=True, slots=True)
class PlaceholderScope:
    """Names that holes may use.

    Attributes:
        roots: the names a path may begin with.
        payload: what handlers call their payload, where that is not known.
        fields: for roots whose fields are all known, and for paths such as `args.ticket`, these.
        is_prompt: whether the text is a prompt rather than part of a playbook.
    """

    roots: frozenset[str]
    fields: Mapping[str, frozenset[str]]
    is_prompt: bool = False
    payload: frozenset[str] = frozenset()


def in_handler(use: Use, program: AnalysedProgram) -> PlaceholderScope:
    """What the playbook of a handler may name."""
    handler, agent = use.around.function, use.around.agent
    parameters = handler.parameters[:1] if isinstance(handler, n.Handler) else ()
    names = payload_parts(parameters)
    fields: dict[str, frozenset[str]] = {}
    for parameter in parameters:
        fields |= dict(_declared_fields("args", parameter.type, use.file.table))
    for name, part in names.items():
        # What stands below `args` stands below the names of its parts, too.
        path = ".".join(map(str, ("args", *part.path)))
        below = {other: known for other, known in fields.items() if other == path or other.startswith(f"{path}.")}
        fields |= {f"{name}{other.removeprefix(path)}": known for other, known in below.items() if part.default is None}
    state = state_fields(agent, use.file, program) if agent is not None else None
    if state is not None:
        fields["state"] = state
    return PlaceholderScope(ROOTS.union(names), fields)


def _declared_fields(path: str, type: n.Type | None, table: SymbolTable) -> Iterator[tuple[str, frozenset[str]]]:
    """The fields of an object, and those of the objects in its fields, each with the path that leads there."""
    choices = (
        [] if type is None else [each for each in choices_of(type, table) if each.name not in ("null", "undefined")]
    )
    if len(choices) == 1 and choices[0].name == "object" and choices[0].text != "object" and not choices[0].is_open:
        yield path, frozenset(field.name for field in choices[0].fields)
        for field in choices[0].fields if path.count(".") < MAX_DEPTH else ():
            yield from _declared_fields(f"{path}.{field.name}", field.type, table)


def in_prompt(node: n.Node, program: AnalysedProgram) -> PlaceholderScope:
    """What a prompt may name, which stands in the playbooks of several handlers, and its own parameters."""
    scopes = [in_handler(use, program) for use in program.uses.get(node, [])]
    own = _own_names(node)
    shared = set(scopes[0].fields) & ROOTS if scopes else set()
    for scope in scopes:
        shared &= scope.fields.keys()
    fields = {root: frozenset[str]().union(*(scope.fields[root] for scope in scopes)) for root in shared - set(own)}
    payload = frozenset[str]().union(*(scope.roots for scope in scopes)) - ROOTS
    return PlaceholderScope(ROOTS.union(own), fields, True, payload.difference(own))


def _own_names(node: n.Node) -> list[str]:
    if not isinstance(node, n.Prompt):
        return []
    names = [parameter.name.name for parameter in node.parameters or ()]
    if isinstance(node.value, n.Compose):
        names += ["callAction"] + [
            name.name for name in (*node.value.names, *(name for name, _ in node.value.fragments))
        ]
        names += LET.findall(node.value.template.value) if node.value.template is not None else []
    return names


def state_fields(agent: n.Agent, file: Analysis, program: AnalysedProgram) -> frozenset[str] | None:
    """The fields that the state of an agent has or gets; None when they cannot all be known."""
    declared = [field.name.name for item in agent.items if isinstance(item, n.State) for field in item.fields]
    if not declared or has_open_state(agent, file, program):
        return None
    return frozenset(declared) | program.for_file(_set_fields, file).get(agent, set())


def has_open_state(agent: n.Agent, file: Analysis, program: AnalysedProgram) -> bool:
    """Whether code of an agent hands on `this` or its state as a whole, so that any field may be set."""
    return agent in program.for_file(_open, file)


def _set_fields(file: Analysis, _: AnalysedProgram) -> dict[n.Agent, set[str]]:
    """Fields that code assigns, and keys that a playbook mentions: it may ask for a `state_updates` with them."""
    found: dict[n.Agent, set[str]] = {}
    changes: list[tuple[n.Assignment | n.Update, Enclosing]] = [*file.index.of(n.Assignment), *file.index.of(n.Update)]
    for change, around in changes:
        if around.agent is not None:
            fields = (
                node.name for node in everything(change.target) if isinstance(node, n.Member) and is_state(node.object)
            )
            found.setdefault(around.agent, set()).update(fields)
    for playbook, around in file.index.of(n.Playbook):
        if around.agent is not None:
            texts = (part.value for part in playbook.parts if isinstance(part, n.Text))
            found.setdefault(around.agent, set()).update(key for text in texts for key in KEY.findall(text))
    return found


def _open(file: Analysis, _: AnalysedProgram) -> set[n.Agent]:
    """Agents that `has_open_state` is true of."""
    members = file.index.of(n.Member)
    read: set[n.Node] = {member.object for member, _ in members}
    for statement, around in file.index.of(n.Return):
        # Callers get a copy of what a handler returns; a call in it may change what it is given.
        if statement.value is not None and isinstance(around.function, n.Handler):
            parts = set(everything(statement.value))
            read |= set() if any(isinstance(part, (n.Call, n.Function)) for part in parts) else parts
    opened = {around.agent for member, around in members if is_state(member) and member not in read}
    for handler, around in file.index.of(n.Handler):
        if any(name not in read for name in file.code[handler].outer.get("this", ())):
            opened.add(around.agent)
    return {agent for agent in opened if agent is not None}


def is_state(node: n.Node) -> bool:
    """Whether an expression is `this.state`."""
    return (
        isinstance(node, n.Member)
        and node.name == "state"
        and isinstance(node.object, n.Name)
        and node.object.name == "this"
    )

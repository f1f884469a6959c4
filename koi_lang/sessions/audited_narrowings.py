"""The source of a program to the calls in it that are narrowed to roles: who calls whom, for what, as what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.program import AnalysedProgram, is_variable
from koi_lang.compiler.rules.sends import targets
from koi_lang.compiler.walk import Enclosing
from koi_lang.runtime.agents.declarations import Role


@dataclass(frozen=True, slots=True)
class NarrowedCall:
    """A call that is narrowed to roles.

    Attributes:
        caller: the agent in whose code it stands; empty in a function of a skill.
        agents: the names of those who may answer; empty where only the running program knows.
        roles: None where only the running program knows.
    """

    caller: str
    event: str
    agents: tuple[str, ...]
    roles: tuple[Role, ...] | None


def narrowed_calls(files: Sequence[Analysis]) -> list[NarrowedCall]:
    """Every narrowed call of a program, in the order of its files and their lines."""
    program = AnalysedProgram(tuple(files))
    return [call for file in files for call in (*_sends(file, program), *_handle_calls(file))]


def _sends(file: Analysis, program: AnalysedProgram) -> Iterator[NarrowedCall]:
    known = {send: target for send, _, target in targets(file, program)}
    for send, around in file.index.of(n.Send):
        if send.bounds:
            reached = [agent for agent, _ in known[send].handling(send.event)] if send in known else []
            of_role = [agent for agent in reached if send.role is None or agent.role.name == send.role.name]
            agents = tuple(agent.name.name for agent in (of_role[:1] if send.select == "any" else of_role))
            yield NarrowedCall(_caller(around), send.event, agents, _roles(send.bounds, file))


def _handle_calls(file: Analysis) -> Iterator[NarrowedCall]:
    for call, around in file.index.of(n.Call):
        match call:
            case n.Call(
                callee=n.Member(object=n.Name() as agent, name="handle"), arguments=(event, _, n.Object() as options)
            ):
                role = next((o.value for o in options.properties if isinstance(o, n.Property) and o.key == "as"), None)
                if role is None:
                    continue
                is_known = isinstance(role, n.Name) and not is_variable(role, around, file)
                roles = _roles((role,), file) if is_known and isinstance(role, n.Name) else None
                name = event.value if isinstance(event, n.Text) else ""
                yield NarrowedCall(_caller(around), name, _agents_called(agent, around, file), roles)


def _agents_called(name: n.Name, around: Enclosing, file: Analysis) -> tuple[str, ...]:
    """The agent that a name in code stands for."""
    if name.name == "this":
        return (_caller(around),)
    symbol = None if is_variable(name, around, file) else file.table.find("agent", name.name)
    return () if symbol is None else (symbol.name,)


def _caller(around: Enclosing) -> str:
    return "" if around.agent is None else around.agent.name.name


def _roles(names: Sequence[n.Name], file: Analysis) -> tuple[Role, ...] | None:
    found = [file.table.find("role", name.name) for name in names]
    declared = [symbol.node for symbol in found if symbol is not None and isinstance(symbol.node, n.Role)]
    if len(declared) < len(names):
        return None
    return tuple(Role(role.name.name, tuple(word.name for word in role.capabilities)) for role in declared)

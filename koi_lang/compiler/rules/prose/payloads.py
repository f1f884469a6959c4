"""What the payload of a handler may hold, by its type, or by the calls of it that the program shows."""

from __future__ import annotations

from collections.abc import Iterator

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.declared_types import resolve_type
from koi_lang.compiler.rules.program import AnalysedProgram
from koi_lang.compiler.templates import payload_parts
from koi_lang.compiler.walk import Enclosing


def payload_names(around: Enclosing, file: Analysis, program: AnalysedProgram) -> frozenset[str] | None:
    """The fields that a payload has or may have; None where they cannot be known."""
    handler, agent = around.function, around.agent
    if not isinstance(handler, n.Handler) or agent is None:
        return None
    if not handler.parameters:
        return frozenset()
    type = handler.parameters[0].type
    declared = None if type is None else resolve_type(type, file.table)
    if declared is not None and declared.name == "object":
        return frozenset(field.name for field in declared.fields)
    parts = payload_parts(handler.parameters)
    if any(part.path for part in parts.values()):
        return frozenset(parts)
    return None if declared is not None else _given_names(agent, handler, program)


def _given_names(agent: n.Agent, handler: n.Handler, program: AnalysedProgram) -> frozenset[str] | None:
    """The fields of what the program calls a handler with; None where others may call it, or some are not known."""
    if not program.starts or any(isinstance(item, n.ExposeMcp | n.ExposeA2a) for item in agent.items):
        return None
    found = [payload for file in program.files for payload in _payloads(agent.name.name, handler.name.name, file)]
    if not found or not all(isinstance(each, n.Object) for each in found):
        return None
    items = [item for each in found if isinstance(each, n.Object) for item in each.properties]
    if not all(isinstance(item, n.Property) and isinstance(item.key, str) for item in items):
        return None
    return frozenset(str(item.key) for item in items if isinstance(item, n.Property))


def _payloads(agent: str, event: str, file: Analysis) -> Iterator[n.Node]:
    """What everything in a file that may call a handler gives it; some other node where that is not known."""
    for run, _ in file.index.of(n.Run):
        if (run.agent.name, run.handler.name) == (agent, event):
            yield from run.arguments[:1] or [run]
    for call, _ in file.index.of(n.Call):
        callee, first = call.callee, next(iter(call.arguments), None)
        if isinstance(callee, n.Member) and callee.name == event:
            yield first or call
        elif (
            isinstance(callee, n.Member)
            and callee.name == "handle"
            and isinstance(first, n.Text)
            and first.value == event
        ):
            yield call.arguments[1] if len(call.arguments) > 1 else call
    for send, _ in file.index.of(n.Send):
        if send.event == event:
            yield send

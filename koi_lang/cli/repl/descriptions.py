"""What something that a person names is: signatures of agents, shapes of variables, kinds of expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koi_lang.errors import UsageError
from koi_lang.js.own_properties import is_array, is_record
from koi_lang.js.undefined import undefined
from koi_lang.program import declarations
from koi_lang.program.interactive import InteractiveProgram
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.declarations import Handler
from koi_lang.runtime.schema import signature_text, type_text

MAX_FIELDS, MAX_DEPTH = 12, 3


def describe(text: str, program: InteractiveProgram) -> str:
    """What a name or an expression stands for; nothing is carried out. Raises CompileError or UsageError."""
    if not text:
        raise UsageError("`:type` names nothing", help="Write `:type EXPRESSION`, or the name of an agent.")
    agents = {agent.about.name: agent for agent in declarations.agents_of(program.module)}
    name, _, event = text.partition(".")
    agent = None if text in program.variables else agents.get(name)
    if agent is not None and not event:
        return _agent_text(agent)
    if agent is not None and event in agent.about.handlers:
        return f"{text}{_signature(agent.about.handlers[event])}"
    if text in program.variables:
        return shape(program.variables[text])
    return program.declaration_of(text) or program.kind_of(text)


def _agent_text(agent: type[Agent]) -> str:
    about = agent.about
    lines = [f"agent {about.name} : {about.role().name}"]
    lines += [f"  on {handler.event}{_signature(handler)}" for handler in about.handlers.values()]
    return "\n".join(lines)


def _signature(handler: Handler) -> str:
    given = signature_text(handler.schema) or (type_text(handler.schema) if handler.schema else "")
    result = f": {type_text(handler.result.schema)}" if handler.result is not None else ""
    return f"({given}){result}"


def shape(value: Any, depth: int = 0) -> str:
    """The type that a value has, as the language writes types."""
    if value is None or value is undefined:
        return "null" if value is None else "undefined"
    for kind, name in ((bool, "boolean"), (int | float, "number"), (str, "string")):
        if isinstance(value, kind):
            return name
    if is_array(value):
        kinds = list(dict.fromkeys(shape(item, depth + 1) for item in list(value)[:MAX_FIELDS]))
        return f"{kinds[0]}[]" if len(kinds) == 1 else f"({' | '.join(kinds)})[]" if kinds else "any[]"
    if is_record(value) and isinstance(value, Mapping):
        if depth >= MAX_DEPTH:
            return "{ … }"
        fields = [f"{name}: {shape(item, depth + 1)}" for name, item in list(value.items())[:MAX_FIELDS]]
        more = ["…"] if len(value) > MAX_FIELDS else []
        return f"{{ {', '.join([*fields, *more])} }}" if fields else "{}"
    return "function" if callable(value) else type(value).__name__

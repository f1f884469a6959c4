"""Agents, teams and skills to classes and functions of Python."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.codegen import py_ast as py
from koi_lang.compiler.codegen.emitter import Emitter
from koi_lang.compiler.codegen.expressions import expression
from koi_lang.compiler.codegen.functions import definition, parameters
from koi_lang.compiler.codegen.module_names import ModuleNames
from koi_lang.compiler.codegen.prompts import payload_names, playbook, template_emitter
from koi_lang.compiler.codegen.statements import body_statements, statements
from koi_lang.compiler.codegen.types import says_more_than_python, schema
from koi_lang.compiler.scope import python_name
from koi_lang.source import Span


def lone_expression(node: n.Expression, file: Analysis, names: ModuleNames) -> ast.expr:
    """An expression outside of functions: an initial value, an option, the argument of a `run`.

    Functions in it that need a definition are left in `names.definitions`.
    """
    e = emitter(node, file, names, has_agent=False)
    e.is_lone = True
    result = expression(node, e)
    names.definitions += e.pending
    return result


def emitter(root: n.Node, file: Analysis, names: ModuleNames, *, has_agent: bool) -> Emitter:
    """An emitter for a root of code."""
    resolution = file.code[root]
    servers = file.servers.get(root, frozenset())
    return Emitter(file.unit.source, names, resolution, resolution.functions[root], has_agent, servers=servers)


def place(span: Span, file: Analysis) -> py.At:
    """Where a span stands, outside of code."""
    line, column = file.unit.source.python_position(span.start)
    end_line, end_column = file.unit.source.python_position(span.end)
    return {"lineno": line, "col_offset": column, "end_lineno": end_line, "end_col_offset": end_column}


# ---------------------------------------------------------------- agents


def agent(node: n.Agent, file: Analysis, names: ModuleNames, python: str) -> ast.ClassDef:
    """`class Name(koi.Agent, role=…, …)` with a method a handler."""
    at = place(node.span, file)
    keywords = [ast.keyword(key, value, **at) for key, value in _keywords(node, file, names, at).items()]
    body: list[ast.stmt] = []
    description = next((item.text.value for item in node.items if isinstance(item, n.Affordance)), None)
    if description is not None:
        body.append(py.evaluate(py.constant(description, at), at))
    body += [handler(item, node.name.name, file, names) for item in node.items if isinstance(item, n.Handler)]
    return ast.ClassDef(python, [py.koi("Agent", at)], keywords, body or [ast.Pass(**at)], [], **at)


def _keywords(node: n.Agent, file: Analysis, names: ModuleNames, at: py.At) -> dict[str, ast.expr]:  # noqa: C901 -- a row a keyword
    """What an agent is apart from its handlers; references are made late, so that cycles are harmless."""
    result: dict[str, ast.expr] = {"koi_name": py.constant(node.name.name, at)}
    role = names.table.find("role", node.role.name)
    if role is not None:
        result["role"] = py.thunk(names.reference(role, at), at)
    for kind, keyword in (("team", "teams"), ("skill", "skills"), ("guide", "guides"), ("mcp", "mcps")):
        used = _emit_uses(node, kind, names, at)
        if used:
            result[keyword] = py.thunk(ast.List(used, py.LOAD, **at), at)
    for kind, keyword in (("instructions", "instructions"), ("skills", "offers_skills"), ("memory", "reads_notes")):
        if any(isinstance(item, n.Uses) and item.kind == kind for item in node.items):
            result[keyword] = py.constant(True, at)
    for item in node.items:
        match item:
            case n.State():
                result["state"] = _state(item, file, names)
                declared = {
                    field.name.name: schema(field.type, file.table, file.unit.source.text) for field in item.fields
                }
                if types := {name: of_field for name, of_field in declared.items() if of_field}:
                    result["state_types"] = plain_data(types, at)
            case n.Amnesia(value=True):
                result["amnesia"] = py.constant(True, at)
            case n.Examples(texts=texts):
                result["examples"] = plain_data([text.value for text in texts], at)
            case n.ExposeMcp(items=exposed):
                result["exposed"] = py.constant(True, at)
                for each in exposed:
                    _add(result, f"{each.kind}s", each.target.name, py.constant(each.handler.name, at), at)
            case n.ExposeA2a():
                result["exposed_a2a"] = py.constant(True, at)
            case n.Llm():
                _add(result, "llm", item.name, py.thunk(lone_expression(item.options, file, names), at), at)
            case n.Resilience():
                _add(result, "resilience", item.name.value, _resilience(item, file, names), at)
            case n.Budget():
                result["budget"] = _limits(item, at)
            case n.Phases():
                result["phases"] = plain_data(_phase_data(item), at)
            case n.Transitions():
                text = file.unit.source.text
                clauses = [
                    [[[event.name, event.argument_text] for event in clause.events], _step_data(clause.steps, text)]
                    for clause in item.transitions
                ]
                result["transitions"] = plain_data(clauses, at)
            case n.NamedPlaybook():
                _add(result, "playbooks", item.name.value, py.constant(item.text.value, at), at)
    return result


def _phase_data(node: n.Phases) -> Any:
    """The phases of an agent by their names."""
    return {
        phase.name.name: {
            "can": [name.name for name in phase.allowed],
            "cannot": [name.name for name in phase.denied],
            "settings": {name.name: value.name for name, value in phase.settings},
        }
        for phase in node.phases
    }


def _step_data(steps: Sequence[n.Node], text: str) -> list[Any]:
    """The steps of a clause: the name and the argument of a call, or a condition as text with both of its blocks."""
    data: list[Any] = []
    for step in steps:
        match step:
            case n.TransitionCall():
                data.append([step.function.name, step.argument.name])
            case n.TransitionChoice():
                condition = text[step.condition.start : step.condition.end]
                data.append([condition, _step_data(step.then, text), _step_data(step.otherwise, text)])
    return data


def _limits(node: n.Budget, at: py.At) -> ast.expr:
    """A budget as a dictionary of its limits."""
    return plain_data({name.name: value for name, value in node.limits}, at)


def _emit_uses(node: n.Agent, kind: str, names: ModuleNames, at: py.At) -> list[ast.expr]:
    """What an agent uses of a kind; `guide` stands for skills in files, which are used as others are."""
    written = "skill" if kind == "guide" else kind
    uses = [item for item in node.items if isinstance(item, n.Uses) and item.kind == written]
    used = [name for item in uses for name in item.names]
    if kind == "mcp":
        granted = {id(each.server): each.patterns for item in uses for each in item.tools}
        return [_restrict_server(_server(name.name, names, at), granted.get(id(name), ()), at) for name in used]
    symbols = [names.table.find(written, name.name) for name in used]  # type: ignore[arg-type]
    meant = [each for each in symbols if each is not None and (each.imported is not None) == (kind == "guide")]
    return [names.reference(symbol, at) for symbol in meant]


def _server(name: str, names: ModuleNames, at: py.At) -> ast.expr:
    """A declared MCP server, or `koi.Mcp("name")` for one that files beside the program describe."""
    symbol = names.table.find("mcp", name)
    return py.helper("Mcp", [py.constant(name, at)], at) if symbol is None else names.reference(symbol, at)


def _restrict_server(server: ast.expr, patterns: Sequence[n.Text], at: py.At) -> ast.expr:
    """`server.only("read_*")` where only some of its tools are granted."""
    if not patterns:
        return server
    only = ast.Attribute(server, "only", py.LOAD, **at)
    return ast.Call(only, [py.constant(pattern.value, at) for pattern in patterns], [], **at)


def _add(result: dict[str, ast.expr], keyword: str, key: str, value: ast.expr, at: py.At) -> None:
    """Add an entry to a keyword that is a dictionary."""
    entries = result.setdefault(keyword, ast.Dict([], [], **at))
    assert isinstance(entries, ast.Dict)
    entries.keys.append(py.constant(key, at))
    entries.values.append(value)


def _state(node: n.State, file: Analysis, names: ModuleNames) -> ast.expr:
    """`lambda: {…}`: every run begins with fresh values."""
    at = place(node.span, file)
    keys: list[ast.expr | None] = []
    values: list[ast.expr] = []
    for field in node.fields:
        here = place(field.span, file)
        keys.append(py.constant(field.name.name, here))
        values.append(py.constant(None, here) if field.value is None else lone_expression(field.value, file, names))
    return py.thunk(ast.Dict(keys, values, **at), at)


def _resilience(node: n.Resilience, file: Analysis, names: ModuleNames) -> ast.expr:
    at = place(node.span, file)
    keys: list[ast.expr | None] = [py.constant(name.name, at) for name, _ in node.properties]
    return py.thunk(ast.Dict(keys, [_property(value, file, names) for _, value in node.properties], **at), at)


def _property(value: n.Expression, file: Analysis, names: ModuleNames) -> ast.expr:
    """A value of a `resilience` block; a bare word that names nothing is a text, as in `backoff = exponential`."""
    if isinstance(value, n.Name) and value in file.code[value].unknown:
        return py.constant(value.name, place(value.span, file))
    return lone_expression(value, file, names)


# ---------------------------------------------------------------- handlers


def handler(node: n.Handler, agent: str, file: Analysis, names: ModuleNames) -> ast.AsyncFunctionDef:
    """`@koi.on("event") async def event(this, args)`."""
    at = place(node.span, file)
    e = emitter(node, file, names, has_agent=True)
    e.result_type = _declare_result(node, agent, file, names)
    arguments, defaults, rest, prologue = parameters(node.parameters, e)
    if not arguments and rest is None:
        arguments = [ast.arg("args", **at)]
    first = ast.arg("this", **at)
    # Only the first parameter is always given something.
    missing = [py.koi("undefined", at)] * (len(arguments) - len(defaults) - 1)
    listed = py.parameter_list([first, *arguments], [*missing, *defaults], rest, (), at)
    playbook = node.playbook
    if playbook is None:
        body = [*e.pending, *prologue, *body_statements(node.body, e)]
    else:
        body = [_emit_playbook(node, playbook, file, names, arguments[0].arg)]
    result = py.function(python_name(node.name.name.replace(" ", "_")), listed, body, at, is_async=True)
    assert isinstance(result, ast.AsyncFunctionDef)
    result.decorator_list = [_on(node, playbook, file, names, e.result_type)]
    return result


def _declare_result(node: n.Handler, agent: str, file: Analysis, names: ModuleNames) -> str:
    """`Agent_event_result = koi.ResultType("Agent.event", {…})` before the agent; gives that name, empty for none."""
    declared = schema(node.returns, file.table, file.unit.source.text)
    if node.returns is None or not declared:
        return ""
    at = place(node.returns.span, file)
    name = names.fresh(f"{agent}_{node.name.name.replace(' ', '_')}_result")
    arguments = [py.constant(f"{agent}.{node.name.name}", at), plain_data(declared, at)]
    names.definitions.append(py.assign(name, py.helper("ResultType", arguments, at), at))
    return name


def _emit_playbook(node: n.Handler, written: n.Playbook, file: Analysis, names: ModuleNames, payload: str) -> ast.stmt:
    """`return await koi.playbook(this, "event", args, lambda scope: […])`."""
    at = place(written.span, file)
    e = template_emitter(file.unit.source, names, payload_names(node.parameters))
    arguments = [py.load("this", at), py.constant(node.name.name, at), py.load(payload, at), playbook(written, e)]
    return ast.Return(ast.Await(py.helper("playbook", arguments, at), **at), **at)


def _on(node: n.Handler, playbook: n.Playbook | None, file: Analysis, names: ModuleNames, result_type: str) -> ast.expr:
    """The decorator that names the event and says what callers must know."""
    at = place(node.name.span, file)
    description = next((item.text for item in node.body.statements if isinstance(item, n.Affordance)), None)
    first = node.parameters[0].type if node.parameters else None
    declared = schema(first, file.table, file.unit.source.text)
    return py.call(
        py.koi("on", at),
        [py.constant(node.name.name, at)],
        at,
        affordance=None if description is None else py.constant(description.value, at),
        schema=plain_data(declared, at) if declared else None,
        result=py.load(result_type, at) if result_type else None,
        private=py.constant(True, at) if node.private else None,
        background=py.constant(True, at) if node.is_async else None,
        playbook=py.constant(True, at) if playbook else None,
        acts=py.constant(False, at) if playbook and not names.asks_for_action(playbook) else None,
        answers=py.constant(True, at) if playbook and playbook.answers else None,
        budget=_limits(playbook.budget, at) if playbook and playbook.budget else None,
        guard=py.constant(node.guard, at) if node.guard else None,
        guarded=py.constant(node.guarded, at) if node.guarded else None,
    )


def plain_data(value: Any, at: py.At) -> ast.expr:
    """Plain data as Python syntax."""
    match value:
        case dict():
            keys: list[ast.expr | None] = [py.constant(key, at) for key in value]
            return ast.Dict(keys, [plain_data(item, at) for item in value.values()], **at)
        case list():
            return ast.List([plain_data(item, at) for item in value], py.LOAD, **at)
    return py.constant(value, at)


# ---------------------------------------------------------------- teams and skills


def team(node: n.Team, file: Analysis, names: ModuleNames) -> ast.expr:
    """`koi.Team("Name", lambda: {key: member})`."""
    at = place(node.span, file)
    keys: list[ast.expr | None] = []
    values: list[ast.expr] = []
    for member in node.members:
        here = place(member.span, file)
        keys.append(py.constant(member.key.name, here))
        values.append(_member(member, names, here))
    members = py.thunk(ast.Dict(keys, values, **at), at)
    return py.helper("Team", [py.constant(node.name.name, at), members], at)


def _member(member: n.TeamMember, names: ModuleNames, at: py.At) -> ast.expr:
    value = member.value
    if member.tool is not None:
        server, tool = member.tool
        return py.helper("tool", [_server(server, names, at), py.constant(tool, at)], at)
    if member.remote is not None:
        return py.helper("remote_agent", [py.constant(member.remote, at)], at)
    assert not isinstance(value, n.McpAddress | n.A2aAddress)
    if isinstance(value, n.Text):
        return py.constant(value.value, at)
    symbol = names.table.find("agent", value.name)
    return py.constant(value.name, at) if symbol is None else names.reference(symbol, at)


def skill(node: n.Skill, file: Analysis, names: ModuleNames, python: str) -> list[ast.stmt]:
    """A function whose variables are those of the skill, decorated to become the skill."""
    at = place(node.span, file)
    e = emitter(node, file, names, has_agent=False)
    body: list[ast.stmt] = []
    exported: list[str] = []
    description = next((item.text.value for item in node.items if isinstance(item, n.Affordance)), "")
    if description:
        body.append(py.evaluate(py.constant(description, at), at))
    functions = [item for item in node.items if isinstance(item, n.Function)]
    for function in functions:
        body.append(_skill_function(function, node, e))
        if function.exported and function.name is not None:
            exported.append(function.name)
    body += statements(tuple(item for item in node.items if isinstance(item, n.Variable)), e)
    body.append(ast.Return(_exports(functions, e, at), **at))
    arguments = py.parameter_list([], (), None, (), at)
    result = py.function(python, arguments, body, at)
    result.decorator_list = [py.helper("skill", [py.constant(node.name.name, at)], at)]
    return [result, *(_top_level(name, python, at) for name in exported)]


def _skill_function(node: n.Function, skill: n.Skill, e: Emitter) -> ast.stmt:
    variable, permission = e.variable(node), skill.permission_of(node)
    assert variable is not None
    result = definition(node, variable.python, e, typed=True)
    description = _description(node)
    if description is not None:
        at = e.at(description.span)
        result.body.insert(0, py.evaluate(py.constant(description.value, at), at))
    if node.exported and permission is not None:
        at = e.at(node.span)
        asked = [py.constant(permission.name, at), py.constant(f"`{skill.name.name}.{node.name}`", at)]
        result.body.insert(0 if description is None else 1, py.evaluate(py.helper("require_function", asked, at), at))
    if node.exported:
        of_export = [py.koi("export", e.at(node.span)), *_permission(node, permission, e), *_describe_types(node, e)]
        result.decorator_list = [*of_export, *result.decorator_list]
    return result


def _permission(node: n.Function, permission: n.Name | None, e: Emitter) -> list[ast.expr]:
    """`koi.needs("write")` for a function that needs a permission."""
    at = e.at(node.span)
    return [] if permission is None else [py.helper("needs", [py.constant(permission.name, at)], at)]


def _describe_types(node: n.Function, e: Emitter) -> list[ast.expr]:
    """`koi.with_types(parameters={…}, result={…}, …)` for types that say more than annotations of Python."""
    table, at = e.names.table, e.at(node.span)
    text = e.source.text
    parameters = {
        name: each.type
        for each in node.parameters
        if isinstance(each.pattern, n.Binding)
        for name in [each.pattern.name]
    }
    described = {
        name: schema(type, table, text) for name, type in parameters.items() if says_more_than_python(type, table)
    }
    result = schema(node.returns, table, text) if says_more_than_python(node.returns, table) else {}
    if not described and not result:
        return []
    declared = {name: type for each in (*described.values(), result) for name, type in each.pop("$defs", {}).items()}
    fields = {"parameters": described, "result": result, "declared": declared}
    keywords = {name: plain_data(field, at) if field else None for name, field in fields.items()}
    return [py.call(py.koi("with_types", at), [], at, **keywords)]


def _description(node: n.Function) -> n.Text | None:
    """What a function says of itself, as a handler does: `affordance "…"` in its body."""
    steps = node.body.statements if isinstance(node.body, n.Block) else ()
    return next((step.text for step in steps if isinstance(step, n.Affordance)), None)


def _exports(functions: list[n.Function], e: Emitter, at: py.At) -> ast.expr:
    exported = [function for function in functions if function.exported]
    variables = [e.variable(function) for function in exported]
    keys: list[ast.expr | None] = [py.constant(function.name, at) for function in exported]
    return ast.Dict(keys, [py.load(variable.python, at) for variable in variables if variable], **at)


def _top_level(name: str, skill: str, at: py.At) -> ast.stmt:
    """`add = MathOps["add"]`: exported functions are names of the module."""
    value = ast.Subscript(py.load(skill, at), py.constant(name, at), py.LOAD, **at)
    return py.assign(python_name(name), value, at)

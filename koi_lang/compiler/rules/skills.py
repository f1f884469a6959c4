"""Calls of skills and of their functions: names that are not there, and arguments that do not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.kinds import WORDS, kind_of, kind_of_type
from koi_lang.compiler.rules.payloads import TypedPlace, misspelt_fields, value_problems
from koi_lang.compiler.rules.program import AnalysedProgram, attempts_of
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.rules.tests import agent_of
from koi_lang.compiler.scope import ScopeVariable
from koi_lang.compiler.walk import Enclosing
from koi_lang.diagnostics import nearest
from koi_lang.source import Span

# Types of parameters that may well be left out.
OPEN_TYPES = frozenset({"any", "json", "unknown", "undefined", "null", "void"})


@dataclass(frozen=True, slots=True)
class Called:
    """A call of a function whose declaration is known, with where its name stands."""

    call: n.Call
    function: n.Function
    arguments: Sequence[n.Expression]
    place: Span
    around: Enclosing


@dataclass(frozen=True, slots=True)
class SkillCall:
    """`callSkill(skill, …arguments)` of a known agent; `skills` are those that the agent uses, by name."""

    name: n.Text
    call: n.Call
    arguments: Sequence[n.Expression]
    agent: n.Agent
    skills: dict[str, n.Skill]
    around: Enclosing


@rule("E0244", "error")
def unknown_in_skill(file: Analysis, report: Report) -> None:
    """`callSkill` names a skill that the agent does not use, or a function that the skill does not export.

    The call fails when the program gets there.

    Wrong:

        skill Sums { export function add(a: number, b: number): number { return a + b } }
        role Worker { can execute }
        agent Clerk : Worker { uses skill Sums  on sum(args) { return await this.callSkill("Sums", "ad", 1, 2) } }

    Right:

        skill Sums { export function add(a: number, b: number): number { return a + b } }
        role Worker { can execute }
        agent Clerk : Worker { uses skill Sums  on sum(args) { return await this.callSkill("Sums", "add", 1, 2) } }
    """
    for call in skill_calls(file, report.program):
        skill = call.skills.get(call.name.value)
        if skill is None:
            near = nearest(call.name.value, call.skills)
            agent, wanted = call.agent.name.name, call.name.value
            help = f"did you mean `{near}`?" if near else f"write `uses skill {wanted}` in `{agent}`."
            owner, _, function = wanted.partition(".")
            help = f'write `callSkill("{owner}", "{function}", …)`.' if owner in call.skills and function else help
            message = f"`{agent}` does not use a skill `{wanted}`"
            report.add(call.name.span, message, help=help, fixes=report.replacement(report.inside(call.name), near))
            continue
        first, known = (call.arguments[0] if call.arguments else None), _exported_functions(skill)
        if isinstance(first, n.Text) and first.value not in known and len(call.arguments) > 1:
            near = nearest(first.value, known)
            listed = ", ".join(f"`{name}`" for name in known)
            help = f"did you mean `{near}`?" if near else f"it exports {listed}." if known else "it exports none."
            message, fixes = (
                f"the skill `{call.name.value}` has no function `{first.value}`",
                report.replacement(report.inside(first), near),
            )
            report.add(first.span, message, help=help, fixes=fixes)


@rule("E0245", "warning")
def wrong_arguments(file: Analysis, report: Report) -> None:
    """A function of a skill is called with too many arguments, too few, or one of another kind than it declares.

    What is too much is dropped, and what is missing is `undefined`. Only parameters that have a type, and neither a
    default nor a `?`, must be given. A field that the type lacks is told where it looks like one that is left out.
    Nothing is said in a `try`, where the failure may be expected.

    Wrong:

        skill Sums { export function add(a: number, b: number): number { return a + b } }
        role Worker { can execute }
        agent Clerk : Worker { on sum(args) { return add(1) } }

    Right:

        skill Sums { export function add(a: number, b: number): number { return a + b } }
        role Worker { can execute }
        agent Clerk : Worker { on sum(args) { return add(1, 2) } }
    """
    attempts = attempts_of(file)
    for call in report.program.for_file(find_calls, file):
        if any(attempt.start <= call.place.start < attempt.end for attempt in attempts):
            continue
        parameters, name = call.function.parameters, call.function.name
        if any(isinstance(argument, n.Spread) for argument in call.arguments):
            continue
        needed = max((index + 1 for index, each in enumerate(parameters) if _must_be_given(each)), default=0)
        most = None if any(each.rest for each in parameters) else len(parameters)
        if len(call.arguments) < needed or (most is not None and len(call.arguments) > most):
            takes = _number(needed, most)
            written = ", ".join(_source(each) for each in parameters)
            message = f"`{name}` takes {takes}, and gets {len(call.arguments) or 'none'}"
            report.add(call.place, message, help=f"its parameters are ({written}).")
            continue
        for parameter, argument in zip(parameters, call.arguments, strict=False):
            kind, wanted = kind_of(argument, call.around, file, report.program), kind_of_type(parameter.type)
            if kind is not None and wanted not in (None, "null", kind) and not parameter.rest:
                message = f"`{_name(parameter)}` of `{name}` is {WORDS[wanted]}, and gets {WORDS[kind]}"
                report.add(argument.span, message, help=f"give it {WORDS[wanted]}.")
                continue
            if parameter.type is None or not isinstance(argument, n.Object):
                continue
            place = TypedPlace(f"`{_name(parameter)}`", str(name), "arguments", argument.span, call.around)
            problems = value_problems(argument, parameter.type, place, file, report.program)
            for span, message, help in (*problems, *misspelt_fields(argument, parameter.type, str(name), file)):
                report.add(span, message, help=help)


def _number(needed: int, most: int | None) -> str:
    """How many arguments a function takes."""
    if most is None or needed < most:
        return f"at least {needed} arguments" if most is None else f"{needed} to {most} arguments"
    return "no arguments" if most == 0 else "one argument" if most == 1 else f"{most} arguments"


def skill_calls(file: Analysis, program: AnalysedProgram) -> Iterator[SkillCall]:
    """The calls of `callSkill` that name a skill, of agents that are known."""
    for call, around in file.index.of(n.Call):
        callee = call.callee
        if not isinstance(callee, n.Member) or callee.name != "callSkill" or not call.arguments:
            continue
        symbol, name = agent_of(callee.object, around, file), call.arguments[0]
        if symbol is None or not isinstance(symbol.node, n.Agent) or not isinstance(name, n.Text):
            continue
        home = program.home(symbol)
        uses = (item for item in symbol.node.items if isinstance(item, n.Uses) and item.kind == "skill")
        found = [home.table.find("skill", used.name) for item in uses for used in item.names]
        skills = {each.name: each.node for each in found if each is not None and isinstance(each.node, n.Skill)}
        yield SkillCall(name, call, call.arguments[1:], symbol.node, skills, around)


def find_calls(file: Analysis, program: AnalysedProgram) -> list[Called]:
    """Every call of a function of a skill by its name, and those with `callSkill` that name one."""
    return [*_calls_by_name(file, program), *_calls_by_skill(file, program)]


def _calls_by_name(file: Analysis, program: AnalysedProgram) -> Iterator[Called]:
    local = program.for_file(_functions, file)
    for call, around in file.index.of(n.Call):
        if isinstance(call.callee, n.Name) and not call.optional:
            function = _function(call.callee, around, file, local)
            if function is not None:
                yield Called(call, function, call.arguments, call.callee.span, around)


def _calls_by_skill(file: Analysis, program: AnalysedProgram) -> Iterator[Called]:
    for each in skill_calls(file, program):
        first = each.arguments[0] if each.arguments else None
        skill = each.skills.get(each.name.value)
        function = (
            _exported_functions(skill).get(first.value) if skill is not None and isinstance(first, n.Text) else None
        )
        if function is not None and first is not None:
            yield Called(each.call, function, each.arguments[1:], first.span, each.around)


def _function(
    name: n.Name, around: Enclosing, file: Analysis, local: dict[ScopeVariable, n.Function]
) -> n.Function | None:
    """The function that a name in code stands for."""
    resolution = None if around.root is None else file.code.get(around.root)
    variable = None if resolution is None else resolution.variables.get(name)
    if variable is not None:
        return None if variable.reassigned else local.get(variable)
    symbol = file.table.find("function", name.name)
    return symbol.node if symbol is not None and isinstance(symbol.node, n.Function) else None


def _functions(file: Analysis, _: AnalysedProgram) -> dict[ScopeVariable, n.Function]:
    """The functions that are declared under their names, by the variables that they become."""
    found: dict[ScopeVariable, n.Function] = {}
    for function, around in file.index.of(n.Function):
        roots = [root for root in (around.root, function) if root is not None]
        for variables in (file.code[root].variables for root in roots if root in file.code):
            if function in variables:
                found[variables[function]] = function
    return found


def _exported_functions(skill: n.Skill) -> dict[str, n.Function]:
    functions = (item for item in skill.items if isinstance(item, n.Function) and item.exported)
    return {function.name: function for function in functions if function.name is not None}


def _must_be_given(parameter: n.Parameter) -> bool:
    if parameter.type is None or parameter.default is not None or parameter.optional or parameter.rest:
        return False
    parts = parameter.type.arguments if parameter.type.name == "union" else (parameter.type,)
    return all(part.name.lower() not in OPEN_TYPES and part.text not in ("null", "undefined") for part in parts)


def _name(parameter: n.Parameter) -> str:
    return parameter.pattern.name if isinstance(parameter.pattern, n.Binding) else "…"


def _source(parameter: n.Parameter) -> str:
    """A parameter as messages show it."""
    rest, optional = "..." * parameter.rest, "?" * (parameter.optional or parameter.default is not None)
    type = "" if parameter.type is None else f": {' '.join(parameter.type.text.split())}"
    return f"{rest}{_name(parameter)}{optional}{type}"

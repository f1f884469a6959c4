"""Lists that are asked for their indexes where their items are meant."""

from __future__ import annotations

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.kinds import kind_of
from koi_lang.compiler.rules.members import OF_TEXTS
from koi_lang.compiler.rules.program import AnalysedProgram, variable_of
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.scope import ScopeVariable
from koi_lang.compiler.walk import Enclosing
from koi_lang.source import Span

# What makes a number of the text that `in` gives.
NUMBERS = frozenset({"Number", "parseInt", "parseFloat"})


@rule("E0310", "warning")
def keys_of_list(file: Analysis, report: Report) -> None:
    """`in` is used with a list, whose keys are the texts `"0"`, `"1"` and so on.

    `for (const x of list)` visits the items, and `list.includes(x)` asks whether one of them is there. Nothing is said
    of loops that use the keys as indexes.

    Wrong:

        in handler(args: { names: string[] }): for (const x in args.names) { console.log(x) }

    Right:

        in handler(args: { names: string[] }): for (const x of args.names) { console.log(x) }
    """
    program = report.program
    for loop, around in file.index.of(n.ForEach):
        variable = variable_of(loop.pattern, around, file) if loop.over == "in" else None
        if variable is not None and variable not in program.for_file(_number_variables, file):
            is_list = kind_of(loop.iterable, around, file, program) == "array"
            if is_list or variable in program.for_file(_fields, file):
                help = f"write `for ({loop.kind} {variable.name} of …)` for the items."
                report.add(_word(loop, file), "`in` visits the keys, which are texts, and not the items", help=help)
    for operation, around in file.index.of(n.Operation):
        if operation.operators == ("in",):
            _check_operation(operation, around, file, report)


def _check_operation(operation: n.Operation, around: Enclosing, file: Analysis, report: Report) -> None:
    """Report `x in list` and `x in text`; a number is looked for in lists."""
    wanted, place = operation.operands
    kind = kind_of(place, around, file, report.program)
    is_number = kind_of(wanted, around, file, report.program) == "number" and isinstance(wanted, n.Literal)
    if kind in ("array", "string") or (is_number and kind is None):
        text = file.unit.source.text
        written = [" ".join(text[node.span.start : node.span.end].split()) for node in (place, wanted)]
        message = "`in` asks for a key, and not whether something is contained"
        span = Span(wanted.span.end, place.span.start)
        at = text.index("in", span.start, span.end)
        report.add(Span(at, at + 2), message, help=f"write `{written[0]}.includes({written[1]})`.")


def _number_variables(file: Analysis, _: AnalysedProgram) -> set[ScopeVariable | None]:
    """The variables that are used as indexes or computed with."""
    found = {variable_of(index.index, around, file) for index, around in file.index.of(n.Index)}
    for operation, around in file.index.of(n.Operation):
        found.update(variable_of(operand, around, file) for operand in operation.operands)
    for prefix, around in file.index.of(n.Prefix):
        found.add(variable_of(prefix.operand, around, file))
    for call, around in file.index.of(n.Call):
        if isinstance(call.callee, n.Name) and call.callee.name in NUMBERS:
            found.update(variable_of(argument, around, file) for argument in call.arguments)
    return found


def _fields(file: Analysis, _: AnalysedProgram) -> set[ScopeVariable | None]:
    """The variables that are asked for something that no text has."""
    return {
        variable_of(member.object, around, file)
        for member, around in file.index.of(n.Member)
        if member.name not in OF_TEXTS and not member.optional
    }


def _word(loop: n.ForEach, file: Analysis) -> Span:
    """The `in` of a loop."""
    start = loop.pattern.span.end
    at = start + file.unit.source.text[start : loop.iterable.span.start].lower().index("in")
    return Span(at, at + 2)

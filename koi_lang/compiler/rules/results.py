"""Types of values: results beside the types of their handlers, and what code reads and computes of values."""

from __future__ import annotations

import re
from collections.abc import Iterator

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.declared_types import choices_of
from koi_lang.compiler.rules.kinds import (
    WORDS,
    ValueTypes,
    given_patterns,
    kind_of,
    kind_of_type,
    type_given,
    value_types,
)
from koi_lang.compiler.rules.members import OF_ALL, OF_TEXTS
from koi_lang.compiler.rules.payloads import TypedPlace, value_problems
from koi_lang.compiler.rules.program import AnalysedProgram, is_named, variable_of
from koi_lang.compiler.rules.state import CHANGES
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.scope import ScopeVariable
from koi_lang.compiler.walk import Enclosing, everything
from koi_lang.diagnostics import MAX_NAMES, nearest
from koi_lang.source import Span

VERDICT = 'a guard returns `true`, or `{ allow: false, reason: "…" }`.'
# How much of a type messages show.
MAX_TYPE_CHARS = 60
# Types of which a handler that ends without a result gives a value.
KNOWN = frozenset({"string", "number", "int", "boolean", "bool"})
NOTHING = frozenset({"null", "undefined", "void", "any", "json", "unknown"})


@rule("E0249", "error")
def wrong_result(file: Analysis, report: Report) -> None:
    """A handler returns something that is not of the type it declares.

    The type of a result is checked where the handler ends, so every call that gets there would fail.

    Wrong:

        role Worker { can execute }
        agent Adder : Worker { on add(args: { a: number }): { sum: number } { return { total: args.a } } }
        run Adder.add({ a: 1 })

    Right:

        role Worker { can execute }
        agent Adder : Worker { on add(args: { a: number }): { sum: number } { return { sum: args.a } } }
        run Adder.add({ a: 1 })
    """
    for statement, around in file.index.of(n.Return):
        handler = around.function
        if not isinstance(handler, n.Handler) or handler.returns is None:
            continue
        if statement.value is None:
            if not _may_be_nothing(handler.returns, file):
                message = f"`{handler.name.name}` gives `{handler.returns.one_line}`, and this returns nothing"
                report.add(
                    statement.span,
                    message,
                    help=VERDICT if handler.guard else "return a value, or add `| null` to the type.",
                )
            continue
        place = TypedPlace("the result", handler.name.name, "result", statement.value.span, around)
        for span, message, help in value_problems(statement.value, handler.returns, place, file, report.program):
            others = [report.place(handler.returns.span, "the type of the result")]
            report.add(span, message, others=others, help=VERDICT if handler.guard else help)


@rule("E0250", "warning")
def missing_result(file: Analysis, report: Report) -> None:
    """A handler declares what it gives, and may end without a `return`.

    Whoever calls it gets an error then.

    Wrong:

        role Worker { can execute }
        agent Sizes : Worker { on size(n: number): string { if (n > 9) return "large" } }
        run Sizes.size(10)

    Right:

        role Worker { can execute }
        agent Sizes : Worker { on size(n: number): string { return n > 9 ? "large" : "small" } }
        run Sizes.size(10)
    """
    for handler, _ in file.index.of(n.Handler):
        is_playbook = any(isinstance(statement, n.Playbook) for statement in handler.body.statements)
        if handler.returns is None or _may_be_nothing(handler.returns, file) or is_playbook:
            continue
        if _falls_through(handler.body):
            message = f"`{handler.name.name}` gives `{handler.returns.one_line}`, and may end without a `return`"
            help = "return a value at the end, or add `| null` to the type."
            last = handler.body.statements[-1] if handler.body.statements else None
            if isinstance(last, n.ExpressionStatement) and isinstance(last.expression, n.Operation | n.Name | n.Member):
                help = f"write `return {' '.join(file.unit.source.text[slice(*last.span)].split())}`."
            report.add(handler.name.span, message, help=VERDICT if handler.guard else help)


@rule("E0251", "warning")
def undeclared_field(file: Analysis, report: Report) -> None:
    """A field is read that the declared type of a value does not have.

    The fields of a value are known where its type is declared: for a parameter, a variable, a field of the state, the
    result of a function, and the result of a handler that is waited for, also with `handle` and by a `send` whose
    members all declare it. A payload may have more fields than its type; those that code reads belong into the type,
    so that models and other programs see them. Nothing is said of fields that code adds or asks for with `in`.

    Wrong:

        role Worker { can execute }
        agent Judge : Worker {
          on judge(args: { text: string }): { verdict: string } { return { verdict: args.text } }
          on start(args: Json) { const { verdit } = await this.judge({ text: "a" })  console.log(verdit) }
        }
        run Judge.start({})

    Right:

        role Worker { can execute }
        agent Judge : Worker {
          on judge(args: { text: string }): { verdict: string } { return { verdict: args.text } }
          on start(args: Json) { const { verdict } = await this.judge({ text: "a" })  console.log(verdict) }
        }
        run Judge.start({})
    """
    types = report.program.for_file(value_types, file)
    if not types.given and not types.variables:
        return
    patterns = [each for pattern, _ in file.index.of(n.ObjectPattern) for each in pattern.elements]
    shorthands = {each.span.start for each in patterns if each.pattern.span.start == each.span.start}
    for span, name, type in sorted(_read_fields(file, types, report.program), key=lambda each: each[0]):
        known = list(types.fields_of(type) or ())
        near, listed = nearest(name, known), ", ".join(f"`{field}`" for field in known[:MAX_NAMES])
        listed, text = listed + ", …" * (len(known) > MAX_NAMES), type.one_line
        help = f"did you mean `{near}`?" if near else f"it has {listed}; declare `{name}?: …` if it may have that, too."
        shown = text if len(text) <= MAX_TYPE_CHARS else f"{text[:MAX_TYPE_CHARS].rpartition(',')[0]}, … }}"
        place = Span(span.start, span.start + len(name))
        fixes = report.replacement(place, f"{near}: {name}" if near and span.start in shorthands else near)
        report.add(span, f"`{shown}` has no field `{name}`", help=help, fixes=fixes)


def _read_fields(file: Analysis, types: ValueTypes, program: AnalysedProgram) -> Iterator[tuple[Span, str, n.Type]]:
    """Every field that is read, and neither declared nor added here: where, its name, and the type without it."""
    index = file.index
    added = set[str]().union(*(program.for_file(added_fields, each) for each in program.files))
    removed = {prefix.operand for prefix, _ in index.of(n.Prefix) if prefix.operator == "delete"}
    for member, around in reversed(index.of(n.Member)):
        type = types.type_of(member.object, around) if member.name not in OF_ALL and member not in removed else None
        fields = types.fields_of(type)
        if type is not None and fields is not None and member.name not in fields and member.name not in added:
            yield member.name_span, member.name, type
    for pattern, value, around in given_patterns(file):
        for span, name, without in _unknown_in(pattern, type_given(pattern, value, around, types), types):
            yield from [(span, name, without)] if name not in added else ()


def added_fields(file: Analysis, _: AnalysedProgram) -> set[str]:
    """The names of fields that code of a file sets, or asks for with `in`; asked for by `program.for_file`."""
    index = file.index
    adding: list[n.Node] = [each.target for kind in CHANGES for each, _ in index.of(kind)]
    adding += [call for call, _ in index.of(n.Call) if isinstance(call.callee, n.Member) and call.callee.name in ADDING]
    adding += [operation for operation, _ in index.of(n.Operation) if "in" in operation.operators]
    added = set[str]()
    for part in (part for node in adding for part in everything(node)):
        match part:
            case n.Member(name=name) | n.Text(value=name) | n.Property(key=str(name)):
                added.add(name)
    return added


def _unknown_in(pattern: n.Node, type: n.Type | None, types: ValueTypes) -> Iterator[tuple[Span, str, n.Type]]:
    if isinstance(pattern, n.ArrayPattern):
        for element in pattern.elements:
            yield from _unknown_in(element.pattern, types.item_type(type), types)
    fields = types.fields_of(type)
    if type is None or fields is None or not isinstance(pattern, n.ObjectPattern):
        return
    for element in pattern.elements:
        if isinstance(element.key, str) and element.key not in fields:
            yield element.span, element.key, type
        elif isinstance(element.key, str):
            yield from _unknown_in(element.pattern, types.field_type(type, element.key), types)


@rule("E0253", "warning")
def computed_text(file: Analysis, report: Report) -> None:
    """Code computes with a value that is declared as a text, a list or an object.

    `-`, `*`, `/`, `%` and `**` need numbers. A list or an object makes `NaN` of them, and so does a text that is no
    number. `+` joins texts: it adds nothing where a declared text follows a number. A text that is written down has no
    `%` and `*` as in Python, either: values stand in a text in backticks, and `repeat` repeats one.

    Wrong:

        in handler(args: { price: string, pieces: number }): return args.price * args.pieces

    Right:

        in handler(args: { price: number, pieces: number }): return args.price * args.pieces
    """
    types, source = report.program.for_file(value_types, file), file.unit.source.text
    used: list[tuple[str, n.Expression, Enclosing]] = []
    joined: list[n.Expression] = []
    for operation, around in file.index.of(n.Operation):
        operators, operands = operation.operators, operation.operands
        if len(operands) == 2 and (operators[0], getattr(operands[1], "value", None)) in CONVERSIONS:
            continue
        # In front of a later operator stands what was computed before it.
        is_format = operators[0] == "%" and isinstance(operands[0], n.Text)
        pairs = zip((operators[0], *operators), operands[:1] if is_format else operands, strict=False)
        used += [(operator, operand, around) for operator, operand in pairs]
        if set(operators) == {"+"}:
            first = next((each for each in operands if types.kind_of(each, around) != "number"), operands[0])
            joined += [first] if types.declared_kind(first, around) == "string" and first is not operands[0] else []
    for assignment, around in file.index.of(n.Assignment):
        if not isinstance(assignment.target, n.Pattern):
            used += [(assignment.operator, each, around) for each in (assignment.target, assignment.value)]
            is_sum = assignment.operator == "+" and types.is_number_at_first(assignment.target, around)
            joined += [assignment.value] if is_sum and types.declared_kind(assignment.value, around) == "string" else []
    for operand in joined:
        text = " ".join(source[slice(*operand.span)].split())
        help = f"write `Number({text})` to add it, or a text in backticks, with `${{…}}` for each value, to join them."
        report.add(operand.span, f"`{text}` is a text, so `+` joins it to a number, and adds nothing", help=help)
    for operator, operand, around in used:
        kind = types.kind_of(operand, around) if operator in ARITHMETIC else None
        text = operand.value if isinstance(operand, n.Text) else ""
        if (operator == "%" and "%" in text) or (operator == "*" and text.strip() and not re.search(r"\d", text)):
            help = (
                "write it in backticks, with `${…}` for each value." if operator == "%" else "write `text.repeat(n)`."
            )
            report.add(operand.span, f"`{operator}` computes with numbers, and this is a text", help=help)
        elif kind in ("array", "object") or (kind == "string" and types.declared_kind(operand, around)):
            text = " ".join(source[slice(*operand.span)].split())
            help = f"write `Number({text})`, or declare it as a number." if kind == "string" else "take a number of it."
            report.add(operand.span, f"`{text}` is {WORDS[kind]}, and `{operator}` computes with numbers", help=help)


@rule("E0259", "warning")
def comment_for_division(file: Analysis, report: Report) -> None:
    """A `//` that was meant as the division of Python begins a comment.

    It is seen behind a number, where nothing but a number or the name of one stands behind it.

    Wrong:

        in handler:
          const half = 10 // 3
          return half

    Right:

        in handler: const half = Math.floor(10 / 3)  return half
    """
    text = file.unit.source.text
    types = report.program.for_file(value_types, file)
    nodes = [*file.index.of(n.Declarator), *file.index.of(n.Assignment), *file.index.of(n.Return)]
    for node, around in nodes:
        value = node.value if isinstance(node, n.Declarator | n.Assignment | n.Return) else None
        found = DIVISOR.match(text, value.span.end) if value is not None else None
        if value is None or found is None or around.root not in file.code:
            continue
        # A unit, such as `500 // ms`, is no number, whatever has its name elsewhere.
        numbers = {
            variable.name
            for variable in file.code[around.root].variables.values()
            for first in variable.writes[:1]
            if isinstance(first, n.Declarator) and first.value is not None and first.span.end <= value.span.start
            if types.kind_of(first.value, around) == "number"
        }
        if types.kind_of(value, around) == "number" and (found[2][0].isdigit() or found[2] in numbers):
            divided = " ".join(text[slice(*value.span)].split())
            help = f"write `Math.floor({divided} / {found[2]})`."
            report.add(Span(*found.span(1)), "`//` begins a comment, and divides nothing", help=help)


@rule("E0260", "warning")
def result_of_callback(file: Analysis, report: Report) -> None:
    """A function for `map`, `filter`, `sort` and the like gives nothing, or numbers are sorted as texts.

    A function in braces gives what it returns. Without a function `sort` compares texts, so that 10 comes before 9.

    Wrong:

        in handler(args: { sizes: number[] }): return args.sizes.map(size => { size * 2 })

    Right:

        in handler(args: { sizes: number[] }): return args.sizes.map(size => size * 2)
    """
    types = report.program.for_file(value_types, file)
    leaving = [*file.index.of(n.Return), *file.index.of(n.Throw)]
    returning = {around.function for _, around in leaving}
    for call, around in file.index.of(n.Call):
        if not isinstance(call.callee, n.Member):
            continue
        name, first = call.callee.name, call.arguments[0] if call.arguments else None
        has_braces = isinstance(first, n.Function) and isinstance(first.body, n.Block) and not first.is_generator
        # Promises of nothing are waited for: `Promise.all(items.map(async item => { … }))`.
        is_waited_for = name == "map" and isinstance(first, n.Function) and first.is_async
        if name in NEEDING_RESULT and has_braces and not is_waited_for and first not in returning:
            message = f"this function gives `{name}` nothing"
            report.add(call.callee.name_span, message, help="write `return` in its braces, or leave these out.")
        if name == "map" and isinstance(first, n.Name) and first.name == "parseInt":
            message = "`parseInt` takes the index for the base of the number"
            report.add(first.span, message, help="write `.map(Number)`.")
        item = types.item_type(types.type_of(call.callee.object, around)) if name in ("sort", "toSorted") else None
        if first is None and kind_of_type(item) == "number":
            message = f"`{name}` compares texts, so that 10 comes before 9"
            report.add(call.callee.name_span, message, help=f"write `.{name}((a, b) => a - b)`.")


@rule("E0261", "warning")
def result_of_change(file: Analysis, report: Report) -> None:
    """What `forEach` gives is used, which is nothing, or a list is replaced by what `push` gives, which is its length.

    Wrong:

        in handler(args: { items: string[] }):
          let items = args.items
          items = items.push("tea")
          return items

    Right:

        in handler(args: { items: string[] }):
          const items = args.items
          items.push("tea")
          return items
    """
    text = file.unit.source.text
    given: list[tuple[n.Node, n.Expression | None]] = [
        (each.pattern, each.value) for each, _ in file.index.of(n.Declarator)
    ]
    given += [(each.target, each.value) for each, _ in file.index.of(n.Assignment) if not each.operator]
    for target, value in given:
        value = value.value if isinstance(value, n.Await) else value
        if not isinstance(value, n.Call) or not isinstance(value.callee, n.Member):
            continue
        name, owner = value.callee.name, text[slice(*value.callee.object.span)]
        if name == "forEach":
            report.add(value.callee.name_span, "`forEach` gives nothing", help="write `map` for a list of the results.")
        elif name in ("push", "unshift") and text[slice(*target.span)] == owner:
            message = f"`{name}` gives the length of the list"
            report.add(value.callee.name_span, message, help=f"write `{owner}.{name}(…)` alone: it changes the list.")


@rule("E0262", "warning")
def rounded_number(file: Analysis, report: Report) -> None:
    """A whole number is written down that no number of the language is, so that another one stands in its place.

    Numbers are doubles, as in JavaScript: whole ones are exact up to 2 ** 53. Identifiers of services are longer.

    Wrong:

        in handler: return 725653563933458433

    Right:

        in handler: return "725653563933458433"
    """
    for literal, _ in file.index.of(n.Literal):
        written = file.unit.source.text[slice(*literal.span)].replace("_", "")
        value = literal.value
        if not isinstance(value, int | float) or not MAX_SAFE_DIGITS < len(written) < MAX_DIGITS:
            continue
        if written.isdigit() and int(value) != int(written):
            message = f"this number is rounded to {int(value)}"
            report.add(literal.span, message, help=f'write it as a text: `"{written}"`.')


@rule("E0256", "warning")
def index_from_end(file: Analysis, report: Report) -> None:
    """A list or text is asked for an item with a negative index, which it does not have.

    Wrong:

        in handler(args: { names: string[] }): return args.names[-1]

    Right:

        in handler(args: { names: string[] }): return args.names.at(-1)
    """
    text = file.unit.source.text
    written = {assignment.target for assignment, _ in file.index.of(n.Assignment)}
    types = report.program.for_file(value_types, file)
    for node, around in file.index.of(n.Index):
        if types.kind_of(node.object, around) not in ("array", "string"):
            continue
        match node.index:
            case n.Prefix(operator="-", operand=n.Literal(value=int() as value)) if value and node not in written:
                owner = " ".join(text[slice(*node.object.span)].split())
                message = f"no item has the index `-{value}`, so this is `undefined`"
                report.add(node.index.span, message, help=f"write `{owner}.at(-{value})`, which counts from the end.")


@rule("E0255", "warning")
def never_equal(file: Analysis, report: Report) -> None:
    """Two values are compared whose types never agree, so that the answer is always the same.

    `===` converts nothing: a number is never `===` to a text. Nor is a value that may only be one of some texts equal
    to another one, also in a `switch`. `<` and `>` make a number of a text beside a number, and `NaN` of most. A list
    or object that is written down is equal to nothing, `NaN` not even to itself, and `0 < n < 9` compares `true`.

    Wrong:

        in handler(args: { state: "open" | "closed" }): return args.state === "opened"

    Right:

        in handler(args: { state: "open" | "closed" }): return args.state === "open"
    """
    types = report.program.for_file(value_types, file)
    # Tests compare by content.
    expected = {part for expect, _ in file.index.of(n.Expect) for part in everything(expect)}
    for operation, around in file.index.of(n.Operation):
        if operation in expected:
            continue
        if problem := _fixed_answer(operation, around, types):
            kind = next((each for each in operation.operands if isinstance(each, n.Text)), None)
            near = nearest(kind.value, TYPEOF) if kind is not None and "did you mean" in problem[1] else None
            fixes = report.replacement(report.inside(kind), near) if kind is not None else ()
            report.add(operation.span, problem[0], help=problem[1], fixes=fixes)
    compared: list[tuple[str, n.Expression, n.Expression, Enclosing]] = [
        (operation.operators[0], operation.operands[0], operation.operands[1], around)
        for operation, around in file.index.of(n.Operation)
        if operation.operators in COMPARISONS
    ]
    for switch, around in file.index.of(n.Switch):
        compared += [("===", switch.subject, each.test, around) for each in switch.clauses if each.test is not None]
    for operator, left, right, around in compared:
        is_first = types.declared_kind(left, around) is not None
        if not is_first and types.declared_kind(right, around) is None:
            continue
        shown = right if is_first else left
        if problem := _comparison_problem(operator, left, right, around, types):
            report.add(shown.span, problem[0], help=problem[1])
        wanted = types.literals_of(left if is_first else right, around)
        if operator in EQUALITIES and wanted and isinstance(shown, n.Text) and shown.value not in wanted:
            near = nearest(shown.value, map(str, wanted))
            listed = " or ".join(f"`{each}`" for each in wanted[:MAX_NAMES])
            help = f"did you mean `{near}`?" if near else f"it is {listed}."
            fixes = report.replacement(report.inside(shown), near)
            message = f"`{shown.value}` is not among the values that are declared"
            report.add(shown.span, message, help=help, fixes=fixes)


def _fixed_answer(operation: n.Operation, around: Enclosing, types: ValueTypes) -> tuple[str, str] | None:
    """Why a comparison says nothing of its operands, and the help; None where it may."""
    text = types.file.unit.source.text
    operators, operands = operation.operators, operation.operands
    shown = [" ".join(text[slice(*each.span)].split()) for each in operands]
    if len(operators) == 2 and all(operator in ORDERS for operator in operators):
        help = f"write `{shown[0]} {operators[0]} {shown[1]} && {shown[1]} {operators[1]} {shown[2]}`."
        return "the second comparison gets `true` or `false`", help
    if len(operators) != 1 or operators[0] not in EQUALITIES:
        return None
    sign = "!" if operators[0][0] == "!" else ""
    if all(isinstance(each, WRITTEN) or is_named(each, "NaN") for each in operands):
        return None
    for one, other, name in ((operands[0], operands[1], shown[0]), (operands[1], operands[0], shown[1])):
        match other:
            case n.Array(items=parts) | n.Object(properties=parts):
                size = f"{name}.length" if isinstance(other, n.Array) else f"Object.keys({name}).length"
                help = f"write `{size} {'>' if sign else '==='} 0`." if not parts else AS_JSON
                return "lists and objects are only equal to themselves", help
            case n.New():
                made = text[slice(*other.callee.span)]
                help = "compare what `.getTime()` gives of both." if made == "Date" else AS_JSON
                return f"a new `{made}` is only equal to itself", help
            case n.Name(name="NaN"):
                return "nothing is equal to `NaN`", f"write `{sign}Number.isNaN({name})`."
            case n.Text(value=kind) if isinstance(one, n.Prefix) and one.operator == "typeof" and kind not in TYPEOF:
                value = text[slice(*one.operand.span)]
                near = nearest(kind, TYPEOF)
                help = f"did you mean `{near}`?" if near else f"it is {', '.join(f'`{each}`' for each in TYPEOF)}."
                if kind in ("array", "list"):
                    help = f"write `{sign}Array.isArray({value})`."
                elif kind == "null":
                    help = f"write `{value} {operators[0]} null`."
                return f"`typeof` never gives `{kind}`", help
    return None


def _comparison_problem(
    operator: str, left: n.Expression, right: n.Expression, around: Enclosing, types: ValueTypes
) -> tuple[str, str] | None:
    """What is wrong with a comparison of values of different kinds, one of them declared, and the help."""
    kinds = types.kind_of(left, around), types.kind_of(right, around)
    is_order, is_numeric = operator not in EQUALITIES, set(kinds) == {"number", "string"}
    is_loose = operator in ("==", "!=") or (is_order and not is_numeric)
    if None in kinds or kinds[0] == kinds[1] or is_loose:
        return None
    words = " and ".join(WORDS[kind] for kind in kinds if kind is not None)
    help = "write `Number(…)` around the text." if is_numeric else "compare a part of it."
    return f"`{operator}` compares {words}" + ("" if is_order else ", which are never the same"), help


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


def _may_be_nothing(type: n.Type, file: Analysis) -> bool:
    """Whether a handler may end without a result; so it may where the type says nothing."""
    for choice in choices_of(type, file.table):
        is_known = choice.name in ("object", "Array", "literal") or choice.name.lower() in KNOWN
        if choice.name.lower() in NOTHING or not is_known:
            return True
    return False


def _falls_through(node: n.Statement) -> bool:
    """Whether what follows a statement is reached for sure where nothing is thrown; no loop is looked into."""
    match node:
        case n.Block():
            return all(map(_falls_through, node.statements))
        case n.Return() | n.Throw() | n.Break() | n.Continue() | n.While() | n.For() | n.Try():
            return False
        case n.If():
            branches = [body for _, body in node.branches]
            return node.otherwise is None or any(map(_falls_through, (*branches, node.otherwise)))
        case n.ExpressionStatement() | n.Variable() | n.FunctionStatement() | n.ForEach() | n.Affordance():
            return True
    return False


# Methods and functions that add fields to an object, or ask whether it has one.
ADDING = frozenset({"assign", "defineProperty", "hasOwn", "hasOwnProperty"})
AS_JSON = "compare the texts that `JSON.stringify` makes of both."
TYPEOF = ("string", "number", "boolean", "object", "function", "undefined")
ORDERS = frozenset({"<", ">", "<=", ">="})
DIVISOR = re.compile(r"[ \t]*(//[ \t]*(\d[\d.]*|[A-Za-z_]\w*(?:\.\w+)*))[ \t]*(?=\r?\n|$)")
NEEDING_RESULT = frozenset("map filter find some every flatMap reduce sort toSorted".split())
WRITTEN = (n.Array, n.Object, n.Literal, n.Text)
# Of whole numbers that are all exact, and of numbers that are no infinity.
MAX_SAFE_DIGITS, MAX_DIGITS = 15, 308
EQUALITIES = frozenset({"===", "!==", "==", "!="})
COMPARISONS = frozenset((operator,) for operator in (*EQUALITIES, "<", ">", "<=", ">="))
ARITHMETIC = frozenset({"-", "*", "/", "%", "**"})
# What makes a number of a text on purpose: `text * 1`.
CONVERSIONS = frozenset({("-", 0), ("*", 1), ("/", 1)})

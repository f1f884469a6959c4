"""Single expressions: comparisons, sums, calls and objects that give something else than they seem to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.kinds import WORDS, ValueTypes, kind_of, kind_of_type, value_types
from koi_lang.compiler.rules.members import OF_TEXTS
from koi_lang.compiler.rules.names import MEMBERS_OF_AGENTS
from koi_lang.compiler.rules.program import AnalysedProgram, handlers, is_named, is_variable, variable_of
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.scope import ScopeVariable
from koi_lang.compiler.walk import Enclosing, everything
from koi_lang.diagnostics import MAX_NAMES, nearest
from koi_lang.js.conversions import text as text_of
from koi_lang.js.errors import SyntaxErrorValue
from koi_lang.js.regex_translation import UNEVEN_LOOKBEHIND, compile_pattern
from koi_lang.source import Span

# What `this` has besides its handlers.
OF_AGENTS = MEMBERS_OF_AGENTS | {"state", "name", "role", "peers", "phase"}


# Functions that convert a value, and make an object of it with `new` in JavaScript.
WRAPPERS = ("Boolean", "Number", "String")
# What only agents are likely to have.
OF_AGENTS_ALONE = frozenset({"state", "handle", "callSkill", "callAction", "peers"})
# Of whole numbers that are all exact, and of numbers that are no infinity.
MAX_SAFE_DIGITS, MAX_DIGITS = 15, 308
# What makes a number of the text that `in` gives.
NUMBERS = frozenset({"Number", "parseInt", "parseFloat"})
AS_JSON = "compare the texts that `JSON.stringify` makes of both."
TYPEOF = ("string", "number", "boolean", "object", "function", "undefined")
ORDERS = frozenset({"<", ">", "<=", ">="})
DIVISOR = re.compile(r"[ \t]*(//[ \t]*(\d[\d.]*|[A-Za-z_]\w*(?:\.\w+)*))[ \t]*(?=\r?\n|$)")
NEEDING_RESULT = frozenset("map filter find some every flatMap reduce sort toSorted".split())
# Functions of `Object` that close an object in JavaScript.
CLOSING = frozenset({"seal", "preventExtensions"})
INLINE_FLAGS = re.compile(r"\(\?([a-z]+)\)")
GIVING_THIS = frozenset({"call", "apply", "bind"})
WITH_THIS_ARGUMENT = frozenset("map filter forEach find findLast findIndex findLastIndex some every flatMap".split())
WRITTEN = (n.Array, n.Object, n.Literal, n.Text)
EQUALITIES = frozenset({"===", "!==", "==", "!="})
COMPARISONS = frozenset((operator,) for operator in (*EQUALITIES, "<", ">", "<=", ">="))
ARITHMETIC = frozenset({"-", "*", "/", "%", "**"})
# What makes a number of a text on purpose: `text * 1`.
CONVERSIONS = frozenset({("-", 0), ("*", 1), ("/", 1)})


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
    alone = {statement.expression for statement, _ in file.index.of(n.ExpressionStatement)}
    for call, around in file.index.of(n.Call):
        if not isinstance(call.callee, n.Member):
            continue
        name, first = call.callee.name, call.arguments[0] if call.arguments else None
        has_braces = isinstance(first, n.Function) and isinstance(first.body, n.Block) and not first.is_generator
        # Promises of nothing are waited for: `Promise.all(items.map(async item => { … }))`.
        is_waited_for = name == "map" and isinstance(first, n.Function) and first.is_async
        if name in NEEDING_RESULT and has_braces and not is_waited_for and first not in returning:
            message, help = f"this function gives `{name}` nothing", "write `return` in its braces, or leave these out."
            if name == "map" and call in alone:
                message, help = "nothing is done with the list that `map` makes", "write `forEach`, which makes none."
            report.add(call.callee.name_span, message, help=help)
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
        if written.isdigit() and int(value) != int(written) and (rounded := text_of(value)) != written:
            message = f"this number is rounded to {rounded}"
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
    types = report.program.for_file(value_types, file)
    item = kind_of_type(types.item_type(types.type_of(place, around))) if kind == "array" else None
    has_no_numbers = isinstance(place, n.Array) and all(isinstance(each, n.Text) for each in place.items)
    if is_number and (has_no_numbers or item not in (None, "number")):
        return  # a number is the index of an item
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


@rule("E0309", "warning")
def this_of_object(file: Analysis, report: Report) -> None:
    """`this` is used for the agent in a method of an object, or for the object in an arrow function.

    In a method, a getter or setter, and behind `key: function`, `this` is the object that it is called on. Arrow
    functions have the `this` of what is around them. A method reaches the agent by a name that was given to it before.
    One message an object.

    Wrong:

        in agent:
          state { n = 0 }
          on start(args) {
            const counter = { add() { this.state.n += 1 } }
            counter.add()
          }

    Right:

        in agent:
          state { n = 0 }
          on start(args) {
            const agent = this
            const counter = { add() { agent.state.n += 1 } }
            counter.add()
          }
    """
    for object, around in file.index.of(n.Object):
        if around.agent is None:
            continue
        keys = {property.key for property in object.properties if isinstance(property, n.Property)}
        events = {handler.name.name for handler in handlers(around.agent)}
        for member, is_arrow in islice(_find_misplaced(object, keys, events), 1):
            if is_arrow:
                message = f"`this` is the agent `{around.agent.name.name}` in an arrow function, not the object"
                report.add(member.span, message, help="write a method: `name(…) { … }`.")
            else:
                message = f"`this` is the object here, not the agent `{around.agent.name.name}`"
                help = f"write `const agent = this` in front of the object, and `agent.{member.name}` here."
                report.add(member.span, message, help=help)


def _find_misplaced(
    object: n.Object, keys: set[str | n.Expression], events: set[str]
) -> Iterator[tuple[n.Member, bool]]:
    """Where the functions of an object take `this` for something else, and whether they are arrow functions."""
    is_open = any(isinstance(item, n.Spread) for item in object.properties)
    values = (property.value for property in object.properties if isinstance(property, n.Property))
    for function in (value for value in values if isinstance(value, n.Function)):
        for member in (node for node in everything(function) if isinstance(node, n.Member)):
            name = member.name
            if is_named(member.object, n.OBJECT_THIS) and name not in keys and not is_open:
                yield from [(member, False)] if name in OF_AGENTS_ALONE | events else ()
            elif is_named(member.object, "this") and function.is_arrow and name in keys - OF_AGENTS - events:
                yield member, True


@rule("E0337", "error")
def wrapper_object(file: Analysis, report: Report) -> None:
    """`new Boolean`, `new Number` or `new String` would make an object around a value.

    Values have all methods without one. In JavaScript such an object is true even around `false`, and equals no other;
    here there are none, so a program that relies on them would do something else.

    Wrong:

        in handler: return new Number(args.count)

    Right:

        in handler: return Number(args.count)
    """
    for new, around in file.index.of(n.New):
        callee = new.callee
        if isinstance(callee, n.Name) and callee.name in WRAPPERS and not is_variable(callee, around, file):
            message = f"there are no objects around values, which `new {callee.name}` would make"
            report.add(new.span, message, help=f"leave out `new`: `{callee.name}(…)` converts a value.")


@rule("E0338", "error")
def this_as_value(file: Analysis, report: Report) -> None:
    """`this` as a value in a plain function, where JavaScript has `undefined`.

    A plain function, one with `function`, has the `this` of what is around it here, so `this.name` and `this.handle(…)`
    reach the agent. As a value of its own it would be compared with, or given to, something that JavaScript has not.

    Wrong:

        in agent:
          on start(args) {
            const items = args.items.map(function (item) { return [this, item] })
            return items.length
          }

    Right:

        in agent:
          on start(args) {
            const agent = this
            const items = args.items.map(function (item) { return [agent, item] })
            return items.length
          }
    """
    seen: set[int] = set()
    for function, _ in file.index.of(n.Function):
        if function.is_arrow or function.takes_this:
            continue
        parts = list(everything(function))
        used = {id(part.object) for part in parts if isinstance(part, n.Member)}
        for part in parts:
            if is_named(part, "this") and id(part) not in used and id(part) not in seen:
                seen.add(id(part))
                help = "write an arrow function, or `const agent = this` in front of the function and `agent` here."
                report.add(part.span, "`this` is `undefined` in a plain function of JavaScript", help=help)


@rule("E0263", "warning")
def this_for_a_call(file: Analysis, report: Report) -> None:
    """`call`, `apply`, `bind` or a second argument of `map` is to give a function a `this` that it does not take.

    Methods of objects, and functions behind `key:`, have the `this` that they are called with. A plain function has the
    `this` of what is around it, the agent in a handler, however it is called.

    Wrong:

        in handler: function label() { return this.name }  return label.call(args.ticket)

    Right:

        in handler: const labels = { of() { return this.name } }  return labels.of.call(args.ticket)
    """
    types = report.program.for_file(value_types, file)
    functions = [each for each, _ in file.index.of(n.Function) if not each.is_arrow and not each.takes_this]
    plain = {each for each in functions if any(is_named(part, "this") for part in everything(each))}
    for call, around in file.index.of(n.Call):
        if not isinstance(call.callee, n.Member) or not call.arguments:
            continue
        callee, name = call.callee.object, call.callee.name
        variable = variable_of(callee, around, file)
        made = [each.value for each in variable.writes if isinstance(each, n.Declarator)] if variable else []
        if variable is not None and around.root is not None:
            made.append(file.code[around.root].declared.get(variable))
        if name in GIVING_THIS and isinstance(callee, n.Member) and isinstance(callee.object, n.Array):
            message = f"`{callee.name}` is called on the list in front of it, whatever `{name}` is given"
            report.add(callee.name_span, message, help=f"write `list.{callee.name}(…)` with the list itself.")
        elif name in GIVING_THIS and isinstance(callee, n.Name) and not plain.isdisjoint(made):
            message = f"`{callee.name}` is a plain function, which `{name}` gives no `this`"
            help = "give it the object as a parameter, or make it a method of an object."
            report.add(call.callee.name_span, message, help=help)
        elif name in WITH_THIS_ARGUMENT and len(call.arguments) == 2:
            is_list = isinstance(callee, n.Array) or types.kind_of(callee, around) == "array"
            if is_list and not (isinstance(call.arguments[0], n.Function) and call.arguments[0].is_arrow):
                help = "write an arrow function, such as `item => object.method(item)`."
                report.add(call.arguments[1].span, f"`{name}` gives its function no `this`", help=help)


@rule("E0339", "error")
def unreadable_pattern(file: Analysis, report: Report) -> None:
    """A regular expression cannot be read, or cannot be matched here.

    JavaScript refuses such a pattern before anything runs. One thing is refused that JavaScript can do: a lookbehind
    such as `(?<=a+)`, which may match texts of different lengths.

    Wrong:

        in handler(args: { text: string }): return /(?<=No +)[0-9]/.test(args.text)

    Right:

        in handler(args: { text: string }): return /No +[0-9]/.test(args.text)
    """
    of_types = {bounds.pattern for type, _ in file.index.of(n.Type) for bounds in type.bounds}
    for regex, _ in file.index.of(n.Regex):
        if regex in of_types:
            continue
        try:
            compile_pattern(regex.pattern, regex.flags)
        except SyntaxErrorValue as error:
            reason = error.message.rpartition(f"/{regex.pattern}/{regex.flags}: ")[2]
            help = "a sign that stands for itself has a backslash before it: `\\(`, `\\[`, `\\+`."
            if reason.startswith("Invalid flags"):
                help = "the flags are `d`, `g`, `i`, `m`, `s`, `u` and `y`, each once."
            elif reason == UNEVEN_LOOKBEHIND:
                help = "match the text before it, too, and take a group of the match: `/a+(b)/`."
            elif inline := INLINE_FLAGS.match(regex.pattern):
                help = f"write the flags behind the pattern: `/{regex.pattern[inline.end() :]}/{inline[1]}`."
            report.add(regex.span, f"this regular expression cannot be read: {reason}", help=help)


@rule("E0264", "warning")
def open_object(file: Analysis, report: Report) -> None:
    """`Object.seal` or `Object.preventExtensions` is to close an object, which stays open.

    In JavaScript such an object takes no further members, and an assignment of one is an error. Here any object takes
    them.

    Wrong:

        in handler: const point = { x: 1 }  Object.seal(point)  return point

    Right:

        in handler: const point = { x: 1 }  return point
    """
    for call, around in file.index.of(n.Call):
        callee = call.callee
        if not (isinstance(callee, n.Member) and callee.name in CLOSING and isinstance(callee.object, n.Name)):
            continue
        if callee.object.name == "Object" and not is_variable(callee.object, around, file):
            help = "leave the call out, or give a copy away: `{ ...object }`."
            report.add(call.span, f"`Object.{callee.name}` closes no object: it still takes members", help=help)

"""The order of steps in code: loops, waiting, and what is never reached."""

from __future__ import annotations

import re
from collections.abc import Iterator

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.walk import Enclosing
from koi_lang.diagnostics import nearest
from koi_lang.source import Span

WORD = re.compile(r"\w+")
LOOPS = (n.While, n.DoWhile, n.For, n.ForEach)
JUMPS = {n.Return: "return", n.Throw: "throw", n.Break: "break", n.Continue: "continue"}


@rule("E0301", "error")
def jump_outside_loop(file: Analysis, report: Report) -> None:
    """`break` or `continue` stands outside of a loop.

    Both belong to the innermost loop of the same function, `break` also to a `switch` in it: not to a loop around the
    function, and not to `forEach` or `map`, which call a function for every item.

    Wrong:

        in handler: args.items.forEach(item => { if (item) break })

    Right:

        in handler: for (const item of args.items) { if (item) break }
    """
    jumps: list[tuple[n.Break | n.Continue, Enclosing]] = [*file.index.of(n.Break), *file.index.of(n.Continue)]
    for jump, around in jumps:
        where = around.loop if isinstance(jump, n.Continue) else around.loop or around.switch
        if where is None and jump.label is None:
            help = "`return` leaves the function; to walk over a list write `for (const item of list) { … }`."
            report.add(jump.span, f"`{JUMPS[type(jump)]}` stands outside of a loop", help=help)


@rule("E0331", "error")
def unknown_label(file: Analysis, report: Report) -> None:
    """`break` or `continue` names a label that nothing around it has, or that is not one of a loop.

    A label stands in front of a statement and counts inside of it, not in functions there. `continue` needs one of a
    loop.

    Wrong:

        in handler: outer: for (const row of args.rows) { for (const cell of row) { if (cell) break uoter } }

    Right:

        in handler: outer: for (const row of args.rows) { for (const cell of row) { if (cell) break outer } }
    """
    jumps: list[tuple[n.Break | n.Continue, Enclosing]] = [*file.index.of(n.Break), *file.index.of(n.Continue)]
    for jump, around in jumps:
        if jump.label is None:
            continue
        place = Span(jump.span.end - len(jump.label), jump.span.end)
        labelled = next((each for each in reversed(around.labels) if each.label == jump.label), None)
        if labelled is None:
            near = nearest(jump.label, [each.label for each in around.labels])
            help = f"did you mean `{near}`?" if near else f"write `{jump.label}:` in front of the loop that is meant."
            fixes = report.replacement(place, near)
            report.add(place, f"no statement around this has the label `{jump.label}`", help=help, fixes=fixes)
        elif isinstance(jump, n.Continue) and not isinstance(_body(labelled), LOOPS):
            others = [report.place(labelled.label_span, "this is no loop")]
            report.add(
                place,
                f"`continue` needs a loop, and `{jump.label}` is none",
                others=others,
                help=f"write `break {jump.label}`.",
            )


def _body(labelled: n.Labelled) -> n.Statement:
    body = labelled.body
    while isinstance(body, n.Labelled):
        body = body.body
    return body


@rule("E0332", "error")
def second_default(file: Analysis, report: Report) -> None:
    """A `switch` has two `default`.

    Wrong:

        in handler: switch (args.kind) { case "a": return 1; default: return 2; default: return 3 }

    Right:

        in handler: switch (args.kind) { case "a": return 1; case "b": return 2; default: return 3 }
    """
    for switch, _ in file.index.of(n.Switch):
        defaults = [clause for clause in switch.clauses if clause.test is None]
        for clause in defaults[1:]:
            others = [report.place(_first_word(defaults[0], file), "the first one")]
            report.add(_first_word(clause, file), "this `switch` has two `default`", others=others, help="remove one.")


@rule("E0302", "error")
def await_in_plain_function(file: Analysis, report: Report) -> None:
    """`await` stands in a function that is not `async`.

    Handlers may always wait, functions only when they are marked `async`; who calls such a function waits for it in
    turn. The parameters of a generator are computed when it is called, before anything can wait.

    Wrong:

        skill Web { export function load(url) { return await fetch(url) } }

    Right:

        skill Web { export async function load(url) { return await fetch(url) } }
    """
    started = {id(start.sent) for start, _ in file.index.of(n.Start)}
    waits: list[tuple[n.Await | n.Send | n.ForEach, Enclosing]] = [*file.index.of(n.Await)]
    waits += [(send, around) for send, around in file.index.of(n.Send) if id(send) not in started]
    waits += [(loop, around) for loop, around in file.index.of(n.ForEach) if loop.waits]
    for wait, around in waits:
        function = around.function
        if isinstance(function, n.Function) and not function.is_async:
            others = [report.place(_first_word(function, file), "write `async` in front of this")]
            help = "mark the function `async`, and `await` it where it is called."
            report.add(
                _first_word(wait, file), "`await` stands in a function that is not `async`", others=others, help=help
            )
        elif isinstance(function, n.Function) and function.is_generator and wait.span.start < function.body.span.start:
            help = "compute it in the first line of the body, or wait before the call."
            report.add(_first_word(wait, file), "`await` stands in the parameters of a generator", help=help)


@rule("E0335", "error")
def yield_outside_generator(file: Analysis, report: Report) -> None:
    """`yield` stands outside of a generator.

    A generator is declared with `function*`, or as a method with a `*` before its name. Functions in it are none, nor
    are arrow functions.

    Wrong:

        in handler: const each = function (list) { for (const x of list) { yield x } }  return [...each(args.list)]

    Right:

        in handler: const each = function* (list) { for (const x of list) { yield x } }  return [...each(args.list)]
    """
    steps: list[tuple[n.Yield | n.Name, Enclosing]] = [*file.index.of(n.Yield)]
    steps += [(name, around) for name, around in file.index.of(n.Name) if name.name == n.BARE_YIELD]
    for step, around in steps:
        if isinstance(around.function, n.Function) and around.function.is_generator:
            continue
        is_arrow = isinstance(around.function, n.Function) and around.function.is_arrow
        help = (
            "write `function* (…) { … }`." if is_arrow else "write `function*`, or `*` before the name of the method."
        )
        report.add(_first_word(step, file), "`yield` stands outside of a generator", help=help)


@rule("E0336", "error")
def yield_all_inside_expression(file: Analysis, report: Report) -> None:
    """`yield*` in an `async` generator stands within an expression.

    There it is a step of its own, or the value of a variable, an assignment or a `return`.

    Wrong:

        skill Pages { async function* all(a, b) { console.log(yield* a) } }

    Right:

        skill Pages { async function* all(a, b) { const last = yield* a  console.log(last) } }
    """
    steps = {n.strip_parentheses(statement.expression) for statement, _ in file.index.of(n.ExpressionStatement)}
    steps |= {step.value for step in steps if isinstance(step, n.Assignment) and isinstance(step.target, n.Name)}
    steps |= {declarator.value for declarator, _ in file.index.of(n.Declarator) if declarator.value is not None}
    steps |= {statement.value for statement, _ in file.index.of(n.Return) if statement.value is not None}
    for step, around in file.index.of(n.Yield):
        is_async = isinstance(around.function, n.Function) and around.function.is_async
        if step.delegates and is_async and step not in steps:
            message = "`yield*` stands within an expression of an `async` generator"
            report.add(_first_word(step, file), message, help="give its value to a variable: `const last = yield* …`.")


@rule("E0323", "warning")
def lonely_text(file: Analysis, report: Report) -> None:
    """A text stands alone as a statement, so nothing is done with it.

    A model follows a text behind `playbook`, and other agents and models read what an `affordance` says. Anything else
    about code stands in a comment.

    Wrong:

        in handler:
          "Adds up a list."
          return args.length

    Right:

        in handler:
          affordance "Adds up a list."
          return args.length
    """
    for statement, around in file.index.of(n.ExpressionStatement):
        if not isinstance(statement.expression, n.Text):
            continue
        is_first = isinstance(around.function, n.Handler) and statement is around.function.body.statements[0]
        quotes = '"""' if report.source.text.startswith('"""', statement.span.start) else '"'
        help = (
            f"write `affordance {quotes}…{quotes}` if it describes the handler, and `playbook` if a model follows it."
        )
        help = help if is_first else "write `console.log(…)` to print it, and `// …` for a comment."
        report.add(statement.span, "nothing is done with this text", help=help)


@rule("E0303", "warning")
def unreachable(file: Analysis, report: Report) -> None:
    """Steps stand behind a `return`, `throw`, `break` or `continue` and are never executed.

    They are left over, or the jump should have been in an `if`.

    Wrong:

        in handler: return args.a  console.log("added")

    Right:

        in handler: console.log("added")  return args.a
    """
    for block, _ in file.index.of(n.Block):
        jump = None
        for statement in block.statements:
            if jump is not None and not isinstance(statement, n.FunctionStatement):
                word = JUMPS[type(jump)]
                others = [report.place(_first_word(jump, file), "ends here")]
                help = "remove it, or put it in front."
                if isinstance(statement, n.Playbook) and isinstance(jump, n.Return) and jump.value is None:
                    help = "leave the `return` out: what the model returns is the result."
                report.add(
                    _first_word(statement, file), f"nothing behind this `{word}` is executed", others=others, help=help
                )
                break
            if type(statement) in JUMPS and jump is None:
                jump = statement


@rule("E0304", "warning")
def return_of_next_line(file: Analysis, report: Report) -> None:
    """`return` stands alone on its line and takes the expression of the next line as its value.

    Line ends mean nothing in Koi, so a `return` reaches on to the next expression. To return nothing in front of
    another step, end it with a semicolon or with the brace of its block.

    Wrong:

        in handler:
          if (!args.a) return
          console.log(args.a)

    Right:

        in handler:
          if (!args.a) { return }
          console.log(args.a)
    """
    text = file.unit.source.text
    for statement, _ in file.index.of(n.Return):
        value = statement.value
        if value is not None and "\n" in text[statement.span.start : value.span.start]:
            others = [report.place(value.span, "this is returned")]
            help = "write the value beside `return`, or `return;` to return nothing."
            report.add(
                _first_word(statement, file),
                "this `return` takes its value from the next line",
                others=others,
                help=help,
            )


@rule("E0305", "warning")
def assignment_as_condition(file: Analysis, report: Report) -> None:
    """A condition assigns with `=` where it probably should compare.

    The value that is assigned decides, and the variable is changed. To assign on purpose, put the assignment into
    parentheses of its own: `while ((line = next())) { … }`.

    Wrong:

        in handler: if (args.a = 1) { return args }  return null

    Right:

        in handler: if (args.a === 1) { return args }  return null
    """
    for condition in _conditions(file):
        inner = condition.value if isinstance(condition, n.Parenthesized) else condition
        if isinstance(inner, n.Assignment) and not inner.operator:
            at = file.unit.source.text.index("=", inner.target.span.end)
            help = "write `===` to compare; to assign on purpose, put a second pair of parentheses around it."
            report.add(Span(at, at + 1), "this condition assigns and does not compare", help=help)


@rule("E0306", "error")
def pattern_as_value(file: Analysis, report: Report) -> None:
    """The value of an assignment that takes a list or an object apart is used.

    Such an assignment is a step of its own.

    Wrong:

        in handler: let a = 1, b = 2  const both = ([a, b] = [b, a])  return both

    Right:

        in handler: let a = 1, b = 2  ;[a, b] = [b, a]  return [a, b]
    """
    steps = {n.strip_parentheses(statement.expression) for statement, _ in file.index.of(n.ExpressionStatement)}
    steps |= {n.strip_parentheses(loop.update) for loop, _ in file.index.of(n.For) if loop.update is not None}
    steps |= {n.strip_parentheses(step) for several, _ in file.index.of(n.Sequence) for step in several.expressions}
    for assignment, _ in file.index.of(n.Assignment):
        if isinstance(assignment.target, n.Pattern) and assignment not in steps:
            message = "an assignment that takes something apart has no value"
            report.add(
                assignment.span, message, help="make it a statement of its own, and use the variables behind it."
            )


def _conditions(file: Analysis) -> Iterator[n.Expression]:
    for choice, _ in file.index.of(n.If):
        yield from (condition for condition, _ in choice.branches)
    loops: list[tuple[n.While | n.DoWhile, Enclosing]] = [*file.index.of(n.While), *file.index.of(n.DoWhile)]
    yield from (loop.condition for loop, _ in loops)


def _first_word(node: n.Node, file: Analysis) -> Span:
    match = WORD.match(file.unit.source.text, node.span.start)
    return Span(*match.span()) if match else Span(node.span.start, node.span.start + 1)

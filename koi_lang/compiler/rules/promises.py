"""Promises: calls whose result is used before it is there."""

from __future__ import annotations

from collections.abc import Iterator

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.operators import LAZY
from koi_lang.compiler.rules.program import AnalysedProgram, handlers, is_named, is_variable, variable_of
from koi_lang.compiler.rules.scopes import is_state
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.rules.tests import agent_of
from koi_lang.compiler.scope import ScopeVariable
from koi_lang.compiler.walk import Enclosing

# What may be asked of a promise itself.
OF_PROMISES = frozenset({"then", "catch", "finally"})
OF_AGENTS = frozenset({"handle", "callSkill", "callAction"})
MAKERS = frozenset({"all", "allSettled", "any", "race", "resolve"})
FUNCTIONS = frozenset({"fetch", "callAction"})
REGISTRY = frozenset({"get", "set", "delete", "has", "keys", "search", "clear", "stats", "change"})
# Functions that make a text or a number of what they are given.
CONVERSIONS = frozenset({"String", "Number", "Boolean", "parseInt", "parseFloat"})
PREDICATES = frozenset({"filter", "some", "every", "find", "findIndex", "findLast", "findLastIndex"})
TOGETHER = frozenset({"all", "allSettled", "any", "race"})
COMPARISONS = frozenset({"==", "===", "!=", "!=="})


@rule("E0307", "warning")
def await_missing(file: Analysis, report: Report) -> None:
    """The result of something that takes time is used, and nothing waits for it.

    Handlers, actions, the registry, tools of servers, `fetch` and `async` functions give a promise. What is asked of
    a promise is `undefined`, in a text it is `[object Promise]`, and as a condition it is always true. `await` gives
    the result. One message a variable.

    Wrong:

        in agent:
          on add(args) { return { sum: args.a + args.b } }
          on start(args) { return this.handle("add", { a: 1, b: 2 }).sum }

    Right:

        in agent:
          on add(args) { return { sum: args.a + args.b } }
          on start(args) { return (await this.handle("add", { a: 1, b: 2 })).sum }
    """
    calls = report.program.for_file(_promises, file)
    kept = _variables(file, calls)
    reported: set[ScopeVariable] = set()
    for value, form, around in _uses(file) if calls else ():
        used = n.strip_parentheses(value)
        variable = variable_of(used, around, file)
        if used in calls and not _is_told_by_test(used, around, file):
            text = _head(used, file)
            help = f"write `{form.format(f'await {text}(…)')}`."
            report.add(used.span, f"nothing waits for `{text}`, so this is a promise", help=help)
        elif (
            variable is not None
            and variable in kept
            and variable not in reported
            and not _is_told_by_test(kept[variable], around, file)
        ):
            reported.add(variable)
            name, text = variable.name, _head(kept[variable], file)
            others = [report.place(kept[variable].span, "nothing waits for this")]
            help = f"write `{name} = await {text}(…)` there."
            report.add(used.span, f"`{name}` is a promise, not the result", others=others, help=help)


@rule("E0258", "warning")
def promises_without_list(file: Analysis, report: Report) -> None:
    """`Promise.all` and its like are given promises one by one, and not in a list.

    Wrong:

        in agent:
          on one(args) { return 1 }
          on start(args) { return await Promise.all(this.one(), this.one()) }

    Right:

        in agent:
          on one(args) { return 1 }
          on start(args) { return await Promise.all([this.one(), this.one()]) }
    """
    for call, _ in file.index.of(n.Call):
        callee = call.callee
        is_all = isinstance(callee, n.Member) and is_named(callee.object, "Promise") and callee.name in TOGETHER
        if is_all and len(call.arguments) > 1:
            name = callee.name if isinstance(callee, n.Member) else ""
            message = f"`Promise.{name}` takes one list"
            has_list = isinstance(call.arguments[0], n.Array)
            help = "leave out what stands behind the list." if has_list else f"write `Promise.{name}([ … ])`."
            report.add(call.arguments[has_list].span, message, help=help)


@rule("E0308", "warning")
def async_predicate(file: Analysis, report: Report) -> None:
    """A list is searched or filtered with an `async` function.

    Such a function gives a promise, which always counts as true: `filter` keeps everything, and `find` gives the
    first item. Compute the answers first.

    Wrong:

        role Worker { can registry }
        agent Clerk : Worker {
          on known(args: { names: string[] }) { return args.names.filter(async name => await registry.has(name)) }
        }

    Right:

        role Worker { can registry }
        agent Clerk : Worker {
          on known(args: { names: string[] }) {
            const known = await Promise.all(args.names.map(name => registry.has(name)))
            return args.names.filter((name, index) => known[index])
          }
        }
    """
    for call, _ in file.index.of(n.Call):
        match call:
            case n.Call(callee=n.Member(name=name, name_span=span), arguments=(n.Function(is_async=True), *_)):
                if name in PREDICATES:
                    help = "wait for the answers before: `const answers = await Promise.all(list.map(async …))`."
                    message = f"`{name}` does not wait for an `async` function, and takes every answer for true"
                    report.add(span, message, help=help)
                elif name == "forEach":
                    message = "`forEach` does not wait for an `async` function, and code goes on"
                    report.add(span, message, help="write `for (const item of list) { await … }`.")
                elif name in ("sort", "toSorted"):
                    help = "wait for what is compared before: `const keys = await Promise.all(list.map(async …))`."
                    message = f"`{name}` does not wait for an `async` function, and takes all items for equal"
                    report.add(span, message, help=help)


def _promises(file: Analysis, _: AnalysedProgram) -> set[n.Node]:
    """The calls that give a promise."""
    found: set[n.Node] = {new for new, _ in file.index.of(n.New) if is_named(new.callee, "Promise")}
    late = [(call, around) for call, around in file.index.of(n.Call) if not call.optional]
    functions = _async_functions(file)
    found |= {call for call, where in late if _gives_promise(call.callee, where, file, functions)}
    # Calls of `then` stand around those that they wait for.
    for then in reversed([call for call, _ in late]):
        callee = then.callee
        if isinstance(callee, n.Member) and callee.name in OF_PROMISES and n.strip_parentheses(callee.object) in found:
            found.add(then)
    return found


def _gives_promise(callee: n.Expression, around: Enclosing, file: Analysis, functions: set[ScopeVariable]) -> bool:
    if isinstance(callee, n.Name):
        variable = variable_of(callee, around, file)
        if variable is not None:
            return variable in functions
        symbol = file.table.find("function", callee.name)
        is_async = symbol is not None and isinstance(symbol.node, n.Function) and _gives_one(symbol.node)
        return is_async or (callee.name in FUNCTIONS and callee.name not in file.table.values)
    if not isinstance(callee, n.Member) or callee.optional or not isinstance(callee.object, n.Name):
        return False
    agent = agent_of(callee.object, around, file)
    if agent is not None and isinstance(agent.node, n.Agent):
        return callee.name in OF_AGENTS.union(handler.name.name for handler in handlers(agent.node))
    return _is_known(callee.object, callee.name, around, file)


def _is_known(owner: n.Name, name: str, around: Enclosing, file: Analysis) -> bool:
    """Whether a function of the registry, of a server or of `Promise` gives a promise."""
    if is_variable(owner, around, file) or owner.name in file.table.values:
        return False
    root = around.root
    is_server = root is not None and owner.name in file.servers.get(root, ())
    known = {"registry": REGISTRY, "Promise": MAKERS}.get(owner.name, frozenset())
    return is_server or name in known


def _async_functions(file: Analysis) -> set[ScopeVariable]:
    """The variables that always hold an `async` function."""
    found: list[tuple[n.Node, n.Node | None]] = [
        (declarator.pattern, declarator.value) for declarator, _ in file.index.of(n.Declarator)
    ]
    found += [(function, function) for function, _ in file.index.of(n.Function)]
    resolved = [resolution.variables for resolution in file.code.values()]
    variables = {
        variables[node]
        for node, value in found
        if isinstance(value, n.Function) and _gives_one(value)
        for variables in resolved
        if node in variables
    }
    return {variable for variable in variables if not variable.reassigned}


def _gives_one(function: n.Function) -> bool:
    """Whether a call gives a promise, and not a generator."""
    return function.is_async and not function.is_generator


def _variables(file: Analysis, calls: set[n.Node]) -> dict[ScopeVariable, n.Node]:
    """The variables that always hold a promise, with the calls that gave it."""
    found: dict[ScopeVariable, n.Node] = {}
    for declarator, around in file.index.of(n.Declarator):
        value = n.strip_parentheses(declarator.value)
        variable = variable_of(declarator.pattern, around, file)
        if value in calls and value is not None and variable is not None and not variable.reassigned:
            found[variable] = value
    return found


def _uses(file: Analysis) -> Iterator[tuple[n.Expression, str, Enclosing]]:
    """Where the value of an expression is needed at once, with what to write there instead."""
    for member, around in file.index.of(n.Member):
        if member.name not in OF_PROMISES:
            yield member.object, f"({{}}).{member.name}", around
    for index, around in file.index.of(n.Index):
        yield index.object, "({})[…]", around
    for operation, around in file.index.of(n.Operation):
        yield from ((operand, "{}", around) for operand in _operands_of(operation))
    for template, around in file.index.of(n.Template):
        parts = (part for part in template.parts if isinstance(part, n.Expression))
        yield from ((part, "${{{}}}", around) for part in parts)
    for prefix, around in file.index.of(n.Prefix):
        if prefix.operator in ("!", "-", "+"):
            yield prefix.operand, f"{prefix.operator}{{}}", around
    yield from _conditions(file)
    yield from _consumed_values(file)


def _conditions(file: Analysis) -> Iterator[tuple[n.Expression, str, Enclosing]]:
    """What decides, and what is walked over."""
    for choice, around in file.index.of(n.If):
        yield from ((condition, "if ({})", around) for condition, _ in choice.branches)
    for loop, around in file.index.of(n.While):
        yield loop.condition, "while ({})", around
    for do_loop, around in file.index.of(n.DoWhile):
        yield do_loop.condition, "while ({})", around
    for switch, around in file.index.of(n.Switch):
        yield switch.subject, "switch ({})", around
    for conditional, around in file.index.of(n.Conditional):
        yield conditional.condition, "{} ? … : …", around
    for each, around in file.index.of(n.ForEach):
        yield each.iterable, f"for (… {each.over} {{}})", around
    for spread, around in file.index.of(n.Spread):
        yield spread.value, "...{}", around


def _consumed_values(file: Analysis) -> Iterator[tuple[n.Expression, str, Enclosing]]:
    """What is taken apart, printed, converted or kept."""
    for declarator, around in file.index.of(n.Declarator):
        if declarator.value is not None and not isinstance(declarator.pattern, n.Binding):
            yield declarator.value, "… = {}", around
    for call, around in file.index.of(n.Call):
        callee = call.callee
        if _is_console(callee) or (isinstance(callee, n.Name) and callee.name in CONVERSIONS):
            yield from ((argument, "{}", around) for argument in call.arguments)
    for assignment, around in file.index.of(n.Assignment):
        if isinstance(assignment.target, n.Member) and is_state(assignment.target.object):
            yield assignment.value, f"this.state.{assignment.target.name} = {{}}", around


def _operands_of(operation: n.Operation) -> Iterator[n.Expression]:
    """The operands whose values are computed with; promises may be compared with what may be one."""
    if operation.operators[0] in LAZY or "instanceof" in operation.operators:
        return
    is_equality = operation.operators[-1] in COMPARISONS
    literals = [
        isinstance(n.strip_parentheses(operand), (n.Literal, n.Text, n.Template)) for operand in operation.operands
    ]
    if not is_equality or any(literals):
        yield from operation.operands


def _is_console(callee: n.Expression) -> bool:
    return isinstance(callee, n.Member) and (
        is_named(callee.object, "console") or (is_named(callee.object, "JSON") and callee.name == "stringify")
    )


def _is_told_by_test(call: n.Node, around: Enclosing, file: Analysis) -> bool:
    """Whether the rule for tests tells of a call: of the handlers of agents."""
    callee = call.callee if isinstance(call, n.Call) else None
    return (
        around.test is not None and isinstance(callee, n.Member) and agent_of(callee.object, around, file) is not None
    )


def _head(call: n.Node, file: Analysis) -> str:
    """What is called, as it is written."""
    callee = call.callee.span if isinstance(call, (n.Call, n.New)) else call.span
    start = call.span.start if isinstance(call, n.New) else callee.start
    return " ".join(file.unit.source.text[start : callee.end].split())

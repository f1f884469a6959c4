"""Names that are given twice where each may exist once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.program import place_of, variable_of, with_article
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.scope import ScopeVariable
from koi_lang.compiler.symbols import Symbol
from koi_lang.source import Span

# Methods that call the functions which they are given, and keep none.
CALLING_AT_ONCE = frozenset(
    "map filter forEach find findIndex findLast findLastIndex some every reduce reduceRight flatMap sort toSorted "
    "replace replaceAll".split()
)


@rule("E0211", "error")
def declared_twice(file: Analysis, report: Report) -> None:
    """Two declarations have the same name.

    Roles, skills and MCP servers each have names of their own. Agents, teams, prompts, exported functions of skills
    and imported Python modules share theirs, because code uses them all by name alone. What an imported file declares
    counts too.

    Wrong:

        prompt Rules = "Be brief."
        prompt Rules = "Be kind."

    Right:

        prompt Rules = "Be brief."
        prompt Tone = "Be kind."
    """
    for kept, refused in file.table.clashes:
        if kept.unit is file.unit:
            own, other = (refused, kept) if refused.unit is file.unit else (kept, refused)
            label = "first declared here" if other is kept else "an import brings this one"
            others = [place_of(other, f"{label}, as {with_article(other.kind)}" if other.kind != own.kind else label)]
            report.add(own.span, f"`{own.name}` is declared twice", others=others, help="remove or rename one of them.")


@rule("E0212", "warning")
def imported_twice(file: Analysis, report: Report) -> None:
    """Two imported files declare the same name.

    The declaration that is met first counts, in the order of the imports; the other one is left out without notice
    for those who use it by name. Rename one of them, or move what both need into a third file.

    Wrong:

        import "./first.koi"
        import "./second.koi"

    where both files declare `role Worker { can execute }`.

    Right:

        import "./roles.koi"
    """
    if file is not report.program.files[0]:
        return
    for kept, refused in file.table.clashes:
        if kept.unit is not file.unit and not _is_error_elsewhere(kept, refused, report):
            message = f"two imported files declare `{kept.name}`, and the first one counts"
            help = "rename one of them, or declare it once in a file that both import."
            report.add(place_of(refused, "left out"), message, others=[place_of(kept, "this one counts")], help=help)


def _is_error_elsewhere(kept: Symbol, refused: Symbol, report: Report) -> bool:
    """Whether one of the two files imports the other: there the clash is an error already."""
    pairs = (pair for symbol in (kept, refused) for pair in report.program.home(symbol).table.clashes)
    return any({one.node, other.node} == {kept.node, refused.node} for one, other in pairs)


@rule("E0213", "error")
def handler_twice(file: Analysis, report: Report) -> None:
    """An agent has two handlers for one event.

    Only one of them could ever run.

    Wrong:

        in agent:
          on hello(args) { return 1 }
          on hello(args) { return 2 }

    Right:

        in agent:
          on hello(args) { return 1 }
          on goodbye(args) { return 2 }
    """
    for agent, _ in file.index.of(n.Agent):
        names = [item.name for item in agent.items if isinstance(item, n.Handler)]
        for first, second in _find_repeated(names):
            message = f"`{agent.name.name}` has two handlers `{second.name}`"
            others = [report.place(first.span, "the first one")]
            report.add(second.span, message, others=others, help="rename one, or make one handler of both.")


@rule("E0214", "error")
def field_twice(file: Analysis, report: Report) -> None:
    """The state of an agent has two fields of one name.

    Only one of the two first values could count.

    Wrong:

        in agent: state { count = 0  count = 1 }

    Right:

        in agent: state { count = 0  total = 1 }
    """
    for agent, _ in file.index.of(n.Agent):
        states = [item for item in agent.items if isinstance(item, n.State)]
        for first, second in _find_repeated([field.name for state in states for field in state.fields]):
            others = [report.place(first.span, "the first one")]
            report.add(
                second.span, f"the state has two fields `{second.name}`", others=others, help="remove or rename one."
            )


@rule("E0219", "warning")
def part_twice(file: Analysis, report: Report) -> None:
    """An agent has a part twice of which only one counts.

    The parts are `state`, `budget`, `phases`, `transitions`, `amnesia`, `affordance`, `examples`, an `llm` block for
    one purpose, and `resilience` and `playbook` for one handler. Of two `affordance`s the first counts, of the others
    the last one.

    Wrong:

        in agent: state { count = 0 }  state { total = 1 }

    Right:

        in agent: state { count = 0  total = 1 }
    """
    for agent, _ in file.index.of(n.Agent):
        first: dict[str, n.Node] = {}
        for item in agent.items:
            part = _part(item)
            known = item if part is None else first.setdefault(part, item)
            if known is not item:
                counts = "first" if isinstance(item, n.Affordance) else "last"
                others = [report.place(known.span, "the first one")]
                message = f"`{agent.name.name}` has `{part}` twice, and only the {counts} one counts"
                report.add(item.span, message, others=others, help="make one of both, or remove one.")


def _part(item: n.AgentItem) -> str | None:
    """How messages call a part of which an agent has one."""
    match item:
        case n.State() | n.Budget() | n.Amnesia() | n.Affordance() | n.Examples() | n.Phases() | n.Transitions():
            return type(item).__name__.lower()
        case n.Llm():
            return f"llm {item.name}"
        case n.Resilience():
            return f'resilience "{item.name.value}"'
        case n.NamedPlaybook():
            return f'playbook "{item.name.value}"'
    return None


@rule("E0215", "error")
def member_twice(file: Analysis, report: Report) -> None:
    """A team has two members with one key.

    Playbooks address members by their key, as in `greeter::hello`, so each key stands for one member.

    Wrong:

        role Worker { can execute }
        agent Ann : Worker { }
        agent Bob : Worker { }
        team Crew { worker: Ann, worker: Bob }

    Right:

        role Worker { can execute }
        agent Ann : Worker { }
        agent Bob : Worker { }
        team Crew { ann: Ann, bob: Bob }
    """
    for team, _ in file.index.of(n.Team):
        for first, second in _find_repeated([member.key for member in team.members]):
            others = [report.place(first.span, "the first one")]
            message = f"`{team.name.name}` has two members `{second.name}`"
            report.add(second.span, message, others=others, help="give one of them another key.")


@rule("E0216", "error")
def variable_twice(file: Analysis, report: Report) -> None:
    """A variable is declared twice between the same braces.

    Parameters count as declared between the braces of their function. To change the value, assign without `const` or
    `let`.

    Wrong:

        in handler: let sum = 1  let sum = 2  return sum

    Right:

        in handler: let sum = 1  sum = 2  return sum
    """
    for resolution in file.code.values():
        for span, variable in resolution.repeated:
            others = [report.place(variable.span, "first declared here")]
            help = f"choose another name, or assign: `{variable.name} = …`."
            report.add(span, f"`{variable.name}` is declared twice", others=others, help=help)


@rule("E0218", "warning")
def variable_of_block(file: Analysis, report: Report) -> None:
    """A `var` is declared again between inner braces, or kept by a function in a loop: it is another variable.

    In Koi all variables live between the braces that they are declared in, also those of `var`. In JavaScript the
    second `var` would change the first one, and functions that a loop makes would all see its last value.

    Wrong:

        in handler: var sum = 1  if (args.a) { var sum = 2 }  return sum

    Right:

        in handler: var sum = 1  if (args.a) { sum = 2 }  return sum
    """
    callbacks = {
        argument
        for call, _ in file.index.of(n.Call)
        if isinstance(call.callee, n.Member) and call.callee.name in CALLING_AT_ONCE
        for argument in call.arguments
    }
    # Variables of functions that may be called later, with the place in one.
    kept: dict[ScopeVariable, Span] = {}
    for name, around in file.index.of(n.Name):
        known, function = variable_of(name, around, file), around.function
        if known is None or around.root is None or function is None or function in callbacks:
            continue
        if file.code[around.root].functions.get(function) is not known.function:
            kept.setdefault(known, name.span)
    functions = (function for resolution in file.code.values() for function in resolution.functions.values())
    for variable in (variable for function in functions for variable in function.variables):
        outer = _outer(variable) if variable.kind == "var" else None
        if outer is not None:
            others = [report.place(outer.span, "this one keeps its value")]
            help = f"assign without `var`: `{variable.name} = …`; or choose another name."
            message = f"this `{variable.name}` is another variable than the one outside of these braces"
            report.add(variable.span, message, others=others, help=help)
        elif variable.kind == "var" and variable.in_loop and variable in kept:
            others = [report.place(kept[variable], "kept by this function")]
            message = f"every turn of the loop has its own `{variable.name}`, and JavaScript one for all"
            help = "write `let`, which means the same in both, or declare it in front of the loop."
            report.add(variable.span, message, others=others, help=help)


def _outer(variable: ScopeVariable) -> ScopeVariable | None:
    """What a `var` of JavaScript would be one with: a `var` or parameter of that name around its block."""
    block = variable.block.parent
    while block is not None and block.function is variable.function:
        found = block.variables.get(variable.name)
        if found is not None and found.kind in ("var", "parameter"):
            return found
        block = block.parent
    return None


def _find_repeated(names: Sequence[n.Name]) -> Iterator[tuple[n.Name, n.Name]]:
    """For each name that was there before: its first appearance and this one."""
    first: dict[str, n.Name] = {}
    for name in names:
        known = first.setdefault(name.name, name)
        if known is not name:
            yield known, name

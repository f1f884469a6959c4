"""Names in code: variables and declarations that do not exist, or that cannot be assigned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.foreign import FOREIGN
from koi_lang.compiler.rules.program import AnalysedProgram, with_article
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.scope import AGENT_NAMES, GLOBALS, RUN_NAMES, Resolution, ScopeVariable
from koi_lang.compiler.symbols import Kind
from koi_lang.diagnostics import SLIP_IN_FOUR, Advice, Edit, nearest
from koi_lang.source import Span

# Looking for similar names takes a while, and nobody reads on from here.
MAX_NAMES = 100
# Words of tests and evals, where what belongs to them is missing.
STEPS = {
    "expect": "write on the same line what must hold: `expect result == 3`.",
    "score": "write on the same line what it is: `score politeness = 0.8`.",
    "given": "write on the same line what is given: `given model answers [ … ]`.",
    "output": "the list of printed lines is there in tests only.",
    "case": "the current case is there in evals only.",
}
# What begins something that has another form.
FORMS = {
    "llm": 'write `await callAction("call_llm", { instruction: "…", data: … })`.',
    **dict.fromkeys(("send", "handoff"), 'write `await send peers.event("…").any()({ … })`.'),
    "playbook": 'write `playbook "…"`.',
    "affordance": 'write `affordance "…"`.',
}
# Actions that may be mistaken for functions; others have names that say what they are.
ACTIONS = frozenset(
    "shell prompt_user call_llm format update_state send_message call_skill call_mcp registry_set registry_get"
    " registry_delete registry_keys registry_search".split()
)
# Words that stand before a value, which a misspelt one is taken for a name instead of.
OPERATORS = ("await", "typeof", "delete", "new")
# Where variables can be declared; elsewhere there are lone values.
CODE = (n.Handler, n.Function, n.Skill, n.Test, n.Eval)
KINDS: tuple[Kind, ...] = ("agent", "team", "prompt", "function", "role")


@rule("E0221", "error")
def unknown_name(file: Analysis, report: Report) -> None:
    """Code uses a name that nobody declares.

    A name in code is a variable or parameter, an agent, a team, a prompt, an exported function of a skill, an imported
    Python module, or one of the built-in objects such as `console`, `JSON` and `registry`. A variable is visible from
    its declaration to the end of the braces around it.

    Wrong:

        in handler: return total + 1

    Right:

        in handler: const total = args.total  return total + 1
    """
    named = report.program.for_file(_named_arguments, file)
    for name, root in report.program.for_file(_unknown_names, file):
        if name in named:
            message = f"`{name.name} = …` assigns to a variable, it does not name an argument"
            if named[name]:
                report.add(name.span, message, help=named[name])
        elif name.name not in AGENT_NAMES and name.name not in FOREIGN:
            hidden = list(_hidden(name, file.code[root]))[:1]
            others = [report.place(variable.span, "visible in its own block only") for variable in hidden]
            message, advice = f"nothing here is called `{name.name}`", _advice(name, root, file, report)
            report.add(name.span, message, others=others, help=advice.help, fixes=advice.fixes)


@rule("E0222", "error")
def agent_name_outside(file: Analysis, report: Report) -> None:
    """`this`, `peers` or `callAction` stands outside of a handler.

    These three belong to the agent whose handler is running. A function of a skill belongs to no agent: give it what
    it needs as an argument.

    Wrong:

        skill Sums { export function add(a) { return a + this.state.total } }

    Right:

        skill Sums { export function add(a, total) { return a + total } }
    """
    for name, _ in report.program.for_file(_unknown_names, file):
        if name.name in AGENT_NAMES:
            help = "use it in a handler of an agent, and pass on what a function needs."
            report.add(name.span, f"`{name.name}` only exists in the handlers of an agent", help=help)


@rule("E0223", "error")
def foreign_name(file: Analysis, report: Report) -> None:
    """Code uses something that Node, browsers or Python have and Koi does not.

    Code in Koi looks like JavaScript, but no Node and no browser runs it. What is missing can be written in Python and
    imported.

    Wrong:

        role Worker { can execute }
        agent Clerk : Worker { on read(args) { return require("fs") } }

    Right:

        import os from "python:os"
        role Worker { can execute }
        agent Clerk : Worker { on read(args) { return os.listdir(".") } }
    """
    for name, _ in report.program.for_file(_unknown_names, file):
        help = FOREIGN.get(name.name)
        if help is not None:
            report.add(name.span, f"`{name.name}` does not exist in Koi", help=help)


@rule("E0224", "error")
def constant_assigned(file: Analysis, report: Report) -> None:
    """Something declared with `const` is assigned again.

    A `const` keeps its first value. What is inside of an array or object may still change.

    Wrong:

        in handler: const sum = 0  sum += 1  return sum

    Right:

        in handler: let sum = 0  sum += 1  return sum
    """
    for resolution in file.code.values():
        for name, variable in resolution.constants:
            if variable.kind == "function":
                message = f"`{name.name}` is the name of this function in itself, and stays that"
                report.add(name.span, message, help="declare a variable of another name outside of the function.")
                continue
            others = [report.place(variable.span, "declared here")]
            help = f"declare it with `let {name.name} = …`."
            report.add(name.span, f"`{name.name}` is a `const` and keeps its first value", others=others, help=help)


@rule("E0225", "error")
def declaration_assigned(file: Analysis, report: Report) -> None:
    """A value is assigned to an agent, a team, a prompt, a function or a built-in object.

    These names are fixed for the whole program. Often a `let` was forgotten.

    Wrong:

        role Worker { can execute }
        agent Clerk : Worker { on count(args) { Clerk = 1 } }

    Right:

        role Worker { can execute }
        agent Clerk : Worker { on count(args) { let clerk = 1  return clerk } }
    """
    for resolution in file.code.values():
        for name in resolution.assigned_outer:
            symbol = file.table.values.get(name.name) or file.table.roles.get(name.name)
            what = with_article(symbol.kind) if symbol is not None else "a part of the language"
            help = "choose another name and declare it with `let`."
            report.add(name.span, f"`{name.name}` is {what} and cannot be assigned", help=help)


def _unknown_names(file: Analysis, _: AnalysedProgram) -> list[tuple[n.Name, n.Node]]:
    """The names that stand for nothing, each once in its root of code; `backoff = exponential` is a word, no name."""
    words = {value for block, _ in file.index.of(n.Resilience) for _, value in block.properties}
    found: list[tuple[n.Name, n.Node]] = []
    for root, resolution in file.code.items():
        first: dict[str, n.Name] = {}
        for name in resolution.unknown:
            if name not in words:
                first.setdefault(name.name, name)
        found += [(name, root) for name in islice(first.values(), MAX_NAMES)]
    return found


def _named_arguments(file: Analysis, _: AnalysedProgram) -> dict[n.Name, str]:
    """The names that assignments among arguments begin with, as in Python; the first of a call with the help."""
    found: dict[n.Name, str] = {}
    calls = [call.arguments for call, _ in file.index.of(n.Call)] + [run.arguments for run, _ in file.index.of(n.Run)]
    for arguments in calls:
        targets = [each.target for each in arguments if isinstance(each, n.Assignment)]
        named = [target for target in targets if isinstance(target, n.Name)]
        help = f"write `{{ {', '.join(f'{name.name}: …' for name in named)} }}`, or the values alone."
        found |= dict.fromkeys(named[:1], help) | dict.fromkeys(named[1:], "")
    return found


def _advice(name: n.Name, root: n.Node, file: Analysis, report: Report) -> Advice:
    wanted = name.name
    if any(True for _ in _hidden(name, file.code[root])):
        return Advice(f"declare `{wanted}` before the braces that it is used behind.")
    is_code = isinstance(root, CODE)
    special = STEPS.get(wanted) or FORMS.get(wanted) or _payload(wanted, root) or _other_space(wanted, file)
    special = special or (_of_agent(name, root, file) if is_code else None)
    if special is not None:
        return Advice(special)
    elsewhere = next((kind for kind in KINDS if report.program.elsewhere(kind, wanted)), None)
    if elsewhere is not None:
        return report.program.advice(elsewhere, name, file)
    library = {known.lower(): known for known in report.program.library}
    if wanted.lower() in library:
        known = library[wanted.lower()]
        brought = report.program.advice("function", n.Name(name.span, known), file)
        if known == wanted:
            return brought
        help = f"did you mean `{known}`? {brought.help[0].upper()}{brought.help[1:]}"
        edits = (Edit(file.unit.source, span, known) for span in _places(name, file.code[root]))
        [fix] = brought.fixes
        return Advice(help, (replace(fix, edits=(*fix.edits, *edits)),))
    names = [*_visible(name, file.code[root]), *file.table.values, *file.table.roles, *file.servers.get(root, ())]
    is_assigned = any(each.target is name for each, _ in file.index.of(n.Assignment))
    near = nearest(wanted, names) or (None if is_assigned else _built_in(wanted))
    if near is not None:
        first, *more = _places(name, file.code[root])
        return Advice(f"did you mean `{near}`?", report.replacement(first, near, *more))
    if not is_code:
        return Advice(f'write the value itself; a text stands in quotes: `"{wanted}"`.')
    end = report.source.text[name.span.end :]
    if end[:1] == " " and end.lstrip(" ")[:1].isidentifier() and nearest(wanted, OPERATORS, alike=SLIP_IN_FOUR):
        meant = nearest(wanted, OPERATORS)
        return Advice(f"did you mean `{meant}`?", report.replacement(name.span, meant))
    is_called = any(call.callee is name for call, _ in file.index.of(n.Call))
    if is_assigned:
        return Advice(f"declare it with `let {wanted} = …`.")
    return Advice(f"declare it with `const {wanted} = {'(…) => ' if is_called else ''}…`.")


def _places(name: n.Name, resolution: Resolution) -> list[Span]:
    """Where a name that stands for nothing is written in its root of code; it is told once."""
    return [each.span for each in resolution.unknown if each.name == name.name]


def _built_in(wanted: str) -> str | None:
    """The built-in name that was meant; short names are alike by chance, so it must be very near."""
    names = {name.lower(): name for name in sorted(GLOBALS | AGENT_NAMES | RUN_NAMES)}
    found = get_close_matches(wanted.lower(), names, n=1, cutoff=0.8)
    return names[found[0]] if found else None


def _visible(name: n.Name, resolution: Resolution) -> list[str]:
    """The variables of the functions that a name stands in."""
    scopes = (scope for scope in resolution.functions.values() if scope.node.span.encloses(name.span))
    return [variable.name for scope in scopes for variable in scope.variables]


def _hidden(name: n.Name, resolution: Resolution) -> Iterator[ScopeVariable]:
    """Variables of that name that exist in blocks the name does not stand in."""
    scopes = (scope for scope in resolution.functions.values() if scope.node.span.encloses(name.span))
    return (variable for scope in scopes for variable in scope.variables if variable.name == name.name)


def _payload(wanted: str, root: n.Node) -> str | None:
    """The help for `args` in a handler that calls its payload otherwise, or does not take one."""
    if wanted != "args" or not isinstance(root, n.Handler):
        return None
    if root.guard:
        return "in a guard the payload is called `input`."
    if not root.parameters:
        return f"declare the payload: `on {root.name.name}(args) {{ … }}`."
    pattern = root.parameters[0].pattern
    return f"this handler calls its payload `{pattern.name}`." if isinstance(pattern, n.Binding) else None


def _other_space(wanted: str, file: Analysis) -> str | None:
    """The help for skills and servers, which are no values."""
    if wanted in file.table.skills:
        return f"`{wanted}` is a skill; its functions are called by their own names."
    if wanted in file.table.mcps:
        return f"`{wanted}` is an mcp server, for handlers of agents with `uses mcp {wanted}`."
    return None


def _of_agent(name: n.Name, root: n.Node, file: Analysis) -> str | None:
    """The help for what belongs to the agent, or to a skill, and is used like a variable."""
    wanted = name.name
    if wanted == "state" and isinstance(root, n.Handler):
        field = next((f".{member.name}" for member, _ in file.index.of(n.Member) if member.object is name), "")
        return f"write `this.state{field}`."
    if _is_inside(name, file, n.Field):
        return f"`{wanted}` is a field of the state: write `this.state.{wanted}`."
    if _is_inside(name, file, n.Handler):
        return f'`{wanted}` is a handler of this agent: write `await this.handle("{wanted}", {{ … }})`.'
    if isinstance(root, n.Handler) and wanted in ACTIONS:
        return f'`{wanted}` is an action: write `await callAction("{wanted}", {{ … }})`.'
    skills = (
        item for item, around in file.index.of(n.Function) if around.skill is not None and around.function is None
    )
    if any(function.name == wanted for function in skills):
        return f"its skill keeps it to itself: write `export function {wanted}(…)` there."
    return None


def _is_inside(name: n.Name, file: Analysis, kind: type[n.Field] | type[n.Handler]) -> bool:
    """Whether the agent that a name stands in has a field or handler of that name."""
    found = ((around.agent, item.name.name) for item, around in file.index.of(kind))
    return any(called == name.name and agent and agent.span.encloses(name.span) for agent, called in found)

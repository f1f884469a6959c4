"""Permissions of roles, and whom code calls by `handle`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.program import handlers, is_variable, place_of, with_article
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.runtime_facts import CALL_OPTIONS
from koi_lang.compiler.symbols import Symbol
from koi_lang.compiler.walk import Enclosing
from koi_lang.diagnostics import SLIP_IN_FIVE, nearest, suggestion

# What actions and standard skills need, or 1.1.0 knows; everything else is a label, or belongs to an extension.
PERMISSIONS = (
    "execute", "delegate", "registry", "registry:read", "registry:write", "call_mcp", "read", "write", "read_tasks",
    "write_tasks", "web_access", "use_mobile", "manage_session", "read_koi_md", "write_code",
)  # fmt: skip
# Shorter words are alike by chance, such as the label `lead` and `read`.
MIN_CHARS = 6


@rule("E0404", "warning")
def misspelt_permission(file: Analysis, report: Report) -> None:
    """A permission is nearly, but not quite, one that is known.

    A role may have permissions of any name: for extensions, for functions of skills, or to tell roles apart. A misspelt
    one allows nothing. Known are those that built-in actions need, and in roles those of functions, too.

    Wrong:

        role Worker { can exeucte }

    Right:

        role Worker { can execute }
    """
    needed = [permission for permission in report.program.permissions.values() if permission not in PERMISSIONS]
    for role, _ in file.index.of(n.Role):
        for name in role.capabilities:
            near = _near(name.name, [*PERMISSIONS, *needed])
            if near is not None:
                what = "function of the program" if near in needed else "built-in action"
                message = f"no {what} needs the permission `{name.name}`"
                fixes = report.replacement(name.span, near)
                report.add(name.span, message, help=f"did you mean `can {near}`?", fixes=fixes)
    for name in _find_needs(file):
        near = _near(name.name, PERMISSIONS)
        if near is not None:
            help, fixes = f"did you mean `needs {near}`?", report.replacement(name.span, near)
            report.add(name.span, f"no permission is called `{name.name}`", help=help, fixes=fixes)


def _find_needs(file: Analysis) -> Iterator[n.Name]:
    """The permissions that skills and their functions say they need."""
    yield from (needs.permission for needs, _ in file.index.of(n.Needs))
    yield from (function.needs for function, _ in file.index.of(n.Function) if function.needs is not None)


@rule("E0210", "warning")
def unknown_event(file: Analysis, report: Report) -> None:
    """Code calls `handle` of an agent with an event that the agent does not handle.

    The call fails when the program gets there. The text is the name of an `on` of that agent.

    Wrong:

        in agent: on add(args) { return 1 }  on start(args) { return await this.handle("ad", {}) }

    Right:

        in agent: on add(args) { return 1 }  on start(args) { return await this.handle("add", {}) }
    """
    for event, agent, symbol in _handle_calls(file):
        known = [handler.name.name for handler in handlers(agent)]
        if event.value not in known:
            near = nearest(event.value, known)
            listed = ", ".join(f"`{name}`" for name in known[:8])
            help = f"did you mean `{near}`?" if near else f"it has {listed}." if known else "it has no handlers."
            others = [] if symbol is None else [place_of(symbol, "the agent")]
            message = f"`{agent.name.name}` has no handler `{event.value}`"
            report.add(
                event.span, message, others=others, help=help, fixes=report.replacement(report.inside(event), near)
            )


@rule("E0252", "error")
def narrowed_to_no_role(file: Analysis, report: Report) -> None:
    """A call by `handle` is narrowed to something that is no role, or has an option that does not exist.

    `{ as: Reader }` has the call, and all that is called from it, do no more than the role `Reader` allows beside the
    role of each agent. A role stands there by its name, without quotes.

    Wrong:

        in agent: on add(args) { return 1 }  on start(args) { return await this.handle("add", args, { as: "Reader" }) }

    Right:

        role Worker { can execute }
        role Reader { can read }
        agent Adder : Worker {
          on add(args) { return 1 }
          on start(args) { return await this.handle("add", args, { as: Reader }) }
        }
    """
    for call, around in file.index.of(n.Call):
        match call:
            case n.Call(
                callee=n.Member(object=n.Name() as name, name="handle"), arguments=(_, _, n.Object() as options)
            ):
                if _agent(name, around, file) is not None:
                    _check_options(options, around, file, report)


def _check_options(options: n.Object, around: Enclosing, file: Analysis, report: Report) -> None:
    for option in options.properties:
        if not isinstance(option, n.Property) or not isinstance(option.key, str):
            continue
        if option.key not in CALL_OPTIONS:
            help = suggestion(option.key, CALL_OPTIONS, "option")
            report.add(option.span, f"`handle` has no option `{option.key}`", help=help)
        elif option.key == "as" and (wrong := _no_role(option.value, around, file)):
            roles = file.table.names("role")[:8]
            help = f"known roles are {', '.join(f'`{role}`' for role in roles)}." if roles else "declare a role."
            report.add(option.value.span, f"a call is narrowed to a role, and {wrong}", help=help)


def _no_role(value: n.Expression, around: Enclosing, file: Analysis) -> str:
    """A clause that says what a value is instead of a role; empty where it is one, or may be."""
    match value:
        case n.Name(name=name) if not is_variable(value, around, file) and file.table.find("role", name) is None:
            symbol = file.table.values.get(name)
            return "" if symbol is None else f"`{name}` is {with_article(symbol.kind)}"
        case n.Text(value=text):
            return f'`"{text}"` is a text'
        case n.Literal() | n.Object() | n.Array() | n.Template():
            return "this is a plain value"
    return ""


def _near(name: str, permissions: Sequence[str]) -> str | None:
    """The permission that was meant: alike, or two letters changed places; None where it is one of them."""
    for known in () if name in permissions else permissions:
        is_long_enough = min(len(name), len(known)) >= MIN_CHARS
        is_alike = is_long_enough and SequenceMatcher(None, name, known).ratio() >= SLIP_IN_FIVE
        if is_alike or (sorted(name) == sorted(known) and name[:1] == known[:1]):
            return known
    return None


def _handle_calls(file: Analysis) -> Iterator[tuple[n.Text, n.Agent, Symbol | None]]:
    """Every `agent.handle("event")` whose agent is known: the event, the agent, and its symbol unless it is `this`."""
    for call, around in file.index.of(n.Call):
        match call:
            case n.Call(callee=n.Member(object=n.Name() as name, name="handle"), arguments=(n.Text() as event, *_)):
                symbol = None if name.name == "this" else file.table.find("agent", name.name)
                agent = _agent(name, around, file)
                if agent is not None:
                    yield event, agent, symbol


def _agent(name: n.Name, around: Enclosing, file: Analysis) -> n.Agent | None:
    if name.name == "this":
        return around.agent
    symbol = None if is_variable(name, around, file) else file.table.find("agent", name.name)
    return symbol.node if symbol is not None and isinstance(symbol.node, n.Agent) else None

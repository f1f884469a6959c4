"""Names of declarations: roles, agents, teams, skills, MCP servers and prompts that nobody declares."""

from __future__ import annotations

import sys

from koi_lang.agent_address import COMMAND, parse_address, parse_command
from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.build import RESERVED
from koi_lang.compiler.rules.program import handlers, place_of, prompts_in, prompts_of, with_article
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.rules.tests import handler_calls
from koi_lang.compiler.symbols import Kind, Symbol
from koi_lang.diagnostics import Advice, nearest, replacement
from koi_lang.errors import installing
from koi_lang.source import Span

# What code can call of any agent.
MEMBERS_OF_AGENTS = frozenset(("handle", "callSkill", "callAction", "toString", "hasOwnProperty"))
# What people call of an agent, and what there is.
NO_HANDLERS = {
    **dict.fromkeys(("log", "print"), "write `console.log(…)`."),
    **dict.fromkeys(("send", "emit", "ask", "delegate"), 'write `await send peers.event("…").any()({ … })`.'),
    **dict.fromkeys(("llm", "generate", "chat", "complete"), 'write `await callAction("call_llm", { … })`.'),
    **dict.fromkeys(("setState", "set_state", "updateState"), "assign to its state: `this.state.name = …`."),
}
# Reserved words that a handler may be called after all.
ALLOWED = frozenset(("try", "catch", "finally", "throw", "instanceof"))
RESERVED_BY_JAVASCRIPT = frozenset(
    "break case class continue debugger delete do enum extends new super switch this typeof void with".split()
)


@rule("E0201", "error")
def unknown_role(file: Analysis, report: Report) -> None:
    """A role is named that nobody declares.

    Every agent has a role, and the role says what the agent may do. Without it nothing could be allowed, so the
    program is not started. Capital letters count.

    Wrong:

        role Worker { can execute }
        agent Greeter : Wroker { }

    Right:

        role Worker { can execute }
        agent Greeter : Worker { }
    """
    named = [agent.role for agent, _ in file.index.of(n.Agent)]
    named += [name for send, _ in file.index.of(n.Send) for name in send.roles]
    for name in named:
        if file.table.find("role", name.name) is None:
            advice = report.program.advice("role", name, file)
            report.add(name.span, f"there is no role `{name.name}`", help=advice.help, fixes=advice.fixes)


@rule("E0202", "error")
def unknown_agent(file: Analysis, report: Report) -> None:
    """An agent is named that nobody declares.

    Teams list agents, and `run` starts one. An agent of another file is known once that file is imported.

    Wrong:

        role Worker { can execute }
        agent Greeter : Worker { on hello(args) { return args } }
        run Greter.hello({})

    Right:

        role Worker { can execute }
        agent Greeter : Worker { on hello(args) { return args } }
        run Greeter.hello({})
    """
    named = [run.agent for run, _ in file.index.of(n.Run)]
    members = [member.value for member, _ in file.index.of(n.TeamMember)]
    named += [value for value in members if isinstance(value, n.Name) and value.name not in file.table.values]
    for name in named:
        if file.table.find("agent", name.name) is None:
            advice = _other_kind(name, file, "agent") or report.program.advice("agent", name, file)
            report.add(name.span, f"there is no agent `{name.name}`", help=advice.help, fixes=advice.fixes)


@rule("E0203", "error")
def unknown_team(file: Analysis, report: Report) -> None:
    """An agent uses a team that nobody declares.

    `uses team` says whom the agent may ask for help; `peers` means these teams. The name must be that of a team in
    this file or in an imported one.

    Wrong:

        role Lead { can delegate }
        team Support { greeter: Greeter }
        agent Greeter : Lead { }
        agent Boss : Lead { uses team Suport }

    Right:

        role Lead { can delegate }
        team Support { greeter: Greeter }
        agent Greeter : Lead { }
        agent Boss : Lead { uses team Support }
    """
    for name in _unresolved_uses(file, "team"):
        advice = _other_kind(name, file, "team") or report.program.advice("team", name, file)
        report.add(name.span, f"there is no team `{name.name}`", help=advice.help, fixes=advice.fixes)


@rule("E0204", "error")
def unknown_skill(file: Analysis, report: Report) -> None:
    """An agent uses a skill that nobody declares.

    A skill is a group of functions. Its name is the one after `skill`, not the name of its file and not that of one
    of its functions.

    Wrong:

        role Worker { can execute }
        skill Sums { export function add(a, b) { return a + b } }
        agent Clerk : Worker { uses skill add }

    Right:

        role Worker { can execute }
        skill Sums { export function add(a, b) { return a + b } }
        agent Clerk : Worker { uses skill Sums }
    """
    for name in _unresolved_uses(file, "skill"):
        advice = _other_kind(name, file, "skill") or report.program.advice("skill", name, file)
        report.add(name.span, f"there is no skill `{name.name}`", help=advice.help, fixes=advice.fixes)


@rule("E0205", "error")
def unknown_server(file: Analysis, report: Report) -> None:
    """The name of an MCP server is misspelt, or another file declares it.

    `uses mcp` names a server that an `mcp` declaration of this file describes. Such declarations do not travel through
    imports, because they start programs on this machine: the file that uses a server declares it. A name that is like
    none of those stands for a server that `.mcp.json` or `koi.toml` describes. `koi check` warns where those of the
    current folder do not.

    Wrong:

        role Caller { can call_mcp }
        mcp files = { command: "files-server" }
        agent Clerk : Caller { uses mcp file }

    Right:

        role Caller { can call_mcp }
        mcp files = { command: "files-server" }
        agent Clerk : Caller { uses mcp files }
    """
    for name in _unresolved_uses(file, "mcp"):
        if nearest(name.name, file.table.names("mcp")) or report.program.elsewhere("mcp", name.name):
            advice = report.program.advice("mcp", name, file)
            message = f"there is no mcp server `{name.name}`"
            report.add(name.span, message, help=advice.help, fixes=advice.fixes)


# What people call to read a prompt from a file.
READERS = frozenset({"file", "read", "readFile", "load", "open", "include", "import_text", "fromFile"})


@rule("E0206", "error")
def unknown_prompt(file: Analysis, report: Report) -> None:
    """A prompt is named that nobody declares.

    A playbook may be put together from texts and prompts: `playbook Rules + "Be quick."`. A name in it is always that
    of a prompt; values get into the text with `{{args.name}}`. A prompt of another file must be exported there.

    Wrong:

        role Worker { can execute }
        prompt Rules = "Be brief."
        agent Greeter : Worker { on hello(args) { playbook Rule + "Greet." } }

    Right:

        role Worker { can execute }
        prompt Rules = "Be brief."
        agent Greeter : Worker { on hello(args) { playbook Rules + "Greet." } }
    """
    named = [name for playbook, _ in file.index.of(n.Playbook) for name in prompts_in(playbook.parts)]
    named += [name for prompt, _ in file.index.of(n.Prompt) for name in prompts_of(prompt)]
    for name in named:
        if file.table.find("prompt", name.name) is None:
            if file.unit.source.text[name.span.end : name.span.end + 1] == "(" and name.name in READERS:
                help = 'its text stands in the program: `playbook "…"`.'
                report.add(
                    name.span,
                    f"no function gives the text of a playbook, and there is no prompt `{name.name}`",
                    help=help,
                )
                continue
            advice = _other_kind(name, file, "prompt") or report.program.advice("prompt", name, file)
            report.add(name.span, f"there is no prompt `{name.name}`", help=advice.help, fixes=advice.fixes)


@rule("E0207", "error")
def unknown_handler(file: Analysis, report: Report) -> None:
    """`run`, code or a test calls a handler that the agent does not have.

    The program would stop at this step. The name after the dot is that of an `on` of the agent.

    Wrong:

        role Worker { can execute }
        agent Greeter : Worker { on hello(args) { return args } }
        run Greeter.helo({})

    Right:

        role Worker { can execute }
        agent Greeter : Worker { on hello(args) { return args } }
        run Greeter.hello({})
    """
    runs = [(run.handler, file.table.find("agent", run.agent.name)) for run, _ in file.index.of(n.Run)]
    calls = [(name, symbol) for _, name, symbol in handler_calls(file) if name.name not in MEMBERS_OF_AGENTS]
    for name, symbol in [*runs, *calls]:
        if symbol is not None and isinstance(symbol.node, n.Agent):
            names = [handler.name.name for handler in handlers(symbol.node)]
            if name.name not in names:
                _report_handler(name, symbol, names, report)


def _report_handler(name: n.Name, symbol: Symbol, names: list[str], report: Report) -> None:
    wanted = name.name
    near = nearest(wanted, [*names, *sorted(MEMBERS_OF_AGENTS)])
    listed = ", ".join(f"`{name}`" for name in names[:8])
    help = (
        f"did you mean `{near}`?" if near else f"it has {listed}." if names else f"write `on {wanted}(args) {{ … }}`."
    )
    help = NO_HANDLERS.get(wanted, help) if near is None else help
    message = f"`{symbol.name}` has no handler `{wanted}`"
    fixes = report.replacement(name.span, near)
    report.add(name.span, message, others=[place_of(symbol, "the agent")], help=help, fixes=fixes)


@rule("E0208", "error")
def wrong_member(file: Analysis, report: Report) -> None:
    """A member of a team is neither an agent nor an address.

    A team lists agents by name, tools of servers as `mcp://server/tool`, agents of other programs as `a2a://host/agent`,
    and agents that a command starts as `acp://command/argument`. Teams cannot be nested: an agent may use several
    teams instead.

    Wrong:

        role Worker { can execute }
        agent Greeter : Worker { }
        team Inner { greeter: Greeter }
        team Outer { inner: Inner }

    Right:

        role Worker { can execute }
        agent Greeter : Worker { }
        team Inner { greeter: Greeter }
        team Outer { greeter: Greeter }
    """
    for member, _ in file.index.of(n.TeamMember):
        value = member.value
        if isinstance(value, n.Name):
            _check_named(value, file, report)
        elif member.tool is not None:
            _check_address(value, member.tool, file, report)
        elif member.remote is not None:
            _check_remote(value, member.remote, report)
        elif isinstance(value, n.Text):
            _check_quoted(value, file, report)


def _check_address(value: n.Node, address: tuple[str, str], file: Analysis, report: Report) -> None:
    """An address names a tool; its server is declared, or described by files beside the program."""
    server, tool = address
    near = None if file.table.find("mcp", server) else nearest(server, file.table.names("mcp"))
    if near is not None:
        at = file.unit.source.text.index(server, value.span.start)
        help, fixes = f"did you mean `mcp://{near}/{tool}`?", report.replacement(Span(at, at + len(server)), near)
        report.add(value.span, f"there is no mcp server `{server}`", help=help, fixes=fixes)
    elif not tool:
        report.add(value.span, "the address names a server and no tool", help=f"write `mcp://{server}/name_of_a_tool`.")


def _check_remote(value: n.Node, address: str, report: Report) -> None:
    """An address of an agent names its host, without a user or anything behind the path."""
    is_command = address.startswith(COMMAND)
    if (parse_command if is_command else parse_address)(address) is None:
        form = "acp://command/argument" if is_command else "a2a://host/agent"
        report.add(value.span, f"`{address}` is no address of an agent", help=f"write `{form}`.")


def _check_named(value: n.Name, file: Analysis, report: Report) -> None:
    other = file.table.values.get(value.name)
    if other is not None and other.kind != "agent":
        message = f"`{value.name}` is {with_article(other.kind)} and cannot be a member"
        report.add(value.span, message, others=[place_of(other, "declared here")], help=MEMBERS)


def _check_quoted(value: n.Text, file: Analysis, report: Report) -> None:
    if file.table.find("agent", value.value) is None:
        advice = report.program.advice("agent", n.Name(report.inside(value), value.value), file)
        message = f"`{value.value}` is neither an agent nor an address"
        report.add(value.span, message, help=advice.help, fixes=advice.fixes)


MEMBERS = "members are agents, and addresses: `mcp://server/tool`, `a2a://host/agent`, `acp://command`."


@rule("E0209", "error")
def reserved_handler(file: Analysis, report: Report) -> None:
    """A handler has the name of a keyword.

    Words such as `import`, `if` or `return` begin something else in the language, in any letter case, and are not
    available as names of handlers.

    Wrong:

        role Worker { can execute }
        agent Greeter : Worker { on import(args) { return args } }

    Right:

        role Worker { can execute }
        agent Greeter : Worker { on start(args) { return args } }
    """
    words = RESERVED - ALLOWED
    for handler, _ in file.index.of(n.Handler):
        name = handler.name.name
        if name.lower() in words:
            help = f"call it `start`, `execute`, `process` or `{name.lower()}Handler`."
            report.add(handler.name.span, f"`{name}` is a reserved word and cannot be the name of a handler", help=help)


@rule("E0267", "error")
def reserved_name(file: Analysis, report: Report) -> None:
    """A variable, parameter or function has a name that JavaScript reserves.

    Words such as `class`, `enum` or `new` are no names there, and a reader takes them for what they are. After a dot
    and as keys of objects every word may stand.

    Wrong:

        in handler(args: { enum: number }): const { enum } = args  return enum

    Right:

        in handler(args: { enum: number }): const { enum: values } = args  return values
    """
    bindings = ((binding.name, binding.span) for binding, _ in file.index.of(n.Binding))
    functions = ((each.name, each.span) for each, _ in file.index.of(n.Function) if not each.exported)
    for name, span in (*bindings, *functions):
        if name in RESERVED_BY_JAVASCRIPT:
            place = Span(span.start, span.start + len(name)) if span.end - span.start == len(name) else span
            help = f"choose another name, such as `{name}Value`."
            report.add(place, f"`{name}` is a reserved word and cannot be a name", help=help)


@rule("E0220", "error")
def missing_module(file: Analysis, report: Report) -> None:
    """A Python module is imported that is not installed.

    `python:` is followed by the name of a module that Python itself or an installed package has. Modules are looked
    for where `koi` is installed. One beside the program is imported by its path: `"./module.py"`.

    Wrong:

        import jsn from "python:jsn"
        role Worker { can execute }
        agent Clerk : Worker { on work(args) { return jsn.dumps(args) } }

    Right:

        import json from "python:json"
        role Worker { can execute }
        agent Clerk : Worker { on work(args) { return json.dumps(args) } }
    """
    for imported in file.unit.imports:
        if imported.is_missing:
            top = imported.target.partition(".")[0]
            near = nearest(top, sys.stdlib_module_names, alike=0.8)
            help = f"did you mean `python:{near}`?" if near else installing(imported.target)
            name = imported.target if top in sys.stdlib_module_names else top
            help = f"write `python:{top}`." if name == imported.target != top else help
            path = imported.statement.path
            fixes = report.replacement(report.inside(path), f"python:{near}" if near else None)
            report.add(path.span, f"there is no Python module `{name}`", help=help, fixes=fixes)


def _unresolved_uses(file: Analysis, kind: Kind) -> list[n.Name]:
    """Names after `uses …` that stand for nothing of that kind."""
    names = [name for uses, _ in file.index.of(n.Uses) if uses.kind == kind for name in uses.names]
    return [name for name in names if file.table.find(kind, name.name) is None]


def _other_kind(name: n.Name, file: Analysis, wanted: Kind) -> Advice | None:
    """A help sentence when the name stands for something of another kind."""
    other = file.table.values.get(name.name)
    if other is None:
        return None
    if other.kind == "function" and other.owner is not None and wanted == "skill":
        skill = other.owner.name.name
        help = f"`{name.name}` is a function of the skill `{skill}`: write `uses skill {skill}`."
        return Advice(help, replacement(file.unit.source, name.span, skill))
    return Advice(f"`{name.name}` is {with_article(other.kind)}, not {with_article(wanted)}.")

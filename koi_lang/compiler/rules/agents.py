"""Parts of agents and options that have no effect, or not the one they look like."""

from __future__ import annotations

from collections.abc import Iterator

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.fixes import add_permission
from koi_lang.compiler.rules.kinds import exported_functions
from koi_lang.compiler.rules.program import handlers, is_variable, place_of, with_article
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.symbols import Kind
from koi_lang.diagnostics import nearest
from koi_lang.grants import IMPLIED
from koi_lang.settings.project import COMPACT_OPTIONS, DECLARED_OPTIONS, MODEL_OPTIONS, ROLES
from koi_lang.source import Span

RESILIENCE = ("retry_max_attempts", "retry_delay", "backoff", "timeout")
LLM_OPTIONS = (*MODEL_OPTIONS, "role", "answers")
# What starts a server, or says where it is.
STARTS = ("command", "url")


@rule("E0411", "warning")
def several_parameters(file: Analysis, report: Report) -> None:
    """A handler has more than one parameter.

    An event carries one payload, and the first parameter receives it; the others stay undefined. Put several values
    into one object.

    Wrong:

        in handler(a, b): return a + b

    Right:

        in handler({ a, b }): return a + b
    """
    for handler, _ in file.index.of(n.Handler):
        if len(handler.parameters) > 1:
            if isinstance(handler.parameters[0].pattern, n.Binding) and handler.parameters[0].pattern.name == "self":
                rest = file.unit.source.text[handler.parameters[1].span.start : handler.parameters[-1].span.end]
                help = f"write `on {handler.name.name}({' '.join(rest.split())})`; the agent is `this`."
                report.add(handler.parameters[0].span, "the agent is no parameter of its handlers", help=help)
                continue
            others = [report.place(handler.parameters[0].span, "the payload arrives here")]
            names = [
                parameter.pattern.name for parameter in handler.parameters if isinstance(parameter.pattern, n.Binding)
            ]
            help = f"send one object and take it apart: `on {handler.name.name}({{ {', '.join(names)} }}) {{ … }}`."
            message = f"only the first parameter of `{handler.name.name}` gets a value"
            report.add(handler.parameters[1].span, message, others=others, help=help)


@rule("E0412", "warning")
def agent_function(file: Analysis, report: Report) -> None:
    """A function is exported by an agent.

    It is accepted, because programs exist that do it, and has no effect: nobody can call it. Functions live in skills.

    Wrong:

        role Worker { can execute }
        agent Adder : Worker { export function add(a, b) { return a + b } }

    Right:

        role Worker { can execute }
        skill Sums { export function add(a, b) { return a + b } }
        agent Adder : Worker { uses skill Sums }
    """
    for agent, _ in file.index.of(n.Agent):
        for item in agent.items:
            if isinstance(item, n.Function):
                message = f"the function `{item.name}` of an agent has no effect"
                head = Span(item.span.start, max(item.span.start, item.body.span.start - 1))
                help = f"move it into a skill, and write `uses skill` in `{agent.name.name}`."
                report.add(head, message, help=help)


@rule("E0413", "error")
def resilience_of_nothing(file: Analysis, report: Report) -> None:
    """A `resilience` block names a handler that the agent does not have.

    The block says how often a handler is tried again when it fails; its text is the handler's name.

    Wrong:

        in agent:
          resilience "laod" { retry_max_attempts = 3 }
          on load(args) { return await fetch(args.url) }

    Right:

        in agent:
          resilience "load" { retry_max_attempts = 3 }
          on load(args) { return await fetch(args.url) }
    """
    for agent, _ in file.index.of(n.Agent):
        names = [handler.name.name for handler in handlers(agent)]
        for item in agent.items:
            if isinstance(item, n.Resilience) and item.name.value not in names:
                message = f"`{agent.name.name}` has no handler `{item.name.value}`"
                fixes = report.replacement(report.inside(item.name), nearest(item.name.value, names))
                report.add(item.name.span, message, help=_choice(item.name.value, names, "it has"), fixes=fixes)


@rule("E0414", "warning")
def unknown_resilience(file: Analysis, report: Report) -> None:
    """A `resilience` block has a property that does not exist.

    It is left out. The properties are `retry_max_attempts`, `retry_delay`, `backoff` and `timeout`.

    Wrong:

        in agent:
          resilience "load" { retry_max_atempts = 3 }
          on load(args) { return await fetch(args.url) }

    Right:

        in agent:
          resilience "load" { retry_max_attempts = 3 }
          on load(args) { return await fetch(args.url) }
    """
    for block, _ in file.index.of(n.Resilience):
        for name, _ in block.properties:
            if name.name not in RESILIENCE:
                help = _choice(name.name, RESILIENCE, "there are")
                fixes = report.replacement(name.span, nearest(name.name, RESILIENCE))
                report.add(name.span, f"`resilience` has no property `{name.name}`", help=help, fixes=fixes)


@rule("E0415", "warning")
def several_arguments(file: Analysis, report: Report) -> None:
    """`run` gives more than one argument.

    A handler takes one payload, so the others are lost. Put several values into one object.

    Wrong:

        role Worker { can execute }
        agent Adder : Worker { on add(args) { return args } }
        run Adder.add(1, 2)

    Right:

        role Worker { can execute }
        agent Adder : Worker { on add(args) { return args } }
        run Adder.add({ a: 1, b: 2 })
    """
    for run, _ in file.index.of(n.Run):
        if len(run.arguments) > 1 and not isinstance(run.arguments[1], n.Assignment):
            message = f"`{run.handler.name}` gets the first argument only"
            help = f"write `run {run.agent.name}.{run.handler.name}({{ a: …, b: … }})`."
            report.add(run.arguments[1].span, message, help=help)


@rule("E0416", "warning")
def unknown_llm_option(file: Analysis, report: Report) -> None:
    """The `llm` block of an agent has an option that does not exist.

    It is left out. The options are `provider`, `model`, `temperature`, `max_tokens`, `effort`, `top_p`, `seed`,
    `extra_body`, `context_tokens`, `compact`, `base_url`, `transport`, `interface`, `fallback`, `cache`, `role` and,
    for the provider `scripted`, `answers`; those of `compact` are `enabled`, `reserve_tokens`, `keep_tokens` and
    `threshold_tokens`.

    Wrong:

        in agent: llm default = { provider: "openai", modle: "gpt-4o-mini" }

    Right:

        in agent: llm default = { provider: "openai", model: "gpt-4o-mini" }
    """
    for llm, _ in file.index.of(n.Llm):
        for property in _unknown_options(llm.options, LLM_OPTIONS):
            _report_option(property, "llm", LLM_OPTIONS, report)
        for property in _unknown_inside(llm.options, "compact", COMPACT_OPTIONS):
            _report_option(property, "compact", COMPACT_OPTIONS, report)


@rule("E0426", "error")
def unknown_llm_role(file: Analysis, report: Report) -> None:
    """An agent has an `llm` block for a purpose that does not exist, or one whose `role` does not.

    Nothing would use it, and the model that is meant would be another one. The purposes are `default`, `small` for
    lesser work, `judge` and `embedding`.

    Wrong:

        in agent: llm defalt = { model: "anthropic/haiku" }

    Right:

        in agent: llm default = { model: "anthropic/haiku" }
    """
    for llm, _ in file.index.of(n.Llm):
        if llm.name not in ROLES:
            at = file.unit.source.text.index(llm.name, llm.span.start + len("llm"))
            span = Span(at, at + len(llm.name))
            help, fixes = _choice(llm.name, ROLES, "there are"), report.replacement(span, nearest(llm.name, ROLES))
            report.add(span, f"there is no `llm {llm.name}`", help=help, fixes=fixes)
        for option in llm.options.properties:
            role = (
                getattr(option.value, "value", None) if isinstance(option, n.Property) and option.key == "role" else ""
            )
            if role and role not in ROLES:
                report.add(option.span, f"no model has the role `{role}`", help=_choice(role, ROLES, "there are"))


@rule("E0417", "warning")
def unknown_mcp_option(file: Analysis, report: Report) -> None:
    """An `mcp` declaration has an option that does not exist.

    It is left out. A server that is started here has `command`, `args`, `env` and `cwd`; one that is reached by
    address has `type` (`"http"`, or `"sse"` for older ones), `url`, `headers` and `oauth`. `ask` and `deny` list tools
    of either that the person has to agree to, or that nobody may use; `start_timeout_s`, `timeout_s` and `max_bytes`
    are limits.

    Wrong:

        mcp files = { command: "files-server", argss: ["--all"] }

    Right:

        mcp files = { command: "files-server", args: ["--all"] }
    """
    for server, _ in file.index.of(n.Mcp):
        for property in _unknown_options(server.options, DECLARED_OPTIONS):
            if property is not _misspelt_start(server):
                _report_option(property, "mcp", DECLARED_OPTIONS, report)


@rule("E0257", "error")
def made_declaration(file: Analysis, report: Report) -> None:
    """`new` stands before an agent, a team, a skill or a type.

    There is one of each agent in a run, from its beginning on; code calls its handlers.

    Wrong:

        role Worker { can execute }
        agent Adder : Worker { on add(args: { a: number }) { return args.a + 1 } }
        agent Main : Worker { on start() { return await new Adder().add({ a: 1 }) } }

    Right:

        role Worker { can execute }
        agent Adder : Worker { on add(args: { a: number }) { return args.a + 1 } }
        agent Main : Worker { on start() { return await Adder.add({ a: 1 }) } }
    """
    for new, around in file.index.of(n.New):
        if not isinstance(new.callee, n.Name) or is_variable(new.callee, around, file):
            continue
        name = new.callee.name
        kinds: tuple[Kind, ...] = ("agent", "team", "skill", "type")
        symbol = next((found for kind in kinds if (found := file.table.find(kind, name)) is not None), None)
        if symbol is not None:
            events = [each.name.name for each in handlers(symbol.node)] if isinstance(symbol.node, n.Agent) else []
            helps = {
                "agent": f"write `await {name}.{(events or ['event'])[0]}({{ … }})`: there is one in each run.",
                "team": 'write `await send peers.event("…").any()({ … })`.',
                "skill": "call its functions by their names.",
                "type": "write its fields: `{ … }`.",
            }
            message = f"`{name}` is {with_article(symbol.kind)}, which `new` does not make"
            report.add(new.span, message, help=helps[symbol.kind])


@rule("E0446", "error")
def server_without_start(file: Analysis, report: Report) -> None:
    """An `mcp` declaration says neither how its server is started nor where it is reached.

    Wrong:

        mcp files = { comand: "files-server" }

    Right:

        mcp files = { command: "files-server" }
    """
    for server, _ in file.index.of(n.Mcp):
        options = server.options.properties
        if any(isinstance(each, n.Spread) or each.key in STARTS or not isinstance(each.key, str) for each in options):
            continue
        property = _misspelt_start(server)
        if property is not None:
            _report_option(property, "mcp", STARTS, report)
        else:
            message = f"`{server.name.name}` has neither a `command` nor a `url`"
            inner = next((each.value for each in options if isinstance(each, n.Property)), None)
            help = 'write `command: "…"`, or `url: "https://…"`.'
            if isinstance(inner, n.Object):
                help = 'declare each server by itself: `mcp files = { command: "…", args: [ … ] }`.'
            report.add(server.name.span, message, help=help)


def _misspelt_start(server: n.Mcp) -> n.Property | None:
    """The option of a server that is meant for the one by which it is started or reached, where neither is there."""
    options = [each for each in server.options.properties if isinstance(each, n.Property)]
    if any(each.key in STARTS for each in options):
        return None
    unknown = (each for each in options if isinstance(each.key, str) and each.key not in DECLARED_OPTIONS)
    return next((each for each in unknown if nearest(str(each.key), STARTS)), None)


@rule("E0403", "warning")
def server_without_permission(file: Analysis, report: Report) -> None:
    """Code of an agent calls an MCP server, and the agent's role lacks the permission `call_mcp`.

    What a role lists bounds what its agents do. Code is the author's own, so this is a warning there; with `--strict`
    it is an error, and for what a model proposes the permission is always required. One message an agent.

    Wrong:

        role Worker { can execute }
        mcp files = { command: "files-server" }
        agent Clerk : Worker { uses mcp files  on read(args) { return await files.read({ path: args.path }) } }

    Right:

        role Worker { can execute, can call_mcp }
        mcp files = { command: "files-server" }
        agent Clerk : Worker { uses mcp files  on read(args) { return await files.read({ path: args.path }) } }
    """
    seen: set[n.Agent] = set()
    for handler, around in file.index.of(n.Handler):
        agent, servers = around.agent, file.servers.get(handler)
        used = [name for server in sorted(servers or ()) for name in file.code[handler].outer.get(server, ())]
        if agent is None or agent in seen or not used:
            continue
        seen.add(agent)
        role = report.program.role_of(agent, file)
        if role is not None and isinstance(role.node, n.Role) and not role.node.has_permission("call_mcp"):
            others = [place_of(role, f"the role of `{agent.name.name}`")]
            message = f"`{agent.name.name}` may not call the mcp server `{used[0].name}`"
            help, fix = f"add `can call_mcp` to `{role.name}`.", add_permission(role.node, "call_mcp", role.unit.source)
            place = report.place(used[0].span, "needs the permission `call_mcp`")
            report.add(place, message, others=others, help=help, fixes=[fix])


@rule("E0447", "warning")
def use_without_permission(file: Analysis, report: Report) -> None:
    """An agent with a playbook uses something that its role does not let the model touch.

    A model calls tools of MCP servers with `call_mcp`, and members of teams with `delegate`; functions of a skill need
    the permission that the skill names. Older programs call servers with `execute`, which does not permit that here.

    Wrong:

        role Worker { can execute }
        mcp files = { command: "files-server" }
        agent Clerk : Worker { uses mcp files  on list(args) { playbook "List the files." } }

    Right:

        role Worker { can execute, can call_mcp }
        mcp files = { command: "files-server" }
        agent Clerk : Worker { uses mcp files  on list(args) { playbook "List the files." } }
    """
    asking = {around.agent for playbook, around in file.index.of(n.Playbook) if not playbook.answers}
    for uses, around in file.index.of(n.Uses):
        agent = around.agent
        role = report.program.role_of(agent, file) if agent is not None and agent in asking else None
        if agent is None or role is None or not isinstance(role.node, n.Role):
            continue
        for name in uses.names:
            needed = _permissions_for(uses.kind, name.name, file, report)
            if not needed or any(
                role.node.has_permission(each) for each in (*needed, *map(IMPLIED.get, needed)) if each
            ):
                continue
            older = ": `execute` was enough in older programs" if uses.kind == "mcp" else ""
            message = f"no model of `{agent.name.name}` can use `{name.name}`{older}"
            help, others = (
                f"add `can {needed[0]}` to `{role.name}`.",
                [place_of(role, f"the role of `{agent.name.name}`")],
            )
            fixes = [add_permission(role.node, needed[0], role.unit.source)]
            place = report.place(name.span, f"needs the permission `{needed[0]}`")
            report.add(place, message, others=others, help=help, fixes=fixes)


def _permissions_for(kind: str, name: str, file: Analysis, report: Report) -> list[str]:
    """The permissions any of which lets a model use something; none where it needs none."""
    if kind != "skill":
        return {"mcp": ["call_mcp"], "team": ["delegate"]}.get(kind, [])
    symbol = file.table.find("skill", name)
    if symbol is None or not isinstance(symbol.node, n.Skill):
        return []
    functions = exported_functions(symbol.node).values()
    needed = [report.program.permissions.get(each) for each in functions]
    return [] if None in needed else list(dict.fromkeys(each for each in needed if each is not None))


def _unknown_options(options: n.Object, known: tuple[str, ...]) -> Iterator[n.Property]:
    for property in options.properties:
        if isinstance(property, n.Property) and isinstance(property.key, str) and property.key not in known:
            yield property


def _unknown_inside(options: n.Object, name: str, known: tuple[str, ...]) -> Iterator[n.Property]:
    """The same in an object that is the value of an option."""
    for property in options.properties:
        if isinstance(property, n.Property) and property.key == name and isinstance(property.value, n.Object):
            yield from _unknown_options(property.value, known)


def _key(property: n.Property) -> Span:
    end = property.span.end if property.shorthand else property.value.span.start
    return Span(property.span.start, min(end, property.span.start + len(str(property.key))))


def _report_option(property: n.Property, owner: str, known: tuple[str, ...], report: Report) -> None:
    wanted, place = str(property.key), _key(property)
    fixes = report.replacement(place, nearest(wanted, known))
    help = _choice(wanted, known, "there are")
    report.add(place, f"`{owner}` has no option `{wanted}`", help=help, fixes=fixes)


def _choice(wanted: str, known: list[str] | tuple[str, ...], otherwise: str) -> str:
    """A help sentence: the nearest name, else all of them."""
    near = nearest(wanted, known)
    if near is not None:
        return f"did you mean `{near}`?"
    return f"{otherwise} {', '.join(f'`{name}`' for name in known)}." if known else "it has no handlers."

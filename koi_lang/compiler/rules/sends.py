"""`send` and `peers`: whether somebody is there who handles the event, and whether the sender may send."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.program import AnalysedProgram, Members, is_variable, place_of, with_permission
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.rules.tests import agent_of
from koi_lang.compiler.walk import Enclosing
from koi_lang.diagnostics import LabeledSpan, nearest
from koi_lang.source import Span

SELECTIONS = frozenset(("event", "role", "as", "any", "all"))
SEND = re.compile(r"await\s+send\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SendTarget:
    """Whom a `send` may reach.

    Attributes:
        name: how a message calls them.
        place: the team, if it is a single one.
        members: those of each team.
    """

    name: str
    place: LabeledSpan | None
    members: list[Members]

    def handling(self, event: str) -> list[tuple[n.Agent, Analysis]]:
        """The members that have a handler for an event."""
        return [entry for team in self.members for entry in team.by_event.get(event, ())]

    @property
    def events(self) -> list[str]:
        """Everything the members have handlers for."""
        return list(dict.fromkeys(event for team in self.members for event in team.by_event))


@rule("E0231", "error")
def nobody_handles(file: Analysis, report: Report) -> None:
    """An event is sent that no member of the team handles.

    A `send` looks for a member that has a handler with exactly this name. If there is none, the program fails when it
    gets there. `peers` are the members of the teams that the agent uses, else of those that it belongs to.

    Wrong:

        role Lead { can delegate }
        agent Adder : Lead { on add(args) { return args.a + args.b } }
        team Sums { adder: Adder }
        agent Boss : Lead {
          uses team Sums
          on start(args) { return await send peers.event("sum").any()({ a: 1, b: 2 }) }
        }

    Right:

        role Lead { can delegate }
        agent Adder : Lead { on add(args) { return args.a + args.b } }
        team Sums { adder: Adder }
        agent Boss : Lead {
          uses team Sums
          on start(args) { return await send peers.event("add").any()({ a: 1, b: 2 }) }
        }
    """
    for send, _, target in targets(file, report.program):
        if not target.handling(send.event):
            others = [target.place] if target.place is not None else []
            message = f"nobody in {target.name} handles `{send.event}`"
            near, help = nearest(send.event, target.events), _events_help(send.event, target.events)
            fixes = report.replacement(Span(send.event_span.start + 1, send.event_span.end - 1), near)
            report.add(send.event_span, message, others=others, help=help, fixes=fixes)


@rule("E0232", "error")
def nobody_has_role(file: Analysis, report: Report) -> None:
    """An event is sent to a role that none of those who handle it has.

    `.role(R)` keeps the members whose role is R. What the role may do does not count, only its name.

    Wrong:

        role Lead { can delegate }
        role Worker { can execute }
        agent Adder : Worker { on add(args) { return args.a + args.b } }
        team Sums { adder: Adder }
        agent Boss : Lead {
          uses team Sums
          on start(args) { return await send peers.event("add").role(Lead).any()({ a: 1, b: 2 }) }
        }

    Right:

        role Lead { can delegate }
        role Worker { can execute }
        agent Adder : Worker { on add(args) { return args.a + args.b } }
        team Sums { adder: Adder }
        agent Boss : Lead {
          uses team Sums
          on start(args) { return await send peers.event("add").role(Worker).any()({ a: 1, b: 2 }) }
        }
    """
    for send, _, target in targets(file, report.program):
        if send.role is None or file.table.find("role", send.role.name) is None:
            continue
        handling = [agent for agent, _ in target.handling(send.event)]
        if handling and all(agent.role.name != send.role.name for agent in handling):
            message = f"nobody in {target.name} who handles `{send.event}` has the role `{send.role.name}`"
            others = [target.place] if target.place is not None else []
            help = f"`{handling[0].name.name}` handles it and has the role `{handling[0].role.name}`."
            report.add(send.role.span, message, others=others, help=help)


@rule("E0233", "error")
def send_missing(file: Analysis, report: Report) -> None:
    """An event is meant to be sent, and the word `send` is missing.

    `peers.event("name").any()` only says who is asked and what for. It is `await send` that asks.

    Wrong:

        role Lead { can delegate }
        agent Adder : Lead { on add(args) { return args.a + args.b } }
        team Sums { adder: Adder }
        agent Boss : Lead {
          uses team Sums
          on start(args) { return await peers.event("add").any()({ a: 1, b: 2 }) }
        }

    Right:

        role Lead { can delegate }
        agent Adder : Lead { on add(args) { return args.a + args.b } }
        team Sums { adder: Adder }
        agent Boss : Lead {
          uses team Sums
          on start(args) { return await send peers.event("add").any()({ a: 1, b: 2 }) }
        }
    """
    for call, around in file.index.of(n.Call):
        base = _receiver_of(call)
        if base is not None and _is_team(base, around, file):
            shown = file.unit.source.text[base.span.start : base.span.end]
            report.add(base.span, f"`send` is missing before `{shown}`", help=f"write `await send {shown}.event(…)`.")


@rule("E0237", "error")
def selection_missing(file: Analysis, report: Report) -> None:
    """A `send` does not say whom of those who handle the event it is for.

    `.any()` asks one of them, `.all()` each of them and gives a list of their answers.

    Wrong:

        role Lead { can delegate }
        agent Adder : Lead { on add(args) { return args.a + args.b } }
        team Sums { adder: Adder }
        agent Boss : Lead {
          uses team Sums
          on start(args) { return await send peers.event("add")({ a: 1, b: 2 }) }
        }

    Right:

        role Lead { can delegate }
        agent Adder : Lead { on add(args) { return args.a + args.b } }
        team Sums { adder: Adder }
        agent Boss : Lead {
          uses team Sums
          on start(args) { return await send peers.event("add").any()({ a: 1, b: 2 }) }
        }
    """
    for send, around in file.index.of(n.Send):
        if not send.select and _is_team(n.strip_parentheses(send.base), around, file):
            last = f".role({send.role.name})" if send.role is not None else f'.event("{send.event}")'
            help = f"write `{last}.any()`, or `.all()` for all of them."
            report.add(send.event_span, f"this `send` of `{send.event}` does not say whom it is for", help=help)


@rule("E0238", "error")
def team_out_of_reach(file: Analysis, report: Report) -> None:
    """An agent speaks to a team with `peers(Team)` that it neither uses nor belongs to.

    `peers` are the teams that an agent uses, else those that list it, and `peers(Team)` is one of them. The name of a
    team stands without quotes. A handler of one agent is called without `send`: `await Adder.add({ … })`.

    Wrong:

        role Lead { can delegate }
        agent Adder : Lead { on add(args) { return args.a + args.b } }
        team Sums { adder: Adder }
        team Others { adder: Adder }
        agent Boss : Lead {
          uses team Others
          on start(args) { return await send (peers(Sums)).event("add").any()(args) }
        }

    Right:

        role Lead { can delegate }
        agent Adder : Lead { on add(args) { return args.a + args.b } }
        team Sums { adder: Adder }
        agent Boss : Lead {
          uses team Sums
          on start(args) { return await send (peers(Sums)).event("add").any()(args) }
        }
    """
    for send, around in file.index.of(n.Send):
        agent = agent_of(send.base, around, file)
        if agent is not None:
            message = f"`{agent.name}` is an agent, and an event is sent to a team"
            report.add(send.base.span, message, help=f"write `await {agent.name}.{send.event}({{ … }})`.")
    for call, around in file.index.of(n.Call):
        match call:
            case n.Call(callee=n.Name(name="peers") as callee, arguments=(n.Text() as text,)):
                if not is_variable(callee, around, file):
                    message = f"the name of the team `{text.value}` stands in quotes"
                    report.add(text.span, message, help=f"write `peers({text.value})`.")
            case n.Call(callee=n.Name(name="peers") as callee, arguments=(n.Name() as named,)) if around.agent:
                team = report.program.team(named.name, file)
                reachable = report.program.teams_of(around.agent, file)
                if is_variable(callee, around, file) or is_variable(named, around, file) or not team or not reachable:
                    continue
                if all(team[0] is not each for each, _ in reachable):
                    message = f"`{around.agent.name.name}` has no access to the team `{named.name}`"
                    report.add(named.span, message, help=f"write `uses team {named.name}` in the agent.")


@rule("E0401", "warning")
def send_without_permission(file: Analysis, report: Report) -> None:
    """An agent sends to others, and its role lacks the permission `delegate`.

    What a role lists bounds what its agents do. Code is the author's own, so this is a warning there; with `--strict`
    it is an error, and for what a model proposes the permission is always required. One message an agent.

    Wrong:

        role Boss { can execute }
        agent Adder : Boss { on add(args) { return args.a + args.b } }
        team Sums { adder: Adder }
        agent Chief : Boss {
          uses team Sums
          on start(args) { return await send peers.event("add").any()({ a: 1, b: 2 }) }
        }

    Right:

        role Boss { can execute, can delegate }
        agent Adder : Boss { on add(args) { return args.a + args.b } }
        team Sums { adder: Adder }
        agent Chief : Boss {
          uses team Sums
          on start(args) { return await send peers.event("add").any()({ a: 1, b: 2 }) }
        }
    """
    seen: set[n.Agent] = set()
    for send, around in file.index.of(n.Send):
        agent = around.agent
        if agent is None or agent in seen:
            continue
        seen.add(agent)
        role = report.program.role_of(agent, file)
        if role is not None and isinstance(role.node, n.Role) and not role.node.has_permission("delegate"):
            others = [place_of(role, f"the role of `{agent.name.name}`")]
            advice, label = with_permission(role, "delegate"), "needs the permission `delegate`"
            message = f"`{agent.name.name}` may not send to its team"
            place = report.place(_head(send, file), label)
            report.add(place, message, others=others, help=advice.help, fixes=advice.fixes)


@rule("E0402", "warning")
def peers_without_team(file: Analysis, report: Report) -> None:
    """An agent speaks to its `peers`, and it uses no team and belongs to none.

    Nobody will be found, and the send fails when the program gets there.

    Wrong:

        role Lead { can delegate }
        agent Boss : Lead { on start(args) { return await send peers.event("add").any()(args) } }
        run Boss.start({})

    Right:

        role Lead { can delegate }
        agent Adder : Lead { on add(args) { return args.a + args.b } }
        team Sums { adder: Adder }
        agent Boss : Lead { uses team Sums  on start(args) { return await send peers.event("add").any()(args) } }
        run Boss.start({ a: 1, b: 2 })
    """
    if not report.program.starts:
        return
    seen: set[n.Agent] = set()
    for handler, around in file.index.of(n.Handler):
        agent, used = around.agent, file.code[handler].outer.get("peers")
        if agent is None or agent in seen or not used:
            continue
        if report.program.teams_of(agent, file) == []:
            seen.add(agent)
            help = "list it in a team, or write `uses team` and the name of a team in the agent."
            report.add(used[0].span, f"`{agent.name.name}` has no peers: it uses no team and is in none", help=help)


def targets(file: Analysis, program: AnalysedProgram) -> Iterator[tuple[n.Send, Enclosing, SendTarget]]:
    """Every `send` whose possible receivers are known before the program runs, with what it stands in."""
    for send, around in file.index.of(n.Send):
        teams = _teams(send.base, around, file, program)
        found = [program.members(team, home) for team, home in teams or ()]
        members = [each for each in found if each is not None]
        if not found or None in found:
            continue
        team, home = (teams or [])[0]
        if len(found) == 1:
            place = LabeledSpan(home.unit.source, team.name.span, "the team")
            yield send, around, SendTarget(f"`{team.name.name}`", place, members)
        elif around.agent is not None:
            yield send, around, SendTarget(f"the teams of `{around.agent.name.name}`", None, members)


def _teams(
    base: n.Expression, around: Enclosing, file: Analysis, program: AnalysedProgram
) -> list[tuple[n.Team, Analysis]] | None:
    """The teams that the base of a `send` stands for; None where only the running program knows."""
    base = n.strip_parentheses(base)
    if isinstance(base, n.Call) and isinstance(base.callee, n.Name) and base.callee.name == "peers":
        named = base.arguments[0] if len(base.arguments) == 1 else None
        return _teams(named, around, file, program) if isinstance(named, n.Name) and named.name != "peers" else None
    if not isinstance(base, n.Name) or is_variable(base, around, file):
        return None
    if base.name == "peers":
        return None if around.agent is None else program.teams_of(around.agent, file)
    team = program.team(base.name, file)
    return None if team is None else [team]


def _receiver_of(call: n.Call) -> n.Expression | None:
    """What stands before the selections of a call like `peers.event("name").any()({ … })`."""
    inner, names = call.callee, list[str]()
    while isinstance(inner, n.Call) and isinstance(inner.callee, n.Member) and inner.callee.name in SELECTIONS:
        names.append(inner.callee.name)
        inner = inner.callee.object
    return inner if "event" in names else None


def _is_team(base: n.Expression, around: Enclosing, file: Analysis) -> bool:
    """Whether a `send` may ask what an expression stands for: `peers`, `peers(Team)` or a team."""
    name = base.callee if isinstance(base, n.Call) else base
    if not isinstance(name, n.Name) or is_variable(name, around, file):
        return False
    return name.name == "peers" or (name is base and file.table.find("team", name.name) is not None)


def _events_help(wanted: str, events: list[str]) -> str:
    near = nearest(wanted, events)
    if near is not None:
        return f"did you mean `{near}`?"
    listed = ", ".join(f"`{event}`" for event in events[:8])
    return f"its members handle {listed}." if events else "its members have no handlers."


def _head(send: n.Send, file: Analysis) -> Span:
    """The words `await send`."""
    match = SEND.match(file.unit.source.text, send.span.start)
    return Span(*match.span()) if match else send.span

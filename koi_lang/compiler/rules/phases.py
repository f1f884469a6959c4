"""Phases and transitions that name what is not there, or give what their agent's role lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.program import place_of
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.diagnostics import nearest
from koi_lang.grants import permits

PHASE_DONE = "phase.done"
EVENTS = ("session.start", "invoked", "user.message", "any.result", PHASE_DONE, "error.llm", "error.tool")
LEVELS = ("none", "low", "medium", "high")
SETTINGS = ("effort", "reasoning")
CALLS = ("phase", "effort")


@rule("E0468", "error")
def unknown_phase(file: Analysis, report: Report) -> None:
    """A transition names a phase that the agent does not have.

    Wrong:

        in agent:
          phases { building { can execute } }
          transitions { when session.start { phase("biulding").start() } }
          on go() { return this.phase }

    Right:

        in agent:
          phases { building { can execute } }
          transitions { when session.start { phase("building").start() } }
          on go() { return this.phase }
    """
    for agent, _ in file.index.of(n.Agent):
        known = [phase.name.name for item in agent.items if isinstance(item, n.Phases) for phase in item.phases]
        for name in _named_phases(agent):
            if name.name not in known:
                fixes = report.replacement(name.span, nearest(name.name, known))
                help = _choice(name.name, known, "it has no phases.")
                report.add(name.span, f"`{agent.name.name}` has no phase `{name.name}`", help=help, fixes=fixes)


@rule("E0469", "error")
def unknown_transition_event(file: Analysis, report: Report) -> None:
    """A transition waits for something that never happens.

    There are `session.start`, `invoked`, `user.message`, `any.result`, `phase(name).done`, `error.llm` and
    `error.tool`, and `member.result` for each member of the agent's teams, by its key or the name of its agent.

    Wrong:

        in agent:
          phases { building { can execute } }
          transitions { when session.begin { phase("building").start() } }
          on go() { return this.phase }

    Right:

        in agent:
          phases { building { can execute } }
          transitions { when session.start { phase("building").start() } }
          on go() { return this.phase }
    """
    for agent, _ in file.index.of(n.Agent):
        members = _member_names(agent, file, report)
        known = [*EVENTS, *(f"{name}.result" for name in members or ())]
        for event in (event for clause in _clauses(agent) for event in clause.events):
            may_be_member = members is None and event.name.endswith(".result")
            if not may_be_member and event.name.lower() not in (name.lower() for name in known):
                fixes = report.replacement(event.span, nearest(event.name, known))
                help = _choice(event.name, known, "")
                report.add(event.span, f"nothing that happens is called `{event.name}`", help=help, fixes=fixes)


@rule("E0470", "error")
def unknown_phase_setting(file: Analysis, report: Report) -> None:
    """A phase has a setting, or a transition a step, that does not exist.

    A phase sets the `effort` of its model, `none`, `low`, `medium` or `high`. A transition has the steps
    `phase("name").start()` and `effort(level)`.

    Wrong:

        in agent:
          phases { building { can execute, effort: highest } }
          on go() { return this.phase }

    Right:

        in agent:
          phases { building { can execute, effort: high } }
          on go() { return this.phase }
    """
    for phase, _ in file.index.of(n.Phase):
        for setting, level in phase.settings:
            _require(setting, SETTINGS, "setting of a phase", report)
            _require(level, LEVELS, "effort", report)
    for call, _ in file.index.of(n.TransitionCall):
        _require(call.function, CALLS, "step of a transition", report)
        if call.function.name == "effort":
            _require(call.argument, LEVELS, "effort", report)
        method = call.method.name if call.method is not None else ""
        if call.function.name == "phase" and method != "start":
            report.add(call.span, "a transition starts a phase", help=f'write `phase("{call.argument.name}").start()`.')


@rule("E0471", "warning")
def phase_beyond_role(file: Analysis, report: Report) -> None:
    """A phase allows what the role of its agent does not.

    A phase takes permissions away for a while and gives none, so its `can` has no effect.

    Wrong:

        role Reader { can read }
        agent Main : Reader {
          phases { building { can write } }
          on go() { return this.phase }
        }

    Right:

        role Writer { can read, can write }
        agent Main : Writer {
          phases { building { can write } }
          on go() { return this.phase }
        }
    """
    for agent, _ in file.index.of(n.Agent):
        symbol = file.table.find("role", agent.role.name)
        if symbol is None or not isinstance(symbol.node, n.Role):
            continue
        role = symbol.node
        own = [name.name for name in role.capabilities]
        for name in (name for each in _phases(agent) for name in each.allowed):
            if not permits(own, name.name) and not any(each.startswith(f"{name.name}:") for each in own):
                message = f"the role `{role.name.name}` lacks `{name.name}`, and a phase gives nothing"
                others = [place_of(symbol, "the role")]
                help = f"write `can {name.name}` in the role, or leave it out here."
                report.add(name.span, message, others=others, help=help)


def _phases(agent: n.Agent) -> Iterator[n.Phase]:
    yield from (phase for item in agent.items if isinstance(item, n.Phases) for phase in item.phases)


def _clauses(agent: n.Agent) -> Iterator[n.Transition]:
    yield from (clause for item in agent.items if isinstance(item, n.Transitions) for clause in item.transitions)


def _named_phases(agent: n.Agent) -> Iterator[n.Name]:
    """The names of phases in the transitions of an agent."""
    for clause in _clauses(agent):
        for event in clause.events:
            if event.name == PHASE_DONE and event.argument is not None:
                yield event.argument
        yield from (call.argument for call in _calls(clause.steps) if call.function.name == "phase")


def _calls(steps: Sequence[n.Node]) -> Iterator[n.TransitionCall]:
    for step in steps:
        if isinstance(step, n.TransitionCall):
            yield step
        elif isinstance(step, n.TransitionChoice):
            yield from _calls((*step.then, *step.otherwise))


def _member_names(agent: n.Agent, file: Analysis, report: Report) -> list[str] | None:
    """The keys and the agents of all members of an agent's teams; None where only the running program knows them."""
    teams = report.program.teams_of(agent, file)
    if teams is None:
        return None
    members = [member for team, _ in teams for member in team.members]
    agents = [member.value.name for member in members if isinstance(member.value, n.Name)]
    return list(dict.fromkeys((*(member.key.name for member in members), *agents)))


def _require(name: n.Name, known: Sequence[str], what: str, report: Report) -> None:
    if name.name not in known:
        fixes = report.replacement(name.span, nearest(name.name, known))
        report.add(name.span, f"there is no {what} `{name.name}`", help=_choice(name.name, known, ""), fixes=fixes)


def _choice(wanted: str, known: Sequence[str], otherwise: str) -> str:
    near = nearest(wanted, known)
    listed = ", ".join(f"`{name}`" for name in known)
    return f"did you mean `{near}`?" if near is not None else f"there are {listed}." if known else otherwise

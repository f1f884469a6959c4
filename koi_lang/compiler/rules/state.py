"""Fields of the state that code uses: those that nobody declares, and lists that begin as nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.program import AnalysedProgram
from koi_lang.compiler.rules.scopes import has_open_state, is_state, state_fields
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.walk import everything
from koi_lang.diagnostics import MAX_NAMES, SLIP_IN_FOUR

STARTS = {"array": "[]", "object": "{}"}
CHANGES: tuple[type[n.Assignment | n.Update], ...] = (n.Assignment, n.Update)


@dataclass(frozen=True, slots=True)
class StateUses:
    """How the state of an agent is used in its file.

    Attributes:
        own: its fields in code of the agent, by their names.
        others: fields of the states of any agents.
        texts: what the playbooks of the agent are made of.
    """

    agent: n.Agent
    own: Mapping[str, list[n.Member]]
    others: Mapping[str, list[n.Member]]
    texts: Sequence[n.Text | n.Name | n.PromptCall]

    def of(self, field: str) -> list[n.Member]:
        """Every place where code uses a field, or one of that name of another agent."""
        return [*self.own.get(field, ()), *self.others.get(field, ())]

    def is_told(self, field: str) -> bool:
        """Whether a playbook mentions a field, or may do so by a prompt."""
        return any(not isinstance(part, n.Text) or field in part.value for part in self.texts)


@rule("E0228", "warning")
def state_without_start(file: Analysis, report: Report) -> None:
    """Code uses a list or object of the state that is nothing at the start.

    A field without a value begins as `null`, whatever its type, and has no members such as `push`. It is not said of
    fields that code assigns or compares, nor of those that a playbook mentions.

    Wrong:

        in agent: state { names: string[] }  on add(args) { this.state.names.push(args.name) }

    Right:

        in agent: state { names: string[] = [] }  on add(args) { this.state.names.push(args.name) }
    """
    needing = report.program.for_file(_bases, file)
    for uses in _uses(file, report.program):
        for name, field in fields_of(uses.agent).items():
            used = uses.of(name)
            is_empty = field.value is None and _start(field) is not None and name in uses.own
            if is_empty and needing.issuperset(used) and not uses.is_told(name):
                others = [report.place(field.span, "begins as `null`")]
                text = file.unit.source.text[field.span.start : field.span.end].rstrip(" ,")
                help = f"write `{' '.join(text.split())} = {_start(field)}`."
                report.add(used[0].name_span, f"`{name}` of the state is `null` at the start", others=others, help=help)


@rule("E0229", "warning")
def misspelt_state(file: Analysis, report: Report) -> None:
    """Code reads a field of the state that nobody declares or sets, or uses one that is nearly a declared one.

    A field that nobody has set reads as `undefined`, and one that nobody reads is set for nothing; `++` and `+=` make
    `NaN` of it. A name that is not near a declared one is reported only in a program with `run`, if no playbook of
    the agent mentions it.

    Wrong:

        in agent: state { count = 0 }  on add(args) { this.state.cuont = 1 }

    Right:

        in agent: state { count = 0 }  on add(args) { this.state.count = 1 }
    """
    targets = {assignment.target for assignment, _ in file.index.of(n.Assignment) if not assignment.operator}
    changes = (each for other in report.program.files for kind in CHANGES for each, _ in other.index.of(kind))
    changed = {part.name for each in changes for part in everything(each.target) if isinstance(part, n.Member)}
    for uses in _uses(file, report.program):
        known, settable = fields_of(uses.agent), state_fields(uses.agent, file, report.program) or frozenset()
        for name in (name for name in uses.own if name not in known):
            members = uses.of(name)
            is_one_sided = len({member in targets for member in members}) == 1
            near = get_close_matches(name, known, n=1, cutoff=SLIP_IN_FOUR)
            if near and is_one_sided and not uses.is_told(name):
                message = f"the state of `{uses.agent.name.name}` has no field `{name}`"
                others = [report.place(known[near[0]].name.span, "declared here")]
                first, *more = (member.name_span for member in members)
                fixes = report.replacement(first, near[0], *more)
                report.add(first, message, others=others, help=f"did you mean `{near[0]}`?", fixes=fixes)
            elif not near and report.program.starts and name not in settable | changed and not uses.is_told(name):
                listed = ", ".join(f"`{field}`" for field in [*known][:MAX_NAMES]) + ", …" * (len(known) > MAX_NAMES)
                message = f"nobody declares or sets the field `{name}` of the state of `{uses.agent.name.name}`"
                help = f"write `state {{ {name} = … }}`, or read one of its fields: {listed}."
                report.add(uses.own[name][0].name_span, message, help=help)
    if report.program.starts:
        _check_updates(file, report)


@rule("E0230", "error")
def value_as_type(file: Analysis, report: Report) -> None:
    """A field of the state has a value where its type belongs.

    Behind `:` stands the type, and the value behind `=`. The field would begin as `null`.

    Wrong:

        in agent: state { count: 0 }  on add(args) { this.state.count += 1 }

    Right:

        in agent: state { count = 0 }  on add(args) { this.state.count += 1 }
    """
    for field, _ in file.index.of(n.Field):
        type = field.type
        if type is None or field.value is not None or type.text == "null":
            continue
        if type.name == "literal" or (type.name == "object" and not type.fields):
            value = type.text if type.name == "literal" else "{}"
            message = f"`{value}` stands where the type of `{field.name.name}` belongs"
            report.add(type.span, message, help=f"write `{field.name.name} = {value}`.")


def _check_updates(file: Analysis, report: Report) -> None:
    """Report a field that `++`, `+=` and the like change, and that nothing gives a value to begin with."""
    updates: dict[tuple[n.Agent, str], n.Member] = {}
    begun = set[str]()
    for each in report.program.files:
        changes = [change for kind in CHANGES for change, _ in each.index.of(kind)]
        targets = (change.target for change in changes if not _is_update(change))
        begun |= {part.name for target in targets for part in everything(target) if isinstance(part, n.Member)}
    for kind in CHANGES:
        for change, around in file.index.of(kind):
            target = change.target
            if (
                around.agent is not None
                and _is_update(change)
                and isinstance(target, n.Member)
                and is_state(target.object)
            ):
                updates.setdefault((around.agent, target.name), target)
    texts = report.program.for_file(_texts, file)
    for (agent, name), member in updates.items():
        uses = StateUses(agent, {}, {}, texts.get(agent, []))
        is_begun = name in begun or name in fields_of(agent) or uses.is_told(name)
        if not is_begun and not has_open_state(agent, file, report.program):
            if get_close_matches(name, fields_of(agent), n=1, cutoff=SLIP_IN_FOUR):
                continue  # reported as a slip
            help = f"write `state {{ {name} = 0 }}` in `{agent.name.name}`."
            report.add(member.name_span, f"`{name}` of the state has no value to begin with", help=help)


def _is_update(change: n.Assignment | n.Update) -> bool:
    """Whether a change computes with the value that was there: `++` and `+=`, but not `??=`."""
    return isinstance(change, n.Update) or change.operator not in ("", "??", "||", "&&")


def fields_of(agent: n.Agent) -> Mapping[str, n.Field]:
    """The fields that the `state` blocks of an agent declare, by name."""
    return {field.name.name: field for item in agent.items if isinstance(item, n.State) for field in item.fields}


def _start(field: n.Field) -> str | None:
    """What a list or an object starts as; None for everything else."""
    return None if field.type is None else STARTS.get(field.type.name.lower())


def _uses(file: Analysis, program: AnalysedProgram) -> Iterator[StateUses]:
    """How the state of each agent is used, where all of its fields can be known."""
    mentions, texts = program.for_file(_mentions, file), program.for_file(_texts, file)
    for agent, _ in file.index.of(n.Agent):
        if state_fields(agent, file, program) is not None:
            yield StateUses(agent, mentions.get(agent, {}), mentions.get(None, {}), texts.get(agent, []))


def _mentions(file: Analysis, _: AnalysedProgram) -> dict[n.Agent | None, dict[str, list[n.Member]]]:
    """Every `….state.field` by its name, of an agent where it is `this.state`, else of None."""
    found: dict[n.Agent | None, dict[str, list[n.Member]]] = {}
    for member, around in file.index.of(n.Member):
        if isinstance(member.object, n.Member) and member.object.name == "state":
            agent = around.agent if is_state(member.object) else None
            found.setdefault(agent, {}).setdefault(member.name, []).append(member)
    return found


def _texts(file: Analysis, _: AnalysedProgram) -> dict[n.Agent, list[n.Text | n.Name | n.PromptCall]]:
    """What the playbooks of each agent are made of."""
    found: dict[n.Agent, list[n.Text | n.Name | n.PromptCall]] = {}
    for playbook, around in file.index.of(n.Playbook):
        if around.agent is not None:
            found.setdefault(around.agent, []).extend(playbook.parts)
    return found


def _bases(file: Analysis, _: AnalysedProgram) -> set[n.Expression]:
    """What must not be null, since a part of it is asked for."""
    members = {node.object for node, _ in file.index.of(n.Member) if not node.optional}
    indexed = {node.object for node, _ in file.index.of(n.Index) if not node.optional}
    return members | indexed | {loop.iterable for loop, _ in file.index.of(n.ForEach) if loop.over == "of"}

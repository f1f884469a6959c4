"""Members of what every program has: of `this`, `registry`, `console` and the other objects of the language."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.kinds import WORDS, value_types
from koi_lang.compiler.rules.members import (
    FOREIGN_OF_LISTS,
    FOREIGN_OF_TEXTS,
    MEMBERS,
    OF_AGENTS,
    OF_ALL,
    OF_INSTANCES,
    OF_KINDS,
    OF_LISTS,
    OF_TEXTS,
)
from koi_lang.compiler.rules.program import AnalysedProgram, handlers, is_named, is_variable, variable_of
from koi_lang.compiler.rules.state import fields_of
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.rules.tests import agent_of
from koi_lang.compiler.walk import Enclosing
from koi_lang.diagnostics import SLIP_IN_FOUR, nearest
from koi_lang.js.intl_dates import IGNORED
from koi_lang.js.intl_dates import KNOWN as DATE_OPTIONS
from koi_lang.js.intl_objects import KNOWN as NUMBER_OPTIONS

# Methods of dictionaries of Python, and what is written instead.
OF_DICTS = {
    "items": "Object.entries({})", "keys": "Object.keys({})", "values": "Object.values({})", "get": "{}.name ?? …",
    "update": "Object.assign({}, …)", "pop": "delete {}.name", "copy": "{ ...{} }", "has_key": '"name" in {}',
}  # fmt: skip
# The options of formats, and of functions that may write either.
FORMATS = MappingProxyType({"NumberFormat": NUMBER_OPTIONS, "DateTimeFormat": DATE_OPTIONS})
ANY_OPTIONS = MappingProxyType({**NUMBER_OPTIONS, **DATE_OPTIONS})
# What functions have, which some of these objects are.
OF_FUNCTIONS = frozenset({"name", "length", "apply", "bind", "call"})


@rule("E0239", "warning")
def unknown_member(file: Analysis, report: Report) -> None:
    """Code asks `this`, `registry`, `console` or another object of the language for something it does not have.

    It is `undefined`, and a call of it fails. An agent has `state`, `name`, `role`, `peers`, `handle`, `callSkill`,
    `callAction` and its handlers; what it keeps is in `this.state`.

    Wrong:

        in agent: state { count = 0 }  on show(args) { return this.count }

    Right:

        in agent: state { count = 0 }  on show(args) { return this.state.count }
    """
    for call, around in file.index.of(n.Call):
        if isinstance(call.callee, n.Member) and not call.callee.optional:
            _check_method(call, call.callee, around, file, report)
    for member, around in file.index.of(n.Member):
        owner = member.object
        if member.optional or member.name in OF_ALL:
            continue
        if isinstance(owner, n.Name) and owner.name == "this" and around.agent is not None:
            if member.name not in OF_AGENTS:
                _check_this(member, around.agent, file, report)
        elif isinstance(owner, n.Name) and (symbol := agent_of(owner, around, file)) is not None:
            if member.name not in OF_AGENTS and isinstance(symbol.node, n.Agent):
                _check_this(member, symbol.node, file, report)
        elif isinstance(owner, n.Name) and owner.name in MEMBERS:
            is_own = is_variable(owner, around, file) or owner.name in file.table.values or around.root is None
            if not is_own and member.name not in MEMBERS[owner.name] | OF_FUNCTIONS:
                _report(member, owner.name, report)
            elif is_own:
                _check_kind(member, around, file, report)
        else:
            _check_kind(member, around, file, report)


@rule("E0266", "warning")
def foreign_format(file: Analysis, report: Report) -> None:
    """Numbers or dates are written as in another language, or by an option that Koi does not have.

    They are written as in `en-US`, and the call fails. A Python module can do it otherwise.

    Wrong:

        in handler: return new Date(0).toLocaleTimeString("en-US", { timeZoneName: "short" })

    Right:

        in handler: return new Date(0).toLocaleTimeString("en-US", { timeStyle: "long" })
    """
    for node, known in _formats(file, report):
        locales, options = (*node.arguments, None, None)[:2]
        if isinstance(locales, n.Text) and locales.value not in ("en", "en-US"):
            help = 'write `"en-US"`, put the text together yourself, or import a Python module that knows it.'
            report.add(locales.span, f'nothing is written as in "{locales.value}" here, only as in "en-US"', help=help)
        for each in options.properties if isinstance(options, n.Object) else ():
            if not isinstance(each, n.Property) or not isinstance(each.key, str) or each.key in IGNORED:
                continue
            if each.key not in known:
                help = f"there are {', '.join(f'`{name}`' for name in known)}."
                report.add(each.span, f"formats have no option `{each.key}` here", help=help)
            elif isinstance(each.value, n.Text) and known[each.key] and each.value.value not in known[each.key]:
                listed = ", ".join(f'`"{value}"`' for value in known[each.key])
                report.add(each.value.span, f"`{each.key}` has no such value here", help=f"it has {listed}.")


def _formats(file: Analysis, report: Report) -> Iterator[tuple[n.Call | n.New, Mapping[str, tuple[str, ...]]]]:
    """The calls that write numbers or dates, or make a format, each with the options that there are."""
    types = report.program.for_file(value_types, file)
    nodes: list[tuple[n.Call | n.New, Enclosing]] = [*file.index.of(n.Call), *file.index.of(n.New)]
    for node, around in nodes:
        match node.callee:
            case n.Member(object=n.Name(name="Intl") as owner, name=name) if name in FORMATS:
                if not is_variable(owner, around, file):
                    yield node, FORMATS[name]
            case n.Member(object=owner, name="toLocaleString"):
                yield node, NUMBER_OPTIONS if types.kind_of(owner, around) == "number" else ANY_OPTIONS
            case n.Member(name="toLocaleDateString" | "toLocaleTimeString"):
                yield node, DATE_OPTIONS


def _check_kind(member: n.Member, around: Enclosing, file: Analysis, report: Report) -> None:
    """Report what no instance of a class has, and no value of a kind."""
    types = report.program.for_file(value_types, file)
    made = types.class_of(member.object, around)
    if made is not None:
        if member.name not in OF_INSTANCES[made]:
            names = OF_INSTANCES[made]
            near = "size" if member.name == "length" and "size" in names else nearest(member.name, sorted(names))
            article = "an" if made[0] in "AI" else "a"
            listed = ", ".join(f"`{name}`" for name in sorted(names)[:8]) + ", …" * (len(names) > 8)
            help = f"did you mean `{near}`?" if near else f"it has {listed}."
            fixes = report.replacement(member.name_span, near)
            report.add(member.name_span, f"{article} `{made}` has no `{member.name}`", help=help, fixes=fixes)
        return
    kind = types.kind_of(member.object, around)
    if kind is None or kind not in OF_KINDS or member.name in OF_KINDS[kind]:
        return
    text = " ".join(file.unit.source.text[slice(*member.object.span)].split())
    if isinstance(member.object, n.Text) and re.search(r"\s\.\s", file.unit.source.text[slice(*member.span)]):
        message, help = "`.` does not join texts", f"write `+` in place of it: `{text} + {member.name}`."
        report.add(member.name_span, message, help=help)
        return
    near = nearest(member.name, sorted(OF_KINDS[kind]), alike=SLIP_IN_FOUR)
    instead = {"array": FOREIGN_OF_LISTS, "string": FOREIGN_OF_TEXTS}.get(kind, {}).get(member.name)
    if instead is not None:
        help, near = f"write {instead}.", None
    elif near is not None:
        help = f"did you mean `{near}`?"
    elif member.name == "join" and kind == "string":
        help = f"a list is joined with a text: `list.join({text})`."
    elif kind == "array":
        help = f"its items may have one: `{text}[0].{member.name}`, or `{text}.map(item => item.{member.name})`."
    elif member.name in OF_TEXTS and kind != "string":
        help = f"make a text of it: `String({text}).{member.name}`."
    elif member.name in OF_LISTS:
        help = f"make a list of it, as `{text}.split(…)` does."
    else:
        help = "only objects have fields of their own."
    fixes = report.replacement(member.name_span, near)
    report.add(member.name_span, f"{WORDS[kind]} has no `{member.name}`", help=help, fixes=fixes)


def _check_method(call: n.Call, called: n.Member, around: Enclosing, file: Analysis, report: Report) -> None:
    """Report a call of what is no method: `length`, and what dictionaries of Python have and objects do not."""
    types = report.program.for_file(value_types, file)
    if called.name == "length":
        report.add(called.name_span, "`length` is a number and no method", help="leave the parentheses out.")
    is_object = types.declared_kind(called.object, around) == "object" or is_named(called.object, "args")
    if called.name not in OF_DICTS or not (is_object or _is_without(called, around, file)):
        return
    text, *given = (
        " ".join(file.unit.source.text[slice(*each.span)].split()) for each in (called.object, *call.arguments)
    )
    form = OF_DICTS[called.name]
    if called.name == "get" and given:
        name = re.fullmatch(r"""["']([A-Za-z_]\w*)["']""", given[0])
        form = f"{{}}.{name[1]}" if name else f"{{}}[{given[0]}]"
        form += "".join(f" ?? {each}" for each in given[1:2])
    if called.name not in (types.fields_of(types.type_of(called.object, around)) or {}):
        help = f"write `{form}`.".replace("{}", text)
        report.add(called.name_span, f"an object has no method `{called.name}`", help=help)


def _is_without(called: n.Member, around: Enclosing, file: Analysis) -> bool:
    """Whether a variable is an object that is written down without a member, which no code gives it."""
    variable = variable_of(called.object, around, file)
    made = variable.writes[0] if variable is not None and len(variable.writes) == 1 else None
    if not isinstance(made, n.Declarator) or not isinstance(made.value, n.Object):
        return False
    keys = {each.key if isinstance(each, n.Property) else None for each in made.value.properties}
    is_open = any(not isinstance(key, str) for key in keys)
    targets = (each.target for each, _ in file.index.of(n.Assignment))
    is_added = any(isinstance(target, n.Member) and target.name == called.name for target in targets)
    return not (is_open or is_added or called.name in keys)


def _check_this(member: n.Member, agent: n.Agent, file: Analysis, report: Report) -> None:
    """Report what is not there; calls of handlers, and fields of objects, other rules tell of."""
    known = OF_AGENTS.union(handler.name.name for handler in handlers(agent))
    if member.name in known or member in report.program.for_file(_told_elsewhere, file):
        return
    near, owner = nearest(member.name, sorted(known)), member.object.name if isinstance(member.object, n.Name) else ""
    if member.name in fields_of(agent):
        help, near = f"write `{owner}.state.{member.name}`.", f"state.{member.name}"
    else:
        stored = f"what it keeps is in its state: `{owner}.state.{member.name}`."
        help = f"did you mean `{owner}.{near}`?" if near else stored
    fixes = report.replacement(member.name_span, near)
    report.add(member.name_span, f"`{agent.name.name}` has no member `{member.name}`", help=help, fixes=fixes)


def _report(member: n.Member, owner: str, report: Report) -> None:
    known = MEMBERS[owner]
    near = nearest(member.name, sorted(known))
    listed = ", ".join(f"`{name}`" for name in sorted(known)[:8])
    help = f"did you mean `{owner}.{near}`?" if near else f"it has {listed}{', …' if len(known) > 8 else ''}."
    help = "write `return` to end here, or `throw new Error(…)` to fail." if member.name == "exit" else help
    help = "write `console.log(…)`." if owner == "console" and near is None else help
    fixes = report.replacement(member.name_span, near)
    report.add(member.name_span, f"`{owner}` has no member `{member.name}`", help=help, fixes=fixes)


def _told_elsewhere(file: Analysis, _: AnalysedProgram) -> set[n.Node]:
    """What is called, and what functions of objects ask `this` for."""
    found: set[n.Node] = {call.callee for call, _ in file.index.of(n.Call)}
    properties = (property.value for property, _ in file.index.of(n.Property))
    spans = sorted(value.span for value in properties if isinstance(value, n.Function))
    inside, end = [], 0
    for span in spans:
        if span.end > end:
            inside.append(span)
            end = span.end
    starts = [span.start for span in inside]
    for member in (member for member, _ in file.index.of(n.Member)):
        index = bisect_right(starts, member.span.start) - 1
        if index >= 0 and member.span.end <= inside[index].end and is_named(member.object, "this"):
            found.add(member)
    return found

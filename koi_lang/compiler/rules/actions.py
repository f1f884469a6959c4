"""Actions that code carries out with `callAction`: their names and fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.imports import Unit
from koi_lang.compiler.rules.kinds import WORDS, Kind, kind_of
from koi_lang.compiler.rules.program import is_variable
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.rules.tests import agent_of
from koi_lang.compiler.runtime_facts import ACTION_FIELDS
from koi_lang.compiler.walk import Enclosing
from koi_lang.diagnostics import SLIP_IN_FOUR, nearest
from koi_lang.source import Span

# What programs that import `std/code` have beside these.
TOOLS = frozenset(
    "read_file list_files grep outline find_symbol write_file edit_file run_command web_fetch web_search think".split()
)
# What code has instead of actions that other implementations of Koi have.
INSTEAD = {
    **dict.fromkeys(TOOLS, 'it after `import "std/code"`, which has it'),
    "read_file": '`readFile(path)` of `import "std/files"`, or `import "std/code"`',
    "write_file": '`writeFile(path, text)` of `import "std/files"`, or `import "std/code"`',
    "web_fetch": "`await fetch(url)`", "llm": '`callAction("call_llm", { instruction: "…", data: … })`',
    "ask": '`callAction("prompt_user", { question: "…" })`', "delegate": "`await send peers.event(…).any()(…)`",
}  # fmt: skip


def _fields(text: str) -> dict[str, tuple[bool, str]]:
    """For each field whether it is required, and its kind; empty for any."""
    words = (word.partition(":") for word in text.split())
    return {name.rstrip("?"): (not name.endswith("?"), kind) for name, _, kind in words}


FIELDS: Mapping[str, Mapping[str, tuple[bool, str]]] = MappingProxyType(
    {name: _fields(text) for name, text in ACTION_FIELDS.items()}
)


@rule("E0234", "error")
def wrong_fields(file: Analysis, report: Report) -> None:
    """An action is called without one of its fields, or with a value that the field cannot have.

    The call fails when the program gets there. The fields of an action stand in one object. Functions of the registry
    take the same values, one after the other.

    Wrong:

        in handler: return await callAction("prompt_user", {})

    Right:

        in handler: return await callAction("prompt_user", { question: "Who are you?" })
    """
    for call, around in _calls(file):
        name, fields, given = _action(call)
        if name is None or name.value not in FIELDS:
            continue
        known = FIELDS[name.value]
        if fields is None:
            _check_data(call, name, kind_of(call.arguments[1], around, file, report.program), report)
            continue
        missing, strange = _missing(name, given), [field for field in given if field not in known]
        if missing and not any(nearest(field, missing) for field in strange):
            shown = ", ".join(f"{field}: …" for field, (is_needed, _) in known.items() if is_needed)
            lacks = f", and has no field {_and(strange)}" if strange else ""
            place = _key(given[strange[0]]) if strange else name.span
            help = f'write `callAction("{name.value}", {{ {shown} }})`.'
            report.add(place, f"`{name.value}` needs {_and(missing)}{lacks}", help=help)
        for field, property in given.items():
            wanted = known.get(field, (False, ""))[1]
            kind = kind_of(property.value, around, file, report.program)
            if wanted and kind is not None and kind != wanted:
                message = f"`{field}` of `{name.value}` is {_word(wanted)}, and gets {_word(kind)}"
                report.add(property.value.span, message, help=f"give it {_word(wanted)}.")
    _check_registry(file, report)


def _check_registry(file: Analysis, report: Report) -> None:
    """Report a call of the registry with too few values."""
    for call, around in file.index.of(n.Call):
        match call.callee:
            case n.Member(object=n.Name(name="registry") as owner, name=name) if not is_variable(owner, around, file):
                needed = [field for field, (is_needed, _) in FIELDS.get(f"registry_{name}", {}).items() if is_needed]
                needed = ["key", "update"] if name == "change" else needed
                is_open = any(isinstance(each, n.Spread) for each in call.arguments)
                if missing := [] if is_open else needed[len(call.arguments) :]:
                    help = f"write `registry.{name}({', '.join(needed)})`."
                    report.add(call.span, f"`registry.{name}` needs {_and(missing)}", help=help)


def _imports_tools(unit: Unit) -> bool:
    """Whether a file, or one that it imports at any distance, imports the part that adds tools."""
    seen: dict[str, Unit] = {}
    waiting = [unit]
    while waiting:
        current = waiting.pop()
        if current.path not in seen:
            seen[current.path] = current
            waiting += current.reached
    return any(imported.statement.path.value == "std/code" for each in seen.values() for imported in each.imports)


def _check_data(call: n.Call, name: n.Text, kind: Kind | None, report: Report) -> None:
    """Report what is no object in place of the fields; most actions have one that must be given."""
    first = next((field for field, (is_needed, _) in FIELDS[name.value].items() if is_needed), None)
    if first is not None and kind not in (None, "object", "null"):
        help = f'write `callAction("{name.value}", {{ {first}: … }})`.'
        report.add(call.arguments[1].span, f"the fields of `{name.value}` stand in an object", help=help)


@rule("E0235", "warning")
def unknown_action(file: Analysis, report: Report) -> None:
    """An action, or a field of one, is called by a name that is nearly a known one.

    There is no such action, unless an extension brings it, and a field that an action does not have is not heeded.

    Wrong:

        in handler: await callAction("pint", { message: "Hello." })

    Right:

        in handler: await callAction("print", { message: "Hello." })
    """
    for call, _ in _calls(file):
        name, whole, given = _action(call)
        if name is None:
            continue
        known = FIELDS.get(name.value)
        if known is None:
            if name.value in TOOLS and _imports_tools(file.unit):
                continue
            near = nearest(name.value, FIELDS, alike=SLIP_IN_FOUR)
            instead = INSTEAD.get(name.value) or (f'`callAction("{near}", …)`' if near else None)
            if instead is not None:
                fixes = report.replacement(report.inside(name), None if name.value in INSTEAD else near)
                report.add(name.span, f"there is no action `{name.value}`", help=f"write {instead}.", fixes=fixes)
            continue
        missing, strange = _missing(name, given), [field for field in given if field not in known]
        if missing and whole is not None and not any(nearest(field, missing) for field in strange):
            continue
        for field in strange:
            near = nearest(field, missing) or nearest(field, known)
            help = f"did you mean `{near}`?" if near else f"it has {', '.join(f'`{each}`' for each in known)}."
            place, message = _key(given[field]), f"`{name.value}` has no field `{field}`"
            report.add(place, message, help=help, fixes=report.replacement(place, near))


def _calls(file: Analysis) -> Iterator[tuple[n.Call, Enclosing]]:
    """Every `callAction(…)`, also of `this` and of another agent."""
    for call, around in file.index.of(n.Call):
        match call.callee:
            case n.Name(name="callAction") as name if not is_variable(name, around, file):
                yield call, around
            case n.Member(object=owner, name="callAction") if agent_of(owner, around, file) is not None:
                yield call, around


def _action(call: n.Call) -> tuple[n.Text | None, n.Object | None, dict[str, n.Property]]:
    """The name of the action that is called, its fields where all are written down, and those by their names."""
    name = call.arguments[0] if call.arguments else None
    data = call.arguments[1] if len(call.arguments) > 1 else n.Object(call.span, ())
    if not isinstance(name, n.Text):
        return None, None, {}
    if not isinstance(data, n.Object):
        return name, None, {}
    given = {item.key: item for item in data.properties if isinstance(item, n.Property) and isinstance(item.key, str)}
    return name, data if len(given) == len(data.properties) else None, given


def _missing(name: n.Text, given: Mapping[str, n.Property]) -> list[str]:
    """The fields that an action needs and is not given."""
    return [field for field, (is_needed, _) in FIELDS[name.value].items() if is_needed and field not in given]


def _key(property: n.Property) -> Span:
    return Span(property.span.start, property.span.start + len(str(property.key)))


def _and(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def _word(kind: str | Kind) -> str:
    return WORDS[kind]

"""Texts with holes and directives: whether `{{state.count}}` names something that exists, and `@if` is closed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.compositions import TemplateError, directives, in_order
from koi_lang.compiler.rules.foreign import FOREIGN
from koi_lang.compiler.rules.members import OF_ALL
from koi_lang.compiler.rules.program import AnalysedProgram, Use, texts_of
from koi_lang.compiler.rules.scopes import ROOTS, PlaceholderScope, in_handler, in_prompt
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.scope import GLOBALS, RUN_NAMES
from koi_lang.compiler.templates import COMPUTED, Placeholder, free_names, parts, payload_parts
from koi_lang.compiler.walk import everything
from koi_lang.diagnostics import SLIP_IN_FOUR, LabeledSpan, nearest
from koi_lang.source import Source, Span

# A filter behind a value, and what is written instead of the usual ones.
PIPE = re.compile(r"([\w.\[\]]+)\s*\|\s*(\w+)")
FILTERS = {
    "upper": ".toUpperCase()", "lower": ".toLowerCase()", "trim": ".trim()", "length": ".length", "join": '.join(", ")',
    "first": "[0]", "last": ".at(-1)", "default": ' ?? "…"', "capitalize": "…", "string": "",
}  # fmt: skip
THIS_STATE = re.compile(r"this\.state\.(\w+)")


@dataclass(frozen=True, slots=True)
class Filled:
    """A hole of a playbook or prompt, with the names that can fill it."""

    hole: Placeholder
    place: LabeledSpan
    scope: PlaceholderScope


@rule("E0316", "error")
def misspelt_field(file: Analysis, report: Report) -> None:
    """A text names a field of the state or of the payload that is nearly, but not quite, a declared one.

    A hole such as `{{state.count}}` has no value where there is no such field, and the model is left to guess. The
    fields of the state are those of the `state` block and those that code assigns; the fields of the payload are known
    when the parameter has a type such as `{ name: string }`, and so are those of the objects in them.

    Wrong:

        in agent: state { count = 0 }  on tell(args) { playbook "Say {{state.cuont}}." }

    Right:

        in agent: state { count = 0 }  on tell(args) { playbook "Say {{state.count}}." }
    """
    for filled, root, field in _missing_fields(file, report):
        near = _near(field, filled.scope.fields[root])
        if near is not None:
            message = f"`{root}` has no field `{field}`"
            fixes = report.replacement(_place_in_hole(filled, field, r"\."), near)
            report.add(filled.place, message, help=f"did you mean `{{{{{root}.{near}}}}}`?", fixes=fixes)


@rule("E0317", "warning")
def unknown_field(file: Analysis, report: Report) -> None:
    """A text names a field that neither the state nor the payload declares.

    The hole has no value unless something sets the field while the program runs: a model reads the name alone, and a
    rehearsal an empty text. Declare it in the `state` block, or in the type of the parameter.

    Wrong:

        in handler(args: { name: string }): playbook "Greet {{args.language}}."

    Right:

        in agent:
          on tell(args: { name: string, language?: string }) { playbook "Greet {{args.language}}." }
    """
    for filled, root, field in _missing_fields(file, report):
        known = filled.scope.fields[root]
        if _near(field, known) is None:
            listed = ", ".join(f"`{name}`" for name in sorted(known)[:8])
            help = f"the known fields are {listed}." if known else "there are no fields."
            report.add(filled.place, f"`{root}` has no field `{field}`, so this has no value", help=help)


@rule("E0318", "warning")
def unknown_placeholder(file: Analysis, report: Report) -> None:
    """A `{{…}}` names something that texts do not know, and stays as it is.

    In the texts of playbooks and prompts there are `args`, the payload; `state`; `agentName`; `userMessage`; the
    parameters of the handler or prompt; `JSON` and `Math`. Anything else the model reads as written, braces included,
    and so it does where the braces hold `await`, an assignment, a function in braces or a call that changes a value,
    such as `push`. A text is made again before each request, so it changes nothing: `sort` and `reverse` make a copy.

    Wrong:

        in handler: playbook "Greet {{name}}."

    Right:

        in handler: playbook "Greet {{args.name}}."
    """
    for filled in report.program.for_file(_find_placeholders, file):
        hole = filled.hole
        name = next((root.name for root in hole.roots() if root.name not in filled.scope.roots), None)
        obstacle = hole.obstacle if name is None else None
        if obstacle is None and (name is None or not hole.braces):
            continue
        reason = f"{obstacle.what} has no place in a text" if obstacle else f"nothing here is called `{name}`"
        piped = PIPE.search(hole.source) if name is not None else None
        help, meant = (obstacle.help if obstacle else COMPUTED, None) if name is None else _root_help(name, filled)
        if piped is not None and piped[2] == name:
            written = FILTERS.get(piped[2], "…")
            help, meant = f"Koi has no filters: write `{{{{{piped[1]}{written}}}}}`.", None
        fixes = report.replacement(_place_in_hole(filled, name or "", ""), meant)
        report.add(filled.place, f"`{_one_line(hole.source)}` stays as it is: {reason}", help=help, fixes=fixes)


def _place_in_hole(filled: Filled, name: str, before: str) -> Span:
    """Where a name, behind some mark, stands in a hole; all of the hole where it stands there in another form."""
    place = filled.place
    found = re.search(rf"(?<={before})\b{name}\b", place.source.text[place.span.start : place.span.end])
    return place.span if found is None else Span(place.span.start + found.start(), place.span.start + found.end())


def _one_line(text: str) -> str:
    return text if len(text) <= 40 and "\n" not in text else f"{text.split(chr(10))[0][:37]}…"


@rule("E0320", "error")
def broken_directive(file: Analysis, report: Report) -> None:
    """A directive in the template of a `compose` prompt cannot be read.

    Each directive stands on a line of its own: `@let name = value`, `@if (condition) {`, `} @else {`, and a `}` for
    every `@if`. It is read again before each request, so its expressions change nothing.

    Wrong:

        role Worker { can execute }
        prompt Tone = compose { template: "
        @if (args.formal) {
        Be formal.
        " }
        agent Clerk : Worker { on work(args) { playbook Tone } }

    Right:

        role Worker { can execute }
        prompt Tone = compose { template: "
        @if (args.formal) {
        Be formal.
        }
        " }
        agent Clerk : Worker { on work(args) { playbook Tone } }
    """
    for compose, _ in file.index.of(n.Compose):
        if compose.template is None:
            continue
        try:
            directives(compose.template, frozenset())
        except TemplateError as problem:
            report.add(problem.span, problem.message, help=problem.help)


@rule("E0321", "error")
def unknown_in_directive(file: Analysis, report: Report) -> None:
    """A directive of a template, or an argument of a prompt, names something that does not exist.

    The conditions and values of `@if` and `@let` may name `args`, `state`, `agentName`, `userMessage`, the parameters
    of the prompt, what a `@let` before them declares, and what any code may name. What a playbook gives to a prompt
    is a text, or a path that begins with one of these.

    Wrong:

        role Worker { can execute }
        prompt Tone = compose { template: "
        @if (formal) {
        Be formal.
        }
        " }
        agent Clerk : Worker { on work(args) { playbook Tone } }

    Right:

        role Worker { can execute }
        prompt Tone = compose { template: "
        @if (args.formal) {
        Be formal.
        }
        " }
        agent Clerk : Worker { on work(args) { playbook Tone } }
    """
    everywhere = ROOTS | GLOBALS | RUN_NAMES | file.table.values.keys() | file.table.roles.keys()
    for prompt, _ in file.index.of(n.Prompt):
        for name, span, known in _named_in_directives(prompt, everywhere, file):
            near = nearest(name, sorted(known - GLOBALS))
            help = f"did you mean `{near}`?" if near else f"for a field of the payload write `args.{name}`."
            help = FOREIGN.get(name, help)
            fixes = report.replacement(span, None if name in FOREIGN else near)
            report.add(span, f"nothing here is called `{name}`", help=help, fixes=fixes)
    for argument, known in _named_in_calls(file, everywhere):
        near = nearest(argument.name, sorted(known - GLOBALS))
        help = f"did you mean `{near}`?" if near else f'a text stands in quotes: `"{argument.name}"`.'
        fixes = report.replacement(argument.span, near)
        report.add(argument.span, f"nothing here is called `{argument.name}`", help=help, fixes=fixes)


def _named_in_directives(
    prompt: n.Prompt, everywhere: frozenset[str], file: Analysis
) -> Iterator[tuple[str, Span, frozenset[str]]]:
    """The names that the directives of a prompt use in vain, with their place and the names that exist there."""
    template = prompt.value.template if isinstance(prompt.value, n.Compose) else None
    if template is None or "@" not in template.value:
        return
    known = everywhere.union((parameter.name.name for parameter in prompt.parameters or ()), ["callAction"])
    try:
        items = directives(template, frozenset())
    except TemplateError:
        return  # which is told as an error of its own
    for declared, expression in in_order(items):
        for name in free_names(expression):
            written = name.name
            if written not in known:
                yield written, _place_in(template, name, file), known
        known = known.union([declared] if declared else ())


def _place_in(template: n.Text, name: n.Name, file: Analysis) -> Span:
    """Where a name of a directive stands."""
    if template.start is not None:
        return Span(template.start + name.span.start, template.start + name.span.end)
    at = file.unit.source.text.find(name.name, template.span.start, template.span.end)
    return Span(at, at + len(name.name)) if at >= 0 else template.span


def _named_in_calls(file: Analysis, everywhere: frozenset[str]) -> Iterator[tuple[n.Name, frozenset[str]]]:
    """The names that playbooks give to prompts and that do not exist."""
    for call, around in file.index.of(n.PromptCall):
        handler = around.function
        payload = payload_parts(handler.parameters) if isinstance(handler, n.Handler) else {}
        known = everywhere.union(payload, ["this"])
        named = (name for argument in call.arguments for name in free_names(argument))
        yield from ((name, known) for name in named if name.name not in known)


def _root_help(name: str, filled: Filled) -> tuple[str, str | None]:
    """What to write instead of a name, in a sentence, and alone where it may simply be replaced."""
    if name == "this":
        path = THIS_STATE.search(filled.hole.source)
        field = path[1] if path else next(iter(sorted(filled.scope.fields.get("state", ()))), "count")
        return f"the state is called `state` here: `{{{{state.{field}}}}}`.", None
    for root in ("args", "state"):
        if name in filled.scope.fields.get(root, ()):
            return f"write `{{{{{root}.{name}}}}}`.", f"{root}.{name}"
    near = _near(name, filled.scope.roots - {"JSON", "Math"})
    if near is None:
        return _far_help(name, filled), None
    written = re.sub(rf"\b{re.escape(name)}\b", near, filled.hole.source.strip("${} "))
    return f"did you mean `{{{{{_one_line(written)}}}}}`?", near


def _far_help(name: str, filled: Filled) -> str:
    if name in GLOBALS | RUN_NAMES or any(isinstance(node, n.Call) for node in everything(filled.hole.expression)):
        return COMPUTED
    if name in filled.scope.payload:
        fields = filled.hole.source.strip("${} ").partition(name)[2]
        return f"in a prompt the payload is called `args`: write `{{{{args{fields}}}}}`."
    if filled.scope.is_prompt:
        return f"write `{{{{args.{name}}}}}`, or give the prompt a parameter `{name}`."
    return f"for a field of the payload write `{{{{args.{name}}}}}`."


def _missing_fields(file: Analysis, report: Report) -> Iterator[tuple[Filled, str, str]]:
    """Every hole with a path whose first field is not among the known ones: the hole, the root, the field."""
    for filled in report.program.for_file(_find_placeholders, file):
        for root, field in _paths(filled.hole):
            known = filled.scope.fields.get(root)
            if known is not None and field not in known:
                yield filled, root, field
                break


def _paths(hole: Placeholder) -> Iterator[tuple[str, str]]:
    """The names in a hole, and paths such as `args.ticket`, with the field that is read from them."""
    for node in everything(hole.expression):
        names, inner = list[str](), node
        while isinstance(inner, n.Member):
            names.insert(0, inner.name)
            inner = inner.object
        if names and isinstance(inner, n.Name) and names[-1] not in OF_ALL:
            yield ".".join((inner.name, *names[:-1])), names[-1]


def _near(field: str, known: frozenset[str]) -> str | None:
    found = get_close_matches(field, sorted(known), n=1, cutoff=SLIP_IN_FOUR)
    return found[0] if found else None


def _find_placeholders(file: Analysis, program: AnalysedProgram) -> list[Filled]:
    """Every hole in the playbooks and prompts of a file."""
    return [*_in_playbooks(file, program), *_in_prompts(file, program)]


def _in_playbooks(file: Analysis, program: AnalysedProgram) -> Iterator[Filled]:
    for playbook, around in file.index.of(n.Playbook):
        scope = in_handler(Use(file, around), program)
        for part in playbook.parts:
            if isinstance(part, n.Text):
                yield from _holes(part, file.unit.source, scope)


def _in_prompts(file: Analysis, program: AnalysedProgram) -> Iterator[Filled]:
    for prompt, _ in file.index.of(n.Prompt):
        scope = in_prompt(prompt, program)
        for text in texts_of(prompt):
            yield from _holes(text, file.unit.source, scope)
    for imported in file.unit.imports:
        if imported.text is not None:
            text = n.Text(Span(0, len(imported.text.text)), imported.text.text, 0)
            yield from _holes(text, imported.text, in_prompt(imported.statement, program))


def _holes(text: n.Text, source: Source, scope: PlaceholderScope) -> Iterator[Filled]:
    done = text.span.start
    for hole in parts(text):
        if isinstance(hole, Placeholder):
            # In a quoted text without escapes the hole stands in the source as written.
            at = source.text.find(hole.source, done, text.span.end) if text.start is None else hole.span.start
            span = Span(at, at + len(hole.source)) if at >= 0 else text.span
            done = max(done, at)
            yield Filled(hole, LabeledSpan(source, span), scope)

"""Texts with holes and directives: whether `{{state.count}}` names something that exists, and `@if` is closed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.compositions import TemplateError, directives
from koi_lang.compiler.rules.program import Program, Use
from koi_lang.compiler.rules.scopes import Scope, in_handler, in_prompt
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.templates import STATE, Hole, parts
from koi_lang.compiler.walk import everything
from koi_lang.diagnostics import Place
from koi_lang.source import Source, Span

PATH = re.compile(r"\{\{\s*([A-Za-z_]\w*)(?:\??\.\w+|\[\d+\])*\s*\}\}")
NEAR = 0.75


@dataclass(frozen=True, slots=True)
class Filled:
    """A hole of a playbook or prompt, with the names that can fill it."""

    hole: Hole
    place: Place
    scope: Scope


@rule("E0316", "error")
def misspelt_field(file: Analysis, report: Report) -> None:
    """A text names a field of the state or of the payload that is nearly, but not quite, a declared one.

    What a hole such as `{{state.count}}` names and nobody has becomes an empty text, and the model is left to guess.
    The fields of the state are those of the `state` block and those that code assigns; the fields of the payload are
    known when the parameter has a type such as `{ name: string }`.

    Wrong:

        role Worker { can execute }
        agent Counter : Worker { state { count = 0 }  on tell(args) { playbook "Say {{state.cuont}}." } }

    Right:

        role Worker { can execute }
        agent Counter : Worker { state { count = 0 }  on tell(args) { playbook "Say {{state.count}}." } }
    """
    for filled, root, field in _missing_fields(file, report):
        near = _near(field, filled.scope.fields[root])
        if near is not None:
            message = f"`{root}` has no field `{field}`"
            report.add(filled.place, message, help=f"did you mean `{{{{{root}.{near}}}}}`?")


@rule("E0317", "warning")
def unknown_field(file: Analysis, report: Report) -> None:
    """A text names a field that neither the state nor the payload declares.

    The hole becomes an empty text unless something sets the field while the program runs. Declare it in the `state`
    block, or in the type of the parameter.

    Wrong:

        role Worker { can execute }
        agent Counter : Worker { on tell(args: { name: string }) { playbook "Greet {{args.language}}." } }

    Right:

        role Worker { can execute }
        agent Counter : Worker {
          on tell(args: { name: string, language?: string }) { playbook "Greet {{args.language}}." }
        }
    """
    for filled, root, field in _missing_fields(file, report):
        known = filled.scope.fields[root]
        if _near(field, known) is None:
            listed = ", ".join(f"`{name}`" for name in sorted(known)[:8])
            help = f"the known fields are {listed}." if known else "there are no fields."
            report.add(filled.place, f"`{root}` has no field `{field}`, so this stays empty", help=help)


@rule("E0318", "warning")
def unfilled(file: Analysis, report: Report) -> None:
    """A `{{…}}` names something that texts do not know, and stays as it is.

    In the texts of playbooks and prompts there are `args`, the payload; `state`; `agentName`; `userMessage`; the
    parameters of the handler or prompt; `JSON` and `Math`. Anything else the model reads as written, braces included.

    Wrong:

        role Worker { can execute }
        agent Greeter : Worker { on hello(args) { playbook "Greet {{name}}." } }

    Right:

        role Worker { can execute }
        agent Greeter : Worker { on hello(args) { playbook "Greet {{args.name}}." } }
    """
    for filled in report.program.for_file(_filled, file):
        match = PATH.fullmatch(filled.hole.source)
        if match is not None and match[1] not in filled.scope.roots:
            help = _root_help(match[1], filled)
            report.add(
                filled.place, f"`{filled.hole.source}` stays as it is: nothing here is called `{match[1]}`", help=help
            )


@rule("E0320", "error")
def broken_directive(file: Analysis, report: Report) -> None:
    """A directive in the template of a `compose` prompt cannot be read.

    Each directive stands on a line of its own: `@let name = value`, `@if (condition) {`, `} @else {`, and a `}` for
    every `@if`.

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


def _root_help(name: str, filled: Filled) -> str:
    if name == "this":
        return "the state is called `state` here: `{{state.count}}`."
    near = _near(name, filled.scope.roots - {"JSON", "Math"})
    if near is not None:
        return f"did you mean `{{{{{near}}}}}`?"
    if filled.scope.is_prompt:
        return f"write `{{{{args.{name}}}}}`, or give the prompt a parameter `{name}`."
    return f"for a field of the payload write `{{{{args.{name}}}}}`."


def _missing_fields(file: Analysis, report: Report) -> Iterator[tuple[Filled, str, str]]:
    """Every hole with a path whose first field is not among the known ones: the hole, the root, the field."""
    for filled in report.program.for_file(_filled, file):
        for root, field in _paths(filled.hole):
            known = filled.scope.fields.get(root)
            if known is not None and field not in known:
                yield filled, root, field
                break


def _paths(hole: Hole) -> Iterator[tuple[str, str]]:
    """The names in a hole with the field that is read from them."""
    for node in everything(hole.expression):
        if isinstance(node, n.Member) and isinstance(node.object, n.Name):
            yield "state" if node.object.name == STATE else node.object.name, node.name


def _near(field: str, known: frozenset[str]) -> str | None:
    found = get_close_matches(field, sorted(known), n=1, cutoff=NEAR)
    return found[0] if found else None


def _filled(file: Analysis, program: Program) -> list[Filled]:
    """Every hole in the playbooks and prompts of a file."""
    return [*_in_playbooks(file, program), *_in_prompts(file, program)]


def _in_playbooks(file: Analysis, program: Program) -> Iterator[Filled]:
    for playbook, around in file.index.of(n.Playbook):
        scope = in_handler(Use(file, around), program)
        for part in playbook.parts:
            if isinstance(part, n.Text):
                yield from _holes(part, file.unit.source, scope)


def _in_prompts(file: Analysis, program: Program) -> Iterator[Filled]:
    for prompt, _ in file.index.of(n.Prompt):
        scope = in_prompt(prompt, program)
        for text in _texts(prompt):
            yield from _holes(text, file.unit.source, scope)
    for imported in file.unit.imports:
        if imported.text is not None:
            text = n.Text(Span(0, len(imported.text.text)), imported.text.text, 0)
            yield from _holes(text, imported.text, in_prompt(imported.statement, program))


def _texts(prompt: n.Prompt) -> list[n.Text]:
    if isinstance(prompt.value, n.Compose):
        return [prompt.value.template] if prompt.value.template is not None else []
    return [part for part in prompt.value if isinstance(part, n.Text)]


def _holes(text: n.Text, source: Source, scope: Scope) -> Iterator[Filled]:
    done = text.span.start
    for hole in parts(text):
        if isinstance(hole, Hole):
            # In a quoted text without escapes the hole stands in the source as written.
            at = source.text.find(hole.source, done, text.span.end) if text.start is None else hole.span.start
            span = Span(at, at + len(hole.source)) if at >= 0 else text.span
            done = max(done, at)
            yield Filled(hole, Place(source, span), scope)

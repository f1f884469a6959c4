"""Texts with places for values that nothing fills: other braces than those that do."""

from __future__ import annotations

import re
from collections.abc import Iterator

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.program import AnalysedProgram, Use, texts_of
from koi_lang.compiler.rules.scopes import in_handler, in_prompt
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.scope import Resolution
from koi_lang.compiler.templates import PURE
from koi_lang.compiler.walk import everything
from koi_lang.source import Span

PATH = r"([A-Za-z_]\w*)((?:\??\.\w+|\[\d+\])+)"
SINGLE = re.compile(rf"(?<![\w${{]){{\s*{PATH}\s*}}(?!}})")
# What code inserts values into is a text in backticks; the name alone may stand in `${…}` and `{{…}}`.
INSERTED = re.compile(
    rf"\$\{{\s*{PATH.replace('+)', '*)')}\s*\}}|\{{\{{\s*{PATH.replace('+)', '*)')}\s*\}}\}}"
    rf"|#\{{\s*{PATH.replace('+)', '*)')}\s*\}}|\\\({PATH.replace('+)', '*)')}\)|{SINGLE.pattern}"
)
# Functions that look for a text as it is written.
LITERAL = frozenset(
    {"replace", "replaceAll", "split", "includes", "indexOf", "startsWith", "endsWith", "match", "RegExp"}
)


@rule("E0322", "warning")
def wrong_braces(file: Analysis, report: Report) -> None:
    """A text has a place for a value, written in a way that nothing fills.

    In playbooks and prompts values stand in two braces, `{{args.name}}`. In code they stand in `${args.name}`, and
    the text in backticks instead of quotes.

    Wrong:

        in handler: playbook "Greet {args.name}."

    Right:

        in handler: playbook "Greet {{args.name}}."
    """
    for text, roots in [*_in_playbooks(file, report.program), *_in_prompts(file, report.program)]:
        for match in SINGLE.finditer(text.value):
            if match[1] in roots:
                help = f"write `{{{{{match[1]}{match[2]}}}}}`."
                _report(text, match, help, file, report)
    for text, parameter in _parameters(file):
        for match in re.finditer(rf"(?<![\w${{]){{\s*{parameter}\s*}}(?!}})", text.value):
            _report(text, match, f"write `{{{{{parameter}}}}}`.", file, report)
    for text, resolution in _in_code(file):
        for match in INSERTED.finditer(file.unit.source.text, text.span.start, text.span.end):
            path = match[0].strip("#${}()\\ ")
            if _is_visible(re.split(r"\W", path)[0], text, resolution):
                help = f"write the text in backticks, with `${{{path}}}`."
                report.add(Span(*match.span()), f"`{match[0]}` is not filled in", help=help)
                break


def _report(text: n.Text, found: re.Match[str], help: str, file: Analysis, report: Report) -> None:
    """Report single braces where they stand, and not two braces around the same name."""
    at = text.start + found.start() if text.start is not None else -1
    if text.start is None:
        alone = re.compile(rf"(?<![\w${{]){re.escape(found[0])}(?!}})")
        place = alone.search(file.unit.source.text, text.span.start, text.span.end)
        at = -1 if place is None else place.start()
    span = Span(at, at + len(found[0])) if at >= 0 else text.span
    report.add(span, f"`{found[0]}` is not filled in", help=help)


def _in_playbooks(file: Analysis, program: AnalysedProgram) -> Iterator[tuple[n.Text, frozenset[str]]]:
    """The texts of playbooks with the names that they may mention."""
    for playbook, around in file.index.of(n.Playbook):
        texts = [part for part in playbook.parts if isinstance(part, n.Text) and "{" in part.value]
        roots = in_handler(Use(file, around), program).roots - PURE if texts else frozenset[str]()
        yield from ((text, roots) for text in texts)


def _in_prompts(file: Analysis, program: AnalysedProgram) -> Iterator[tuple[n.Text, frozenset[str]]]:
    """The same of prompts."""
    for prompt, _ in file.index.of(n.Prompt):
        texts = [text for text in texts_of(prompt) if "{" in text.value]
        roots = in_prompt(prompt, program).roots - PURE if texts else frozenset[str]()
        yield from ((text, roots) for text in texts)


def _parameters(file: Analysis) -> Iterator[tuple[n.Text, str]]:
    """The texts of prompts with the parameters that no braces mention which are filled."""
    for prompt, _ in file.index.of(n.Prompt):
        texts = texts_of(prompt)
        for parameter in prompt.parameters or ():
            name = parameter.name.name
            if not any(re.search(rf"(?:{{|\$){{[^}}]*\b{name}\b", text.value) for text in texts):
                yield from ((text, name) for text in texts)


def _in_code(file: Analysis) -> Iterator[tuple[n.Text, Resolution]]:
    """The texts in quotes that code works with."""
    apart: set[n.Node] = set()
    for text, around in file.index.of(n.Text):
        is_there = "{" in text.value or "\\(" in file.unit.source.text[slice(*text.span)]
        if is_there and around.root in file.code:
            apart = apart or _texts_apart(file)
            if text not in apart:
                assert around.root is not None
                yield text, file.code[around.root]


def _texts_apart(file: Analysis) -> set[n.Node]:
    """Texts in code that are no values, belong to a test's model, or are looked for as they are."""
    apart: set[n.Node] = {part for playbook, _ in file.index.of(n.Playbook) for part in playbook.parts}
    apart |= {affordance.text for affordance, _ in file.index.of(n.Affordance)}
    apart |= {node for given, _ in file.index.of(n.Given) for node in everything(given)}
    for call, _ in file.index.of(n.Call):
        name = call.callee.name if isinstance(call.callee, (n.Member, n.Name)) else ""
        apart.update(call.arguments if name in LITERAL else ())
    for new, _ in file.index.of(n.New):
        apart.update(new.arguments if isinstance(new.callee, n.Name) and new.callee.name in LITERAL else ())
    return apart


def _is_visible(name: str, text: n.Text, resolution: Resolution) -> bool:
    """Whether a variable of that name, or `this`, could be inserted where a text stands."""
    functions = (scope for scope in resolution.functions.values() if scope.node.span.encloses(text.span))
    return name == "this" or any(variable.name == name for scope in functions for variable in scope.variables)

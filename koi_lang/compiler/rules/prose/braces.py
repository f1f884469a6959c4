"""Places for values in playbooks, in braces of other systems than those that are filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.build import MIXED_OPERATORS
from koi_lang.compiler.declared_types import resolve_type
from koi_lang.compiler.parser import parse_expression
from koi_lang.compiler.rules.program import Use
from koi_lang.compiler.rules.prose.playbooks import PlaybookText, playbook_texts
from koi_lang.compiler.rules.prose.words import pattern
from koi_lang.compiler.rules.scopes import in_handler
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.templates import COMPUTED, HOLE, PURE
from koi_lang.source import Source, Span

PATH = r"(?P<root>[A-Za-z_]\w*)(?P<path>(?:\??\.[A-Za-z_]\w*|\[\d+\])+)"
# Of other systems: `[[args.x]]`, `%args.x%`, `<%= args.x %>`, `$args.x`, `<args.x>`, and braces that are not closed.
FORMS = (
    r"\[\[\s*PATH\s*\]\]", r"%\s?PATH\s?%", r"%\(PATH\)s?", r"<%=?\s*PATH\s*%>", r"\{%\s*PATH\s*%\}",
    r"(?<![\w$])\$PATH", r"<PATH>", r"\(\(\s*PATH\s*\)\)", r"@\{\s*PATH\s*\}",
    r"(?<!\{)\{\{\s*PATH\s*\}(?!\})", r"(?<![\w${])\{\s*PATH\s*\}\}",
)  # fmt: skip
NAME = re.compile(r"(?<![\w${<])\{(?P<name>[A-Za-z_]\w*)\}(?!\})")
# Blocks of Jinja and Handlebars.
BLOCK = re.compile(r"\{%-?\s*(?:if|elif|else|endif|for|endfor|set|include|macro)\b.*?%\}|\{\{[#/^>]\s*\w[^{}]*\}\}")
CHOICE = re.compile(r"(.+?) if (.+) else (.+)")
# What stands before an object with one field.
OBJECT = r"(?:{answer}|as|with|like|form|object|json|result|data|payload|updates?|an?|como|con|objeto|resultado|un)\W*$"


@rule("E0627", "warning")
def foreign_braces(file: Analysis, report: Report) -> None:
    """A playbook has a place for a value in braces that nothing fills.

    Values stand in two braces, `{{args.name}}`. What other systems write, `[[args.name]]`, `%args.name%`,
    `<%= args.name %>`, `$args.name`, `{name}`, blocks such as `{% if … %}`, and braces that are not closed or hold no
    expression stay as they are, and the model reads them so.

    Wrong:

        in handler: playbook "Greet [[args.name]]."

    Right:

        in handler: playbook "Greet {{args.name}}."
    """
    for text in report.program.for_file(playbook_texts, file):
        scope = in_handler(Use(file, text.around), report.program)
        roots = scope.roots - PURE
        for start, end, help in _unread(text, roots):
            shown = " ".join(text.text.value[start:end].split())
            report.add(text.place(start, end), f"`{shown}` is not filled in", help=help)
        for start, end, value in (*_paths(text, roots), *_fields(text)):
            found = text.text.value[start:end]
            fixes = text.replacement(start, end, f"{{{{{value}}}}}")
            help = f"write `{{{{{value}}}}}`."
            report.add(text.place(start, end), f"`{found}` is not filled in", help=help, fixes=fixes)


def _unread(text: PlaybookText, roots: frozenset[str]) -> Iterator[tuple[int, int, str]]:
    """Braces that hold what no expression is: blocks of other systems, and operators of Python."""
    for found in BLOCK.finditer(text.unfenced_text):
        if not any(re.search(rf"\b{root}\b", found[0]) for root in roots):
            continue
        yield *found.span(), "say it in words; `@if (…) {` stands in the template of a `compose` prompt."
    for found in HOLE.finditer(text.unfenced_text) if "{{" in text.unfenced_text else ():
        inside = (found["braces"] or "").strip("{ ")
        if not any(re.search(rf"\b{root}\b", inside) for root in roots) or inside[0] in "#/>^":
            continue
        expression, problem = parse_expression(Source("", inside), Span(0, len(inside)))
        if expression is None:
            written = CHOICE.sub(r"\2 ? \1 : \3", inside)
            for word, sign in (("or", "||"), ("and", "&&"), ("not", "!")):
                written = re.sub(rf"\b{word}\b\s*", sign if word == "not" else f"{sign} ", written)
            is_read = parse_expression(Source("", written), Span(0, len(written)))[0] is not None
            help = f"write `{{{{{written}}}}}`." if is_read else COMPUTED
            if problem is not None and problem.code == MIXED_OPERATORS:
                help = problem.help or help
            yield *found.span(), help


def _paths(text: PlaybookText, roots: frozenset[str]) -> Iterator[tuple[int, int, str]]:
    """Paths from a known root in braces of other systems."""
    for form in FORMS if any(root in text.unfenced_text for root in roots) else ():
        for found in re.finditer(form.replace("PATH", PATH), text.unfenced_text):
            if found["root"] in roots:
                yield *found.span(), f"{found['root']}{found['path']}"


def _fields(text: PlaybookText) -> Iterator[tuple[int, int, str]]:
    """Fields of the payload in single braces, where these are no object."""
    handler = text.around.function
    if "{" not in text.text.value or not isinstance(handler, n.Handler) or not handler.parameters:
        return
    type = handler.parameters[0].type
    fields = [] if type is None else [field.name for field in resolve_type(type, text.file.table).fields]
    for found in NAME.finditer(text.unfenced_text) if fields else ():
        before = text.unfenced_text[max(0, found.start() - 40) : found.start()]
        if found["name"] in fields and not pattern(rf"\b{OBJECT}").search(before):
            yield *found.span(), f"args.{found['name']}"

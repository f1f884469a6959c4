"""Changes to a program that several rules propose: an import, a permission, a word in front of a declaration."""

from __future__ import annotations

from koi_lang.compiler import nodes as n
from koi_lang.compiler.imports import Unit
from koi_lang.diagnostics import Edit, Fix
from koi_lang.source import Source, Span


def add_import(path: str, unit: Unit) -> Fix:
    """Import a file behind the other imports, else at the beginning."""
    statement = f'import "{path}"'
    leading = [each.span.end for each in unit.program.declarations if isinstance(each, n.Import | n.Package)]
    if leading:
        return Fix(f"add `{statement}`", (insert(unit.source, max(leading), f"\n{statement}"),))
    return Fix(f"add `{statement}`", (insert(unit.source, 0, f"{statement}\n\n"),))


def add_permission(role: n.Role, permission: str, source: Source) -> Fix:
    """Give a role one permission more."""
    written = permission.replace(":", ": ")
    title = f"add `can {written}` to `{role.name.name}`"
    if role.capabilities:
        return Fix(title, (insert(source, role.capabilities[-1].span.end, f", can {written}"),))
    brace = source.text.index("{", role.name.span.end)
    return Fix(title, (insert(source, brace + 1, f" can {written}"),))


def export_prompt(prompt: n.Prompt, source: Source) -> Fix:
    """Let other files use a prompt."""
    return Fix(f"export `{prompt.name.name}`", (insert(source, prompt.span.start, "export "),))


def insert(source: Source, offset: int, text: str) -> Edit:
    """The edit that inserts a text."""
    return Edit(source, Span(offset, offset), text)

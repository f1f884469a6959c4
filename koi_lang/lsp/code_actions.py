"""Quick fixes: the changes that diagnostics propose, as edits of documents."""

from __future__ import annotations

from collections import defaultdict

from lsprotocol import types

from koi_lang.diagnostics import Diagnostic, Fix
from koi_lang.lsp.documents import uri_of
from koi_lang.lsp.problems import to_protocol
from koi_lang.lsp.workspace import Snapshot, Workspace
from koi_lang.source import Span


def quick_fixes(snapshot: Snapshot, range: types.Range, programs: Workspace) -> list[types.CodeAction]:
    """What can be done about the problems in a range of a document, the likeliest first."""
    wanted = snapshot.document.map.span(range)
    found: list[types.CodeAction] = []
    for problem in snapshot.checked.diagnostics:
        if problem.place.source.path == snapshot.document.path and _touch(problem.place.span, wanted):
            found += [_action(fix, problem, programs, is_first=index == 0) for index, fix in enumerate(problem.fixes)]
    return found


def _touch(one: Span, other: Span) -> bool:
    return one.start <= other.end and other.start <= one.end


def _action(fix: Fix, problem: Diagnostic, programs: Workspace, *, is_first: bool) -> types.CodeAction:
    return types.CodeAction(
        fix.title,
        types.CodeActionKind.QuickFix,
        [to_protocol(problem, programs.map_of)],
        is_preferred=is_first,
        edit=types.WorkspaceEdit(changes=_changes(fix, programs)),
    )


def _changes(fix: Fix, programs: Workspace) -> dict[str, list[types.TextEdit]]:
    changes: defaultdict[str, list[types.TextEdit]] = defaultdict(list)
    for edit in fix.edits:
        place = programs.map_of(edit.source).range(edit.span)
        changes[uri_of(edit.source.path)].append(types.TextEdit(place, edit.text))
    return dict(changes)

"""Quick fixes: the changes that diagnostics propose, as edits of documents."""

from __future__ import annotations

import posixpath
from collections import defaultdict

from lsprotocol import types

from koi_lang.compiler.imports import OFFERED
from koi_lang.compiler.rules.fixes import add_import
from koi_lang.diagnostics import Diagnostic, Fix
from koi_lang.lsp.documents import uri_of
from koi_lang.lsp.problems import to_protocol
from koi_lang.lsp.workspace import Snapshot, Workspace
from koi_lang.source import Span

# What is said of a name that nobody in the program declares.
UNKNOWN = frozenset({"E0201", "E0202", "E0203", "E0204", "E0206", "E0221"})
MAX_SIBLINGS = 200


def quick_fixes(snapshot: Snapshot, range: types.Range, programs: Workspace) -> list[types.CodeAction]:
    """The fixes for problems in a range of a document, the likeliest first."""
    wanted = snapshot.document.map.span(range)
    found: list[types.CodeAction] = []
    for problem in snapshot.checked.diagnostics:
        if problem.place.source.path == snapshot.document.path and _touch(problem.place.span, wanted):
            fixes = [*_imports(problem, snapshot, programs), *problem.fixes]
            found += [_action(fix, problem, programs, is_first=index == 0) for index, fix in enumerate(fixes)]
    return found


def _imports(problem: Diagnostic, snapshot: Snapshot, programs: Workspace) -> list[Fix]:
    """Imports of files in the same folder that declare a name which the program does not know."""
    if problem.code not in UNKNOWN or snapshot.file is None:
        return []
    span, path = problem.place.span, snapshot.document.path
    name = problem.place.source.text[span.start : span.end].strip("\"'")
    folder, own = posixpath.split(path)
    siblings = [each for each in programs.files.names(folder)[:MAX_SIBLINGS] if each.endswith(".koi") and each != own]
    read = {posixpath.join(folder, each) for each in siblings} - snapshot.checked.read.keys()
    return [
        add_import(f"./{posixpath.basename(file)}", snapshot.file.unit)
        for file in sorted(read)
        if name in _find_declared(file, programs)
    ]


def _find_declared(path: str, programs: Workspace) -> list[str]:
    """The names that a file declares for others, as far as they are seen without reading it as a program."""
    try:
        return OFFERED.findall(programs.files.read(path).decode("utf-8", "replace"))
    except OSError:
        return []


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

"""Renaming: all places of a definition get another name, unless the meaning of the program would change."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from koi_lang.compiler.build import RESERVED
from koi_lang.compiler.compile import Checked, check_program
from koi_lang.compiler.imports import Files
from koi_lang.compiler.rules.members import OF_AGENTS
from koi_lang.compiler.rules.program import AnalysedProgram
from koi_lang.compiler.scope import AGENT_NAMES, EVAL_NAMES, GLOBALS, RUN_NAMES
from koi_lang.errors import KoiError
from koi_lang.lsp.navigation import NamePlace, all_occurrences, find_references
from koi_lang.lsp.occurrences import Occurrence
from koi_lang.lsp.open_files import FileOverlay
from koi_lang.lsp.workspace import Workspace
from koi_lang.source import Span

NAME = re.compile(r"[A-Za-z_]\w*")
TAKEN = RESERVED | GLOBALS | AGENT_NAMES | RUN_NAMES | EVAL_NAMES | OF_AGENTS
# Ends in front of the kind of a guard, which is where its parameters are declared.
OF_GUARD = re.compile(r"\bguard\s+\Z")
# What other files name, too, that are no programs: settings, permissions, folders.
FIXED = {
    "mcp": "settings and permissions name an mcp server, too",
    "module": "it is the name of a Python module",
}


class RenameError(KoiError):
    """Something cannot be renamed, or not so."""


def why_fixed(occurrence: Occurrence) -> str | None:
    """Why a name cannot be changed; None where it can."""
    for definition in occurrence.definitions:
        if definition.source is None or not definition.path.startswith("/") or "/stdlib_skills/" in definition.path:
            return "the standard library declares it"
        if definition.kind in FIXED:
            return FIXED[definition.kind]
        if definition.kind == "parameter" and OF_GUARD.search(definition.source.text, 0, definition.span.start):
            return "guards are given it by this name"
        if definition.source.text[definition.span.start : definition.span.end] != definition.name:
            return "it is called like the file that is imported"
    return None


def rename(occurrence: Occurrence, new: str, programs: Workspace) -> dict[str, list[tuple[Span, str]]]:
    """The edits that give another name, by path, in order.

    Raises:
        RenameError: the name is reserved or taken, or what is wrong with a program would be something else.
    """
    why = why_fixed(occurrence)
    if why is not None:
        raise RenameError(f"`{occurrence.definitions[0].name}` cannot be renamed: {why}")
    if not NAME.fullmatch(new):
        raise RenameError(f"`{new}` is no name", help="a name consists of letters, digits and `_`.")
    if new in TAKEN or new.lower() in RESERVED:
        raise RenameError(f"`{new}` is a word of the language")
    places = find_references(occurrence.definitions, programs)
    edits: defaultdict[str, list[tuple[Span, str]]] = defaultdict(list)
    for place in sorted(places, key=lambda each: each.span):
        is_key = place.occurrence.is_shorthand
        edits[place.source.path].append((place.span, f"{occurrence.definitions[0].name}: {new}" if is_key else new))
    _require_same_meaning(places, Renamed(programs.files, dict(edits)), new, programs)
    return dict(edits)


class Renamed(FileOverlay):
    """The files of a workspace after edits.

    Attributes:
        edits: spans with their new texts, by path, in order.
    """

    def __init__(self, files: Files, edits: dict[str, list[tuple[Span, str]]]) -> None:
        super().__init__(files)
        self.edits = edits

    def read(self, path: str) -> bytes:
        """The content of a file. Raises OSError."""
        text = self.disk.read(path).decode("utf-8-sig") if path in self.edits else ""
        for span, new in reversed(self.edits.get(path, [])):
            text = text[: span.start] + new + text[span.end :]
        return text.encode() if path in self.edits else self.disk.read(path)

    def place_of(self, path: str, offset: int) -> int:
        """Where an offset of a file is after the edits."""
        before = [(span, new) for span, new in self.edits.get(path, ()) if span.end <= offset]
        return offset + sum(len(new) - (span.end - span.start) for span, new in before)


def _require_same_meaning(places: Sequence[NamePlace], renamed: Renamed, new: str, programs: Workspace) -> None:
    """Check the programs as they would be. Raises RenameError where something else is wrong or meant."""
    for path in renamed.edits:
        before, after = check_program(path, programs.files), check_program(path, renamed)
        if Counter(_codes(before)) != Counter(_codes(after)):
            problem = next(
                (each.message for each in after.diagnostics if f"`{new}`" in each.message), "the check differs"
            )
            raise RenameError(f"with the name `{new}` something else would be wrong", help=f"{problem}.")
        kept = {each.unit.path: each for each in after.analysed}[path]
        found = all_occurrences(kept, AnalysedProgram(after.analysed))
        ends = {(each.path, each.span.end) for place in places for each in place.occurrence.definitions}
        defined = {(file, renamed.place_of(file, end)) for file, end in ends}
        same = {each.span for each in found if defined & {(one.path, one.span.end) for one in each.definitions}}
        if {span.end for span in same} != {
            renamed.place_of(path, place.span.end) for place in places if place.source.path == path
        }:
            raise RenameError(f"`{new}` stands for something else there")


def _codes(checked: Checked) -> list[str]:
    return [problem.code for problem in checked.diagnostics]

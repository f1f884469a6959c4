"""From a name to its declaration, and to everything else that stands for the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.program import AnalysedProgram
from koi_lang.lsp.occurrences import Definition, Occurrence, occurrences
from koi_lang.lsp.text_names import text_occurrences
from koi_lang.lsp.workspace import Snapshot, Workspace
from koi_lang.source import Source, Span


@dataclass(frozen=True, slots=True)
class NamePlace:
    """An occurrence with its file."""

    source: Source
    occurrence: Occurrence

    @property
    def span(self) -> Span:
        """Where it stands."""
        return self.occurrence.span


def all_occurrences(file: Analysis, program: AnalysedProgram) -> list[Occurrence]:
    """The names of a file, within texts, too."""
    return [*program.for_file(occurrences, file), *program.for_file(text_occurrences, file)]


def occurrence_at(snapshot: Snapshot, offset: int) -> Occurrence | None:
    """The name that an offset is in, or at the end of."""
    if snapshot.file is None:
        return None
    found = all_occurrences(snapshot.file, snapshot.program)
    return next((each for each in found if each.span.start <= offset <= each.span.end), None)


def find_references(definitions: Iterable[Definition], programs: Workspace) -> list[NamePlace]:
    """All places of some definitions, and of those that share a place with them.

    An event that two agents handle is one name: who renames it in one of them renames it in both.
    """
    wanted = set(definitions)
    places: dict[tuple[str, Span], NamePlace] = {}
    size = -1
    while len(wanted) != size:
        size = len(wanted)
        files = {each.path for each in wanted}
        for place in (place for path in files for program in programs.importing(path) for place in _places(program)):
            if not wanted.isdisjoint(place.occurrence.definitions):
                places[place.source.path, place.span] = place
                wanted |= set(place.occurrence.definitions)
    return list(places.values())


def _places(program: AnalysedProgram) -> Iterable[NamePlace]:
    for file in program.files:
        for occurrence in all_occurrences(file, program):
            yield NamePlace(file.unit.source, occurrence)

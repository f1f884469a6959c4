"""Where a program can stop: the lines of its functions, and its playbooks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from inspect import CO_OPTIMIZED
from opcode import opmap
from pathlib import Path
from types import CodeType, ModuleType

from koi_lang.program import declarations, loader
from koi_lang.program.files import SUFFIX
from koi_lang.system import resources

LAMBDA = "<lambda>"
MOVED = "moved to the next line that does something"
IN_PLAYBOOK = "stops before each action of this playbook"
NOTHING = "nothing is done at this line or behind it"


@dataclass(frozen=True, slots=True)
class PlaybookLines:
    """The lines of a handler's playbook; its stops are at the first of them."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a breakpoint stops.

    Attributes:
        line: None where there is nothing to stop at.
        note: what a person is told of it; empty where it is where they set it.
    """

    line: int | None
    note: str = ""
    is_playbook: bool = False


@dataclass(frozen=True, slots=True)
class StopLines:
    """The lines of a file at which something is done, in order, and its playbooks."""

    lines: tuple[int, ...] = ()
    playbooks: tuple[PlaybookLines, ...] = ()

    def spot(self, line: int) -> Spot:
        """Where a breakpoint at a line stops: there, at the playbook around it, or at the next line with code."""
        for playbook in self.playbooks:
            if playbook.first <= line <= playbook.last:
                return Spot(playbook.first, IN_PLAYBOOK, is_playbook=True)
        following = bisect_left(self.lines, line)
        if following == len(self.lines):
            return Spot(None, NOTHING)
        found = self.lines[following]
        is_playbook = any(playbook.first == found for playbook in self.playbooks)
        note = "; ".join([*([MOVED] if found != line else []), *([IN_PLAYBOOK] if is_playbook else [])])
        return Spot(found, note, is_playbook)


@dataclass(frozen=True, slots=True)
class ProgramLines:
    """The lines of a program's own files, by path; the standard library is passed over.

    Attributes:
        playbooks: by the code of the handlers that consist of them.
    """

    files: Mapping[str, StopLines] = field(default_factory=dict)
    playbooks: Mapping[CodeType, PlaybookLines] = field(default_factory=dict)

    def spot(self, path: str, line: int) -> Spot:
        """Where a breakpoint in a file stops."""
        found = self.files.get(path)
        return Spot(None, "this file is no part of the program") if found is None else found.spot(line)


def lines_of(module: ModuleType, files: Mapping[str, str]) -> ProgramLines:
    """Where a loaded program can stop.

    Args:
        files: those that it was compiled from, as keys.
    """
    standard = resources.standard_skills()
    own = [path for path in files if path.endswith(SUFFIX) and not Path(path).is_relative_to(standard)]
    declared = [agent.about for agent in declarations.agents_of(module)]
    handlers = [handler for about in declared for handler in (*about.handlers.values(), *about.guards.values())]
    codes = [handler.function.__code__ for handler in handlers if handler.playbook]
    playbooks = {code: _playbook_lines(code) for code in codes if code.co_filename in own}
    return ProgramLines({path: _file_lines(path, playbooks) for path in own}, playbooks)


def _file_lines(path: str, playbooks: Mapping[CodeType, PlaybookLines]) -> StopLines:
    functions = [code for code in _codes(loader.load_compiled(path).code) if is_function(code)]
    lines = {line for code in functions if code not in playbooks for line in _body_lines(code)}
    line_sets = [lines for code, lines in playbooks.items() if code.co_filename == path]
    return StopLines(tuple(sorted(lines | {each.first for each in line_sets})), tuple(line_sets))


def is_function(code: CodeType) -> bool:
    """Whether code is a function of the program: not a class, nor a thunk in which a declaration or text is kept."""
    if not code.co_flags & CO_OPTIMIZED:
        return False
    is_thunk = code.co_name == LAMBDA and ("<locals>" not in code.co_qualname or code.co_varnames[:1] == ("scope",))
    return not is_thunk


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Code and all code inside of it, without the insides of thunks."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _body_lines(code: CodeType) -> Iterator[int]:
    """The lines of a function's body."""
    head = 2 * code.co_code[::2].index(opmap["RESUME"])
    for start, _, line in code.co_lines():
        if start > head and line is not None:
            yield line


def _playbook_lines(code: CodeType) -> PlaybookLines:
    spans = [span for each in _codes(code) for span in each.co_positions()]
    last = max((end for _, end, _, _ in spans if end is not None), default=code.co_firstlineno)
    return PlaybookLines(min(_body_lines(code), default=code.co_firstlineno), last)

"""An exception that ended a run to the message a person gets, with the `.koi` lines it went through."""

from __future__ import annotations

import itertools
import linecache
import os
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import CodeType, TracebackType

from koi_lang.diagnostics import Diagnostic, LabeledSpan, render
from koi_lang.errors import KoiError, failure_code, innermost, installing
from koi_lang.js.errors import MADE, ErrorValue, Made, Thrown, caught
from koi_lang.js.undefined import undefined
from koi_lang.runtime.replay.error_records import thrown_text
from koi_lang.source import Source, Span, decode, is_program
from koi_lang.system import resources
from koi_lang.system.installation import help_for

MAX_CALLERS = 6
MAX_CAUSES = 6
# The code of whatever has no kind of its own, which says nothing without a place.
UNCAUGHT = KoiError.failure_code
TOO_DEEP = "see that one of these calls ends without another one, or write a loop."
# Folders that installed packages lie in.
INSTALLED = frozenset({"site-packages", "dist-packages"})


def explain(error: BaseException, folder: str = "") -> str:
    """The message: what went wrong, the `.koi` line where it did, and the lines it was called from."""
    error = innermost(error)
    help = error.help if isinstance(error, KoiError) else None
    if isinstance(error, ModuleNotFoundError) and error.name:
        help = help_for(error.name) or installing(error.name)
    help = TOO_DEEP if isinstance(error, RecursionError) else help
    places = _places_of(error)
    if isinstance(error, KoiError):  # it says what is wrong, which no line of the standard library is
        places = [place for place in places if not _is_standard(place)]
    if not places:
        code = failure_code(error)
        kind = f" [{code}]" if code != UNCAUGHT else ""
        return f"error: {message(error)}{kind}" + (f"\n  = help: {help}" if help else "")
    place, *callers = _fold_places(reversed(places))
    shown = tuple(callers[:MAX_CALLERS])
    notes = (*_in_python(error.__traceback__, folder), *causes(error))
    return render(Diagnostic(failure_code(error), "error", message(error), place, shown, help, notes), folder)


def innermost_place(error: BaseException) -> LabeledSpan | None:
    """Where an error was raised, as far as that is a place in a Koi source."""
    places = _places_of(innermost(error))
    return places[-1] if places else None


def message(error: BaseException) -> str:
    """What an error says, in its own words; errors of Python and of special kinds with their name before it."""
    if isinstance(error, KoiError):
        return error.message
    if isinstance(error, NameError):
        return message(caught(error))
    if isinstance(error, RecursionError):
        return "the program calls itself too deeply"
    if isinstance(error, (Thrown, ErrorValue)):
        return thrown_text(error)
    return f"{type(error).__name__}: {str(error).strip() or 'no message'}"


def causes(error: BaseException) -> Iterator[str]:
    """What an `Error` names as its `cause`, and what that names, each as `message` tells it."""
    seen = [error]
    while isinstance(error, ErrorValue) and error.cause not in (undefined, error.exception):
        cause = error.cause
        error = cause if isinstance(cause, BaseException) else Thrown(cause)
        if any(error is other for other in seen) or len(seen) > MAX_CAUSES:
            return
        seen.append(error)
        yield message(error)


def _is_standard(place: LabeledSpan) -> bool:
    """Whether a place lies in the standard library, which is nobody's own program."""
    return Path(place.source.path).is_relative_to(resources.standard_skills())


def _places_of(error: BaseException) -> list[LabeledSpan]:
    """The places in Koi sources that an error passed, outermost first, or where its promise was made."""
    return [*_places(error.__traceback__)] or [*_promise_origins(error)]


def _places(trace: TracebackType | None) -> Iterator[LabeledSpan]:
    """The places in Koi sources that an exception passed, outermost first."""
    sources: dict[str, Source] = {}
    while trace is not None:
        passed, trace = trace, trace.tb_next
        code = passed.tb_frame.f_code
        path = code.co_filename
        if not is_program(path):
            continue
        summary = _frame_summary(code, passed.tb_lasti, passed.tb_lineno)
        source = sources.get(path) or sources.setdefault(path, _source(path))
        if summary.lineno is not None and summary.lineno <= len(source.line_starts):  # a script begins behind its text
            yield LabeledSpan(source, _span(source, summary), _label(code.co_qualname))


def _frame_summary(code: CodeType, instruction: int, number: int | None = None) -> traceback.FrameSummary:
    """The place of an instruction, or its line alone; `traceback` would read all lines, those of Python, too."""
    positions = itertools.islice(code.co_positions(), max(instruction, 0) // 2, None)
    line, end_line, column, end_column = next(positions, (None,) * 4)
    return traceback.FrameSummary(
        code.co_filename, number if line is None else line, code.co_name,
        lookup_line=False, end_lineno=end_line, colno=column, end_colno=end_column,
    )  # fmt: skip


def _promise_origins(error: BaseException) -> Iterator[LabeledSpan]:
    """Where the promise was made, or rejected, that nobody waited for."""
    made: Made | None = getattr(error, MADE, None)
    if made is not None:
        code, instruction = made
        source = _source(code.co_filename)
        yield LabeledSpan(source, _span(source, _frame_summary(code, instruction)), _label(code.co_qualname))


def _fold_places(places: Iterable[LabeledSpan]) -> Iterator[LabeledSpan]:
    """Every place once, with how often it was passed where a program calls itself."""
    found: dict[tuple[str, Span], list[LabeledSpan]] = {}
    for place in places:
        found.setdefault((place.source.path, place.span), []).append(place)
    for first, *more in found.values():
        times = f"{len(more) + 1:,} times" if more else ""
        yield replace(first, label=", ".join(part for part in (first.label, times) if part))


def _in_python(trace: TracebackType | None, folder: str) -> Iterator[str]:
    """The innermost line of the person's own Python that an exception passed behind the last line of Koi."""
    frames = traceback.extract_tb(trace)
    behind = itertools.takewhile(lambda frame: not is_program(frame.filename), reversed(frames))
    for frame in behind:
        path = Path(frame.filename)
        if path.suffix == ".py" and path.is_absolute() and not _is_of_others(path):
            shown = path.relative_to(folder) if folder and path.is_relative_to(folder) else path
            yield f"{shown.as_posix()}:{frame.lineno}: {frame.line}"
            return


def _is_of_others(path: Path) -> bool:
    """Whether a file belongs to this package, to Python, or to what is installed."""
    if path.is_relative_to(resources.PACKAGE) or path.is_relative_to(Path(os.__file__).parent):
        return True
    return not INSTALLED.isdisjoint(path.parts)


def _label(name: str) -> str:
    """What a place is called: `Agent.handler` or the innermost function; `run`, tests and lambdas have no name."""
    shown = name.rpartition("<locals>.")[2]
    is_block = name in (f"koi_tests.<locals>.{shown}", f"koi_evals.<locals>.{shown}")
    is_unnamed = name == "main" or shown.startswith("<") or is_block
    return "" if is_unnamed else f"in `{shown}`"


def _source(path: str) -> Source:
    try:
        return decode(Path(path).read_bytes(), path)
    except (OSError, UnicodeDecodeError):
        return Source(path, "".join(linecache.getlines(path)))  # what was typed is no file


def _span(source: Source, frame: traceback.FrameSummary) -> Span:
    """The characters of a frame's position; Python counts columns in bytes."""
    number = frame.lineno or 1
    if number > len(source.line_starts):
        return Span(0, 0)
    start, line = source.line_starts[number - 1], source.line(number)
    first = _characters(line, frame.colno)
    last = _characters(line, frame.end_colno) if frame.end_lineno == number else len(line)
    return Span(start + first, start + max(first + 1, last))


def _characters(line: str, byte_column: int | None) -> int:
    return len(line.encode()[: byte_column or 0].decode("utf-8", "ignore"))

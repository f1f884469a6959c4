"""An exception that ended a run to the message a person gets, with the `.koi` lines it went through."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from koi_lang.diagnostics import Diagnostic, Place, render
from koi_lang.errors import EXIT_FAILED, KoiError
from koi_lang.source import Source, Span, decode

MOST_CALLERS = 6
CODE = "E0500"


def exit_code(error: BaseException) -> int:
    """What a process ends with for an error."""
    return error.exit_code if isinstance(error, KoiError) else EXIT_FAILED


def explain(error: BaseException) -> str:
    """The message: what went wrong, the `.koi` line where it did, and the lines it was called from."""
    error = innermost(error)
    help = error.help if isinstance(error, KoiError) else None
    places = list(_places(error.__traceback__))
    if not places:
        return f"error: {message(error)}" + (f"\n  = help: {help}" if help else "")
    place, *callers = reversed(places)
    shown = tuple(callers[:MOST_CALLERS])
    return render(Diagnostic(CODE, "error", message(error), place, shown, help))


def innermost(error: BaseException) -> BaseException:
    """The first error of a group, at any depth."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def message(error: BaseException) -> str:
    """What an error says, on one line and in its own words."""
    if isinstance(error, KoiError):
        return error.message
    if isinstance(error, RecursionError):
        return "the program calls itself too deeply"
    text = str(error).strip() or "no message"
    is_value = hasattr(error, "__koi_members__") or type(error).__module__.startswith("koi_lang.")
    return text if is_value else f"{type(error).__name__}: {text}"


def _places(trace: TracebackType | None) -> Iterator[Place]:
    """The places in Koi sources that an exception passed, outermost first."""
    sources: dict[str, Source] = {}
    for frame in traceback.extract_tb(trace):
        if not frame.filename.endswith(".koi") or frame.lineno is None:
            continue
        source = sources.get(frame.filename) or sources.setdefault(frame.filename, _source(frame.filename))
        label = f"in `{frame.name}`" if not frame.name.startswith("<") else ""
        yield Place(source, _span(source, frame), label)


def _source(path: str) -> Source:
    try:
        return decode(Path(path).read_bytes(), path)
    except (OSError, UnicodeDecodeError):
        return Source(path, "")


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

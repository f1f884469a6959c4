"""The parser's errors to messages in the words of the person who wrote the program."""

from __future__ import annotations

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from koi_lang.diagnostics import Diagnostic, Place
from koi_lang.source import Source, Span


def explain(source: Source, error: UnexpectedInput, read: Span) -> Diagnostic:
    """One diagnostic for the place where reading stopped."""
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        span = Span(error.token.start_pos or 0, error.token.end_pos or 0)
    elif isinstance(error, UnexpectedCharacters):
        span = Span(error.pos_in_stream or 0, (error.pos_in_stream or 0) + 1)
    else:
        span = Span(read.end, read.end)
    found = source.text[span.start : span.end]
    what = f"`{found}` does not belong here" if found else "the program ends too early"
    return Diagnostic("E0101", "error", what, Place(source, span))

"""Texts, templates, comments and regular expressions that never end."""

from __future__ import annotations

import re
from itertools import pairwise

from koi_lang.compiler.syntax_errors.context import Failure, Hint, SyntaxHelp, hint
from koi_lang.compiler.syntax_errors.scanner import ScannedToken
from koi_lang.source import Source, Span

HINTS: list[Hint] = []

# A line of code rather than of prose: the text before it was not closed.
CODE_LINE = re.compile(
    r"^\s*(?:(?:private\s+)?on\s+\w+\s*\(|(?:agent|role|skill|team|prompt)\s+\w+\s*[:({=])", re.MULTILINE
)
# A word behind a quote, and what follows it up to the next one.
INNER = re.compile(r"(?P<inner>\w[^\"'\n]*)(?P<quote>[\"'])(?=[^\"'\n]*[\"'])")
# What stands before an opening quote rather than before a closing one.
BEFORE_OPENER = re.compile(r"(?:[(=,:+\[?]|\b(?:playbook|affordance|return|import|from|throw))\s*\Z")


@hint(HINTS, "E0103")
def triple(failure: Failure) -> SyntaxHelp | None:
    '''A text in triple quotes is never closed.

    It takes everything up to the next three quotes, which often begin another text.

    Wrong:

        playbook """
          Greet the user.

    Right:

        playbook """
          Greet the user.
          """
    '''
    piece = _unclosed_triple(failure)
    if piece is None:
        return None
    help = 'close the text with `"""` where it ends.'
    message = "this text in triple quotes is never closed"
    return SyntaxHelp(message, _opener(piece, 3), help, "it begins here", _end(failure, piece, 3))


def _unclosed_triple(failure: Failure) -> ScannedToken | None:
    """The text that took the quotes of the next one as its end, else the last one if it never ends."""
    for offset in failure.same_line():
        if (piece := failure.piece(offset)).kind == "triple" and _has_swallowed(piece):
            return piece
    open_pieces = (piece for piece in reversed(failure.scan.pieces) if piece.kind == "unclosed")
    last = next((piece for piece in open_pieces if piece.text.startswith('"""')), None)
    if last is None or _swallowing_text(failure) is not None:
        return None
    fenced = (piece for piece in failure.scan.pieces if piece.kind == "triple" and _has_swallowed(piece))
    culprit = next(fenced, last)
    return culprit if culprit.span.start <= failure.span.start else None


@hint(HINTS, "E0195")
def open_quote(failure: Failure) -> SyntaxHelp | None:
    """A text in quotes is never closed.

    A text may span lines, so it takes everything up to the next quote of its kind.

    Wrong:

        console.log("hello)

    Right:

        console.log("hello")
    """
    piece = _unclosed_text(failure)
    if piece is None:
        return None
    help = f"write `{piece.text[0]}` where the text ends."
    return SyntaxHelp("this text is never closed", _opener(piece, 1), help, "it begins here", _end(failure, piece, 1))


def _unclosed_text(failure: Failure) -> ScannedToken | None:
    """A text that took the quote of the next one as its end, else the one that begins here and never ends."""
    here, before = failure.piece(), failure.piece(-1)
    if before.kind == "text" and "\n" in before.text and before.span.end == here.span.start and here.text:
        return before
    for offset in failure.same_line():
        if (piece := failure.piece(offset)).kind == "text" and _has_swallowed(piece):
            return piece
    swallowing = _swallowing_text(failure)
    if swallowing is not None:
        return swallowing
    return here if here.kind == "unclosed" and here.text[0] in "\"'" and not here.text.startswith('"""') else None


def _swallowing_text(failure: Failure) -> ScannedToken | None:
    """A text before the failure that took the first of three quotes as its end."""
    pieces = failure.scan.pieces[: failure.index]
    for piece, following in pairwise(pieces):
        if piece.kind == "text" and following.text[:2] == '""' and piece.span.end == following.span.start:
            return piece if _has_swallowed(piece) else None
    return None


@hint(HINTS, "E0199")
def quote_inside(failure: Failure) -> SyntaxHelp | None:
    """A text ends at a quote that was meant to be part of it.

    Write a backslash before such a quote, or put the text between quotes of the other kind.

    Wrong:

        console.log('it's late')

    Right:

        console.log("it's late")
    """
    before, here = failure.piece(-1), failure.piece()
    if before.kind != "text" or here.kind not in ("word", "number") or here.span.start != before.span.end:
        return None
    return _quote_at(failure.source, before.span)


def quote_beside(source: Source, first: Span, second: Span) -> SyntaxHelp | None:
    """The same where the text and what touches it can be read as two statements."""
    is_text = source.text[first.end - 1] in "\"'" and source.text[second.start].isalnum()
    return _quote_at(source, first) if is_text and first.end == second.start else None


def _quote_at(source: Source, text: Span) -> SyntaxHelp:
    """What to say of the quote that ends a text too early; what stands in quotes behind it is written out."""
    quote = source.text[text.end - 1]
    match = INNER.match(source.text, text.end)
    if match is not None and match["quote"] == quote and quote == '"':
        help = f'write `\\"{match["inner"]}\\"` inside the text.'
        return SyntaxHelp("the text ends at this quote", Span(text.end - 1, text.end), help)
    other = "'" if quote == '"' else '"'
    span = Span(text.end - 1, text.end)
    return SyntaxHelp(
        "the text ends at this quote", span, f"write `\\{quote}` inside the text, or put it between `{other}`."
    )


@hint(HINTS, "E0196")
def template(failure: Failure) -> SyntaxHelp | None:
    """A text in backticks, or a `${` in it, is never closed.

    Wrong:

        console.log(`hello ${args.name)

    Right:

        console.log(`hello ${args.name}`)
    """
    frame = failure.frame
    if frame.bracket == "${" and (failure.word() in ("`", "") or failure.scan.unclosed):
        span = Span(frame.start, frame.start + 2)
        return SyntaxHelp("this `${` is never closed", span, "write `}` after the value.", "it begins here")
    start = frame.start if frame.bracket == "`" else _earlier_template(failure)
    if start is None:
        return None
    span = Span(start, start + 1)
    return SyntaxHelp(
        "this text in backticks is never closed", span, "write a backtick where the text ends.", "it begins here"
    )


def _earlier_template(failure: Failure) -> int | None:
    """A template that took the opening backtick of another one as its end."""
    starts = {closer: opener for opener, closer in failure.scan.partners.items()}
    for offset in failure.same_line():
        piece, opener = failure.piece(offset), starts.get(failure.index + offset)
        if piece.text != "`" or opener is None:
            continue
        start = failure.scan.pieces[opener].span.start
        if _is_swallowed(failure.source.text[start + 1 : piece.span.start]):
            return start
    return None


@hint(HINTS, "E0197")
def comment(failure: Failure) -> SyntaxHelp | None:
    """A comment that begins with `/*` is never closed.

    Wrong:

        /* the agent that greets
        agent Ada : Worker { }

    Right:

        /* the agent that greets */
        agent Ada : Worker { }
    """
    piece = failure.piece()
    if piece.kind != "unclosed" or not piece.text.startswith("/*"):
        return None
    return SyntaxHelp(
        "this comment is never closed", _opener(piece, 2), "write `*/` where the comment ends.", "it begins here"
    )


@hint(HINTS, "E0198")
def regex(failure: Failure) -> SyntaxHelp | None:
    r"""A regular expression is never closed.

    It ends with `/` on the line where it began; a `/` in it is written as `\/`.

    Wrong:

        const word = /[a-z]+

    Right:

        const word = /[a-z]+/
    """
    if failure.word() not in ("/", "/=") or not failure.wants_value:
        return None
    return SyntaxHelp(
        "this regular expression is never closed", failure.span, "write `/` where it ends, on the same line."
    )


def _opener(piece: ScannedToken, length: int) -> Span:
    return Span(piece.span.start, piece.span.start + length)


def _end(failure: Failure, piece: ScannedToken, width: int) -> tuple[tuple[Span, str], ...]:
    """The further place of a text that is not closed: what was taken as its end."""
    if piece.kind != "unclosed":
        return ((Span(piece.span.end - width, piece.span.end), "this was taken as its end"),)
    last = piece.span.start + max(width, len(piece.text.rstrip()))
    label = "the program ends here" if piece.span.end == failure.end else "nothing ends it up to here"
    return ((Span(last - 1, last), label),)


def _has_swallowed(piece: ScannedToken) -> bool:
    """Whether a closed text took the opening quote of the next text as its end."""
    text = piece.text
    width = len(text) - len(text.lstrip(text[0])) if piece.kind == "triple" else 1
    return _is_swallowed(text[width : len(text) - width])


def _is_swallowed(content: str) -> bool:
    if "\n" not in content:
        return False
    last = content.rsplit("\n", 1)[1]
    return BEFORE_OPENER.search(last[-20:]) is not None or CODE_LINE.search(content) is not None

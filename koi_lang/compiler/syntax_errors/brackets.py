"""Brackets without a partner, what is missing between the things they hold, and lines that end too early."""

from __future__ import annotations

from collections.abc import Sequence

from koi_lang.compiler.syntax_errors.context import Failure, Hint, SyntaxHelp, hint
from koi_lang.compiler.syntax_errors.files import DECLARATIONS, ITEMS
from koi_lang.compiler.syntax_errors.scanner import CLOSERS, ScannedToken
from koi_lang.source import Span

HINTS: list[Hint] = []
AFTER: list[Hint] = []
# What ends something, or has a message of its own.
ENDED = frozenset(("}", ")", ";", "{", "", "amnesia"))
# Words behind which braces stand, or a name and braces.
HEADS = ("skill", "team", "role", "state", "budget", "test")
# Words that need a name or a text behind them on their line.
OPEN = frozenset(("const", "let", "var", "playbook", "use"))
BOUNDARIES = frozenset((*DECLARATIONS, *ITEMS, "export", "package")) - {"playbook", "affordance"}


@hint(HINTS, "E0132")
def wrong_closer(failure: Failure) -> SyntaxHelp | None:
    """A bracket is closed by one of another kind.

    Wrong:

        const names = ["a", "b")

    Right:

        const names = ["a", "b"]
    """
    frame, here = failure.frame, failure.word()
    if here not in (")", "]") or failure.index not in failure.scan.stray or frame.bracket not in ("(", "["):
        return None
    if frame.start < _line_start(failure, failure.span):
        return None
    opener = Span(frame.start, frame.start + 1)
    closer = CLOSERS[frame.bracket]
    others = ((opener, "opened here"),)
    return SyntaxHelp(f"`{frame.bracket}` is closed by `{here}`", failure.span, f"write `{closer}`.", "", others)


@hint(HINTS, "E0131")
def missing_closer(failure: Failure) -> SyntaxHelp | None:
    """A brace, parenthesis or bracket is never closed.

    The place is where it was opened. For braces the indentation tells which one is meant.

    Wrong:

        agent Ada : Worker {
          on start() {
            console.log("go")
        }

    Right:

        agent Ada : Worker {
          on start() {
            console.log("go")
          }
        }
    """
    opener = _culprit(failure)
    if opener is None:
        return None
    piece, closer = failure.scan.pieces[opener], CLOSERS[failure.scan.pieces[opener].text]
    noticed = _short(failure.piece() if failure.word() else failure.piece(-1))
    label = "still open here" if failure.word() else "the program ends here"
    help = f"write `{closer}` where it ends."
    comment = failure.comment_behind(opener)
    if closer in failure.source.text[slice(*comment)]:
        noticed, label = Span(comment.start, comment.start + 2), "begins a comment"
        help = f"write `{closer}` in front of it, or `Math.floor(a / b)` for `a // b` of Python."
    return SyntaxHelp(f"this `{piece.text}` is never closed", piece.span, help, "opened here", ((noticed, label),))


@hint(HINTS, "E0129")
def stray(failure: Failure) -> SyntaxHelp | None:
    """A closing brace, parenthesis or bracket has no opening one.

    Wrong:

        console.log("go"))

    Right:

        console.log("go")
    """
    if failure.word() not in (")", "]", "}"):
        return None
    if failure.frames and failure.index not in failure.scan.stray:
        return None
    help = "delete it." if failure.frames else "delete it, or look above for a block that was closed too early."
    return SyntaxHelp(f"there is no open bracket for this {failure.excerpt}", failure.span, help)


@hint(AFTER, "E0134")
def semicolon(failure: Failure) -> SyntaxHelp | None:
    """A `;` stands between the parts of an object, list or role.

    Wrong:

        const point = { x: 1; y: 2 }

    Right:

        const point = { x: 1, y: 2 }
    """
    if failure.word() != ";" or not failure.frames:
        return None
    return SyntaxHelp("`;` cannot separate the parts of an object or list", failure.span, "write `,`.")


@hint(AFTER, "E0109")
def comprehension(failure: Failure) -> SyntaxHelp | None:
    """A list is written as a comprehension.

    Wrong:

        const names = [x.name for x in args.people if x.age > 3]

    Right:

        const names = args.people.filter(x => x.age > 3).map(x => x.name)
    """
    opener, name = failure.frame.start, failure.piece(1).text
    closer = failure.scan.partners.get(failure.at(opener))
    if failure.word() != "for" or failure.word(2) != "in" or closer is None or not name.isidentifier():
        return None
    text, end = failure.source.text, failure.scan.pieces[closer].span.start
    each = text[opener + 1 : failure.span.start].strip()
    places, _, condition = text[failure.piece(2).span.end : end].strip().partition(" if ")
    kept = f".filter({name} => {condition.strip()})" if condition else ""
    made = "" if each == name else f".map({name} => {each})"
    return SyntaxHelp("Koi has no list comprehensions", failure.span, f"write `{places.strip()}{kept}{made}`.")


@hint(AFTER, "E0133")
def comma(failure: Failure) -> SyntaxHelp | None:
    """There is no `,` between two parts of a list, an object, a call or a role.

    Wrong:

        const point = { x: 1 y: 2 }

    Right:

        const point = { x: 1, y: 2 }
    """
    piece = failure.piece()
    if "COMMA" not in failure.expected or not failure.frames or failure.tail[:1] == ("VARIABLE",):
        return None
    if piece.kind not in ("word", "number", "text", "triple", "address") and piece.text not in ("{", "[", "`"):
        return None
    is_text = piece.kind == "text" and failure.piece(-1).kind == "text"
    help = "write `,` between the two" + (", or `+` to join them." if is_text else ".")
    return SyntaxHelp(f"a `,` is missing before {failure.excerpt}", _short(piece), help)


def _culprit(failure: Failure) -> int | None:
    """The opener that has no closer, if the failure shows that there is one."""
    opened = {failure.at(frame.start) for frame in failure.frames}
    unclosed = [index for index in failure.scan.unclosed if index in opened and index < failure.index]
    if not unclosed:
        return None
    if not _is_boundary(failure, failure.scan.pieces[unclosed[-1]]):
        return _find_left(failure, sorted(opened))
    innermost = failure.scan.pieces[unclosed[-1]]
    if innermost.text != "{" or _line_start(failure, innermost.span) == _line_start(failure, failure.span):
        return unclosed[-1]
    return _find_shifted(failure, unclosed[0])


def _find_left(failure: Failure, opened: Sequence[int]) -> int | None:
    """The innermost bracket, if it has no closer of its own and the line of the failure is not indented any deeper."""
    if not opened:
        return None
    piece, partner = failure.scan.pieces[opened[-1]], failure.scan.partners.get(opened[-1])
    line, indent = _line_start(failure, failure.span), _indentation(failure, piece.span)
    is_left = line > piece.span.start and _indentation(failure, failure.span) <= indent and failure.word(-1) != ","
    is_own = partner is not None and _indentation(failure, failure.scan.pieces[partner].span) >= indent
    return opened[-1] if is_left and not is_own else None


def _find_shifted(failure: Failure, outermost: int) -> int:
    """The first brace whose closer stands further left than its own line: that closer was meant for another one."""
    for opener, closer in sorted(failure.scan.partners.items(), key=lambda pair: pair[1]):
        piece, end = failure.scan.pieces[opener], failure.scan.pieces[closer]
        if opener <= outermost or piece.text != "{" or opener >= failure.index or not end.fresh:
            continue
        if end.span.start - _line_start(failure, end.span) < _indentation(failure, piece.span):
            return opener
    return outermost


def _is_boundary(failure: Failure, opener: ScannedToken) -> bool:
    """Whether what stands at the failure cannot belong into an open bracket."""
    piece, frame = failure.piece(), failure.frame
    if piece.kind == "end":
        return True
    if piece.text in (")", "]", "}"):
        return bool(frame.bracket) and CLOSERS[frame.bracket] != piece.text
    if frame.bracket in ("(", "[") and opener.span.start == frame.start:
        is_body = piece.text == "{" and frame.word in ("if", "for", "while", "on", "function")
        return is_body or (piece.fresh and failure.word(-1) != ",")
    return piece.fresh and failure.word() in BOUNDARIES and failure.word(1) not in (".", ":", "=", "(")


def _line_start(failure: Failure, span: Span) -> int:
    return failure.source.text.rfind("\n", 0, span.start) + 1


def _indentation(failure: Failure, span: Span) -> int:
    start = _line_start(failure, span)
    line = failure.source.text[start : span.start]
    return len(line) - len(line.lstrip())


def _short(piece: ScannedToken) -> Span:
    """The first line of a piece."""
    return Span(piece.span.start, piece.span.start + max(1, len(piece.text.split("\n", 1)[0])))


@hint(HINTS, "E0110")
def line_unfinished(failure: Failure) -> SyntaxHelp | None:
    """A line ends before what it begins is complete.

    The next line begins something else, so the place is the line before.

    Wrong:

        agent Ada : Worker {
          uses team
          on start() { console.log("go") }
        }

    Right:

        agent Ada : Worker {
          on start() { console.log("go") }
        }
    """
    # Where the word before is all that was read, it is the beginning, and what stands above it is complete.
    for offset in (0, -1) if len(failure.tail) > 1 else (0,):
        if _is_beginning(failure, offset) and failure.word(offset - 1) not in ENDED:
            return _unfinished_line(failure, offset - 1)
    if failure.piece(-1).fresh and failure.word(-2) in OPEN and failure.is_code and failure.piece(-1).kind == "word":
        return _unfinished_line(failure, -2)
    return None


def _is_beginning(failure: Failure, offset: int) -> bool:
    """Whether a declaration or a part of an agent begins with a token, by its look."""
    piece, following = failure.piece(offset), failure.piece(offset + 1)
    if (
        not piece.fresh
        or failure.tail in ((), ("IMPORT", "NAME"))
        or following.fresh
        or following.kind not in ("word", "text")
    ):
        return False
    if not failure.frames:
        return piece.text.lower() in (*DECLARATIONS, "export")
    return len(failure.frames) == 1 and failure.frame.word == "agent" and piece.text in ITEMS


def _unfinished_line(failure: Failure, last: int) -> SyntaxHelp:
    first = last
    while not failure.piece(first).fresh:
        first -= 1
    span = Span(failure.piece(first).span.start, failure.piece(last).span.end)
    line = failure.source.text[slice(*span)]
    is_head = failure.piece(first).text.lower() in HEADS and first + 1 >= last
    help = "write `{` behind it, and `}` at its end." if is_head else "write the rest of it, or delete it."
    return SyntaxHelp(f"`{line}` is not finished", span, help)

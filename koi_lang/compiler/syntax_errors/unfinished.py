"""Lines that end too early, behind which the next step or part begins."""

from __future__ import annotations

from koi_lang.compiler.syntax_errors.context import Failure, Hint, SyntaxHelp, hint
from koi_lang.compiler.syntax_errors.files import DECLARATIONS, ITEMS
from koi_lang.source import Span

HINTS: list[Hint] = []
# What ends something, or has a message of its own.
ENDED = frozenset(("}", ")", ";", "{", "", "amnesia"))
# Words behind which braces stand, or a name and braces.
HEADS = ("skill", "team", "role", "state", "budget", "test")
# Words that need a name or a text behind them on their line.
OPEN = frozenset(("const", "let", "var", "playbook", "use"))


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

"""Pieces of `do` and `switch` that are missing."""

from __future__ import annotations

from koi_lang.compiler.syntax_errors.context import Failure, Hint, SyntaxHelp, hint

HINTS: list[Hint] = []
OF_SWITCH = frozenset(("CASE", "CASE_DEFAULT", "RBRACE"))
FORM = "write `switch (…) { case …: … }`."


@hint(HINTS, "E0333")
def do_alone(failure: Failure) -> SyntaxHelp | None:
    """A `do` has no `while` behind its body.

    Wrong:

        do { console.log("go") }

    Right:

        do { console.log("go") } while (args.more)
    """
    if failure.expected != {"WHILE"}:
        return None
    before = failure.piece(-1)
    return SyntaxHelp("this `do` has no `while`", before.span, "write `while (…)` behind it.", "it ends here")


@hint(HINTS, "E0334")
def clause_alone(failure: Failure) -> SyntaxHelp | None:
    """A step of a `switch` stands before its first `case`, a `case` has no `:`, or it stands outside of a `switch`.

    Wrong:

        switch (args.kind) { console.log("go") }

    Right:

        switch (args.kind) { case "a": console.log("go") }
    """
    opener = failure.at(failure.frame.start) if failure.frames else 0
    first = next((piece for piece in failure.scan.pieces[opener::-1] if piece.fresh), failure.piece())
    if first.text == "match" and failure.is_code and failure.word() != "}":
        return SyntaxHelp("Koi has no `match`", first.span, FORM)
    head = max((offset for offset in (0, *failure.same_line()) if failure.word(offset) == "case"), default=None)
    if failure.expected == OF_SWITCH:
        help = "write `case …:` or `default:` in front of it."
        return SyntaxHelp(f"no `case` stands before {failure.excerpt}", failure.span, help)
    if failure.tail[:1] == ("CASE",) and failure.expected == {"COLON"}:
        return SyntaxHelp("this `case` has no `:`", failure.span, "write `:` behind its value.")
    if head is not None and failure.is_code and failure.frame.word != "switch" and failure.word(head + 1) != ".":
        return SyntaxHelp("this `case` stands in no `switch`", failure.piece(head).span, FORM)
    return None

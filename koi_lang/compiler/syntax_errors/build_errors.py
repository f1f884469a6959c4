"""Explanations of what the builder and the parser find themselves: forms that are written well but mean nothing."""

from __future__ import annotations

from inspect import cleandoc

from koi_lang.compiler.syntax_errors.context import SyntaxHelp
from koi_lang.compiler.syntax_errors.scanner import CLOSERS, scan
from koi_lang.source import Source, Span


def nested_too_deeply(source: Source, read: Span) -> SyntaxHelp:
    """Brackets or operators are nested too deeply.

    Programs may nest a few hundred levels, and 20 loops or `try`. Give parts of the expression names of their own, and
    move inner steps into functions.
    """
    found = scan(source.text, read)
    depth = deepest = 0
    place = Span(read.start, min(read.end, read.start + 1))
    for piece in found.pieces:
        depth += piece.kind == "mark" and (piece.text in CLOSERS) - (piece.text in (")", "]", "}"))
        if depth > deepest:
            deepest, place = depth, piece.span
    return SyntaxHelp(
        "this is nested too deeply", place, "give parts of it names with `const`, or make them functions."
    )


_TEXTS = {
    "E0102": """
        A construct is well written but has no meaning where it stands.

        The message says what the construct needs.

        Wrong:

            skill Numbers {
              export function (x: number): number { return x * 2 }
            }

        Right:

            skill Numbers {
              export function double(x: number): number { return x * 2 }
            }
    """,
    "E0135": """
        An object gives a value with `=`.

        Wrong:

            const point = { x = 1 }

        Right:

            const point = { x: 1 }
    """,
    "E0182": """
        Parentheses hold several values, or none.

        Only the parameters of an arrow function are written like this.

        Wrong:

            const pair = (1, 2)

        Right:

            const pair = [1, 2]
    """,
    "E0183": """
        Something is assigned to that cannot hold a value.

        Wrong:

            5 = args.x

        Right:

            const five = args.x
    """,
    "E0184": """
        A `send` carries no payload.

        What a handler receives stands in parentheses of its own behind the selection.

        Wrong:

            await send peers.event("greet").any()

        Right:

            await send peers.event("greet").any()({ name: "Ada" })
    """,
    "E0185": """
        A `send` does not name the event.

        Wrong:

            await send peers.any()({ name: "Ada" })

        Right:

            await send peers.event("greet").any()({ name: "Ada" })
    """,
    "E0186": """
        A selection of a `send` is called with something it does not take, or is none.

        `event` takes one text, `role` the name of a role, `any` and `all` nothing. There are no others.

        Wrong:

            await send peers.event(greet).any()({})

        Right:

            await send peers.event("greet").any()({})
    """,
    "E0190": """
        A `try` has neither `catch` nor `finally`.

        Wrong:

            try { console.log("go") }

        Right:

            try { console.log("go") } catch (error) { console.log(error.message) }
    """,
    "E0191": """
        A getter has parameters, or a setter has not exactly one.

        A getter is called when its field is read, a setter with the value that is assigned to it.

        Wrong:

            const box = { side: 2, get area(unit) { return this.side ** 2 } }

        Right:

            const box = { side: 2, get area() { return this.side ** 2 } }
    """,
    "E0612": """
        Operators stand together that need parentheses, as in JavaScript.

        `-a ** 2` might be `(-a) ** 2` or `-(a ** 2)`, and `a ?? b || c` might be `(a ?? b) || c` or `a ?? (b || c)`.

        Wrong:

            const power = -args.x ** 2

        Right:

            const power = -(args.x ** 2)
    """,
    "E0613": """
        A number begins with a zero.

        In old programs of JavaScript `017` is 15; elsewhere in code it is an error.

        Wrong:

            const mode = 017

        Right:

            const mode = 0o17
    """,
    "E0608": """
        The permission of a skill stands behind functions of it, or there are two.

        On a line of its own `needs` counts for all functions of the skill, so there is one, and it stands before them.
        What only one function needs stands on the line of its `export`.

        Wrong:

            skill Notes {
              export function count(text: string): number { return text.length }
              needs write
              export function save(text: string): number { return text.length }
            }

        Right:

            skill Notes {
              export function count(text: string): number { return text.length }
              needs write export function save(text: string): number { return text.length }
            }
    """,
}
EXPLANATIONS = {code: cleandoc(text) for code, text in _TEXTS.items()}

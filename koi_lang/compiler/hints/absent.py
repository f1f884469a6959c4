"""Constructs of JavaScript and TypeScript that Koi does not have, each with what is written instead."""

from __future__ import annotations

import re

from koi_lang.compiler.hints.failure import Failure, Finding, Hint, hint
from koi_lang.source import Source, Span

HINTS: list[Hint] = []
ERROR_CLASS = re.compile(r"[^\n]*?\b(class\s+(\w+)\s+extends\s+\w*Error)\b")
NAME_BEFORE = re.compile(r"\w+$")
ON_ITS_OWN = "let it be a statement of its own, and assign in it."
# What stands instead of a statement where a value is needed.
AS_VALUE = {
    "if": "write `condition ? value : other`.",
    "switch": "write `condition ? value : other`.",
    "throw": "write `if (…) { throw … }` before it.",
    "playbook": 'give the playbook a handler of its own, and write `await this.handle("name", { … })`.',
    "run": "write `await Agent.handler({ … })`.",
    **dict.fromkeys(("for", "while", "try"), ON_ITS_OWN),
    **dict.fromkeys(("const", "let", "var"), "declare the name on a line before, and use it here."),
}


@hint(HINTS, "E0191")
def accessor(failure: Failure) -> Finding | None:
    """An object has a getter or a setter.

    Fields of objects are plain values. A method computes one when it is called.

    Wrong:

        const box = { side: 2, get area() { return box.side ** 2 } }

    Right:

        const box = { side: 2, area() { return box.side ** 2 } }
    """
    kind, name = failure.piece(-1), failure.piece()
    if kind.text not in ("get", "set", "static") or failure.word(1) != "(" or failure.frame.bracket != "{":
        return None
    if failure.word(-2) not in ("{", ","):
        return None
    if kind.text == "static":
        return Finding("Koi has no `static`", kind.span, "leave it out.")
    return Finding(f"Koi has no {kind.text}ters", kind.span, f"write a method, `{name.text}(…) {{ … }}`, and call it.")


@hint(HINTS, "E0192")
def generator(failure: Failure) -> Finding | None:
    """A function is a generator.

    Wrong:

        const count = function* (n) { return n }

    Right:

        const count = function (n) { return Array.from({ length: n }, (_, i) => i) }
    """
    in_object = failure.frame.bracket == "{" and failure.word(-1) in ("{", ",", "async") and failure.word(2) == "("
    if failure.word() != "*" or not (failure.word(-1) == "function" or in_object):
        return None
    help = "leave the `*` out, collect the values in a list, and return it."
    return Finding("Koi has no generators", failure.span, help)


@hint(HINTS, "E0193")
def statement_as_value(failure: Failure) -> Finding | None:
    """A statement such as `if` stands where a value is needed.

    Wrong:

        const size = if (args.big) 10 else 1

    Right:

        const size = args.big ? 10 : 1
    """
    help = AS_VALUE.get(failure.word())
    if help is None or not failure.wants_value or not failure.is_code:
        return None
    return Finding(f"{failure.shown} stands where a value is needed", failure.span, help)


@hint(HINTS, "E0194")
def own_error(failure: Failure) -> Finding | None:
    """A kind of error is declared as a class.

    Errors are told apart by their fields.

    Wrong:

        class NotFound extends Error { }

    Right:

        const notFound = text => Object.assign(new Error(text), { name: "NotFound" })
    """
    return error_class(failure.source, failure.span.start)


def own_error_beside(source: Source, first: Span, second: Span) -> Finding | None:
    """The same where the line can be read as two statements."""
    return error_class(source, first.start)


def error_class(source: Source, offset: int) -> Finding | None:
    """What to write instead of the class of errors that is declared on the line of an offset, if one is."""
    match = ERROR_CLASS.match(source.text, source.text.rfind("\n", 0, offset) + 1)
    if match is None or not match.start(1) <= offset <= match.end(1):
        return None
    help = f'write `throw Object.assign(new Error("…"), {{ name: "{match[2]}" }})`, and ask for `error.name`.'
    return Finding("Koi has no `class`", Span(match.start(1), match.start(1) + len("class")), help)


def tagged_beside(source: Source, first: Span, second: Span) -> Finding | None:
    """A name that touches the text in backticks behind it."""
    if source.text[second.start] != "`" or first.end != second.start:
        return None
    name = NAME_BEFORE.search(source.text, first.start, first.end)
    return None if name is None else tagged(name[0], Span(*name.span()))


def tagged(name: str, span: Span) -> Finding:
    """What to write instead of a text in backticks with a name before it."""
    help = f"write ``{name}(`…`)``, or leave `{name}` out: `${{…}}` inserts values."
    return Finding(f"a text has no name `{name}` before it", span, help)
